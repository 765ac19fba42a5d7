"""`gong chat`: talk to the agent in the terminal, or have one prompt answered with -p."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.errors import NotFound
from tape.find import find
from tape.index import open_store

from .. import __version__, config
from ..agent.assembly import Host, assemble, forked, new_tape, resumed
from ..errors import ConfigurationError, FolderGone

if TYPE_CHECKING:
    from tape.index import Library

    from ..agent.record import Recorder
    from ..config import Settings
    from .printing import Format

_EXAMPLES = """\b
Examples:
  gong chat                                 talk in the terminal
  gong chat -p "read README.md"             one answer, then exit
  git diff | gong chat -p "review this"     standard input joins the prompt
  gong chat -c                              go on where this folder's newest session ended
  gong chat --fork 3f2a:main~4              try something else from an earlier entry
"""


@click.command(epilog=_EXAMPLES)
@click.option("-p", "--print", "prompt", metavar="PROMPT", help="Answer PROMPT, print, and exit.")
@click.option(
    "--output-format",
    "output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="How -p prints: text, one JSON document, or one JSON object a line.",
)
@click.option("-c", "--continue", "go_on", is_flag=True, help="Continue this folder's newest tape.")
@click.option("--session", "session", metavar="REF", help="Continue the tape or branch REF.")
@click.option("--fork", "fork", metavar="REF", help="Begin a branch at REF and continue there.")
@click.option("-m", "--model", metavar="MODEL", help="provider/model, such as offline/rules.")
@click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Most model calls.")
@click.option("--tools", metavar="LIST", help="Tools by name, or a preset, or none.")
@click.option("--store", metavar="PATH", help="Folder of the tapes; default $TAPE_HOME, ~/.tape.")
def chat(  # noqa: PLR0917 (click hands them over by name)
    prompt: str | None,
    output: Format,
    go_on: bool,
    session: str | None,
    fork: str | None,
    model: str | None,
    max_turns: int | None,
    tools: str | None,
    store: str | None,
) -> None:
    """Talk to the agent. Every step is an entry on a tape: see `tape log`."""
    if sum((go_on, session is not None, fork is not None)) > 1:
        raise click.UsageError("-c, --session and --fork exclude each other")
    flags = {"model": model, "max_turns": max_turns, "tools": _tools(tools), "store": store}
    settings = config.load(os.environ, flags)
    asked = _asked(prompt)
    folder = _folder()
    ref = "" if go_on else session if session is not None else fork
    code = asyncio.run(_chat(settings, folder, asked, output, ref, begins=fork is not None))
    sys.exit(code)


def _tools(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (name.strip() for name in given.split(","))
    return () if given == "none" else tuple(name for name in names if name)


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise FolderGone("this folder is gone: change to another and try again") from error


def _asked(prompt: str | None) -> str | None:
    """Return the prompt with standard input joined; None means a conversation in the terminal."""
    closed = sys.stdin is None
    typed = not closed and sys.stdin.isatty()
    if prompt is None and typed:
        return None
    given = "" if typed or closed else _standard_input()
    asked = "\n\n".join(part for part in (prompt or "", given.rstrip("\n")) if part.strip())
    if not asked:
        raise ConfigurationError("the prompt is empty: say what to do, as in gong chat -p 'list .'")
    return asked


def _standard_input() -> str:
    """Read all of standard input; say so when whoever holds it says nothing for a while."""
    stream = sys.stdin.buffer
    if not select.select([stream], [], [], 2.0)[0]:
        click.echo("gong: waiting for standard input (end it with Ctrl+D or < /dev/null)", err=True)
    return stream.read().decode("utf-8", "replace")


async def _chat(
    settings: Settings,
    folder: str,
    asked: str | None,
    output: Format,
    ref: str | None,
    *,
    begins: bool,
) -> int:
    with open_store(config.store_path(settings, os.environ)) as library:
        recorder = None if ref is None else _recorder(library, ref, folder, settings, begins=begins)
        host = await _host(library, settings, folder, recorder)
        _say_first(host)
        try:
            return await _serve(host, asked, output)
        finally:
            await host.close()


async def _host(
    library: Library, settings: Settings, folder: str, recorder: Recorder | None
) -> Host:
    try:
        return await assemble(
            settings,
            os.environ,
            folder,
            new_tape(library.store, settings),
            program=f"gong/{__version__}",
            recorder=recorder,
        )
    except BaseException:
        if recorder is not None:
            recorder.close()
        raise


async def _serve(host: Host, asked: str | None, output: Format) -> int:
    if asked is None:
        from ..repl.app import chat as converse  # noqa: PLC0415 (prompt-toolkit loads slowly)

        return await converse(host)
    from .printing import answer  # noqa: PLC0415 (only with -p)

    return await answer(host, asked, output, out=_out, warn=_warn)


def _recorder(
    library: Library, ref: str, folder: str, settings: Settings, *, begins: bool
) -> Recorder:
    try:
        hit = find(library.store, library.index, ref, folder)
    except NotFound as error:
        if ref:
            raise
        raise NotFound("no session of this folder yet: begin one with gong chat") from error
    return forked(hit, settings) if begins else resumed(hit, ref, settings)


def _say_first(host: Host) -> None:
    """Say on stderr what a person should know before the first word."""
    if host.by_default:
        _warn(
            "no model is set up, so offline/rules answers (plain requests only); "
            "set ANTHROPIC_API_KEY or choose one with -m provider/model"
        )
    recorder = host.session.recorder
    if recorder is None:
        return
    writer = recorder.writer
    if writer.instead_of is not None:
        _warn(
            f"branch {writer.instead_of} is being written by another program: "
            f"this session goes on in a branch of its own, {recorder.branch}"
        )
    if writer.torn is not None:
        _warn(f"the end of the tape was torn by a crash; it was moved to quarantine/{writer.torn}")


def _out(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _warn(text: str) -> None:
    click.echo(f"gong: {text}", err=True)
