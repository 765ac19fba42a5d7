"""bash: runs a command, streams its output, and returns the end of it to the model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from . import apply_patch
from .command import STOPPED, Details, ending_of, execute
from .patch.command import patch_of_command
from .patch.hunks import Invalid
from .settings import Tuning
from .tool import Diversion, Tool, ToolResult
from .truncate import Result, format_size, in_short, truncate_tail

if TYPE_CHECKING:
    from .command import Finished
    from .settings import Caps
    from .tool import ToolContext

MOST_BYTES = 100_000
"""Maximum bytes to show: this much of the end of an output is always in memory."""
PATCH_BEGINS = "*** Begin Patch"


class Arguments(Struct, frozen=True):
    """Arguments of bash."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout: Annotated[float, Meta(ge=0, description="Seconds until it is ended")] | None = None


async def run(
    arguments: Arguments,
    context: ToolContext,
    *,
    tuning: Tuning = Tuning(),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Run the command after the configured prefix, and return the end of the output."""
    timeout_ms = _timeout_ms(arguments.timeout, tuning)
    command = prefixed(arguments.command, tuning.command_prefix)
    finished = await execute(command, timeout_ms, context)
    late = None
    if finished.done.timed_out:
        late = f"Command timed out after {timeout_ms / 1000:g} seconds"
    return await _result(arguments.command, finished, late, tuning.caps("bash"))


def prefixed(command: str, prefix: str) -> str:
    """Return a command with the configured prefix lines."""
    return f"{prefix}\n{command}" if prefix else command


def _timeout_ms(seconds: float | None, tuning: Tuning) -> int:
    """Return a command's timeout in milliseconds; 0 and None mean the default."""
    if seconds:
        return max(1, round(min(seconds * 1000, tuning.max_timeout_ms)))
    return min(tuning.default_timeout_ms or tuning.max_timeout_ms, tuning.max_timeout_ms)


async def _result(command: str, finished: Finished, late: str | None, caps: Caps) -> ToolResult:
    done = finished.done
    text, full, blob = finished.text, None, None
    cut = truncate_tail(text.removesuffix("\n"), *caps)
    if cut.truncated:
        full = finished.full
        path, blob = await finished.keep()
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
        kept=blob,
        kind=kind,
    )


def _shown(cut: Result, finished: Finished) -> str:
    limit, size = format_size(cut.max_bytes or 0), format_size(finished.done.total_bytes)
    total = finished.total_lines
    if cut.last_line_partial:
        return f"Showing last {limit} of line {total}, {size} in all"
    lines = f"Showing lines {total - cut.output_lines + 1}-{total} of {total}"
    return lines if cut.truncated_by == "lines" else f"{lines} ({limit} limit), {size} in all"


def meant(arguments: Struct) -> Diversion | ToolResult | None:
    """Return the patch that a command for a shell is, for the tool that applies patches.

    So it is judged, and applied, as one; a patch that nobody is asked to apply is an error, and so
    is a command that bash has nothing to run of.
    """
    command: str = getattr(arguments, "command", "")
    if why := _why_nothing_runs(command):
        return ToolResult.error(f"'command' parameter is required: {why}", kind="ValidationError")
    if PATCH_BEGINS not in command:
        return None
    match patch_of_command(command):
        case None:
            return None
        case Invalid() as wrong:
            return ToolResult.error(f"{wrong}. {apply_patch.UNCHANGED}", kind="ValidationError")
    return Diversion(apply_patch.TOOL, apply_patch.Arguments(input=command))


def _why_nothing_runs(command: str) -> str | None:
    if "\0" in command:
        return "it holds a zero byte, which no command can. Give the command without it."
    lines = [line.strip() for line in command.replace("\\\n", "\n").split("\n")]
    if not any(lines):
        return "it is empty. Say what to run."
    if all(not line or line.startswith("#") for line in lines):
        return "it holds only a comment. Say what to run."
    return None


def bash(tuning: Tuning = Tuning()) -> Tool:  # noqa: B008 (a frozen value)
    """Return the tool with its settings: command prefix, timeouts, output limits."""
    caps = tuning.caps("bash")
    return Tool(
        name="bash",
        description=(
            "Run a command in bash, in the working directory. Returns standard output and error"
            f" as they came; of long output the last {caps.max_lines} lines or"
            f" {in_short(caps.max_bytes)}, with the path of the whole. Nothing can be typed into"
            f" it. timeout is in seconds, {_times(tuning)}."
        ),
        arguments=Arguments,
        run=partial(run, tuning=tuning),
        stopped=STOPPED,
        divert=meant,
    )


def _times(tuning: Tuning) -> str:
    """Return the maximum and default timeout in words."""
    most, usual = tuning.max_timeout_ms, _timeout_ms(None, tuning)
    if most == usual:
        return f"{most / 1000:g} at most and if absent"
    return f"{most / 1000:g} at most, {usual / 1000:g} if absent"


TOOL = bash()
