"""Prints targets in the order in which they can be built: order.py FILE."""

import sys

depends = {}
for line in open(sys.argv[1]):
    target, names = line.split(":")
    depends[target] = names.split()
done = []


def build(target):
    if target not in done:
        for name in depends[target]:
            build(name)
        done.append(target)


for target in sorted(depends):
    build(target)
print("\n".join(done))
