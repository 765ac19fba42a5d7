import random
import sqlite3
import unittest
from pathlib import Path

OLD = Path(__file__).with_name("old.sql").read_text()
MIGRATION = Path("migration.sql").read_text()


def migrate(persons, notes=()):
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(OLD)
    database.execute("PRAGMA defer_foreign_keys = ON")
    database.execute("BEGIN")
    database.execute("PRAGMA defer_foreign_keys = ON")
    database.executemany("INSERT INTO person VALUES (?, ?, ?, ?)", persons)
    database.executemany("INSERT INTO note VALUES (?, ?, ?)", notes)
    database.execute("COMMIT")
    database.executescript(MIGRATION)
    assert not database.in_transaction
    database.execute("PRAGMA foreign_keys = ON")
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    return database


PERSONS = [(3, "Ada  King Lovelace", "ADA@x.org", None), (5, " Bob ", "bob@x.org", 3), (7, "Cleo de la Cruz", "Bob@X.org", 3),
           (9, "Zoë\u00e9 Ång", None, 7), (11, "", None, 3), (12, "A B", "ada@X.org", 5)]
NOTES = [(1, 5, "one"), (2, 5, "two"), (3, 12, "it's")]


class Migration(unittest.TestCase):
    def test_names_and_addresses(self):
        rows = migrate(PERSONS, NOTES).execute("SELECT * FROM person ORDER BY id").fetchall()
        self.assertEqual(rows, [
            (3, "Ada King", "Lovelace", "ADA@x.org", None), (5, "Bob", "", "bob@x.org", 3),
            (7, "Cleo de la", "Cruz", None, 3), (9, "Zoëé", "Ång", None, 7), (11, "", "", None, 3), (12, "A", "B", None, 5)])

    def test_notes_stay_and_go_with_their_person(self):
        database = migrate(PERSONS, NOTES)
        self.assertEqual(database.execute("SELECT * FROM note ORDER BY id").fetchall(), NOTES)
        database.execute("DELETE FROM person WHERE id = 12")
        self.assertEqual(database.execute("SELECT id FROM note").fetchall(), [(1,), (2,)])

    def test_constraints(self):
        database = migrate(PERSONS, NOTES)
        columns = [row[1:3] for row in database.execute("PRAGMA table_info(person)")]
        self.assertEqual([name for name, _ in columns], ["id", "first", "last", "email", "manager_id"])
        for values in ("(20, NULL, '', NULL, NULL)", "(20, '', NULL, NULL, NULL)", "(20, '', '', 'ADA@X.ORG', NULL)",
                       "(20, '', '', NULL, 999)", "(3, '', '', NULL, NULL)"):
            with self.assertRaises(sqlite3.IntegrityError, msg=values):
                database.execute(f"INSERT INTO person VALUES {values}")
        with self.assertRaises(sqlite3.IntegrityError):
            database.execute("INSERT INTO note VALUES (20, 999, '')")
        database.execute("INSERT INTO person (first, last) VALUES ('x', 'y')")

    def test_the_view(self):
        rows = migrate(PERSONS).execute("SELECT * FROM boss ORDER BY 1").fetchall()
        self.assertEqual(rows, [(5, "Bob", "Ada King Lovelace"), (7, "Cleo de la Cruz", "Ada King Lovelace"),
                                (9, "Zoëé Ång", "Cleo de la Cruz"), (11, "", "Ada King Lovelace"), (12, "A B", "Bob")])

    def test_long_and_random_names(self):
        chance = random.Random(4)
        persons = [(number, "".join(chance.choices("ab é  '", k=chance.randint(0, 40))), None, None) for number in range(1, 200)]
        made = migrate(persons).execute("SELECT first, last FROM person ORDER BY id").fetchall()
        for (_, name, *_), row in zip(persons, made):
            words = name.split()
            self.assertEqual(row, (" ".join(words[:-1] or words), words[-1] if len(words) > 1 else ""), name)

    def test_an_empty_database(self):
        self.assertEqual(migrate([]).execute("SELECT * FROM person").fetchall(), [])


unittest.main()
