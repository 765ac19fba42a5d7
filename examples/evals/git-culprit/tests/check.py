import os
import subprocess
import unittest
from pathlib import Path


def git(*args):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "safe.directory=*", "-C", "shop", *args]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


class Culprit(unittest.TestCase):
    def test_the_subject_is_named(self):
        self.assertEqual(Path("culprit.txt").read_text().strip(), "Tidy the names in rates")

    def test_one_commit_more_on_the_old_history(self):
        bundle = Path(__file__).with_name("history.bundle")
        tip = subprocess.run(["git", "ls-remote", bundle, "refs/heads/main"], check=True, capture_output=True, text=True).stdout.split()[0]
        self.assertEqual(git("rev-parse", "main~1"), tip)
        self.assertEqual(git("rev-list", "--parents", "-1", "main").split()[1:], [tip])

    def test_only_the_faulty_line_is_back(self):
        self.assertEqual(git("diff", "--numstat", "main~1", "main"), "1\t1\trates.py")
        self.assertIn("return 0 if quantity < LIMIT else quantity * cents // 10", git("show", "main:rates.py"))
        self.assertIn("BULK = 200", git("show", "main:rates.py"))


unittest.main()
