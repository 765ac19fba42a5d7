import signal
import sys
import unittest
from calendar import monthrange
from datetime import date

sys.path.insert(0, ".")
from billing import list_bills

signal.alarm(5)


def days(*args):
    return [day.isoformat() for day in list_bills(*args)]


class Bills(unittest.TestCase):
    def test_the_end_of_months(self):
        self.assertEqual(days(date(2026, 1, 31), 1, date(2026, 6, 30)),
                         ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30"])

    def test_leap_days(self):
        self.assertEqual(days(date(2024, 2, 29), 12, date(2029, 1, 1)),
                         ["2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"])
        self.assertEqual(days(date(2023, 12, 30), 2, date(2024, 5, 1)), ["2023-12-30", "2024-02-29", "2024-04-30"])

    def test_december(self):
        self.assertEqual(days(date(2025, 11, 5), 1, date(2026, 1, 5)), ["2025-11-05", "2025-12-05", "2026-01-05"])

    def test_the_last_day_counts(self):
        self.assertEqual(days(date(2026, 1, 1), 3, date(2026, 4, 1)), ["2026-01-01", "2026-04-01"])
        self.assertEqual(days(date(2026, 1, 1), 3, date(2026, 3, 31)), ["2026-01-01"])
        self.assertEqual(days(date(2026, 1, 1), 1, date(2026, 1, 1)), ["2026-01-01"])
        self.assertEqual(days(date(2026, 1, 2), 1, date(2026, 1, 1)), [])

    def test_many(self):
        for day in (1, 15, 28, 29, 30, 31):
            for months in (1, 5, 7, 12, 13, 30):
                made, number, wanted = list_bills(date(1999, 1, day), months, date(2031, 8, 30)), 0, []
                while (bill := date(1999 + number // 12, number % 12 + 1, min(day, monthrange(1999 + number // 12, number % 12 + 1)[1]))) <= date(2031, 8, 30):
                    wanted.append(bill)
                    number += months
                self.assertEqual(made, wanted)

    def test_the_end_of_time(self):
        self.assertEqual(days(date(9999, 11, 30), 1, date.max), ["9999-11-30", "9999-12-30"])

    def test_months_are_at_least_one(self):
        for months in (0, -1):
            with self.assertRaises(ValueError):
                list_bills(date(2026, 1, 1), months, date(2027, 1, 1))


unittest.main()
