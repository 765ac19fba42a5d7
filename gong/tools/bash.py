"""bash: a command, its output as it comes, and the end of it for the model."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .spill import Spill
from .tool import Tool, ToolResult
from .truncate import MAX_BYTES, Result, format_size, truncate_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..env.protocol import ExecResult
    from .tool import ToolContext

MAX_TIMEOUT_SECONDS = 600
FULL_BYTES = 5 * 1024 * 1024
"""Longer output than this stays in its file only."""
CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class Arguments(Struct, frozen=True):
    """What to run."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout: (
        Annotated[float, Meta(ge=0, description="Seconds until it is ended; no limit if absent")]
        | None
    ) = None


class Details(Struct, frozen=True):
    """How the command ended."""

    command: str
    exit_code: int
    duration_ms: int
    truncated: bool


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Run the command and return the end of its output; cancelling leaves nothing behind."""
    seconds = min(arguments.timeout, MAX_TIMEOUT_SECONDS) if arguments.timeout else None
    spill = Spill(context.env.temporary_directory)
    try:
        done = await context.env.exec_command(
            arguments.command,
            timeout_ms=None if seconds is None else round(seconds * 1000),
            on_output=_listener(spill, context.update),
        )
    except BaseException:
        spill.drop()
        raise
    return _result(arguments.command, done, spill, _ending(done, seconds))


def _listener(spill: Spill, update: Callable[[str], None]) -> Callable[[bytes], None]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def listen(chunk: bytes) -> None:
        spill.take(chunk)
        text = decoder.decode(chunk)
        if text:
            update(text)

    return listen


def _ending(done: ExecResult, seconds: float | None) -> str | None:
    """Return what went wrong, None when nothing did."""
    if done.timed_out:
        return f"Command timed out after {seconds:g} seconds"
    return f"Command exited with code {done.exit_code}" if done.exit_code else None


def _result(command: str, done: ExecResult, spill: Spill, ending: str | None) -> ToolResult:
    text = _text(done)
    cut = truncate_tail(text.removesuffix("\n"))
    if cut.truncated:
        text, full = _shortened(cut, done, spill)
    else:
        full = None
        spill.drop()
    if ending is not None:
        text = "\n\n".join(filter(None, (text.rstrip("\n"), ending)))
    return ToolResult(
        (Text(text or "(no output)"),),
        Details(command, done.exit_code, done.duration_ms, cut.truncated),
        is_error=ending is not None,
        full=full,
    )


def _shortened(cut: Result, done: ExecResult, spill: Spill) -> tuple[str, str | None]:
    """Return what the model sees, and the whole output when it is not too long to be kept."""
    path = spill.keep()
    notice = f"[{_shown(cut, done, spill.total_lines)}. {_where(path, spill)}]"
    small = done.total_bytes <= FULL_BYTES
    full = Path(path).read_bytes().decode("utf-8", "replace") if path and small else None
    return f"{cut.content}\n\n{notice}", full


def _shown(cut: Result, done: ExecResult, total: int) -> str:
    limit, size = format_size(MAX_BYTES), format_size(done.total_bytes)
    if cut.last_line_partial:
        return f"Showing last {limit} of line {total}, {size} in all"
    lines = f"Showing lines {total - cut.output_lines + 1}-{total} of {total}"
    return lines if cut.truncated_by == "lines" else f"{lines} ({limit} limit), {size} in all"


def _where(path: str | None, spill: Spill) -> str:
    return f"Full output: {path}" if path else f"Full output not kept: {spill.failure}"


def _text(done: ExecResult) -> str:
    """Return the newest output, from the first whole character on."""
    whole = len(done.output) == done.total_bytes
    data = done.output if whole else done.output.lstrip(CONTINUATION_BYTES)
    return data.decode("utf-8", "replace")


TOOL = Tool(
    name="bash",
    description=(
        "Run a command in bash, in the working directory. Returns standard output and error as"
        " they came; of long output the last 2000 lines or 50KB, with the path of the whole."
        " Nothing can be typed into it. timeout is in seconds."
    ),
    arguments=Arguments,
    run=run,
)
