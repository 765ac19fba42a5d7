"""Results of a run in figures, as a table, as JUnit XML and as a page. Pure.

Rates count each task the same: the share of its tries that solved it, averaged. A try that ended
with an error is not solved.
"""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from msgspec import Struct

from tape.text import format_count, format_seconds, show_controls, to_single_line

from ..context.costs import format_money
from .result import MEANINGS, RunChoices, TryResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .task import Task

MARKS = {"solved": "✓", "failed": "✗"}
"""An error has !."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TaskSummary(Struct, frozen=True):
    """The tries of one task."""

    task: str
    tries: int
    solved: int
    outcomes: dict[str, int]
    """How many tries ended how."""
    reward: float | None
    """The mean of the rewards there are."""
    cost: float | None
    """USD of all tries; None where one is not known."""
    turns: float
    """The mean."""
    seconds: float
    """The mean of the agent's time."""

    @property
    def rate(self) -> float:
        """The share of tries that solved it."""
        return self.solved / self.tries if self.tries else 0.0


class RunSummary(Struct, frozen=True):
    """A run in figures."""

    tasks: tuple[TaskSummary, ...]
    tries: int
    solved: int
    errors: int
    rate: float
    """The mean of the tasks' rates, from 0 to 1."""
    cost: float | None
    turns: int
    input_tokens: int
    output_tokens: int


def sum_results(results: Sequence[TryResult]) -> RunSummary:
    """Return the figures of some results."""
    by_task: dict[str, list[TryResult]] = {}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    tasks = tuple(_sum_tries(name, tries) for name, tries in sorted(by_task.items()))
    return RunSummary(
        tasks,
        tries=len(results),
        solved=sum(result.is_solved for result in results),
        errors=sum(result.is_error for result in results),
        rate=sum(task.rate for task in tasks) / len(tasks) if tasks else 0.0,
        cost=_sum_costs(results),
        turns=sum(result.turns for result in results),
        input_tokens=sum(result.input_tokens for result in results),
        output_tokens=sum(result.output_tokens for result in results),
    )


def _sum_tries(name: str, tries: Sequence[TryResult]) -> TaskSummary:
    rewards = [result.reward for result in tries if result.reward is not None]
    return TaskSummary(
        name,
        len(tries),
        sum(result.is_solved for result in tries),
        dict(Counter(result.outcome for result in tries)),
        reward=sum(rewards) / len(rewards) if rewards else None,
        cost=_sum_costs(tries),
        turns=sum(result.turns for result in tries) / len(tries),
        seconds=sum(result.agent_seconds for result in tries) / len(tries),
    )


def _sum_costs(results: Iterable[TryResult]) -> float | None:
    """Return the sum; None where a try with a session has an unknown cost."""
    results = list(results)
    if any(result.cost is None and result.tape for result in results):
        return None
    return round(sum(result.cost or 0.0 for result in results), 9)


def format_result(result: TryResult) -> str:
    """Return one try in a line."""
    mark = MARKS.get(result.outcome, "!")
    parts = [f"{mark} {result.task} #{result.number}: {result.outcome}"]
    if result.reward is not None and result.outcome == "failed":
        parts.append(f"reward {result.reward:g}")
    if result.stopped:
        parts.append(f"stopped by its limit of {result.stopped}")
    if result.detail:
        parts.append(to_single_line(result.detail))
    if result.turns:
        parts.append(format_count(result.turns, "turn"))
    parts.append(format_seconds(result.agent_seconds))
    if result.tape:
        parts.append(f"tape {result.tape[:8]}")
    return show_controls(", ".join(parts))


class TableRow(NamedTuple):
    """One task in the table."""

    task: str
    solved: str
    reward: str
    turns: str
    cost: str
    time: str
    outcome: str


HEADINGS = ("TASK", "SOLVED", "REWARD", "TURNS", "COST", "TIME", "HOW")


def list_rows(summary: RunSummary) -> list[TableRow]:
    """Return the rows of the table."""
    return [
        TableRow(
            task.task,
            f"{task.solved}/{task.tries}",
            "" if task.reward is None else f"{task.reward:.2f}",
            f"{task.turns:.3g}",
            _format_cost(task.cost),
            format_seconds(task.seconds),
            ", ".join(f"{name} {count}" for name, count in sorted(task.outcomes.items())),
        )
        for task in summary.tasks
    ]


def format_total(summary: RunSummary) -> str:
    """Return the last line: how much was solved, for how much."""
    errors = f", {format_count(summary.errors, 'error')}" if summary.errors else ""
    return (
        f"{summary.solved} of {format_count(summary.tries, 'try', 'tries')} solved"
        f", {summary.rate:.0%} on average over tasks{errors};"
        f" {format_count(summary.turns, 'turn')}, {_format_cost(summary.cost)}"
    )


def _format_cost(cost: float | None) -> str:
    return "unknown" if cost is None else format_money(cost)


def build_junit(name: str, results: Sequence[TryResult]) -> str:
    """Return results as JUnit XML: a test case for each try; what XML cannot hold is U+FFFD."""
    failed = sum(result.outcome == "failed" for result in results)
    counts = {
        "tests": str(len(results)),
        "failures": str(failed),
        "errors": str(sum(result.is_error for result in results)),
        "time": f"{sum(r.agent_seconds + r.verifier_seconds for r in results):.3f}",
    }
    root = Element("testsuites", {"name": "gong eval", **counts})
    suite = SubElement(root, "testsuite", {"name": _clean_xml(name), **counts})
    for result in results:
        case = SubElement(
            suite,
            "testcase",
            {
                "classname": _clean_xml(result.task),
                "name": _clean_xml(f"{result.task} #{result.number}"),
                "time": f"{result.agent_seconds + result.verifier_seconds:.3f}",
            },
        )
        facts = {"tape": result.tape, "model": result.model, "turns": str(result.turns)}
        properties = SubElement(case, "properties")
        for key, value in facts.items():
            SubElement(properties, "property", {"name": key, "value": _clean_xml(value)})
        if not result.is_solved:
            kind = "error" if result.is_error else "failure"
            reward = "" if result.reward is None else f"reward {result.reward:g}"
            message = _clean_xml(result.detail or reward or MEANINGS[result.outcome])
            SubElement(case, kind, {"type": result.outcome, "message": message})
    text: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _clean_xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


_STYLE = """
:root{color-scheme:light dark;--line:#8886;--ok:#2a8a4a;--bad:#c0392b;--odd:#b7791f}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
h1{font-size:1.3rem} .wide{overflow-x:auto} table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid var(--line);padding:.35rem .5rem;text-align:left;vertical-align:top}
td{overflow-wrap:anywhere} .solved{color:var(--ok)} .failed{color:var(--bad)}
.error{color:var(--odd)}
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
    title = _escape_text(f"{name} · {agent}")
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        "<meta http-equiv=Content-Security-Policy"
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>{_escape_text(format_total(summary))}, in {_escape_text(choices.place)}</p>"
        f"<div class=wide><table><tr>{heads}</tr>{rows}</table></div>"
        "<h2>Tries</h2><div class=wide><table>"
        "<tr><th>Try<th>How<th>Reward<th>Turns<th>Cost<th>Time<th>Tape<th>Why</tr>"
        f"{tries}</table></div></html>\n"
    )


def _build_row(row: TableRow, about: str) -> str:
    return f"<tr>{''.join(f'<td>{_escape_text(cell)}</td>' for cell in (*row, about))}</tr>"


def _build_try(result: TryResult) -> str:
    kind = "error" if result.is_error else result.outcome
    stopped = f"stopped by its limit of {result.stopped}" if result.stopped else ""
    cells = (
        f"{result.task} #{result.number}",
        result.outcome,
        "" if result.reward is None else f"{result.reward:g}",
        str(result.turns),
        _format_cost(result.cost),
        format_seconds(result.agent_seconds),
        result.tape[:8],
        ", ".join(filter(None, (result.detail, stopped))),
    )
    return f"<tr class={kind}>{''.join(f'<td>{_escape_text(cell)}</td>' for cell in cells)}</tr>"


def _escape_text(text: str) -> str:
    return escape(show_controls(text))
