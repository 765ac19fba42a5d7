"""bash: a command, its output as it comes, and the end of it for the model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from . import apply_patch
from .command import Details, ending_of, execute
from .patch.command import patch_of_command
from .patch.hunks import Invalid
from .tool import Diversion, Tool, ToolResult
from .truncate import MAX_BYTES, Result, format_size, truncate_tail

if TYPE_CHECKING:
    from .command import Finished
    from .tool import ToolContext

MAX_TIMEOUT_SECONDS = 600
PATCH_BEGINS = "*** Begin Patch"


class Arguments(Struct, frozen=True):
    """What to run."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout: (
        Annotated[float, Meta(ge=0, description="Seconds until it is ended; no limit if absent")]
        | None
    ) = None


async def run(arguments: Arguments, context: ToolContext, *, prefix: str = "") -> ToolResult:
    """Run the command, after `prefix`, and return the end of what both said."""
    seconds = min(arguments.timeout, MAX_TIMEOUT_SECONDS) if arguments.timeout else None
    command = f"{prefix}\n{arguments.command}" if prefix else arguments.command
    finished = await execute(command, None if seconds is None else round(seconds * 1000), context)
    late = f"Command timed out after {seconds:g} seconds" if finished.done.timed_out else None
    return await _result(arguments.command, finished, late)


async def _result(command: str, finished: Finished, late: str | None) -> ToolResult:
    done = finished.done
    text, full = finished.text, None
    cut = truncate_tail(text.removesuffix("\n"))
    if cut.truncated:
        full = finished.full
        path = await finished.keep()
        text = f"{cut.content}\n\n[{_shown(cut, finished)}. {finished.where(path)}]"
    else:
        finished.drop()
    ending, kind = ending_of(done, late)
    if ending is not None:
        text = "\n\n".join(filter(None, (text.rstrip("\n"), ending)))
    return ToolResult(
        (Text(text or "(no output)"),),
        Details(command, done.exit_code, done.duration_ms, cut.truncated),
        is_error=ending is not None,
        full=full,
        kind=kind,
    )


def _shown(cut: Result, finished: Finished) -> str:
    limit, size = format_size(MAX_BYTES), format_size(finished.done.total_bytes)
    total = finished.total_lines
    if cut.last_line_partial:
        return f"Showing last {limit} of line {total}, {size} in all"
    lines = f"Showing lines {total - cut.output_lines + 1}-{total} of {total}"
    return lines if cut.truncated_by == "lines" else f"{lines} ({limit} limit), {size} in all"


def meant(arguments: Struct) -> Diversion | ToolResult | None:
    """Return the patch that a command for a shell is, for the tool that applies patches.

    So it is judged, and applied, as one; a patch that nobody is asked to apply is an error.
    """
    command: str = getattr(arguments, "command", "")
    if PATCH_BEGINS not in command:
        return None
    match patch_of_command(command):
        case None:
            return None
        case Invalid() as wrong:
            return ToolResult.error(f"{wrong}. {apply_patch.UNCHANGED}", kind="ValidationError")
    return Diversion(apply_patch.TOOL, apply_patch.Arguments(input=command))


def with_prefix(prefix: str) -> Tool:
    """Return the tool with lines that bash reads before every command, "" for none."""
    return Tool(
        name="bash",
        description=(
            "Run a command in bash, in the working directory. Returns standard output and error"
            " as they came; of long output the last 2000 lines or 50KB, with the path of the"
            " whole. Nothing can be typed into it. timeout is in seconds."
        ),
        arguments=Arguments,
        run=partial(run, prefix=prefix),
        divert=meant,
    )


TOOL = with_prefix("")
