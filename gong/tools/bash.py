"""bash: runs a command, streams its output, and returns the end of it to the model.

shell: bash as some model families call it, with milliseconds, and both ends of a long output.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from tape.model.entries import Text

from ..tool_settings import DEFAULT_SETTINGS, ToolSettings
from . import apply_patch
from .command import (
    STOPPED,
    CommandDetails,
    classify_ending,
    describe_border,
    execute_command,
)
from .limits import FAMILY_LIMITS, OutputLimits, count_bytes, format_limit, format_size
from .output_storage import FullOutput
from .patch.parse import InvalidPatch, find_patch_in_command
from .tool import NO_BACKGROUND, AgentTool, Diversion, ToolOutcome
from .truncation import limit_joined_ends, truncate_tail

if TYPE_CHECKING:
    from ..env.protocol import ExecResult
    from ..tool_settings import OutputCaps
    from .command import FinishedCommand, KeptOutput
    from .tool import ErrorKind, ToolContext
    from .truncation import TruncatedText


MAX_BASH_BYTES = 100_000
"""Maximum bytes to show: this much of the end of an output is always in memory."""
PATCH_MARKER = "*** Begin Patch"


_BACKGROUND_HELP = (
    "Return at once with an id for bash_output and kill_shell; for servers and builds"
)


class BashArguments(Struct, frozen=True):
    """Arguments of bash."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout: Annotated[float, Meta(ge=0, description="Seconds until it is ended")] | None = None
    run_in_background: Annotated[bool, Meta(description=_BACKGROUND_HELP)] = False


async def run_bash(
    arguments: BashArguments, context: ToolContext, *, tuning: ToolSettings = DEFAULT_SETTINGS
) -> ToolOutcome:
    """Run the command after the configured prefix, and return the end of the output."""
    tuning = _apply_timeouts(tuning, context)
    timeout_ms = _choose_timeout_ms(arguments.timeout, tuning)
    command = add_command_prefix(arguments.command, tuning.command_prefix)
    if arguments.run_in_background:
        limit_ms = timeout_ms if arguments.timeout else None
        return _start_in_background(arguments.command, command, limit_ms, context)
    split = tuning.bash_output == "split"
    finished = await execute_command(command, timeout_ms, context, split=split)
    late = (
        f"Command timed out after {timeout_ms / 1000:g} seconds"
        if finished.done.timed_out
        else None
    )
    if split:
        return await _build_split_result(arguments.command, finished, late, tuning.caps("bash"))
    done, text = finished.done, finished.text
    cut = truncate_tail(text.removesuffix("\n"), *tuning.caps("bash"))
    output = await finished.settle(cut=cut.truncated)
    if cut.truncated:
        limit, size = format_size(cut.max_bytes or 0), format_size(done.total_bytes)
        total = finished.total_lines
        part = f"lines {total - cut.output_lines + 1}-{total} of {total}"
        if cut.last_line_partial:
            part = f"last {limit} of line {total}, {size} in all"
        elif cut.truncated_by != "lines":
            part = f"{part} ({limit} limit), {size} in all"
        text = f"{cut.content}\n\n[Showing {part}. {output.location}]"
    ending, kind = classify_ending(done, late)
    if ending is not None:
        text = "\n\n".join(filter(None, (text.rstrip("\n"), ending)))
    details = CommandDetails(arguments.command, done.exit_code, done.duration_ms, cut.truncated)
    return build_command_result(text or "(no output)", details, output, kind, done)


async def _build_split_result(
    command: str, finished: FinishedCommand, late: str | None, caps: OutputCaps
) -> ToolOutcome:
    """Return standard output and error under their names; of a failure, what failed, first.

    A failure begins with its errors: standard output follows where there is some.
    """
    done = finished.done
    stdout, stderr = _truncate_streams(done.stdout or b"", done.stderr or b"", caps)
    is_cut = stdout.truncated or stderr.truncated
    output = await finished.settle(cut=is_cut)
    parts = [f"stdout:\n{stdout.content}", f"stderr:\n{stderr.content}"]
    ending, kind = classify_ending(done, late)
    if ending is not None:
        parts = [ending, parts[1], *(parts[:1] if stdout.content else ())]
    text = "\n".join(parts)
    if is_cut:
        sizes = (format_size(stream.output_bytes) for stream in (stdout, stderr))
        extent = "the last {} of stdout and {} of stderr".format(*sizes)
        total = format_size(done.total_bytes)
        text = f"{text}\n\n[Showing {extent}, {total} in all. {output.location}]"
    details = CommandDetails(command, done.exit_code, done.duration_ms, is_cut)
    return build_command_result(text, details, output, kind, done)


def _truncate_streams(
    stdout: bytes, stderr: bytes, caps: OutputCaps
) -> tuple[TruncatedText, TruncatedText]:
    """Return the ends of both streams within the limits of one result.

    Each has half of them, and what the other one leaves of its half.
    """
    texts = [data.decode("utf-8", "replace").removesuffix("\n") for data in (stdout, stderr)]

    def cut(text: str, other: str) -> TruncatedText:
        lines = None
        if caps.max_lines is not None:
            lines = _compute_share(caps.max_lines, other.count("\n") + 1)
        return truncate_tail(text, lines, _compute_share(caps.max_bytes, count_bytes(other)))

    return cut(texts[0], texts[1]), cut(texts[1], texts[0])


def _compute_share(most: int, other: int) -> int:
    """Return how much of a limit is left beside something of a size, at least half of it."""
    return max(most - other, most // 2, 1)


def _apply_timeouts(tuning: ToolSettings, context: ToolContext) -> ToolSettings:
    """Return the settings with the session's timeouts, where it has some."""
    if context.timeouts is None:
        return tuning
    default, most = context.timeouts
    return replace(tuning, default_timeout_ms=default, max_timeout_ms=most)


def _start_in_background(
    command: str, full_command: str, timeout_ms: int | None, context: ToolContext
) -> ToolOutcome:
    """Start a command that the session looks after, and return its id."""
    if context.background is None:
        return ToolOutcome.error(NO_BACKGROUND)
    return context.background.start(command, full_command, timeout_ms, context)


def add_command_prefix(command: str, prefix: str) -> str:
    """Return a command with the configured prefix lines."""
    return f"{prefix}\n{command}" if prefix else command


def build_command_result(
    text: str,
    details: CommandDetails,
    output: KeptOutput,
    kind: ErrorKind | None,
    done: ExecResult,
) -> ToolOutcome:
    """Return the result of a command; it is an error where it has a kind.

    What a sandbox says of the command is at its end.
    """
    full = FullOutput(output.text, output.blob, output.path)
    text = "\n\n".join((text, *describe_border(done)))
    is_error, refused = kind is not None, done.refused
    outcome = ToolOutcome((Text(text),), details, is_error, kind=kind, refused=refused)
    return outcome.add_full(full)


def _choose_timeout_ms(seconds: float | None, tuning: ToolSettings) -> int:
    """Return a command's timeout in milliseconds; 0 and None mean the default."""
    if seconds:
        return max(1, round(min(seconds * 1000, tuning.max_timeout_ms)))
    return min(tuning.default_timeout_ms or tuning.max_timeout_ms, tuning.max_timeout_ms)


def redirect_patch_command(arguments: Struct) -> Diversion | ToolOutcome | None:
    """Return the patch that a command for a shell is, for the tool that applies patches.

    So it is judged, and applied, as one; a patch that nobody is asked to apply is an error, and so
    is a command that bash has nothing to run of.
    """
    command: str = getattr(arguments, "command", "")
    lines = [line.strip() for line in command.replace("\\\n", "\n").split("\n")]
    why = ""
    if "\0" in command:
        why = "it holds a zero byte, which no command can. Give the command without it."
    elif not any(lines):
        why = "it is empty. Say what to run."
    elif all(not line or line.startswith("#") for line in lines):
        why = "it holds only a comment. Say what to run."
    if why:
        return ToolOutcome.error(f"'command' parameter is required: {why}", kind="ValidationError")
    if PATCH_MARKER not in command:
        return None
    match find_patch_in_command(command):
        case None:
            return None
        case InvalidPatch() as wrong:
            return ToolOutcome.error(
                f"{wrong}. {apply_patch.UNCHANGED_TEXT}", kind="ValidationError"
            )
    return Diversion(apply_patch.APPLY_PATCH_TOOL, apply_patch.ApplyPatchArguments(input=command))


def build_bash_tool(tuning: ToolSettings = DEFAULT_SETTINGS) -> AgentTool:
    """Return the tool with its settings: command prefix, timeouts, output limits."""
    caps = tuning.caps("bash")
    most, usual = tuning.max_timeout_ms, _choose_timeout_ms(None, tuning)
    limits = f"{most / 1000:g} at most and if absent"
    if most != usual:
        limits = f"{most / 1000:g} at most, {usual / 1000:g} if absent"
    form = "each by itself" if tuning.bash_output == "split" else "as they came"
    return AgentTool(
        name="bash",
        description=(
            "Run a command in bash, in the working directory. Returns standard output and error"
            f" {form}; of long output the last {caps.max_lines} lines or"
            f" {format_limit(caps.max_bytes)}, with the path of the whole. Nothing can be typed"
            f" into it. timeout is in seconds, {limits}."
        ),
        arguments=BashArguments,
        run=partial(run_bash, tuning=tuning),
        stopped=STOPPED,
        divert=redirect_patch_command,
    )


MAX_SHELL_CHARS = 50_000
"""What can be shown at most: half of it from each end is always in memory."""
SHELL_TIMEOUT_MS = 10_000


class ShellArguments(Struct, frozen=True):
    """What to run."""

    command: Annotated[str, Meta(description="Command for bash")]
    timeout_ms: Annotated[int, Meta(ge=1, description="Milliseconds until it is ended")] | None = (
        None
    )
    description: Annotated[str, Meta(description="What the command does, for people")] = ""
    run_in_background: Annotated[bool, Meta(description=_BACKGROUND_HELP)] = False


async def run_shell(
    arguments: ShellArguments,
    context: ToolContext,
    *,
    default_ms: int,
    limits: OutputLimits,
    tuning: ToolSettings = DEFAULT_SETTINGS,
) -> ToolOutcome:
    """Run the command and return its output, exit code and duration."""
    tuning = _apply_timeouts(tuning, context)
    timeout = arguments.timeout_ms or tuning.default_timeout_ms or default_ms
    timeout_ms = min(timeout, tuning.max_timeout_ms)
    command = add_command_prefix(arguments.command, tuning.command_prefix)
    if arguments.run_in_background:
        limit_ms = timeout_ms if arguments.timeout_ms else None
        return _start_in_background(arguments.command, command, limit_ms, context)
    finished = await execute_command(command, timeout_ms, context)
    done, text = finished.done, finished.text.removesuffix("\n")
    chars = finished.total_chars - finished.ends_a_line
    limited = limit_joined_ends(finished.head, text, chars, finished.total_lines, limits)
    output = await finished.settle(cut=limited != text)
    facts = (f"exit code {done.exit_code}", f"{done.duration_ms} ms", output.location)
    late = None
    if done.timed_out:
        late = (
            f"[ERROR: Command timed out after {timeout_ms}ms. Partial output is shown above.\n"
            "You can retry with a longer timeout by setting the timeout_ms parameter.]"
        )
    parts = (limited.rstrip("\n"), f"[{', '.join(filter(None, facts))}]", late)
    details = CommandDetails(arguments.command, done.exit_code, done.duration_ms, limited != text)
    _, kind = classify_ending(done, late)
    text = "\n\n".join(filter(None, parts))
    return build_command_result(text, details, output, kind, done)


def build_shell_tool(
    default_ms: int = SHELL_TIMEOUT_MS,
    limits: OutputLimits = FAMILY_LIMITS["shell"],
    tuning: ToolSettings = DEFAULT_SETTINGS,
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
