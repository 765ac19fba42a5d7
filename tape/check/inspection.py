"""What a repair has to know of a tape besides the findings of verify; reads only.

Only the first and the last line of each phase are read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ..errors import TapeError
from ..model.entries import Anchor, Branch, Place, Start
from ..model.line import describe_missing_blob, read_header, verify_line
from ..store.leftovers import find_store_leftovers, find_tape_leftovers
from ..store.path import read_base
from ..store.phase import ORIGIN, Tail
from ..store.redaction import find_unredacted_entries
from ..store.refs import JOURNAL_NAME, Refs, check_ref_name
from ..store.tape import TapeInfo, read_tape_info
from .finding import find_path_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..store.store import Store
    from ..store.tape import Tape
    from .finding import Finding

_PHASE_FILE = re.compile(r"phases/([^/]+)/")


class InspectedPhase(Struct, frozen=True, gc=False):
    """A phase whose first entry verifies."""

    name: str
    begin: Start | Branch | Anchor
    time: str
    """When it began."""
    several: bool
    """Whether it has more than its first entry."""
    tail: Tail
    base: Place | None

    @property
    def branch(self) -> str:
        """The branch it was written on."""
        return self.begin.branch or ""

    @property
    def why(self) -> str:
        """The `why` of its journal line: what started the phase."""
        match self.begin:
            case Start():
                return "start"
            case Branch(why=why):
                return why or "go-on"
            case Anchor(kind=kind):
                return kind

    @property
    def last(self) -> str:
        """Id of its last entry."""
        return self.tail.header.id if self.tail.header else ""


class DependentTape(Struct, frozen=True, gc=False):
    """A tape forked from this one, or from a child of it."""

    id: str
    folder: str
    base: Place
    """The last entry of this tape on the child's path."""


class Inspection(Struct, frozen=True, gc=False):
    """What a repair knows of a tape."""

    info: TapeInfo
    refs: Refs
    journal: bytes | None
    """The bytes of refs.jsonl; None where there is none."""
    phases: dict[str, InspectedPhase]
    """The phases whose first entry verifies."""
    children: tuple[DependentTape, ...]
    leftovers: tuple[str, ...]
    """Paths in the store of leftovers of interrupted writes."""
    unfinished: tuple[str, ...]
    """Ids of the entries that an interrupted redaction has still to overwrite."""
    good: dict[str, str]
    """Phase → id of the last entry before its first damage, where there is one."""

    def list_tapes_over(self, phase: str, offset: int | None) -> tuple[str, ...]:
        """Return the ids of the tapes whose history includes a line, or any line of a phase."""
        bases = {name: phase.base for name, phase in self.phases.items() if phase.base is not None}

        def is_on_path(place: Place) -> bool:
            ends = find_path_ends(bases, self.info.id, place.phase, place.offset + 1)
            return (offset or 0) < ends.get(phase, 0)

        return tuple(child.id for child in self.children if is_on_path(child.base))


def get_finding_phase(finding: Finding) -> str:
    """Return the phase that a finding is about; "" if it is about something else."""
    match = _PHASE_FILE.match(f"{finding.file}/")
    return match[1] if match else ""


def inspect_tape(store: Store, tape: Tape, findings: Iterable[Finding]) -> Inspection:
    """Return the facts from the journal, the ends of each phase, forked tapes, and leftovers.

    What cannot be read is left out: verify reports it.
    """
    refs, journal = Refs({}, {}), None
    unfinished: tuple[str, ...] = ()
    with suppress(TapeError, OSError):
        refs = tape.refs()
    with suppress(OSError):
        journal = tape.folder.read(JOURNAL_NAME)
    with suppress(TapeError, OSError):
        named = find_unredacted_entries(tape.phases, tape.phases.read_redacted_ids())
        unfinished = tuple(entry.entry for entry in named)
    own = (f"tapes/{tape.folder.name}/{leftover.path}" for leftover in find_tape_leftovers(tape))
    names = tape.phases.names()
    return Inspection(
        info=tape.info,
        refs=refs,
        journal=journal,
        phases={name: phase for name in names if (phase := _inspect_phase(tape, name))},
        children=tuple(_find_dependents(store, tape.id)),
        leftovers=tuple(
            sorted([*(leftover.path for leftover in find_store_leftovers(store)), *own])
        ),
        unfinished=unfinished,
        good=dict(_find_good_entries(tape, findings)),
    )


def _inspect_phase(tape: Tape, name: str) -> InspectedPhase | None:
    with suppress(TapeError, OSError, ValueError), tape.phases.open(name) as file:
        first = tape.phases.first(name, describe_missing_blob)
        header = verify_line(file.line_at(0))
        if first is None or not isinstance(first.data, Start | Branch | Anchor):
            return None
        branch, tail = first.data.branch or "", file.tail()
        if first.data.phase == name and check_ref_name("branch", branch) == branch:
            several = tail.offset > 0
            return InspectedPhase(name, first.data, header.time, several, tail, read_base(first))
    return None


def _find_dependents(store: Store, tape: str) -> Iterator[DependentTape]:
    """Yield the tapes forked from this one, and those forked from them."""
    origins: dict[str, TapeInfo] = {}
    for name in store.folders():
        with suppress(TapeError, OSError), store.open_tape_folder(name) as folder:
            info = read_tape_info(folder)
            if info.origin is not None:
                with folder.sub("phases") as phases:
                    if not phases.has(ORIGIN):  # else it has its own copy of the history
                        origins[name] = info
    seen = {tape}
    todo: list[tuple[str, Place | None]] = [(tape, None)]
    while todo:
        parent, base = todo.pop()
        for name, info in origins.items():
            place = info.origin
            if place is not None and place.tape == parent and info.id not in seen:
                seen.add(info.id)
                todo.append((info.id, base or place))
                yield DependentTape(info.id, name, base or place)


def _find_good_entries(tape: Tape, findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """Yield the last entry before the first damage of each phase."""
    first: dict[str, int] = {}
    for finding in findings:
        if finding.level != "note" and finding.offset is not None and get_finding_phase(finding):
            phase = get_finding_phase(finding)
            first[phase] = min(first.get(phase, finding.offset), finding.offset)
    for phase, offset in first.items():
        with suppress(TapeError, OSError), tape.phases.open(phase) as file:
            for _, line in file.read_lines_back(offset):
                yield phase, read_header(line).id
                break
