"""What sessions cost: by day as a chart and a table, and by model, project, person and agent.

Invariant: the sums are those of `tape stats`. The address holds in `days` how many of the last
days are counted, and in `all` the table that shows each of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from ...clock import format_timestamp, read_clock
from ...index.stats import StatsFilter, UsageTotals, select_statistics
from ..templating import format_money

if TYPE_CHECKING:
    from sqlite3 import Connection

    from starlette.requests import Request
    from starlette.responses import Response

    from ...index.stats import By, DaySum, StatsRow
    from ..site import Site

_SPANS = {"7": "7 days", "30": "30 days", "90": "90 days", "": "All"}
_TABLES: dict[By, str] = {
    "model": "Model",
    "project": "Project",
    "person": "Person",
    "agent": "Agent",
    "day": "Day",
}
_ROWS = 12
"""How many rows a table has before the others are asked for."""
_LINKED: tuple[By, ...] = ("project", "person", "agent")
"""What the list of sessions has a facet for that means the same."""
_DAY = 86_400_000_000


class CostLine(NamedTuple):
    """A row of a table."""

    name: str
    address: str
    """Of its sessions; "" where no list has just these."""
    tokens: int
    cost: str
    calls: int
    tools: int
    share: float
    """Width of its bar: 0 to 100."""


class CostTable(NamedTuple):
    """A table; `more` is the address with all of its rows, "" where these are all."""

    label: str
    rows: list[CostLine]
    more: str
    others: int


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        span = request.query_params.get("days", "")
        span = span if span in _SPANS else ""
        opened = request.query_params.get("all", "")
        narrow = StatsFilter(since=_find_midnight(int(span)) if span else None)

        def question(db: Connection) -> dict[By, list[StatsRow]]:
            fetched: dict[str, list[DaySum]] = {}
            groupings: tuple[By, ...] = ("all", *_TABLES)
            return {by: select_statistics(db, by, narrow, fetched) for by in groupings}

        sums = site.view.ask(question)
        days = [row for row in sums["day"] if row.key]
        points = {
            "days": [row.key for row in days],
            "costs": [row.spent.cost for row in days],
            "tokens": [row.spent.total for row in days],
        }
        spent = sums["all"][0].spent if sums["all"] else UsageTotals()
        tables = [_build_table(by, sums[by], span, opened) for by in _TABLES]
        values = {
            "spans": [(_build_address(days), name, days == span) for days, name in _SPANS.items()],
            "total": spent,
            "total_cost": format_cost(spent),
            "points": points,
            "tables": tables if sums["all"] else [],
        }
        return site.render(request, "costs.html", values)

    return [Route("/costs", show)]


def format_cost(spent: UsageTotals) -> str:
    """Return a sum in USD, with `+` where the cost of some of its calls is unknown."""
    return format_money(spent.cost) + ("+" if spent.cost is not None and spent.unpriced else "")


def _find_midnight(days: int) -> str:
    """Return the tape time at which the last days began, today being one of them."""
    return f"{format_timestamp(read_clock() - (days - 1) * _DAY)[:10]}T00:00:00.000000Z"


def _build_table(by: By, rows: list[StatsRow], span: str, opened: str) -> CostTable:
    # By cost, then by tokens, as they come; days from the newest.
    rows = list(reversed(rows)) if by == "day" else sorted(rows, key=_sort_by_cost)
    most = max((row.spent.cost or 0 for row in rows), default=0)
    first = rows if opened == by else rows[:_ROWS]
    return CostTable(
        _TABLES[by],
        [_build_row(by, row, most) for row in first],
        _build_address(span, by) if len(first) < len(rows) else "",
        len(rows) - len(first),
    )


def _sort_by_cost(row: StatsRow) -> float:
    return -(row.spent.cost or 0)


def _build_row(by: By, row: StatsRow, most: float) -> CostLine:
    name = row.key or ""
    return CostLine(
        name or "–",
        f"/?{urlencode({str(by): name}, errors='replace')}" if by in _LINKED else "",
        row.spent.total or 0,
        format_cost(row.spent),
        row.spent.calls,
        row.ran.tool_calls,
        round(100 * (row.spent.cost or 0) / most, 2) if most else 0,
    )


def _build_address(span: str, opened: str = "") -> str:
    values = {"days": span, "all": opened}
    query = urlencode({name: value for name, value in values.items() if value})
    return f"/costs?{query}" if query else "/costs"
