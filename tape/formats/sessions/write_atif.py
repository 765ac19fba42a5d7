"""One branch of a tape → a trajectory in ATIF v1.8 (Harbor).

entry          step
-------------  ----------------------------------------
user, context  source user
assistant      source agent, with calls and metrics
tool.result    observation of the step that called
anchor         source system; what it covers stays
agent.start    its trajectory, named by the next result
the tape       session_id; id, fork, entries in `extra`

ATIF has no error flag and no branches: `extra` of a result says `is_error`, and `extra` of the
trajectory where the branch left another one. A picture is a data URL in the place of its path; its
empty fragment `#://` is what Harbor takes an address by, and it looks for anything else on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.entries import (
    AgentStart,
    Anchor,
    Assistant,
    Branch,
    Context,
    Image,
    Start,
    Text,
    Thinking,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from ...model.summary import render_summary
from ..wire import build_decoded_arguments, encode_json, load_base64
from .outline import shorten_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Content
    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import PlacedEntry, TapeOutline

ATIF = "ATIF-v1.8"
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""What ATIF calls a picture."""


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the one line of the document."""
    yield encode_json(_build_trajectory(tape))


def _build_trajectory(tape: TapeOutline, name: str = "") -> WireObject:
    """Return the trajectory of a branch; `name` is that of a sub-agent."""
    program, _, version = tape.program.partition("/")
    trajectory = _AtifSteps(tape)
    for placed in tape.entries:
        trajectory.add_entry(placed)
    models = [step["model_name"] for step in trajectory.steps if step.get("model_name")]
    agents = [_build_trajectory(child, agent) for agent, child in trajectory.agents.items()]
    return {
        "schema_version": ATIF,
        "session_id": tape.uuid,
        "trajectory_id": name or tape.uuid,
        "agent": {
            "name": program,
            "version": version or "0",
            **({"model_name": models[-1]} if models else {}),
        },
        "steps": trajectory.steps or [{"step_id": 1, "source": "system", "message": ""}],
        "final_metrics": _sum_metrics(tape, len(trajectory.steps), agents),
        **({"subagent_trajectories": agents} if agents else {}),
        "extra": _describe_tape(tape),
    }


def _describe_tape(tape: TapeOutline) -> WireObject:
    extra: WireObject = {"tape": tape.id, "cwd": tape.cwd, "title": tape.title}
    if tape.git_branch:
        extra["git_branch"] = tape.git_branch
    facts = {"repository": tape.repository, "person": tape.person, "machine": tape.machine}
    extra |= {name: fact for name, fact in facts.items() if fact is not None}
    if tape.branch:
        extra["branch"] = tape.branch
    for entry, before in tape.entries:
        if isinstance(entry.data, Branch):
            extra["fork_point"] = before or entry.data.base.entry
        if isinstance(entry.data, Start) and entry.data.origin is not None:
            origin = entry.data.origin
            extra["origin"] = {"tape": origin.tape, "entry": origin.entry}
    return extra


class _AtifSteps:
    """The steps of a trajectory, made entry by entry."""

    def __init__(self, tape: TapeOutline) -> None:
        self.tape = tape
        self.steps: list[WireObject] = []
        self.agents: dict[str, TapeOutline] = {}
        """The sub-agents that are written."""
        self._owners: dict[str, WireObject] = {}
        """Call → the step that made it."""
        self._started: list[str] = []
        """Sub-agents that no result has named."""

    def add_entry(self, placed: PlacedEntry) -> None:
        """Add what an entry says: a step, a result of an earlier one, or nothing."""
        entry, before = placed
        match entry.data:
            case ToolResult() as result:
                self._add_observation(entry, result)
                return
            case AgentStart(agent=agent) if agent in self.tape.agents:
                self.agents[agent] = self.tape.agents[agent]
                self._started.append(agent)
                return
        step = self._build_step(entry)
        if step is None:
            return
        step = {"step_id": len(self.steps) + 1, "timestamp": shorten_time(entry.time), **step}
        extra = step.get("extra", {})
        step["extra"] = {"entry": entry.id, **({"parent": before} if before else {}), **extra}
        self.steps.append(step)
        if isinstance(entry.data, Assistant):
            calls = select_tool_calls(entry.data.content)
            self._owners |= dict.fromkeys((call.id for call in calls), step)

    def _build_step(self, entry: Entry) -> WireObject | None:
        data = entry.data
        match data:
            case User():
                return {"source": "user", "message": self._build_content(data.content)}
            case Context(role=role, origin=origin):
                source = "system" if role == "system" else "user"
                message = self._build_content(data.content)
                return {"source": source, "message": message, "extra": {"origin": origin}}
            case Anchor(kind=kind):
                message = render_summary(data.summary)
                return {"source": "system", "message": message, "extra": {"anchor": kind}}
            case Assistant():
                return _build_agent_step(data)
        return None

    def _build_content(self, content: Content) -> str | list[WireObject]:
        """Return a text, or parts where there are pictures."""
        if not any(isinstance(block, Image) for block in content):
            return join_texts(content)
        parts: list[WireObject] = []
        for block in content:
            if isinstance(block, Text) and block.text:
                parts.append({"type": "text", "text": block.text})
            elif isinstance(block, Image) and block.mime in _PICTURES:
                data = load_base64(block.blob, self.tape.load)
                path = f"data:{block.mime};base64,{data}#://"
                source = {"media_type": block.mime, "path": path}
                parts += [{"type": "image", "source": source}] if data is not None else []
        return parts

    def _add_observation(self, entry: Entry, result: ToolResult) -> None:
        """Add a result to the step that called; one that nothing called is left out."""
        step = self._owners.get(result.call_id)
        if step is None:
            return
        agents, self._started = self._started, []
        seen: WireObject = {
            "source_call_id": result.call_id,
            "content": self._build_content(result.content),
            **(
                {"subagent_trajectory_ref": [{"trajectory_id": a} for a in agents]}
                if agents
                else {}
            ),
            "extra": {"entry": entry.id, **({"is_error": True} if result.is_error else {})},
        }
        step.setdefault("observation", {"results": []})["results"].append(seen)


def _build_agent_step(answer: Assistant) -> WireObject:
    usage = answer.usage
    thoughts = "\n\n".join(
        block.text for block in answer.content if isinstance(block, Thinking) and block.text
    )
    calls = [
        {
            "tool_call_id": call.id,
            "function_name": call.name,
            "arguments": build_decoded_arguments(call),
        }
        for call in select_tool_calls(answer.content)
    ]
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    metrics: WireObject = {
        "prompt_tokens": usage.input + cached,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read or 0,
        **({"cost_usd": answer.cost.amount} if answer.cost else {}),
        **({"extra": {"cache_write_tokens": usage.cache_write}} if usage.cache_write else {}),
    }
    return {
        "source": "agent",
        "message": join_texts(answer.content),
        **({"model_name": answer.model} if answer.model else {}),
        **({"reasoning_content": thoughts} if thoughts else {}),
        **({"tool_calls": calls} if calls else {}),
        "metrics": metrics,
        "extra": {
            **({"provider": answer.provider} if answer.provider else {}),
            "stop_reason": answer.stop_reason,
        },
    }


def _sum_metrics(tape: TapeOutline, steps: int, agents: list[WireObject]) -> WireObject:
    """Return the sums of a trajectory; the cost has that of its sub-agents in it."""
    answers = [
        placed.entry.data for placed in tape.entries if isinstance(placed.entry.data, Assistant)
    ]
    cached = sum(answer.usage.cache_read or 0 for answer in answers)
    written = sum(answer.usage.cache_write or 0 for answer in answers)
    return {
        "total_prompt_tokens": sum(answer.usage.input for answer in answers) + cached + written,
        "total_completion_tokens": sum(answer.usage.output for answer in answers),
        "total_cached_tokens": cached,
        "total_cost_usd": sum(answer.cost.amount for answer in answers if answer.cost)
        + sum(agent["final_metrics"]["total_cost_usd"] for agent in agents),
        "total_steps": steps,
    }
