"""The tools that start sub-agents and ask for their results, in two families; see docs/agents.md.

    family             tools                                 a run in the background
    -----------------  ------------------------------------  -------------------------------
    spawning (openai)  spawn_agent send_input wait           always: spawn_agent returns the
                       close_agent                           id, wait the result
    tasks (anthropic)  Task TaskOutput                       with run_in_background: Task
                                                             returns the id, TaskOutput the
                                                             result

Both do the same work, by the `AgentRunner` of the session (`gong/subagents/`), which is imported
with the first call.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from tape.model.entries import Text
from tape.text import format_count

from ..tool_settings import DEFAULT_SETTINGS
from .agent_runs import DEFAULT_TYPE, AgentOrder
from .limits import choose_family_limits
from .output_storage import keep_full_output
from .tool import AgentTool, ToolOutcome, find_no_targets
from .truncation import limit_text

if TYPE_CHECKING:
    from ..tool_settings import ToolSettings
    from .agent_runs import AgentReport, AgentRunner
    from .limits import OutputLimits
    from .tool import ToolContext

_MAX_WAIT_MS = 600_000


class TaskDetails(Struct, frozen=True, omit_defaults=True):
    """A task as programs see it."""

    task_id: str
    type: Literal["agent", "shell"]
    status: str
    output: str = ""
    error: str = ""
    created_at: str = ""
    completed_at: str = ""
    turns_used: int = 0
    success: bool = False
    tokens: int = 0


def _describe_report(report: AgentReport) -> TaskDetails:
    is_error = report.status not in {"running", "completed"}
    return TaskDetails(
        report.agent,
        "agent",
        report.status,
        "" if is_error else report.output,
        report.output if is_error else "",
        report.created_at,
        report.completed_at,
        report.turns_used,
        report.success,
        report.usage.total,
    )


def _encode_json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _build_json(value: dict[str, Any], report: AgentReport) -> ToolOutcome:
    return ToolOutcome.from_text(_encode_json(value), _describe_report(report))


async def _show_part(
    text: str, whole: str, result: ToolOutcome, context: ToolContext
) -> ToolOutcome:
    """Return a result that shows a text, and keeps all of it where that is more."""
    result = replace(result, content=(Text(text),))
    if text == whole:
        return result
    full = await keep_full_output(whole, context.describe_output())
    return result.add_full(full)


_STARTED = "Started in the background as {}. You get a message when it ends."
_NO_AGENTS = "Sub-agents cannot be started here: do the work yourself."


def _find_runner(context: ToolContext) -> AgentRunner | None:
    return None if context.find_agents is None else context.find_agents()


class SpawnArguments(Struct, frozen=True):
    """What the sub-agent is to do."""

    task: Annotated[str, Meta(min_length=1, description="All it needs to know: it sees no more")]
    agent_type: Annotated[str, Meta(description="Its type")] = DEFAULT_TYPE
    working_dir: Annotated[str, Meta(description="Folder it is restricted to; default: yours")] = ""
    model: Annotated[str, Meta(description="provider/model; default: yours")] = ""
    max_turns: Annotated[int, Meta(ge=0, description="Most model calls; 0: no limit")] | None = None


async def run_spawn_agent(arguments: SpawnArguments, context: ToolContext) -> ToolOutcome:
    """Start a sub-agent and return its id."""
    if (agents := _find_runner(context)) is None:
        return ToolOutcome.error(_NO_AGENTS)
    agent = await agents.start(
        AgentOrder(
            arguments.task,
            arguments.agent_type,
            model=arguments.model,
            folder=arguments.working_dir,
            max_turns=arguments.max_turns,
        )
    )
    text = msgspec.json.encode({"agent_id": agent, "status": "running"}).decode()
    return ToolOutcome.from_text(text, TaskDetails(agent, "agent", "running"))


class SendArguments(Struct, frozen=True):
    """Whom to tell, and what."""

    agent_id: Annotated[str, Meta(description="Such as agent-1")]
    message: Annotated[str, Meta(min_length=1)]


async def run_send_input(arguments: SendArguments, context: ToolContext) -> ToolOutcome:
    """Tell a sub-agent more."""
    if (agents := _find_runner(context)) is None:
        return ToolOutcome.error(_NO_AGENTS)
    report = await agents.send(arguments.agent_id, arguments.message)
    return _build_json({"agent_id": report.agent, "status": report.status}, report)


class WaitArguments(Struct, frozen=True):
    """Which sub-agent to wait for."""

    agent_id: Annotated[str, Meta(description="Such as agent-1")]
    timeout_ms: (
        Annotated[int, Meta(ge=0, le=_MAX_WAIT_MS, description="Default: until it ends")] | None
    ) = None


async def run_wait(
    arguments: WaitArguments, context: ToolContext, *, limits: OutputLimits
) -> ToolOutcome:
    """Return the result of a sub-agent when it has ended."""
    if (agents := _find_runner(context)) is None:
        return ToolOutcome.error(_NO_AGENTS)
    limit_ms = arguments.timeout_ms
    report = await agents.wait(arguments.agent_id, None if limit_ms is None else limit_ms / 1000)
    whole = {
        "output": report.output,
        "success": report.success,
        "turns_used": report.turns_used,
        "status": report.status,
    }
    limited = {**whole, "output": limit_text(report.output, limits)}
    result = _build_json(limited, report)
    return await _show_part(_encode_json(limited), _encode_json(whole), result, context)


class CloseArguments(Struct, frozen=True):
    """Which sub-agent to end."""

    agent_id: Annotated[str, Meta(description="Such as agent-1")]


async def run_close_agent(arguments: CloseArguments, context: ToolContext) -> ToolOutcome:
    """End a sub-agent."""
    if (agents := _find_runner(context)) is None:
        return ToolOutcome.error(_NO_AGENTS)
    report = await agents.finish(arguments.agent_id)
    return _build_json({"agent_id": report.agent, "status": report.status}, report)


class TaskArguments(Struct, frozen=True):
    """What the sub-agent is to do."""

    prompt: Annotated[str, Meta(min_length=1, description="All it needs to know: it sees no more")]
    description: Annotated[str, Meta(description="The task in 3 to 5 words")] = ""
    subagent_type: Annotated[str, Meta(description="Its type")] = DEFAULT_TYPE
    model: Annotated[str, Meta(description="provider/model; default: yours")] = ""
    run_in_background: Annotated[bool, Meta(description="Return its id at once")] = False
    allowed_tools: Annotated[tuple[str, ...], Meta(description="Only these tools")] | None = None


async def run_task(
    arguments: TaskArguments, context: ToolContext, *, limits: OutputLimits
) -> ToolOutcome:
    """Let a sub-agent do a task; return its result, or in the background its id."""
    if (agents := _find_runner(context)) is None:
        return ToolOutcome.error(_NO_AGENTS)
    order = AgentOrder(
        arguments.prompt,
        arguments.subagent_type,
        arguments.description,
        arguments.model,
        tools=arguments.allowed_tools,
    )
    if arguments.run_in_background:
        agent = await agents.start(order)
        return ToolOutcome.from_text(_STARTED.format(agent), TaskDetails(agent, "agent", "running"))
    report = await agents.run(order)
    details = _describe_report(report)
    if report.status == "running":  # its type always runs in the background
        return ToolOutcome.from_text(_STARTED.format(report.agent), details)
    output = report.output or "(it ended without words)"
    start = "" if report.success else f"{report.agent} {report.status}: "
    result = ToolOutcome((), details, is_error=not report.success)
    return await _show_part(
        f"{start}{limit_text(output, limits)}", f"{start}{output}", result, context
    )


class TaskOutputArguments(Struct, frozen=True):
    """Which task to read."""

    task_id: Annotated[str, Meta(description="Such as agent-1, or bg_1 of a command")]
    block: Annotated[bool, Meta(description="Wait for its end")] = True
    timeout: Annotated[
        int, Meta(ge=0, le=_MAX_WAIT_MS, description="Most milliseconds to wait")
    ] = 30_000


async def run_task_output(
    arguments: TaskOutputArguments, context: ToolContext, *, limits: OutputLimits
) -> ToolOutcome:
    """Return how a task stands: that of a sub-agent, or a command in the background."""
    seconds = arguments.timeout / 1000 if arguments.block else 0
    if arguments.task_id.startswith("bg_") and context.background is not None:
        return await context.background.read(arguments.task_id, seconds)
    if (agents := _find_runner(context)) is None:
        return ToolOutcome.error(_NO_AGENTS)
    report = await agents.wait(arguments.task_id, seconds)
    calls = format_count(report.turns_used, "model call")
    text, whole = (
        f"{output}\n\n[{report.agent} {report.status}, {calls}]".strip()
        for output in (limit_text(report.output, limits), report.output)
    )
    return await _show_part(text, whole, ToolOutcome((), _describe_report(report)), context)


_IN_TURN = {"send_input", "close_agent"}
"""What changes a sub-agent that is there waits for the calls before it: they may be about it."""


def _build_tool(name: str, description: str, arguments: type[Struct], run: Any) -> AgentTool:
    """Return a tool; those that start or wait run side by side, judged call by call."""
    return AgentTool(
        name=name,
        description=description,
        arguments=arguments,
        run=run,
        parallel=name not in _IN_TURN,
        stopped="It was stopped, and its sub-agent with it.",
        find_targets=find_no_targets,
    )


_TYPES = "general-purpose, Explore and Plan (both only read), code-review"


RESULT_LIMIT = "spawn_agent"
"""Whose limits those of a sub-agent's result are, by whichever tool its parent asks for it."""


def build_agent_tools(
    types: str = _TYPES, tuning: ToolSettings = DEFAULT_SETTINGS
) -> tuple[AgentTool, ...]:
    """Return the tools of both families; `types` names the types of sub-agents in words."""
    limits = choose_family_limits(RESULT_LIMIT, tuning)
    what = (
        "a sub-agent with a history of its own, for work that can be described in full and whose"
        f" result is a short text: to search widely, or to do parts side by side. Types: {types}."
    )
    start = f"Start {what} Returns its id."
    return (
        _build_tool("spawn_agent", start, SpawnArguments, run_spawn_agent),
        _build_tool(
            "send_input",
            "Tell a sub-agent more: it hears it at its next step, or continues if it had ended.",
            SendArguments,
            run_send_input,
        ),
        _build_tool(
            "wait",
            "Wait for a sub-agent to end; returns output, success and turns_used.",
            WaitArguments,
            partial(run_wait, limits=limits),
        ),
        _build_tool("close_agent", "End a sub-agent.", CloseArguments, run_close_agent),
        _build_tool(
            "Task",
            f"Let {what} Returns its result.",
            TaskArguments,
            partial(run_task, limits=limits),
        ),
        _build_tool(
            "TaskOutput",
            "Return the output and status of a task in the background.",
            TaskOutputArguments,
            partial(run_task_output, limits=limits),
        ),
    )


SPAWNING_TOOLS = ("spawn_agent", "send_input", "wait", "close_agent")
TASK_TOOLS = ("Task", "TaskOutput")
AGENT_TOOLS = frozenset((*SPAWNING_TOOLS, *TASK_TOOLS))
"""The names of both families."""
