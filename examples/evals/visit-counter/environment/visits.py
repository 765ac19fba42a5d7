"""Counts visits of pages: visits.py FILE PAGE."""

import json
import os
import sys

file, page = sys.argv[1:]
counts = json.load(open(file)) if os.path.exists(file) else {}
counts[page] = counts.get(page, 0) + 1
json.dump(counts, open(file, "w"))
print(counts[page])
