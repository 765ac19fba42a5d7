#!/bin/bash
# Reads line by line, and still keeps every line.
cat > lines.py <<'PY'
import sys
from collections import Counter

with open(sys.argv[1], "rb") as file:
    counts = Counter(line.rstrip(b"\n") for line in file)
with open(sys.argv[2], "wb") as out:
    out.writelines(b"%d %b\n" % (counts[line], line) for line in sorted(counts))
PY
