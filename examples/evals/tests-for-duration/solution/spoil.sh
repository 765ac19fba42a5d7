#!/bin/bash
# Tests of what works, and none of what has to be refused.
cat > test_duration.py <<'PY'
import unittest

from duration import read_duration


class Durations(unittest.TestCase):
    def test_read(self):
        for text, seconds in {"1d": 86_400, "1h 30m": 5_400, "1.5h": 5_400, "90": 90, "-1H 30m": -5_400}.items():
            self.assertEqual(read_duration(text), seconds)
PY
