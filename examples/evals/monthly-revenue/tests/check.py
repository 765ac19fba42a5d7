import random
import sqlite3
import unittest
from pathlib import Path

SCHEMA = Path(__file__).with_name("schema.sql").read_text()
REPORT = Path("report.sql").read_text()


def run(customers, products, purchases, lines):
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    database.executemany("INSERT INTO customer VALUES (?, ?)", customers)
    database.executemany("INSERT INTO product VALUES (?, ?)", products)
    database.executemany("INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?)", purchases)
    database.executemany("INSERT INTO line VALUES (?, ?, ?, ?)", lines)
    cursor = database.execute(REPORT)
    assert [column[0] for column in cursor.description] == ["month", "orders", "revenue", "customers", "best"]
    return cursor.fetchall()


def expect(products, purchases, lines):
    rows = []
    for number in range(1, 13):
        month = f"2025-{number:02}"
        paid = [one for one in purchases if (one[3] or "").startswith(month) and not one[5]]
        revenue, units = 0, {}
        for one in paid:
            own = [line for line in lines if line[0] == one[0]]
            revenue += sum(line[2] * line[3] for line in own) * (100 - one[4]) // 100
            for line in own:
                units[line[1]] = units.get(line[1], 0) + line[2]
        names = dict(products)
        best = min(units, key=lambda one: (-units[one], names[one]), default=None)
        rows.append((month, len(paid), revenue, len({one[1] for one in paid}), names.get(best)))
    return rows


class Report(unittest.TestCase):
    def test_an_empty_shop_has_twelve_months(self):
        self.assertEqual(run([], [], [], []), expect([], [], []))

    def test_many_random_shops(self):
        products = [(1, "tea"), (2, "cup"), (3, "pot"), (4, "jar")]
        for seed in range(60):
            chance = random.Random(seed)
            day = lambda: f"{chance.choice(['2024-12', '2025-01', '2025-02', '2025-11', '2025-12', '2026-01'])}-{chance.randint(1, 28):02} 12:00:00"
            purchases = [
                (number, chance.randint(1, 3), day(), chance.choice([None, day(), day()]), chance.choice([0, 5, 33]), chance.random() < 0.2)
                for number in range(1, chance.randint(2, 25))
            ]
            lines = [
                (one[0], chance.randint(1, 4), chance.randint(1, 3), chance.choice([99, 333, 1250]))
                for one in purchases for _ in range(chance.randint(0, 4))
            ]
            made = run([(1, "Ada"), (2, "Bob"), (3, "Ada")], products, purchases, lines)
            self.assertEqual(made, expect(products, purchases, lines), seed)


unittest.main()
