"""Events → lines for the scrollback, and the few that still change: what a run looks like, pure.

A line given out is finished and never changes again; what is not finished yet stands in `live`.
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
"""Rows of an unfinished line that are shown: a paragraph may be one line."""
OUTPUT_ROWS = 3
"""Rows of a running tool's output that are shown."""
_OUTPUT_CHARS = 4_000
_EXPECTED_STOPS = {"stop", "tool_calls"}


def title(call: ToolCall) -> str:
    """Return a call in a few words: what it runs, or what it works on."""
    if call.args_text is not None:
        return f"{call.name} {call.args_text}"
    arguments = msgspec.json.decode(call.args) if call.args else {}
    if call.name == "bash" and "command" in arguments:
        return f"$ {arguments['command']}"
    if "path" in arguments:
        return f"{call.name} {arguments['path']}"
    return f"{call.name} {bytes(call.args).decode() if arguments else ''}"


def compacted(event: events.CompactionEnd) -> str:
    """Return what a compaction came to, in one line."""
    by = event.by or "rules"
    return (
        f"{event.kind}: {_entries(event.covered)} a summary by {by} now; "
        f"about {event.before:,} → {event.after:,} tokens"
    )


def _entries(count: int) -> str:
    return f"{counted(count, 'entry', 'entries')} {'is' if count == 1 else 'are'}"


def _mended(event: events.Repaired) -> str:
    """Return what a repair did, in one line; what it did not do is not told."""
    made = [f"{counted(event.injected, 'result')} made up"] if event.injected else []
    left = [f"{counted(event.dropped, 'entry', 'entries')} left out"] if event.dropped else []
    counts = ", ".join([*made, *left])
    return f"history was mended{f' ({counts})' if counts else ''}: {event.why}"


class Screen:
    """What has been shown of a conversation, and what is being said or run right now."""

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
        """What is going on, in a word or two; empty while the model is awaited."""
        return ", ".join(dict.fromkeys(self._running.values())) or self._saying

    def prompt(self, text: str) -> list[Line]:
        """Return what a person said."""
        first, *rest = shown(text).split("\n")
        lines = [Line(f"> {first}", "you"), *(Line(INDENT + line, "you") for line in rest)]
        return self._spaced("you", lines)

    def reply(self, text: str, *, failed: bool) -> list[Line]:
        """Return what a command answered."""
        style = "error" if failed else "note"
        return self._spaced("reply", [Line(line, style) for line in shown(text).split("\n")])

    def rest(self) -> None:
        """Forget what was going on: nothing is any more."""
        self._titles.clear()
        self._running.clear()
        self._output = self._saying = ""

    def remark(self, text: str, style: str = "note") -> list[Line]:
        """Return words of ours right under what stands above."""
        self._above = "remark"
        return [remark(text, style)]

    def show(self, event: events.Event, columns: int) -> list[Line]:  # noqa: C901, PLR0911 (a case each)
        """Take an event; return the lines it finished, fit for so many columns."""
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
                self._saying = "summing up"
                return []
            case events.AgentStart() | events.TurnStart() | events.TurnEnd():
                return []
            case events.SteeringInjected():
                steered = Line(fitted(f"> {event.text}", columns), "you")
                return [*self._finished_block(), *self._spaced("you", [steered])]
            case _:
                if not isinstance(event, events.Warn):
                    self._saying = ""  # a warning may come amid a summary, which goes on
                return [*self._finished_block(), *self._told(event)]

    def live(self, columns: int) -> list[Line]:
        """Return what is not finished yet: the line being said, or the tools that run."""
        if self._running:
            titles = [self._heading(call, columns) for call in self._running]
            rows = output_lines(self._output)[-OUTPUT_ROWS:] if self._output else []
            return [*titles, *(Line(clipped(INDENT + row, columns), "result") for row in rows)]
        if self._block is None or not self._tail:
            return []
        rows = last_rows(shown(self._tail), columns, TAIL_ROWS)
        return [Line(row, self._style()) for row in rows]

    def _more(self, event: events.MessageUpdate) -> list[Line]:
        """Take more of a block; return the lines it finished, and those of the one before."""
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
        """Return the lines with an empty one before them where something else stands above."""
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
        """Return the one line of an event that is only told."""
        match event:
            case events.Repaired():
                said = _mended(event)
            case events.CompactionEnd():
                said = f"{compacted(event)} · /undo takes it back"
            case events.ResultsPutAside():
                said = "older tool results are put aside: the window is filling up"
            case events.Named():
                said = f"this session is called {event.title!r} now"
            case events.CostLimit():
                spent = f"{money(event.spent)} of {money(event.limit)}"
                said = f"stopped at the limit of money: {spent} spent"
            case events.TurnLimit():
                calls = counted(event.turns, "model call")
                said = f"stopped at the limit of {calls}; say more to go on"
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
