#!/bin/bash
cat > cron.py <<'PY'
"""When a cron expression is due."""

import re
from datetime import datetime, timedelta

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
FIELDS = (
    (0, 59, {}), (0, 23, {}), (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    (0, 7, {name: number for number, name in enumerate(DAYS)}),
)
PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)


def read_field(text, lowest, highest, names):
    def read(word):
        number = names.get(word.lower())
        number = int(word) if number is None else number
        if not lowest <= number <= highest:
            raise ValueError(f"{word} is out of range")
        return number

    values = set()
    for part in text.split(","):
        match = PART.fullmatch(part)
        if not match:
            raise ValueError(f"{part!r} is no part of a field")
        star, first, last, step = match.groups()
        start = lowest if star else read(first)
        end = read(last) if last else highest if star or step else start
        if end < start:
            raise ValueError(f"{part!r} ends before it starts")
        values.update(range(start, end + 1, int(step or 1)))
    return values


def next_run(expression, after):
    """Return the first minute after a time at which an expression is due."""
    fields = expression.split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"{expression!r} has not five fields")
    minutes, hours, days, months, weekdays = (read_field(text, *field) for text, field in zip(fields, FIELDS))
    weekdays = {number % 7 for number in weekdays}
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    start = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    day = start.replace(hour=0, minute=0)
    for _ in range(366 * 12):
        found = (day.day in days, day.isoweekday() % 7 in weekdays)
        if day.month in months and (any(found) if either else all(found)):
            for hour in sorted(hours):
                for minute in sorted(minutes):
                    moment = day.replace(hour=hour, minute=minute)
                    if moment >= start:
                        return moment
        day += timedelta(days=1)
    raise ValueError(f"{expression!r} is never due")
PY
