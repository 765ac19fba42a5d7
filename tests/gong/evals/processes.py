"""Processes that tries start, looked for by their command lines."""

from __future__ import annotations

import time
from pathlib import Path


def find_processes(words: str) -> list[int]:
    """Return the processes whose command line is these words."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.replace(b"\0", b" ").strip() == words.encode():
                found.append(int(entry.name))
    return found


def wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
