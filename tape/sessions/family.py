"""Which tape may hold the history that a session of another agent begins with.

A fork, and with some agents every resumed session, is a file that repeats its parent's history.
The one that is imported first has the tape; the others are branches of it, with a label where they
end:

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
from ..ids import compute_tape_id
from ..model.entries import Start
from ..places.reference import build_session_label
from ..store.recorded_tape import TapeFolders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..formats.sessions.steps import SourceSession
    from ..store.store import Store


class Relative(NamedTuple):
    """A tape that may hold the beginning of a session."""

    folder: str
    is_named: bool
    """One of the two names the other; else their answers have to have the same ids."""
    is_home: bool = False
    """It has the label of the session: an import found that before."""


class _Mark(NamedTuple):
    """Something that a tape says of the sessions on it, by which others find it."""

    kind: str
    """`tape`: its id; `label` of a session on it; `parent` that it names; `created`: its time."""
    tool: str
    value: str


class ImportedTapes:
    """The tapes of a store that were made from sessions, each read once, by what they say."""

    def __init__(self, store: Store) -> None:
        self.folders = TapeFolders(store)
        self._store = store
        self._marks: dict[str, tuple[_Mark, ...]] = {}
        """Folder → its marks; none of a tape that was not made from a session."""
        self._marked: dict[_Mark, set[str]] = {}

    def forget(self, folder: str) -> None:
        """Read a tape again, because another session was added to it."""
        for mark in self._marks.pop(folder, ()):
            self._marked[mark].discard(folder)

    def find_relatives(self, session: SourceSession) -> list[Relative]:
        """Return the tapes that may hold the beginning of a session, the likeliest first."""
        self._read_new_tapes()
        tool = session.tool
        home = self._select([_Mark("label", tool, build_session_label(tool, session.id))])
        children = self._select([_Mark("parent", tool, session.id)])
        named = (self._find_parents(session) | children) - home
        others = self._find_twins(session)
        return [
            *(Relative(tape, is_named=True, is_home=True) for tape in sorted(home)),
            *(Relative(tape, is_named=True) for tape in sorted(named)),
            *(Relative(tape, is_named=False) for tape in sorted(others - home - named)),
        ]

    def find_doubles(self, session: SourceSession, own: str) -> list[Relative]:
        """Return the tapes whose history may stand a second time on the session's own tape.

        These are its parents, and of several that began at once those before it by name; `own` is
        the folder of its tape.
        """
        self._read_new_tapes()
        parents = self._find_parents(session) - {own}
        twins = {twin for twin in self._find_twins(session) - parents if twin < own}
        return [
            *(Relative(tape, is_named=True) for tape in sorted(parents)),
            *(Relative(tape, is_named=False) for tape in sorted(twins)),
        ]

    def _find_parents(self, session: SourceSession) -> set[str]:
        tool = session.tool
        return self._select(
            mark
            for ancestor in session.forked_from
            for mark in (
                _Mark("tape", tool, compute_tape_id(tool, ancestor)),
                _Mark("label", tool, build_session_label(tool, ancestor)),
            )
        )

    def _find_twins(self, session: SourceSession) -> set[str]:
        if session.created is None:
            return set()
        return self._select([_Mark("created", session.tool, format_timestamp(session.created))])

    def _select(self, marks: Iterable[_Mark]) -> set[str]:
        return {folder for mark in marks for folder in self._marked.get(mark, ())}

    def _read_new_tapes(self) -> None:
        self.folders.look()
        for gone in self._marks.keys() - self.folders.names:
            self.forget(gone)
        for folder in self.folders.names.difference(self._marks):
            self._marks[folder] = marks = tuple(self._read_marks(folder))
            for mark in marks:
                self._marked.setdefault(mark, set()).add(folder)

    def _read_marks(self, folder: str) -> list[_Mark]:
        with suppress(OSError, TapeError), self._store.open_folder(folder) as tape:
            if "(import from " not in tape.info.by:
                return []
            name = next(iter(tape.phases.names()))
            first = tape.phases.first(name, tape.blobs.text)
            start = first.data if first else None
            if isinstance(start, Start) and (imported := start.imported):
                tool = imported.tool
                return [
                    _Mark("tape", tool, tape.id),
                    _Mark("created", tool, tape.info.created),
                    *(_Mark("parent", tool, ancestor) for ancestor in imported.forked_from),
                    *(_Mark("label", tool, label) for label in tape.refs().labels),
                ]
        return []
