"""`stats`: tokens, cost, tools and time, by tape, branch, model, day or tool."""

from __future__ import annotations

import os
import sys
from datetime import date
from typing import TYPE_CHECKING, cast

import click

from ..clock import format_timestamp, read_clock, render_time
from ..index.stats import StatsFilter, compute_caught_up, compute_statistics
from ..index.tape_filter import FACTS
from ..text import SHORT, format_count, measure_width, shorten_to_width
from .environment import find_store_home
from .output import as_json, format_examples, ref
from .tape_facts import choose_by_facts
from .terminal import (
    format_table,
    get_columns,
    print_json_text,
    print_lines,
    print_warning,
    strip_style,
    style_text,
)
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..index.stats import By, StatsRow
    from ..index.tape_filter import TapeFilter
    from .group import GlobalOptions


CHART_DAYS = 14
"""Days shown in the chart."""
_MAX_GAP = 60
"""Longest gap of days without a call that is shown day by day."""
_NAME_COLUMNS = 44
"""Columns for the name of a row."""
_HEADINGS = ("TOKENS", "INPUT", "OUTPUT", "CACHED", "COST", "CALLS", "TOOLS", "FAILED")
_MIN_BAR_COLUMNS = 6
_OPTIONAL = ("CACHED", "FAILED", "TOOLS", "OUTPUT", "INPUT", "CALLS")
"""Columns that a narrow terminal leaves out, in this order."""


@click.command(
    epilog=format_examples(
        "tape stats",
        "tape stats 3f2a --by tool",
        "tape stats --by day --since 30d --model sonnet",
        "tape stats --by tape --project . --json",
        "tape stats --by person --repository .",
    )
)
@ref
@click.option(
    "--by",
    type=click.Choice(["tape", "branch", "model", "day", "tool", *FACTS]),
    help="Show one row for each; without it the totals, the models, and the last days.",
)
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@choose_by_facts
@click.option("--since", metavar="TIME", help=f"Only calls since this time: {TIME_FORMS}.")
@click.option("--until", metavar="TIME", help="Only calls before this time.")
@click.option("--model", metavar="NAME", help="Only models whose provider/name contains this.")
@as_json
@click.pass_obj
def stats(
    options: GlobalOptions,
    ref: str,
    *,
    by: str | None,
    project: str | None,
    tapes: TapeFilter,
    since: str | None,
    until: str | None,
    model: str | None,
    as_json: bool,
) -> int:
    """Show tokens, cost, tools and time of all tapes, or of the tape of REF without its origin.

    Entries that branches share count once; a tool call counts for the model that asked for it.
    Days are UTC. An unknown cost shows as `–`, or as `+` after a sum that leaves some out.

    --json prints an array of rows with --by, else {total, models, days}. A row is {its key, calls,
    input, output, reasoning, cache_read, cache_write, total, cost, unpriced, model_ms, tool_calls,
    tool_errors, tool_ms, files_changed, error_rate, first, last}; rows of tools have only the
    fields from tool_calls on.
    """
    tape = branch = None
    if ref:
        from .resolve import open_ref  # the sums of all tapes open none

        with open_ref(options, ref) as place:
            tape, branch = place.tape.id, place.branch
    filters = StatsFilter(
        tape,
        branch,
        project=os.path.abspath(project) if project else None,
        model=model,
        since=parse_moment(since, read_clock()) if since else None,
        until=parse_moment(until, read_clock()) if until else None,
        tapes=tapes,
    )
    groupings: tuple[By, ...] = (cast("By", by),) if by else ("all", "model", "day")
    tables = compute_caught_up(find_store_home(options.store), groupings, filters)
    if tables is not None:
        _print_statistics(tables, by, as_json=as_json)
        return 0
    from .resolve import open_library, warn_of_left_out

    with open_library(options) as opened:
        tables = [compute_statistics(*opened, grouping, filters) for grouping in groupings]
        _print_statistics(tables, by, as_json=as_json)
        return 0 if ref else warn_of_left_out(opened).code


def _print_statistics(tables: list[list[StatsRow]], by: str | None, *, as_json: bool) -> None:
    """Print one table, or the overview without `by`."""
    if by is None:
        _print_overview(*tables, as_json=as_json)
    elif as_json:
        print_json_text([build_row_fields(row, by) for row in tables[0]])
    else:
        print_lines(format_stats(tables[0], by))
    if not tables[0] and not as_json:
        print_warning("nothing to count: no model or tool calls found")


def _print_overview(
    total: list[StatsRow], models: list[StatsRow], days: list[StatsRow], *, as_json: bool
) -> None:
    """Print the totals, the models and the last days.

    The last days count from the newest one that is not in the future, so that an entry with a wrong
    clock does not hide the others.
    """
    if days:
        names = [day.key or "" for day in days]
        today = format_timestamp(read_clock())[:10]
        newest = max((name for name in names if name <= today), default=names[-1])
        past = date.fromisoformat(newest).toordinal() - (CHART_DAYS - 1)
        first = date.fromordinal(max(past, 1)).isoformat()
        days = [day for day in days if (day.key or "") >= first]
    if as_json:
        print_json_text(
            {
                "total": build_row_fields(total[0], "all") if total else None,
                "models": [build_row_fields(row, "model") for row in models],
                "days": [build_row_fields(row, "day") for row in days],
            }
        )
    elif total:
        print_lines(format_totals(total[0]))
        print_lines(["", *format_stats(models, "model"), "", *format_stats(days, "day")])


def build_row_fields(row: StatsRow, by: str) -> dict[str, object]:
    """Return a row as `--json` prints it."""
    names: dict[str, object] = {} if by in ("all", "branch") else {by: row.key}
    if by == "branch":
        names = {"tape": row.key, "branch": row.branch}
    if by in ("tape", "branch"):
        names["title"] = row.title
    spent = {} if by == "tool" else row.spent._asdict()
    ran = {**row.ran._asdict(), "error_rate": row.ran.error_rate}
    return {**names, **spent, **ran, "first": row.first, "last": row.last}


def format_totals(row: StatsRow) -> list[str]:
    """Return the totals as lines of text."""
    spent, ran = row.spent, row.ran
    kinds = ("input", "output", "reasoning", "cache_read", "cache_write")
    tokens = (f"{kind.replace('_', ' ')} {format_tokens(getattr(spent, kind))}" for kind in kinds)
    unknown = f" ({format_count(spent.unpriced, 'call')} unknown)" if spent.unpriced else ""
    errors = f", {ran.tool_errors} failed ({_format_error_rate(row)})" if ran.tool_errors else ""
    facts = [
        ("tokens", f"{format_tokens(spent.total)}: {', '.join(tokens)}"),
        ("cost", f"{format_cost(row)}{unknown}"),
        ("models", f"{format_count(spent.calls, 'call')}, {_format_duration(spent.model_ms)}"),
        (
            "tools",
            f"{format_count(ran.tool_calls, 'call')}, {_format_duration(ran.tool_ms)}{errors}",
        ),
        *([("files", f"{ran.files_changed} changed")] if ran.files_changed else []),
        ("time", f"{render_time(row.first)[:16]} to {render_time(row.last)[:16]}"),
    ]
    return format_table(facts)


def format_stats(rows: list[StatsRow], by: str) -> list[str]:
    """Return rows as a table; on a terminal, days have a bar of their tokens."""
    if not rows:
        return []
    if by == "tool":
        tools = [
            (
                _format_row_name(row, by),
                str(row.ran.tool_calls),
                str(row.ran.tool_errors),
                _format_error_rate(row),
                _format_duration(row.ran.tool_ms),
            )
            for row in rows
        ]
        headings = ("TOOL", "CALLS", "FAILED", "RATE", "TIME")
        optional = ("TIME", "RATE", "FAILED")
        return format_table(tools, range(1, 5), headings=headings, optional=optional)
    heading = (by.upper(), *_HEADINGS)
    if by == "day" and sys.stdout.isatty():
        return _draw_day_chart(heading, rows)
    cells = [_format_stats_row(row, by) for row in rows]
    return format_table(cells, range(1, len(heading)), headings=heading, optional=_OPTIONAL)


def _format_stats_row(row: StatsRow, by: str) -> tuple[str, ...]:
    spent, ran = row.spent, row.ran
    return (
        _format_row_name(row, by),
        format_tokens(spent.total),
        format_tokens(spent.input),
        format_tokens(spent.output),
        format_tokens(spent.cache_read),
        format_cost(row),
        str(spent.calls),
        str(ran.tool_calls),
        _format_error_rate(row),
    )


def _format_row_name(row: StatsRow, by: str) -> str:
    if by not in ("tape", "branch"):
        return shorten_to_width(row.key or "–", _NAME_COLUMNS)
    branch = f":{row.branch or '?'}" if by == "branch" else ""
    return shorten_to_width(f"{(row.key or '')[:SHORT]}{branch}  {row.title or ''}", _NAME_COLUMNS)


_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"


def draw_bar(value: float, largest: float, columns: int) -> str:
    """Return a bar of `value` out of `largest`, scaled to `columns`.

    A value above 0 shows at least an eighth of a column.
    """
    if value <= 0 or largest <= 0:
        return ""
    eighths = max(round(8 * columns * min(value / largest, 1.0)), 1)
    return (_FULL * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _draw_day_chart(heading: tuple[str, ...], days: list[StatsRow]) -> list[str]:
    """Return a row for every day from the first to the last, with a bar if there is room.

    A gap of many days, as a wrong clock causes, is one row.
    """
    there = {day.key: day for day in days}
    names = list(_fill_gaps([day.key or "" for day in days]))
    empty = ("",) * len(_HEADINGS)
    cells = [
        _format_stats_row(there[key], "day") if key in there else (key, *empty) for key in names
    ]
    table = format_table(cells, range(1, len(heading)), headings=heading, optional=_OPTIONAL)
    widths = [measure_width(strip_style(line)) for line in table]
    wide = max(widths)
    totals = [(there[key].spent.total or 0) if key in there else 0 for key in names]
    room = get_columns() - wide - 2
    if room < _MIN_BAR_COLUMNS:
        return table
    bars = ["", *(draw_bar(total, max(totals), room) for total in totals)]
    return [
        f"{line}{' ' * (wide - width + 2)}{style_text(drawn, fg='green')}".rstrip()
        for line, width, drawn in zip(table, widths, bars, strict=True)
    ]


def _fill_gaps(days: list[str]) -> Iterator[str]:
    """Yield the days and those between them; `…` replaces a long gap."""
    before: int | None = None
    for day in days:
        this = date.fromisoformat(day).toordinal()
        if before is not None and this - before > _MAX_GAP:
            yield "…"
        elif before is not None:
            yield from (date.fromordinal(at).isoformat() for at in range(before + 1, this))
        yield day
        before = this


def format_tokens(count: int | None) -> str:
    """Return a number of tokens with its unit (k, M, G); `–` if unknown."""
    if count is None:
        return "–"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 10 * size or (unit != "k" and count >= size):
            return f"{count / size:.1f}{unit}"
    return str(count)


def format_cost(row: StatsRow) -> str:
    """Return a cost in dollars; `+` marks calls of unknown cost, `–` means that all are unknown."""
    amount = row.spent.cost
    if amount is None:
        return "–"
    return f"${amount:.2f}{'+' * bool(row.spent.unpriced)}"


def _format_error_rate(row: StatsRow) -> str:
    rate = row.ran.error_rate
    return "–" if rate is None else f"{100 * rate:.0f}%"


def _format_duration(milliseconds: int | None) -> str:
    """Return a duration with its unit."""
    if milliseconds is None:
        return "–"
    seconds = milliseconds / 1000
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
