"""What a remote lacks of a tape, as chunks to create; reads the files of the tape here.

New lines of its phases come before those of its journal, so a chunk that is there is whole. Only
what is synced becomes part of one: a remote never has a line that this machine could still lose.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..archive.contents import mask_blob
from ..errors import Damaged, NotFound, TapeError
from ..masking.secrets import MaskedJson, mask_json
from ..model.entries import Anchor, Redact
from ..model.line import read_id, read_type
from ..model.summary import ANCHOR_PAGE
from ..store.blobs import find_blob_hashes
from ..store.phase import ORIGIN
from ..store.refs import JOURNAL_NAME, decode_ref_line, replay_journal
from ..store.tape import INFO_NAME
from .cursor import TapeCursor
from .objects import ChunkHead, Part, encode_chunk, make_blob_key, make_entries_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store.refs import Refs
    from ..store.replica import Replica
    from ..store.tape import Tape
    from .objects import Chunk
    from .remote import Remote

_CHUNK_BYTES = 8 << 20
"""Bytes of lines after which a chunk is full: a large tape takes several."""
_MARK = re.compile(rb"\[redacted:([a-z0-9_-]+)\]")


class SecretEntry(NamedTuple):
    """An entry that holds what looks like a secret."""

    entry: str
    kind: str


class PlannedChunk(NamedTuple):
    """A chunk to create."""

    data: bytes
    blobs: tuple[str, ...]
    """Hashes of the blobs that it names."""
    known: TapeCursor
    """What the remote has with it."""
    redacts: bool
    """Whether an entry in it redacts others."""


class SecretsFound(TapeError):
    """Lines that a remote lacks hold what an export would mask."""

    def __init__(self, secrets: tuple[SecretEntry, ...]) -> None:
        super().__init__("secrets were found")
        self.secrets = secrets


def plan_chunks(
    tape: Tape,
    known: TapeCursor,
    replica: Replica | None,
    person: str,
    *,
    raw: bool,
    is_synced: bool = False,
) -> Iterator[PlannedChunk]:
    """Yield the chunks that a remote lacks of a tape, which `replica` and `person` push.

    `known` is what it has; `is_synced` says that a barrier synced all entries. Raises SecretsFound
    unless secrets may go too (`raw`), and Damaged.
    """
    builder = ChunkBuilder(tape, known, replica, person)
    refs, lines = find_missing_lines(tape, known)
    phases = refs.phases()
    for phase in tape.phases.list_with_origin():
        if phase in phases or phase == ORIGIN:
            there = known.sizes.get(phase)
            for offset, run in _read_missing_runs(tape, phase, there, is_synced=is_synced):
                if not raw:
                    _refuse_secrets(tape, run)
                builder.add(phase, offset, run)
                if builder.size >= _CHUNK_BYTES:
                    yield builder.build()
    if lines:
        tape.journal.sync_journal()
        builder.add_journal(lines)
    if builder.parts:
        yield builder.build()


def is_complete(tape: Tape, known: TapeCursor) -> bool:
    """Return whether a push would bring nothing of a tape to a remote that has `known`."""
    refs, lines = find_missing_lines(tape, known)
    phases = refs.phases()
    return not (
        lines
        or (known.journal and _find_differences(tape, known))
        or any(
            any(_read_missing_runs(tape, phase, known.sizes.get(phase), is_synced=True))
            for phase in tape.phases.list_with_origin()
            if phase in phases or phase == ORIGIN
        )
    )


class ChunkBuilder:
    """The chunk that is being filled."""

    def __init__(self, tape: Tape, known: TapeCursor, replica: Replica | None, person: str) -> None:
        self._tape, self._known = tape, known
        self._replica, self._person = replica, person
        self.parts: list[tuple[Part, bytes]] = []
        self._blobs: dict[str, None] = {}
        self._sizes, self._journal = dict(known.sizes), [*known.journal]
        self._redacts = False
        self.size = 0

    def add(self, phase: str, offset: int, run: bytes) -> None:
        """Add whole lines of a phase."""
        if offset == 0 and read_type(run) == Anchor.entry_type:
            with (
                suppress(FileNotFoundError),  # it is only for people
                self._tape.phases.folder.sub(phase) as folder,
            ):
                page = folder.read(ANCHOR_PAGE)
                self._add_part(f"phases/{phase}/{ANCHOR_PAGE}", 0, page)
        self._redacts = self._redacts or _has_redaction(run)
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

    def build(self, *, has_info: bool = False) -> PlannedChunk:
        """Return the chunk, and begin the next one; the first one has the tape's facts, too."""
        if self._known.seq == 0 or has_info:
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
        plan = PlannedChunk(data, tuple(self._blobs), self._known, self._redacts)
        self.parts, self._blobs, self._redacts, self.size = [], {}, False, 0
        return plan


def find_missing_lines(tape: Tape, known: TapeCursor) -> tuple[Refs, list[tuple[str, bytes]]]:
    """Return the refs, and hash and text of the lines of the journal that the remote lacks."""
    refs, lines = tape.journal.read_lines()
    there = {*known.journal}
    return refs, [(h, line) for h, line in lines if h not in there]


def _read_missing_runs(
    tape: Tape, phase: str, known: int | None, *, is_synced: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of the whole, synced lines of a phase that the remote lacks."""
    with tape.phases.open(phase) as file:
        if file.size() == known:
            return
        end = file.tail().end
        if end > (known or 0):
            if known and file.read(known - 1, known) != b"\n":
                raise Damaged(
                    f"{phase}: the lines that are at the remote up to byte {known} are others "
                    "than those here, where some were lost: `tape fork --new`, and then "
                    "`tape detach` of what that makes, give a tape that can be pushed",
                    file=phase,
                    offset=known,
                )
            if not is_synced:
                tape.phases.sync(phase)
            yield from file.read_runs(known or 0, end)


def _has_redaction(run: bytes) -> bool:
    """Return whether one of the lines redacts others."""
    return b'"type":"redact"' in run and any(
        read_type(line) == Redact.entry_type for line in run.splitlines()
    )


def _refuse_secrets(tape: Tape, run: bytes) -> None:
    """Raise SecretsFound for lines that hold what an export would mask, in their blobs too."""
    if not find_blob_hashes(run) and not mask_json(run).secrets:
        return  # most have none: one look at all of them
    secrets: list[SecretEntry] = []
    for line in run.splitlines():
        kinds = _find_masked_kinds(line, mask_json(line))
        for digest in find_blob_hashes(line):
            with suppress(NotFound):
                data = tape.blobs.read(digest.decode())
                kinds |= _find_masked_kinds(data, MaskedJson(*mask_blob(data)))
        secrets += [SecretEntry(read_id(line), kind) for kind in sorted(kinds)]
    if secrets:
        raise SecretsFound(tuple(secrets))


def _find_masked_kinds(data: bytes, masked: MaskedJson) -> set[str]:
    """Return the kinds of the secrets that masking replaced in data."""
    if not masked.secrets:
        return set()
    kinds = {*_MARK.findall(masked.data)} - {*_MARK.findall(data)}
    return {kind.decode() for kind in kinds} or {"secret"}


def is_own_chunk(tape: Tape, chunk: Chunk, replica: Replica | None) -> bool:
    """Return whether `replica`, this copy of the store, pushed a chunk, and all of it is here."""
    if replica is None or chunk.head.replica != replica.id:
        return False
    own = tape.folder.read(JOURNAL_NAME)
    for part, data in chunk.iter_parts():
        if part.file == JOURNAL_NAME and not all(
            line in own for line in data.splitlines(keepends=True)
        ):
            return False
        if part.file.endswith(".jsonl") and part.file != JOURNAL_NAME:
            try:
                with tape.phases.open(part.file.split("/")[1]) as file:
                    if file.read(part.offset, part.offset + part.length) != data:
                        return False
            except NotFound:
                return False
    return True


def create_blobs(remote: Remote, tape: Tape, digests: Sequence[str]) -> None:
    """Create the blobs that a chunk names; one that is missing here is shown as such everywhere."""
    for digest in digests:
        with suppress(NotFound):
            remote.create(make_blob_key(digest), tape.blobs.read(digest))


def align_journal(tape: Tape, known: TapeCursor) -> None:
    """Make the journal say the same in the order of the remote as in that of the file here.

    A line that was written here before a pull comes after the pulled ones at the remote, and the
    newest line of a name counts: where that differs, what counts here is said once more.
    """
    if not known.journal or not _find_differences(tape, known):
        return
    with tape.notify_projection(), tape.journal.open_moves() as moves:
        moves.adopt((), _find_differences(tape, known))


def _find_differences(tape: Tape, known: TapeCursor) -> list[dict[str, Any]]:
    refs, own = tape.journal.read_lines()
    lines = dict(own)
    pushed = dict.fromkeys(h for h in known.journal if h in lines)
    order = [*pushed, *(h for h in lines if h not in pushed)]
    if order == [*lines]:
        return []
    there = replay_journal(b"".join(lines[h] + b"\n" for h in order))
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


def advance_cursor(known: TapeCursor, chunk: Chunk) -> TapeCursor:
    """Return what a remote has, with a chunk that an interrupted push created."""
    sizes, journal = dict(known.sizes), [*known.journal]
    for part, data in chunk.iter_parts():
        if part.file == JOURNAL_NAME:
            parsed = map(decode_ref_line, data.split(b"\n")[:-1])
            journal += [line.h for line in parsed if line and line.h not in journal]
        elif part.file.endswith(".jsonl"):
            sizes[part.file.split("/")[1]] = part.offset + part.length
    return TapeCursor(chunk.head.seq, sizes, tuple(journal))
