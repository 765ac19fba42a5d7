r"""The shape of a tape: its phases, what each is forked from, and where branches are (tape.md §4).

Read from the ends of files: the cost grows with the phases, not with the entries. Damaged parts are
reported and left out, so that the rest can still be shown.

Lanes are the lines that the tree is drawn with, as `git log --graph` draws them. A lane waits for
the run that its own run is forked from; two that wait for the same one are joined at once:

    begin(3)         @ |        column 0: the lane that waits for run 3, else a new one
    end(3, parent)   |/         the other lane waits for that parent too: they are joined
    begin(1)         @

A merge has a second line, from its anchor to the newest entry that it merged:

    begin(4)           @          the anchor of the merge
    add_merge_line(2)  |\         a new lane that waits for run 2
    begin(2)           | @        what was merged
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import Damaged, NotFound
from ..model.entries import Anchor
from ..model.line import describe_missing_blob, encode_id_prefix, read_header
from ..store.path import find_origin_end, read_base, require_root
from ..store.phase import ORIGIN
from ..store.refs import find_head, read_head_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.entries import MergedBranch, Place
    from ..model.line import Header
    from ..store.path import Source
    from ..store.refs import Head
    from ..store.tape import Tape


READ_ERRORS = (Damaged, NotFound, OSError)
"""Errors that exclude one phase or branch; a newer format stops everything."""


class PhaseKey(NamedTuple):
    """The key of a phase: the id of its tape, and its name."""

    tape: str
    phase: str


class ForkPoint(NamedTuple):
    """The fork point of a phase: at offset `end` of another one."""

    key: PhaseKey
    end: int


class PhaseNode(NamedTuple):
    """One phase; of an origin's phase only the shared part."""

    source: Source
    phase: str
    branch: str | None
    """The branch it was written on; None if unknown."""
    first: Header
    last: Header
    end: int
    """Offset after the last entry."""
    base: ForkPoint | None
    """None at a root, or if the base cannot be read."""
    merged: MergedBranch | None = None
    """The branch that the phase begins with a merge of."""

    @property
    def key(self) -> PhaseKey:
        """The key of the phase."""
        return PhaseKey(self.source.tape, self.phase)


class TapeGraph(NamedTuple):
    """The tree of one tape, with the history it shares with its origin."""

    nodes: dict[PhaseKey, PhaseNode]
    heads: tuple[Head, ...]
    """The head of each readable branch, oldest branch first."""
    reached: dict[PhaseKey, int]
    """Offset up to which paths of branches use each phase: later entries were undone."""
    damage: tuple[str, ...]


class PhaseRun(NamedTuple):
    """A run of entries in a phase without a fork: the bytes from `start` up to `end`."""

    node: PhaseNode
    start: int
    end: int
    parent: int | None
    """Number of the run it is forked from or continues."""
    undone: bool
    """No branch includes it any more."""
    merged: int | None = None
    """Number of the run that ends with what this one begins with a merge of."""


def read_graph(tape: Tape) -> TapeGraph:
    """Return the tree of a tape; raise NewerFormat where a later version wrote a part of it."""
    refs = tape.refs()
    damage: list[str] = []
    nodes: dict[PhaseKey, PhaseNode] = {}
    committed = refs.phases()
    for name in tape.phases.names():
        if name in committed:
            _add_phase_chain(tape, name, nodes, damage)
    if ORIGIN in committed:
        _add_phase_chain(tape, ORIGIN, nodes, damage)
    heads: list[Head] = []
    for branch in refs.branches:
        try:
            heads.append(find_head(refs, tape.phases, branch))
        except READ_ERRORS as error:
            damage.append(f"branch {branch}: {error}")
    reached: dict[PhaseKey, int] = {}
    for head in heads:
        joint: ForkPoint | None = ForkPoint(PhaseKey(tape.id, head.phase), head.end)
        while joint is not None and joint.key in nodes and joint.end > reached.get(joint.key, 0):
            known = joint.key in reached
            reached[joint.key] = joint.end
            joint = None if known else nodes[joint.key].base
    return TapeGraph(nodes, tuple(heads), reached, tuple(damage))


def _add_phase_chain(
    tape: Tape, phase: str, nodes: dict[PhaseKey, PhaseNode], damage: list[str]
) -> None:
    """Add a phase and its base phases, up to one that is known."""
    owner: Tape | None = tape
    end: int | None = None
    while owner is not None:
        key = PhaseKey(owner.id, phase)
        known = nodes.get(key)
        if known is not None and (end is None or end <= known.end):
            return
        try:
            node, base = _read_phase_node(owner, phase, end)
        except READ_ERRORS as error:
            damage.append(f"{phase}: {error}")
            return
        nodes[key] = node
        if base is None:
            return
        try:
            owner, head = _find_phase_base(owner, base)
        except READ_ERRORS as error:
            damage.append(f"{phase}: its base cannot be read: {error}")
            return
        joint = ForkPoint(PhaseKey(owner.id, head.phase), head.end)
        nodes[key] = node._replace(base=joint)
        phase, end = head.phase, None if owner is tape else head.end


def _read_phase_node(owner: Tape, phase: str, end: int | None) -> tuple[PhaseNode, Place | None]:
    """Return a phase up to `end`, or whole, and the place of its base."""
    first = owner.phases.first(phase, describe_missing_blob)
    if first is None:
        raise Damaged("it has no first entry", file=phase, offset=0)
    if phase == ORIGIN:
        require_root(owner.source)
    with owner.phases.open(phase) as file:
        header = read_header(file.line_at(0))
        if end is None:
            tail = file.tail()
            last, end = tail.header or header, tail.end
        else:
            _, line = next(file.read_lines_back(end))
            last = read_header(line)
    branch = getattr(first.data, "branch", None)
    name = branch if isinstance(branch, str) else None
    base = None if phase == ORIGIN else read_base(first)
    merged = first.data.merged if isinstance(first.data, Anchor) and phase != ORIGIN else None
    return PhaseNode(owner.source, phase, name, header, last, end, None, merged), base


def _find_phase_base(owner: Tape, base: Place) -> tuple[Tape, Head]:
    """Return the base entry of a phase, and the tape it is read from."""
    if base.tape in (None, owner.id):
        return owner, read_head_at(owner.phases, "", base.phase, base.offset, base.entry)
    if owner.phases.has_origin:
        end = find_origin_end(owner.source, base)
        with owner.phases.open(ORIGIN) as file:
            offset, _ = next(file.read_lines_back(end))
        return owner, read_head_at(owner.phases, "", ORIGIN, offset, base.entry)
    origin = owner.origin()
    if origin is None:
        raise NotFound(f"the tape it was forked from ({base.tape}) is not in the store")
    return origin, read_head_at(origin.phases, "", base.phase, base.offset, base.entry)


def split_runs(tree: TapeGraph) -> list[PhaseRun]:
    """Return the phases split at forks, at what was merged, and where undone entries begin."""
    cuts = {key: {node.end, tree.reached.get(key, 0)} - {0} for key, node in tree.nodes.items()}
    merged: dict[PhaseKey, ForkPoint] = {}
    for key, node in tree.nodes.items():
        if node.base is not None and node.base.key in cuts:
            cuts[node.base.key].add(node.base.end)
        if node.merged is not None and key in tree.reached:  # an undone merge joins nothing
            joint = _find_merged_entry(tree, key.tape, node.merged)
            if joint is not None and joint.key != key:
                merged[key] = joint
                cuts[joint.key].add(joint.end)
    pieces: list[tuple[PhaseNode, int, int, bool]] = []
    number: dict[ForkPoint, int] = {}
    for key, node in tree.nodes.items():
        start = 0
        for end in sorted(cuts[key]):
            number[ForkPoint(key, end)] = len(pieces)
            pieces.append((node, start, end, end > tree.reached.get(key, 0)))
            start = end
    runs = []
    for node, start, end, undone in pieces:
        joint = ForkPoint(node.key, start) if start else node.base
        other = None if start else merged.get(node.key)
        parent, second = (number.get(place) if place else None for place in (joint, other))
        runs.append(PhaseRun(node, start, end, parent, undone, second))
    return runs


def _find_merged_entry(tree: TapeGraph, tape: str, merged: MergedBranch) -> ForkPoint | None:
    """Return where the newest entry of a merged branch is; None if it is not in the tree.

    Usually it is the last of a phase or a head, else the phases of the branch are searched.
    """
    for head in tree.heads:
        if head.entry == merged.entry and PhaseKey(tape, head.phase) in tree.nodes:
            return ForkPoint(PhaseKey(tape, head.phase), head.end)
    for key, node in tree.nodes.items():
        if node.last.id == merged.entry:
            return ForkPoint(key, node.end)
    start = encode_id_prefix(merged.entry)
    for key, node in tree.nodes.items():
        if key.tape == tape and node.branch == merged.branch:
            with node.source.phases.open(node.phase) as file:
                for offset, line in file.read_lines_back(node.end):
                    if line.startswith(start):
                        return ForkPoint(key, offset + len(line) + 1)
    return None


def order_newest_first(runs: list[PhaseRun]) -> Iterator[int]:
    """Yield the numbers of runs, what is forked from one or merged it before it, newest tip first.

    All children of a fork are together, the one with the newest tip first: so a drawing needs no
    more lanes than the depth of nested forks, and one for each merge.
    """
    children: dict[int | None, list[int]] = {}
    mergers: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        children.setdefault(run.parent, []).append(number)
        if run.merged is not None:
            mergers.setdefault(run.merged, []).append(number)
    roots = children.pop(None, [])
    order = [*roots]
    for number in order:
        order += children.get(number, [])
    newest: dict[int, str] = {}
    for number in reversed(order):
        tips = [newest[child] for child in children.get(number, [])]
        newest[number] = max(tips, default=runs[number].node.last.time)
    ready = sorted(roots, key=newest.__getitem__)
    opened: set[int] = set()
    drawn: set[int] = set()
    while ready:
        number = ready[-1]
        if number in opened or number not in newest:
            ready.pop()
            if number in newest and number not in drawn:
                drawn.add(number)
                yield number
            continue
        opened.add(number)
        later = [*children.get(number, []), *mergers.get(number, [])]
        ready += sorted(
            (number for number in later if number in newest and number not in opened),
            key=newest.__getitem__,
        )


CellRow = list["GraphCell"]


class GraphCell(NamedTuple):
    """One column of a drawing: its character, and the number of the lane it belongs to."""

    char: str
    lane: int


BLANK_CELL = GraphCell(" ", -1)


class _Lane(NamedTuple):
    waits_for: int
    number: int


class GraphLanes:
    """The open lanes, from left to right; fed with runs, what is forked from one before it."""

    def __init__(self) -> None:
        self._open: list[_Lane] = []
        self._count = 0

    def begin(self, run: int) -> int:
        """Return the column of a run: of the lane that waits for it, else a new one."""
        for column, lane in enumerate(self._open):
            if lane.waits_for == run:
                return column
        self._open.append(_Lane(run, self._count))
        self._count += 1
        return len(self._open) - 1

    def draw_row(self, column: int, mark: str) -> CellRow:
        """Return the row of one entry: `mark` in its column, a line in every other."""
        row = self._draw_lines(len(self._open))
        row[2 * column] = GraphCell(mark, self._open[column].number)
        return row

    def add_merge_line(self, column: int, run: int) -> list[CellRow]:
        """Begin a line from a column's row to another run that is drawn later; return its rows."""
        twin = next((at for at, lane in enumerate(self._open) if lane.waits_for == run), None)
        new = _Lane(run, self._count)
        self._count += 1
        beyond = self._open[column + 1 :]
        row = [*self._draw_lines(column + 1)[:-1], GraphCell("\\", new.number)]
        row += [cell for lane in beyond for cell in (BLANK_CELL, GraphCell("\\", lane.number))]
        self._open.insert(column + 1, new)
        if twin is None:
            return [row]
        left, right = sorted((column + 1, twin if twin <= column else twin + 1))
        return [row, *self._join_lanes(left, right)]

    def end(self, column: int, parent: int | None) -> list[CellRow]:
        """End the run in a column, continuing at its parent; return the rows this takes."""
        if parent is None:
            row = self._draw_lines(column) + self._draw_left_shift(column)
            del self._open[column]
            return [row] if column < len(self._open) else []
        twin = next((at for at, lane in enumerate(self._open) if lane.waits_for == parent), None)
        self._open[column] = self._open[column]._replace(waits_for=parent)
        return [] if twin is None else self._join_lanes(*sorted((twin, column)))

    def _join_lanes(self, left: int, right: int) -> list[CellRow]:
        """Join the lane `right` into `left`, those beyond move left; return the rows this takes."""
        lane = self._open[right].number
        first = self._draw_lines(right)
        for between in range(left + 1, right - 1):
            first[2 * between + 1] = GraphCell("_", lane)
        first[2 * right - 1] = GraphCell("/", lane)
        first += self._draw_left_shift(right)
        del self._open[right]
        if right == left + 1:
            return [first]
        second = self._draw_lines(len(self._open))
        second[2 * left + 1] = GraphCell("/", lane)
        return [first, second]

    def _draw_lines(self, count: int) -> CellRow:
        """Return the lines of the leftmost lanes, each with the space after it."""
        return [
            cell
            for lane in self._open[:count]
            for cell in (GraphCell("|", lane.number), BLANK_CELL)
        ]

    def _draw_left_shift(self, column: int) -> CellRow:
        """Return the cells in which the lanes right of a column move left by one."""
        beyond = self._open[column + 1 :]
        return [cell for lane in beyond for cell in (BLANK_CELL, GraphCell("/", lane.number))]
