#!/bin/bash
cat > lines.py <<'PY'
"""Counts equal lines: lines.py INPUT OUTPUT. Sorts parts of the input, then merges them."""

import heapq
import sys
import tempfile
from itertools import groupby
from pathlib import Path

PART = 8 << 20
MOST_FILES = 16


def read_lines(file):
    """Yield the lines of a file without their ends."""
    for line in file:
        yield line[:-1] if line.endswith(b"\n") else line


def write_lines(lines, folder):
    """Write lines to a temporary file, and return that at its start."""
    file = tempfile.TemporaryFile(dir=folder, buffering=1 << 16)
    file.writelines(line + b"\n" for line in lines)
    file.seek(0)
    return file


def sort_parts(file, folder):
    """Yield temporary files of sorted lines."""
    part, size = [], 0
    for line in read_lines(file):
        part.append(line)
        size += len(line) + 100
        if size > PART:
            yield write_lines(sorted(part), folder)
            part, size = [], 0
    yield write_lines(sorted(part), folder)


def merge(files):
    return heapq.merge(*map(read_lines, files))


def main(source, target):
    folder = Path(target).resolve().parent
    levels = []  # files that came of as many merges as their place says
    with open(source, "rb") as file:
        for part in sort_parts(file, folder):
            level = 0
            while True:
                if level == len(levels):
                    levels.append([])
                levels[level].append(part)
                if len(levels[level]) < MOST_FILES:
                    break
                part = write_lines(merge(levels[level]), folder)
                for done in levels[level]:
                    done.close()
                levels[level] = []
                level += 1
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as out:
        for line, equal in groupby(merge([file for files in levels for file in files])):
            out.write(b"%d %b\n" % (sum(1 for _ in equal), line))
    Path(out.name).replace(target)


main(*sys.argv[1:])
PY
