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
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Raw, Struct

from tape.cli.output import format_examples, print_bytes, print_json
from tape.cli.terminal import format_table, print_lines
from tape.model.entries import NO_JSON, Block, Image, Text, ToolCall, join_texts

from ..env.local import LocalEnvironment
from ..policy.danger import DangerPolicy
from ..policy.decision import allow_all, decide_call
from ..policy.refusals import choose_locale
from ..project import locate_folder
from ..tools.builtin import OFFERED_TOOLS, SESSION_TOOLS, build_registry
from ..tools.output_storage import FolderStorage, build_temporary_path
from ..tools.python_tools import load_python_tools
from ..tools.tool import PreparedCall, ToolContext, ToolOutcome, encode_details
from .options import load_settings, print_warning

if TYPE_CHECKING:
    from .. import config
    from ..tools.registry import ToolRegistry

_CLAUSE_END = re.compile(r"[.:;](?:\s|$)")
_FAILED_EXIT, _USAGE_EXIT, _NOT_FOUND_EXIT, _DENIED_EXIT = 1, 2, 3, 7
_EXIT_CODES = {
    "UnknownTool": _NOT_FOUND_EXIT,
    "ValidationError": _USAGE_EXIT,
    "PermissionDenied": _DENIED_EXIT,
}


@click.command(
    epilog=format_examples(
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
        _print_tools(as_json=as_json)
        return
    text = sys.stdin.buffer.read() if arguments == "-" else os.fsencode(arguments)
    with asyncio.Runner() as runner:
        opened = runner.run(_open_runner())
        try:
            if jsonl:
                for line in sys.stdin.buffer:
                    answer, _ = runner.run(opened.answer_line(line))
                    print_bytes(answer + b"\n")
                    sys.stdout.buffer.flush()
                code = 0
            else:
                answer, code = runner.run(opened.run_call(name, text))
                print_bytes(answer + b"\n")
        finally:
            # Also if a signal arrived while a command was being started.
            runner.run(opened.env.cleanup())
    raise click.exceptions.Exit(code)


class PrintedResult(Struct, frozen=True):
    """The printed form of a result: its text, or its blocks if some are not text."""

    content: Any
    details: Raw
    is_error: bool


class _CallLine(Struct, frozen=True):
    """A line of --jsonl."""

    tool: str
    args: Raw = NO_JSON


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """The tools and their environment, for calls one after the other."""

    tools: ToolRegistry
    env: LocalEnvironment
    policy: DangerPolicy
    storage: FolderStorage
    max_picture_bytes: int

    async def run_call(self, name: str, arguments: bytes) -> tuple[bytes, int]:
        """Run one call; return its answer as a JSON line, and an exit code."""
        try:
            msgspec.json.decode(arguments)
            call = ToolCall(id="c1", name=name, args=Raw(arguments))
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
        ):  # the tool reads or refuses the text
            call = ToolCall(id="c1", name=name, args_text=arguments.decode("utf-8", "replace"))
        prepared = self.tools.prepare(call)
        if not isinstance(prepared, PreparedCall):
            result = prepared
        elif (verdict := await decide_call(self.policy, prepared)).allowed:
            context = ToolContext(
                self.env,
                call.id,
                lambda _text: None,
                self.storage,
                max_picture_bytes=self.max_picture_bytes,
            )
            result = await self.tools.run(prepared, context)
        else:
            result = ToolOutcome.error(verdict.text, kind="PermissionDenied")
        code = _EXIT_CODES.get(result.kind or "", _FAILED_EXIT) if result.is_error else 0
        return self._encode_result(result), code

    async def answer_line(self, line: bytes) -> tuple[bytes, int]:
        """Run the call on a line; a line without a valid call gives an error result."""
        try:
            call_line = msgspec.json.decode(line, type=_CallLine)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            usage = 'Give {"tool": NAME, "args": {…}}.'
            return self._encode_result(
                ToolOutcome.error(f"Not a call: {error}. {usage}")
            ), _USAGE_EXIT
        return await self.run_call(call_line.tool, bytes(call_line.args))

    def _encode_result(self, result: ToolOutcome) -> bytes:
        plain = all(isinstance(block, Text) for block in result.content)
        blocks = [self._encode_block(block) for block in result.content]
        content = join_texts(result.content) if plain else blocks
        details = encode_details(result)
        printed_details = Raw(b"null") if details == NO_JSON else details
        return msgspec.json.encode(PrintedResult(content, printed_details, result.is_error))

    def _encode_block(self, block: Block) -> Any:
        """Return a block as it is printed; a picture's bytes are base64."""
        if not isinstance(block, Image):
            return block
        data = Path(self.storage.directory, block.blob.hash).read_bytes()
        return {"type": "image", "mime": block.mime, "data": data}


async def _open_runner() -> ToolRunner:
    settings, folder = load_settings(), locate_folder()
    sandbox = None
    if settings.border.mode != "off":
        from ..assembly.border import open_border  # only where one is asked for

        sandbox = open_border(settings, folder, os.environ, (), print_warning)
    env = LocalEnvironment(folder, os.environ, policy=settings.variable_rules, sandbox=sandbox)
    await env.initialize()
    locale = choose_locale(os.environ)
    floor = DangerPolicy(allow_all, folder, os.environ.get("HOME", "/"), locale)
    limits = settings.truncation
    place = limits.storage_dir or build_temporary_path(env.outside.temporary_directory)
    storage = FolderStorage(place, limits.retention_days)
    tools = _build_all_tools(settings)
    return ToolRunner(tools, env, floor, storage, settings.max_image_size)


def _build_all_tools(settings: config.Settings) -> ToolRegistry:
    tools = build_registry(settings.tuning, os.environ)
    for tool in load_python_tools(settings.python_tools):
        tools.register(tool)
    tools.set_active(tools.names)
    return tools


def _print_tools(*, as_json: bool) -> None:
    tools = _build_all_tools(load_settings())
    specs, usual = tools.specs(), (*build_registry().active, *OFFERED_TOOLS)
    if as_json:
        print_json(specs)
        return
    rows = {
        spec.name: (spec.name, _CLAUSE_END.split(spec.description, maxsplit=1)[0]) for spec in specs
    }
    print_lines(
        format_table([rows[name] for name in usual if name in rows], headings=("TOOL", "DOES"))
    )
    print_lines(["", "In a session:", *format_table([rows[name] for name in SESSION_TOOLS])])
    others = [row for name, row in rows.items() if name not in {*usual, *SESSION_TOOLS}]
    if others:
        print_lines(["", "Tool variants of model families, chosen by name:", *format_table(others)])
