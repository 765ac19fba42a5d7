"""Which tape may hold the history that a session of another agent begins with.

A fork, and with some agents every resumed session, is a file that repeats its parent's history.
The one that is imported first has the tape; the others are labels on it, and branches where they
continued:

    parent   1─2─3─4        tape of the parent   1─2─3─4   main
    fork     1─2─5                                  └5     codex-3f2a9c1b-1, label codex-ID

Sessions are related that name each other, and those that began at the same microsecond and have
answers with the same ids of the provider.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..clock import format_timestamp
from ..errors import TapeError
from ..model.entries import Start
from ..reference import build_session_label, compute_tape_id

if TYPE_CHECKING:
    from ..formats.sessions.steps import SourceSession
    from ..store.store import Store


class Relative(NamedTuple):
    """A tape that may hold the beginning of a session."""

    folder: str
    is_named: bool
    """One of the two names the other; else their answers have to have the same ids."""
    is_home: bool = False
    """It has the label of the session: an import found that before."""


class _ImportedTape(NamedTuple):
    folder: str
    id: str
    tool: str
    created: str
    forked_from: frozenset[str]
    labels: frozenset[str]


class ImportedTapes:
    """The tapes of a store that were made from sessions, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, _ImportedTape | None] = {}

    def forget(self, folder: str) -> None:
        """Read a tape again, because another session was added to it."""
        self._read.pop(folder, None)

    def find_relatives(self, session: SourceSession) -> list[Relative]:
        """Return the tapes that may hold the beginning of a session, the likeliest first."""
        label = build_session_label(session.tool, session.id)
        parents = {compute_tape_id(session.tool, one) for one in session.forked_from}
        names = {build_session_label(session.tool, one) for one in session.forked_from}
        created = None if session.created is None else format_timestamp(session.created)
        home: list[Relative] = []
        named: list[Relative] = []
        others: list[Relative] = []
        for folder in self._store.folders():
            if folder not in self._read:
                self._read[folder] = self._read_tape(folder)
            tape = self._read[folder]
            if tape is None or tape.tool != session.tool:
                continue
            if label in tape.labels:
                home.append(Relative(folder, is_named=True, is_home=True))
            elif tape.id in parents or session.id in tape.forked_from or names & tape.labels:
                named.append(Relative(folder, is_named=True))
            elif tape.created == created:
                others.append(Relative(folder, is_named=False))
        return [*home, *named, *others]

    def _read_tape(self, folder: str) -> _ImportedTape | None:
        with suppress(OSError, TapeError), self._store.open_folder(folder) as tape:
            if "(import from " not in tape.info.by:
                return None
            name = next(iter(tape.phases.names()))
            first = tape.phases.first(name, tape.blobs.text)
            start = first.data if first else None
            if isinstance(start, Start) and (told := start.imported):
                named, labels = frozenset(told.forked_from), frozenset(tape.refs().labels)
                return _ImportedTape(folder, tape.id, told.tool, tape.info.created, named, labels)
        return None
