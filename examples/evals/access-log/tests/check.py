import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path


def report(data):
    file = Path(tempfile.mkdtemp()) / "some.log"
    file.write_bytes(data)
    done = subprocess.run([sys.executable, "report.py", file], capture_output=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def line(address="192.0.2.1", time="02/Apr/2026:10:00:00 +0000", request=b"GET / HTTP/1.1",
         status="200", size="10", agent=b"x"):
    return b'%s - - [%s] "%s" %s %s "-" "%s"\n' % (
        address.encode(), time.encode(), request, status.encode(), size.encode(), agent)


class Report(unittest.TestCase):
    def test_the_log_that_is_there(self):
        self.assertEqual(report(Path(__file__).with_name("access.log").read_bytes()), {
            "requests": 7, "skipped": 2,
            "statuses": {"2xx": 3, "3xx": 1, "4xx": 2, "5xx": 1}, "bytes": 7018,
            "clients": [["192.0.2.7", 3], ["198.51.100.4", 2], ["2001:db8::1", 1]],
            "slow_hour": "2026-03-01T15",
        })

    def test_offsets_change_the_hour_and_the_day(self):
        data = line(time="31/Dec/2025:23:30:00 -0130") + 2 * line(time="01/Jan/2026:06:59:00 +0530")
        self.assertEqual(report(data + line(time="01/Jan/2026:01:15:00 +0000"))["slow_hour"], "2026-01-01T01")

    def test_quotes_within_quotes(self):
        made = report(line(request=rb'GET /?q=\"200 5\" HTTP/1.1', size="7", agent=rb'a \" 999 1 \"b'))
        self.assertEqual((made["requests"], made["bytes"], made["statuses"]), (1, 7, {"2xx": 1}))

    def test_foreign_bytes_are_no_fault(self):
        made = report(line(request=b"GET /\xff\xfe\xe2\x80\xa8\x0b HTTP/1.1") + line(size="-"))
        self.assertEqual((made["requests"], made["skipped"], made["bytes"]), (2, 0, 10))

    def test_lines_that_are_none(self):
        good, bad = line(), [b"x\n", line(status="OK"), line(time="yesterday"), line(size="big"), b"\n", b"\n"]
        made = report(b"".join([good, *bad, good.rstrip(b"\n")]))
        self.assertEqual((made["requests"], made["skipped"]), (2, 4))

    def test_equal_clients_are_sorted_as_text(self):
        data = b"".join(line(address) for address in ("10.0.0.9", "10.0.0.10", "10.0.0.2", "9.9.9.9", "9.9.9.9"))
        self.assertEqual(report(data)["clients"], [["9.9.9.9", 2], ["10.0.0.10", 1], ["10.0.0.2", 1]])


unittest.main()
