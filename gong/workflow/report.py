"""A workflow for people: a line for each event, the tasks as a graph, a page for the browser."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tape.clock import parse_timestamp
from tape.text import format_count, format_seconds, shorten_to_width, show_controls, to_single_line

from ..context.costs import format_money
from ..html_page import build_html_page
from .schedule import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .plan import PlannedTask, TaskPlan
    from .record import Workflow, WorkflowEvent

MARKS = {
    "pending": "○",
    "running": "●",
    "review": "◐",
    "fixing": "◑",
    "completed": "✓",
    "failed": "✗",
    "skipped": "–",
}
_COLUMNS = 100


def format_event(event: WorkflowEvent) -> str:
    """Return what happened as one line; empty for what needs no word."""
    line = ""
    match event.event:
        case "plan" if event.plan is not None:
            revised = "another plan" if event.summary else "plan"
            line = f"{revised}: {format_count(len(event.plan.tasks), 'task')}"
        case "task" if event.state is not None:
            line = _format_state(event.task, event.state)
        case "message":
            line = f"  {event.task} to {event.to}: {to_single_line(event.summary)}"
        case "replan":
            line = f"  {event.task}: the plan does not fit: {to_single_line(event.summary)}"
        case "review":
            findings = format_count(len(event.findings), "finding")
            summary = f": {to_single_line(event.summary)}" if event.summary else ""
            line = f"  {event.task}: review says {event.verdict}, {findings}{summary}"
    return shorten_to_width(show_controls(line), _COLUMNS)


def _format_state(task: str, state: TaskState) -> str:
    if state.status == "running" and state.tries == 1:
        return "" if state.tape else f"● {task}: begun"
    note = f": {to_single_line(state.note)}" if state.note else ""
    tries = f", try {state.tries}" if state.tries > 1 else ""
    return f"{MARKS[state.status]} {task}: {state.status}{tries}{note}"


def draw_graph(plan: TaskPlan, states: Mapping[str, TaskState] | None = None) -> list[str]:
    """Return the tasks by what they wait for: a line each, deeper ones further to the right."""
    depths = compute_depths(plan)
    lines = []
    for task in sorted(plan.tasks, key=lambda task: depths[task.id]):
        state = (states or {}).get(task.id, TaskState())
        waits = f"  ← {', '.join(task.dependencies)}" if task.dependencies else ""
        note = f"  ({state.note})" if state.note else ""
        line = f"{MARKS[state.status]} {task.id}: {task.title}{waits}{note}"
        indent = "  " * depths[task.id]
        lines.append(indent + shorten_to_width(line, _COLUMNS - len(indent)))
    return lines


def compute_depths(plan: TaskPlan) -> dict[str, int]:
    """Return how many tasks must be done one after the other before each task."""
    waits = {task.id: task.dependencies for task in plan.tasks}
    depths: dict[str, int] = {}

    def measure(task: str) -> int:
        if task not in depths:
            depths[task] = 1 + max((measure(dependency) for dependency in waits[task]), default=-1)
        return depths[task]

    for task_id in waits:
        measure(task_id)
    return depths


_STYLE = """
.completed{color:var(--ok)} .failed{color:var(--bad)}
.running,.review,.fixing{color:var(--busy)} .skipped,.pending{opacity:.65}
rect{fill:#8881;stroke:currentColor} text{fill:currentColor;font:12px system-ui,sans-serif}
path{fill:none;stroke:var(--line);stroke-width:1.5}
"""
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 40, 50, 14


def build_page(workflow: Workflow) -> str:
    """Return a workflow as one self-contained HTML page; the same one gives the same page."""
    score = "" if workflow.score is None else f" · score {workflow.score:g}"
    score += f" · {format_money(workflow.cost)}" if workflow.cost else ""
    heads = ("task", "status", "tries", "time", *(("cost",) * bool(workflow.cost)), "reviews")
    rows = "".join(_build_rows(workflow))
    report = f"<h2>Report</h2><pre>{escape(workflow.report)}</pre>" if workflow.report else ""
    body = (
        f"<p class={workflow.status}>{workflow.status}{score} · {workflow.id[:8]}</p>"
        f"<div class=wide>{_draw_svg(workflow)}</div>"
        f"<div class=wide><table>{_build_row(heads, tag='th')}{rows}</table></div>{report}"
    )
    return build_html_page(workflow.requirement, body, _STYLE)


def _build_rows(workflow: Workflow) -> Iterator[str]:
    for task in workflow.plan.tasks:
        state = workflow.states[task.id]
        reviews = "<br>".join(
            escape(f"{review.verdict}: {review.summary}")
            for review in workflow.reviews.get(task.id, [])
        )
        note = f"<br>{escape(state.note)}" if state.note else ""
        cost = format_money(state.cost) if state.cost else ""
        yield _build_row(
            (
                f"<b>{escape(task.id)}</b> {escape(task.title)}",
                f"<span class={state.status}>{state.status}</span>{note}",
                str(state.tries),
                _format_time(workflow, task.id),
                *((cost,) * bool(workflow.cost)),
                reviews,
            )
        )


def _build_row(cells: Iterable[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}' for cell in cells)}</tr>"


def _format_time(workflow: Workflow, task: str) -> str:
    times = workflow.times.get(task)
    if times is None or not times.ended:
        return ""
    return format_seconds((parse_timestamp(times.ended) - parse_timestamp(times.began)) / 1e6)


def _draw_svg(workflow: Workflow) -> str:
    """Return the tasks as boxes, in columns by depth, with lines to what each waits for."""
    depths = compute_depths(workflow.plan)
    columns: dict[int, list[PlannedTask]] = {}
    for task in workflow.plan.tasks:
        columns.setdefault(depths[task.id], []).append(task)
    places = {
        task.id: (depth * (_WIDTH + _GAP_X), row * (_HEIGHT + _GAP_Y))
        for depth, tasks in columns.items()
        for row, task in enumerate(tasks)
    }
    width = len(columns) * (_WIDTH + _GAP_X) - _GAP_X + 2
    height = max(len(column) for column in columns.values()) * (_HEIGHT + _GAP_Y) if columns else 0
    parts = [f"<svg viewBox='-1 -1 {width} {height}' width={width} role=img>"]
    for task in workflow.plan.tasks:
        x, y = places[task.id]
        for dependency in task.dependencies:
            from_x, from_y = places[dependency][0] + _WIDTH, places[dependency][1] + _HEIGHT / 2
            middle, to_y = (from_x + x) / 2, y + _HEIGHT / 2
            curve = f"{middle} {from_y} {middle} {to_y} {x} {to_y}"
            parts.append(f"<path d='M{from_x} {from_y}C{curve}'/>")
    for task in workflow.plan.tasks:
        x, y = places[task.id]
        status = workflow.states[task.id].status
        label = escape(shorten_to_width(f"{MARKS[status]} {task.id}", 26))
        title = escape(shorten_to_width(task.title, 30))
        parts.append(
            f"<g class={status}><rect x={x} y={y} width={_WIDTH} height={_HEIGHT} rx=6 />"
            f"<text x={x + 8} y={y + 17}>{label}</text>"
            f"<text x={x + 8} y={y + 32}>{title}</text></g>"
        )
    return "".join((*parts, "</svg>"))
