import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LINES = [{"name": "tea", "quantity": 3, "price": 0.335}, {"name": "cup, blue", "quantity": 1, "price": 2.675}]


def git(*args, folder="invoice"):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "safe.directory=*", "-C", folder, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


class Merge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        (cls.folder / "invoice.py").write_text(git("show", "main:invoice.py") + "\n")
        (cls.folder / "lines.json").write_text(json.dumps(LINES))

    def run_invoice(self, *args):
        command = [sys.executable, "invoice.py", *args]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True, timeout=20).stdout

    def test_plain(self):
        self.assertEqual(self.run_invoice("lines.json"), "tea: 1.01\ncup, blue: 2.68\ntotal: 3.69\n")

    def test_currency(self):
        wanted = "tea: 1.01 USD\ncup, blue: 2.68 USD\ntotal: 3.69 USD\n"
        self.assertEqual(self.run_invoice("--currency", "usd", "lines.json"), wanted)
        self.assertEqual(self.run_invoice("lines.json", "--currency", "USD"), wanted)

    def test_csv(self):
        table = 'name,quantity,amount,currency\ntea,3,1.01,{0}\n"cup, blue",1,2.68,{0}\n'
        self.assertEqual(self.run_invoice("lines.json", "--csv"), table.format("EUR"))
        self.assertEqual(self.run_invoice("--csv", "lines.json"), table.format("EUR"))
        self.assertEqual(self.run_invoice("--csv", "--currency", "chf", "lines.json"), table.format("CHF"))

    def test_two_merges_of_the_old_commits(self):
        bundle = Path(__file__).with_name("work.bundle").resolve()
        refs = {line.split("\t")[1]: line.split("\t")[0] for line in git("ls-remote", str(bundle), folder=".").split("\n")}
        main, currency, csv = (refs[f"refs/heads/{name}"] for name in ("main", "currency", "csv"))
        second, first = git("rev-list", "--first-parent", "-2", "main").split()
        self.assertEqual(git("rev-list", "--parents", "-1", first).split()[1:], [main, currency])
        self.assertEqual(git("rev-list", "--parents", "-1", second).split()[1:], [first, csv])

    def test_nothing_is_left_of_the_conflict(self):
        self.assertEqual(git("status", "--porcelain", "--untracked-files=no"), "")
        self.assertNotIn("<<<<<<<", git("show", "main:invoice.py"))


unittest.main()
