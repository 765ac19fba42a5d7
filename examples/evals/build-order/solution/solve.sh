#!/bin/bash
cat > order.py <<'PY'
"""Prints targets in the order in which they can be built: order.py FILE."""

import heapq
import sys


def read_depends(name):
    """Return target → dependencies, for every name of the file."""
    depends = {}
    with open(name) as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            target, *needs = (part.split() for part in text.split(":"))
            if len(target) != 1 or len(needs) != 1:
                print(f"{name}:{number}: not `target: dependencies`", file=sys.stderr)
                sys.exit(2)
            depends.setdefault(target[0], set()).update(needs[0])
            for need in needs[0]:
                depends.setdefault(need, set())
    return depends


def sort_targets(depends):
    """Return what can be built, in order."""
    missing = {name: len(needs) for name, needs in depends.items()}
    users = {name: [] for name in depends}
    for name, needs in depends.items():
        for need in needs:
            users[need].append(name)
    free = [name for name, count in missing.items() if not count]
    heapq.heapify(free)
    made = []
    while free:
        made.append(heapq.heappop(free))
        for user in users[made[-1]]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(free, user)
    return made


def find_cycle(depends, made):
    """Return a cycle among the targets that cannot be built: each of them needs another one."""
    left = set(depends) - set(made)
    path, places, name = [], {}, min(left)
    while name not in places:
        places[name] = len(path)
        path.append(name)
        name = min(depends[name] & left)
    cycle = path[places[name] :]
    start = cycle.index(min(cycle))
    return [*cycle[start:], *cycle[:start], cycle[start]]


depends = read_depends(sys.argv[1])
made = sort_targets(depends)
if len(made) < len(depends):
    sys.exit("cycle: " + " -> ".join(find_cycle(depends, made)))
print("".join(f"{name}\n" for name in made), end="")
PY
