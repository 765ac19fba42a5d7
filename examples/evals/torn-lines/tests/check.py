import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, ".")
from follow import Follower


class Follow(unittest.TestCase):
    def setUp(self):
        self.path = Path(tempfile.mkdtemp()) / "log"
        self.follower = Follower(self.path)

    def add(self, data):
        with open(self.path, "ab") as file:
            file.write(data)
        return self.follower.read()

    def test_a_file_that_comes_later(self):
        self.assertEqual(self.follower.read(), [])
        self.assertEqual(self.add(b'{"a": 1}\n'), [{"a": 1}])
        self.assertEqual(self.follower.read(), [])

    def test_any_cut_of_the_bytes(self):
        records = [{"t": "naïve 日本 \U0001f600"}, {"t": "a\u2028b\x85c"}, {"n": [1, {}]}]
        data = b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in records)
        for cut in range(len(data)):
            path = self.path.with_name(f"log{cut}")
            path.write_bytes(data[:cut])
            follower = Follower(str(path))
            made = follower.read()
            with open(path, "ab") as file:
                file.write(data[cut:])
            self.assertEqual(made + follower.read(), records, cut)
            self.assertEqual(follower.skipped, 0)

    def test_what_is_no_record_is_counted(self):
        made = self.add(b'\n\r\n  \n{"a": 1}\r\nnot json\n[1]\n5\n\xff\xfe\n{"b": 2}\n{"c"')
        self.assertEqual((made, self.follower.skipped), ([{"a": 1}, {"b": 2}], 4))
        self.assertEqual(self.add(b": 3}\n"), [{"c": 3}])

    def test_a_form_feed_ends_no_line(self):
        self.assertEqual(self.add(b'{"a":\x0c1}\n{"b": 1}\n'), [{"b": 1}])
        self.assertEqual(self.follower.skipped, 1)
        self.assertEqual(self.add('{"a": "\u2028\u2029\x85"}\n'.encode()), [{"a": "\u2028\u2029\x85"}])

    def test_rotation(self):
        self.add(b'{"a": 1}\n{"torn')
        new = self.path.with_name("new")
        new.write_bytes(b'{"b": 2}\n{"c": 3}\n{"d": 4}\n')
        os.replace(new, self.path)
        self.assertEqual(self.follower.read(), [{"b": 2}, {"c": 3}, {"d": 4}])

    def test_a_shorter_file(self):
        self.add(b'{"a": 1}\n{"b": 22222}\n{"torn')
        self.path.write_bytes(b'{"c": 3}\n')
        self.assertEqual(self.follower.read(), [{"c": 3}])
        os.unlink(self.path)
        self.assertEqual(self.follower.read(), [])
        self.assertEqual(self.add(b'{"d": 4}\n'), [{"d": 4}])

    def test_only_what_is_new_is_read(self):
        self.add(b'{"a": 1}\n' * 200_000)
        before = io_bytes()
        self.assertEqual(self.add(b'{"b": 2}\n'), [{"b": 2}])
        if before is not None:
            self.assertLess(io_bytes() - before, 600_000)

    def test_no_file_stays_open(self):
        self.add(b'{"a": 1}\n')
        if os.path.isdir("/proc/self/fd"):
            links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
            self.assertNotIn(str(self.path), links)


def io_bytes():
    try:
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])
    except OSError:
        return None


unittest.main()
