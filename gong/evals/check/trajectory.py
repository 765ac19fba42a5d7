"""The record of a session, whoever wrote it, as steps of a tree: each knows the one before it.

session file of an agent, ATIF   its steps, in the order of the file
a tape of ours                   the entries of all its branches
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.clock import format_timestamp, read_clock
from tape.formats.sessions.steps import NEWEST
from tape.model.entries import BlobRef, Start
from tape.text import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tape.formats.sessions.steps import SourceSession
    from tape.model.entries import Payload
    from tape.model.line import Entry

FIRST = -1
"""The parent of a step with none before it."""


class TrajectoryStep(NamedTuple):
    """One entry, or a part of one."""

    entry: str
    """The id of the entry in its source, or #N."""
    parent: int
    """The index of the step before it, or FIRST."""
    data: Payload
    time: str
    """As a tape has it."""


class Trajectory(NamedTuple):
    """One session; steps that two branches share are there once."""

    tool: str
    """The agent: claude, codex, …; `tape` for a tape of ours."""
    session: str
    """Its id there."""
    folder: str
    """Where it began, an absolute path; "" where its record does not say."""
    steps: tuple[TrajectoryStep, ...]
    agents: tuple[tuple[str, Trajectory], ...] = ()
    """Sub-agents that are in the same file, by name."""
    damaged: int = 0
    """Lines that could not be read."""
    cost: float | None = None
    """USD of all of it, with sub-agents, where its record says that."""


def build_trajectory(session: SourceSession) -> Trajectory:
    """Return the trajectory of another agent's session; its blobs are not kept."""
    now = session.created or read_clock()
    steps: list[TrajectoryStep] = []
    ends: dict[str, int] = {}
    for step in session.read_steps(_forget_blob):
        last = len(steps) - 1
        parent = last if step.parent == NEWEST else ends.get(step.parent, FIRST)
        if step.id is None:
            parent = last
        name = step.id if step.id is not None else steps[last].entry if steps else "#0"
        time = format_timestamp(step.time or now)
        for payload in step.payloads:
            steps.append(TrajectoryStep(_shorten_name(name), parent, payload, time))
            parent = len(steps) - 1
        if step.id is not None:
            ends[step.id] = parent
    agents = tuple(
        (child.id.rpartition("/")[2], build_trajectory(child)) for child in session.children
    )
    return Trajectory(
        session.tool,
        session.id,
        session.cwd or "",
        tuple(steps),
        agents,
        session.damaged,
        session.cost,
    )


def _forget_blob(data: bytes) -> BlobRef:
    return BlobRef("0" * 64, len(data))


def _shorten_name(name: str) -> str:
    """Return how an entry is called: a number gets its mark."""
    return f"#{name}" if name.isdecimal() else name


def build_tape_trajectory(identity: str, entries: Iterable[Entry]) -> Trajectory:
    """Return the trajectory of a tape, or of a path on it, parents before what follows them."""
    places: dict[str, int] = {}
    steps: list[TrajectoryStep] = []
    for entry in entries:
        parent = places.get(entry.parent_id or "", FIRST)
        places[entry.id] = len(steps)
        steps.append(TrajectoryStep(entry.id[:SHORT], parent, entry.data, entry.time))
    folder = next((step.data.cwd for step in steps if isinstance(step.data, Start)), "")
    return Trajectory("tape", identity, folder, tuple(steps))
