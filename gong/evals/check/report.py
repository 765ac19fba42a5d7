"""A trajectory checked: its findings, and its figures; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tape.model.entries import Assistant, select_tool_calls
from tape.text import format_count

from .budget import find_excess, sum_expense
from .files import check_files
from .finding import TrajectoryFinding
from .pairs import find_unpaired
from .paths import resolve_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...context.costs import FindPrice
    from .finding import CheckLimits
    from .trajectory import Trajectory


class CheckReport(Struct, frozen=True):
    """What was found in one trajectory."""

    trajectory: str
    """The file or tape, as it was named."""
    tool: str
    """The agent that wrote it; `tape` for a tape of ours."""
    session: str
    roots: tuple[str, ...]
    """Where it may write; nothing where no folder is known."""
    entries: int
    calls: int
    turns: int
    cost: float | None
    """USD; None where it is not known."""
    damaged: int
    """Lines that could not be read, and were not checked."""
    findings: tuple[TrajectoryFinding, ...]


def check_trajectory(
    name: str, trajectory: Trajectory, limits: CheckLimits, price: FindPrice
) -> CheckReport:
    """Return what is wrong with a trajectory and its sub-agents; `price` is asked for costs."""
    expense = sum_expense(trajectory, price)
    findings = [*_list_findings(trajectory, limits), *find_excess(trajectory, limits, price)]
    own = (resolve_path(trajectory.folder, ""),) if trajectory.folder else ()
    return CheckReport(
        name,
        trajectory.tool,
        trajectory.session,
        limits.roots or own,
        len({step.entry for step in trajectory.steps}),
        _count_calls(trajectory),
        expense.turns,
        expense.cost,
        trajectory.damaged,
        tuple(findings),
    )


def _list_findings(trajectory: Trajectory, limits: CheckLimits) -> Iterator[TrajectoryFinding]:
    yield from find_unpaired(trajectory.steps)
    yield from check_files(trajectory, limits.roots)
    for name, agent in trajectory.agents:
        for finding in _list_findings(agent, limits):
            yield replace(finding, entry=f"{name}/{finding.entry}")


def _count_calls(trajectory: Trajectory) -> int:
    own = sum(
        len(select_tool_calls(step.data.content))
        for step in trajectory.steps
        if isinstance(step.data, Assistant)
    )
    return own + sum(_count_calls(agent) for _, agent in trajectory.agents)


def describe_report(report: CheckReport) -> str:
    """Return a line: what was looked at, how much is wrong, and what could not be judged."""
    result = format_count(len(report.findings), "finding") if report.findings else "fine"
    parts = [
        format_count(report.entries, "entry", "entries"),
        format_count(report.calls, "call"),
        format_count(report.turns, "turn"),
    ]
    if report.damaged:
        parts.append(f"{format_count(report.damaged, 'line')} could not be read")
    if not report.roots:
        parts.append("its folder is not known: --root names where it may write")
    return f"{report.trajectory} ({report.tool}): {result}; {', '.join(parts)}"
