"""Events → lines for the scrollback, and the few lines that still change; pure.

A returned line is finished and never changes; `live` returns the unfinished ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from tape.blocks import text_of, tool_calls
from tape.render import fitted, width

from ..agent import events
from ..context.costs import money
from .lines import (
    INDENT,
    Line,
    clipped,
    counted,
    last_rows,
    output_lines,
    remark,
    result_lines,
    seconds,
    shown,
)

if TYPE_CHECKING:
    from tape.blocks import ToolCall

    _Told = (
        events.Repaired
        | events.CompactionEnd
        | events.ResultsPutAside
        | events.Named
        | events.CostLimit
        | events.TurnLimit
        | events.Warn
        | events.Failure
    )

TAIL_ROWS = 6
"""Rows shown of an unfinished line, which may be a whole paragraph."""
OUTPUT_ROWS = 3
"""Rows shown of a running tool's output."""
_OUTPUT_CHARS = 4_000
_EXPECTED_STOPS = {"stop", "tool_calls"}


def title(call: ToolCall) -> str:
    """Return a short text for a call: its command, path, or arguments."""
    if call.args_text is not None:
        return f"{call.name} {call.args_text}"
    arguments = msgspec.json.decode(call.args) if call.args else {}
    if call.name == "bash" and "command" in arguments:
        return f"$ {arguments['command']}"
    if "path" in arguments:
        return f"{call.name} {arguments['path']}"
    return f"{call.name} {bytes(call.args).decode() if arguments else ''}"


def compacted(event: events.CompactionEnd) -> str:
    """Return the result of a compaction or handoff in one line."""
    by = event.by or "rules"
    head = "Compacted" if event.kind == "compaction" else f"{event.kind.capitalize()}: compacted"
    return (
        f"{head} {_entries(event.covered)} "
        f"({event.before:,} → {event.after:,} tokens, summary by {by})"
    )


def _entries(count: int) -> str:
    return counted(count, "entry", "entries")


def _mended(event: events.Repaired) -> str:
    """Return what a repair did, in one line; counts of zero are left out."""
    made = (
        [f"{counted(event.injected, 'interrupted tool call')} got a placeholder result"]
        if event.injected
        else []
    )
    left = [f"{counted(event.dropped, 'entry', 'entries')} left out"] if event.dropped else []
    counts = ", ".join([*made, *left])
    return f"History repaired{f': {counts}' if counts else ''} ({event.why})"


class Screen:
    """The state of the display: the unfinished block of the answer, and the running tools."""

    def __init__(self) -> None:
        self._block: tuple[str, int] | None = None
        self._tail = ""
        self._above = ""
        self._titles: dict[str, str] = {}
        self._running: dict[str, str] = {}
        self._output = ""
        self._saying = ""

    @property
    def doing(self) -> str:
        """The current activity in a word or two; empty while waiting for the model."""
        return ", ".join(dict.fromkeys(self._running.values())) or self._saying

    def prompt(self, text: str) -> list[Line]:
        """Return the lines of a user's prompt."""
        first, *rest = shown(text).split("\n")
        lines = [Line(f"> {first}", "you"), *(Line(INDENT + line, "you") for line in rest)]
        return self._spaced("you", lines)

    def reply(self, text: str, *, failed: bool) -> list[Line]:
        """Return the lines of a command's reply."""
        style = "error" if failed else "note"
        return self._spaced("reply", [Line(line, style) for line in shown(text).split("\n")])

    def rest(self) -> None:
        """Clear the current activity."""
        self._titles.clear()
        self._running.clear()
        self._output = self._saying = ""

    def remark(self, text: str, style: str = "note") -> list[Line]:
        """Return a message of gong, without an empty line before it."""
        self._above = "remark"
        return [remark(text, style)]

    def show(self, event: events.Event, columns: int) -> list[Line]:  # noqa: C901, PLR0911 (a case each)
        """Process an event; return the lines it finished, for a screen of `columns`."""
        match event:
            case events.MessageUpdate():
                return self._more(event)
            case events.MessageEnd():
                return self._said(event)
            case events.ToolExecutionStart():
                self._running[event.call_id] = event.name
                return []
            case events.ToolExecutionUpdate():
                self._output = (self._output + event.output)[-_OUTPUT_CHARS:]
                return []
            case events.ToolExecutionEnd():
                return self._ran(event, columns)
            case events.AgentEnd():
                return self._ended(event)
            case events.MessageStart():
                self._saying = ""
                return []
            case events.CompactionStart():
                self._saying = "summarising"
                return []
            case events.AgentStart() | events.TurnStart() | events.TurnEnd():
                return []
            case events.SteeringInjected():
                steered = Line(fitted(f"> {event.text}", columns), "you")
                return [*self._finished_block(), *self._spaced("you", [steered])]
            case _:
                if not isinstance(event, events.Warn):
                    self._saying = ""  # a warning may arrive during a summary, which continues
                return [*self._finished_block(), *self._told(event)]

    def live(self, columns: int) -> list[Line]:
        """Return the unfinished lines: of the answer, or of the running tools."""
        if self._running:
            titles = [self._heading(call, columns) for call in self._running]
            rows = output_lines(self._output)[-OUTPUT_ROWS:] if self._output else []
            return [*titles, *(Line(clipped(INDENT + row, columns), "result") for row in rows)]
        if self._block is None or not self._tail:
            return []
        rows = last_rows(shown(self._tail), columns, TAIL_ROWS)
        return [Line(row, self._style()) for row in rows]

    def _more(self, event: events.MessageUpdate) -> list[Line]:
        """Add text to a block; return the lines it finished, and the rest of the block before."""
        before = []
        if (event.kind, event.block) != self._block:
            before = self._finished_block()
            self._block = (event.kind, event.block)
        if event.kind == "tool_call":
            self._saying = f"calling {event.name}" if event.name else self._saying
            return before
        self._saying = "thinking" if event.kind == "thinking" else "answering"
        *whole, self._tail = (self._tail + event.delta).split("\n")
        return [*before, *self._spoken(whole)]

    def _finished_block(self) -> list[Line]:
        lines = self._spoken([self._tail] if self._tail else [])
        self._block, self._tail = None, ""
        return lines

    def _spoken(self, whole: list[str]) -> list[Line]:
        if self._above != self._kind():
            whole = _without_blank_start(whole)
        return self._spaced(self._kind(), [Line(shown(line), self._style()) for line in whole])

    def _kind(self) -> str:
        return "" if self._block is None else f"{self._block[0]} {self._block[1]}"

    def _style(self) -> str:
        return "thinking" if self._block is not None and self._block[0] == "thinking" else ""

    def _spaced(self, kind: str, lines: list[Line]) -> list[Line]:
        """Return the lines, with an empty line first if another kind of line is above."""
        if not lines or self._above == kind:
            return lines
        self._above = kind
        return [Line(""), *lines]

    def _said(self, event: events.MessageEnd) -> list[Line]:
        lines = self._finished_block()
        self._titles |= {call.id: title(call) for call in tool_calls(event.content)}
        self._saying = ""
        if event.stop_reason not in _EXPECTED_STOPS:
            lines += self.remark(f"the answer ended early: {event.stop_reason}")
        return lines

    def _heading(self, call_id: str, columns: int, took: str = "") -> Line:
        words = self._titles.get(call_id) or self._running[call_id]
        return Line(f"● {fitted(words, max(columns - 2 - width(took), 8))}{took}", "call")

    def _ran(self, event: events.ToolExecutionEnd, columns: int) -> list[Line]:
        self._running.setdefault(event.call_id, event.name)
        took = f" · {seconds(event.duration_ms / 1000)}" if event.duration_ms > 1000 else ""  # noqa: PLR2004
        heading = self._heading(event.call_id, columns, took)
        del self._running[event.call_id]
        self._output = ""
        said = result_lines(text_of(event.content), columns, is_error=event.is_error)
        return self._spaced("tool", [heading, *said])

    def _ended(self, event: events.AgentEnd) -> list[Line]:
        lines = self._finished_block()
        self.rest()
        return [*lines, *self.remark("stopped")] if event.stop_reason == "aborted" else lines

    def _told(self, event: _Told) -> list[Line]:
        """Return the line of an event that is shown as one remark."""
        match event:
            case events.Repaired():
                said = _mended(event)
            case events.CompactionEnd():
                said = f"{compacted(event)} · /undo reverts this"
            case events.ResultsPutAside():
                said = "older tool results become placeholders: the context window is filling up"
            case events.Named():
                said = f"session title: {event.title!r}"
            case events.CostLimit():
                spent = f"{money(event.spent)} of {money(event.limit)}"
                said = f"stopped at the max cost: {spent} spent"
            case events.TurnLimit():
                calls = counted(event.turns, "model call")
                said = f"stopped at the limit of {calls}; send a prompt to continue"
            case events.Warn():
                said = event.message
            case events.Failure():
                again = " (trying again may help)" if event.retryable else ""
                return self.remark(f"{event.message}{again}", "error")
            case _:
                assert_never(event)
        return self.remark(said)


def _without_blank_start(lines: list[str]) -> list[str]:
    start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return lines[start:]
