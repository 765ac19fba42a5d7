"""Which files a model knows: read or written in this session, and not changed since.

    the file on disk            what a change of it gets
    --------------------------  ------------------------------------------
    is not there                nothing: there is nothing to lose
    was never read or written   a refusal that says to read it
    has the known bytes         nothing
    has other bytes             a refusal that says to read it again

Bytes are compared, whoever wrote them: a command of this session, an editor, a formatter.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import FileUpdate

READING_TOOLS = frozenset({"read", "read_file", "read_many_files"})
"""The tools that make a file known; without one of them nothing can be asked for."""


@dataclass(slots=True)
class KnownFiles:
    """The files that a session knows, by real path, as digests of their bytes."""

    _digests: dict[str, bytes] = field(default_factory=dict)

    def note(self, path: str, data: bytes | None) -> None:
        """Know a file as it is now; None where it is gone."""
        if data is None:
            self._digests.pop(path, None)
        else:
            self._digests[path] = _hash_bytes(data)

    def note_changes(self, changes: Sequence[FileUpdate]) -> None:
        """Know files as a tool has left them."""
        for change in changes:
            self.note(change.path, change.after)

    def describe_refusal(self, path: str, data: bytes | None, name: str) -> str | None:
        """Return why a file that holds `data` may not be changed; None if it may.

        `name` is what the model calls it.
        """
        if data is None:
            return None
        known = self._digests.get(path)
        if known is None:
            return f"{name} is there and has not been read in this session: read it first."
        if known != _hash_bytes(data):
            return f"{name} was changed since it was last read: read it again, then change it."
        return None


def _hash_bytes(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
