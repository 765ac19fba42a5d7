import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path("invoices.py").resolve())
GOOD = {"customer": "Ada", "items": [{"quantity": 2, "price": 1.5}, {"quantity": 0, "price": 9}]}


class Invoices(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()

    def write(self, name, content):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        with open(os.path.join(self.dir, name), "wb") as file:
            file.write(data)
        return name

    def run_program(self, *names):
        done = subprocess.run([sys.executable, PROGRAM, *names], cwd=self.dir, capture_output=True, text=True, timeout=20)
        return done.returncode, done.stdout, done.stderr

    def test_good_ones(self):
        self.write("a", GOOD)
        self.write("b", {"customer": "Zoë", "items": [], "more": 1})
        self.assertEqual(self.run_program("a", "b", "a"), (0, "Ada: 3.00\nZoë: 0.00\nAda: 3.00\n", ""))

    def test_each_fault_is_one_line(self):
        item = {"quantity": 1, "price": 2}
        for content, what in (
            (b"", "not JSON (line 1)"), (b'{\n"a": 1,\n}', "not JSON (line 3)"), (b"\xff{}", "not UTF-8"), ([], "the invoice is not an object"),
            (b"nul", "not JSON (line 1)"), (None, "the invoice is not an object"), ({}, "the field customer is missing"),
            ({"customer": None, "items": 3}, "the field customer is not text"), ({"customer": "x"}, "the field items is missing"),
            ({"customer": "x", "items": {}}, "the field items is not a list"), ({"customer": "x", "items": [item, 5]}, "the field items[1] is not an object"),
            ({"customer": "x", "items": [item, item, {"price": "1"}]}, "the field items[2].quantity is missing"),
            ({"customer": "x", "items": [{"quantity": "1", "price": None}]}, "the field items[0].quantity is not a number of 0 or more"),
            ({"customer": "x", "items": [{"quantity": 1, "price": -0.5}]}, "the field items[0].price is not a number of 0 or more"),
            ({"customer": "x", "items": [{"quantity": True, "price": 1}]}, "the field items[0].quantity is not a number of 0 or more"),
            (b'{"customer": "x", "items": [{"quantity": 1, "price": NaN}]}', "the field items[0].price is not a number of 0 or more"),
            (b'{"customer": "x", "items": [{"quantity": Infinity, "price": 1}]}', "the field items[0].quantity is not a number of 0 or more"),
            (b'{"customer": "x", "items": [{"quantity": 1, "price": 1e999}]}', "the field items[0].price is not a number of 0 or more"),
            (b"[" * 100_000, "not JSON (line 1)"),
        ):
            self.write("good", GOOD)
            self.write("bad", content)
            self.assertEqual(self.run_program("bad", "good"), (1, "Ada: 3.00\n", f"bad: {what}\n"), content[:60] if isinstance(content, bytes) else content)

    def test_files_that_cannot_be_opened(self):
        os.mkdir(os.path.join(self.dir, "folder"))
        self.write("good", GOOD)
        self.assertEqual(self.run_program("none", "good", "folder"),
                         (1, "Ada: 3.00\n", "none: No such file or directory\nfolder: Is a directory\n"))

    def test_names_with_control_characters(self):
        self.assertEqual(self.run_program("a\nb\x1b[1m"), (1, "", "a?b?[1m: No such file or directory\n"))

    def test_usage(self):
        code, out, errors = self.run_program()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("invoices.py", errors)
        self.assertNotIn("Traceback", errors)

    def test_a_reader_that_goes_away(self):
        self.write("good", GOOD)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([sys.executable, PROGRAM, *["good"] * 50], cwd=self.dir, stdout=writer, stderr=subprocess.PIPE, timeout=20)
        os.close(writer)
        self.assertEqual(done.stderr, b"")


unittest.main()
