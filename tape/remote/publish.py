"""Publish: a barrier of a writer waits until the remote of its store has what was synced.

The publisher stands between a writer and the index. What a barrier synced becomes the next chunk of
the tape, as a push would make it; the push log and the cursor follow from time to time, and when
the writer ends, so that a barrier costs one request. The log says that such a tape is growing:
pulls look for its chunks under their numbers, and so does the next push here after a kill. A writer
that continues after a barrier holds the lease of its branch, so that others leave that where it is.

| the number of the chunk is taken by | then |
|---|---|
| a push of this store beside the writer | what it holds is here: the next number |
| another machine that left our branches alone | the next number; a later pull brings its chunk |
| another machine that moved one of them | Overtaken: the next push brings `main.<machine>` |

Where the remote does not answer, a barrier raises RemoteUnavailable. What was written is synced
here, and the next barrier publishes it as well.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import Busy, NotFound, Overtaken, RemoteUnavailable
from ..model.line import read_id
from ..store.refs import JOURNAL_NAME, decode_ref_line, replay_journal
from ..text import SHORT
from .chunk_reader import read_chunk
from .cursor import Cursor, TapeCursor, is_at_remote
from .leases import LeaseKeeper, read_uptime
from .missing import advance_cursor, create_blobs, is_own_chunk, plan_chunks
from .objects import LogEntry, encode_log, make_chunk_key
from .observer import WriteObserver
from .push import Pusher, create_log_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import Projection, WritableTape
    from .objects import Chunk
    from .remote import Remote

_LOG_INTERVAL = 10.0
"""Seconds after which the push log names what was published since."""
_MAX_WAIT = 5.0
"""Seconds to wait for a push beside the writer that holds the cursor."""


class _PublishedTape:
    """What is known of a tape while its writers publish it."""

    def __init__(self, known: TapeCursor) -> None:
        self.known = known
        """What the remote has."""
        self.here: TapeCursor | None = None
        """What of that is here too, if others published as well."""
        self.branches: set[str] = set()
        """Branches that are written here."""
        self.is_growing = False
        """Whether a writer continues after a barrier."""
        self._lines: dict[str, bytes] = {}

    def skip_chunk(self, chunk: Chunk) -> None:
        """Take note of a chunk of another machine, which a later pull brings."""
        self.here = self.here or self.known
        self._lines |= _read_journal(chunk)
        self.known = advance_cursor(self.known, chunk)

    def find_moved(self, tape: Tape, chunk: Chunk) -> str | None:
        """Return a branch that is written here and that a chunk of another machine moves."""
        own = {
            parsed.h: line
            for line in tape.folder.read(JOURNAL_NAME).split(b"\n")[:-1]
            if (parsed := decode_ref_line(line)) is not None
        }
        lines = {**own, **self._lines, **_read_journal(chunk)}
        before, after = (
            {branch: _find_end(tape, known, lines, branch) for branch in self.branches}
            for known in (self.known, advance_cursor(self.known, chunk))
        )
        return next((name for name in sorted(self.branches) if before[name] != after[name]), None)


def _read_journal(chunk: Chunk) -> dict[str, bytes]:
    """Return the lines of the journal in a chunk by their hashes."""
    lines = (
        line
        for part, data in chunk.iter_parts()
        if part.file == JOURNAL_NAME
        for line in data.split(b"\n")[:-1]
    )
    return {parsed.h: line for line in lines if (parsed := decode_ref_line(line)) is not None}


def _find_end(tape: Tape, known: TapeCursor, lines: dict[str, bytes], branch: str) -> object:
    """Return where a branch is at the remote: the id of its entry, as far as it can be told.

    At the end of a phase that is written here it grows, which a pin would end.
    """
    journal = b"".join(lines[h] + b"\n" for h in known.journal if h in lines)
    moves = replay_journal(journal).branches.get(branch)
    if not moves:
        return None
    if moves[-1].pin is not None:
        return moves[-1].pin.entry
    phase, end = moves[-1].phase, known.sizes.get(moves[-1].phase, 0)
    replica = tape.replica()
    if replica is not None and tape.phases.read_replica(phase) == replica.id:
        return phase
    with suppress(NotFound), tape.phases.open(phase) as file:
        if 0 < end <= file.size():
            return next((read_id(line) for _, line in file.read_lines_back(end)), None)
    return phase, end


class Publisher(WriteObserver):
    """A projection that publishes to the remote `name`, after `index` has what was synced.

    `find_person` says who works here; `uptime` returns seconds.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        connect: Callable[[], Remote],
        index: Projection | None,
        find_person: Callable[[], str] = str,
        *,
        uptime: Callable[[], float] = read_uptime,
    ) -> None:
        super().__init__(store, index)
        self._name, self._connect, self._uptime = name, connect, uptime
        self._find_person = find_person
        self._tapes: dict[str, _PublishedTape] = {}
        """The tapes that were published here."""
        self._unlogged: set[str] = set()
        self._growing: set[str] = set()
        """Tapes of which the log says that more is published."""
        self._redacted: set[str] = set()
        """Tapes with redacted data that has to be erased at the remote."""
        self._logged_at: float | None = None
        self._is_failing = False

    @cached_property
    def _remote(self) -> Remote:
        return self._connect()

    @cached_property
    def _person(self) -> str:
        return self._find_person()

    @cached_property
    def _leases(self) -> LeaseKeeper:
        return LeaseKeeper(self._remote, self._store.replica(), self._person, self._uptime)

    def find_holder(self, tape: WritableTape, branch: str, /) -> str | None:
        """Return who holds the lease of a branch; None also where the remote does not answer."""
        if not is_at_remote(self._store.path, self._name, tape.id):
            return None
        with suppress(RemoteUnavailable):  # a barrier says so
            holder = self._leases.find_holders(tape.id).get(branch)
            return None if holder is None else holder.holder
        return None

    def follow_barrier(self, tape: Tape, branches: AbstractSet[str], *, is_last: bool) -> None:
        """Publish what was synced; raise Overtaken or RemoteUnavailable."""
        self._publish(tape, branches, continues=not is_last)

    def follow_end(self, tape: Tape, *, is_failed: bool = False) -> None:
        """Publish what is left, name all of it in the push log, and end the leases.

        Of what could not be synced nothing is published: this machine may lose it.
        """
        try:
            if not self._is_failing and not is_failed:  # else the writer was told
                self._publish(tape, frozenset(), continues=False)
                self._tapes[tape.id].is_growing = False
                with suppress(RemoteUnavailable):  # the log says what there is; leases grow old
                    self._write_log()
                    self._leases.end(tape.id)
        finally:
            self._is_failing = False
            self._tapes.pop(tape.id, None)  # a pull comes in between
            self._unlogged.discard(tape.id)
            self._growing.discard(tape.id)

    def _publish(self, tape: Tape, branches: AbstractSet[str], *, continues: bool) -> None:
        self._is_failing = True
        if tape.id not in self._tapes:
            with Cursor.open(self._store.path, self._name, wait=_MAX_WAIT) as cursor:
                self._tapes[tape.id] = _PublishedTape(cursor.read_tape(tape.id))
        published = self._tapes[tape.id]
        published.branches |= branches
        if continues:
            published.is_growing = True
            self._keep_leases(tape, branches)
        while not self._create_chunks(tape):
            pass  # somebody else pushed meanwhile
        is_due = self._logged_at is None or self._uptime() - self._logged_at >= _LOG_INTERVAL
        if tape.id in self._unlogged and (is_due or tape.id not in self._growing):
            self._write_log()
        self._is_failing = False

    def _keep_leases(self, tape: Tape, branches: AbstractSet[str]) -> None:
        for branch in branches:
            if (holder := self._leases.keep(tape.id, branch)) is not None:
                raise self._say_overtaken(tape, f"{holder.holder} works on {branch} of")

    def _say_overtaken(self, tape: Tape, what: str) -> Overtaken:
        return Overtaken(
            f"{what} tape {tape.id[:SHORT]} at {self._name} meanwhile: what was written here "
            "stays here, and `tape push` brings it there as a branch of its own"
        )

    def _create_chunks(self, tape: Tape) -> bool:
        """Create what the remote lacks of a tape; return whether that was all of it."""
        known, replica = self._tapes[tape.id].known, tape.replica()
        for plan in plan_chunks(tape, known, replica, self._person, raw=True, is_synced=True):
            if plan.redacts:
                self._redacted.add(tape.id)
            create_blobs(self._remote, tape, plan.blobs)
            if not self._remote.create(make_chunk_key(tape.id, plan.known.seq), plan.data):
                self._accept_chunk(tape, plan.known.seq)
                return False
            self._tapes[tape.id].known = plan.known
            self._unlogged.add(tape.id)
        return True

    def _accept_chunk(self, tape: Tape, seq: int) -> None:
        """Take over a chunk that is there; raise Overtaken where it moves what is written here."""
        key, published = make_chunk_key(tape.id, seq), self._tapes[tape.id]
        chunk = read_chunk(self._remote, key)
        if chunk is not None and is_own_chunk(tape, chunk, tape.replica()):
            published.known = advance_cursor(published.known, chunk)
            self._unlogged.add(tape.id)
        elif chunk is None or chunk.head.gone or published.find_moved(tape, chunk):
            who = (chunk and chunk.head.machine) or "another machine"
            raise self._say_overtaken(tape, f"{who} continued")
        else:
            published.skip_chunk(chunk)

    def _write_log(self) -> None:
        """Name what was published in the push log, and save the cursor.

        Where a push beside this writer holds the cursor, that is left to the next time.
        """
        growing = {tape for tape in self._tapes if self._tapes[tape].is_growing}
        tapes = self._unlogged | (self._growing - growing)
        if not tapes and not self._redacted:
            return
        known = {tape: self._tapes[tape].known for tape in tapes}
        grows = {tape: tape in growing for tape in tapes & (growing | self._growing)}
        try:
            with Cursor.open(self._store.path, self._name, wait=_MAX_WAIT) as cursor:
                for tape in self._redacted:
                    cursor.request_erasure(tape)
                here = {tape: at for tape in tapes if (at := self._tapes[tape].here) is not None}
                pusher = Pusher(self._store, self._remote, cursor, person=self._person)
                pusher.record_published(known, grows, here)
            self._redacted = set()
        except Busy:
            line = [LogEntry(tape, at.seq, grows.get(tape)) for tape, at in known.items()]
            create_log_line(self._remote, 1, encode_log(line))
        self._growing = (self._growing | tapes) & growing
        self._unlogged = set()
        self._logged_at = self._uptime()
