"""The session of a sub-agent: where its history is, with which model, tools and environment.

part          of the sub-agent
------------  ---------------------------------------------------------------------------
history       its own: a branch of its parent's tape that begins at the tape's start, or
a tape of its own
model         that of the order, else of the type, else its parent's
tools         its parent's of now, without those that start sub-agents at the deepest level,
and without those that need a person; the type and the order may name fewer
environment   its parent's, read-only for types that only read; a worktree where one is asked
permissions   its parent's (`policy`), in its own folder
prompt        the type's text in place of the first layer, with the facts and AGENTS.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tape.folders import locate_repository
from tape.model.entries import Start
from tape.model.line import decode_line
from tape.store.refs import read_head_at

from ..agent.answer_form import ANSWER_TOOL
from ..agent.recorder import Recorder
from ..agent.session import Session
from ..env.local import LocalEnvironment
from ..env.protocol import is_inside_folder
from ..env.wrappers import ReadOnlyEnvironment, SharedEnvironment, is_place
from ..errors import AuthenticationError, ConfigurationError, UnknownModel
from ..hooks.claude import list_tool_names
from ..llm.client import Client
from ..llm.model_names import BUILT_IN_PROVIDERS
from ..policy.modes import PermissionMode
from ..tools.agents import AGENT_TOOLS, TASK_TOOLS
from ..tools.ask import ASK_TOOLS
from ..tools.builtin import SESSION_TOOLS
from ..tools.registry import TOOL_PRESETS
from .policy import ChildPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.store.tape import Tape

    from ..agent.front_end import FrontEnd, ModelFactory
    from ..agent.model import AgentModel
    from ..agent.setup import SessionAgents
    from ..env.protocol import ExecutionEnvironment
    from ..env.sandbox.sandbox import Sandbox
    from ..tools.agent_runs import AgentOrder
    from ..tools.registry import ToolRegistry
    from .types import AgentType
    from .worktree import Worktree

_OF_PERSONS = frozenset((*(tool.name for tool in ASK_TOOLS), ANSWER_TOOL))
"""Tools that need somebody to answer."""
_ROLE = (
    "You are a sub-agent: another agent gave you this task, and nobody can answer questions. Do all"
    " of it. Your last message is your result, and all that the other agent sees: say in it what"
    " you found or did, with paths, and what is left."
)


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """A sub-agent that can be opened."""

    agent: str
    kind: AgentType
    order: AgentOrder
    model: AgentModel
    models: ModelFactory
    """Models for its folder, for sub-agents of its own."""
    folder: str
    worktree: Worktree | None = None
    remarks: tuple[str, ...] = ()


def choose_folder(parent: Session, order: AgentOrder) -> str:
    """Return where a sub-agent works; raises ConfigurationError outside of its parent's folder."""
    env = parent.setup.env
    if order.place:
        return order.place
    if not order.folder:
        return env.working_directory
    folder = env.resolve(order.folder)
    if not is_inside_folder(folder, env.working_directory):
        raise ConfigurationError(f"{order.folder} is outside of {env.working_directory}")
    if is_place(env):
        return folder  # that it is there is seen when it is opened
    place = Path(folder)
    if not place.is_dir():
        wrong = "is a file, not a folder" if place.exists() else "does not exist"
        raise ConfigurationError(f"working_dir: {order.folder} {wrong}")
    return folder


def choose_model(
    models: ModelFactory, parent: AgentModel, kind: AgentType, order: AgentOrder, folder: str
) -> tuple[AgentModel, ModelFactory, tuple[str, ...]]:
    """Return the model of a sub-agent, models for its folder, and remarks.

    A built-in model is a new one: a script is played from its first answer. Raises UnknownModel,
    AuthenticationError and ConfigurationError for a model that the order names; one of a type that
    cannot be called is its parent's instead.
    """
    role = "\n\n".join(filter(None, (models.override.appended, _ROLE)))
    override = models.override._replace(appended=role)
    if kind.prompt:
        override = override._replace(base=kind.prompt)
    if order.type and kind.skills:
        names = ", ".join(kind.skills)
        override = override._replace(appended=f"{role}\n\nUse these skills first: {names}.")
    moved = models.move(folder, override, reads_instructions=kind.reads_instructions)
    remarks = []
    if order.model:
        name = models.names.resolve_name(order.model)
    else:
        name = parent.name
        if kind.model:
            try:
                name = models.names.resolve_name(kind.model)
                moved.choose(name)
            except (UnknownModel, AuthenticationError, ConfigurationError) as error:
                remarks.append(f"{kind.name} works with {parent.name}: {error}")
                name = parent.name
    own = moved
    if name.partition("/")[0] in BUILT_IN_PROVIDERS:
        client = Client.from_env(models.environ, presets=models.names.presets)
        own = replace(moved, client=client)
    plain = replace(moved, override=models.override)
    return own.choose(name), plain, tuple(remarks)


def build_tools(
    parent: Session, plan: ChildPlan, *, may_start: bool
) -> tuple[ToolRegistry, tuple[str, ...]]:
    """Return the tools of a sub-agent, and those that its type names and nobody has."""
    tuning, tools = parent.setup.tuning, parent.setup.tools.copy()
    tools.profile = parent.setup.tools.profile
    plain = [
        name for name in tools.active if name not in {*SESSION_TOOLS, *AGENT_TOOLS, ANSWER_TOOL}
    ]
    if not plain and parent.setup.tools.profile is None and tools.active:
        tools.set_active((*TOOL_PRESETS["default"], *tools.active))
        tools.profile = "default"  # only the tools for sub-agents were chosen
    tools = plan.model.equip(tools, tuning)
    removed = _OF_PERSONS if may_start else _OF_PERSONS | AGENT_TOOLS
    for name in removed & {*tools.names}:
        tools.unregister(name)
    tools.tolerated -= removed
    chosen = [names for names in (plan.kind.tools, plan.order.tools) if names is not None]
    known = [name for name in tools.names if name in {*tools.active, *tools.tolerated}]
    missing: list[str] = []
    active = [*tools.active]
    for name in (name for names in chosen for name in names):
        if not any(is_named((tool,), name) for tool in active):
            other = next((tool for tool in known if is_named((tool,), name)), None)
            (missing if other is None else active).append(other or name)
    active = [
        tool
        for tool in active
        if all(any(is_named((tool,), name) for name in names) for names in chosen)
        and not any(is_named((tool,), name) for name in plan.kind.disallowed)
    ]
    if tuple(active) != tools.active:
        if not active:
            raise ConfigurationError(f"{plan.kind.name}: none of its tools is available here")
        tools.set_active(active)
        tools.profile, tools.tolerated = None, frozenset()
    return tools, tuple(dict.fromkeys(missing))


def is_named(tools: Sequence[str], name: str) -> bool:
    """Return whether a name, as files of any agent write it, is that of one of these tools.

    What is in parentheses, as in `Bash(git *)` or `Agent(Explore)`, is ignored.
    """
    tool_name = name.partition("(")[0].strip().lower()
    server = tool_name.removeprefix("mcp__")
    for tool in tools:
        if tool_name in {spelling.lower() for spelling in list_tool_names(tool)}:
            return True
        own = tool.lower()
        if server != tool_name and (own == server or own.startswith(f"{server}__")):
            return True
        if tool_name in {"agent", "task"} and tool in AGENT_TOOLS - {*TASK_TOOLS}:
            return True
    return False


def begin_branch(front: FrontEnd, parent: Recorder, agent: str) -> Recorder | None:
    """Return a new branch of its parent's tape, empty but for the tape's start.

    None where the tape's start is not its own: such a branch would begin with the history of
    another one.
    """
    tape = front.library.store.open_folder(parent.tape.folder.name)
    try:
        phase, offset, line = next(iter(tape.phases.read_all_lines()))
        data = decode_line(line, tape.blobs.text).data
        if not isinstance(data, Start) or data.origin is not None or data.tape != tape.id:
            tape.close()
            return None
        tape.fork(read_head_at(tape.phases, agent, phase, offset), agent)
        return Recorder.open(tape, agent, durability=front.settings.durability)
    except BaseException:
        tape.close()
        raise


def begin_tape(front: FrontEnd, task: str, folder: str) -> Recorder:
    """Return a new tape for a sub-agent."""
    beginning = front.build_beginning(folder, title=task, slug=task)
    return Recorder.open(
        front.library.store.create(beginning), durability=front.settings.durability
    )


def open_history(
    front: FrontEnd, parent: Recorder, branch: str | None, tape: str | None
) -> Recorder:
    """Open the history of a sub-agent again; raises NotFound, Damaged or Busy."""
    store = front.library.store
    opened: Tape = store.open_folder(parent.tape.folder.name) if tape is None else store.open(tape)
    try:
        return Recorder.open(opened, branch or opened.refs().current, durability="barrier")
    except BaseException:
        opened.close()
        raise


def _move_sandbox(sandbox: Sandbox | None, plan: ChildPlan) -> Sandbox | None:
    """Return the sandbox of a sub-agent in a folder of its own; raises ConfigurationError.

    That of its parent covers the folders in it; a worktree is elsewhere and has one of its own.
    """
    if sandbox is None or plan.worktree is None:
        return sandbox
    from ..env.sandbox.sandbox import open_sandbox  # few sessions have one

    return open_sandbox(replace(sandbox.request, folder=plan.folder, folders=()))


async def _enter_folder(env: ExecutionEnvironment, folder: str) -> ExecutionEnvironment:
    """Return the environment of a folder in the place of another; a sub-agent never leaves it."""
    if folder == env.working_directory:
        return SharedEnvironment(env)
    move: Callable[[str], ExecutionEnvironment] = getattr(env, "move")  # noqa: B009 (a wrapper's)
    moved = move(folder)
    await moved.initialize()
    return moved


async def open_child(
    front: FrontEnd,
    parent: Session,
    plan: ChildPlan,
    recorder: Recorder,
    open_agents: Callable[[Session], SessionAgents] | None,
) -> Session:
    """Return the session of a sub-agent on its history."""
    setup, kind, order = parent.setup, plan.kind, plan.order
    env: ExecutionEnvironment
    if is_place(setup.env):
        if plan.worktree is not None:
            raise ConfigurationError("worktrees are made on this machine alone, not in a place")
        env = await _enter_folder(setup.env, plan.folder)
    elif plan.worktree is not None or plan.folder != setup.env.working_directory:
        env = LocalEnvironment(
            plan.folder,
            front.environ,
            policy=front.settings.variable_rules,
            sandbox=_move_sandbox(getattr(setup.env, "sandbox", None), plan),
        )
        await env.initialize()
    else:
        env = SharedEnvironment(setup.env)
    if kind.mode is PermissionMode.PLAN:
        env = ReadOnlyEnvironment(env)
    tools, _ = build_tools(parent, plan, may_start=open_agents is not None)
    turns = kind.max_turns if order.max_turns is None else order.max_turns
    config = replace(
        setup.config,
        max_turns=setup.config.max_subagent_turns if turns is None else turns,
        max_seconds=0,
        effort=kind.effort or setup.config.effort,
    )
    elsewhere = None if plan.folder == setup.env.working_directory else plan.folder
    child = Session(
        replace(
            setup,
            model=plan.model,
            tools=tools,
            env=env,
            open=lambda _: recorder,
            sources=(),  # its tools are the parent's, which starts and ends the servers
            policy=ChildPolicy(
                *(lambda: parent.setup.policy, plan.agent, elsewhere, kind.mode),
                is_confined=bool(order.folder and not order.place),
                sandbox=getattr(env, "sandbox", None),
            ),
            choose_namer=lambda *_: None,
            config=config,
            find_model=plan.models.choose,
            closes_without_key=False,
            hooks=setup.hooks.share(plan.folder, plan.agent, kind.name),
            file_recorder=None if setup.file_recorder is None else front.build_file_recorder(),
            open_agents=open_agents,
            agent=plan.agent,
        ),
        recorder,
    )
    child.run_state.parent = parent.run_state
    if not order.place:  # a folder of a program is gone soon; the tape stays where its parent is
        recorder.enter_folder(plan.folder, locate_repository(plan.folder), front.find_facts)
    return child
