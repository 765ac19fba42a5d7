import random
import sys
import time
import unittest
from datetime import datetime, timedelta

sys.path.insert(0, ".")
from cron import next_run


def after(expression, text="2026-03-04 10:30"):  # a Wednesday
    return next_run(expression, datetime.fromisoformat(text)).strftime("%Y-%m-%d %H:%M")


class Cron(unittest.TestCase):
    def test_cases(self):
        for expression, wanted in {
            "* * * * *": "2026-03-04 10:31", "30 10 * * *": "2026-03-05 10:30", "*/15 * * * *": "2026-03-04 10:45",
            "5/10 * * * *": "2026-03-04 10:35", "0 8-18/2 * * *": "2026-03-04 12:00", "0 0 1 1 *": "2027-01-01 00:00",
            "0 9 * * mon-fri": "2026-03-05 09:00", "0 9 * * 7": "2026-03-08 09:00", "0 9 * * 0": "2026-03-08 09:00",
            "0 0 29 2 *": "2028-02-29 00:00", "0 0 13 * 5": "2026-03-06 00:00", "0 0 */2 * 5": "2026-03-13 00:00",
            "0 0 * * SAT,2": "2026-03-07 00:00", "0 0 31 4,JUN,jul *": "2026-07-31 00:00", "59 23 31 12 *": "2026-12-31 23:59",
            "1,2,40-50/5 10 * * *": "2026-03-04 10:40", "0 0 * 2 5-7": "2027-02-05 00:00", "  0   0 * *\t* ": "2026-03-05 00:00",
            "0 0 1-31 * 1": "2026-03-05 00:00", "0 12 1 */3 *": "2026-04-01 12:00",
        }.items():
            self.assertEqual(after(expression), wanted, expression)

    def test_seconds_do_not_matter(self):
        made = next_run("* * * * *", datetime(2026, 3, 4, 10, 30, 59, 999))
        self.assertEqual(made, datetime(2026, 3, 4, 10, 31))

    def test_leap_years_of_centuries(self):
        self.assertEqual(after("0 0 29 2 *", "2096-03-01 00:00"), "2104-02-29 00:00")

    def test_wrong_expressions(self):
        for expression in ("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * 0 *",
                           "* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *", "* * * * foo", "1, * * * *", "-1 * * * *", "1-2-3 * * * *",
                           "*/x * * * *", "mon * * * *", "* * jan * *", "*5 * * * *"):
            with self.assertRaises(ValueError, msg=expression):
                after(expression)

    def test_never(self):
        for expression in ("0 0 30 2 *", "0 0 31 4,6 *"):
            with self.assertRaises(ValueError):
                after(expression)

    def test_random_expressions_against_a_search(self):
        chance = random.Random(7)
        for _ in range(60):
            minutes, hours = sorted(chance.sample(range(60), 3)), sorted(chance.sample(range(24), 2))
            day, weekday = chance.choice(["*", "1-28/9", "31"]), chance.choice(["*", "2,4", "0"])
            start = moment = datetime(2026, 1, 1) + timedelta(minutes=chance.randrange(10**6))
            days = {"*": range(1, 32), "1-28/9": range(1, 29, 9), "31": [31]}[day]
            weekdays = {"*": range(7), "2,4": [2, 4], "0": [0]}[weekday]
            while True:
                moment += timedelta(minutes=1)
                one, two = moment.day in days, moment.isoweekday() % 7 in weekdays
                due = (one or two) if "*" not in (day, weekday) else (one and two)
                if due and moment.minute in minutes and moment.hour in hours:
                    break
            expression = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} {day} * {weekday}"
            self.assertEqual(next_run(expression, start), moment, expression)

    def test_it_is_fast(self):
        begin = time.process_time()
        for _ in range(20):
            after("0 0 29 2 *", "2096-03-01 00:00")
        self.assertLess(time.process_time() - begin, 2)


unittest.main()
