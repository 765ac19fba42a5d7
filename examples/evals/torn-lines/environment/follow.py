"""Reads what is new in a log of JSON lines."""

import json


class Follower:
    def __init__(self, path):
        self.path = path
        self.lines = 0
        self.skipped = 0

    def read(self):
        """Return the records that came since the last call."""
        with open(self.path) as file:
            lines = file.read().splitlines()
        new = lines[self.lines :]
        self.lines = len(lines)
        return [json.loads(line) for line in new]
