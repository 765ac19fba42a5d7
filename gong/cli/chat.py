"""`gong chat`: talk to the agent in the terminal, or answer one prompt with -p."""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from tape.cli.output import complete_ref, print_bytes, print_utf8
from tape.cli.streams import use_bare_streams
from tape.errors import TapeError
from tape.text import SHORT

from ..errors import GongError, OperationCancelled
from ..project import has_project_parts
from ..signals import INTERRUPTED_EXIT
from .chat_options import MAX_COMMAND_SECONDS, ChatOptions, Continuation
from .options import (
    add_permission_options,
    add_prompt_options,
    complete_model,
    effort_option,
    place_option,
    print_warning,
    read_prompt_override,
    sandbox_option,
    store_option,
    tools_option,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager

    from tape.store.tape import Hit

    from ..agent.front_end import FrontEnd
    from ..agent.hook_points import SessionHooks
    from ..agent.no_hooks import NoHooks
    from ..assembly.open_session import OpenSession
    from ..sdk.objects import JsonSchema
    from .printing import OutputFormat

    OpenFront = Callable[[str | None, bool, str | None], AbstractContextManager[FrontEnd]]
    """Opens the store for a session with a model, None if none is named for it; whether the
    settings are read again."""

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
@click.option(
    "-r",
    "--resume",
    "resumed",
    is_flag=False,
    flag_value="",
    metavar="[REF]",
    shell_complete=complete_ref,
    help="Continue a session: REF, or the one that you choose from a list.",
)
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
    "--max-rounds",
    type=click.IntRange(min=0),
    metavar="N",
    help="Max rounds of tool calls for one prompt, 200 if not set; -p stops there. 0 is no limit.",
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
    type=click.FloatRange(min=0, min_open=True, max=MAX_COMMAND_SECONDS),
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
@sandbox_option
@place_option
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
def chat(**options: Any) -> int:
    """Talk to the agent. Every step is recorded as an entry on a tape: see `tape log`.

    A PROMPT is the first message.
    """
    choices = ChatOptions(**options)
    output = _AnswerOutput(choices.output)
    try:
        return _run_chat(choices, output)
    except (GongError, TapeError, OSError, click.ClickException) as error:
        if not isinstance(error, BrokenPipeError):
            output.write_failure(error)
        raise


class _AnswerOutput:
    """Standard output of an answer, which with JSON always ends with its document."""

    def __init__(self, output: OutputFormat) -> None:
        self._format = output
        self._last = b""
        """What was written last."""

    def __call__(self, data: bytes) -> None:
        """Write bytes at once."""
        (print_utf8 if self._format == "text" else print_bytes)(data)
        sys.stdout.flush()
        self._last = data

    def write_failure(self, error: Exception) -> None:
        """Write the document of a run that failed before it had one; nothing with text."""
        is_complete = self._last and (self._format == "json" or b'"type":"result"' in self._last)
        if self._format == "text" or is_complete:
            return
        from .printing import build_failure_document, encode_document  # only then

        self(encode_document(build_failure_document(error), self._format))


def _run_chat(choices: ChatOptions, output: _AnswerOutput) -> int:
    past = choices.find_past()
    store = choices.choose_store(past)
    names = choices.list_tools()
    prompt = choices.read_prompt()
    schema = choices.read_schema(is_answering=prompt is not None)
    folder = choices.locate_folder()
    if prompt is None and has_project_parts(folder, os.environ):
        from .trust import ask_for_trust  # only for a project that brings something

        ask_for_trust(folder, os.environ)  # before the settings, which the project may bring
    read_settings = partial(choices.read_settings, folder, names, store)
    read_first = cache(read_settings)

    def open_front(
        chosen: str | None, again: bool, env_place: str | None
    ) -> AbstractContextManager[FrontEnd]:
        from .session import open_front_end  # in a terminal the prompt stands first

        return open_front_end(
            read_settings() if again else read_first(),
            chosen,
            read_prompt_override(choices.base, choices.base_file, choices.appended),
            choices.effort,
            folder=folder,
            is_kept=not choices.no_session,
            place=env_place,
            names_mode=choices.permission is not None or choices.yolo,
        )

    import asyncio  # the help page needs no event loop

    if prompt is None:
        return asyncio.run(_run_terminal(open_front, past, choices))
    if choices.resumed == "":
        raise click.UsageError("--resume needs a terminal to show its list: give it a REF")
    return asyncio.run(_run_prompt(open_front, past, choices, prompt, schema, output))


@asynccontextmanager
async def _open_chat(
    open_front: OpenFront,
    past: Continuation | None,
    model: str | None,
    *,
    verbose: bool,
    is_first: bool = True,
    place: str | None = None,
) -> AsyncIterator[OpenSession]:
    """Hold the session to continue, or a new one, ready for a prompt.

    `model` is provider/model; None leaves the choice to the session and the settings. `place` is
    where its tools act.
    """
    from ..agent.compaction import CompactionRequest
    from ..assembly import opening  # in a terminal the prompt stands first
    from . import session

    with open_front(model, not is_first, place) as front:
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
                from .verbose import describe_connection  # only with -v

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
                from ..agent.merge import stream_merge  # seldom

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
    open_front: OpenFront, past: Continuation | None, options: ChatOptions
) -> int:
    """Show a prompt at once, open the session behind it, and converse, until the user quits.

    A session that the user chooses in the conversation is opened in place of the one before; where
    that fails, that one is opened again, with what was typed meanwhile.
    """
    import asyncio  # as in `chat`

    from ..repl.conversation.first_prompt import (  # prompt-toolkit loads slowly
        TypedAhead,
        hold_prompt,
    )
    from ..repl.typing.keyboard import open_keyboard

    model, lines, draft, typed = options.model, options.list_first_lines(), "", TypedAhead()
    before: Continuation | None = None
    is_choice, place, last_place = False, options.env_place, options.env_place
    with use_bare_streams(), open_keyboard():
        while True:
            async with AsyncExitStack() as stack:
                try:
                    async with hold_prompt(lines, draft) as typed:
                        await asyncio.to_thread(_import_conversation)
                        host = await stack.enter_async_context(
                            _open_chat(
                                *(open_front, past, model),
                                verbose=options.verbose,
                                is_first=not is_choice,
                                place=place,
                            )
                        )
                except (GongError, TapeError, OSError) as error:
                    if await _may_follow_project(open_front, model, error):
                        lines, draft = typed.lines, typed.draft
                        continue
                    if not is_choice:
                        raise
                    print_warning(str(error))
                    past, model, is_choice, place = before, None, False, last_place
                    lines, draft = typed.lines[len(lines) :], typed.draft
                    continue
                if typed.has_left:
                    return 0
                from ..repl.conversation.app import run_conversation  # loaded by now

                host.session.ask_nobody() if options.afk else host.session.ask_person()
                end = await run_conversation(
                    host, typed, shown_turns=options.history, full_screen=options.full_screen
                )
                before, last_place = _name_session(host) or past, place
            if end.opens is None:
                from ..context.remote_state import finish_pushes  # the session is over

                is_killed = end.exit_code == INTERRUPTED_EXIT
                finish_pushes(host.library.store, print_warning, waits=is_killed)
                return end.exit_code
            chosen, is_choice = end.opens, True
            lines = [chosen.line] if chosen.line else []
            model, draft = chosen.model, chosen.draft
            place = chosen.place or place
            past = None if chosen.ref is None else Continuation(chosen.ref, chosen.forks)


async def _may_follow_project(open_front: OpenFront, model: str | None, error: Exception) -> bool:
    """Ask whether a project moved to this folder, where it may have; if so, record that."""
    from ..assembly.opening import ProjectMoved

    if not isinstance(error, ProjectMoved):
        return False
    from tape.store.maintenance.upkeep import move_project

    from ..policy.saved_rules import move_project_rules
    from ..private_files import locate_config_file
    from ..repl.draw.choice_list import Choice, ChoiceList
    from ..repl.draw.choice_screen import ask_choice

    answers = (
        Choice("yes", "yes: record the move, and continue its newest session here", "1", "y"),
        Choice("no", "no (Esc)", "2", "n"),
    )
    question = f"Did the project of {error.moved.was} move here?"
    if await ask_choice(question, ChoiceList(answers), "no") != "yes":
        return False
    with open_front(model, True, None) as front:
        left = move_project(*front.library, error.moved, front.find_repository())
        move_project_rules(locate_config_file(front.environ), error.moved.was, error.moved.here)
    for identity in left:
        print_warning(f"{identity[:SHORT]} could not be changed: tape mv {identity[:SHORT]} .")
    return True


def _name_session(host: OpenSession) -> Continuation | None:
    """Return how to continue an open session; None while it has no tape."""
    recorder = host.session.recorder
    return Continuation(f"{recorder.tape.id}:{recorder.branch}") if recorder else None


def _import_conversation() -> None:
    """Import what a session needs, in a thread, so that keys show while they are typed."""
    for name in ("gong.tools.builtin", "gong.repl.conversation.app", "gong.cli.session"):
        import_module(name)


def _require_skill(host: OpenSession, prompt: str) -> None:
    """Raise UsageError for a prompt such as `/nosuch` that names no skill, nor a server prompt."""
    from ..repl.commands.mcp import is_server_prompt
    from ..repl.commands.skill import is_skill
    from ..repl.commands.table import COMMANDS, is_command  # only such prompts

    if (
        is_command(prompt)
        and not is_skill(prompt, host, COMMANDS)
        and not is_server_prompt(prompt, host)
    ):
        name = prompt.split(maxsplit=1)[0]
        raise click.UsageError(
            f"{name} is no skill: gong skills list names them, and commands such as /cost are for"
            f" the terminal (start with a space to send it to the model)"
        )


async def _attach_files(host: OpenSession, words: str, *, is_verbose: bool) -> None:
    """Give the model the files that words name with `@`, and say which cannot be given."""
    from ..env.wrappers import is_place  # only such prompts
    from ..policy.permissions import find_denied_reading
    from ..repl.typing.mentions import read_mentions
    from ..repl.typing.pictures import PictureRules

    setup = host.session.setup
    rules = PictureRules.from_session(host.models.settings, setup.model)
    find_denied = partial(find_denied_reading, setup.policy)
    if is_place(setup.env):
        from ..repl.typing.place_mentions import read_place_mentions  # only in a place

        mentions = await read_place_mentions(words, setup.env, rules, find_denied)
    else:
        folder = setup.env.working_directory
        mentions = read_mentions(words, folder, rules, find_denied=find_denied)
    for document in mentions.documents:
        host.session.attach(document)
    for remark in mentions.remarks:
        if is_verbose or not remark.startswith("attached "):
            print_warning(remark)


async def _run_prompt(
    open_front: OpenFront,
    past: Continuation | None,
    options: ChatOptions,
    prompt: str,
    schema: JsonSchema | None,
    out: _AnswerOutput,
) -> int:
    """Answer one prompt and print the answer; return the exit code."""
    from .printing import answer_prompt  # only with -p

    opening = _open_chat(
        open_front, past, options.model, verbose=options.verbose, place=options.env_place
    )
    async with opening as host:
        if prompt.startswith("/"):
            _require_skill(host, prompt)
        if options.verbose:
            from .verbose import CallReporter  # only with -v

            host.session.subscribe(CallReporter(print_warning).take_event)
        if options.afk:
            host.session.ask_nobody()
        if schema is not None:
            host.session.require_object(schema)
        if "@" in options.typed_prompt:
            await _attach_files(host, options.typed_prompt, is_verbose=options.verbose)
        code = await answer_prompt(host, prompt, options.output, out=out, warn=print_warning)
    from ..context.remote_state import finish_pushes  # the session is over

    finish_pushes(host.library.store, print_warning, waits=True)
    return code
