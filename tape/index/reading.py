"""Tapes → runs of lines with what they tell, and how far each phase was read.

Invariant: reading on gives the same as reading anew, however it is cut into runs. A run is small
enough to be kept in memory and written at once, whatever the size of the tape. Entries that a
redaction names are read as if their data were gone, also while it is not.
"""

from __future__ import annotations

from collections import ChainMap
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from ..checked import FSCK_ADVICE
from ..errors import Damaged, NewerFormat, NotFound
from ..line import Header, has_valid_data, is_redaction_begun, read_header
from ..phase import ORIGIN, parse_phase_number
from .contents import NO_CONTENTS, LineContents, extract_contents
from .tally import PhaseTally, TapeRecord, build_tape_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from ..phase import PhaseFile
    from ..refs import Refs
    from ..tape import Tape
    from ..writer import WritableTape

_RUN_LINES, _RUN_BYTES = 4_096, 1 << 22
"""What one run holds at most, but for one line of any length."""


class IndexedLine(NamedTuple):
    """One entry line that was read."""

    offset: int
    length: int
    """Bytes without the newline."""
    header: Header
    told: LineContents
    cwd: str | None
    """Where the tape works at this entry."""


class LineRun(NamedTuple):
    """Lines of one phase, one after the other."""

    phase: str
    before: PhaseTally | None
    """What had to be known of the phase; None when nothing was."""
    after: PhaseTally
    lines: list[IndexedLine]
    is_anew: bool
    """The phase is not what was known: all that was kept of it goes first."""


def read_runs(
    tape: WritableTape,
    refs: Refs,
    phases: dict[str, PhaseTally],
    redacted: AbstractSet[str] = frozenset(),
    *,
    only: AbstractSet[str] | None = None,
    skipped: Callable[[str], None] = lambda _: None,
) -> Iterator[LineRun]:
    """Yield what is new in the phases that refs name, in order, and in a copied past.

    `phases` holds what is known of each and is brought up to date; phases that went go from it.
    Readers ignore phases that no ref names: they are not committed. With `only`, names of committed
    phases, no other is looked at; the phases that new ones start from must be among these. Lines
    that changed on the disk say nothing, and are told to `skipped`.
    """
    committed = refs.phases() | {ORIGIN} if only is None else only
    there: dict[str, PhaseTally] = {}
    for name in (
        tape.phases.list_with_origin() if only is None else sorted(only, key=parse_phase_number)
    ):
        if name in committed:
            with suppress(NotFound), tape.phases.open(name) as file:  # a folder without its file
                reader = _PhaseReader(tape, file, ChainMap(there, phases), redacted, skipped)
                for run in reader.iter_runs(phases.get(name)):
                    there[name] = run.after
                    yield run
                there.setdefault(name, phases.get(name) or PhaseTally())
    phases.clear()
    phases.update(there)


class _PhaseReader(NamedTuple):
    """One phase being read."""

    tape: WritableTape
    file: PhaseFile
    phases: Mapping[str, PhaseTally]
    redacted: AbstractSet[str]
    skipped: Callable[[str], None]

    def iter_runs(self, before: PhaseTally | None) -> Iterator[LineRun]:
        """Go on where the tally stops: anew when its last line is not where it was."""
        tally = before or PhaseTally()
        is_anew = bool(tally.entries) and not self._has_last_line(tally)
        start = tally.offset if tally.entries and not is_anew else 0
        after = PhaseTally() if is_anew else copy(tally)
        lines: list[IndexedLine] = []
        size = 0
        for offset, line in self.file.lines(start):
            if offset <= after.offset or (read := self._read_line(after, offset, line)) is None:
                continue
            lines.append(read)
            size += len(line)
            if len(lines) >= _RUN_LINES or size >= _RUN_BYTES:
                yield LineRun(self.file.name, before, copy(after), lines, is_anew)
                before, lines, size, is_anew = copy(after), [], 0, False
        if lines or is_anew or before is None:
            yield LineRun(self.file.name, before, after, lines, is_anew)

    def _has_last_line(self, tally: PhaseTally) -> bool:
        _, last = next(self.file.lines(tally.offset), (0, b""))
        return last.startswith(b'{"id":"%b"' % tally.last.encode())

    def _read_line(self, tally: PhaseTally, offset: int, line: bytes) -> IndexedLine | None:
        """Count one line; what is no entry of a format we know is passed over, as readers do."""
        try:
            header = read_header(line)
        except (Damaged, NewerFormat) as error:
            self._report_skipped(offset, line, str(error))
            return None
        holds = has_valid_data(line, header)
        if not holds and not is_redaction_begun(line, header) and not self._is_redacted(header):
            self._report_skipped(offset, line, "its data does not match its hash")
        gone = header.id in self.redacted or not holds
        told = NO_CONTENTS if gone else extract_contents(header, line)
        tally.add(offset, header, told)
        if tally.entries == 1 and told.base is not None:
            tally.home = self._find_place_at(*told.base)
        return IndexedLine(offset, len(line), header, told, tally.place)

    def _is_redacted(self, header: Header) -> bool:
        """Tell whether a redaction names an entry: what changed in it is being overwritten."""
        return header.id in self.redacted or header.id in self.tape.phases.redacted_ids()

    def _report_skipped(self, offset: int, line: bytes, why: str) -> None:
        entry = line[7:19].decode("ascii", "replace")
        place = f"{self.tape.id[:8]} {self.file.name}: line at byte {offset} skipped"
        self.skipped(f"{place}: entry {entry}: {why}; {FSCK_ADVICE}")

    def _find_place_at(self, phase: str, offset: int) -> str | None:
        """Return where the tape worked at the entry a phase goes on from."""
        tally = self.phases.get(phase)
        if tally is None:
            return None
        if offset >= tally.moved_offset:
            return tally.place
        place = tally.home
        with suppress(NotFound), self.tape.phases.open(phase) as file:
            for at, line in file.lines():
                if at > offset:
                    break
                with suppress(Damaged, NewerFormat):
                    header = read_header(line)
                    if header.type in ("start", "meta") and header.id not in self.redacted:
                        place = extract_contents(header, line).cwd or place
        return place


def read_tape_record(tape: Tape, folder: str) -> TapeRecord:
    """Return what is kept of a tape itself, from its files alone."""
    redacted: set[str] = set()
    while True:
        refs, phases = tape.refs(), dict[str, PhaseTally]()
        named = {
            target
            for run in read_runs(tape, refs, phases, redacted)
            for line in run.lines
            for target in line.told.targets
        }
        if named <= redacted:
            return build_tape_record(tape, folder, refs, phases)
        redacted |= named
