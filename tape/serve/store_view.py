"""One store as pages ask about it, from any thread.

Invariant: nothing is written but the index. A question is answered from the index as it is, by a
connection of its own; where that has to catch up first, one thread does it for all. Whose request
it is sees what they may see; what asks for nobody sees nothing where people are logged in.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, Unpack

from ..blame.history import blame_file
from ..errors import NotFound, UsageError
from ..index.full_text import build_search
from ..index.library import open_store, query_index, search_entries
from ..index.lookups import select_folders, select_writing_tapes
from ..index.reader import is_caught_up, query_index_file
from ..index.scope import TapeScope, hide_others
from ..index.search import find_matches, search_caught_up
from ..store.store import Store, require_single_hit
from .viewers import Viewer, current_viewer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from sqlite3 import Connection

    from ..blame.history import BlamedFile
    from ..index.full_text import SearchFilter
    from ..index.library import Library
    from ..index.reader import TapeRow
    from ..index.search import SearchMatch
    from ..store.tape import Tape

T = TypeVar("T")
_RUNNING_SECONDS = 2.0
_MAX_SCOPES = 1000
_MAX_SEARCH_CHARS = 1000
"""A search of thousands of words takes seconds."""
_MAX_SAID = 400
"""Most hits that are looked at for the sessions whose talk has some words."""


class StoreView:
    """A store and its index."""

    def __init__(
        self, home: str, record_view: Callable[[Viewer, Tape], None] | None = None
    ) -> None:
        """Where people are logged in, `record_view` gets who looks at what; it may raise."""
        self.home = home
        self._record_view = record_view
        self.store = Store(home)
        self._running: dict[TapeScope | None, tuple[float, tuple[TapeRow, ...]]] = {}
        """For each scope: when it was asked, in seconds, and what is running in it."""
        self._asking = Lock()
        self._library: Library | None = None
        self._thread = ThreadPoolExecutor(1, "index")

    def ask(self, question: Callable[[Connection], T]) -> T:
        """Return what the index answers; raise as `query_index` does. It may be asked twice."""
        scope = self.find_viewer().scope

        def ask_within(db: Connection) -> T:
            with hide_others(db, scope):
                return question(db)

        def ask_caught_up(db: Connection) -> tuple[T] | None:
            return (ask_within(db),) if is_caught_up(db, self.home) else None

        answered = query_index_file(self.home, ask_caught_up)
        if answered is not None:
            return answered[0]
        return self._run(lambda library: query_index(*library, ask_within))

    def find_viewer(self) -> Viewer:
        """Return whose request is answered."""
        nobody = Viewer("", None if self._record_view is None else TapeScope())
        return current_viewer.get(nobody)

    def search(self, words: str, limit: int, **narrow: Unpack[SearchFilter]) -> list[SearchMatch]:
        """Return the best matches; raise as `search_entries` does, also for very many words."""
        if len(words) > _MAX_SEARCH_CHARS:
            raise UsageError(f"a search has at most {_MAX_SEARCH_CHARS:,} characters")
        if self.find_viewer().scope is not None:
            expression, where = build_search(words, **narrow)
            return self.ask(lambda db: find_matches(db, self.home, expression, where, limit))
        matches = search_caught_up(self.home, words, limit, **narrow)
        if matches is None:
            matches = self._run(
                lambda library: search_entries(*library, words, limit=limit, **narrow)
            )
        return matches

    def find_said(self, words: str) -> set[str]:
        """Return the tapes with a message that has all words; the last may be a beginning."""
        for query in (f"{words}*", words):
            with suppress(UsageError):  # such as an open quotation mark: the other may do
                types = ("user", "assistant")
                return {hit.tape for hit in self.search(query, _MAX_SAID, types=types)}
        return set()

    def find_folder(self, prefix: str) -> str:
        """Return the folder of the tape whose id begins so; raise NotFound or Ambiguous."""
        if not re.fullmatch("[0-9a-f]{4,32}", prefix):
            raise NotFound("that is no id of a tape")
        folders = self.ask(lambda db: select_folders(db, prefix))
        return require_single_hit(prefix, "tape", folders)

    def open_tape(self, prefix: str) -> Tape:
        """Open the tape whose id begins so, for whoever asks to look at it.

        Raises NotFound, Ambiguous or Damaged, and where the look cannot be recorded WriteFailed.
        """
        tape = self.store.open_folder(self.find_folder(prefix))
        if self._record_view is not None:
            try:
                self._record_view(self.find_viewer(), tape)
            except BaseException:
                tape.close()
                raise
        return tape

    def blame_file(self, file: Path) -> BlamedFile:
        """Return the origin of each line of a file; raises as `blame_file` of `tape.blame`.

        Its lines come from sessions of anybody, so it is NotFound for who may not see all.
        """
        if self.find_viewer().scope is not None:
            raise NotFound("files are for those who may see all sessions")
        return self._run(lambda library: blame_file(*library, file))

    def find_running(self) -> tuple[TapeRow, ...]:
        """Return the tapes that a program writes now, the newest first, as of the last two seconds.

        A program is writing from the moment it opens a branch until it closes it or dies.
        """
        scope = self.find_viewer().scope
        with self._asking:
            start, rows = self._running.pop(scope, (-_RUNNING_SECONDS, ()))
            if time.monotonic() - start >= _RUNNING_SECONDS:
                rows = tuple(self.ask(select_writing_tapes))
                start = time.monotonic()
            self._running[scope] = start, rows
            if len(self._running) > _MAX_SCOPES:
                del self._running[next(iter(self._running))]
            return rows

    def close(self) -> None:
        """Close the index, after what is being asked."""
        if self._library is not None:
            self._thread.submit(self._library.close).result()
        self._thread.shutdown()

    def _run(self, work: Callable[[Library], T]) -> T:
        """Do work in the one thread that may catch up."""

        def run() -> T:
            if self._library is None:
                self._library = open_store(self.home)
            return work(self._library)

        return self._thread.submit(run).result()
