#!/bin/bash
# Locks the file itself and writes it in place: readers see parts of it.
cat > visits.py <<'PY'
import fcntl
import json
import sys

name, page = sys.argv[1:]
with open(name, "a+", encoding="utf-8") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    text = file.read()
    counts = json.loads(text) if text else {}
    counts[page] = counts.get(page, 0) + 1
    file.seek(0)
    file.truncate()
    json.dump(counts, file)
print(counts[page])
PY
