"""`diff`: where two branches diverge, and what each did since."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct

from ..clock import micros, moment
from ..damage import warn_of_damage
from ..entries import Assistant, Meta, Start, ToolResult, ToolStart, User
from ..line import decode, kind_of
from ..reference import parse, render
from ..render import SHORT, beginning, fitted, oneline, single
from ..tree.deeds import Deeds, deeds
from ..tree.parting import parting, way
from .call import entry
from .out import as_json, counted, document, examples, places, say, table, warn
from .terminal import columns, style
from .walk import Line, legible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..entries import Cost
    from ..line import Entry
    from ..path import Segment
    from ..tape import Hit, Tape
    from ..tree.deeds import Exchange, ToolUse
    from ..tree.parting import Parting
    from .group import Options


_PLACES = frozenset({"start", "meta"})
"""Entry types that give the working folder from there on."""


_CALLS = frozenset({Assistant.entry_type, ToolStart.entry_type, ToolResult.entry_type})
"""Entry types that request a tool call, start it and answer it."""


class Base(Struct, frozen=True):
    """The newest common entry."""

    tape: str
    phase: str
    entry: str
    n: int
    time: str
    type: str


class Side(Struct, frozen=True):
    """A branch, and what it did since the common entry; `n` is the depth of its head."""

    tape: str
    branch: str
    entry: str
    n: int
    since: Deeds


class Report(Struct, frozen=True):
    """How two branches differ, as `diff --json` prints it."""

    base: Base | None
    a: Side
    b: Side
    both: tuple[str, ...]
    """Files that both sides changed."""


class Compared(NamedTuple):
    """How two branches differ, and their common entry."""

    report: Report
    common: Entry | None


@click.command(
    epilog=examples(
        "tape diff :try-redis", "tape diff 3f2a:main 3f2a:try-redis --files", "tape diff 3f2a 9c1b"
    )
)
@click.argument("a", metavar="REF", shell_complete=places)
@click.argument("b", default="", metavar="[REF]", shell_complete=places)
@click.option(
    "--files", "only_files", is_flag=True, help="Show only the files that each side changed."
)
@as_json
@click.pass_obj
def diff(options: Options, a: str, b: str, only_files: bool, as_json: bool) -> None:
    """Show how two branches differ: their common entry, and what each side did since.

    Shows prompts and their answers, tools, changed files, models, tokens and cost. A single REF is
    compared with the current branch of its tape; a second REF that names no tape means the same
    tape. Tapes that share an origin can be compared as well.

    Files are those that calls of write, edit and apply_patch changed, not those that shell commands
    changed. --json prints {base: {tape, phase, entry, n, time, type}, a: {tape, branch, entry, n,
    since}, b: …, both}; base is null where the two have no common entry.
    """
    with entry(options, a) as one, entry(options, _other(b, one.tape)) as two:
        found = compared(one, two)
    if as_json:
        document(found.report)
    else:
        say(file_lines(found.report) if only_files else lines(found))


def _other(text: str, tape: Tape) -> str:
    """Return the second REF, completed with the first one's tape where it names none."""
    reference = parse(text)
    return text if reference.tape else render(reference._replace(tape=tape.id))


def compared(one: Hit, two: Hit) -> Compared:
    """Return how two entries' paths differ; damaged entries are left out with a warning."""
    parted = parting(way(*one), way(*two))
    for text in parted.broken:
        warn(f"{text}; what lies before it is not compared")
    begun = _Begun(_cwd(parted.common), _open_calls(parted.common))
    a, b = _side(one, parted.a, begun), _side(two, parted.b, begun)
    both = sorted({file.path for file in a.since.files} & {file.path for file in b.since.files})
    base, common = _base(parted)
    return Compared(Report(base, a, b, tuple(both)), common)


class _Begun(NamedTuple):
    """What both sides start from: the working folder, and entries with calls they may answer."""

    cwd: str
    before: list[Entry]


def _side(hit: Hit, since: Sequence[Segment], begun: _Begun) -> Side:
    tape, head = hit
    read = (step.entry for step in legible(_lines(since), beginning))
    return Side(tape.id, head.branch, head.entry, head.header.n, deeds(read, *begun))


def _open_calls(common: Sequence[Segment]) -> list[Entry]:
    """Return the newest answer of a path and the results of its calls."""
    found: list[Entry] = []
    for line in _back(common):
        kind = kind_of(line.line)
        if kind in _CALLS:
            found[:0] = [step.entry for step in legible([line], beginning)]
        if kind in {Assistant.entry_type, User.entry_type}:
            break
    return found


def _back(segments: Sequence[Segment]) -> Iterator[Line]:
    for segment in reversed(segments):
        for offset, line in segment.checked_back(warn_of_damage):
            yield Line(segment.source, segment.phase, offset, line)


def _lines(segments: Sequence[Segment]) -> Iterator[Line]:
    for segment in segments:
        for offset, line in segment.checked_lines(warn_of_damage):
            yield Line(segment.source, segment.phase, offset, line)


def _base(parted: Parting) -> tuple[Base | None, Entry | None]:
    head, source = parted.base, parted.source
    if head is None or source is None:
        return None, None
    at = head.header
    with source.phases.open(head.phase) as file:
        common = decode(file.line_at(head.offset), beginning)
    return Base(source.tape, head.phase, at.id, at.n, at.time, at.type), common


def _cwd(common: Sequence[Segment]) -> str:
    """Return the working folder at the end of a path, "" where it is unknown."""
    cwd = ""
    for step in legible(_lines(common), beginning, _PLACES):
        if isinstance(step.entry.data, Start | Meta):
            cwd = step.entry.data.cwd or cwd
    return cwd


def lines(found: Compared) -> Iterator[str]:
    """Yield the lines of the report."""
    report, wide = found.report, columns()
    if report.base is None or found.common is None:
        yield "no common entry"
    else:
        yield f"common ancestor: entry {report.base.n}, {moment(report.base.time)}"
        yield f"  {oneline(found.common, wide - 2)}"
    names = _name(report.a, report.b), _name(report.b, report.a)
    for side, name, other in ((report.a, *names), (report.b, *names[::-1])):
        yield ""
        yield from _side_lines(side, name, other, found, wide)
    if report.both:
        yield ""
        yield style("changed by both", bold=True)
        yield from (f"  {single(path)}" for path in report.both)


def _name(side: Side, other: Side) -> str:
    tape = f"{side.tape[:SHORT]}:" if side.tape != other.tape else ""
    return f"{tape}{side.branch}@{side.entry[:SHORT]}"


def _side_lines(side: Side, name: str, other: str, found: Compared, wide: int) -> Iterator[str]:
    since, base = side.since, found.report.base
    title = style(name, bold=True)
    if base is not None and base.entry == side.entry:
        report = found.report
        same = report.a.entry == report.b.entry
        yield f"{title} {'is the same entry' if same else f'is an ancestor of {other}'}"
        return
    yield f"{title}: {counted(since.entries, 'entry')} since{_when(since)}"
    for exchange in since.exchanges:
        yield from _exchange(exchange, wide)
    yield from (f"  {key:<7} {fitted(value, wide - 10)}" for key, value in _facts(since))
    for use in since.files:
        yield f"  changed {single(use.path)} ({_ops(use.ops)})"


def _when(since: Deeds) -> str:
    if since.began is None or since.ended is None:
        return ""
    seconds = max(micros(since.ended) - micros(since.began), 0) // 1_000_000
    return f", {moment(since.began)} to {moment(since.ended)} ({span(seconds)})"


def span(seconds: int) -> str:
    """Return a duration in its two largest units."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    largest = next((at for at, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[largest : largest + 2])


def _exchange(exchange: Exchange, wide: int) -> Iterator[str]:
    if exchange.prompt is not None:
        yield f"  {style('asked', fg='green')}   {fitted(exchange.prompt.text, wide - 10)}"
    if exchange.answer is not None:
        yield f"  answer  {fitted(exchange.answer.text, wide - 10)}"


def _facts(since: Deeds) -> Iterator[tuple[str, str]]:
    if since.tools:
        yield "tools", ", ".join(map(_tool, since.tools))
    for use in since.models:
        tokens = f"{use.usage.total:,} tokens"
        yield "model", f"{use.model}: {counted(use.calls, 'call')}, {tokens}{_money(use.cost)}"
    if len(since.models) > 1:
        yield "sum", f"{since.usage.total:,} tokens{_money(since.cost)}"
    for key, count in (("anchors", since.anchors), ("errors", since.errors)):
        if count:
            yield key, str(count)


def _tool(use: ToolUse) -> str:
    notes = [f"{use.failed} failed"] * bool(use.failed)
    notes += [f"{use.open} without a result"] * bool(use.open)
    return f"{use.name} {use.calls}" + (f" ({', '.join(notes)})" if notes else "")


def _money(cost: Cost | None) -> str:
    return f", ${cost.amount:.2f}" if cost else ""


def _ops(ops: dict[str, int]) -> str:
    return ", ".join(counted(count, op) for op, count in ops.items())


def file_lines(report: Report) -> list[str]:
    """Return a line per changed file: on which side, and how."""
    names = {"a": _name(report.a, report.b), "b": _name(report.b, report.a)}
    sides = {"a": _by_path(report.a), "b": _by_path(report.b)}
    rows = [
        (
            "both" if path in report.both else names["a" if path in sides["a"] else "b"],
            single(path),
            "; ".join(_ops(side[path]) for side in sides.values() if path in side),
        )
        for path in sorted({*sides["a"], *sides["b"]})
    ]
    if not rows:
        warn("neither side changed a file by its tool calls")
    return table(rows) if rows else []


def _by_path(side: Side) -> dict[str, dict[str, int]]:
    return {file.path: file.ops for file in side.since.files}
