import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

STORY = "The cat saw the dog.\nThe dog saw a bird; the bird saw nothing.\n"


def run(*args, text=""):
    return subprocess.run(
        [sys.executable, "wordcount.py", *args],
        input=text, capture_output=True, text=True, timeout=20,
    )


class WordCount(unittest.TestCase):
    def setUp(self):
        self.file = Path(tempfile.mkdtemp()) / "story.txt"
        self.file.write_text(STORY)

    def lines(self, *args, **kwargs):
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split("\n")[:-1]

    def test_without_options_nothing_changes(self):
        plain = ["3 saw", "2 The", "2 bird", "2 dog", "2 the", "1 a", "1 cat", "1 nothing"]
        self.assertEqual(self.lines(self.file), plain)
        self.assertEqual(self.lines(text=STORY), plain)

    def test_case_is_ignored_when_asked(self):
        folded = ["4 the", "3 saw", "2 bird", "2 dog", "1 a", "1 cat", "1 nothing"]
        self.assertEqual(self.lines("-i", self.file), folded)
        self.assertEqual(self.lines(self.file, "--ignore-case"), folded)

    def test_the_top_is_taken_after_case_and_ties(self):
        self.assertEqual(self.lines("-n", "2", "-i", self.file), ["4 the", "3 saw"])
        self.assertEqual(self.lines(self.file, "--top=3"), ["3 saw", "2 The", "2 bird"])
        self.assertEqual(len(self.lines("--top", "100", self.file)), 8)

    def test_json_has_the_order_of_lines(self):
        text = run("--json", "-i", "--top", "4", self.file).stdout
        self.assertEqual(list(json.loads(text).items()), [("the", 4), ("saw", 3), ("bird", 2), ("dog", 2)])
        self.assertEqual(json.loads(run("--json", text="").stdout), {})
        self.assertEqual(json.loads(run("--json", text="né né").stdout), {"né": 2})

    def test_a_top_below_one_is_an_error_of_usage(self):
        for value in ("0", "-1", "x", ""):
            done = run("--top", value, self.file)
            self.assertEqual((done.returncode, done.stdout), (2, ""), value)
            self.assertTrue(done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_options_work_between_files(self):
        self.assertEqual(self.lines(self.file, "-i", self.file, "-n1"), ["8 the"])


unittest.main()
