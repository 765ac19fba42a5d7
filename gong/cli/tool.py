"""`gong tool`: run one tool directly, through the whole pipeline, in the current folder.

All tools are available and no permission is asked. Dangerous commands, and relative paths that
leave the folder, are refused all the same.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Raw, Struct

from tape.blocks import NO_JSON, Block, Image, Text, ToolCall, text_of
from tape.cli.out import document, examples, raw, say, table

from .. import config
from ..env.local import LocalEnvironment
from ..errors import FolderGone
from ..policy import allow_all
from ..policy.decision import decide
from ..policy.floor import Floor
from ..tools.builtin import PAST, builtin
from ..tools.registry import Prepared, Registry
from ..tools.tool import ToolContext, ToolResult, details_of
from ..tools.truncation.service import temporary_folder
from ..tools.truncation.storage import FolderStorage

_CLAUSE = re.compile(r"[.:;](?:\s|$)")
_FAILED, _USAGE, _NOT_FOUND, _DENIED = 1, 2, 3, 7
_CODES = {"UnknownTool": _NOT_FOUND, "ValidationError": _USAGE, "PermissionDenied": _DENIED}


@click.command(
    epilog=examples(
        "gong tool list",
        """gong tool read '{"path": "README.md", "limit": 20}'""",
        "gong tool write - < arguments.json",
        "gong tool --jsonl < calls.jsonl",
    ),
)
@click.argument("name", metavar="[NAME]", default="")
@click.argument("arguments", metavar="[JSON]", default="")
@click.option("--jsonl", is_flag=True, help='Read one call per line: {"tool": NAME, "args": {…}}.')
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def tool(name: str, arguments: str, *, jsonl: bool, as_json: bool) -> None:
    """Run the tool NAME and print {content, details, is_error}; `list` names all tools.

    JSON is the tool's arguments, {} if absent, or - for standard input.
    """
    if jsonl == bool(name):
        raise click.UsageError("give the name of a tool, list, or --jsonl")
    if name == "list":
        _list(as_json=as_json)
        return
    given = sys.stdin.buffer.read() if arguments == "-" else os.fsencode(arguments)
    with asyncio.Runner() as runner:
        hand = runner.run(_hand())
        try:
            if jsonl:
                for line in sys.stdin.buffer:
                    answer, _ = runner.run(hand.answer(line))
                    raw(answer + b"\n")
                    sys.stdout.buffer.flush()
                code = 0
            else:
                answer, code = runner.run(hand.use(name, given))
                raw(answer + b"\n")
        finally:
            # Also if a signal arrived while a command was being started.
            runner.run(hand.env.cleanup())
    raise click.exceptions.Exit(code)


class Answer(Struct, frozen=True):
    """The printed form of a result: its text, or its blocks if some are not text."""

    content: Any
    details: Raw
    is_error: bool


class _Line(Struct, frozen=True):
    """A line of --jsonl."""

    tool: str
    args: Raw = NO_JSON


@dataclass(frozen=True, slots=True)
class Hand:
    """The tools and their environment, for calls one after the other."""

    tools: Registry
    env: LocalEnvironment
    policy: Floor
    storage: FolderStorage

    async def use(self, name: str, given: bytes) -> tuple[bytes, int]:
        """Run one call; return its answer as a JSON line, and an exit code."""
        result = await self._run(_call(name, given))
        code = _CODES.get(result.kind or "", _FAILED) if result.is_error else 0
        return self._encoded(result), code

    async def answer(self, line: bytes) -> tuple[bytes, int]:
        """Run the call on a line; a line without a valid call gives an error result."""
        try:
            asked = msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, RecursionError) as error:
            wanted = 'Give {"tool": NAME, "args": {…}}.'
            return self._encoded(ToolResult.error(f"Not a call: {error}. {wanted}")), _USAGE
        return await self.use(asked.tool, bytes(asked.args))

    async def _run(self, call: ToolCall) -> ToolResult:
        prepared = self.tools.prepare(call)
        if not isinstance(prepared, Prepared):
            return prepared
        verdict = (await decide(self.policy, prepared)).verdict
        if not verdict.allowed:
            return ToolResult.error(verdict.text, kind="PermissionDenied")
        context = ToolContext(self.env, call.id, lambda _text: None, self.storage)
        return await self.tools.run(prepared, context)

    def _encoded(self, result: ToolResult) -> bytes:
        plain = all(isinstance(block, Text) for block in result.content)
        blocks = [self._shown(block) for block in result.content]
        content = text_of(result.content) if plain else blocks
        details = details_of(result)
        shown = Raw(b"null") if details == NO_JSON else details
        return msgspec.json.encode(Answer(content, shown, result.is_error))

    def _shown(self, block: Block) -> Any:
        """Return a block as it is printed; a picture's bytes are base64."""
        if not isinstance(block, Image):
            return block
        data = Path(self.storage.directory, block.blob.hash).read_bytes()
        return {"type": "image", "mime": block.mime, "data": data}


async def _hand() -> Hand:
    settings = config.load(os.environ, {})
    try:
        folder = str(Path.cwd())
    except FileNotFoundError as error:
        raise FolderGone("this folder no longer exists: change to another and try again") from error
    env = LocalEnvironment(folder, os.environ, policy=settings.environment)
    await env.initialize()
    floor = Floor(allow_all, folder, os.environ.get("HOME", "/"))
    kept = settings.truncation
    place = kept.storage_dir or temporary_folder(env.temporary_directory)
    storage = FolderStorage(place, kept.retention_days)
    return Hand(_all_tools(settings), env, floor, storage)


def _all_tools(settings: config.Settings) -> Registry:
    tools = builtin(settings.tuning)
    tools.set_active(tools.names)
    return tools


def _call(name: str, given: bytes) -> ToolCall:
    """Return the call; text that is not JSON is passed on for the tool to read or refuse."""
    try:
        msgspec.json.decode(given)
    except (msgspec.DecodeError, RecursionError):
        return ToolCall(id="c1", name=name, args_text=given.decode("utf-8", "replace"))
    return ToolCall(id="c1", name=name, args=Raw(given))


def _list(*, as_json: bool) -> None:
    tools = _all_tools(config.load(os.environ, {}))
    specs, usual = tools.specs(), builtin().active
    if as_json:
        document(specs)
        return
    rows = {one.name: (one.name, _in_short(one.description)) for one in specs}
    say(table([rows[name] for name in usual]))
    say(["", "In a session, on its tape:", *table([rows[name] for name in PAST])])
    others = [row for name, row in rows.items() if name not in {*usual, *PAST}]
    if others:
        say(["", "Tool variants of model families, chosen by name:", *table(others)])


def _in_short(text: str) -> str:
    return _CLAUSE.split(text, maxsplit=1)[0]
