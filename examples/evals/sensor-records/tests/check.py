import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

START = 1772366400000


def record(ms, kind, name, rest, bad=0):
    body = struct.pack("<iBB", ms, kind, len(name.encode())) + name.encode() + rest
    head = struct.pack("<H", len(body)) + body
    return head + struct.pack("<I", zlib.crc32(head) ^ bad)


def decode(data):
    file = Path(tempfile.mkdtemp()) / "f.bin"
    file.write_bytes(data)
    done = subprocess.run([sys.executable, "decode.py", file], capture_output=True, timeout=20)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def sensors(*records, start=START):
    return b"SNS1" + struct.pack("<Q", start) + b"".join(records)


HEADER = "time,sensor,kind,value\n"


class Decode(unittest.TestCase):
    def test_the_file_that_is_there(self):
        self.assertEqual(decode(Path(__file__).with_name("sensors.bin").read_bytes()), (0, HEADER + """\
2026-03-01T12:00:00.250Z,kitchen,temperature,21.5
2026-03-01T12:00:00.250Z,door,switch,on
2026-03-01T11:59:59.000Z,räume,temperature,-0.5
2026-03-01T12:01:00.000Z,door,text,"open, ""wide""
since"
""", "1 damaged\n"))

    def test_values(self):
        made = decode(sensors(record(1, 1, "", struct.pack("<h", -32768)), record(1, 1, "a,b", struct.pack("<h", 0)),
                              record(1, 2, "s", b"\x00"), record(1, 2, "s", b"\xff"), record(1, 3, "t", b""), record(1, 3, "t", "é".encode() * 30_000)))
        self.assertEqual(made, (0, HEADER + f"""\
2026-03-01T12:00:00.001Z,,temperature,-3276.8
2026-03-01T12:00:00.002Z,"a,b",temperature,0.0
2026-03-01T12:00:00.003Z,s,switch,off
2026-03-01T12:00:00.004Z,s,switch,on
2026-03-01T12:00:00.005Z,t,text,
2026-03-01T12:00:00.006Z,t,text,{"é" * 30_000}
""", ""))

    def test_damaged_and_unknown_records(self):
        made = decode(sensors(record(10, 2, "s", b"\x01", bad=7), record(100, 200, "s", b""), record(1, 2, "s", b"\x01"), record(5, 3, "s", b"x", bad=1)))
        self.assertEqual(made, (0, HEADER + "2026-03-01T12:00:00.101Z,s,switch,on\n", "2 damaged\n"))

    def test_files_that_end_early(self):
        whole = sensors(record(1, 2, "s", b"\x01"), record(1, 2, "t", b"\x00"))
        one = HEADER + "2026-03-01T12:00:00.001Z,s,switch,on\n"
        size = len(record(1, 2, "s", b"\x01"))
        for cut in range(1, size):
            self.assertEqual(decode(whole[:-cut]), (1, one, "truncated\n"), cut)
        self.assertEqual(decode(whole[:-size]), (0, one, ""))
        code, out, errors = decode(sensors(record(1, 2, "s", b"", bad=1)) + b"\x09")
        self.assertEqual((code, out, errors), (1, HEADER, "1 damaged\ntruncated\n"))

    def test_files_that_do_not_start_right(self):
        for data in (b"", b"SNS", b"SNS2" + bytes(8), b"SNS1" + bytes(7)):
            code, out, errors = decode(data)
            self.assertEqual((code, out), (1, ""))
            self.assertNotIn("Traceback", errors)
            self.assertTrue(errors)
        self.assertEqual(decode(sensors()), (0, HEADER, ""))

    def test_old_and_late_starts(self):
        self.assertIn("1970-01-01T00:00:00.007Z,s", decode(sensors(record(7, 2, "s", b"\x01"), start=0))[1])
        self.assertIn("2286-11-20T17:46:39.999Z,s", decode(sensors(record(-1, 2, "s", b"\x01"), start=10**13))[1])


unittest.main()
