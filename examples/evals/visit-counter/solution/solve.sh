#!/bin/bash
cat > visits.py <<'PY'
"""Counts visits of pages: visits.py FILE PAGE."""

import fcntl
import json
import os
import stat
import sys


def read_counts(file):
    try:
        with open(file, encoding="utf-8") as opened:
            counts = json.load(opened)
    except FileNotFoundError:
        return {}
    if not isinstance(counts, dict) or any(type(count) is not int for count in counts.values()):
        raise ValueError("no object of counts")
    return counts


def write_counts(file, counts):
    part = f"{file}.part"  # one process at a time has the lock
    with open(part, "w", encoding="utf-8") as out:
        json.dump(counts, out)
        out.flush()
        os.fsync(out.fileno())
    if os.path.exists(file):
        os.chmod(part, stat.S_IMODE(os.stat(file).st_mode))
    os.replace(part, file)


def main(name, page):
    file = os.path.realpath(name)
    with open(f"{file}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process, however that ends
        try:
            counts = read_counts(file)
        except ValueError as error:
            sys.exit(f"visits.py: {name}: {error}")
        counts[page] = counts.get(page, 0) + 1
        write_counts(file, counts)
    print(counts[page])


main(*sys.argv[1:])
PY
