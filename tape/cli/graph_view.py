"""`log --graph`: all branches of a tape, drawn as `git log --graph` draws them.

Memory use is constant: the runs between two forks are read one after the other, backwards.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..history.entry_lines import decode_legible, iter_lines
from ..history.graph import GraphLanes, order_newest_first, read_graph, split_runs
from ..model.line import describe_blob_head, read_header, read_id, read_type
from ..render.entries import render_entry_line
from ..store.path import Segment
from ..text import SHORT, measure_width, to_single_line
from .log_view import LogFilter
from .terminal import can_colour, get_columns, style_text, warn_of_left_out_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..history.entry_lines import DecodedLine
    from ..history.graph import CellRow, PhaseNode, PhaseRun, TapeGraph
    from ..store.refs import Refs
    from ..store.tape import Tape

LANE_COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
"""Colours of the lanes, in turn."""
_FOLDED_TYPES = frozenset({"start", "branch", "anchor", "user"})
"""Entry types that a folded graph lists."""


class EntryFilter(NamedTuple):
    """Which entries are listed; entries with a branch or label always are."""

    choice: LogFilter = LogFilter()
    fold: bool = False
    """List only prompts and first entries of phases, unless types are given, and count the rest."""

    def is_listed(self, line: bytes) -> bool:
        """Return whether the entry of a verified line is listed."""
        if self.fold and not self.choice.types:
            return self.choice._replace(types=_FOLDED_TYPES).is_shown(line)
        return self.choice.is_shown(line)


class GraphRow(NamedTuple):
    """One line of a graph; `entry` is False for lines between entries."""

    row: CellRow
    text: str = ""
    entry: bool = False


class EntryPoint(Struct, frozen=True):
    """An entry that a phase begins or ends with."""

    entry: str
    n: int
    time: str
    type: str


class BranchTip(Struct, frozen=True):
    """The head of a branch."""

    branch: str
    phase: str
    entry: str
    n: int
    time: str
    pinned: bool


class PhaseBase(Struct, frozen=True):
    """The entry a phase grows from."""

    tape: str
    phase: str
    entry: str | None


class PhaseExtent(Struct, frozen=True):
    """One phase; `undone` of its `entries` are on no branch, its last ones."""

    tape: str
    phase: str
    branch: str | None
    base: PhaseBase | None
    first: EntryPoint
    last: EntryPoint
    entries: int
    undone: int


class TapeTree(Struct, frozen=True):
    """A tape's tree as `log --graph --json` prints it."""

    tape: str
    current: str
    branches: tuple[BranchTip, ...]
    phases: tuple[PhaseExtent, ...]
    labels: dict[str, str]
    damage: tuple[str, ...]


def build_tree(tape: Tape) -> TapeTree:
    """Return the branches and phases of a tape, with the history it shares with its origin."""
    tree, refs = read_graph(tape), tape.refs()
    heads = tuple(
        BranchTip(head.branch, head.phase, head.entry, head.header.n, head.header.time, head.pinned)
        for head in tree.heads
    )
    phases = tuple(_build_phase(tree, node) for node in tree.nodes.values())
    return TapeTree(tape.id, refs.current, heads, phases, dict(refs.labels), tree.damage)


def _build_phase(tree: TapeGraph, node: PhaseNode) -> PhaseExtent:
    """Return the extent of a phase; its undone entries lie behind the last byte a head reaches."""
    first, last, end = node.first, node.last, tree.reached.get(node.key, 0)
    depth = last.n if end else first.n - 1
    if 0 < end < node.end:
        with node.source.phases.open(node.phase) as file:
            _, line = next(file.read_lines_back(end))
        depth = read_header(line).n
    return PhaseExtent(
        node.key.tape,
        node.key.phase,
        node.branch,
        node.base and PhaseBase(*node.base.key, first.parent_id),
        EntryPoint(first.id, first.n, first.time, first.type),
        EntryPoint(last.id, last.n, last.time, last.type),
        entries=last.n - first.n + 1,
        undone=last.n - depth,
    )


def draw_tree(tape: Tape, choice: EntryFilter, newest: int | None = None) -> Iterator[str]:
    """Yield a tape's tree as lines of text, newest entry first; at most `newest` entries.

    Damaged entries are left out with a warning.
    """
    tree, refs = read_graph(tape), tape.refs()
    for text in tree.damage:
        warn_of_left_out_part(text)
    wide, paints = get_columns(), can_colour()
    style = _EntryStyle(_collect_names(tape, tree, refs), choice, wide)
    left = newest
    for drawn in _draw_rows(tree, style):
        if drawn.entry and left is not None:
            if left == 0:
                return
            left -= 1
        lanes = (
            style_text(cell.char, fg=LANE_COLOURS[cell.lane % len(LANE_COLOURS)])
            if paints and cell.char not in " *o#"
            else cell.char
            for cell in drawn.row
        )
        yield f"{''.join(lanes)}{drawn.text}".rstrip()


def _collect_names(tape: Tape, tree: TapeGraph, refs: Refs) -> dict[str, list[str]]:
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


class _EntryStyle(NamedTuple):
    """The options and facts that decide how an entry is listed."""

    names: dict[str, list[str]]
    choice: EntryFilter
    wide: int


def _draw_rows(tree: TapeGraph, style: _EntryStyle) -> Iterator[GraphRow]:
    """Yield the runs, newest first, each in a lane that ends where the run it grew from begins."""
    runs = split_runs(tree)
    lanes = GraphLanes()
    for number in order_newest_first(runs):
        column = lanes.begin(number)
        run = runs[number]
        yield from _draw_stretch(run, lanes, column, style)
        if run.merged is not None:
            yield from map(GraphRow, lanes.add_merge_line(column, run.merged))
        yield from map(GraphRow, lanes.end(column, run.parent))


def _draw_stretch(
    stretch: PhaseRun, lanes: GraphLanes, column: int, listing: _EntryStyle
) -> Iterator[GraphRow]:
    """Yield the entries of a run, newest first, and a count of those that are not listed."""
    passed: Counter[str] = Counter()
    undone = "undone" if stretch.undone else ""
    counted, tip = lanes.draw_row(column, ":"), [undone] * (stretch.end == stretch.node.end)
    node = stretch.node
    whole = Segment(node.source, node.phase, stretch.end, stretch.start)
    for line in iter_lines([whole], back=True):
        kind, names = read_type(line.line), listing.names.get(read_id(line.line), [])
        if not names and not listing.choice.is_listed(line.line):
            passed[kind] += 1
            continue
        for step in decode_legible([line], describe_blob_head):
            yield from _draw_folded_count(passed, counted, listing.choice, undone)
            row = lanes.draw_row(column, "o" if undone else "#" if kind == "anchor" else "*")
            room = listing.wide - len(row)
            labels = [*names, *filter(None, tip)]
            yield GraphRow(row, _draw_entry(step, labels, room, undone=stretch.undone), entry=True)
            tip = []
    yield from _draw_folded_count(passed, counted, listing.choice, undone)


def _draw_folded_count(
    passed: Counter[str], row: CellRow, choice: EntryFilter, undone: str
) -> Iterator[GraphRow]:
    """Yield a count of the skipped entries, and reset it."""
    if passed and choice.fold:
        kinds = ", ".join(f"{count} {kind}" for kind, count in passed.most_common())
        yield GraphRow(row, style_text(f"{passed.total()} {undone or 'more'}: {kinds}", dim=True))
    passed.clear()


def _draw_entry(step: DecodedLine, names: list[str], wide: int, *, undone: bool) -> str:
    """Return an entry on one line, its names in brackets after its id."""
    brackets = to_single_line(f"({', '.join(names)})") if names else ""
    text = render_entry_line(step.entry, wide - measure_width(brackets) - 1)
    identity, rest = text[:SHORT], text[SHORT + 1 :]
    if undone:
        return style_text(f"{identity} {brackets}{' ' * bool(brackets)}{rest}", dim=True)
    rest = style_text(rest, bold=True) if step.entry.type == "anchor" else rest
    brackets = style_text(brackets, fg="green", bold=True) + " " if brackets else ""
    return f"{style_text(identity, fg='yellow')} {brackets}{rest}"
