import sqlite3
import sys
import unittest

sys.path.insert(0, ".")
from notes import create, search

NOTES = [
    (1, "ada", "Tea", "buy 100% green tea"), (2, "ada", "under_score", "O'Hara said \"hi\""),
    (3, "ada", "cups", "Blue CUPS \\ saucers"), (4, "bob", "secret", "tea for bob"),
    (5, "ada", "Tea", None), (6, "ada' OR 1=1 --", "odd", "tea"), (7, "ada", "100 percent", "underscore"),
]


class Search(unittest.TestCase):
    def setUp(self):
        self.database = sqlite3.connect(":memory:")
        create(self.database)
        self.database.executemany("INSERT INTO note VALUES (?, ?, ?, ?)", NOTES)

    def ids(self, owner, *words, **options):
        return [number for number, _ in search(self.database, owner, list(words), **options)]

    def test_words(self):
        self.assertEqual(search(self.database, "ada", ["tea"], order="id"), [(1, "Tea"), (5, "Tea")])
        self.assertEqual(self.ids("ada", "tea", "green"), [1])
        self.assertEqual(self.ids("ada", "cups", "BLUE"), [3])
        self.assertEqual(self.ids("ada", "tea", "cups"), [])
        self.assertEqual(self.ids("ada", order="id"), [1, 2, 3, 5, 7])

    def test_signs_mean_themselves(self):
        for word, wanted in {"100%": [1], "r_s": [2], "%": [1], "_": [2], "O'H": [2], '"hi"': [2], "\\": [3],
                             "\\%": [], "*": [], "?": [], "[a-z]": []}.items():
            self.assertEqual(self.ids("ada", word, order="id"), wanted, word)

    def test_only_own_notes(self):
        self.assertEqual(self.ids("bob", "tea"), [4])
        self.assertEqual(self.ids("ada' OR 1=1 --"), [6])
        self.assertEqual(self.ids("' OR ''='"), [])
        self.assertEqual(self.ids("ada", "x%' OR '1'='1"), [])

    def test_orders(self):
        self.assertEqual(self.ids("ada"), [7, 1, 5, 3, 2])
        self.assertEqual(self.ids("ada", order="-title"), [2, 3, 1, 5, 7])
        self.assertEqual(self.ids("ada", order="-id"), [7, 5, 3, 2, 1])
        for order in ("owner", "id; DROP TABLE note", "", "ID DESC", "--id"):
            with self.assertRaises(ValueError):
                self.ids("ada", order=order)

    def test_many_words(self):
        self.assertEqual(self.ids("ada", *["tea"] * 300, order="id"), [1, 5])


unittest.main()
