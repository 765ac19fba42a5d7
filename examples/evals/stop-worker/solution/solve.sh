#!/bin/bash
cat > worker.py <<'PY'
"""Works on a queue of files: worker.py QUEUE DONE [--pause S]."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path


def work_on(file, done, pause):
    """Write a file in upper case under a temporary name, and give it its name at the end."""
    text = file.read_text("utf-8")
    part = done / f".{os.getpid()}.part"
    with open(part, "w", encoding="utf-8") as out:
        out.write(text[: len(text) // 2].upper())
        time.sleep(pause)  # a signal does not shorten it, as its function returns
        out.write(text[len(text) // 2 :].upper())
    part.replace(done / file.name)
    file.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("queue", type=Path)
    parser.add_argument("done", type=Path)
    parser.add_argument("--pause", type=float, default=0.0)
    args = parser.parse_args()
    stopped = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stopped.append(number))
    count = failed = 0
    for file in sorted(args.queue.iterdir()):
        if stopped:
            print(f"stopped after {count}")
            return 0
        try:
            work_on(file, args.done, args.pause)
            count += 1
        except UnicodeDecodeError:
            print(f"{file} is not UTF-8", file=sys.stderr)
            failed = 1
    print(f"stopped after {count}" if stopped else f"done {count}")
    return 0 if stopped else failed


sys.exit(main())
PY
