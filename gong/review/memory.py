"""What reviews have found before, by the content that was reviewed: one file of JSON."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ..private_files import locate_state_folder, write_private_file
from .findings import ReviewFinding

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MAX_KEPT = 10_000
"""Contents; older ones are forgotten."""

Findings = tuple[ReviewFinding, ...]


class ReviewMemory:
    """Findings of a repository by the content that they are about."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._known = msgspec.json.decode(file.read_bytes(), type=dict[str, Findings])
        except (OSError, msgspec.MsgspecError):
            self._known = {}

    def get(self, key: str) -> Findings | None:
        """Return what was found before; None where the content is new."""
        return self._known.get(key)

    def keep(self, findings: Mapping[str, Findings]) -> None:
        """Keep findings by their keys; secrets in them are masked before.

        What cannot be written is known for this run alone.
        """
        if not findings:
            return
        newest = [*{**self._known, **findings}.items()][-_MAX_KEPT:]
        self._known = dict(newest)
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private_file(self._file, msgspec.json.encode(self._known))


def open_memory(root: str, environ: Mapping[str, str]) -> ReviewMemory:
    """Return what is known of the repository at a folder."""
    known = hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return ReviewMemory(locate_state_folder(environ) / "reviews" / f"{known}.json")


def build_key(*parts: str) -> str:
    """Return what findings are kept under: who was asked, how, and about what."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
