"""edit: one place of a text file, found by its text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from ..env.paths import climbs_out
from .diff import diff_of
from .match import replaced, same, spans
from .text_files import failure, is_binary, refusal
from .tool import Tool, ToolResult

if TYPE_CHECKING:
    from .match import Replacement
    from .tool import ToolContext


class Arguments(Struct, frozen=True):
    """What to replace by what, and where."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    old_text: Annotated[
        str, Meta(description="Text to replace, exactly as in the file; it must stand there once")
    ] = field(name="oldText")
    new_text: Annotated[str, Meta(description="Text to put in its place")] = field(name="newText")


class Details(Struct, frozen=True):
    """What changed, for people."""

    path: str
    old_text: str
    new_text: str
    diff_lines: tuple[str, ...]
    diff: str
    """The same lines as one text."""
    first_changed_line: int


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Replace the one place that reads `old_text`; otherwise leave the file alone and say why."""
    path, env = arguments.path, context.env
    resolved = env.resolve(path)
    if climbs_out(path, resolved, env.working_directory):
        return ToolResult.error(refusal(path))
    try:
        data = await env.read_file(resolved)
        change = await asyncio.to_thread(_change, data, arguments)
        if isinstance(change, str):
            return ToolResult.error(change)
        await env.write_file(resolved, change.after)
    except FileNotFoundError:
        return ToolResult.error(f"File not found: {path}")
    except OSError as error:
        return ToolResult.error(failure(error, path))
    details = await asyncio.to_thread(_details, change, arguments)
    return ToolResult.from_text(f"Successfully replaced text in {path}.", details)


def _change(data: bytes, arguments: Arguments) -> Replacement | str:
    """Return the changed file, or why there is none."""
    path = arguments.path
    if is_binary(data):
        return f"Cannot edit {path}: it is a binary file. Use bash to change it."
    if not arguments.old_text.removeprefix("\ufeff"):
        return f"oldText is empty: name the text to replace in {path}, or use write for all of it."
    found = spans(data, arguments.old_text)
    if not found:
        return (
            f"Could not find the exact text in {path}."
            " The old text must match exactly including all whitespace and newlines."
        )
    if len(found) > 1:
        return (
            f"Found {len(found)} occurrences of the text in {path}. The text must be unique."
            " Please provide more context to make it unique."
        )
    change = replaced(data, found[0], arguments.new_text)
    if same(arguments.old_text, arguments.new_text) or change.after == data:
        return f"No changes made to {path}. The replacement produced identical content."
    return change


def _details(change: Replacement, arguments: Arguments) -> Details:
    diff = diff_of(change)
    return Details(
        path=arguments.path,
        old_text=arguments.old_text,
        new_text=arguments.new_text,
        diff_lines=diff.lines,
        diff="\n".join(diff.lines),
        first_changed_line=diff.first_changed_line,
    )


TOOL = Tool(
    name="edit",
    description=(
        "Replace text in a file. oldText must match the file exactly, whitespace included, and"
        " stand there once: give a few lines around the change. Line ends are kept."
    ),
    arguments=Arguments,
    run=run,
)
