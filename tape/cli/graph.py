"""`log --graph`: all branches of a tape, drawn as `git log --graph` draws them.

Memory use is constant: the runs between two forks are read one after the other, backwards.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..damage import warn_of_damage
from ..line import kind_of, read_header
from ..path import Segment
from ..render import SHORT, beginning, oneline, single, width
from ..tree.lanes import Lanes
from ..tree.shape import newest_first, shape, stretches
from .out import warn
from .terminal import coloured, columns, style
from .walk import Line, legible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..line import Header
    from ..refs import Refs
    from ..tape import Tape
    from ..tree.lanes import Row
    from ..tree.shape import Node, Shape, Stretch
    from .walk import Step

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
"""Colours of the lanes, in turn."""
_TOLD = frozenset({"start", "branch", "anchor", "user"})
"""Entry types that a folded graph lists."""


class Choice(NamedTuple):
    """Which entries are listed; entries with a branch or label always are."""

    types: frozenset[str] = frozenset()
    """Only these types, if any are given."""
    fold: bool = False
    """List only prompts and first entries of phases, unless types are given, and count the rest."""

    def lists(self, kind: str) -> bool:
        """Return whether entries of a type are listed; "" is a type that cannot be read."""
        types = self.types or (_TOLD if self.fold else None)
        return types is None or not kind or kind in types


class Drawn(NamedTuple):
    """One line of a graph; `entry` is False for lines between entries."""

    row: Row
    text: str = ""
    entry: bool = False


class Point(Struct, frozen=True):
    """An entry that a phase begins or ends with."""

    entry: str
    n: int
    time: str
    type: str


class BranchPoint(Struct, frozen=True):
    """The head of a branch."""

    branch: str
    phase: str
    entry: str
    n: int
    time: str
    pinned: bool


class Base(Struct, frozen=True):
    """The entry a phase grows from."""

    tape: str
    phase: str
    entry: str | None


class PhasePoint(Struct, frozen=True):
    """One phase; `undone` of its `entries` are on no branch, its last ones."""

    tape: str
    phase: str
    branch: str | None
    base: Base | None
    first: Point
    last: Point
    entries: int
    undone: int


class Tree(Struct, frozen=True):
    """A tape's tree as `log --graph --json` prints it."""

    tape: str
    current: str
    branches: tuple[BranchPoint, ...]
    phases: tuple[PhasePoint, ...]
    labels: dict[str, str]
    damage: tuple[str, ...]


def tree_of(tape: Tape) -> Tree:
    """Return the branches and phases of a tape, with the history it shares with its origin."""
    tree, refs = shape(tape), tape.refs()
    heads = tuple(
        BranchPoint(one.branch, one.phase, one.entry, one.header.n, one.header.time, one.pinned)
        for one in tree.heads
    )
    phases = tuple(_phase(tree, node) for node in tree.nodes.values())
    return Tree(tape.id, refs.current, heads, phases, dict(refs.labels), tree.damage)


def _phase(tree: Shape, node: Node) -> PhasePoint:
    first, last = node.first, node.last
    base = node.base and Base(*node.base.key, first.parent_id)
    undone = last.n - _depth(node, tree.reached.get(node.key, 0))
    count = last.n - first.n + 1
    key = node.key
    return PhasePoint(
        key.tape, key.phase, node.branch, base, _point(first), _point(last), count, undone
    )


def _point(header: Header) -> Point:
    return Point(header.id, header.n, header.time, header.type)


def _depth(node: Node, end: int) -> int:
    """Return the depth of the entry that ends at a byte of a phase; at 0 that of its base."""
    if end == 0 or end >= node.end:
        return node.last.n if end else node.first.n - 1
    with node.source.phases.open(node.phase) as file:
        _, line = next(file.lines_back(end))
    return read_header(line).n


def drawing(tape: Tape, choice: Choice, newest: int | None = None) -> Iterator[str]:
    """Yield a tape's tree as lines of text, newest entry first; at most `newest` entries.

    Damaged entries are left out with a warning.
    """
    tree, refs = shape(tape), tape.refs()
    for text in tree.damage:
        warn(f"{text}; left out, `tape verify` says more")
    wide, paints = columns(), coloured()
    left = newest
    for drawn in _drawn(tree, _names(tape, tree, refs), choice, wide):
        if drawn.entry and left is not None:
            if left == 0:
                return
            left -= 1
        lanes = _painted(drawn.row) if paints else "".join(cell.char for cell in drawn.row)
        yield f"{lanes}{drawn.text}".rstrip()


def _painted(row: Row) -> str:
    return "".join(
        cell.char if cell.char in " *o#" else style(cell.char, fg=COLOURS[cell.lane % len(COLOURS)])
        for cell in row
    )


def _names(tape: Tape, tree: Shape, refs: Refs) -> dict[str, list[str]]:
    """Return the names in brackets by entry id: branches, the current one first, then labels."""
    names: dict[str, list[str]] = {}
    for head in sorted(tree.heads, key=lambda head: head.branch != refs.current):
        mark = "* " if head.branch == refs.current else ""
        names.setdefault(head.entry, []).append(mark + head.branch)
    for label, entry in refs.labels.items():
        names.setdefault(entry, []).append(f"label: {label}")
    origin = tape.info.origin
    if origin is not None and origin.tape is not None:
        names.setdefault(origin.entry, []).append(f"origin: {origin.tape[:SHORT]}")
    return names


def _drawn(tree: Shape, names: dict[str, list[str]], choice: Choice, wide: int) -> Iterator[Drawn]:
    found = stretches(tree)
    lanes = Lanes()
    for number in newest_first(found):
        column = lanes.begin(number)
        yield from _stretch(found[number], lanes, column, _Listing(names, choice, wide))
        for row in lanes.end(column, found[number].parent):
            yield Drawn(row)


class _Listing(NamedTuple):
    """The options and facts that decide how an entry is listed."""

    names: dict[str, list[str]]
    choice: Choice
    wide: int


def _stretch(stretch: Stretch, lanes: Lanes, column: int, listing: _Listing) -> Iterator[Drawn]:
    """Yield the entries of a run, newest first, and a count of those that are not listed."""
    passed: Counter[str] = Counter()
    undone = "undone" if stretch.undone else ""
    counted, tip = lanes.row(column, ":"), [undone] * (stretch.end == stretch.node.end)
    for line in _back(stretch):
        kind, names = kind_of(line.line), listing.names.get(_id(line.line), [])
        if not names and not listing.choice.lists(kind):
            passed[kind] += 1
            continue
        for step in legible([line], beginning):
            yield from _folded(passed, counted, listing.choice, undone)
            row = lanes.row(column, "o" if undone else "#" if kind == "anchor" else "*")
            room = listing.wide - len(row)
            said = [*names, *filter(None, tip)]
            yield Drawn(row, _entry(step, said, room, undone=stretch.undone), entry=True)
            tip = []
    yield from _folded(passed, counted, listing.choice, undone)


def _back(stretch: Stretch) -> Iterator[Line]:
    node = stretch.node
    segment = Segment(node.source, node.phase, stretch.end, stretch.start)
    for offset, line in segment.checked_back(warn_of_damage):
        yield Line(node.source, node.phase, offset, line)


def _id(line: bytes) -> str:
    return line[7:47].decode("ascii", "replace")


def _folded(passed: Counter[str], row: Row, choice: Choice, undone: str) -> Iterator[Drawn]:
    """Yield a count of the skipped entries, and reset it."""
    if passed and choice.fold:
        kinds = ", ".join(f"{count} {kind}" for kind, count in passed.most_common())
        yield Drawn(row, style(f"{passed.total()} {undone or 'more'}: {kinds}", dim=True))
    passed.clear()


def _entry(step: Step, names: list[str], wide: int, *, undone: bool) -> str:
    """Return an entry on one line, its names in brackets after its id."""
    said = single(f"({', '.join(names)})") if names else ""
    text = oneline(step.entry, wide - width(said) - 1)
    identity, rest = text[:SHORT], text[SHORT + 1 :]
    if undone:
        return style(f"{identity} {said}{' ' * bool(said)}{rest}", dim=True)
    rest = style(rest, bold=True) if step.entry.type == "anchor" else rest
    said = style(said, fg="green", bold=True) + " " if said else ""
    return f"{style(identity, fg='yellow')} {said}{rest}"
