import os
import random
import resource
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))


class Lines(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp())
        self.source, self.target = self.dir / "in", self.dir / "out"

    def run_lines(self, timeout=40):
        command = [sys.executable, "lines.py", self.source, self.target]
        done = subprocess.run(command, capture_output=True, timeout=timeout, preexec_fn=limit_memory)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertEqual(sorted(os.listdir(self.dir)), ["in", "out"])
        return self.target.read_bytes()

    def check(self, data):
        self.source.write_bytes(data)
        lines = data.split(b"\n")
        counts = Counter(lines if lines[-1] else lines[:-1])
        self.assertEqual(self.run_lines(), b"".join(b"%d %b\n" % (counts[line], line) for line in sorted(counts)))

    def test_small_files(self):
        for data in (b"", b"a", b"b\na\nb\n", b"\n\n", b"a\n\nb", b"\xff\n\xc3\xa9\nz\r\nz\n\x00\n", b"a b\na\na\x00\na!\n"):
            self.check(data)

    def test_a_file_beyond_the_memory(self):
        chance = random.Random(3)
        with open(self.source, "wb") as file:
            for number in range(12):
                file.write(b"".join(b"%032x line %b\n" % (chance.getrandbits(128), b"x" * 60) for _ in range(60_000)))
        size = self.source.stat().st_size
        made = self.run_lines()
        self.assertEqual(len(made), size + 2 * 720_000)
        lines = made.split(b"\n")[:-1]
        self.assertEqual(len(lines), 720_000)
        self.assertTrue(all(one < two for one, two in zip(lines, lines[1:])))

    def test_many_long_lines(self):
        self.check(b"".join(bytes([65 + number % 20]) * 1_000_000 + b"%d\n" % (number % 40) for number in range(90)))


unittest.main()
