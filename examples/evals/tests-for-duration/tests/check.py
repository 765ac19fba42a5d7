import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RIGHT = Path(__file__).with_name("duration.py").read_text()
BROKEN = {
    "days are wrong": ("86_400", "84_600"),
    "minutes and hours are the same": ('"m": 60', '"m": 3_600'),
    "no seconds": ('"s": 1', '"s": 0'),
    "no decimals in parts": (r"(\d+(?:\.\d+)?)\s*", r"(\d+)\s*"),
    "no blank before a unit": (r")\s*([dhms])", r")([dhms])"),
    "no blank between parts": (".end() :].lstrip()", ".end() :]"),
    "no upper case": (".strip().lower()", ".strip()"),
    "no blanks at the ends": ("text.strip().lower()", "text.lower()"),
    "units occur twice": ("match[2] not in order", 'match[2] not in "dhms"'),
    "any order": ('iter("dhms")', 'list("dhms")'),
    "no lone number": (r'r"\d+(\.\d+)?"', r'r"x"'),
    "a lone number is minutes": ("return sign * float(rest)", "return sign * float(rest) * 60"),
    "a lone number has no decimals": (r'r"\d+(\.\d+)?", rest', r'r"\d+", rest'),
    "a lone number has no sign": ("return sign * float(rest)", "return float(rest)"),
    "parts have no sign": ("return sign * total", "return total"),
    "the sign is about the first part": ("total += float(match[1])", 'total += (1 if not total else sign) * float(match[1])'),
    "empty is zero": ("    if not rest:\n        raise ValueError", "    if False:\n        raise ValueError"),
    "junk at the end is left out": ("if match is None or", "if match is None and total:\n            break\n        if match is None or"),
    "another error": ("raise ValueError", "raise KeyError"),
    "a number at the end counts as seconds": ("        match = _PART.match(rest)", "        match = _PART.match(rest) or _PART.match(rest + 's')"),
}


def passes(source):
    folder = Path(tempfile.mkdtemp())
    shutil.copy("test_duration.py", folder)
    (folder / "duration.py").write_text(source)
    command = [sys.executable, "-m", "unittest", "test_duration"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=10)
    return done.returncode == 0 and b"Ran 0 tests" not in done.stderr


class Tests(unittest.TestCase):
    def test_the_right_version_passes(self):
        self.assertTrue(passes(RIGHT))
        self.assertEqual(Path("duration.py").read_text(), RIGHT)

    def test_another_right_version_passes(self):
        self.assertTrue(passes(RIGHT.replace("is no duration", "cannot be read").replace("_PART", "_ONE")))

    def test_every_broken_version_fails(self):
        for name, (old, new) in BROKEN.items():
            with self.subTest(name):
                self.assertIn(old, RIGHT)
                self.assertFalse(passes(RIGHT.replace(old, new)))


unittest.main()
