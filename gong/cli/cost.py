"""`gong cost`: tokens and cost of a session, in total or by call, turn, branch, provider, day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tape.cli.group import GlobalOptions
from tape.cli.output import as_json, format_examples, print_json, ref
from tape.cli.resolve import open_ref
from tape.cli.tape_facts import choose_by_facts
from tape.cli.terminal import format_table, print_lines
from tape.index.stats import StatsFilter, compute_statistics, list_unpriced_calls
from tape.index.tape_filter import EVERY_TAPE
from tape.model.entries import Usage
from tape.remote.opening import open_store
from tape.store.store import Store
from tape.text import SHORT, shorten_to_width

from ..context.agent_calls import add_agent_calls
from ..context.costs import (
    COST_GROUPINGS,
    CostOrigin,
    CostReport,
    CostRow,
    Spend,
    encode_spend,
    format_cost,
    format_unknown_calls,
    render_token_usage,
    suggest_savings,
)
from ..context.handoff import read_path_entries, read_tape_entries
from ..errors import ConfigurationError
from .call_prices import CallPrices
from .options import load_settings, locate_store, print_warning, report_skipped, store_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tape.index.stats import By as Grouped
    from tape.index.tape_filter import TapeFilter

    from ..context.costs import CostGrouping
    from ..llm.models import ModelInfo

_COST_HEADINGS = ("TOKENS", "INPUT", "OUTPUT", "CACHED", "CALLS", "COST")
_OPTIONAL = ("CACHED", "CALLS", "OUTPUT", "INPUT")
"""Columns that a narrow terminal leaves out, in this order."""
_LABEL_COLUMNS = 44
_PATH_GROUPINGS = ("call", "turn")
_INDEX_GROUPINGS: dict[CostGrouping, Grouped] = {
    "tape": "tape",
    "branch": "branch",
    "provider": "model",
    "day": "day",
}
"""The groupings that the index can answer."""


@click.command(
    epilog=format_examples(
        "gong cost", "gong cost 3f2a --by turn", "gong cost --by day --all", "gong cost --json"
    )
)
@ref
@click.option(
    "--by", type=click.Choice(COST_GROUPINGS), help="Print one row for each, and the total."
)
@click.option("--all", "all_tapes", is_flag=True, help="Include all tapes, not only one.")
@choose_by_facts
@store_option
@as_json
def cost(
    ref: str,
    by: CostGrouping | None,
    *,
    all_tapes: bool,
    tapes: TapeFilter,
    store: str | None,
    as_json: bool,
) -> None:
    """Show tokens and cost: of a tape for all branches, of a branch or entry for its path.

    REF defaults to the newest session of this folder. Calls and turns are those of a path; a turn
    is a prompt and everything that answers it, sub-agents included. Days are UTC. A call without a
    cost on its tape, such as an imported one, costs what its tokens cost at its time. An unknown
    cost is shown as unknown; `+` after a sum means that it leaves out unknown costs. Hints say what
    would cost less. --repository, --person, --machine and --agent choose among all
    tapes.

    --json prints {by, total, rows, hints}; a row is {key, label} and, as the total, {calls, input,
    output, reasoning, cache_read, cache_write, total, cost, unknown_calls}.
    """
    place, hints = locate_store(store), list[str]()
    all_tapes = all_tapes or tapes != EVERY_TAPE
    if all_tapes and (ref or by in _PATH_GROUPINGS):
        raise ConfigurationError(
            "--all needs --by tape, branch, provider or day: for calls and turns give one REF"
        )
    if all_tapes or (by == "tape" and not ref):
        total, rows = _sum_all_tapes(place, by or "tape", tapes)
    else:
        costs = _sum_one_tape(place, ref, by or "provider")
        total, rows = costs.total, costs.rows()
        hints = suggest_savings(costs.calls, _list_models)
    if as_json:
        encoded_rows = [
            {"key": row.key, "label": row.label, **encode_spend(row.spend)} for row in rows
        ]
        print_json(
            {
                "by": by,
                "total": encode_spend(total),
                "rows": encoded_rows if by else [],
                "hints": hints,
            }
        )
    elif not total.calls:
        print_warning("no cost: no model was called")
    else:
        lines = _render_cost_table(rows, by, total) if by else render_token_usage(total)
        print_lines([*lines, *(f"Hint: {hint}" for hint in hints)])


def _list_models() -> Iterable[ModelInfo]:
    from ..llm.models import Catalogue  # only where there may be something to save

    return Catalogue.from_rows(load_settings().models).list_models()


def _sum_one_tape(place: Path, ref: str, by: CostGrouping) -> CostReport:
    """Return the sums of the tape or path that a REF names."""
    costs = CostReport(by, CallPrices())
    with open_ref(GlobalOptions(str(place)), ref) as (tape, head, branch):
        if head is not None or branch is not None or by in _PATH_GROUPINGS:
            source = read_path_entries(tape, head or tape.head(branch), report_skipped)
        else:
            source = read_tape_entries(tape, report_skipped)
        where = CostOrigin(tape.id, tape.title() or "")
        whole = head is None and branch is None and by not in _PATH_GROUPINGS
        open_tape = Store(place).open
        spends = add_agent_calls(source, tape, open_tape, report_skipped, whole=whole)
        for name, entry in spends:
            costs.take(entry, where._replace(branch=name))
    return costs


def _sum_all_tapes(place: Path, by: CostGrouping, tapes: TapeFilter) -> tuple[Spend, list[CostRow]]:
    """Return the sums of all tapes, from the index."""
    costs, grouping, narrow = CostReport(by), _INDEX_GROUPINGS[by], StatsFilter(tapes=tapes)
    unpriced, price = 0, CallPrices()
    with open_store(place) as opened:
        for row in compute_statistics(*opened, grouping, narrow):
            if not (of := row.spent).calls:
                continue
            counts = (of.reasoning, of.cache_read, of.cache_write)
            usage = Usage(of.input or 0, of.output or 0, *counts, of.total or 0)
            key, label = _name_group(by, row.key, row.branch, row.title)
            costs.add(key, label, Spend(of.calls, usage, of.cost, of.unpriced))
            unpriced += of.unpriced
        for call in list_unpriced_calls(*opened, grouping, narrow) if unpriced else ():
            cost = price(call.provider, call.model, Usage(*_order_counts(call.tokens)), call.time)
            if cost is not None:
                key, label = _name_group(by, call.key, call.branch, call.title)
                costs.add(key, label, Spend(cost=cost.amount, unknown_calls=-1))
    return costs.total, costs.rows()


def _name_group(
    by: CostGrouping, key: str | None, branch: str | None, title: str | None
) -> tuple[str, str]:
    """Return the key and the label of a row."""
    key = key or ""
    match by:
        case "branch":
            return f"{key}:{branch or '?'}", title or ""
        case "tape":
            return key, title or ""
        case "provider":
            name = key.partition("/")[0]
            return name, name
        case _:
            return key, key


def _order_counts(
    tokens: Sequence[int | None],
) -> tuple[int, int, int | None, int | None, int | None, int]:
    """Return counts of tokens in the order of `Usage`."""
    sent, received, *counts, total = tokens
    reasoning, read, write = counts
    return (sent or 0, received or 0, reasoning, read, write, total or 0)


def _render_cost_table(rows: list[CostRow], by: CostGrouping, total: Spend) -> list[str]:
    cells = [(_render_row_label(row, by), *_render_cost_cells(row.spend)) for row in rows]
    lines = format_table(
        [*cells, ("sum", *_render_cost_cells(total))],
        range(1, 7),
        headings=(by.upper(), *_COST_HEADINGS),
        optional=_OPTIONAL,
    )
    return [
        f"{line}{format_unknown_calls(total) if at == len(lines) else ''}"
        for at, line in enumerate(lines, 1)
    ]


def _render_row_label(row: CostRow, by: CostGrouping) -> str:
    """Return the label of a row, after a short id where one can be used as REF."""
    if by in ("provider", "day"):
        return row.label or "–"
    identity, _, branch = row.key.partition(":")
    short = identity[:SHORT] + f":{branch}" * bool(branch)
    return shorten_to_width(f"{short}  {row.label}".strip(), _LABEL_COLUMNS)


def _render_cost_cells(spend: Spend) -> tuple[str, ...]:
    usage = spend.usage
    counts = (usage.total, usage.input, usage.output, usage.cache_read or 0)
    return (*(f"{count:,}" for count in counts), str(spend.calls), format_cost(spend))
