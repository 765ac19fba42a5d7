"""Opening a session: find its tape, open its branch, choose its model, assemble its parts.

Every front end uses `open_session` to continue, or `read_session` to read only. All inputs are
values; nothing here reads the environment or the terminal.

The time of a start is here: git is asked about the folder first, and runs in its own process while
the tools and the provider are imported; the policy is imported with the first call it decides.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tape.clock import format_timestamp, read_clock
from tape.errors import NotFound, UsageError
from tape.folders import locate_repository
from tape.model.entries import ToolStart
from tape.places.reference import parse_reference
from tape.places.resolve import find_reference, find_tape_here, resolve_reference

from ..agent.front_end import NO_MODEL, FrontEnd, ModelFactory, is_profile_choice
from ..agent.no_hooks import NO_HOOKS, NoHooks
from ..agent.recorder import Recorder, find_last_effort, find_last_model, read_history
from ..agent.session import Session
from ..agent.session_config import SessionConfig
from ..agent.setup import SessionSetup
from ..checkpoints.file_recorder import describe_environment
from ..context.system import (
    Surroundings,
    find_repository,
)
from ..credentials import Credentials
from ..env.local import LocalEnvironment
from ..env.protocol import LOCAL
from ..errors import AuthenticationError, ConfigurationError
from ..llm.client import Client, choose_default_model
from ..llm.model_names import BUILT_IN_PROVIDERS, ModelNames
from ..llm.retry import PATIENT_RETRY, RetryPolicy
from ..policy.permissions import build_policy
from ..policy.saved_rules import save_answered_rule
from ..private_files import locate_config_file
from ..project import has_agent_files, has_project_parts, has_skills, locate_project
from ..tools.agents import build_agent_tools
from ..tools.builtin import OFFERED_TOOLS, SESSION_TOOLS, build_registry
from ..tools.registry import TOOL_PRESETS, ToolRegistry
from .open_session import OpenSession, SessionPreview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tape.model.line import Entry
    from tape.places.moved import MovedProject
    from tape.store.tape import Hit

    from ..agent.hook_points import SessionHooks
    from ..agent.setup import SessionAgents, ToolSource
    from ..config import Settings
    from ..env.places.environment import PlaceEnvironment
    from ..env.protocol import ExecutionEnvironment
    from ..env.sandbox.sandbox import Sandbox
    from ..policy.permissions import PermissionPolicy
    from ..skills.session_skills import SessionSkills


class ProjectMoved(NotFound):
    """No session in this folder, but some of one that is gone and may have moved here."""

    def __init__(self, text: str, moved: MovedProject) -> None:
        super().__init__(text)
        self.moved = moved


def find_session(front: FrontEnd, ref: str) -> Hit:
    """Return the entry that a REF names, with its tape, which the caller closes.

    An empty REF means the folder's newest session; where there is none, the error tells of those
    of a folder that is gone and may have moved here.
    Raises UsageError, NotFound (ProjectMoved then), Ambiguous, and Damaged or NewerFormat for that
    tape.
    """
    try:
        return resolve_reference(front.library.store, front.library.index, ref, front.folder)
    except NotFound as error:
        if ref:
            raise
        from tape.places.moved import (  # nearly always there is a session
            describe_moved_project,
            find_moved_project,
        )

        text = "no session in this folder yet: start one with gong chat"
        if (moved := find_moved_project(*front.library, front.folder, beside=True)) is not None:
            raise ProjectMoved(f"{text}. {describe_moved_project(moved)}", moved) from error
        raise NotFound(text) from error


def resume_branch(front: FrontEnd, hit: Hit, ref: str) -> Recorder:
    """Open the branch that a REF names; default: the current branch, or a new one if it is locked.

    Raises UsageError for a REF to an earlier entry (that needs a fork), and Busy if another
    program is writing the named branch.
    """
    reference = parse_reference(ref)
    if reference.tape is not None:  # of a REF without a tape nothing has to be found
        reference = find_reference(*front.library, ref, front.folder).reference
    is_head = parse_reference(ref).is_bare and hit.head.entry == hit.tape.head().entry
    if reference.names_entry and not is_head:
        raise UsageError(f"{ref} is an earlier entry: use --fork {ref} to continue from there")
    return Recorder.open(hit.tape, reference.branch, durability=front.settings.durability)


def fork_branch(front: FrontEnd, hit: Hit) -> Recorder:
    """Start a branch at the found entry, make it the current branch, and open it."""
    branch = hit.tape.fork(hit.head, switch=True)
    return Recorder.open(hit.tape, branch, durability=front.settings.durability)


def enter_folder(front: FrontEnd, recorder: Recorder) -> None:
    """Let a session continue in the folder of a front end, and warn if it worked in another one.

    The tape says so with the next entry: looking at a session does not move it.
    """
    folder = front.folder
    starts = (entry.data for entry in reversed(recorder.path) if isinstance(entry.data, ToolStart))
    last = next(starts, None)
    if front.place == LOCAL and last is not None and (there := last.environment) is not None:
        front.warn(
            f"this session worked in {there.name}; it continues on this machine:"
            f" --env {there.name} lets it act there again"
        )
    before = recorder.enter_folder(folder, locate_repository(folder), front.find_facts)
    if before is not None:
        front.warn(f"this session worked in {before}; it continues in {folder}")


def load_session_hooks(front: FrontEnd) -> SessionHooks | NoHooks:
    """Return the hooks for the folder of a front end; without any nothing of them is imported.

    Warns of what the project brings and is not trusted, and of hooks that cannot be used.
    """
    folder, environ, hooks = front.folder, front.environ, [*front.hooks]
    brings_parts = has_project_parts(folder, environ)
    if brings_parts:
        from ..trust import read_project  # only for a project that brings something

        parts = read_project(folder, environ).list_untrusted()
        if parts:
            names = ", ".join(part.path for part in parts)
            front.warn(f"not trusted, so without effect: {names} (gong trust shows and allows it)")
    has_plugins = locate_config_file(environ).with_name("plugins").is_dir()
    if brings_parts or front.settings.hooks or has_plugins or _has_user_hooks(environ):
        from ..hooks.sources import load_hooks  # only if there may be hooks

        policy = front.settings.variable_rules
        loaded = load_hooks(folder, environ, front.settings.hooks, policy)
        if front.settings.border.mode != "off":
            loaded.leave_out_python()
        for warning in loaded.warnings:
            front.warn(warning)
        hooks += loaded.list_active()
    if not hooks:
        return NO_HOOKS
    from ..agent.hook_points import SessionHooks  # only if there are hooks

    session_hooks = SessionHooks(hooks, folder, str(front.library.store.tapes))
    if session_hooks.dispatcher.wants("setup"):
        session_hooks.prepares = (
            find_tape_here(front.library.store, front.library.index, folder) is None
        )
    return session_hooks


def _has_user_hooks(environ: Mapping[str, str]) -> bool:
    """Return whether a file of the user's own may name hooks."""
    if locate_config_file(environ).with_name("hooks.json").exists():
        return True
    try:
        shared = Path(environ.get("HOME", "/"), ".claude/settings.json").read_bytes()
    except OSError:
        return False
    return b'"hooks"' in shared


def load_tool_sources(
    front: FrontEnd,
    sandbox: Sandbox | None = None,
    find_denied: Callable[[str], str] | None = None,
) -> tuple[ToolSource, ...]:
    """Return where tools beside the built-in ones come from; nothing is imported without any.

    Warns of what cannot be used. Nothing is started; programs will be, inside the sandbox.
    `find_denied` returns the rule that denies to read an absolute path, or "".
    """
    sources: list[ToolSource] = []
    folder, environ, settings = front.folder, front.environ, front.settings
    user = locate_config_file(environ).with_name("mcp.json")
    has_plugins = user.with_name("plugins").is_dir()
    is_configured = user.exists() or has_plugins or has_project_parts(folder, environ, "mcp")
    if is_configured or front.servers:
        from ..mcp.session_servers import (  # only with servers
            load_session_servers,
        )

        tool_patterns = None if is_profile_choice(settings.tools) else _list_foreign(settings.tools)
        servers, warnings = load_session_servers(
            folder,
            environ,
            settings.variable_rules,
            tool_patterns,
            version=front.program.partition("/")[2],
            host_servers=front.servers,
            sandbox=sandbox,
        )
        for warning in warnings:
            front.warn(warning)
        if servers is not None and tool_patterns != ():
            sources.append(servers)
    if languages := _load_languages(front, sandbox, find_denied):
        sources.append(languages)
    return tuple(sources)


def _load_languages(
    front: FrontEnd, sandbox: Sandbox | None, find_denied: Callable[[str], str] | None
) -> ToolSource | None:
    """Return the language servers of a session on this machine; None without any.

    Where they were asked for and there are none, outlines are left.
    """
    lsp, tools = front.settings.lsp, front.settings.tools
    is_offered = is_profile_choice(tools) or "lsp" in (tools or ())
    discovers = sandbox is not None if lsp.discover is None else lsp.discover
    is_chosen = lsp.discover is True or "lsp" in (tools or ())
    has_some = lsp.servers or discovers or is_chosen
    if not (lsp.enabled and is_offered and has_some) or front.place != LOCAL:
        return None
    from ..lsp.servers import find_servers  # only where some may be used
    from ..lsp.session_languages import SessionLanguages

    servers = find_servers(lsp, front.environ, discovers=discovers)
    if not (servers or is_chosen):
        return None
    return SessionLanguages(
        servers,
        folder=str(Path(front.folder).resolve()),
        environ=front.environ,
        rules=front.settings.variable_rules,
        sandbox=sandbox,
        find_denied=find_denied,
    )


def _list_foreign(names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the chosen tools that are not built in: those of servers, `server__tool` and `lsp`."""
    return tuple(name for name in names or () if "__" in name or name == "lsp")


async def open_session(
    front: FrontEnd,
    recorder: Recorder | None = None,
    *,
    must_answer: bool = True,
    hooks: SessionHooks | NoHooks | None = None,
) -> OpenSession:
    """Return a session on an open branch, or a new session whose first prompt creates its tape.

    `choose_model` gives the model. A model without a key is an error, unless `must_answer` is
    False: then its calls fail. `hooks` are those that were loaded already; None loads them. On
    error the recorder is closed.
    Raises ConfigurationError, UnknownModel, AuthenticationError or FolderGone.
    """
    try:
        if recorder is not None and (other := recorder.writer.instead_of) is not None:
            holder = recorder.writer.holder
            front.warn(
                f"branch {other} is being written by {holder or 'another program'}: "
                f"this session continues on its own branch, {recorder.branch}"
            )
        if recorder is not None and (file := recorder.writer.torn) is not None:
            front.warn(f"a crash left an incomplete last line; it was moved to quarantine/{file}")
        hooks = load_session_hooks(front) if hooks is None else hooks
        return await _assemble_session(front, recorder, hooks, must_answer=must_answer)
    except BaseException:
        if recorder is not None:
            recorder.close()
        raise


async def _open_environment(
    front: FrontEnd, hooks: SessionHooks | NoHooks
) -> tuple[LocalEnvironment | PlaceEnvironment, Sandbox | None]:
    """Return where the tools of a session act, and the border around them."""
    settings, sandbox = front.settings, None
    if front.place != LOCAL:
        if settings.border.mode != "off":
            why = f"the sandbox is for this machine: in {front.place} commands run without one"
            if settings.border.fail_if_unavailable:
                raise ConfigurationError(why)
            front.warn(why)
        return await enter_place(front), None
    if settings.border.mode != "off":
        from .border import open_border  # only where one is asked for

        stores = (str(front.library.store.path),)
        sandbox = open_border(settings, front.folder, front.environ, stores, front.warn)
    if sandbox is not None:
        hooks.enter_sandbox(sandbox)
    rules = settings.variable_rules
    env = front.make_environment(front.folder, front.environ, policy=rules, sandbox=sandbox)
    try:
        await env.initialize()
    except BaseException:
        if sandbox is not None:
            sandbox.close()
        raise
    return env, sandbox


def _build_session_policy(
    front: FrontEnd, env: LocalEnvironment | PlaceEnvironment
) -> PermissionPolicy:
    policy = build_policy(front.settings.permissions, front.folder, front.environ)
    policy.own_folders += (str(front.library.store.path),)
    if not isinstance(env, LocalEnvironment):
        policy.move_to(env.working_directory, env.resolve("~"), env)
    return policy


async def _assemble_session(
    front: FrontEnd, recorder: Recorder | None, hooks: SessionHooks | NoHooks, *, must_answer: bool
) -> OpenSession:
    env, sandbox = await _open_environment(front, hooks)
    try:
        return await _assemble_in(front, recorder, hooks, (env, sandbox), must_answer=must_answer)
    except BaseException:
        await env.cleanup()
        raise


async def _assemble_in(
    front: FrontEnd,
    recorder: Recorder | None,
    hooks: SessionHooks | NoHooks,
    inside: tuple[LocalEnvironment | PlaceEnvironment, Sandbox | None],
    *,
    must_answer: bool,
) -> OpenSession:
    """Return the session that works in an environment, `inside` a sandbox if there is one."""
    settings, environ, folder = front.settings, front.environ, front.folder
    env, sandbox = inside
    finding = asyncio.create_task(find_repository(env, environ))
    await asyncio.sleep(0)  # git begins
    try:
        tools = _build_tools(front)
        models = _build_model_factory(front, env)
        if not isinstance(env, LocalEnvironment):
            from ..context.place_instructions import copy_instructions  # only in a place

            models = replace(models, place_files=await copy_instructions(env))
        name = choose_model(front, models, recorder.path if recorder else ())
        if must_answer:
            models.client.resolve(models.names.resolve_name(name))  # imports and keeps the provider
        repository = await finding
    except BaseException:
        finding.cancel()
        raise
    models = replace(models, where=models.where._replace(repository=repository))

    def begin_tape(prompt: str) -> Recorder:
        git = repository.recorded if repository else None
        tape = front.library.store.create(front.build_beginning(folder, slug=prompt, git=git))
        return Recorder.open(tape, durability=settings.durability)

    if settings.title_model not in {None, NO_MODEL}:
        models.names.resolve_name(settings.title_model)
    if settings.web.model not in {None, NO_MODEL}:
        models.names.resolve_name(settings.web.model)
    summariser = settings.compaction.model
    model = models.choose(name) if must_answer else models.choose_or_failing(name)
    for remark in model.instructions.remarks:
        front.warn(remark)
    policy = _build_session_policy(front, env)
    policy.sandbox = sandbox
    config_file, root = locate_config_file(environ), str(locate_project(folder))
    policy.save = partial(save_answered_rule, config_file, root)
    retries = settings.max_retries
    setup = SessionSetup(
        model=model,
        tools=model.equip(tools, settings.tuning),
        env=env,
        policy=policy,
        open=begin_tape,
        compaction=settings.compaction,
        summariser=models.choose_or_failing(summariser) if summariser else None,
        choose_namer=models.choose_namer,
        choose_page_reader=models.choose_page_reader,
        config=_build_config(settings),
        retry=RetryPolicy() if retries is None else RetryPolicy(retries),
        patient_retry=PATIENT_RETRY if retries is None else RetryPolicy(retries),
        tuning=settings.tuning,
        find_model=models.choose,
        hooks=hooks,
        load_skills=models.load_skills,
        sources=load_tool_sources(front, sandbox, policy.find_denied_reading),
        file_recorder=front.build_file_recorder(),
        open_agents=partial(_open_agents, front, models),
    )
    by_default = not (front.model or settings.model) and name.startswith("offline/")
    session = Session(setup, recorder)
    session.use_effort(front.effort or find_last_effort(recorder.path if recorder else ()))
    if not front.names_mode and (remark := session.restore_permission()):
        front.warn(remark)
    return OpenSession(session, models, front.library, name, by_default, front.is_kept)


async def enter_place(front: FrontEnd) -> PlaceEnvironment:
    """Return the environment of the place of a front end, which is open.

    Raises ConfigurationError, in one line, where there is no such place.
    """
    if front.open_place is not None:
        return await front.open_place()
    from ..env.places.opening import choose_place, open_place  # only with a place

    settings = front.settings
    choice = choose_place(front.place, settings.env)
    env = await open_place(choice, front.folder, front.environ, settings.variable_rules)
    for remark in env.remarks:
        front.warn(remark)
    return env


def _open_agents(front: FrontEnd, models: ModelFactory, session: Session) -> SessionAgents:
    from ..subagents.manager import SubagentManager  # most sessions start none

    return SubagentManager(session, front, models)


def _build_config(settings: Settings) -> SessionConfig:
    return SessionConfig(
        max_turns=settings.max_turns,
        max_tool_rounds_per_input=settings.max_rounds,
        max_cost=settings.max_cost,
        max_seconds=settings.max_seconds,
        max_output_tokens=settings.max_output_tokens,
        max_subagent_depth=settings.max_subagent_depth,
        max_subagent_turns=settings.max_subagent_turns,
        max_subagents=settings.max_subagents,
        default_command_timeout_ms=settings.default_command_timeout_ms,
        max_command_timeout_ms=settings.max_command_timeout_ms,
        read_before_write=settings.permissions.read_before_write,
        tool_output_limits=settings.tool_output_limits,
        tool_line_limits=settings.tool_line_limits,
        enable_loop_detection=settings.loop_detection,
    )


async def read_session(front: FrontEnd, hit: Hit) -> SessionPreview:
    """Return a session at a head, opened read-only.

    Lines that fail verification are left out with a warning. The caller closes the models' client.
    Raises ConfigurationError, FolderGone, Damaged or NewerFormat.
    """
    read = read_history(hit.tape, hit.head, front.warn)
    env = LocalEnvironment(front.folder, front.environ, policy=front.settings.variable_rules)
    await env.initialize()
    try:
        models = _build_model_factory(front, env)
        where = models.where._replace(repository=await find_repository(env, front.environ))
    finally:
        await env.cleanup()
    tools = _build_tools(front)
    effort = front.effort or find_last_effort(read.path)
    max_output = front.settings.max_output_tokens
    return SessionPreview(hit, read, replace(models, where=where), tools, effort, max_output)


def choose_model(front: FrontEnd, models: ModelFactory, path: Sequence[Entry]) -> str:
    """Return provider/model that answers next on a path, by the rule in docs/models.md.

    The order is: the model that is named now, the path's last one, that of the settings, the
    default. A built-in model (offline, scripted) as last one is skipped, because it is no choice of
    the user; one that cannot be called is skipped with a warning.
    Raises UnknownModel, and ConfigurationError for a provider that is not served.
    """
    if front.model:
        return models.names.resolve_name(front.model)
    last = find_last_model(path)
    if last is None or last.partition("/")[0] in BUILT_IN_PROVIDERS:
        return _choose_configured_model(front, models)
    try:
        models.choose(last)
    except (AuthenticationError, ConfigurationError) as error:
        name = _choose_configured_model(front, models)
        if name != last:
            front.warn(f"the session's last model {last} is not available: {error}")
        return name
    return last


def _choose_configured_model(front: FrontEnd, models: ModelFactory) -> str:
    """Return provider/model that the settings name, else the default."""
    if front.settings.model:
        return models.names.resolve_name(front.settings.model)
    knows = Credentials.from_environ(front.environ).has_key
    return choose_default_model(front.environ, models.names.presets, knows)


def _build_model_factory(front: FrontEnd, env: ExecutionEnvironment) -> ModelFactory:
    """Return the models for sessions in the folder of an environment, its repository unknown."""
    names = ModelNames.from_settings(front.settings, front.environ)
    keys = Credentials.from_environ(front.environ)
    client = Client.from_env(
        front.environ, presets=names.presets, find_key=keys.key, find_source=keys.name_source
    )
    today = format_timestamp(read_clock())[:10]
    place = describe_environment(env)
    where = Surroundings(env.working_directory, env.platform, env.os_version, today)
    if place is not None:
        where = where._replace(place=place.name)
    if isinstance(env, LocalEnvironment) and env.sandbox is not None:
        where = where._replace(sandbox=env.sandbox.description)
    return ModelFactory(
        *(names, client, where, front.environ, front.settings, front.override),
        load_skills=build_skill_loader(front),
        offers_skills=has_own_skills(front),
    )


def has_own_skills(front: FrontEnd) -> bool:
    """Return whether project, user or plugins may have skills; nothing is imported or read."""
    return has_skills(front.folder, front.environ, str(locate_config_file(front.environ).parent))


def build_skill_loader(front: FrontEnd) -> Callable[[], SessionSkills]:
    """Return what finds the skills of a session when they are first asked for, with warnings."""

    @cache
    def load() -> SessionSkills:
        from ..skills.places import find_skills  # few sessions use skills
        from ..skills.session_skills import SessionSkills

        skills = find_skills(front.folder, front.environ, shipped=front.settings.skills.shipped)
        for warning in skills.warnings:
            front.warn(warning)
        return SessionSkills(skills, str(locate_project(front.folder)), front.folder)

    return load


def _build_tools(front: FrontEnd) -> ToolRegistry:
    """Return the chosen tools; those for sub-agents name the types that files describe."""
    tools = build_session_tools(front.settings, front.environ, has_skills=has_own_skills(front))
    if front.settings.python_tools:
        from ..tools.python_tools import load_python_tools  # only if there are some

        for tool in load_python_tools(front.settings.python_tools):
            tools.register(tool)
            tools.activate((tool.name,))
    if not has_agent_files(front.folder, front.environ, locate_config_file(front.environ).parent):
        return tools
    from ..subagents.types import load_agent_types  # only if there are files

    types = load_agent_types(front.folder, front.environ)
    for warning in types.warnings:
        front.warn(warning)
    for tool in build_agent_tools(types.describe(), front.settings.tuning):
        tools.replace_built_in(tool)
    return tools


def build_session_tools(
    settings: Settings, environ: Mapping[str, str] | None = None, *, has_skills: bool = False
) -> ToolRegistry:
    """Return the chosen tools: those named, a preset's or none, or those of the default profile.

    The model replaces the latter by those of its own profile.
    """
    names, tools = settings.tools, build_registry(settings.tuning, environ)
    if is_profile_choice(names):
        offered = (name for name in OFFERED_TOOLS if name in tools.names)
        tools.activate((*SESSION_TOOLS, *offered, *["Skill"] * has_skills))
        return tools
    foreign = _list_foreign(names)
    names = tuple(name for name in names or () if name not in foreign)
    if not names:
        return ToolRegistry()
    if len(names) == 1 and names[0] in TOOL_PRESETS:
        names = tools.preset(names[0])
    tools.set_active(names)
    return tools
