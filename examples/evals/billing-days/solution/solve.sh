#!/bin/bash
cat > billing.py <<'PY'
"""Days on which subscriptions are billed."""

from calendar import monthrange
from datetime import MAXYEAR, date


def list_bills(start, months, until):
    """Return the days of all bills from `start` up to `until`."""
    if months < 1:
        raise ValueError(f"bills every {months} months")
    bills, number = [], start.year * 12 + start.month - 1
    while number // 12 <= MAXYEAR:
        year, month = number // 12, number % 12 + 1
        day = date(year, month, min(start.day, monthrange(year, month)[1]))
        if day > until:
            break
        bills.append(day)
        number += months
    return bills
PY
