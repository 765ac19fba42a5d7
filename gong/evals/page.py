"""A run as one HTML page: its figures, its tasks, each try. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.text import format_seconds

from ..html_page import build_html_page, escape_text
from .summary import HEADINGS, format_cost, format_total, list_rows, sum_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .result import RunChoices, TryResult
    from .summary import TableRow
    from .task import Task

_STYLE = """
.solved{color:var(--ok)} .failed{color:var(--bad)} .error{color:var(--busy)}
"""


def build_page(
    name: str, choices: RunChoices, results: Sequence[TryResult], tasks: Sequence[Task] = ()
) -> str:
    """Return a run as one self-contained HTML page without scripts; the same one, the same page."""
    summary = sum_results(results)
    abouts = {task.name: task.description for task in tasks}
    rows = "".join(_build_row(row, abouts.get(row.task, "")) for row in list_rows(summary))
    agent = choices.model or f"solution/{choices.agent}"
    heads = "".join(f"<th>{head.capitalize()}</th>" for head in (*HEADINGS, "ABOUT"))
    tries = "".join(_build_try(result) for result in results)
    body = (
        f"<p>{escape_text(format_total(summary))}, in {escape_text(choices.place)}</p>"
        f"<div class=wide><table><tr>{heads}</tr>{rows}</table></div>"
        "<h2>Tries</h2><div class=wide><table>"
        "<tr><th>Try<th>How<th>Reward<th>Turns<th>Cost<th>Time<th>Tape<th>Why</tr>"
        f"{tries}</table></div>"
    )
    return build_html_page(f"{name} · {agent}", body, _STYLE)


def _build_row(row: TableRow, about: str) -> str:
    return f"<tr>{''.join(f'<td>{escape_text(cell)}</td>' for cell in (*row, about))}</tr>"


def _build_try(result: TryResult) -> str:
    kind = "error" if result.is_error else result.outcome
    stopped = f"stopped by its limit of {result.stopped}" if result.stopped else ""
    cells = (
        f"{result.task} #{result.number}",
        result.outcome,
        "" if result.reward is None else f"{result.reward:g}",
        str(result.turns),
        format_cost(result.cost),
        format_seconds(result.agent_seconds),
        result.tape[:8],
        ", ".join(filter(None, (result.detail, stopped))),
    )
    return f"<tr class={kind}>{''.join(f'<td>{escape_text(cell)}</td>' for cell in cells)}</tr>"
