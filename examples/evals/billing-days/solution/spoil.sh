#!/bin/bash
# Knows the lengths of months, but counts from the last bill: 31, 28, 28, 28.
cat > billing.py <<'PY'
"""Days on which subscriptions are billed."""

from calendar import monthrange
from datetime import date


def list_bills(start, months, until):
    if months < 1:
        raise ValueError(months)
    bills, day = [], start
    while day <= until:
        bills.append(day)
        number = day.year * 12 + day.month - 1 + months
        year, month = number // 12, number % 12 + 1
        if year > 9999:
            break
        day = date(year, month, min(day.day, monthrange(year, month)[1]))
    return bills
PY
