"""`hook`: what records live sessions of other agents: printed for them, and run by them.

An agent calls `tape hook run` at the points below, with a JSON object on standard input that names
the file of its session. The command imports what is new in it, prints nothing, because agents read
what hooks print, and never ends with 2, which would stop the agent:

    the file has new lines      they are on its tape         0
    nothing new, or no file     –                            0
    another one imports it      waits for its turn           0
    it cannot be recorded       one line on standard error   1
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..errors import TapeError, UsageError
from ..sessions.batch import ImportMemory, import_files
from ..sessions.sources import SessionFile
from ..store.store import Beginning
from .environment import find_facts, find_store_home, get_current_folder
from .output import as_json, format_examples, print_json
from .resolve import (
    PROGRAM,
    clean_argument,
    open_library,
)
from .terminal import print_lines, print_warning
from .user_service import build_launchd_agent, build_systemd_unit

if TYPE_CHECKING:
    from ..store.store import Store
    from .group import GlobalOptions

_CLAUDE_POINTS = ("UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")
_CODEX_POINTS = ("UserPromptSubmit", "Stop", "SubagentStop", "PreCompact")
_TIMEOUT = 60
"""Seconds an agent waits for the hook."""
_PLACES = {
    "claude": ("Claude Code", "merge it into ~/.claude/settings.json"),
    "codex": ("Codex", "merge it into ~/.codex/hooks.json, then trust it with /hooks"),
    "systemd": ("systemd", "~/.config/systemd/user/tape-import.service, `systemctl --user enable`"),
    "launchd": ("launchd", "~/Library/LaunchAgents/tape-import.plist, then `launchctl load`"),
}


@click.command(
    epilog=format_examples(
        "tape hook install --print",
        "tape hook install --print --for claude",
        """echo '{"transcript_path":"session.jsonl"}' | tape hook run""",
    )
)
@click.argument("action", type=click.Choice(["install", "run"]))
@click.option("--print", "is_printed", is_flag=True, help="Print it: nothing is ever installed.")
@click.option("--for", "agent", type=click.Choice([*_PLACES]), help="Print only this one's file.")
@as_json
@click.pass_obj
def hook(
    options: GlobalOptions, action: str, is_printed: bool, agent: str | None, as_json: bool
) -> int:
    """Record live sessions of Claude Code and Codex, by hooks that they call.

    `install --print` prints a hook configuration for each, and user services of systemd and
    launchd that run `tape import auto --watch`; put in place what you want. --json prints {claude,
    codex, systemd, launchd}, each {place, text}.

    `run` is what the hooks call, with their JSON on standard input: it imports what is new in the
    session's file. It prints nothing, and exits with 0, or 1 where that cannot be recorded.
    """
    if action == "run":
        return _run_hook(options)
    if not is_printed:
        raise UsageError("this only prints: add --print, and put in place what you want of it")
    texts = _build_texts(options)
    if as_json:
        print_json({k: {"place": _PLACES[k][1], "text": text} for k, text in texts.items()})
    elif agent is not None:
        print_lines(texts[agent].rstrip("\n").split("\n"))
    else:
        for name, text in texts.items():
            title, place = _PLACES[name]
            print_lines([f"# {title}: {place}", *text.rstrip("\n").split("\n"), ""])
    return 0


def _build_texts(options: GlobalOptions) -> dict[str, str]:
    """Return the file of each agent and of each kind of service."""
    words = [shutil.which("tape") or "tape"]
    if options.store is not None:
        words += ["--store", str(Path(find_store_home(options.store)).absolute())]
    run = " ".join(quote(word) for word in [*words, "hook", "run"])
    watch = [*words, "import", "auto", "--watch"]
    command = {"type": "command", "command": run, "timeout": _TIMEOUT}
    # Claude Code goes on while the hook runs, except where it would end before the hook.
    claude = {
        point: [{"hooks": [command | ({} if point == "SessionEnd" else {"async": True})]}]
        for point in _CLAUDE_POINTS
    }
    codex = {point: [{"hooks": [command]}] for point in _CODEX_POINTS}
    return {
        "claude": json.dumps({"hooks": claude}, indent=2),
        "codex": json.dumps({"hooks": codex}, indent=2),
        "systemd": build_systemd_unit("Record the sessions of coding agents on tapes", watch),
        "launchd": build_launchd_agent("tape-import", watch),
    }


def _run_hook(options: GlobalOptions) -> int:
    """Import what is new in the session that standard input names; return the exit code."""
    if sys.stdin.isatty():
        raise UsageError("agents call this with JSON on standard input; see `tape hook --help`")
    try:
        path = _find_transcript(sys.stdin.buffer.read())
        if path is None or not path.exists():
            return 0
        with open_library(options) as (store, _):
            return _import_file(store, path)
    except (TapeError, OSError) as error:
        print_warning(str(error))
        return 1


def _find_transcript(data: bytes) -> Path | None:
    """Return the file of the session; None where it has none, such as one that is not saved."""
    try:
        event: Any = json.loads(data)
    except ValueError as error:
        raise UsageError(f"standard input is not the JSON of a hook: {error}") from error
    place = event.get("transcript_path") if isinstance(event, dict) else None
    return Path(place).expanduser() if isinstance(place, str) and place else None


def _import_file(store: Store, path: Path) -> int:
    memory = ImportMemory(store)
    beginning = Beginning(clean_argument(get_current_folder()), PROGRAM)
    code = 0
    sources = [SessionFile(path)]
    for done in import_files(
        store, sources, beginning, memory, wait=_TIMEOUT, find_facts=find_facts
    ):
        if done.error is not None:
            print_warning(f"{path}: {done.error}")
            code = 1
    memory.save()
    return code
