"""Which sub-agents a path tells of, and what became of those whose program ended.

entries on the parent's path               the sub-agent
-----------------------------------------  -------------------------------------------------
agent.start, agent.end                     ended as the end says
agent.start                                runs, or its program ended: then its history is
balanced and an agent.end `interrupted` is added
anchor, custom `gong.agents`               as the mark repeats it: an anchor hides the others
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw, Struct

from tape.context.view import Target
from tape.model.entries import AgentEnd, AgentStart, Assistant, Custom, join_texts

from ..agent.recorder import AGENTS
from ..context.sent_history import HistoryFold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tape.model.line import Entry

    from ..agent.recorder import Recorder


class KnownAgent(Struct, frozen=True, omit_defaults=True):
    """A sub-agent that a path tells of."""

    agent: str
    kind: str
    task: str
    branch: str | None = None
    tape: str | None = None
    status: str = ""
    """How its newest run ended; empty where no end is recorded."""
    result: str = ""
    start: str = ""
    """The id of its newest `agent.start`."""


class LostRun(NamedTuple):
    """What is left of a run whose program ended."""

    calls: int
    """Calls that had no result."""
    answer: str
    """The last words."""


def find_known_agents(path: Sequence[Entry]) -> dict[str, KnownAgent]:
    """Return the sub-agents that a path tells of, by id, oldest first."""
    known: dict[str, KnownAgent] = {}
    for entry in path:
        match entry.data:
            case AgentStart(agent=agent, kind=kind, task=task, branch=branch, tape=tape):
                known.pop(agent, None)
                known[agent] = KnownAgent(agent, kind, task, branch, tape, start=entry.id)
            case AgentEnd(agent=agent, result=result, status=status) if agent in known:
                known[agent] = msgspec.structs.replace(known[agent], status=status, result=result)
            case Custom(kind=kind, data=data) if kind == AGENTS:
                with suppress(msgspec.MsgspecError):  # another program's entry under our name
                    for known_agent in msgspec.json.decode(data, type=tuple[KnownAgent, ...]):
                        known[known_agent.agent] = known_agent
            case _:
                pass
    return known


def build_agents_mark(known: Iterable[KnownAgent]) -> Custom:
    """Return the entry that repeats after an anchor which sub-agents there are."""
    return Custom(AGENTS, Raw(msgspec.json.encode([*known])))


def repair_history(recorder: Recorder) -> LostRun:
    """Record what is missing for calls without a result; durable on return."""
    folded = HistoryFold().follow("", Target("", "", ""), recorder.path, recorder.kept)
    repair = folded.unrecorded
    if repair is not None:
        recorder.append(repair)
        recorder.barrier()
    calls = 0 if repair is None else len(repair.injected)
    return LostRun(calls, find_last_answer(recorder.path))


def find_last_answer(path: Sequence[Entry]) -> str:
    """Return the newest words of a model on a path; empty if it said none."""
    answers = (entry.data for entry in reversed(path) if isinstance(entry.data, Assistant))
    texts = (join_texts(answer.content) for answer in answers)
    return next((text for text in texts if text), "")
