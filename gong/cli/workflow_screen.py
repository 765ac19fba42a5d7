"""What `gong workflow` shows while a workflow runs: lines, JSON, or a picture in a terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from tape.cli.streams import mark_control
from tape.cli.terminal import print_lines
from tape.clock import read_clock

from ..workflow.picture import draw_picture, estimate_time_left
from ..workflow.report import format_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..workflow.engine import WorkflowEngine
    from ..workflow.record import WorkflowEvent

_FRAME_SECONDS = 0.5


class WorkflowScreen:
    """Shows a workflow that runs: as lines, as lines of JSON, or as a picture in a terminal.

    The picture is drawn again in its place twice a second. What is no state of a task, such as a
    message between tasks, is printed above it.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._has_picture = (
            not as_json and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        )
        self._engine: WorkflowEngine | None = None
        self._began = read_clock()
        self._drawn = 0
        self._size = (0, 0)

    def tell(self, event: WorkflowEvent) -> None:
        """Show an event."""
        if self._as_json:
            print_lines([msgspec.json.encode(event).decode()])
            if event.event == "task" and self._engine is not None:
                print_lines([msgspec.json.encode(self._build_progress(self._engine)).decode()])
        elif self._has_picture and event.event in {"task", "review"}:
            pass  # the picture shows it
        elif line := format_event(event):
            self.print_above(line)
        sys.stdout.flush()

    def print_above(self, line: str) -> None:
        """Print a line above the picture."""
        if self._drawn:
            sys.stdout.write(mark_control(f"\r\x1b[{self._drawn}A\x1b[J"))
            self._drawn = 0
        print_lines([line])
        self._draw()

    @asynccontextmanager
    async def follow(self, engine: WorkflowEngine) -> AsyncGenerator[None]:
        """Show how an engine's workflow stands while the block runs."""
        self._engine = engine
        drawing = asyncio.create_task(self._keep_drawing())
        try:
            yield
        finally:
            drawing.cancel()
            self._draw()
            self._drawn = 0

    async def _keep_drawing(self) -> None:
        while self._has_picture:
            self._draw()
            await asyncio.sleep(_FRAME_SECONDS)

    def _draw(self) -> None:
        if not self._has_picture or self._engine is None:
            return
        size = shutil.get_terminal_size()
        if size != self._size:
            self._size, self._drawn = size, 0  # lines were wrapped anew: begin below them
        lines = draw_picture(
            self._engine.workflow,
            self._engine.describe_at_work(),
            read_clock(),
            self._began,
            size.columns - 1,
            size.lines - 1,
        )
        erase = mark_control("\x1b[K")
        up = mark_control(f"\r\x1b[{self._drawn}A") if self._drawn else ""
        sys.stdout.write(up + "".join(f"{line}{erase}\n" for line in lines))
        sys.stdout.write(mark_control("\x1b[J"))
        sys.stdout.flush()
        self._drawn = len(lines)

    def _build_progress(self, engine: WorkflowEngine) -> dict[str, Any]:
        """Return what the picture shows, for programs; it is on no tape."""
        workflow, now = engine.workflow, read_clock()
        return {
            "event": "progress",
            "completed": sum(state.status == "completed" for state in workflow.states.values()),
            "tasks": len(workflow.states),
            "at_work": engine.describe_at_work(),
            "cost": workflow.cost,
            "seconds": (now - self._began) / 1e6,
            "seconds_left": estimate_time_left(workflow, now),
        }
