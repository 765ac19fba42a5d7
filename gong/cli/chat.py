"""`gong chat`: talk to the agent in the terminal, or answer one prompt with -p."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from tape.cli.output import complete_ref, print_bytes, print_utf8
from tape.cli.streams import use_bare_streams
from tape.errors import TapeError
from tape.text import clean_words

from ..errors import ConfigurationError, GongError, OperationCancelled
from ..project import has_project_parts, locate_folder
from .options import (
    add_permission_options,
    add_prompt_options,
    complete_model,
    effort_option,
    load_settings,
    merge_permissions,
    parse_tool_names,
    print_warning,
    read_prompt_override,
    store_option,
    tools_option,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager

    from tape.store.tape import Hit

    from ..agent.front_end import FrontEnd
    from ..agent.hook_points import SessionHooks
    from ..agent.no_hooks import NoHooks
    from ..assembly.open_session import OpenSession
    from ..config import Settings
    from ..llm.models import EffortChoice
    from ..sdk.objects import JsonSchema
    from .printing import OutputFormat
    from .session import StartFrom

    OpenFront = Callable[[str | None, bool], AbstractContextManager[FrontEnd]]
    """Opens the store for a session with a model, None if none is named for it; whether the
    settings are read again."""

_MAX_COMMAND_SECONDS = 600.0
"""`tools.limits.MAX_TIMEOUT_MS`, which loads slowly: in a terminal the prompt stands first."""
_CHAT_EXAMPLES = """\b
Examples:
  gong chat                                 talk in the terminal
  gong fix the failing test                 the same, with a first message
  gong chat -p "read README.md"             one answer, then exit
  git diff | gong chat -p "review this"     standard input joins the prompt
  gong chat -c                              continue this folder's newest session
  gong chat --cwd api                       work in another folder
  gong chat --fork 3f2a:main~4              try something else from an earlier entry
"""


@click.command(epilog=_CHAT_EXAMPLES)
@click.argument("words", nargs=-1, metavar="[PROMPT]...")
@click.option(
    "-p",
    "--print",
    "prompt",
    metavar="PROMPT",
    is_flag=False,
    flag_value="",
    help="Answer the prompt, print, and exit.",
)
@click.option(
    "--output-format",
    "output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="What -p prints: text, one JSON document, or one JSON object per line.",
)
@click.option(
    "--json-schema",
    "schema",
    metavar="FILE|JSON",
    help="With -p: answer with a JSON object that fits this JSON Schema.",
)
@click.option(
    "-c", "--continue", "newest", is_flag=True, help="Continue this folder's newest session."
)
@click.option("-r", "--resume", "picks", is_flag=True, help="Choose the session to continue.")
@click.option(
    "--session",
    "session",
    metavar="REF",
    shell_complete=complete_ref,
    help="Continue the session or branch REF.",
)
@click.option(
    "--fork",
    "fork",
    metavar="REF",
    shell_complete=complete_ref,
    help="Start a new branch at REF and continue there.",
)
@click.option(
    "--cwd",
    "place",
    type=click.Path(exists=True, file_okay=False),
    metavar="PATH",
    help="Work in this folder instead of the current one.",
)
@click.option(
    "--carry", is_flag=True, help="With --fork: summarise the old branch's work on the new branch."
)
@click.option("--compact", is_flag=True, help="Summarise older messages first.")
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="provider/model, such as offline/rules.",
)
@effort_option
@click.option(
    "--from",
    "start",
    type=click.Choice(["full", "handoff"]),
    help="Continue from the full history or a handoff; default: full if it fits.",
)
@click.option(
    "--max-turns", type=click.IntRange(min=1), metavar="N", help="Max model calls of the session."
)
@click.option(
    "--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Max cost."
)
@click.option(
    "--max-time",
    "max_seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Max time for one prompt.",
)
@click.option(
    "--command-timeout",
    "command_seconds",
    type=click.FloatRange(min=0, min_open=True, max=_MAX_COMMAND_SECONDS),
    metavar="SECONDS",
    help="Timeout of a command whose call sets none; at most 600.",
)
@tools_option
@click.option(
    "--afk", is_flag=True, help="No user is present: the model decides its questions itself."
)
@click.option("--no-tools", is_flag=True, help="Offer no tools: the same as --tools none.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print how the model is reached, and with -p how each call went.",
)
@add_prompt_options
@add_permission_options
@store_option
@click.option("-t", "--tui", "full_screen", is_flag=True, help="Take the full screen.")
@click.option(
    "--history",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Show the last N turns of a session that is continued.",
)
@click.option("--no-session", is_flag=True, help="Leave no tape: use a store that is deleted.")
@click.option("--review", "reviews", is_flag=True, help="Review what changed after each answer.")
@click.option(
    "--review-every", type=click.IntRange(min=1), metavar="N", help="Review after N answers."
)
@click.option(
    "--review-strict",
    type=click.Choice(["strict", "normal", "loose"]),
    help="How strict reviews are.",
)
def chat(  # noqa: PLR0917 (click passes them by name)
    words: tuple[str, ...],
    prompt: str | None,
    output: OutputFormat,
    schema: str | None,
    newest: bool,
    picks: bool,
    session: str | None,
    fork: str | None,
    place: str | None,
    carry: bool,
    compact: bool,
    model: str | None,
    effort: EffortChoice | None,
    start: StartFrom | None,
    max_turns: int | None,
    max_cost: float | None,
    max_seconds: float | None,
    command_seconds: float | None,
    tools: str | None,
    no_tools: bool,
    afk: bool,
    verbose: bool,
    base: str | None,
    base_file: str | None,
    appended: str | None,
    store: str | None,
    full_screen: bool,
    history: int,
    no_session: bool,
    reviews: bool,
    review_every: int | None,
    review_strict: Literal["strict", "normal", "loose"] | None,
    **permissions: Any,
) -> int:
    """Talk to the agent. Every step is recorded as an entry on a tape: see `tape log`.

    A PROMPT is the first message.
    """
    ref = "" if newest else session if session is not None else fork
    if sum((newest, picks, session is not None, fork is not None)) > 1:
        raise click.UsageError("-c, --resume, --session and --fork cannot be combined")
    _require_past(ref, {"--from": start is not None, "--compact": compact})
    if carry and fork is None:
        raise click.UsageError("--carry needs --fork: it summarises the branch that --fork leaves")
    if no_session:
        store = _make_temporary_store(is_free=ref is None and store is None)
    if no_tools and tools is not None:
        raise click.UsageError("--tools and --no-tools cannot be combined")
    names = () if no_tools else parse_tool_names(tools)
    first = " ".join(words)
    asked = _read_prompt(prompt, first)
    shape = _read_schema(schema, is_answering=asked is not None)
    folder = locate_folder() if place is None else os.path.realpath(place)
    if asked is None and has_project_parts(folder, os.environ):
        from .trust import ask_for_trust  # noqa: PLC0415 (only for a project that brings something)

        ask_for_trust(folder, os.environ)  # before the settings, which the project may bring

    def read_settings() -> Settings:
        from msgspec.structs import replace  # noqa: PLC0415 (in a terminal the prompt stands first)

        settings = load_settings(
            folder,
            max_turns=max_turns,
            max_cost=max_cost,
            max_seconds=max_seconds,
            default_command_timeout_ms=command_seconds and max(round(command_seconds * 1000), 1),
            tools=names,
            store=store,
        )
        given = merge_permissions(settings.permissions, **permissions)
        kept = settings.review
        every = review_every or (1 if reviews else kept.every)
        wanted = replace(kept, every=every, strictness=review_strict or kept.strictness)
        return replace(settings, permissions=given, review=wanted)

    read_first = cache(read_settings)
    names_mode = permissions["permission"] is not None or permissions["yolo"]
    past = None if ref is None else Continuation(ref, fork is not None, carry, compact, start)

    def open_front(chosen: str | None, again: bool = False) -> AbstractContextManager[FrontEnd]:
        from .session import open_front_end  # noqa: PLC0415 (in a terminal the prompt stands first)

        return open_front_end(
            read_settings() if again else read_first(),
            chosen,
            read_prompt_override(base, base_file, appended),
            effort,
            folder=folder,
            is_kept=not no_session,
            names_mode=names_mode,
        )

    if asked is None:
        lines = ["/resume"] * picks + [first] * bool(first.strip())
        return asyncio.run(
            _run_terminal(
                *(open_front, past, model, lines),
                shown_turns=history,
                full_screen=full_screen,
                afk=afk,
                verbose=verbose,
            )
        )
    if picks:
        raise click.UsageError("--resume needs a terminal: name the session with --session REF")
    return asyncio.run(
        _run_prompt(open_front, past, model, asked, output, shape, afk=afk, verbose=verbose)
    )


def _require_past(ref: str | None, given: Mapping[str, bool]) -> None:
    """Raise UsageError for a given option that needs a session to continue."""
    for option, is_given in given.items():
        if is_given and ref is None:
            raise click.UsageError(f"{option} needs a session to continue: -c, --session or --fork")


def _read_schema(given: str | None, *, is_answering: bool) -> JsonSchema | None:
    """Return the JSON Schema of --json-schema; raises UsageError, ConfigurationError."""
    if given is None:
        return None
    if not is_answering:
        raise click.UsageError("--json-schema needs -p: it is about one answer")
    from ..sdk.objects import parse_object_schema  # noqa: PLC0415 (only with --json-schema)

    text: str | bytes = given
    try:
        if not given.lstrip().startswith("{"):
            text = Path(given).read_bytes()
        return parse_object_schema(text)
    except OSError as error:
        raise ConfigurationError(f"{given} cannot be read: {error.strerror}") from error
    except ConfigurationError as error:
        raise click.UsageError(f"--json-schema: {error}") from error


def _make_temporary_store(*, is_free: bool) -> str:
    """Return a folder that is deleted when the command ends; UsageError where not `is_free`."""
    if not is_free:
        raise click.UsageError(
            "--no-session cannot be combined with -c, --session, --fork or --store"
        )
    return click.get_current_context().with_resource(TemporaryDirectory(prefix="gong-"))


class Continuation(NamedTuple):
    """The session to continue, from the flags."""

    ref: str
    forks: bool = False
    """Start a new branch there."""
    carries: bool = False
    """Summarise the old branch's work on the new branch."""
    compacts: bool = False
    """Summarise older messages first."""
    start: StartFrom | None = None


def _read_prompt(prompt: str | None, first: str) -> str | None:
    """Return what to answer, from -p, the words `first` and standard input; None to converse.

    standard input   -p    words   standard output   result
    ---------------  ----  ------  ----------------  --------------------------------------
    a terminal       no    none    any               converse
    a terminal       no    some    a terminal        converse; the words are the first message
    a terminal       no    some    no terminal       answer the words
    a terminal       yes   any     any               answer -p and the words
    no terminal      any   any     any               answer -p, the words, and what it contains
    """
    closed = sys.stdin is None
    typed = not closed and sys.stdin.isatty()
    if prompt is None and typed and (not first or (sys.stdout and sys.stdout.isatty())):
        return None
    prompt = " ".join(part for part in (prompt, first) if part)
    given = ""
    if not (typed or closed):
        stream = sys.stdin.buffer
        if not select.select([stream], [], [], 2.0)[0]:
            print_warning("waiting for standard input (end it with Ctrl+D or < /dev/null)")
        given = stream.read().decode("utf-8", "replace")
    asked = "\n\n".join(part for part in (prompt, given.rstrip("\n")) if part.strip())
    asked = clean_words(asked)
    if not asked:
        raise ConfigurationError("the prompt is empty: say what to do, as in gong chat -p 'list .'")
    return asked


@asynccontextmanager
async def _open_chat(
    open_front: OpenFront,
    past: Continuation | None,
    model: str | None,
    *,
    verbose: bool,
    is_first: bool = True,
) -> AsyncIterator[OpenSession]:
    """Hold the session to continue, or a new one, ready for a prompt.

    `model` is provider/model; None leaves the choice to the session and the settings.
    """
    from ..agent.compaction import CompactionRequest  # noqa: PLC0415 (as above)
    from ..assembly import opening  # noqa: PLC0415 (in a terminal the prompt stands first)
    from . import session  # noqa: PLC0415 (as above)

    with open_front(model, not is_first) as front:
        recorder, left = None, None
        hooks = opening.load_session_hooks(front)
        if past is not None:
            hit = opening.find_session(front, past.ref)
            await _require_operation(hooks, hit, past)
            left = hit.tape.head() if past.carries else None
            recorder = (
                opening.fork_branch(front, hit)
                if past.forks
                else opening.resume_branch(front, hit, past.ref)
            )
            opening.enter_folder(front, recorder)
        host = await opening.open_session(front, recorder, hooks=hooks)
        try:
            if verbose:
                from .verbose import describe_connection  # noqa: PLC0415 (only with -v)

                print_warning(describe_connection(host, os.environ))
            if host.by_default and is_first:
                print_warning(
                    "no model is configured, so offline/rules is used (plain requests only); "
                    "set ANTHROPIC_API_KEY or choose one with -m provider/model"
                )
            if past is not None:
                await session.continue_with_model(host, past.start)
                if past.compacts:
                    await session.collect_events(host.session.compact(CompactionRequest("user")))
            if left is not None:
                from ..agent.merge import stream_merge  # noqa: PLC0415 (seldom)

                await session.collect_events(stream_merge(host.session, left))
            yield host
        finally:
            await host.close()


async def _require_operation(hooks: SessionHooks | NoHooks, hit: Hit, past: Continuation) -> None:
    """Raise OperationCancelled if a hook is against continuing there."""
    operation = "fork" if past.forks else "switch"
    meta = {"tape": hit.tape.id, "branch": hit.head.branch, "entry": hit.head.entry}
    if (why := await hooks.check_operation(operation, meta)) is not None:
        hit.tape.close()
        raise OperationCancelled(f"a hook cancelled the {operation}: {why}")


async def _run_terminal(
    open_front: OpenFront,
    past: Continuation | None,
    model: str | None,
    lines: list[str],
    *,
    shown_turns: int,
    full_screen: bool,
    afk: bool,
    verbose: bool,
) -> int:
    """Show a prompt at once, open the session behind it, and converse, until the user quits.

    `lines` are handled as if they were typed and entered first. A session that the user chooses in
    the conversation is opened in place of the one before; where that fails, that one is opened
    again, with what was typed meanwhile.
    """
    from ..repl.first_prompt import (  # noqa: PLC0415 (prompt-toolkit loads slowly)
        TypedAhead,
        hold_prompt,
    )
    from ..repl.keyboard import open_keyboard  # noqa: PLC0415 (as above)

    draft, typed = "", TypedAhead()
    before: Continuation | None = None
    is_choice = False
    with use_bare_streams(), open_keyboard():
        while True:
            async with AsyncExitStack() as stack:
                try:
                    async with hold_prompt(lines, draft) as typed:
                        await asyncio.to_thread(_import_conversation)
                        host = await stack.enter_async_context(
                            _open_chat(
                                open_front, past, model, verbose=verbose, is_first=not is_choice
                            )
                        )
                except (GongError, TapeError, OSError) as error:
                    if not is_choice:
                        raise
                    print_warning(str(error))
                    past, model, is_choice = before, None, False
                    lines, draft = typed.lines[len(lines) :], typed.draft
                    continue
                if typed.has_left:
                    return 0
                from ..repl.app import run_conversation  # noqa: PLC0415 (loaded by now)

                host.session.ask_nobody() if afk else host.session.ask_person()
                end = await run_conversation(
                    host, typed, shown_turns=shown_turns, full_screen=full_screen
                )
                before = _name_session(host) or past
            if end.opens is None:
                return end.exit_code
            chosen, is_choice = end.opens, True
            lines = [chosen.line] if chosen.line else []
            model, draft = chosen.model, chosen.draft
            past = None if chosen.ref is None else Continuation(chosen.ref, chosen.forks)


def _name_session(host: OpenSession) -> Continuation | None:
    """Return how to continue an open session; None while it has no tape."""
    recorder = host.session.recorder
    return Continuation(f"{recorder.tape.id}:{recorder.branch}") if recorder else None


def _import_conversation() -> None:
    """Import what a session needs, in a thread, so that keys show while they are typed."""
    for name in ("gong.tools.builtin", "gong.repl.app", "gong.cli.session"):
        import_module(name)


def _require_skill(host: OpenSession, asked: str) -> None:
    """Raise UsageError for a prompt such as `/nosuch` that names no skill, nor a server prompt."""
    from ..repl.commands import is_command  # noqa: PLC0415 (only for such prompts)
    from ..repl.mcp_commands import is_server_prompt  # noqa: PLC0415 (as above)
    from ..repl.skill_commands import is_skill  # noqa: PLC0415 (as above)

    if is_command(asked) and not is_skill(asked, host) and not is_server_prompt(asked, host):
        name = asked.split(maxsplit=1)[0]
        raise click.UsageError(
            f"{name} is no skill: gong skills list names them, and commands such as /cost are for"
            f" the terminal (start with a space to send it to the model)"
        )


async def _run_prompt(
    open_front: OpenFront,
    past: Continuation | None,
    model: str | None,
    asked: str,
    output: OutputFormat,
    schema: JsonSchema | None,
    *,
    afk: bool,
    verbose: bool,
) -> int:
    from .printing import answer_prompt  # noqa: PLC0415 (only with -p)

    write = print_utf8 if output == "text" else print_bytes

    def out(data: bytes) -> None:
        write(data)
        sys.stdout.flush()

    async with _open_chat(open_front, past, model, verbose=verbose) as host:
        if asked.startswith("/"):
            _require_skill(host, asked)
        if verbose:
            from .verbose import CallReporter  # noqa: PLC0415 (only with -v)

            host.session.subscribe(CallReporter(print_warning).take_event)
        if afk:
            host.session.ask_nobody()
        if schema is not None:
            host.session.require_object(schema)
        return await answer_prompt(host, asked, output, out=out, warn=print_warning)
