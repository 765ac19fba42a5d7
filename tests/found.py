"""Cases that a search of the properties found: one file of JSON each, below `tests/found/`.

`make fuzz` writes them and `make test` plays them again, also once they pass. Each file says
which test it is of, the values it failed with, and the choices Hypothesis makes to draw them.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis.database import ExampleDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "found"
KEY_SIZE = 48
"""Longer keys stand for what Hypothesis notes on its way to the smallest case."""


def current_test() -> str:
    """Return the id of the test that runs, or "" where none does."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


class Cases(ExampleDatabase):
    """The cases of a folder, by the id of the test that runs: an edited test keeps its cases."""

    def __init__(self, folder: Path = FOLDER, *, adds: bool = False) -> None:
        super().__init__()
        self.folder, self.adds = folder, adds
        self.old = frozenset(folder.glob("*.json"))

    def fetch(self, key: bytes) -> Iterator[bytes]:
        """Yield the choices of each case of this test."""
        if len(key) == KEY_SIZE:
            for _, case in self.cases_of(current_test()):
                yield b64decode(case["choices"])

    def save(self, key: bytes, value: bytes) -> None:
        """Add a case, if this is a search."""
        path = self._path(value)
        if self.adds and len(key) == KEY_SIZE and current_test() and not path.exists():
            _write(path, {"test": current_test(), "choices": b64encode(value).decode()})

    def delete(self, key: bytes, value: bytes) -> None:
        """Drop a case that a smaller one replaces; those of earlier searches stay."""
        path = self._path(value)
        if self.adds and len(key) == KEY_SIZE and path not in self.old:
            path.unlink(missing_ok=True)

    def describe(self, test: str, notes: list[str]) -> None:
        """Write into the new cases of a test which values they stand for."""
        for path, case in self.cases_of(test):
            if path not in self.old:
                _write(path, {**case, "shown": "\n".join(notes).split("\n")})

    def cases_of(self, test: str) -> list[tuple[Path, dict]]:
        """Return the file and the content of each case of a test."""
        files = sorted(self.folder.glob("*.json"))
        found = ((path, json.loads(path.read_text("utf-8"))) for path in files)
        return [(path, case) for path, case in found if case["test"] == test]

    def _path(self, value: bytes) -> Path:
        test = current_test()
        words = test.partition("::")[2].partition("[")[0].replace("::", "-")
        digest = hashlib.sha256(test.encode() + b"\n" + value).hexdigest()[:12]
        return self.folder / f"{words}-{digest}.json"


def _write(path: Path, case: dict) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(case, indent=1) + "\n", "utf-8")
