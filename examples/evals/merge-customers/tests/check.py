import csv
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path("merge.py").resolve()
HERE = Path(__file__).parent


def merge(shop, news):
    folder = Path(tempfile.mkdtemp())
    (folder / "shop.csv").write_bytes(shop)
    (folder / "news.csv").write_bytes(news)
    subprocess.run([sys.executable, PROGRAM, "shop.csv", "news.csv"], cwd=folder, check=True, timeout=20)
    text = (folder / "customers.csv").read_bytes().decode("utf-8")
    assert not text.startswith("\ufeff")
    return list(csv.reader(io.StringIO(text, newline="")))


def table(mark, separator, *rows):
    lines = [separator.join(row) for row in (("email", "name", "phone", "since"), *rows)]
    return mark + "\r\n".join(lines).encode() + b"\r\n"


def merged(shop=(), news=()):
    return merge(table(b"", ",", *shop), table(b"\xef\xbb\xbf", ";", *news))[1:]


class Merge(unittest.TestCase):
    def test_the_files_that_are_there(self):
        self.assertEqual(merge((HERE / "shop.csv").read_bytes(), (HERE / "news.csv").read_bytes()), [
            ["email", "name", "phone", "since"],
            ["ada@example.org", "Lovelace, Ada", "+4917155501", "2023-04-01"],
            ["bob@example.org", "Bobby; Jr", "+49301234", "2021-06-15"],
            ["cleo@example.org", "Cleo", "+493077", ""],
            ["zoë@example.org", "Zoë Ångström", "+468123", ""],
        ])

    def test_days_that_do_not_exist_count_as_empty(self):
        rows = [("a@b", "A", "", "29.02.2023"), ("a@b", "A", "", "29.02.2024"), ("a@b", "A", "", "2024-13-01")]
        self.assertEqual(merged(rows), [["a@b", "A", "", "2024-02-29"]])

    def test_the_first_of_equally_long_names(self):
        made = merged([("x@y", " Jo  Ann ", "", "")], [("X@Y", "Joe Ann", "", ""), ("x@y", "Ann  Joe", "", "")])
        self.assertEqual(made, [["x@y", "Joe Ann", "", ""]])
        self.assertEqual(merged([("x@y", "Ann", "", "")], [("x@y", "Joe", "", "")])[0][1], "Ann")

    def test_phones(self):
        cases = {"0043 (1) 2-3": "+43123", "+1.555": "+1555", "(030) 5": "+49305", " ": "", "000 1": "+01"}
        for number, (given, wanted) in enumerate(cases.items()):
            self.assertEqual(merged([(f"{number}@x", "N", given, "")])[0][2], wanted, given)

    def test_empty_files(self):
        self.assertEqual(merged(), [])


unittest.main()
