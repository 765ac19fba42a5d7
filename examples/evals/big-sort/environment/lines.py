"""Counts equal lines: lines.py INPUT OUTPUT."""

import sys
from collections import Counter
from pathlib import Path

lines = Path(sys.argv[1]).read_bytes().split(b"\n")
counts = Counter(lines if lines[-1] else lines[:-1])
Path(sys.argv[2]).write_bytes(b"".join(b"%d %b\n" % (counts[line], line) for line in sorted(counts)))
