import subprocess
import sys
import time
import unittest
from pathlib import Path

PROGRAM = [sys.executable, str(Path("mask.py").resolve())]


def mask(data):
    done = subprocess.run(PROGRAM, input=data, capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout


class Mask(unittest.TestCase):
    def cases(self, cases):
        for text, wanted in cases.items():
            self.assertEqual(mask(text.encode()).decode(), wanted, text)

    def test_the_sample(self):
        self.assertEqual(mask(Path(__file__).with_name("sample.log").read_bytes()).decode().split("\n"), [
            "connect postgres://app:***@db.example.org:5432/shop?sslmode=require",
            "GET /login?user=ada&password=***&next=/home HTTP/1.1",
            '{"api_key": "***", "name": "ada", "Token":"***", "n": 1}',
            'header "AUTHORIZATION: bearer ***" sent',
            'db_password = "***" ; retry=3',
            "nothing to hide: tokenise the text, http://example.org:8080/a@b", ""])

    def test_addresses(self):
        self.cases({"redis://:pw@h": "redis://:***@h", "http://u:p@h http://u:q@h/x:y@z": "http://u:***@h http://u:***@h/x:y@z",
                    "git+ssh://a:b@c": "git+ssh://a:***@c", "http://u@h": "http://u@h", "u:p@h": "u:p@h", "'ftp://u:a@b@h'": "'ftp://u:***@h'"})

    def test_authorization(self):
        self.cases({"authorization: Basic dTpw": "authorization: Basic ***", "Authorization: Bearer a b": "Authorization: Bearer *** b",
                    "Authorization: Digest x": "Authorization: Digest x", "curl -H 'Authorization: Bearer x' y": "curl -H 'Authorization: Bearer ***' y"})

    def test_names(self):
        self.cases({"MY-SECRET-2=a,b": "MY-SECRET-2=***,b", "apiKey : x;y": "apiKey : ***;y", "token=": "token=", 'token=""': 'token=""', "token= next": "token= ***",
                    'x="token" y': 'x="token" y', '{"access_token":12}': '{"access_token":***}', 'secret = "a\\\\" b': 'secret = "***" b',
                    'password="open': 'password=***', "tokens: 5": "tokens: ***", "a=1&api-key=2&b=3": "a=1&api-key=***&b=3", "password=a password=b": "password=*** password=***"})

    def test_other_bytes_stay(self):
        for data in (b"", b"\n\n", b"caf\xe9 \xff\x00\r\nx", b"a\r\n\x85\xe2\x80\xa8b\x0c\n", b"no end"):
            self.assertEqual(mask(data), data)
        self.assertEqual(mask(b"token=\xff\xe9\r\nx"), b"token=***\r\nx")

    def test_lines_come_at_once(self):
        process = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        for number in range(3):
            process.stdin.write(b"token=%d\n" % number)
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"token=***\n")
        process.stdin.write(b"rest")
        process.stdin.close()
        self.assertEqual((process.stdout.read(), process.wait(20)), (b"rest", 0))

    def test_long_lines_are_fast(self):
        for part in (b"a", b"a-", b"http://a:", b"token", b'"', b"authorization: ", b"\\"):
            data = part * (1_000_000 // len(part)) + b"\n"
            start = time.monotonic()
            self.assertEqual(mask(data), data, part)
            self.assertLess(time.monotonic() - start, 15, part)


unittest.main()
