"""Publish: a barrier of a writer waits until the remote of its store has what was synced.

The publisher stands between a writer and the index. What a barrier synced becomes the next chunk of
the tape, as a push would make it; the push log and the cursor follow from time to time, and when
the writer ends, so that a barrier costs one request. The log says that such a tape is growing:
pulls look for its chunks under their numbers, and so does the next push here after a kill.

| the number of the chunk is taken by | then |
|---|---|
| a push of this store beside the writer | what it holds is here: the next number |
| another machine | Overtaken: the writer ends; the next push brings `main.<machine>` |

Where the remote does not answer, a barrier raises RemoteUnavailable. What was written is synced
here, and the next barrier publishes it as well.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..errors import Busy, Overtaken, RemoteUnavailable
from ..text import SHORT
from .cursor import Cursor, TapeCursor
from .missing import advance_cursor, create_blobs, is_own_chunk, plan_chunks
from .objects import decode_chunk, make_chunk_key
from .observer import WriteObserver
from .push import Pusher

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import Projection
    from .remote import Remote

_LOG_INTERVAL = 10.0
"""Seconds after which the push log names what was published since."""
_MAX_WAIT = 5.0
"""Seconds to wait for a push beside the writer that holds the cursor."""


class Publisher(WriteObserver):
    """A projection that publishes to the remote `name`, after `index` has what was synced."""

    def __init__(
        self,
        store: Store,
        name: str,
        connect: Callable[[], Remote],
        index: Projection | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store, index)
        self._name, self._connect, self._monotonic = name, connect, monotonic
        self._opened_remote: Remote | None = None
        self._published: dict[str, TapeCursor] = {}
        """What the remote has of the tapes that were published here."""
        self._unlogged: dict[str, TapeCursor] = {}
        self._growing: set[str] = set()
        """Tapes of which the log says that more is published."""
        self._redacted: set[str] = set()
        """Tapes with redacted data that has to be erased at the remote."""
        self._logged_at: float | None = None
        self._is_failing = False

    def follow_barrier(self, tape: Tape) -> None:
        """Publish what was synced; raise Overtaken or RemoteUnavailable."""
        self._publish(tape)

    def follow_end(self, tape: Tape) -> None:
        """Publish what is left, and name all of it in the push log."""
        if self._is_failing:  # the writer was told
            self._is_failing = False
        else:
            self._publish(tape)
            self._write_log()

    @property
    def _remote(self) -> Remote:
        if self._opened_remote is None:
            self._opened_remote = self._connect()
        return self._opened_remote

    def _publish(self, tape: Tape) -> None:
        self._is_failing = True
        if tape.id not in self._published:
            with Cursor.open(self._store.path, self._name, wait=_MAX_WAIT) as cursor:
                self._published[tape.id] = cursor.read_tape(tape.id)
        while not self._create_chunks(tape):
            pass  # a push beside the writer brought a part of it
        self._is_failing = False
        is_due = self._logged_at is None or self._monotonic() - self._logged_at >= _LOG_INTERVAL
        if tape.id in self._unlogged and (is_due or tape.id not in self._growing):
            self._write_log()

    def _create_chunks(self, tape: Tape) -> bool:
        """Create what the remote lacks of a tape; return whether that was all of it."""
        known, replica = self._published[tape.id], tape.replica()
        for plan in plan_chunks(tape, known, replica, "", raw=True, is_synced=True):
            if plan.redacts:
                self._redacted.add(tape.id)
            create_blobs(self._remote, tape, plan.blobs)
            if not self._remote.create(make_chunk_key(tape.id, plan.known.seq), plan.data):
                self._accept_chunk(tape, plan.known.seq)
                return False
            self._note_published(tape.id, plan.known)
        return True

    def _note_published(self, tape: str, known: TapeCursor) -> None:
        self._published[tape] = self._unlogged[tape] = known

    def _accept_chunk(self, tape: Tape, seq: int) -> None:
        """Take over a chunk that a push of this store created; raise Overtaken for another's."""
        key = make_chunk_key(tape.id, seq)
        chunk = decode_chunk(key, self._remote.read(key))
        if chunk is None or not is_own_chunk(tape, chunk, tape.replica()):
            who = (chunk and chunk.head.machine) or "another machine"
            raise Overtaken(
                f"{who} continued tape {tape.id[:SHORT]} at {self._name} meanwhile: what was "
                "written here stays here, and `tape push` brings it there as a branch of its own"
            )
        self._note_published(tape.id, advance_cursor(self._published[tape.id], chunk))

    def _write_log(self) -> None:
        """Name what was published in the push log, and save the cursor.

        Where a push beside this writer holds the cursor, or the remote is away, that is left to the
        next time, or to the next push.
        """
        ended = {tape: self._published[tape] for tape in self._growing - {*self._writing}}
        tapes = ended | self._unlogged
        if not tapes and not self._redacted:
            return
        try:
            with Cursor.open(self._store.path, self._name, wait=_MAX_WAIT) as cursor:
                for tape in self._redacted:
                    cursor.request_erasure(tape)
                Pusher(self._store, self._remote, cursor).record_published(tapes, self._writing)
        except (Busy, RemoteUnavailable):
            return
        self._growing = (self._growing | {*tapes}) & {*self._writing}
        self._unlogged, self._redacted = {}, set()
        self._logged_at = self._monotonic()
