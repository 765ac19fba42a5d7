"""Slash commands that are commands of the command line: /doctor is `gong doctor`.

Each runs as a process of its own, so that it prints what it prints there, and a long one does not
hold up the conversation. None of them writes to the branch of this session.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tape.own_program import build_own_words

from ...env.wrappers import describe_folder, find_folder_here, is_place
from ...errors import ConfigurationError
from .command import CommandReply, SlashCommand, require_recorder

if TYPE_CHECKING:
    from ...assembly.open_session import OpenSession

HERE = "HERE"
"""Stands for the branch of this session."""
_NOTHING = "(nothing to show)"
_TIMEOUT_SECONDS = 60


class ProgramCommand(NamedTuple):
    """A slash command and the command line it runs."""

    name: str
    argument: str
    """The argument as /help shows it; empty for none, without brackets if it is needed."""
    about: str
    line: str
    """Program and arguments; HERE stands for the branch of this session."""
    default: str = ""
    """Arguments where none are given."""


PROGRAM_COMMANDS = tuple(
    ProgramCommand(*row)
    for row in (
        ("sessions", "", "list the sessions, those of this project first", "tape ls"),
        ("status", "", "show the state of this tape", "tape status HERE"),
        ("diff", "[REF]", "show what this session did to files", "tape files -p", "HERE"),
        ("compare", "REF", "compare this branch with another one", "tape diff HERE"),
        ("tape", "[…]", "run a command of tape, as /tape log", "tape", "--help"),
        ("permissions", "[…]", "list the rules; add or rm one", "gong permissions", "list"),
        ("hooks", "", "list the hooks", "gong hooks list"),
        ("config", "[…]", "list the settings; get or set one", "gong config", "list"),
        ("work", "[…]", "track a piece of work across sessions", "gong work", "list"),
        ("models", "[ID]", "list the models", "gong models"),
        ("review", "[…]", "review what changed: /review --staged", "gong review", "--no-model"),
        ("logout", "PROVIDER", "remove a saved key", "gong auth logout"),
        ("doctor", "", "check settings, store, keys and programs", "gong doctor"),
        ("init", "", "write a first AGENTS.md from the project's files", "gong init"),
        ("version", "", "show the versions of gong, Python and SQLite", "gong version"),
    )
)
"""The commands of this room."""


_PROGRAM = re.compile(r"^(?:tape|gong): ", re.MULTILINE)
"""What the command line puts before its messages: here a slash command says them."""


_OF_THIS_MACHINE = {"init", "review"}
"""Commands that work on the files of the folder here."""


def refuse_elsewhere(host: OpenSession, name: str) -> None:
    """Raise ConfigurationError where tools act in another place than a command would."""
    env = host.session.setup.env
    if is_place(env):
        raise ConfigurationError(
            f"/{name} works on the folder of this machine, and this session is in"
            f" {describe_folder(env)}: `/env local` comes back"
        )


def build_program_variables(host: OpenSession) -> dict[str, str]:
    """Return the variables of a program of ours: it works in this store and in this sandbox."""
    sandbox = getattr(host.session.setup.env, "sandbox", None)
    inside = {} if sandbox is None else {"GONG_SANDBOX": sandbox.mode}
    return {**os.environ, "TAPE_HOME": str(host.library.store.tapes.parent), **inside}


async def run_program(command: ProgramCommand, host: OpenSession, argument: str) -> CommandReply:
    """Run a command to its end, and return what it printed; an error is a reply too."""
    words = shlex.split(f"{command.line} {argument or command.default}")
    recorder = host.session.recorder
    if recorder is not None:
        recorder.barrier()  # it reads what is on the disk
        words = [
            f"{recorder.tape.id}:{recorder.branch}" if word == HERE else word for word in words
        ]
    program, *rest = words
    process = await asyncio.create_subprocess_exec(
        *build_own_words(program, *rest),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=find_folder_here(host.session.setup.env),
        env={
            **build_program_variables(host),
            "COLUMNS": str(shutil.get_terminal_size().columns),
            "NO_COLOR": "1",
            "PAGER": "cat",
        },
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return CommandReply(f"stopped after {_TIMEOUT_SECONDS} s", failed=True)
    text = _PROGRAM.sub("", output.decode("utf-8", "replace").rstrip("\n"))
    return CommandReply(text or _NOTHING, failed=bool(process.returncode))


_ENDINGS = {"html": "html", "md": "md", "jsonl": "jsonl", "claude": "jsonl", "codex": "jsonl"}
"""Endings of files by the form of an export; of others json."""


def _start_export(host: OpenSession, argument: str) -> CommandReply:
    """Print the branch of this session as Markdown, or write it to a file in another form."""
    words = argument.split()
    form = words.pop(0) if words and words[0][:1] != "-" else "md"
    if form != "md" and not {"-o", "--output"} & {*words}:
        words += ["-o", f"session.{_ENDINGS.get(form, 'json')}"]
    return _write_export(host, form, shlex.join(words))


def _start_share(host: OpenSession, argument: str) -> CommandReply:
    return _write_export(host, "html", shlex.join(["-o", argument or "session.html"]))


def _write_export(host: OpenSession, form: str, rest: str) -> CommandReply:
    require_recorder(host)
    line = f"tape export HERE --to {form}"
    command = ProgramCommand("export", "[FORM] [-o FILE]", "", line)

    async def run() -> CommandReply:
        done = await run_program(command, host, rest)
        words = shlex.split(rest)
        if done.failed or "-o" not in words:
            return done
        file = words[words.index("-o") + 1]
        remark = f"written to {file}; what looks like a secret is masked"
        return CommandReply(remark if done.text == _NOTHING else f"{remark}\n{done.text}")

    return CommandReply(later=run())


def _start_login(_host: OpenSession, argument: str) -> CommandReply:
    """Let `gong auth login` have the terminal: a key is never typed into a conversation."""
    words = build_own_words("gong", "auth", "login", *argument.split())
    return CommandReply(types=lambda typing: typing.start_program(words))


def _start_program(command: ProgramCommand, host: OpenSession, argument: str) -> CommandReply:
    if HERE in f"{command.line} {argument or command.default}".split():
        require_recorder(host)
    if command.argument.isalpha() and not argument:
        raise ConfigurationError(f"/{command.name} needs {command.argument}")
    if command.name in _OF_THIS_MACHINE:
        refuse_elsewhere(host, command.name)
    try:
        shlex.split(argument)
    except ValueError as error:
        raise ConfigurationError(f"/{command.name}: {error}") from error
    return CommandReply(later=run_program(command, host, argument))


COMMANDS = (
    *(
        SlashCommand(
            command.name,
            command.argument,
            command.about,
            busy=True,
            run=partial(_start_program, command),
        )
        for command in PROGRAM_COMMANDS
    ),
    SlashCommand("login", "[PROVIDER]", "save the key of a provider", busy=False, run=_start_login),
    SlashCommand(
        "export",
        "[FORM] [-o FILE]",
        "write this session as md, html, jsonl …",
        busy=True,
        run=_start_export,
    ),
    SlashCommand(
        "share",
        "[FILE]",
        "write this session as a page to send; sends nothing",
        busy=True,
        run=_start_share,
    ),
)
"""The commands of this module."""
