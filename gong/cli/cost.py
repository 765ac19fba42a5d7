"""`gong cost`: tokens and cost of a session, in total or by call, turn, branch, provider, day."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tape.cli.call import found
from tape.cli.group import Options
from tape.cli.out import as_json, document, examples, ref, say, table, warn
from tape.entries import Usage
from tape.index import open_store
from tape.index.stats import statistics
from tape.render import SHORT, fitted

from .. import config
from ..context.costs import WAYS, Costs, Row, Spend, Where, cost_text, fields, untold, usage_lines
from ..context.gathering import on_path, on_tape
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from tape.index.stats import By as Grouped
    from tape.index.stats import Spent, Sums

    from ..context.costs import By

_HEAD = ("TOKENS", "INPUT", "OUTPUT", "CACHED", "CALLS", "COST")
_LABEL = 44
_ONE_TAPE = ("call", "turn")
_INDEXED: dict[By, Grouped] = {
    "tape": "tape",
    "branch": "branch",
    "provider": "model",
    "day": "day",
}
"""The groupings that the index can answer."""


@click.command(
    epilog=examples(
        "gong cost", "gong cost 3f2a --by turn", "gong cost --by day --all", "gong cost --json"
    )
)
@ref
@click.option("--by", type=click.Choice(WAYS), help="Print one row for each, and the total.")
@click.option("--all", "all_tapes", is_flag=True, help="Include all tapes, not only one.")
@click.option("--store", metavar="PATH", help="Folder of the tapes; default $TAPE_HOME, ~/.tape.")
@as_json
def cost(ref: str, by: By | None, *, all_tapes: bool, store: str | None, as_json: bool) -> None:
    """Show tokens and cost: of a tape for all branches, of a branch or entry for its path.

    REF defaults to the newest session of this folder. Calls and turns are those of a path; a turn
    is a prompt and everything that answers it. Days are UTC. An unknown cost is shown as unknown;
    `+` after a sum means that it leaves out unknown costs.

    --json prints {by, total, rows}; a row is {key, label} and, as the total, {calls, input, output,
    reasoning, cache_read, cache_write, total, cost, unknown_calls}.
    """
    settings = config.load(os.environ, {"store": store})
    place = config.store_path(settings, os.environ)
    if all_tapes and (ref or by in _ONE_TAPE):
        raise ConfigurationError(
            "--all needs --by tape, branch, provider or day: for calls and turns give one REF"
        )
    if all_tapes or (by == "tape" and not ref):
        total, rows = _everywhere(place, by or "tape")
    else:
        total, rows = _of(place, ref, by or "provider")
    if as_json:
        shown = [{"key": row.key, "label": row.label, **fields(row.spend)} for row in rows]
        document({"by": by, "total": fields(total), "rows": shown if by else []})
    elif not total.calls:
        warn("no cost: no model was called", "gong")
    else:
        say(_table(rows, by, total) if by else usage_lines(total))


def _of(place: Path, ref: str, by: By) -> tuple[Spend, list[Row]]:
    """Return the sums of the tape or path that a REF names."""
    costs = Costs(by)
    with found(Options(place), ref) as (tape, head, branch):
        if head is not None or branch is not None or by in _ONE_TAPE:
            source = on_path(tape, head or tape.head(branch), _skip)
        else:
            source = on_tape(tape, _skip)
        where = Where(tape.id, tape.title() or "")
        for name, entry in source:
            costs.take(entry, where._replace(branch=name))
    return costs.total, costs.rows()


def _skip(remark: str) -> None:
    warn(f"{remark}; `tape verify` shows details", "gong")


def _everywhere(place: Path, by: By) -> tuple[Spend, list[Row]]:
    """Return the sums of all tapes, from the index."""
    costs = Costs(by)
    with open_store(place) as opened:
        for row in statistics(*opened, _INDEXED[by]):
            if row.spent.calls:
                costs.add(*_named(row, by), _spend(row.spent))
    return costs.total, costs.rows()


def _named(row: Sums, by: By) -> tuple[str, str]:
    """Return key and label of a row of the index."""
    key = row.key or ""
    match by:
        case "branch":
            return f"{key}:{row.branch or '?'}", row.title or ""
        case "tape":
            return key, row.title or ""
        case "provider":
            return (key.partition("/")[0],) * 2
        case _:
            return key, key


def _spend(spent: Spent) -> Spend:
    usage = Usage(
        spent.input or 0,
        spent.output or 0,
        spent.reasoning,
        spent.cache_read,
        spent.cache_write,
        spent.total or 0,
    )
    return Spend(spent.calls, usage, spent.cost, spent.unpriced)


def _table(rows: list[Row], by: By, total: Spend) -> list[str]:
    cells = [(_label(row, by), *_cells(row.spend)) for row in rows]
    lines = table([(by.upper(), *_HEAD), *cells, ("sum", *_cells(total))], range(1, 7))
    return [
        f"{line}{untold(total) if at == len(lines) else ''}" for at, line in enumerate(lines, 1)
    ]


def _label(row: Row, by: By) -> str:
    """Return the label of a row, after a short id where one can be used as REF."""
    if by in ("provider", "day"):
        return row.label or "–"
    identity, _, branch = row.key.partition(":")
    short = identity[:SHORT] + f":{branch}" * bool(branch)
    return fitted(f"{short}  {row.label}".strip(), _LABEL)


def _cells(spend: Spend) -> tuple[str, ...]:
    usage = spend.usage
    counts = (usage.total, usage.input, usage.output, usage.cache_read or 0)
    return (*(f"{count:,}" for count in counts), str(spend.calls), cost_text(spend))
