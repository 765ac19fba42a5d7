"""Push: what this store has of tapes comes to a remote.

What a remote does not have of a tape becomes its next chunk: new lines of its phases, then those of
its journal. Whoever creates that number first has it. Who comes second pulls, which unites both
(`pull`), and creates the next one. Order, so that a kill at any point loses nothing and the next
push continues: blobs, chunks, a line of the push log that names them, and last the cursor here.

| chunk n of the tape is there already, and | then |
|---|---|
| this copy of the store pushed it | a push was interrupted: what it holds is at the remote |
| another one did | pull it, and push what is missing then as chunk n + 1 |

Only what is synced is pushed: a remote never has a line that this machine could still lose.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..archive.contents import mask_blob
from ..clock import format_timestamp
from ..errors import Busy, Damaged, NotFound, TapeError, UsageError
from ..masking.secrets import MaskedJson, mask_json
from ..model.entries import Redact
from ..model.line import read_id, read_type
from ..model.summary import ANCHOR_PAGE
from ..store.blobs import find_blob_hashes
from ..store.phase import ORIGIN
from ..store.recorded_tape import TapeFolders
from ..store.refs import JOURNAL_NAME, decode_ref_line, replay_journal
from ..store.store import read_tape_identity
from ..store.tape import INFO_NAME
from .cursor import TapeCursor
from .erasure import erase_redacted, remove_tape
from .objects import (
    LOG_PREFIX,
    ChunkHead,
    LogEntry,
    Part,
    decode_chunk,
    encode_chunk,
    encode_log,
    make_blob_key,
    make_chunk_key,
    make_entries_path,
    make_log_key,
    parse_log_key,
)
from .pull import pull_tape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..store.refs import Refs
    from ..store.replica import Replica
    from ..store.store import Store
    from ..store.tape import Tape
    from ..unite.journal import KeptEnd
    from .cursor import Cursor
    from .objects import Chunk
    from .remote import Remote

_CHUNK_BYTES = 8 << 20
"""Bytes of lines after which a chunk is full: a large tape takes several."""
_BATCH_TAPES, _BATCH_BYTES = 50, 16 << 20
"""How many small tapes are created at once."""
_LOG_TAPES = 200
"""How many tapes a line of the push log names."""
_MARK = re.compile(rb"\[redacted:([a-z0-9_-]+)\]")
_MAX_TRIES = 100
"""How often a push may come second on one tape before it gives up."""


class SecretEntry(NamedTuple):
    """An entry that holds what looks like a secret."""

    entry: str
    kind: str


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


class _Planned(NamedTuple):
    """A chunk to create."""

    data: bytes
    blobs: tuple[str, ...]
    """Hashes of the blobs that it names."""
    known: TapeCursor
    """What the remote has with it."""


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
    ) -> None:
        self._store, self._remote, self._cursor = store, remote, cursor
        self._person, self._raw = person, raw
        self._stamps = stamps or {}
        """Stamps of the files of tapes (`index.reader`), read before the push."""
        self._replica = store.replica()
        self._folders = TapeFolders(store)
        self._unlogged: dict[str, TapeCursor] = {}
        """Tapes with chunks that no line of the push log names yet."""

    def push(self, tapes: Iterable[str]) -> Iterator[PushOutcome]:
        """Push the tapes with these ids, and yield what was done.

        An error of one tape is part of its outcome; RemoteUnavailable ends the push, and the next
        one continues where it was.
        """
        self._complete_erasures()
        gone = self._cursor.read_gone()
        batch: list[tuple[str, _Planned]] = []
        size = 0
        for tape in tapes:
            if tape in gone:
                why = "it was taken from the remote: `tape fork --new` makes a tape to push"
                yield PushOutcome(tape, error=why)
                continue
            try:
                plans = self._plan_tape(tape)
                first, second = next(plans, None), next(plans, None)
            except _SecretsFound as error:
                yield PushOutcome(tape, secrets=error.secrets)
                continue
            except (OSError, TapeError) as error:
                yield PushOutcome(tape, error=str(error))
                continue
            if first is None:
                self._cursor.save_tape(tape, self._cursor.read_tape(tape), self._stamps.get(tape))
                yield PushOutcome(tape)
            elif second is None and not first.blobs:
                batch.append((tape, first))
                size += len(first.data)
                if len(batch) >= _BATCH_TAPES or size >= _BATCH_BYTES:
                    yield from self._create_batch(batch)
                    batch, size = [], 0
            else:
                yield self._push_tape(tape)
        yield from self._create_batch(batch)
        self._write_log()
        self._complete_erasures()

    def _complete_erasures(self) -> None:
        """Erase at the remote what was redacted here, now that it has the entries that say so."""
        for tape in self._cursor.list_erasures():
            with suppress(NotFound):
                with self._open(tape) as ours:
                    ids = ours.phases.read_redacted_ids()
                erase_redacted(self._remote, tape, ids, self._describe_erasure())
            self._cursor.end_erasure(tape)

    def _describe_erasure(self, why: str = "redacted") -> dict[str, str]:
        now = format_timestamp(self._remote.now())
        machine = "" if self._replica is None else self._replica.machine
        return {"time": now, "person": self._person, "machine": machine, "why": why}

    def unpush(self, tape: str, why: str = "") -> None:
        """Take a tape from the remote; the one here stays. Raises NotFound, UsageError."""
        if tape in self._cursor.read_gone():
            raise UsageError(f"tape {tape[:8]} was taken from {self._remote.url} already")
        head = ChunkHead(
            seq=0,
            machine="" if self._replica is None else self._replica.machine,
            replica="" if self._replica is None else self._replica.id,
            person=self._person,
        )
        entry = remove_tape(self._remote, tape, head, self._describe_erasure(why))
        self._unlogged[tape] = TapeCursor(entry.seq)
        self._write_log()
        self._cursor.save_gone(tape)

    def _create_batch(self, batch: Sequence[tuple[str, _Planned]]) -> Iterator[PushOutcome]:
        """Create a chunk of each tape at once; push those singly that others pushed as well."""
        objects = [(make_chunk_key(tape, plan.known.seq), plan.data) for tape, plan in batch]
        created = self._remote.create_many(objects)
        for (tape, plan), is_new in zip(batch, created, strict=True):
            if is_new:
                self._note_pushed(tape, plan.known)
                yield PushOutcome(tape, 1, len(plan.data))
            else:
                yield self._push_tape(tape)

    def _push_tape(self, tape: str) -> PushOutcome:
        """Push one tape, chunk by chunk, and unite it with what others pushed meanwhile."""
        chunks = size = 0
        kept: tuple[KeptEnd, ...] = ()
        try:
            for _ in range(_MAX_TRIES):
                for plan in self._plan_tape(tape):
                    self._create_blobs(tape, plan.blobs)
                    key = make_chunk_key(tape, plan.known.seq)
                    if not self._remote.create(key, plan.data):
                        kept += self._accept_chunk(tape, plan.known.seq)
                        break
                    self._note_pushed(tape, plan.known)
                    chunks, size = chunks + 1, size + len(plan.data)
                else:
                    return PushOutcome(tape, chunks, size, kept)
        except _SecretsFound as error:
            return PushOutcome(tape, chunks, size, kept, error.secrets)
        except (OSError, Busy, Damaged, NotFound) as error:
            return PushOutcome(tape, chunks, size, kept, error=str(error))
        why = "others push it all the time: try again"
        return PushOutcome(tape, chunks, size, kept, error=why)

    def _accept_chunk(self, tape: str, seq: int) -> tuple[KeptEnd, ...]:
        """Take over a chunk that is at the remote already; return what it moved as well."""
        key = make_chunk_key(tape, seq)
        chunk = decode_chunk(key, self._remote.read(key))
        if chunk is not None and self._is_ours(tape, chunk):
            self._note_pushed(tape, _advance_cursor(self._find_known(tape), chunk))
            return ()
        self._write_log()  # the cursor is what a pull begins with
        outcome = pull_tape(self._store, self._remote, self._cursor, self._folders, tape, seq)
        if outcome.error is not None:
            raise Busy(outcome.error)
        return () if outcome.union is None else outcome.union.kept

    def _is_ours(self, tape: str, chunk: Chunk) -> bool:
        """Return whether all that a chunk holds is here, as an interrupted push left it."""
        if self._replica is None or chunk.head.replica != self._replica.id:
            return False
        with self._open(tape) as ours:
            own = ours.folder.read(JOURNAL_NAME)
            for part, data in chunk.iter_parts():
                if part.file == JOURNAL_NAME and not all(
                    line in own for line in data.splitlines(keepends=True)
                ):
                    return False
                if part.file.endswith(".jsonl") and part.file != JOURNAL_NAME:
                    try:
                        with ours.phases.open(part.file.split("/")[1]) as file:
                            if file.read(part.offset, part.offset + part.length) != data:
                                return False
                    except NotFound:
                        return False
        return True

    def _create_blobs(self, tape: str, digests: Sequence[str]) -> None:
        with self._open(tape) as ours:
            for digest in digests:
                try:
                    data = ours.blobs.read(digest)
                except NotFound:  # missing here, and shown as such everywhere
                    continue
                self._remote.create(make_blob_key(digest), data)

    def _note_pushed(self, tape: str, known: TapeCursor) -> None:
        self._unlogged[tape] = known
        if len(self._unlogged) >= _LOG_TAPES:
            self._write_log()

    def _write_log(self) -> None:
        """Write the line of the push log that names what was pushed, then save the cursor."""
        if not self._unlogged:
            return
        line = encode_log([LogEntry(tape, known.seq) for tape, known in self._unlogged.items()])
        read, number = self._cursor.read_log_number("read"), self._cursor.read_log_number("end") + 1
        while not self._remote.create(make_log_key(number), line):
            later = self._remote.list(LOG_PREFIX, make_log_key(number))
            number = max((parse_log_key(line.key) or 0 for line in later), default=number) + 1
        with self._cursor.transaction():
            for tape, known in self._unlogged.items():
                self._cursor.save_tape(tape, known, self._stamps.get(tape))
            self._cursor.save_log_number("end", number)
            if number == read + 1:  # nobody else pushed: the next pull need not read our own line
                self._cursor.save_log_number("read", number)
        self._unlogged.clear()

    def _find_known(self, tape: str) -> TapeCursor:
        return self._unlogged.get(tape) or self._cursor.read_tape(tape)

    def _open(self, tape: str) -> Tape:
        name = self._folders.find(tape)
        if name is None:
            raise NotFound(f"tape {tape[:8]} is not here any more")
        return self._store.open_folder(name)

    def _plan_tape(self, tape: str) -> Iterator[_Planned]:
        """Yield the chunks that the remote lacks of a tape; raise _SecretsFound."""
        known = self._find_known(tape)
        with self._open(tape) as ours:
            _align_journal(ours, known)
            yield from self._plan_chunks(ours, known)

    def _plan_chunks(self, tape: Tape, known: TapeCursor) -> Iterator[_Planned]:
        builder = _ChunkBuilder(tape, known, self._replica, self._person)
        refs = tape.refs()
        lines = _find_missing_lines(tape, refs, known)
        phases = refs.phases()
        for phase in tape.phases.list_with_origin():
            if phase in phases or phase == ORIGIN:
                for offset, run in _read_missing_runs(tape, phase, known.sizes.get(phase)):
                    if not self._raw:
                        _refuse_secrets(tape, run)
                    if _has_redaction(run):
                        self._cursor.request_erasure(tape.id)
                    builder.add(phase, offset, run)
                    if builder.size >= _CHUNK_BYTES:
                        yield builder.build()
        if lines:
            tape.journal.sync_journal()
            builder.add_journal(lines)
        if builder.parts:
            yield builder.build()


def select_changed(stamps: Mapping[str, str | None], cursor: Cursor) -> list[str]:
    """Return the tapes that changed since all of them was pushed.

    `stamps` are those of all tapes as the index has them; None for one that it does not know.
    """
    pushed, gone = cursor.read_stamps(), cursor.read_gone()
    return [
        tape
        for tape, text in stamps.items()
        if tape not in gone and (text is None or pushed.get(tape) != text)
    ]


def add_origins(store: Store, tapes: Iterable[str]) -> list[str]:
    """Return tapes, each after the one that it was forked from, which goes with it."""
    folders, ordered = TapeFolders(store), dict[str, None]()
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


class _SecretsFound(TapeError):
    def __init__(self, secrets: tuple[SecretEntry, ...]) -> None:
        super().__init__("secrets were found")
        self.secrets = secrets


class _ChunkBuilder:
    """The chunk that is being filled."""

    def __init__(self, tape: Tape, known: TapeCursor, replica: Replica | None, person: str) -> None:
        self._tape, self._known = tape, known
        self._replica, self._person = replica, person
        self.parts: list[tuple[Part, bytes]] = []
        self._blobs: dict[str, None] = {}
        self._sizes, self._journal = dict(known.sizes), [*known.journal]
        self.size = 0

    def add(self, phase: str, offset: int, run: bytes) -> None:
        """Add whole lines of a phase."""
        if offset == 0 and self._tape.phases.folder.has(phase):
            with self._tape.phases.folder.sub(phase) as folder:
                if folder.has(ANCHOR_PAGE):
                    page = folder.read(ANCHOR_PAGE)
                    self._add_part(f"phases/{phase}/{ANCHOR_PAGE}", 0, page)
        self._blobs |= dict.fromkeys(digest.decode() for digest in find_blob_hashes(run))
        self._add_part(make_entries_path(phase), offset, run)
        self._sizes[phase] = offset + len(run)

    def add_journal(self, lines: Sequence[tuple[str, bytes]]) -> None:
        """Add lines of the journal."""
        self._add_part(JOURNAL_NAME, 0, b"".join(line + b"\n" for _, line in lines))
        self._journal += [h for h, _ in lines]

    def _add_part(self, path: str, offset: int, data: bytes) -> None:
        self.parts.append((Part(path, offset, len(data)), data))
        self.size += len(data)

    def build(self) -> _Planned:
        """Return the chunk, and begin the next one."""
        if self._known.seq == 0:
            info = self._tape.folder.read(INFO_NAME)
            self.parts.insert(0, (Part(INFO_NAME, 0, len(info)), info))
        seq = self._known.seq + 1
        head = ChunkHead(
            seq=seq,
            machine="" if self._replica is None else self._replica.machine,
            replica="" if self._replica is None else self._replica.id,
            person=self._person,
            folder=self._tape.folder.name,
            parts=tuple(part for part, _ in self.parts),
        )
        self._known = TapeCursor(seq, dict(self._sizes), tuple(self._journal))
        data = encode_chunk(head, [run for _, run in self.parts])
        plan = _Planned(data, tuple(self._blobs), self._known)
        self.parts, self._blobs, self.size = [], {}, 0
        return plan


def _find_missing_lines(tape: Tape, refs: Refs, known: TapeCursor) -> list[tuple[str, bytes]]:
    """Return hash and text of the lines of the journal that the remote does not have."""
    if refs.damage:
        raise refs.damage[0]
    there = {*known.journal}
    text = tape.folder.read(JOURNAL_NAME)[: refs.size]
    lines = ((decode_ref_line(line), line) for line in text.split(b"\n")[:-1])
    return [(parsed.h, line) for parsed, line in lines if parsed and parsed.h not in there]


def _read_missing_runs(tape: Tape, phase: str, known: int | None) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of the whole, synced lines of a phase that the remote lacks."""
    with tape.phases.open(phase) as file:
        if file.size() == known:
            return
        end = file.tail().end
        if end > (known or 0):
            tape.phases.sync(phase)
            yield from file.read_runs(known or 0, end)


def _has_redaction(run: bytes) -> bool:
    """Return whether one of the lines redacts others."""
    return b'"type":"redact"' in run and any(
        read_type(line) == Redact.entry_type for line in run.splitlines()
    )


def _refuse_secrets(tape: Tape, run: bytes) -> None:
    """Raise _SecretsFound for lines that hold what an export would mask, in their blobs too."""
    secrets: list[SecretEntry] = []
    for line in run.splitlines():
        kinds = _find_masked_kinds(line, mask_json(line))
        for digest in find_blob_hashes(line):
            with suppress(NotFound):
                data = tape.blobs.read(digest.decode())
                kinds |= _find_masked_kinds(data, MaskedJson(*mask_blob(data)))
        secrets += [SecretEntry(read_id(line), kind) for kind in sorted(kinds)]
    if secrets:
        raise _SecretsFound(tuple(secrets))


def _find_masked_kinds(data: bytes, masked: MaskedJson) -> set[str]:
    """Return the kinds of the secrets that masking replaced in data."""
    if not masked.secrets:
        return set()
    kinds = {*_MARK.findall(masked.data)} - {*_MARK.findall(data)}
    return {kind.decode() for kind in kinds} or {"secret"}


def _align_journal(tape: Tape, known: TapeCursor) -> None:
    """Make the journal say the same in the order of the remote as in that of the file here.

    A line that was written here before a pull comes after the pulled ones at the remote, and the
    newest line of a name counts: where that differs, what counts here is said once more.
    """
    if not known.journal or not _find_differences(tape, known):
        return
    with tape.notify_projection(), tape.journal.open_moves() as moves:
        moves.adopt((), _find_differences(tape, known))


def _find_differences(tape: Tape, known: TapeCursor) -> list[dict[str, Any]]:
    refs = tape.refs()
    if refs.damage:
        raise refs.damage[0]
    text = tape.folder.read(JOURNAL_NAME)[: refs.size]
    lines = {
        parsed.h: line
        for line in text.split(b"\n")[:-1]
        if (parsed := decode_ref_line(line)) is not None
    }
    order = [h for h in known.journal if h in lines]
    order += [h for h in lines if h not in {*known.journal}]
    there = replay_journal(b"".join(lines[h] + b"\n" for h in order))
    if order == [*lines]:
        return []
    differences: list[dict[str, Any]] = []
    for name, moves in refs.branches.items():
        move = moves[-1]
        other = there.branches[name][-1]
        if (move.phase, move.pin) != (other.phase, other.pin):
            differences.append(
                {"branch": name, "phase": move.phase, "pin": move.pin, "why": "unite"}
            )
    differences += [
        {"label": name, "entry": refs.labels.get(name), "why": "unite"}
        for name in sorted({*refs.labels, *there.labels})
        if refs.labels.get(name) != there.labels.get(name)
    ]
    if refs.title != there.title:
        differences.append({"title": refs.title, "why": "unite"})
    if refs.current != there.current:
        differences.append({"current": refs.current, "why": "unite"})
    return differences


def _advance_cursor(known: TapeCursor, chunk: Chunk) -> TapeCursor:
    """Return what a remote has, with a chunk that an interrupted push created."""
    sizes, journal = dict(known.sizes), [*known.journal]
    for part, data in chunk.iter_parts():
        if part.file == JOURNAL_NAME:
            parsed = map(decode_ref_line, data.split(b"\n")[:-1])
            journal += [line.h for line in parsed if line and line.h not in journal]
        elif part.file.endswith(".jsonl"):
            sizes[part.file.split("/")[1]] = part.offset + part.length
    return TapeCursor(chunk.head.seq, sizes, tuple(journal))
