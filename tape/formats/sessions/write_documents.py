"""One branch of a tape → a document: ATIF v1.8 (Harbor), or the Simple format of txcript.

entry          step of ATIF                              message of Simple
-------------  ----------------------------------------  --------------------------------
user, context  source user                               role user
assistant      source agent, with calls and metrics      role assistant
tool.result    observation of the step that called       role user, tool_result
anchor         source system; what it covers stays       role user, the summary
the tape       session_id; id, entry ids in `extra`      id, cwd, title
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.entries import (
    Anchor,
    Assistant,
    Context,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from ...model.summary import render_summary
from ..wire import build_argument_object, load_base64, unpack_raw
from .outline import shorten_time

if TYPE_CHECKING:
    from ...model.entries import Block, Content
    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

ATIF = "ATIF-v1.8"


def build_atif(tape: TapeOutline, program: str) -> WireObject:
    """Return the trajectory of a branch; `program` is the agent's name and version."""
    name, _, version = program.partition("/")
    steps: list[WireObject] = []
    owners: dict[str, WireObject] = {}
    for entry, before in tape.entries:
        if isinstance(entry.data, ToolResult):
            _add_observation(owners.get(entry.data.call_id), entry.data)
            continue
        step = _build_step(entry)
        if step is None:
            continue
        step = {"step_id": len(steps) + 1, "timestamp": shorten_time(entry.time), **step}
        step["extra"] = {"entry": entry.id, **({"parent": before} if before else {})}
        steps.append(step)
        if isinstance(entry.data, Assistant):
            owners |= dict.fromkeys((one.id for one in select_tool_calls(entry.data.content)), step)
    models = [step["model_name"] for step in steps if step.get("model_name")]
    return {
        "schema_version": ATIF,
        "session_id": tape.uuid,
        "agent": {
            "name": name,
            "version": version or "0",
            **({"model_name": models[-1]} if models else {}),
        },
        "steps": steps or [{"step_id": 1, "source": "system", "message": ""}],
        "final_metrics": _sum_metrics(tape, len(steps)),
        "extra": {"tape": tape.id, "cwd": tape.cwd, "title": tape.title},
    }


def _build_step(entry: Entry) -> WireObject | None:
    data = entry.data
    match data:
        case User() | Context():
            source = "system" if isinstance(data, Context) and data.role == "system" else "user"
            return {"source": source, "message": join_texts(data.content)}
        case Anchor():
            return {"source": "system", "message": render_summary(data.summary)}
        case Assistant():
            return _build_agent_step(data)
    return None


def _build_agent_step(said: Assistant) -> WireObject:
    usage = said.usage
    thoughts = "\n\n".join(
        block.text for block in said.content if isinstance(block, Thinking) and block.text
    )
    calls = [
        {
            "tool_call_id": call.id,
            "function_name": call.name,
            "arguments": _read_arguments(call),
        }
        for call in select_tool_calls(said.content)
    ]
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    metrics: WireObject = {
        "prompt_tokens": usage.input + cached,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read or 0,
        **({"cost_usd": said.cost.amount} if said.cost else {}),
    }
    return {
        "source": "agent",
        "message": join_texts(said.content),
        **({"model_name": said.model} if said.model else {}),
        **({"reasoning_content": thoughts} if thoughts else {}),
        **({"tool_calls": calls} if calls else {}),
        "metrics": metrics,
    }


def _read_arguments(call: ToolCall) -> WireObject:
    given = build_argument_object(call)
    return given if isinstance(given, dict) else unpack_raw(given)


def _add_observation(step: WireObject | None, result: ToolResult) -> None:
    """Add a result to the step that called; one that nothing called is left out."""
    if step is not None:
        seen = {"source_call_id": result.call_id, "content": join_texts(result.content)}
        step.setdefault("observation", {"results": []})["results"].append(seen)


def _sum_metrics(tape: TapeOutline, steps: int) -> WireObject:
    answers = [one.entry.data for one in tape.entries if isinstance(one.entry.data, Assistant)]
    cached = sum(one.usage.cache_read or 0 for one in answers)
    written = sum(one.usage.cache_write or 0 for one in answers)
    return {
        "total_prompt_tokens": sum(one.usage.input for one in answers) + cached + written,
        "total_completion_tokens": sum(one.usage.output for one in answers),
        "total_cached_tokens": cached,
        "total_cost_usd": sum(one.cost.amount for one in answers if one.cost),
        "total_steps": steps,
    }


def build_simple(tape: TapeOutline) -> WireObject:
    """Return a branch in the Simple format."""
    messages: list[WireObject] = []
    model = ""
    for entry, _ in tape.entries:
        match entry.data:
            case User(content=content) | Context(content=content):
                messages.append({"role": "user", "content": _build_blocks(tape, content)})
            case Anchor(summary=summary):
                messages.append({"role": "user", "content": render_summary(summary)})
            case Assistant() as said:
                model = said.model or model
                blocks = _build_blocks(tape, said.content)
                messages.append({"role": "assistant", "content": blocks})
            case ToolResult() as result:
                piece = {
                    "type": "tool_result",
                    "tool_use_id": result.call_id,
                    "content": _build_blocks(tape, result.content),
                    "is_error": result.is_error,
                }
                messages.append({"role": "user", "content": [piece]})
    return {
        "id": tape.uuid,
        "timestamp": shorten_time(tape.created),
        "cwd": tape.cwd,
        **({"title": tape.title} if tape.title else {}),
        **({"model": model} if model else {}),
        **({"git_branch": tape.git_branch} if tape.git_branch else {}),
        "messages": messages,
    }


def _build_blocks(tape: TapeOutline, content: Content) -> list[WireObject]:
    return [one for block in content if (one := _build_block(tape, block)) is not None]


def _build_block(tape: TapeOutline, block: Block) -> WireObject | None:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {"type": "thinking", "thinking": block.text} if block.text else None
        case ToolCall():
            given = _read_arguments(block)
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
        case Image():
            data = load_base64(block.blob, tape.load)
            if data is not None:
                source = {"type": "base64", "media_type": block.mime, "data": data}
                return {"type": "image", "source": source}
    return None
