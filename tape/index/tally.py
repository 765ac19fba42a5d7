"""What a listing says of a tape: counted line by line, so that it can go on where it stopped.

Invariant: reading on gives the same as reading anew, also to the last bit of a cost.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ..blocks import BlobRef
from ..branches import at
from ..errors import Damaged, NewerFormat, NotFound, TapeError
from ..line import Header, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..phase import PhaseFile
    from ..refs import Move, Refs
    from ..tape import Tape

_TITLE = 80


class TapeRow(Struct, frozen=True, gc=False):
    """One tape in a list. Times are as on the tape: UTC text with microseconds."""

    id: str
    """32 hex digits."""
    folder: str
    """Name of its folder in `tapes/`."""
    title: str | None
    """Given, or else the beginning of the first prompt; None when nothing was asked yet."""
    cwd: str
    """Where it works now: of the newest `start` or `meta` entry."""
    project: str | None
    created: str
    updated: str
    """Time of the newest head."""
    model: str | None
    """Of the newest answer."""
    entries: int
    """How many it holds itself, without its origin's."""
    branches: int
    cost: float | None
    """USD of all calls; None when none said what it cost."""


class Tally(Struct, gc=False):
    """What the lines of one phase have told so far."""

    offset: int = -1
    """Of the last line read, −1 before the first."""
    last: str = ""
    """Id of that line's entry."""
    entries: int = 0
    time: str = ""
    """Of the last line, as the following times are of theirs."""
    model: str | None = None
    answered: str = ""
    cost: float | None = None
    cwd: str | None = None
    moved: str = ""
    project: str | None = None
    prompt: str | None = None

    def add(self, offset: int, line: bytes) -> None:
        """Count one line; what is no entry of a format we know is passed over, as readers do."""
        try:
            header = read_header(line)
        except (Damaged, NewerFormat):
            return
        self.offset, self.last, self.time = offset, header.id, header.time
        self.entries += 1
        self._learn(header, line)

    def _learn(self, header: Header, line: bytes) -> None:
        match header.type:
            case "user" if self.prompt is None:
                self.prompt = _prompt(line[header.data : -1])
            case "assistant" | "usage":
                self._bill(header, _facts(line[header.data : -1]))
            case "start" | "meta":
                self._place(header, _facts(line[header.data : -1]))

    def _bill(self, header: Header, facts: _Facts) -> None:
        if header.type == "assistant" and facts.model:
            self.model, self.answered = facts.model, header.time
        if facts.cost is not None:
            self.cost = (self.cost or 0.0) + facts.cost.amount

    def _place(self, header: Header, facts: _Facts) -> None:
        if facts.cwd is not None:
            self.cwd, self.moved = facts.cwd, header.time
        self.project = self.project or facts.project


class Record(NamedTuple):
    """All that is kept of one tape: its row, and how far each phase was read."""

    row: TapeRow
    phases: dict[str, Tally]


class _Amount(Struct, gc=False):
    amount: float


class _Facts(Struct, gc=False):
    model: str | None = None
    cost: _Amount | None = None
    cwd: str | None = None
    project: str | None = None


class _Block(Struct, gc=False):
    text: str | BlobRef = ""


class _Prompt(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""


_FACTS = msgspec.json.Decoder(_Facts)
_PROMPT = msgspec.json.Decoder(_Prompt)


def _facts(data: bytes) -> _Facts:
    """Return what data says; of an unexpected shape, or redacted, it says nothing."""
    try:
        return _FACTS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Facts()


def _prompt(data: bytes) -> str | None:
    """Return the beginning of a prompt in one line, None when it holds no text."""
    try:
        content = _PROMPT.decode(data).content
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    texts = [block.text for block in content] if isinstance(content, list) else [content]
    lines = (" ".join((t.head if isinstance(t, BlobRef) else t).split()) for t in texts)
    return next((line[:_TITLE] for line in lines if line), None)


def read(tape: Tape, folder: str, known: Mapping[str, Tally]) -> Record:
    """Return the record of a tape, going on from what is known of its phases."""
    refs = tape.refs()
    phases = dict(_phases(tape, refs, known))
    return Record(_row(tape, folder, refs, phases), phases)


def _phases(tape: Tape, refs: Refs, known: Mapping[str, Tally]) -> Iterator[tuple[str, Tally]]:
    """Yield the phases that refs name, in order; readers ignore the others: uncommitted."""
    named = {move.phase for moves in refs.branches.values() for move in moves}
    for name in tape.phases.names():
        if name in named:
            with suppress(NotFound), tape.phases.open(name) as file:  # a folder without its file
                yield name, _read_on(file, known.get(name, Tally()))


def _read_on(file: PhaseFile, known: Tally) -> Tally:
    """Return a tally of the whole file: anew when its last known line is not where it was."""
    lines = file.lines(max(known.offset, 0))
    if known.entries:
        _, last = next(lines, (0, b""))
        if not last.startswith(b'{"id":"%b"' % known.last.encode()):
            return _read_on(file, Tally())
    tally = copy(known)
    for offset, line in lines:
        tally.add(offset, line)
    return tally


def _row(tape: Tape, folder: str, refs: Refs, phases: dict[str, Tally]) -> TapeRow:
    tallies = [*phases.values()] or [Tally()]
    heads = [_head_time(tape, moves[-1], phases) for moves in refs.branches.values()]
    costs = [tally.cost for tally in tallies if tally.cost is not None]
    return TapeRow(
        id=tape.id,
        folder=folder,
        title=refs.title or next((tally.prompt for tally in tallies if tally.prompt), None),
        cwd=max(tallies, key=lambda tally: tally.moved).cwd or "",
        project=next((tally.project for tally in tallies if tally.project), None),
        created=tape.info.created,
        updated=max(heads, default="") or tape.info.created,
        model=max(tallies, key=lambda tally: tally.answered).model,
        entries=sum(tally.entries for tally in tallies),
        branches=len(refs.branches),
        cost=sum(costs) if costs else None,
    )


def _head_time(tape: Tape, move: Move, phases: dict[str, Tally]) -> str:
    if move.pin is None:
        return phases[move.phase].time if move.phase in phases else ""
    try:
        pinned = at(tape.phases, move.branch, move.phase, move.pin.offset, move.pin.entry)
    except TapeError:  # damage is for `tape verify` to name; the list shows the other heads
        return ""
    return pinned.header.time
