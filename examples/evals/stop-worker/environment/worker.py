"""Works on a queue of files: worker.py QUEUE DONE [--pause S]."""

import argparse
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("queue", type=Path)
parser.add_argument("done", type=Path)
parser.add_argument("--pause", type=float, default=0.0)
args = parser.parse_args()
count = 0
for file in args.queue.iterdir():
    with open(args.done / file.name, "w") as out:
        text = file.read_text()
        out.write(text[: len(text) // 2].upper())
        time.sleep(args.pause)
        out.write(text[len(text) // 2 :].upper())
    file.unlink()
    count += 1
print(f"done {count}")
