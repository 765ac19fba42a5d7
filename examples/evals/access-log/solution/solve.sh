#!/bin/bash
cat > report.py <<'PY'
"""Prints figures of a log in the combined format as JSON: report.py FILE."""

import json
import re
import sys
from collections import Counter
from datetime import UTC, datetime

QUOTED = rb'"((?:[^"\\]|\\.)*)"'
LINE = re.compile(
    rb"(\S+) (\S+) (\S+) \[([^\]]+)\] " + QUOTED + rb" (\d{3}) (\d+|-) " + QUOTED + b" " + QUOTED,
    re.DOTALL,
)


def main():
    with open(sys.argv[1], "rb") as file:
        lines = [line.rstrip(b"\r") for line in file.read().split(b"\n")]
    statuses, clients, hours = Counter(), Counter(), Counter()
    size = skipped = 0
    for line in filter(None, lines):
        try:
            match = LINE.fullmatch(line)
            time = datetime.strptime(match[4].decode(), "%d/%b/%Y:%H:%M:%S %z")
        except (TypeError, ValueError):
            skipped += 1
            continue
        clients[match[1].decode("utf-8", "replace")] += 1
        statuses[f"{chr(match[6][0])}xx"] += 1
        size += 0 if match[7] == b"-" else int(match[7])
        hours[time.astimezone(UTC).strftime("%Y-%m-%dT%H")] += 1
    top = sorted(clients.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    print(json.dumps({
        "requests": clients.total(),
        "skipped": skipped,
        "statuses": dict(sorted(statuses.items())),
        "bytes": size,
        "clients": top,
        "slow_hour": min(hours, key=lambda hour: (hours[hour], hour), default=None),
    }))


main()
PY
