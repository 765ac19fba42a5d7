"""One tape: its open folder, and the operations on it, composed of the modules above."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..clock import read_clock
from ..damage import warn_of_damage
from ..errors import Busy, Damaged, NewerFormat, NotFound, TapeError
from ..model.entries import KeptRange, Place, Text, User
from ..model.line import (
    FORMAT,
    JSON_ERRORS,
    decode_line,
    drop_repeated_values,
    encode_id_prefix,
    read_id,
    read_type,
)
from ..text import extract_title
from .blobs import Blobs
from .locks import hold_flock, hold_lock_in, is_lock_held, list_lock_names
from .path import FSCK_ADVICE, LineChecker, Segment, Source, find_line_end, walk_segments_back
from .phase import ORIGIN, Phases
from .refs import (
    Changes,
    Journal,
    Refs,
    check_ref_name,
    find_head,
    fork_branch,
    read_head_at,
    switch_branch,
)
from .tape_folder import TapeFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from ..model.entries import Anchor, BlobRef
    from ..model.line import Entry
    from .disk import Folder
    from .refs import Head, Moves
    from .replica import Replica
    from .writer import Durability, Projection, Writer

INFO_NAME = "tape.json"


class TapeInfo(Struct, frozen=True, gc=False):
    """tape.json: the identity of a tape. Written once and never changed."""

    format: int
    id: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    created: str
    by: str
    origin: Place | None = None


def read_tape_info(folder: Folder) -> TapeInfo:
    """Read tape.json; raise NewerFormat or Damaged with the folder's name."""
    data = folder.read(INFO_NAME)
    try:
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("format")
        if version is not None and int(bytes(version)) > FORMAT:
            raise NewerFormat(
                f"{folder.name} is a tape of format {int(bytes(version))}, this program reads up "
                f"to {FORMAT}: update it"
            )
        return msgspec.json.decode(data, type=TapeInfo)
    except JSON_ERRORS as error:
        raise Damaged(
            f"{folder.name}/{INFO_NAME} cannot be read: {error}", file=INFO_NAME
        ) from error


def make_tape_folder(folder: Folder, info: bytes) -> None:
    """Fill the folder of a new tape: tape.json with `info`, and the folder of its phases.

    `blobs/`, `locks/` and `quarantine/` are made with what is in them.
    """
    folder.create(INFO_NAME, info + b"\n")
    folder.make("phases").close()


class Hit(NamedTuple):
    """An entry that was found, and the tape that holds it."""

    tape: Tape
    head: Head


class Tape:
    """One agent session. A context manager; closing it closes the folder."""

    def __init__(
        self,
        folder: Folder,
        other: Callable[[str], Tape],
        *,
        clock: Callable[[], int] = read_clock,
        projection: Projection | None = None,
        replica: Callable[[], Replica | None] = lambda: None,
    ) -> None:
        self.info = read_tape_info(folder)
        self.id = self.info.id
        self.folder = folder
        self.clock, self.projection, self.replica = clock, projection, replica
        self.journal = Journal(folder, clock)
        self.phases = Phases.open_in(folder)
        self.blobs = Blobs(folder)
        self._other = other
        self._origins: dict[str, Tape] = {}

    @property
    def source(self) -> Source:
        """The source of its phases and blobs."""
        return Source(self.id, self.phases, self.blobs.text)

    def refs(self) -> Refs:
        """Return the current branches, labels and title."""
        return self.journal.read()

    def head(self, branch: str | None = None, *, moves_ago: int = 0) -> Head:
        """Return the head of a branch, now or `moves_ago` moves ago; None is the current one."""
        refs = self.refs()
        return find_head(refs, self.phases, branch or refs.current, moves_ago=moves_ago)

    def path(self, head: Head, *, to_anchor: bool = False) -> list[Segment]:
        """Return the segments of the path to a head, oldest first, through origins.

        Raises Damaged if a base is not where it should be, NotFound if an origin is missing.
        """
        return [*self.walk_path_back(head, to_anchor=to_anchor)][::-1]

    def walk_path_back(self, head: Head, *, to_anchor: bool = False) -> Iterator[Segment]:
        """Yield the segments of `path` newest first; raise where it breaks off."""
        return walk_segments_back(
            self.source, head.phase, head.end, self._open_source, to_anchor=to_anchor
        )

    def lines(self, head: Head) -> Iterator[bytes]:
        """Yield the lines of the path to a head, oldest first, without their newlines.

        As stored, unchecked.
        """
        for segment in self.path(head):
            for _, line in segment.lines():
                yield line

    def report_torn_tail(self, head: Head, skipped: Callable[[str], None]) -> None:
        """Report incomplete bytes after a head, unless its branch is being written."""
        self.report_torn_bytes(head.phase, head.branch, head.torn, skipped)

    def report_torn_bytes(
        self, phase: str, branch: str, count: int, skipped: Callable[[str], None]
    ) -> None:
        """Report `count` incomplete bytes at the end of a phase, as `report_torn_tail` does."""
        if count and not is_lock_held(self.folder, branch):
            skipped(
                f"{phase}: the last {count} bytes skipped: incomplete or damaged; {FSCK_ADVICE}"
            )

    def read_runs(
        self,
        head: Head,
        *,
        to_anchor: bool = False,
        skipped: Callable[[str], None] = warn_of_damage,
    ) -> Iterator[list[Entry]]:
        """Yield the entries of the path to a head, oldest first, many at a time.

        Entries that do not verify are left out and reported to `skipped`, by default as a
        DamageWarning.
        """
        self.report_torn_tail(head, skipped)
        for segment in self.path(head, to_anchor=to_anchor):
            yield from segment.read_runs(skipped)

    def entries(
        self,
        head: Head,
        *,
        to_anchor: bool = False,
        skipped: Callable[[str], None] = warn_of_damage,
        digests: bool = True,
    ) -> list[Entry]:
        """Return the entries of `read_runs` as a list: memory grows with the path.

        Entries share equal values, which is a third less memory; without `digests` their `dh`,
        by which they were checked, is empty.
        """
        entries: list[Entry] = []
        known: dict[object, object] = {}
        for run in self.read_runs(head, to_anchor=to_anchor, skipped=skipped):
            drop_repeated_values(run, entries[-1].id if entries else "", known, digests=digests)
            entries += run
        return entries

    def find_entries_back(
        self,
        head: Head,
        types: AbstractSet[str],
        skipped: Callable[[str], None] = warn_of_damage,
    ) -> Iterator[Entry]:
        """Yield the entries of these types on the path to a head, newest first.

        Their phases are read as far as the caller goes; entries of other types are neither checked
        nor decoded.
        """
        for segment in self.walk_path_back(head):
            yield from segment.find_entries_back(types, skipped)

    def newest(self, head: Head, count: int) -> tuple[KeptRange, ...]:
        """Return the newest `count` entries of a path as the ranges an anchor keeps, oldest first.

        Fewer if the path is shorter.
        """
        ranges: list[KeptRange] = []
        for segment in self.walk_path_back(head):
            if count <= 0:
                break
            lines = deque(segment.lines(), maxlen=count)
            (offset, first), (_, last) = lines[0], lines[-1]
            ranges.append(self.build_kept_range(segment, offset, first, last, len(lines)))
            count -= len(lines)
        return tuple(reversed(ranges))

    def build_kept_range(
        self, segment: Segment, offset: int, first: bytes, last: bytes, count: int
    ) -> KeptRange:
        """Return the range of `count` lines of a path that begins at `offset` of a segment."""
        tape = segment.source.tape
        return KeptRange(
            tape=None if tape == self.id else tape,
            phase=segment.phase,
            offset=offset,
            count=count,
            first=read_id(first),
            last=read_id(last),
        )

    def kept(self, anchor: Anchor, skipped: Callable[[str], None] = warn_of_damage) -> list[Entry]:
        """Return the entries an anchor keeps in view; raise Damaged if the ranges do not exist.

        Entries that do not verify are left out and reported to `skipped`.
        """
        return [
            entry
            for kept_range in anchor.kept
            for entry in self.read_kept_range(kept_range, skipped)
        ]

    def read_kept_range(
        self, kept_range: KeptRange, skipped: Callable[[str], None] = warn_of_damage
    ) -> list[Entry]:
        """Return the entries of a range, from this tape or else from the origin."""
        lines, tape = self.read_kept_lines(kept_range)
        check = LineChecker(kept_range.phase, tape.phases.read_redacted_ids, skipped)
        offset, entries = kept_range.offset, []
        for line in lines:
            checked = check.read(offset, line)
            if checked is not None:
                entries.append(decode_line(checked, tape.blobs.text))
            offset += len(line) + 1
        return entries

    def trim_kept_ranges(self, anchor: Anchor, first: str) -> tuple[KeptRange, ...]:
        """Return the ranges an anchor keeps, from entry `first` on; empty if it is not kept."""
        for place, kept_range in enumerate(anchor.kept):
            lines, _ = self.read_kept_lines(kept_range)
            before = [*takewhile(lambda line: read_id(line) != first, lines)]
            if len(before) < len(lines):
                offset = kept_range.offset + sum(len(line) + 1 for line in before)
                rest = replace(
                    kept_range, offset=offset, count=kept_range.count - len(before), first=first
                )
                return (rest, *anchor.kept[place + 1 :])
        return ()

    def read_kept_lines(self, kept_range: KeptRange) -> tuple[list[bytes], Tape]:
        """Return the lines of a range, and the tape they are in; raise Damaged if not found."""
        range_lines = self._read_lines_at(kept_range.phase, kept_range.offset, kept_range)
        if not range_lines and self.phases.has_origin:
            with self.phases.open(ORIGIN) as file:
                back = file.read_lines_back(file.tail().end)
                offset = next((at for at, line in back if read_id(line) == kept_range.first), None)
            range_lines = [] if offset is None else self._read_lines_at(ORIGIN, offset, kept_range)
        if range_lines:
            return range_lines, self
        origin = self.origin()
        if origin is None:
            raise Damaged(
                f"{kept_range.phase}: byte {kept_range.offset} should hold {kept_range.first[:12]}"
            )
        return origin.read_kept_lines(kept_range)

    def _read_lines_at(self, phase: str, offset: int, kept_range: KeptRange) -> list[bytes]:
        """Return the range's lines if it begins at `offset` of a phase and ends as it should."""
        if offset < 0 or kept_range.count < 1 or not self.phases.folder.has(phase):
            return []
        with self.phases.open(phase) as file:
            lines = [line for _, line in islice(file.lines(offset), kept_range.count)]
        ends = [read_id(line) for line in lines[:1] + lines[-1:]]
        return lines if ends == [kept_range.first, kept_range.last] else []

    def _open_source(self, tape: str) -> Source:
        if tape not in self._origins:
            self._origins[tape] = self._other(tape)
        return self._origins[tape].source

    def open_linked(self, tape: str) -> Tape:
        """Return another tape of the store, to read, closed with this one; raise NotFound."""
        self._open_source(tape)
        return self._origins[tape]

    def origin(self) -> Tape | None:
        """Return the tape this one was forked from; None if it has none, or is detached without it.

        Raises NotFound if it is missing and its history was not copied.
        """
        if self.info.origin is None or self.info.origin.tape is None:
            return None
        try:
            return self.find_tape(self._open_source(self.info.origin.tape))
        except TapeError:
            if self.phases.has_origin:
                return None
            raise

    def load(self, blob: BlobRef) -> bytes:
        """Return the bytes of a picture or file, from here or from an origin.

        Raises NotFound.
        """
        tape = self
        while True:
            try:
                return tape.blobs.read(blob.hash)
            except NotFound:
                origin = tape.origin()
                if origin is None:
                    raise
                tape = origin

    def find_tape(self, source: Source) -> Tape:
        """Return the tape that holds a segment of a path of this tape."""
        return self._origins.get(source.tape, self)

    def collect_shared_segments(self) -> list[Segment]:
        """Return the segments of the path to the entry it was forked at, in the origin tapes."""
        place = self.info.origin
        if place is None:
            return []
        source = self._open_source(place.tape or "")
        end = find_line_end(source, place)
        return [*walk_segments_back(source, place.phase, end, self._open_source)][::-1]

    def find_entry(self, prefix: str) -> list[Hit]:
        """Return the entries whose id begins with `prefix`, here or else in the origin."""
        hits = self.find_own_entries(prefix)
        origin = self.origin() if not hits else None
        return hits if origin is None else origin.find_entry(prefix)

    def find_own_entries(self, prefix: str) -> list[Hit]:
        """Return the entries of this tape itself whose id begins with `prefix`.

        Reads every line: the cost grows with the tape.
        """
        start = encode_id_prefix(prefix)
        hits = []
        committed = self.refs().phases() | {ORIGIN}
        for phase in (name for name in self.phases.list_with_origin() if name in committed):
            try:
                with self.phases.open(phase) as file:
                    offsets = [offset for offset, line in file.lines() if line.startswith(start)]
            except NotFound:  # named in the journal, but missing: return the other entries
                continue
            hits += [
                Hit(self, read_head_at(self.phases, self.find_branch(phase), phase, at))
                for at in offsets
            ]
        return hits

    def find_branch(self, phase: str) -> str:
        """Return the branch a phase was written on."""
        first = self.phases.first(phase, self.blobs.text)
        branch = getattr(first and first.data, "branch", None)
        if not isinstance(branch, str):
            raise Damaged(f"{phase}: its first entry names no branch", file=phase, offset=0)
        return branch

    def entry(self, head: Head) -> Entry:
        """Return the entry of a head; raise Damaged if it does not verify."""
        return decode_line(self.read_checked_line(head), self.blobs.text)

    def read_checked_line(self, head: Head) -> bytes:
        """Return the line of a head's entry; raise Damaged if it does not verify."""
        with self.phases.open(head.phase) as file:
            line = file.line_at(head.offset)
        wrong: list[str] = []
        checked = LineChecker(head.phase, self.phases.read_redacted_ids, wrong.append).read(
            head.offset, line
        )
        if checked is None:
            raise Damaged(wrong[0], file=head.phase, offset=head.offset)
        return checked

    def find_ancestor(self, head: Head, steps: int) -> Hit:
        """Return the entry `steps` before a head, in the origin if the path leads there."""
        if steps == 0:
            return Hit(self, head)
        for segment, offset, _ in islice(self._walk_lines_back(head), steps, None):
            return self._open_head(segment, offset)
        raise NotFound("that is before the first entry")

    def find_before_prompt(self, head: Head, count: int) -> Hit:
        """Return the entry before the `count`-th newest prompt of a path; 1 is the newest prompt.

        Raises NotFound where the path has fewer prompts, or begins with that one.
        """
        left = count
        for segment, offset, line in self._walk_lines_back(head):
            if left == 0:
                return self._open_head(segment, offset)
            left -= read_type(line) == User.entry_type
        if left == 0:
            raise NotFound("nothing comes before that prompt: it is the first entry")
        available = count - left
        how_many = f"{available} prompt{'s' * (available != 1)}" if available else "no prompt"
        raise NotFound(f"there is no prompt {count} to go back to: the path has {how_many}")

    def _walk_lines_back(self, head: Head) -> Iterator[tuple[Segment, int, bytes]]:
        """Yield segment, offset and line of each entry of a path, newest first; unchecked."""
        for segment in self.walk_path_back(head):
            with segment.source.phases.open(segment.phase) as file:
                for offset, line in file.read_lines_back(segment.end):
                    if offset < segment.start:
                        break
                    yield segment, offset, line

    def _open_head(self, segment: Segment, offset: int) -> Hit:
        """Return the entry at a place of a path, with the tape that holds it."""
        tape = self.find_tape(segment.source)
        branch = tape.find_branch(segment.phase)
        return Hit(tape, read_head_at(tape.phases, branch, segment.phase, offset))

    def fork(
        self, base: Head, name: str | None = None, *, why: str = "fork", switch: bool = False
    ) -> str:
        """Start a branch at `base` and return its name; no entries are copied or changed."""
        with self._open_moves() as moves:
            name = fork_branch(moves, self.phases, base, name, why)
            if switch:
                switch_branch(moves, name)
        return name

    def switch(self, name: str) -> None:
        """Make `name` the current branch."""
        with self._open_moves() as moves:
            switch_branch(moves, name)

    def rename(self, title: str) -> None:
        """Give the tape a title."""
        with self._open_moves() as moves:
            moves.title(title)

    def title(self) -> str | None:
        """Return its title, or else the beginning of its first prompt; None without a prompt."""
        set_title = self.refs().title
        if set_title:
            return set_title
        for _, _, line in self.phases.read_all_lines():
            if read_type(line) != User.entry_type:
                continue
            with suppress(Damaged):
                data = decode_line(line, self.blobs.text).data
                content = data.content if isinstance(data, User) else ()
                texts = [block.text for block in content if isinstance(block, Text)]
                if title := extract_title("\n".join(texts)):
                    return title
        return None

    def label(self, name: str, entry: str | None) -> None:
        """Label an entry, or remove the label with None."""
        check_ref_name("label", name)
        with self._open_moves() as moves:
            moves.label(name, entry)

    @contextmanager
    def _open_moves(self) -> Iterator[Moves]:
        """Hold the journal's lock for a move.

        If it is interrupted, the projection still knows which tape to read.
        """
        if self.projection is not None:
            self.projection.on_begin(self.id)
        changes = Changes()
        try:
            with self.journal.open_moves(changes=changes) as moves:
                yield moves
        finally:
            if self.projection is not None:
                self.projection.on_move(self.id, changes)

    @contextmanager
    def notify_projection(self) -> Iterator[None]:
        """Notify the projection before and after a change of any files: it reads the whole tape.

        If the change is interrupted, the projection still knows which tape to read.
        """
        if self.projection is not None:
            self.projection.on_begin(self.id)
        try:
            yield
        finally:
            if self.projection is not None:
                self.projection.on_end(self, None)

    def forget_redacted(self, *, scrubs: bool) -> None:
        """Remove redacted data from the index; with `scrubs` all traces of it, at once."""
        if self.projection is not None:
            self.projection.on_redact(self.id, scrubs=scrubs)

    @contextmanager
    def hold_all_locks(self, *, but: str | None = None) -> Iterator[None]:
        """Hold the locks of all branches, claimed ones too; raise Busy if one is taken.

        The lock of branch `but` is left out: the caller holds it.
        """
        taken: set[str] = set()
        with ExitStack() as held:
            while names := {*self.refs().branches, *list_lock_names(self.folder)} - {
                *("refs", but),
                *taken,
            }:
                for name in sorted(names):
                    held.enter_context(hold_lock_in(self.folder, name, wait=0))
                taken |= names
            yield

    @contextmanager
    def hold_still(self) -> Iterator[None]:
        """Hold the locks of all branches, or of the file of an archived tape; raise Busy."""
        packed = self.folder.packed if isinstance(self.folder, TapeFolder) else None
        if packed is None or packed.is_deleted():
            with self.hold_all_locks():
                yield
        else:
            with hold_flock(packed.fd, packed.file):
                if packed.is_deleted():
                    raise Busy(f"tape {self.id[:8]} was unpacked just now: try again")
                yield

    def writer(
        self,
        branch: str | None = None,
        *,
        wait: bool = False,
        durability: Durability = "barrier",
    ) -> Writer:
        """Open a branch for writing; see `Writer.open`."""
        from .writer import Writer  # readers need none of it

        return Writer.open(self, branch, wait=wait, durability=durability)

    def close(self) -> None:
        """Close the folder."""
        for tape in self._origins.values():
            tape.close()
        self.phases.close()
        self.folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
