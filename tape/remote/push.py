"""Push: what this store has of tapes comes to a remote.

What a remote does not have of a tape becomes its next chunk: new lines of its phases, then those of
its journal. Whoever creates that number first has it. Who comes second pulls, which unites both
(`pull`), and creates the next one. Order, so that a kill at any point loses nothing and the next
push continues: blobs, chunks, a line of the push log that names them, and last the cursor here.

| chunk n of the tape is there already, and | then |
|---|---|
| this copy of the store pushed it | a push was interrupted: what it holds is at the remote |
| another one did | pull it, and push what is missing then as chunk n + 1 |
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..clock import format_timestamp
from ..errors import Busy, Damaged, NotFound, RemoteUnavailable, TapeError, UsageError
from ..store.locks import is_lock_held, list_lock_names
from ..store.recorded_tape import TapeFolders
from ..store.store import read_tape_identity
from ..text import format_count
from .audit import decode_event, record_event
from .chunk_reader import read_chunk
from .cursor import TapeCursor
from .erasure import erase_redacted, remove_tape
from .held_branches import set_ends_aside
from .holds import Hold, read_holds, set_hold
from .leases import LeaseKeeper
from .missing import (
    SecretsFound,
    advance_cursor,
    align_journal,
    create_blobs,
    is_own_chunk,
    plan_chunks,
)
from .objects import (
    LOG_PREFIX,
    MAX_LOG_NUMBER,
    AuditEvent,
    ChunkHead,
    LogEntry,
    encode_log,
    make_chunk_key,
    make_log_key,
    parse_chunk_key,
    parse_log_key,
)
from .pull import pull_tape
from .registry import find_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ..store.store import Store
    from ..store.tape import Tape
    from ..unite.journal import KeptEnd
    from .cursor import Cursor
    from .missing import PlannedChunk, SecretEntry
    from .objects import AuditedAct, Chunk
    from .remote import Remote

_BATCH_TAPES, _BATCH_BYTES = 50, 16 << 20
"""How many small tapes are created at once."""
_BATCHES = 3
"""Batches that wait to be created, so that neither the remote nor what reads tapes waits."""
_LOG_TAPES = 200
"""How many tapes a line of the push log names."""
_MAX_TRIES = 100
"""How often a push may come second on one tape before it gives up."""


class PushOutcome(NamedTuple):
    """What became of one tape."""

    tape: str
    chunks: int = 0
    """Number of chunks that it has more at the remote."""
    bytes: int = 0
    """Their size, compressed."""
    kept: tuple[KeptEnd, ...] = ()
    """Branches that moved there too, and the branches of the ends here."""
    secrets: tuple[SecretEntry, ...] = ()
    """Why it was not pushed."""
    error: str | None = None
    holders: tuple[tuple[str, str], ...] = ()
    """Branches that somebody works on elsewhere, each with who that is."""


class _Aside(NamedTuple):
    """Ends that were moved aside, and who works on their branches."""

    ends: tuple[KeptEnd, ...] = ()
    holders: tuple[tuple[str, str], ...] = ()


_NONE_ASIDE = _Aside()


class _Creating(NamedTuple):
    """Chunks that are being created."""

    batch: Sequence[tuple[str, PlannedChunk]]
    created: Future[Sequence[bool]]


class Pusher:
    """Pushes tapes of a store to one remote; used by one thread, once."""

    def __init__(
        self,
        store: Store,
        remote: Remote,
        cursor: Cursor,
        *,
        person: str = "",
        raw: bool = False,
        stamps: Mapping[str, str | None] | None = None,
        folders: TapeFolders | None = None,
    ) -> None:
        self._store, self._remote, self._cursor = store, remote, cursor
        self._person, self._raw = person, raw
        self._stamps = stamps or {}
        """Stamps of the files of tapes (`index.reader`), read before the push."""
        self._replica = store.replica()
        self._folders = folders or TapeFolders(store)
        self._leases = LeaseKeeper(remote, self._replica, person)
        self._unlogged: dict[str, TapeCursor] = {}
        """Tapes with chunks that no line of the push log names yet."""

    def push(self, tapes: Iterable[str]) -> Iterator[PushOutcome]:
        """Push the tapes with these ids, and yield what was done.

        An error of one tape is part of its outcome; RemoteUnavailable ends the push, and the next
        one continues where it was.
        """
        self._complete_erasures()
        self._send_events()
        self._find_unlogged()
        gone = self._cursor.read_gone()
        with ThreadPoolExecutor(1) as thread:
            creating: deque[_Creating] = deque()
            batch: list[tuple[str, PlannedChunk]] = []
            size = 0
            for tape in tapes:
                begun = _say_gone(tape) if tape in gone else self._begin_tape(tape)
                if isinstance(begun, PushOutcome):
                    yield begun
                    continue
                batch.append((tape, begun))
                size += len(begun.data)
                if len(batch) >= _BATCH_TAPES or size >= _BATCH_BYTES:
                    if len(creating) >= _BATCHES:
                        yield from self._end_batch(creating.popleft())
                    creating.append(self._begin_batch(batch, thread))
                    batch, size = [], 0
            creating.append(self._begin_batch(batch, thread))
            while creating:
                yield from self._end_batch(creating.popleft())
        self._write_log()
        self._complete_erasures()

    def _begin_tape(self, tape: str) -> PushOutcome | PlannedChunk:
        """Push a tape, or return the one small chunk that a batch takes along."""
        try:
            first, second = islice(chain(self._plan_tape(tape), (None, None)), 2)
            if first is not None and first.known.seq > 1:  # others may work on it, too
                aside = self._follow_leases(tape)
                if aside.ends:
                    return self._push_tape(tape, aside)
        except RemoteUnavailable:
            raise
        except SecretsFound as error:
            return PushOutcome(tape, secrets=error.secrets)
        except (OSError, TapeError) as error:
            return PushOutcome(tape, error=str(error))
        if first is None:
            self._cursor.save_tape(tape, self._cursor.read_tape(tape), self._stamps.get(tape))
            return PushOutcome(tape)
        if second is None and not first.blobs:
            return first
        return self._push_tape(tape)

    def _find_unlogged(self) -> None:
        for tape in self._cursor.list_unlogged():
            self._unlogged[tape] = self._cursor.read_tape(tape)

    def record_published(
        self,
        tapes: Mapping[str, TapeCursor],
        growing: Mapping[str, bool],
        here: Mapping[str, TapeCursor],
    ) -> None:
        """Name tapes in the push log that a writer published, and erase what it redacted.

        `growing` says of which tapes writers publish more, and of which no more. Of some tapes less
        is `here` than at the remote: that is saved, so that the next pull brings the rest.
        """
        self._unlogged |= tapes
        self._write_log(growing, here)
        self._complete_erasures()
        self._send_events()

    def _complete_erasures(self) -> None:
        """Erase at the remote what was redacted here, as far as it has the entries that say so.

        Whoever pulls blanked data without such an entry takes it for damage. The words of the
        catalogue go as well, where it has one and that is allowed.
        """
        tapes = self._cursor.list_erasures()
        if tapes and (catalogue := find_catalogue(self._remote)) is not None:
            catalogue.update()
        for tape in tapes:
            is_all = True
            with suppress(NotFound):
                with self._open(tape) as ours:
                    ids = ours.phases.read_redacted_ids(self._find_known(tape).sizes)
                    is_all = ids == ours.phases.read_redacted_ids()
                note = self._describe_erasure()
                if ids:
                    self._record_event(
                        "redact", tape, {**note, "why": format_count(len(ids), "entry")}
                    )
                erase_redacted(self._remote, tape, ids, note)
            if is_all:
                self._cursor.end_erasure(tape)

    def _send_events(self) -> None:
        """Bring what was exported to the audit of the remote."""
        for number, text in self._cursor.list_events():
            event = decode_event(text)
            if event is not None:
                record_event(self._remote, event)
            self._cursor.end_event(number)

    def _record_event(self, did: AuditedAct, tape: str, note: dict[str, str]) -> None:
        record_event(self._remote, AuditEvent(did=did, tape=tape, **note))

    def _describe_erasure(self, why: str = "redacted") -> dict[str, str]:
        now = format_timestamp(self._remote.now())
        machine = "" if self._replica is None else self._replica.machine
        return {"time": now, "person": self._person, "machine": machine, "why": why}

    def hold(self, tape: str, why: str = "", *, held: bool = True) -> None:
        """Keep a tape from being taken from the remote, or no more."""
        note = self._describe_erasure(why)
        self._record_event("hold" if held else "release", tape, note)
        set_hold(self._remote, tape, msgspec.convert({**note, "held": held}, Hold))

    def unpush(self, tape: str, why: str = "") -> None:
        """Take a tape from the remote; the one here stays.

        Raises NotFound, and UsageError for one that is held, or was taken before.
        """
        if tape in self._cursor.read_gone():
            raise UsageError(f"tape {tape[:8]} was taken from {self._remote.url} already")
        if hold := read_holds(self._remote, tape).get(tape):
            raise UsageError(
                f"tape {tape[:8]} is held ({hold.why or 'without a reason'}): "
                f"`tape hold {tape[:8]} --release` ends that"
            )
        head = ChunkHead(
            seq=0,
            machine="" if self._replica is None else self._replica.machine,
            replica="" if self._replica is None else self._replica.id,
            person=self._person,
        )
        note = self._describe_erasure(why)
        self._record_event("unpush", tape, note)
        entry = remove_tape(self._remote, tape, head, note)
        self._unlogged[tape] = TapeCursor(entry.seq)
        self._write_log()
        self._cursor.save_gone(tape)

    def _begin_batch(
        self, batch: Sequence[tuple[str, PlannedChunk]], thread: ThreadPoolExecutor
    ) -> _Creating:
        """Begin to create a chunk of each tape, while the next tapes are read."""
        objects = [(make_chunk_key(tape, plan.known.seq), plan.data) for tape, plan in batch]
        return _Creating(batch, thread.submit(self._remote.create_many, objects))

    def _end_batch(self, creating: _Creating) -> Iterator[PushOutcome]:
        """Wait for the chunks of a batch; push those tapes singly that others pushed as well."""
        for (tape, plan), is_new in zip(creating.batch, creating.created.result(), strict=True):
            if is_new:
                self._note_pushed(tape, plan.known)
                yield PushOutcome(tape, 1, len(plan.data))
            else:
                yield self._push_tape(tape)

    def _follow_leases(self, tape: str) -> _Aside:
        """Hold the leases of what is written here; leave branches alone that others work on."""
        holders = self._leases.find_holders(tape)
        with self._open(tape) as ours:
            names = {*list_lock_names(ours.folder)} & {*ours.refs().branches}
            written = {name for name in names if is_lock_held(ours.folder, name)}
            for branch in written - {*holders}:
                self._leases.keep(tape, branch)
            self._leases.end(tape, but=written)
            if not holders:
                return _NONE_ASIDE
            ends = set_ends_aside(ours, self._find_known(tape), holders, self._replica)
        return _Aside(ends, tuple((end.branch, holders[end.branch].holder) for end in ends))

    def _push_tape(self, tape: str, aside: _Aside = _NONE_ASIDE) -> PushOutcome:
        """Push one tape, chunk by chunk, and unite it with what others pushed meanwhile."""
        chunks = size = 0
        ends, holders = aside
        try:
            for _ in range(_MAX_TRIES):
                for plan in self._plan_tape(tape):
                    if plan.blobs:
                        with self._open(tape) as ours:
                            create_blobs(self._remote, ours, plan.blobs)
                    key = make_chunk_key(tape, plan.known.seq)
                    if not self._remote.create(key, plan.data):
                        ends += self._accept_chunk(tape, plan.known.seq)
                        break
                    self._note_pushed(tape, plan.known)
                    chunks, size = chunks + 1, size + len(plan.data)
                else:
                    return PushOutcome(tape, chunks, size, ends, holders=holders)
        except SecretsFound as error:
            return PushOutcome(tape, chunks, size, ends, error.secrets, holders=holders)
        except (OSError, Busy, Damaged, NotFound) as error:
            return PushOutcome(tape, chunks, size, ends, error=str(error), holders=holders)
        why = "others push it all the time: try again"
        return PushOutcome(tape, chunks, size, ends, error=why, holders=holders)

    def _accept_chunk(self, tape: str, seq: int) -> tuple[KeptEnd, ...]:
        """Take over a chunk that is at the remote already; return what it moved as well."""
        key = make_chunk_key(tape, seq)
        chunk = read_chunk(self._remote, key)
        if chunk is not None and self._is_ours(tape, chunk):
            self._note_pushed(tape, advance_cursor(self._find_known(tape), chunk))
            return ()
        self._write_log()  # the cursor is what a pull begins with
        # All of them: a later one may say why the data of this one was erased.
        later = map(parse_chunk_key, (item.key for item in self._remote.list(key[:-8], key)))
        newest = max((place.seq for place in later if place), default=seq)
        outcome = pull_tape(self._store, self._remote, self._cursor, self._folders, tape, newest)
        if outcome.error is not None:
            raise Busy(outcome.error)
        return () if outcome.union is None else outcome.union.kept

    def _is_ours(self, tape: str, chunk: Chunk) -> bool:
        """Return whether all that a chunk holds is here, as an interrupted push left it."""
        with self._open(tape) as ours:
            return is_own_chunk(ours, chunk, self._replica)

    def _note_pushed(self, tape: str, known: TapeCursor) -> None:
        self._unlogged[tape] = known
        if len(self._unlogged) >= _LOG_TAPES:
            self._write_log()

    def _write_log(
        self,
        growing: Mapping[str, bool] = MappingProxyType({}),
        here: Mapping[str, TapeCursor] = MappingProxyType({}),
    ) -> None:
        """Write the line of the push log that names what was pushed, then save the cursor."""
        if not self._unlogged:
            return
        line = encode_log(
            [LogEntry(tape, known.seq, growing.get(tape)) for tape, known in self._unlogged.items()]
        )
        read, number = self._cursor.read_log_number("read"), self._cursor.read_log_number("end") + 1
        number = create_log_line(self._remote, number, line)
        with self._cursor.transaction():
            for tape, known in self._unlogged.items():
                self._cursor.save_tape(tape, here.get(tape, known), self._stamps.get(tape))
                self._cursor.end_unlogged(tape)
                if tape in here:
                    self._cursor.want(tape, known.seq)
            self._cursor.save_log_number("end", number)
            self._cursor.save_log_number("time", self._store.clock())
            if number == read + 1:  # nobody else pushed: the next pull need not read our own line
                self._cursor.save_log_number("read", number)
        self._unlogged.clear()

    def _find_known(self, tape: str) -> TapeCursor:
        return self._unlogged.get(tape) or self._cursor.read_tape(tape)

    def _open(self, tape: str) -> Tape:
        return self._folders.open(tape)

    def _plan_tape(self, tape: str) -> Iterator[PlannedChunk]:
        """Yield the chunks that the remote lacks of a tape; raise SecretsFound."""
        known = self._find_known(tape)
        with self._open(tape) as ours:
            align_journal(ours, known)
            for plan in plan_chunks(ours, known, self._replica, self._person, raw=self._raw):
                if plan.redacts:
                    self._cursor.request_erasure(tape)
                yield plan


def _say_gone(tape: str) -> PushOutcome:
    why = "it was taken from the remote: `tape fork --new` makes a tape to push"
    return PushOutcome(tape, error=why)


def create_log_line(remote: Remote, number: int, line: bytes) -> int:
    """Create the next line of the push log, which is likely to have a number; return its number.

    Raises Damaged where somebody used up the numbers.
    """
    while not remote.create(make_log_key(number), line):
        later = remote.list(LOG_PREFIX, make_log_key(number))
        number = max((parse_log_key(line.key) or 0 for line in later), default=number) + 1
        if number > MAX_LOG_NUMBER:
            key = make_log_key(MAX_LOG_NUMBER)
            raise Damaged(
                f"{remote.url}: {key} is no line of ours, and none can follow it", file=key
            )
    return number


def add_origins(store: Store, folders: TapeFolders, tapes: Iterable[str]) -> list[str]:
    """Return tapes, each after the one that it was forked from, which goes with it."""
    ordered: dict[str, None] = {}
    for tape in tapes:
        line = [tape]
        while (name := folders.find(line[-1])) is not None:
            origin = read_tape_identity(store.tapes / name).origin
            parent = origin.get("tape") if isinstance(origin, dict) else None
            if not isinstance(parent, str) or parent in line or folders.find(parent) is None:
                break
            line.append(parent)
        ordered |= dict.fromkeys(reversed(line))
    return [*ordered]
