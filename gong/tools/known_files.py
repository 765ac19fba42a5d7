"""Which files a model knows: read or written in this session, and not changed since.

    the file on disk            what a change of it gets
    --------------------------  ------------------------------------------
    is not there                nothing: there is nothing to lose
    was never read or written   a refusal that says to read it
    has the known bytes         nothing
    has other bytes             a refusal that says to read it again

Bytes are compared, whoever wrote them: a command of this session, an editor, a formatter. Of what
was read before the session was continued the tape has the time: a file that is older is known.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from tape.clock import parse_timestamp
from tape.files.calls import parse_file_calls
from tape.model.entries import Assistant, ToolResult, ToolStart, select_tool_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tape.model.entries import ToolCall
    from tape.model.line import Entry

    from ..env.protocol import FileUpdate

READING_TOOLS = frozenset({"read", "read_file", "read_many_files"})
"""The tools that make a file known; without one of them nothing can be asked for."""


@dataclass(slots=True)
class KnownFiles:
    """The files that a session knows, by real path, as digests of their bytes."""

    _digests: dict[str, bytes] = field(default_factory=dict)
    find_shown: Callable[[], dict[str, int]] | None = None
    """Returns when calls before this session showed files: see `collect_shown_files`."""
    _shown: dict[str, int] | None = None

    def note(self, path: str, data: bytes | None) -> None:
        """Know a file as it is now; None where it is gone."""
        if data is None:
            self._digests.pop(path, None)
        else:
            self._digests[path] = hash_bytes(data)

    def note_digest(self, path: str, digest: bytes) -> None:
        """Know a file by the SHA-256 of its bytes."""
        self._digests[path] = digest

    def note_changes(self, changes: Sequence[FileUpdate]) -> None:
        """Know files as a tool has left them."""
        for change in changes:
            self.note(change.path, change.after)

    def describe_refusal(self, path: str, digest: bytes | None, name: str) -> str | None:
        """Return why a file may not be changed; None if it may.

        `digest` is the SHA-256 of its bytes, None where it is not there; `name` is what the model
        calls it.
        """
        if digest is None:
            return None
        changed = f"{name} was changed since it was last read: read it again, then change it."
        known = self._digests.get(path)
        if known is not None:
            return None if known == digest else changed
        if self._shown is None:
            self._shown = self.find_shown() if self.find_shown is not None else {}
        shown_at = self._shown.get(path)
        if shown_at is None:
            return f"{name} is there and has not been read in this session: read it first."
        return None if _find_change_time(path) <= shown_at else changed


def collect_shown_files(entries: Iterable[Entry], resolve: Callable[[str], str]) -> dict[str, int]:
    """Return when calls that succeeded read or changed files, by real path.

    `resolve` returns the absolute path that a model means. Times are microseconds since 1970.
    """
    calls: dict[str, ToolCall] = {}
    times: dict[str, int] = {}
    for entry in entries:
        if isinstance(entry.data, Assistant):
            calls |= {call.id: call for call in select_tool_calls(entry.data.content)}
        elif isinstance(entry.data, ToolStart) and entry.data.environment is not None:
            calls.pop(entry.data.call_id, None)  # files of another place
        elif isinstance(entry.data, ToolResult) and not entry.data.is_error:
            call = calls.get(entry.data.call_id)
            for file in parse_file_calls(call) if call is not None else ():
                times[os.path.realpath(resolve(file.path))] = parse_timestamp(entry.time)
    return times


def _find_change_time(path: str) -> float:
    """Return when a file was changed last, in microseconds; never, where that is not known here."""
    try:
        return os.stat(path).st_mtime_ns / 1000  # noqa: PTH116 (a text)
    except OSError:
        return inf


def hash_bytes(data: bytes) -> bytes:
    """Return the SHA-256 of a file's bytes; of large ones in a thread, please."""
    return hashlib.sha256(data).digest()
