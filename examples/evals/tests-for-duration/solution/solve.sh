#!/bin/bash
cat > test_duration.py <<'PY'
import unittest

from duration import read_duration

READ = {
    "1d": 86_400, "1h": 3_600, "1m": 60, "1s": 1, "2d 3h 4m 5s": 183_845,
    "1h30m": 5_400, "1h 30m": 5_400, "1 h 30 m": 5_400, "1.5h": 5_400, "0.5 m": 30,
    "1H 30M": 5_400, " 1h ": 3_600, "\t90\n": 90, "90": 90, "1.5": 1.5, "-90": -90,
    "-1h 30m": -5_400, "- 1h": -3_600, "0": 0, "0s": 0,
}
REFUSED = ["", " ", "-", "x", "1x", "h", "1h x", "1h 30", "30m 1h", "1h 1h", "1m 2m", "1h -30m", "--1h", "1.h", "1,5h"]


class Durations(unittest.TestCase):
    def test_read(self):
        for text, seconds in READ.items():
            with self.subTest(text):
                self.assertEqual(read_duration(text), seconds)
                self.assertIsInstance(read_duration(text), float)

    def test_refused(self):
        for text in REFUSED:
            with self.subTest(text), self.assertRaises(ValueError):
                read_duration(text)
PY
