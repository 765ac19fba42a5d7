"""bash: runs a command, streams its output, and returns the end of it to the model.

shell: bash as some model families call it: milliseconds, and both ends of a long output.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.model.entries import Text

from . import apply_patch
from .command import STOPPED, CommandDetails, classify_ending, execute_command
from .family_limits import FAMILY_LIMITS, OutputLimits, limit_joined_ends
from .limits import ToolSettings, TruncatedText, format_limit, format_size, truncate_tail
from .patch.parse import InvalidPatch, find_patch_in_command
from .tool import AgentTool, Diversion, ToolResult

if TYPE_CHECKING:
    from .command import FinishedCommand
    from .limits import OutputCaps
    from .tool import ToolContext


MOST_BASH_BYTES = 100_000
"""Maximum bytes to show: this much of the end of an output is always in memory."""
PATCH_MARKER = "*** Begin Patch"


class BashArguments(Struct, frozen=True):
    """Arguments of bash."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout: Annotated[float, Meta(ge=0, description="Seconds until it is ended")] | None = None


async def run_bash(
    arguments: BashArguments,
    context: ToolContext,
    *,
    tuning: ToolSettings = ToolSettings(),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Run the command after the configured prefix, and return the end of the output."""
    timeout_ms = _choose_timeout_ms(arguments.timeout, tuning)
    command = add_command_prefix(arguments.command, tuning.command_prefix)
    finished = await execute_command(command, timeout_ms, context)
    late = None
    if finished.done.timed_out:
        late = f"Command timed out after {timeout_ms / 1000:g} seconds"
    return await _build_bash_result(arguments.command, finished, late, tuning.caps("bash"))


def add_command_prefix(command: str, prefix: str) -> str:
    """Return a command with the configured prefix lines."""
    return f"{prefix}\n{command}" if prefix else command


def _choose_timeout_ms(seconds: float | None, tuning: ToolSettings) -> int:
    """Return a command's timeout in milliseconds; 0 and None mean the default."""
    if seconds:
        return max(1, round(min(seconds * 1000, tuning.max_timeout_ms)))
    return min(tuning.default_timeout_ms or tuning.max_timeout_ms, tuning.max_timeout_ms)


async def _build_bash_result(
    command: str, finished: FinishedCommand, late: str | None, caps: OutputCaps
) -> ToolResult:
    done = finished.done
    text, full, blob = finished.text, None, None
    cut = truncate_tail(text.removesuffix("\n"), *caps)
    if cut.truncated:
        full = finished.full
        path, blob = await finished.keep()
        text = f"{cut.content}\n\n[{_describe_shown_part(cut, finished)}. {finished.describe_location(path)}]"
    else:
        finished.drop()
    ending, kind = classify_ending(done, late)
    if ending is not None:
        text = "\n\n".join(filter(None, (text.rstrip("\n"), ending)))
    return ToolResult(
        (Text(text or "(no output)"),),
        CommandDetails(command, done.exit_code, done.duration_ms, cut.truncated),
        is_error=ending is not None,
        full=full,
        kept=blob,
        kind=kind,
    )


def _describe_shown_part(cut: TruncatedText, finished: FinishedCommand) -> str:
    limit, size = format_size(cut.max_bytes or 0), format_size(finished.done.total_bytes)
    total = finished.total_lines
    if cut.last_line_partial:
        return f"Showing last {limit} of line {total}, {size} in all"
    lines = f"Showing lines {total - cut.output_lines + 1}-{total} of {total}"
    return lines if cut.truncated_by == "lines" else f"{lines} ({limit} limit), {size} in all"


def redirect_patch_command(arguments: Struct) -> Diversion | ToolResult | None:
    """Return the patch that a command for a shell is, for the tool that applies patches.

    So it is judged, and applied, as one; a patch that nobody is asked to apply is an error, and so
    is a command that bash has nothing to run of.
    """
    command: str = getattr(arguments, "command", "")
    if why := _explain_empty_command(command):
        return ToolResult.error(f"'command' parameter is required: {why}", kind="ValidationError")
    if PATCH_MARKER not in command:
        return None
    match find_patch_in_command(command):
        case None:
            return None
        case InvalidPatch() as wrong:
            return ToolResult.error(
                f"{wrong}. {apply_patch.UNCHANGED_TEXT}", kind="ValidationError"
            )
    return Diversion(apply_patch.APPLY_PATCH_TOOL, apply_patch.ApplyPatchArguments(input=command))


def _explain_empty_command(command: str) -> str | None:
    if "\0" in command:
        return "it holds a zero byte, which no command can. Give the command without it."
    lines = [line.strip() for line in command.replace("\\\n", "\n").split("\n")]
    if not any(lines):
        return "it is empty. Say what to run."
    if all(not line or line.startswith("#") for line in lines):
        return "it holds only a comment. Say what to run."
    return None


def build_bash_tool(tuning: ToolSettings = ToolSettings()) -> AgentTool:  # noqa: B008 (a frozen value)
    """Return the tool with its settings: command prefix, timeouts, output limits."""
    caps = tuning.caps("bash")
    return AgentTool(
        name="bash",
        description=(
            "Run a command in bash, in the working directory. Returns standard output and error"
            f" as they came; of long output the last {caps.max_lines} lines or"
            f" {format_limit(caps.max_bytes)}, with the path of the whole. Nothing can be typed into"
            f" it. timeout is in seconds, {_describe_timeouts(tuning)}."
        ),
        arguments=BashArguments,
        run=partial(run_bash, tuning=tuning),
        stopped=STOPPED,
        divert=redirect_patch_command,
    )


def _describe_timeouts(tuning: ToolSettings) -> str:
    """Return the maximum and default timeout in words."""
    most, usual = tuning.max_timeout_ms, _choose_timeout_ms(None, tuning)
    if most == usual:
        return f"{most / 1000:g} at most and if absent"
    return f"{most / 1000:g} at most, {usual / 1000:g} if absent"


BASH_TOOL = build_bash_tool()


MOST_SHELL_CHARS = 50_000
"""What can be shown at most: half of it from each end is always in memory."""
SHELL_TIMEOUT_MS = 10_000


class ShellArguments(Struct, frozen=True):
    """What to run."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout_ms: Annotated[int, Meta(ge=1, description="Milliseconds until it is ended")] | None = (
        None
    )
    description: Annotated[str, Meta(description="What the command does, for people")] = ""


async def run_shell(
    arguments: ShellArguments,
    context: ToolContext,
    *,
    default_ms: int,
    limits: OutputLimits,
    tuning: ToolSettings = ToolSettings(),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Run the command and return its output, exit code and duration."""
    wanted = arguments.timeout_ms or tuning.default_timeout_ms or default_ms
    timeout_ms = min(wanted, tuning.max_timeout_ms)
    command = add_command_prefix(arguments.command, tuning.command_prefix)
    finished = await execute_command(command, timeout_ms, context)
    return await _build_shell_result(arguments.command, finished, timeout_ms, limits)


async def _build_shell_result(
    command: str, finished: FinishedCommand, timeout_ms: int, limits: OutputLimits
) -> ToolResult:
    done, text = finished.done, finished.text.removesuffix("\n")
    chars = finished.total_chars - finished.ends_a_line
    shown = limit_joined_ends(finished.head, text, chars, finished.total_lines, limits)
    cut = shown != text
    full, blob = finished.full if cut else None, None
    facts = [f"exit code {done.exit_code}", f"{done.duration_ms} ms"]
    if cut:
        path, blob = await finished.keep()
        facts.append(finished.describe_location(path))
    else:
        finished.drop()
    late = _describe_timeout(timeout_ms) if done.timed_out else ""
    _, kind = classify_ending(done, late or None)
    parts = (shown.rstrip("\n"), f"[{', '.join(facts)}]", late)
    return ToolResult(
        (Text("\n\n".join(filter(None, parts))),),
        CommandDetails(command, done.exit_code, done.duration_ms, cut),
        is_error=kind is not None,
        full=full,
        kept=blob,
        kind=kind,
    )


def _describe_timeout(timeout_ms: int) -> str:
    return (
        f"[ERROR: Command timed out after {timeout_ms}ms. Partial output is shown above.\n"
        "You can retry with a longer timeout by setting the timeout_ms parameter.]"
    )


def build_shell_tool(
    default_ms: int = SHELL_TIMEOUT_MS,
    limits: OutputLimits = FAMILY_LIMITS["shell"],
    tuning: ToolSettings = ToolSettings(),  # noqa: B008 (a frozen value)
) -> AgentTool:
    """Return the tool with the time a command has unless the model, or a person, says otherwise."""
    shown_ms = min(tuning.default_timeout_ms or default_ms, tuning.max_timeout_ms)
    return AgentTool(
        name="shell",
        description=(
            "Run a command in bash, in the working directory. Returns standard output and error"
            " as they came, the exit code and the duration; a long output loses its middle."
            f" Nothing can be typed into it. It is ended after timeout_ms,"
            f" {tuning.max_timeout_ms} at most, {shown_ms} if absent."
        ),
        arguments=ShellArguments,
        run=partial(run_shell, default_ms=default_ms, limits=limits, tuning=tuning),
        stopped=STOPPED,
        divert=redirect_patch_command,
    )


SHELL_TOOL = build_shell_tool()
