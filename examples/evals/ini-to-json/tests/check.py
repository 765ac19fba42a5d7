import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path


def convert(text):
    folder = Path(tempfile.mkdtemp())
    (folder / "service.ini").write_text(text, encoding="utf-8")
    return subprocess.run([sys.executable, Path("convert.py").resolve(), "service.ini"],
                          cwd=folder, capture_output=True, timeout=20)


class Convert(unittest.TestCase):
    def same(self, text, value):
        done = convert(text)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        made = done.stdout.decode()
        self.assertEqual(json.dumps(json.loads(made)), json.dumps(value))
        self.assertEqual(made, json.dumps(json.loads(made), indent=2, ensure_ascii="\\u" in made) + "\n")

    def refuses(self, text, line):
        done = convert(text)
        self.assertEqual((done.returncode, done.stdout), (1, b""), text)
        self.assertRegex(done.stderr.decode(), rf"^service\.ini:{line}: .+")

    def test_the_file_that_is_there(self):
        self.same(Path(__file__).with_name("service.ini").read_text(), {
            "Name": "search", "debug": False,
            "server": {
                "Port": 8080, "hosts": ["localhost", "example.org, main", 10], "ratio": 0.75, "pin": "007",
                "path": "C:\\data\\new", "tls": {"cert": None, "enabled": True}, "port": "8080",
                "greeting": 'Say "hi"\nthen leave = now',
            },
            "limits": {"burst": -5},
        })

    def test_values(self):
        values = {"0": 0, "-0.5": -0.5, "00": "00", "1.": "1.", "1e3": "1e3", "-01": "-01", "on": True, "Off": False,
                  "truely": "truely", "1_000": "1_000", "٣": "٣", '"true"': "true", '""': "", "[]": [], "[ ]": [],
                  "[yes, , 5]": [True, None, 5], r'["a\\", "]"]': ["a\\", "]"], "a # b": "a # b", "x = y : z": "x = y : z",
                  "nan": "nan", "é": "é"}
        for text, value in values.items():
            with self.subTest(text):
                self.same(f"k={text}\n", {"k": value})

    def test_keys_and_comments(self):
        self.same("# x\n  ; y\n\n a b : 1 \nurl: http://x\ne=a:b\n", {"a b": 1, "url": "http://x", "e": "a:b"})

    def test_a_later_value_replaces_at_the_same_place(self):
        self.same("a=1\nb=2\na=3", {"a": 3, "b": 2})

    def test_nested_sections(self):
        self.same("[a.b.c]\nx=1\n[a]\ny=2\n[a.b]\nz=3\n[Q]\n", {"a": {"b": {"c": {"x": 1}, "z": 3}, "y": 2}, "Q": {}})
        self.same("", {})

    def test_faults_name_their_line(self):
        for text, line in {"a=1\nnothing\n": 2, "[open\n": 1, "a=1\n[a]\n": 2, "[a.b]\n[a]\n\nb=1\n": 4, "= 1\n": 1,
                           "[]\n": 1, "[a..b]\n": 1, 'k="open\n': 1, "k=[1, [2]]\n": 1, "k=[1\n": 1, "k=1\n[k.x]\n": 2}.items():
            with self.subTest(text):
                self.refuses(text, line)


unittest.main()
