"""What a repair has to know of a tape besides the findings of verify; reads only.

Only the first and the last line of each phase are read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ..disk import Folder
from ..entries import Anchor, Branch, Place, Start
from ..errors import InvalidName, TapeError
from ..leftovers import find_beside, find_inside
from ..line import read_header, verify
from ..path import base_of
from ..payload import missing_blob
from ..phase import ORIGIN, Tail
from ..redaction import find_unfinished
from ..refs import REFS, Refs, checked_name
from ..tape import Info, read_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..phase import PhaseFile
    from ..store import Store
    from ..tape import Tape
    from ..verify import Finding

_FILE = re.compile(r"phases/([^/]+)/")


class Phase(Struct, frozen=True, gc=False):
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


class Child(Struct, frozen=True, gc=False):
    """A tape forked from this one, or from a child of it."""

    id: str
    folder: str
    base: Place
    """The last entry of this tape on the child's path."""


class Facts(Struct, frozen=True, gc=False):
    """What a repair knows of a tape."""

    info: Info
    refs: Refs
    journal: bytes | None
    """The bytes of refs.jsonl; None where there is none."""
    phases: dict[str, Phase]
    """The phases whose first entry verifies."""
    children: tuple[Child, ...]
    leftovers: tuple[str, ...]
    """Paths in the store of leftovers of interrupted writes."""
    unfinished: tuple[str, ...]
    """Ids of the entries that an interrupted redaction has still to overwrite."""
    good: dict[str, str]
    """Phase → id of the last entry before its first damage, where there is one."""

    def over(self, place: Place, phase: str, offset: int) -> bool:
        """Return whether the path that ends at an entry includes the line at `offset`."""
        return offset < self._ends(place.phase, place.offset + 1).get(phase, 0)

    def _ends(self, phase: str, end: float) -> dict[str, float]:
        ends: dict[str, float] = {}
        while phase not in ends:
            ends[phase] = end
            base = self.phases[phase].base if phase in self.phases else None
            if base is None or base.tape not in (None, self.info.id):
                break
            phase, end = base.phase, base.offset + 1
        return ends

    def tapes_over(self, phase: str, offset: int | None) -> tuple[str, ...]:
        """Return the ids of the tapes whose history includes a line, or any line of a phase."""
        return tuple(
            child.id for child in self.children if self.over(child.base, phase, offset or 0)
        )


def phase_of(finding: Finding) -> str:
    """Return the phase that a finding is about; "" if it is about something else."""
    found = _FILE.match(f"{finding.file}/")
    return found[1] if found else ""


def facts(store: Store, tape: Tape, findings: Iterable[Finding]) -> Facts:
    """Return the facts from the journal, the ends of each phase, forked tapes, and leftovers."""
    names = tape.phases.names()
    found = {name: phase for name in names if (phase := _phase(tape, name))}
    return Facts(
        info=tape.info,
        refs=_refs(tape),
        journal=_journal(tape),
        phases=found,
        children=tuple(_children(store, tape.id)),
        leftovers=tuple(sorted(_leftovers(store, tape))),
        unfinished=_unfinished(tape),
        good=dict(_good(tape, findings)),
    )


def _refs(tape: Tape) -> Refs:
    try:
        return tape.refs()
    except (TapeError, OSError):  # verify reports it
        return Refs({}, {})


def _journal(tape: Tape) -> bytes | None:
    try:
        return tape.folder.read(REFS)
    except OSError:  # verify reports it
        return None


def _phase(tape: Tape, name: str) -> Phase | None:
    with suppress(TapeError, OSError, ValueError), tape.phases.open(name) as file:
        return _seen(tape, file)
    return None


def _seen(tape: Tape, file: PhaseFile) -> Phase | None:
    first = tape.phases.first(file.name, missing_blob)
    header = verify(file.line_at(0))
    if first is None or not isinstance(first.data, Start | Branch | Anchor):
        return None
    tail = file.tail()
    if first.data.phase != file.name or not _is_name(first.data.branch):
        return None
    return Phase(file.name, first.data, header.time, tail.offset > 0, tail, base_of(first))


def _is_name(branch: str | None) -> bool:
    try:
        return bool(branch) and checked_name("branch", branch or "") == branch
    except InvalidName:
        return False


def _children(store: Store, tape: str) -> Iterator[Child]:
    """Yield the tapes forked from this one, and those forked from them."""
    origins = dict(_origins(store))
    seen = {tape: None}
    todo: list[tuple[str, Place | None]] = [(tape, None)]
    while todo:
        parent, base = todo.pop()
        for folder, (child, place) in origins.items():
            if place.tape == parent and child not in seen:
                seen[child] = None
                todo.append((child, base or place))
                yield Child(child, folder, base or place)


def _origins(store: Store) -> Iterator[tuple[str, tuple[str, Place]]]:
    for name in store.folders():
        with suppress(TapeError, OSError), Folder.open(store.tapes / name) as folder:
            info = read_info(folder)
            if info.origin is not None and not _has_copy(folder):
                yield name, (info.id, info.origin)


def _has_copy(folder: Folder) -> bool:
    """Return whether a tape has its own copy of the history it was forked from."""
    with folder.sub("phases") as phases:
        return phases.has(ORIGIN)


def _leftovers(store: Store, tape: Tape) -> Iterator[str]:
    yield from (one.path for one in find_beside(store))
    yield from (f"tapes/{tape.folder.name}/{one.path}" for one in find_inside(tape))


def _unfinished(tape: Tape) -> tuple[str, ...]:
    try:
        found = find_unfinished(tape.phases, tape.phases.redacted_ids())
        return tuple(one.entry for one in found)
    except (TapeError, OSError):  # verify reports it
        return ()


def _good(tape: Tape, findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """Yield the last entry before the first damage of each phase."""
    first: dict[str, int] = {}
    for finding in findings:
        if finding.level != "note" and finding.offset is not None and phase_of(finding):
            phase = phase_of(finding)
            first[phase] = min(first.get(phase, finding.offset), finding.offset)
    for phase, offset in first.items():
        with suppress(TapeError, OSError), tape.phases.open(phase) as file:
            for _, line in file.lines_back(offset):
                yield phase, read_header(line).id
                break
