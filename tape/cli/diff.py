"""`diff`: where two branches diverge, and what each did since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..clock import parse_timestamp, render_time
from ..errors import UsageError
from ..history.comparison import compare_places, describe_ops, format_span
from ..places.reference import split_range
from ..render.entries import render_entry_line
from ..text import SHORT, format_count, shorten_to_width, to_single_line
from .output import as_json, complete_ref, format_examples, print_json
from .resolve import open_entry, open_second_entry
from .terminal import format_table, get_columns, print_lines, print_warning, style_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..history.activity import Activity
    from ..history.comparison import BranchComparison, BranchSide, DiffReport
    from ..model.entries import Cost
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
        "tape diff :try-redis", "tape diff 3f2a:main 3f2a:try-redis --files", "tape diff 3f2a 9c1b"
    )
)
@click.argument("a", default="", metavar="REF", shell_complete=complete_ref)
@click.argument("b", default="", metavar="[REF]", shell_complete=complete_ref)
@click.option(
    "--files", "only_files", is_flag=True, help="Show only the files that each side changed."
)
@as_json
@click.pass_obj
def diff(options: GlobalOptions, a: str, b: str, only_files: bool, as_json: bool) -> None:
    """Show how two branches differ: their common entry, and what each side did since.

    Shows prompts and their answers, tools, changed files, models, tokens and cost. A single REF is
    compared with the current branch of its tape; a second REF that names no tape means the same
    tape. REF..REF2 is the same as REF REF2. Tapes that share an origin can be compared as well.

    Files are those that results recorded as changed, also by commands; of calls without a record,
    those that write, edit and apply_patch name. `tape files` shows what is left of the changes.
    --json prints {base: {tape, phase, entry, n, time, type}, a: {tape, branch, entry, n,
    since}, b: …, both}; base is null where the two have no common entry.
    """
    if not a:
        raise UsageError(
            "name what to compare: `tape diff BRANCH`, or `tape diff REF REF2`; `tape branches` "
            "lists the branches, `tape files` what this one changed"
        )
    if not b:
        a, b = split_range(a) or (a, b)
    with open_entry(options, a) as first, open_second_entry(options, first, b) as two:
        comparison = compare_places(first, two, print_warning)
    if as_json:
        print_json(comparison.report)
    else:
        print_lines(
            format_changed_files(comparison.report) if only_files else format_comparison(comparison)
        )


def format_comparison(comparison: BranchComparison) -> Iterator[str]:
    """Yield the lines of the report."""
    report, wide = comparison.report, get_columns()
    if report.base is None or comparison.common is None:
        yield "no common entry"
    else:
        yield f"common ancestor: entry {report.base.n}, {render_time(report.base.time)}"
        yield f"  {render_entry_line(comparison.common, wide - 2)}"
    names = _format_side_name(report.a, report.b), _format_side_name(report.b, report.a)
    for side, name, other in ((report.a, *names), (report.b, *names[::-1])):
        yield ""
        yield from _format_side(side, name, other, comparison, wide)
    if report.both:
        yield ""
        yield style_text("changed by both", bold=True)
        yield from (f"  {to_single_line(path)}" for path in report.both)


def _format_side_name(side: BranchSide, other: BranchSide) -> str:
    tape = f"{side.tape[:SHORT]}:" if side.tape != other.tape else ""
    return f"{tape}{side.branch}@{side.entry[:SHORT]}"


def _format_side(
    side: BranchSide, name: str, other: str, comparison: BranchComparison, wide: int
) -> Iterator[str]:
    since, base = side.since, comparison.report.base
    title = style_text(name, bold=True)
    if base is not None and base.entry == side.entry:
        same = comparison.report.a.entry == comparison.report.b.entry
        yield f"{title} {'is the same entry' if same else f'is an ancestor of {other}'}"
        return
    period = ""
    if since.began is not None and since.ended is not None:
        seconds = max(parse_timestamp(since.ended) - parse_timestamp(since.began), 0) // 1_000_000
        period = f", {render_time(since.began)} to {render_time(since.ended)}"
        period += f" ({format_span(seconds)})"
    yield f"{title}: {format_count(since.entries, 'entry')} since{period}"
    for exchange in since.exchanges:
        if exchange.prompt is not None:
            question = shorten_to_width(exchange.prompt.text, wide - 10)
            yield f"  {style_text('asked', fg='green')}   {question}"
        if exchange.answer is not None:
            yield f"  answer  {shorten_to_width(exchange.answer.text, wide - 10)}"
    for key, value in _list_side_facts(since):
        yield f"  {key:<7} {shorten_to_width(value, wide - 10)}"
    for use in since.files:
        yield f"  changed {to_single_line(use.path)} ({describe_ops(use.ops)})"


def _list_side_facts(since: Activity) -> Iterator[tuple[str, str]]:
    tools = []
    for tool in since.tools:
        notes = [f"{tool.failed} failed"] * bool(tool.failed)
        notes += [f"{tool.open} without a result"] * bool(tool.open)
        tools.append(f"{tool.name} {tool.calls}" + (f" ({', '.join(notes)})" if notes else ""))
    if tools:
        yield "tools", ", ".join(tools)
    for use in since.models:
        calls, tokens = format_count(use.calls, "call"), f"{use.usage.total:,} tokens"
        yield (
            "model",
            f"{use.model}: {calls}, {tokens}{_format_side_cost(use.cost)}",
        )
    if len(since.models) > 1:
        yield "sum", f"{since.usage.total:,} tokens{_format_side_cost(since.cost)}"
    for key, count in (("anchors", since.anchors), ("errors", since.errors)):
        if count:
            yield key, str(count)


def _format_side_cost(cost: Cost | None) -> str:
    return f", ${cost.amount:.2f}" if cost else ""


def format_changed_files(report: DiffReport) -> list[str]:
    """Return a line per changed file: on which side, and how."""
    names = {"a": _format_side_name(report.a, report.b), "b": _format_side_name(report.b, report.a)}
    sides = {"a": _index_by_path(report.a), "b": _index_by_path(report.b)}
    rows = [
        (
            "both" if path in report.both else names["a" if path in sides["a"] else "b"],
            to_single_line(path),
            "; ".join(describe_ops(side[path]) for side in sides.values() if path in side),
        )
        for path in sorted({*sides["a"], *sides["b"]})
    ]
    if not rows:
        print_warning("neither side changed a file")
    return format_table(rows) if rows else []


def _index_by_path(side: BranchSide) -> dict[str, dict[str, int]]:
    return {file.path: file.ops for file in side.since.files}
