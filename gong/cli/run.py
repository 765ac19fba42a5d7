"""The commands of `gong`, each imported when it is used, and how one is run."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

import click

from tape.cli import group as store
from tape.cli.git_words import ALIASES

from .. import __version__
from ..signals import install_interrupt_handlers

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "chat": ("chat", "Talk to the agent, or answer one prompt with -p."),
    "compact": ("session", "Replace older messages by a summary, or --undo that."),
    "context": ("context", "Show context usage, or the exact next request."),
    "handoff": ("session", "Hand a session over to another model or a colleague."),
    "merge": ("merge", "Bring a branch back, summarised by the model."),
    "work": ("work", "Track work across sessions: goal, to do, handoff."),
    "undo": ("rewind", "Undo the newest prompts and what they did to files."),
    "redo": ("rewind", "Reverse the newest undo or rewind."),
    "rewind": ("rewind", "Go back to an entry: talk, files or both."),
    "cost": ("cost", "Show tokens and cost, by call, turn, branch, tape, provider or day."),
    "config": ("config", "Show and change settings: get, set, list, path."),
    "doctor": ("doctor", "Check settings, store, keys, programs and histories."),
    "init": ("init", "Write a first AGENTS.md from the project's files."),
    "models": ("models", "List models: context windows, abilities, prices."),
    "auth": ("auth", "Save, show or remove API keys and logins."),
    "skills": ("skills", "List, show, write and check skills."),
    "plugin": ("plugin", "Install, list, remove and write plugins."),
    "hooks": ("hooks", "List hooks, or run them on a sample."),
    "agents": ("agents", "List the types of sub-agents for this folder."),
    "env": ("env", "Places where tools can act: list, check."),
    "trust": ("trust", "Show what this project brings that could run, and trust it."),
    "mcp": ("mcp", "Add, list and test MCP servers, whose tools sessions offer."),
    "permissions": ("permissions", "Check calls against the rules; list, add and remove rules."),
    "review": ("review", "Find problems in changes, by fixed checks and by a model."),
    "workflow": (
        "workflow",
        "Plan a requirement, carry it out with sub-agents, review and judge it.",
    ),
    "eval": ("eval", "Try tasks in Harbor's format, and compare runs."),
    "acp": ("acp", "Run as the agent of an editor, by the Agent Client Protocol."),
    "rpc": ("rpc", "Run sessions for another program, as lines of JSON."),
    "serve": ("serve", "Run sessions for other programs, over HTTP."),
    "sessions": ("sessions", "List, show and remove the sessions of this folder."),
    "completion": ("completion", "Print the completion script of a shell."),
    "version": ("version", "Show the versions of gong, Python and SQLite."),
    "tool": ("tool", "Run one tool directly, in this folder."),
    "tape": ("run", "Run a command of `tape`: `gong tape ls` is `tape ls`."),
}
"""Module and help line of each command, in the order of the help page."""

_OWN_OPTIONS = {"--help", "-h", "--version"}
_DEBUG_OPTION = "--debug"


tape = store.tape
"""All commands of the store, as one command of `gong`."""

gong = store.LazyGroup(
    "gong",
    package=__package__,
    table=COMMANDS,
    help="A coding agent that records its sessions on tapes. Words that name no command are"
    " a prompt: `gong` and `gong [PROMPT]...` mean `gong chat [PROMPT]...`.",
    subcommand_metavar="COMMAND [ARGS]... | [PROMPT]...",
)
click.version_option(__version__, message="gong %(version)s")(gong)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; --debug is accepted anywhere before `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [*(word for word in arguments[:end] if word != _DEBUG_OPTION), *arguments[end:]]
    debug = _DEBUG_OPTION in arguments[:end]
    install_interrupt_handlers()
    if words[:1] == ["tape"]:
        return store.run_command([*[_DEBUG_OPTION] * debug, *words[1:]])
    return store.run_guarded("gong", lambda: _run_words(words), lambda: debug)


def _run_words(words: list[str]) -> int:
    """Run the command that the words name, else `chat` with them; return the exit code.

    `help`, alone or before the name of a command, is its --help.
    """
    if words[:1] == ["help"] and not words[2:] and {*words[1:]} <= {*COMMANDS}:
        words = [*words[1:], "--help"]
    if not words or (words[0] not in COMMANDS and words[0] not in _OWN_OPTIONS):
        if words and (meant := _find_meant_command(words)):
            prompt = shlex.join(words)
            raise click.UsageError(
                f"no command is called {words[0]}: did you mean gong {meant}?"
                f" As a prompt: gong chat {prompt}"
            )
        words = ["chat", *words]
    return store.invoke_group(gong, words)


def _find_meant_command(words: Sequence[str]) -> str | None:
    """Return the command that the first word is a slip of; None where the words are a prompt.

    A word alone is compared generously, or may be a command of `tape`. One that begins a sentence
    is a slip only with the same letters in another order, or one too many or too few: `chta`, but
    not `what` or `show`.
    """
    word, *more = words
    if not word.isascii() or not word.isalpha():
        return None
    if not more:
        from difflib import get_close_matches  # only for what is no command

        near = get_close_matches(word, COMMANDS, n=1, cutoff=0.7)
        if near:
            return near[0]
        return f"tape {word}" if word in store.COMMANDS or word in ALIASES else None
    letters = Counter(word)
    for name in COMMANDS:
        theirs = Counter(name)
        differing = (letters - theirs) + (theirs - letters)
        if name[0] == word[0] and differing.total() <= 1:
            return name
    return None
