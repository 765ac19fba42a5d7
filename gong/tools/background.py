"""Commands that run while the model works on, and the tools that read and end them.

    bash(run_in_background) ──▶ running ──▶ ended ──▶ told at the next border of the conversation
                                  │
                kill_shell, the timeout, or the end of the session

A command belongs to its session: it ends with it, also after a crash. `bash_output` returns what
came since it was asked last; of more than MAX_BYTES only the end, with the path of the whole.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from ..tool_settings import MAX_BYTES, MAX_LINES
from .command import classify_ending, describe_border, execute_command
from .tool import NO_BACKGROUND, AgentTool, ToolOutcome, find_no_targets
from .truncation import truncate_tail

if TYPE_CHECKING:
    from .tool import ToolContext


MAX_RUNNING = 4
"""Commands of one session that may run at once."""
_MAX_WAIT_SECONDS = 600.0

CommandStatus = Literal["running", "completed", "failed", "killed", "timed out"]


class BackgroundDetails(Struct, frozen=True):
    """A command in the background, for people and programs."""

    shell_id: str
    command: str
    status: CommandStatus
    exit_code: int | None = None


class BackgroundCommand:
    """One command, from its start to its end."""

    def __init__(self, shell_id: str, command: str) -> None:
        self.shell_id, self.command = shell_id, command
        self.status: CommandStatus = "running"
        self.exit_code: int | None = None
        self.location = ""
        """Where the full output is, in words; known at the end."""
        self.task: asyncio.Task[None] | None = None
        self._started_at = time.monotonic()
        self._seconds = 0.0
        self._unread = ""
        self._left_out = 0
        """Characters that came since the last reading and are not in memory any more."""

    def add_output(self, text: str) -> None:
        """Add what came."""
        self._unread += text
        if over := max(len(self._unread) - 2 * MAX_BYTES, 0):
            self._left_out += over
            self._unread = self._unread[over:]

    def read_output(self) -> str:
        """Return what came since the last reading; of a long text its end."""
        cut = truncate_tail(self._unread, MAX_LINES, MAX_BYTES)
        left_out = self._left_out + len(self._unread) - len(cut.content)
        self._unread, self._left_out = "", 0
        if not left_out:
            return cut.content
        return f"[{left_out} earlier characters are not shown. {self.location}]\n{cut.content}"

    def end(self, status: CommandStatus, exit_code: int | None, location: str = "") -> None:
        """Note how it ended, and where its output is."""
        self.status, self.exit_code, self.location = status, exit_code, location
        self._seconds = time.monotonic() - self._started_at

    def describe_status(self) -> str:
        """Return in a few words whether it runs, or how it ended."""
        if self.status == "running":
            return f"running for {time.monotonic() - self._started_at:.0f} s"
        code = "" if self.exit_code is None else f", exit code {self.exit_code}"
        return f"{self.status}{code}, after {self._seconds:.1f} s"

    async def stop(self) -> None:
        """End all its processes and wait for that."""
        assert self.task is not None, "it was started"
        self.task.cancel()
        await asyncio.wait({self.task})

    @property
    def details(self) -> BackgroundDetails:
        """The facts for programs."""
        return BackgroundDetails(self.shell_id, self.command, self.status, self.exit_code)


class BackgroundCommands:
    """The commands of one session that run in the background."""

    def __init__(self) -> None:
        self._commands: dict[str, BackgroundCommand] = {}
        self._untold: list[BackgroundCommand] = []
        """Those that have ended since the model was told last."""

    @property
    def running(self) -> list[BackgroundCommand]:
        """Those that have not ended, oldest first."""
        return [command for command in self._commands.values() if command.status == "running"]

    def start(
        self, command: str, full_command: str, timeout_ms: int | None, context: ToolContext
    ) -> ToolOutcome:
        """Start a command and return its id at once; an error where too many run already.

        `full_command` is what bash runs: the command after the configured prefix.
        """
        if len(self.running) >= MAX_RUNNING:
            ids = ", ".join(command.shell_id for command in self.running)
            return ToolOutcome.error(
                f"{MAX_RUNNING} commands run in the background already ({ids}), which is the"
                " maximum: wait for one with bash_output, or end one with kill_shell."
            )
        started = BackgroundCommand(f"bg_{len(self._commands) + 1}", command)
        self._commands[started.shell_id] = started
        quiet = replace(context, update=started.add_output)
        started.task = asyncio.create_task(self._follow(started, full_command, timeout_ms, quiet))
        return ToolOutcome.from_text(
            f"Started in the background as {started.shell_id}. You get a message when it ends;"
            " bash_output shows what it has written, kill_shell ends it.",
            started.details,
        )

    async def read(self, shell_id: str, seconds: float) -> ToolOutcome:
        """Return what a command wrote since the last reading, and whether it still runs.

        Waits for its end, `seconds` at most.
        """
        running = self._commands.get(shell_id)
        if running is None:
            return self._build_unknown_error(shell_id)
        if seconds and running.task is not None and running.status == "running":
            await asyncio.wait({running.task}, timeout=seconds)
        if running in self._untold:
            self._untold.remove(running)
        text = running.read_output().rstrip("\n") or "(no new output)"
        return ToolOutcome.from_text(f"{text}\n\n[{running.describe_status()}]", running.details)

    async def kill(self, shell_id: str) -> ToolOutcome:
        """End all processes of a command and wait for that."""
        running = self._commands.get(shell_id)
        if running is None:
            return self._build_unknown_error(shell_id)
        if running.status != "running":
            text = f"{running.shell_id} had ended already: {running.describe_status()}."
            return ToolOutcome.from_text(text, running.details)
        await running.stop()
        return ToolOutcome.from_text(f"{running.shell_id} is ended.", running.details)

    def take_ended(self) -> list[BackgroundCommand]:
        """Return the commands that have ended since the last use, which the model is to learn."""
        ended, self._untold = self._untold, []
        return ended

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(command.stop() for command in self.running))

    def _build_unknown_error(self, shell_id: str) -> ToolOutcome:
        there = ", ".join(command.shell_id for command in self.running) or "none"
        return ToolOutcome.error(
            f"No background command {shell_id} in this session; running: {there}."
            " A command ends with the session that started it.",
            kind="ValidationError",
        )

    async def _follow(
        self, running: BackgroundCommand, command: str, timeout_ms: int | None, context: ToolContext
    ) -> None:
        try:
            finished = await execute_command(command, timeout_ms, context)
        except asyncio.CancelledError:
            running.end("killed", None)
            raise
        except Exception as error:  # noqa: BLE001 - it failed as a tool would; the model is told
            running.add_output(str(error) or type(error).__name__)
            running.end("failed", None)
        else:
            output = await finished.settle(cut=finished.done.total_bytes > MAX_BYTES)
            done = finished.done
            for remark in describe_border(done):
                running.add_output(f"\n{remark}")
            _, kind = classify_ending(done, "late" if done.timed_out else None)
            status: CommandStatus = "failed" if kind else "completed"
            running.end("timed out" if done.timed_out else status, done.exit_code, output.location)
        self._untold.append(running)


def describe_ended(command: BackgroundCommand) -> str:
    """Return the report for the model of a command that has ended."""
    shown_command = " ".join(command.command.split())[:200]
    return (
        f"The background command {command.shell_id} ({shown_command}) has ended: "
        f"{command.describe_status()}. bash_output shows its output."
    )


class BashOutputArguments(Struct, frozen=True):
    """Which command to read."""

    shell_id: Annotated[str, Meta(description="Id of a background command, such as bg_1")]
    wait: Annotated[
        float, Meta(ge=0, le=_MAX_WAIT_SECONDS, description="Seconds to wait for its end")
    ] = 0


async def run_bash_output(arguments: BashOutputArguments, context: ToolContext) -> ToolOutcome:
    """Return what a command wrote since the last reading, and whether it still runs."""
    if context.background is None:
        return ToolOutcome.error(NO_BACKGROUND)
    return await context.background.read(arguments.shell_id, arguments.wait)


class KillShellArguments(Struct, frozen=True):
    """Which command to end."""

    shell_id: Annotated[str, Meta(description="Id of a background command, such as bg_1")]


async def run_kill_shell(arguments: KillShellArguments, context: ToolContext) -> ToolOutcome:
    """End a command with all its processes."""
    if context.background is None:
        return ToolOutcome.error(NO_BACKGROUND)
    return await context.background.kill(arguments.shell_id)


BASH_OUTPUT_TOOL = AgentTool(
    name="bash_output",
    description=(
        "Read what a command in the background has written since you read it last, and whether it"
        " still runs. With wait, first wait for its end, so many seconds at most."
    ),
    arguments=BashOutputArguments,
    run=run_bash_output,
    find_targets=find_no_targets,
)

KILL_SHELL_TOOL = AgentTool(
    name="kill_shell",
    description="End a command that runs in the background, with all its processes.",
    arguments=KillShellArguments,
    run=run_kill_shell,
    find_targets=find_no_targets,
)

BACKGROUND_TOOLS = (BASH_OUTPUT_TOOL, KILL_SHELL_TOOL)
"""Both of them: offered where commands can run in the background."""
