"""What stands between the writers of a store and its index: told of each change after the index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from ..store.refs import Changes
    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import Projection, WritableTape


class WriteObserver(ABC):
    """A projection that passes everything to `index`, and knows which tapes are being written."""

    def __init__(self, store: Store, index: Projection | None) -> None:
        self._store, self._index = store, index
        self._writing: dict[str, int] = {}
        """How many writers and changes of a tape are open."""

    @abstractmethod
    def find_holder(self, tape: WritableTape, branch: str, /) -> str | None:
        """Return who works on a branch of the tape elsewhere; None if nobody is known to."""

    @abstractmethod
    def follow_barrier(self, tape: Tape, branches: AbstractSet[str], *, is_last: bool) -> None:
        """Do what follows when a writer synced entries of branches of a tape.

        `is_last` says that it then ends.
        """

    @abstractmethod
    def follow_end(self, tape: Tape, *, is_failed: bool = False) -> None:
        """Do what follows when the last writer, or change, of a tape ended.

        `is_failed` says that it could not sync what it wrote.
        """

    def on_folder_change(
        self, tapes: int, tape: str = "", folder: str = "", *, comes: bool = False
    ) -> AbstractContextManager[None]:
        """Let the index observe it: what comes and goes here does neither elsewhere."""
        if self._index is None:
            return nullcontext()
        return self._index.on_folder_change(tapes, tape, folder, comes=comes)

    def on_begin(self, tape: str) -> None:
        """Record that a change of this tape began."""
        self._writing[tape] = self._writing.get(tape, 0) + 1
        if self._index is not None:
            self._index.on_begin(tape)

    def on_barrier(self, tape: WritableTape, changes: Changes) -> None:
        """Follow a barrier; what that raises ends it."""
        branches = frozenset(changes.branches)  # the index removes what it has processed
        if self._index is not None:
            self._index.on_barrier(tape, changes)
        self.follow_barrier(cast("Tape", tape), branches, is_last=changes.ends)

    def on_move(self, tape: str, changes: Changes) -> None:
        """Follow a move of a branch, label or title, unless the end of a writer is to follow."""
        if self._index is not None:
            self._index.on_move(tape, changes)
        if self._end_change(tape):
            with self._store.open(tape) as opened:
                self.follow_end(opened)

    def on_end(self, tape: WritableTape, changes: Changes | None) -> None:
        """Follow the end of a writer."""
        if self._index is not None:
            self._index.on_end(tape, changes)
        if self._end_change(tape.id):
            is_failed = changes is not None and changes.fails
            self.follow_end(cast("Tape", tape), is_failed=is_failed)

    def on_redact(self, tape: str, *, scrubs: bool) -> None:
        """Let the index delete what was redacted."""
        if self._index is not None:
            self._index.on_redact(tape, scrubs=scrubs)

    def _end_change(self, tape: str) -> bool:
        """Record the end of a change; return whether it was the last one that is open."""
        left = self._writing.get(tape, 1) - 1
        if left > 0:
            self._writing[tape] = left
        else:
            self._writing.pop(tape, None)
        return left <= 0
