"""shell: bash as some model families call it: milliseconds, and both ends of a long output."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .bash import add_command_prefix, redirect_patch_command
from .command import STOPPED, CommandDetails, classify_ending, execute_command
from .settings import ToolSettings
from .tool import AgentTool, ToolResult
from .truncation.pipeline import FAMILY_LIMITS, OutputLimits, limit_joined_ends

if TYPE_CHECKING:
    from .command import FinishedCommand
    from .tool import ToolContext

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
