"""Days on which subscriptions are billed."""

from datetime import date


def list_bills(start, months, until):
    """Return the days of all bills from `start` up to `until`."""
    bills = [start]
    day = start
    while True:
        month = day.month + months
        day = date(day.year + month // 12, month % 12, min(day.day, 28 if month == 2 else 30))
        if day > until:
            return bills
        bills.append(day)
