"""Turns and cost of a trajectory, and where it goes beyond its limits; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.formats.sessions.claude import NO_MODEL
from tape.model.entries import Assistant, SideUsage

from ...context.costs import Spend, compute_spend, format_money
from .finding import TrajectoryFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...context.costs import FindPrice
    from .finding import CheckLimits
    from .trajectory import Trajectory, TrajectoryStep


class Expense(NamedTuple):
    """What a trajectory took."""

    turns: int
    """Answers of the model, on all branches, without those of sub-agents."""
    cost: float | None
    """USD with sub-agents; None where a part of it is not known."""


def list_turns(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """Return the answers of the model."""
    return [
        step for step in steps if isinstance(step.data, Assistant) and step.data.model != NO_MODEL
    ]


def sum_expense(trajectory: Trajectory, price: FindPrice) -> Expense:
    """Return the turns and the cost of a trajectory."""
    return Expense(len(list_turns(trajectory.steps)), _sum_costs(trajectory, price))


def _sum_costs(trajectory: Trajectory, price: FindPrice) -> float | None:
    own = [spend for _, spend in _list_spends(trajectory, price)]
    if trajectory.cost is not None and not any(spend.cost for spend in own):
        return trajectory.cost
    if any(spend.unknown_calls for spend in own):
        return None
    total = sum(spend.cost or 0.0 for spend in own)
    for _, agent in trajectory.agents:
        cost = _sum_costs(agent, price)
        if cost is None:
            return None
        total += cost
    return round(total, 9)


def _list_spends(
    trajectory: Trajectory, price: FindPrice
) -> Iterator[tuple[TrajectoryStep, Spend]]:
    for step in trajectory.steps:
        match step.data:
            case Assistant(model=model) as call if model != NO_MODEL:
                cost = call.cost or price(call.provider, call.model, call.usage, step.time)
                yield step, compute_spend(call.usage, cost, answered=bool(call.content))
            case SideUsage() as side:
                cost = side.cost or price(side.provider, side.model, side.usage, step.time)
                yield step, compute_spend(side.usage, cost)


def find_excess(
    trajectory: Trajectory, limits: CheckLimits, price: FindPrice
) -> Iterator[TrajectoryFinding]:
    """Yield where turns or cost go beyond their limits, each once."""
    turns = list_turns(trajectory.steps)
    if limits.max_turns and len(turns) > limits.max_turns:
        detail = f"{len(turns)} turns, {limits.max_turns} are allowed"
        yield TrajectoryFinding("over-turns", turns[limits.max_turns].entry, detail=detail)
    if not limits.max_cost:
        return
    cost = _sum_costs(trajectory, price)
    if cost is not None and cost <= limits.max_cost:
        return
    known, unknown = 0.0, ""
    for entry, spend in _list_all_spends(trajectory, price):
        known += spend.cost or 0.0
        unknown = unknown or entry * bool(spend.unknown_calls)
        if known > limits.max_cost:
            break
    allowed = f"{format_money(limits.max_cost)} is allowed"
    if known > limits.max_cost:
        total = format_money(cost) if cost is not None else f"more than {format_money(known)}"
        yield TrajectoryFinding("over-cost", entry, detail=f"{total}, {allowed}")
    elif cost is not None:
        last = trajectory.steps[-1].entry if trajectory.steps else "#0"
        yield TrajectoryFinding("over-cost", last, detail=f"{format_money(cost)}, {allowed}")
    else:
        detail = f"no price is known for all of its calls, {allowed}"
        yield TrajectoryFinding("unknown-cost", unknown, detail=detail)


def _list_all_spends(trajectory: Trajectory, price: FindPrice) -> Iterator[tuple[str, Spend]]:
    yield from ((step.entry, spend) for step, spend in _list_spends(trajectory, price))
    for name, agent in trajectory.agents:
        for entry, spend in _list_all_spends(agent, price):
            yield f"{name}/{entry}", spend
