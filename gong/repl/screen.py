"""Events → lines for the scrollback, and the few that still change: what a run looks like, pure.

A line given out is finished and never changes again; what is not finished yet stands in `live`.
No line holds a control character, whoever wrote it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, assert_never

import msgspec

from tape.blocks import text_of, tool_calls
from tape.render import fitted, visible, width

from ..agent import events
from ..context.costs import money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.blocks import ToolCall
RESULT_LINES = 5
TAIL_ROWS = 6
"""Rows of an unfinished line that are shown: a paragraph may be one line."""
OUTPUT_ROWS = 3
"""Rows of a running tool's output that are shown."""
QUEUE_ROWS = 3
_OUTPUT_CHARS = 4_000
_INDENT = "  "
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_EXPECTED_STOPS = {"stop", "tool_calls"}


class Line(NamedTuple):
    """One line without its end; `style` is you, thinking, call, result, note, error or empty."""

    text: str
    style: str = ""


def clipped(text: str, columns: int) -> str:
    """Return one line's beginning in at most so many columns, blanks kept, `…` where it was cut."""
    if width(text) <= columns:
        return text
    return f"{next(_folded(text, max(columns - 1, 1)))}…"


def last_rows(text: str, columns: int, most: int) -> list[str]:
    """Return the last rows a line takes on a screen of so many columns.

    A long beginning is left out in big steps, so that rows stand still while the line grows.
    """
    step = columns * most * 2
    start = max(len(text) - step, 0) // step * step
    return list(_folded(text[start:], columns))[-most:]


def _folded(text: str, columns: int) -> Iterator[str]:
    row, used = "", 0
    for char in text:
        wide = width(char)
        if used + wide > columns:
            yield row
            row, used = "", 0
        row, used = row + char, used + wide
    yield row


def _shown(text: str) -> str:
    return visible(text.removesuffix("\r")).expandtabs(4)


def _output_lines(text: str) -> list[str]:
    """Return a tool's output as lines: colours and the like go, other controls are shown."""
    return _shown(_SEQUENCES.sub("", text).replace("\r\n", "\n")).strip("\n").split("\n")


def seconds(duration: float) -> str:
    """Return a duration for people."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


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


def result_lines(text: str, columns: int, *, is_error: bool) -> list[Line]:
    """Return a result in a few lines: its beginning; of a failure the end, which says why."""
    lines = _output_lines(text)
    rest = len(lines) - RESULT_LINES
    kept = lines[-RESULT_LINES:] if is_error else lines[:RESULT_LINES]
    style = "error" if is_error else "result"
    shown = [Line(clipped(_INDENT + line, columns).rstrip(), style) for line in kept]
    if rest <= 0:
        return shown
    more = f"{_INDENT}… {rest} more line{'' if rest == 1 else 's'}"
    return [Line(more, style), *shown] if is_error else [*shown, Line(more, style)]


def remark(text: str, style: str = "note") -> Line:
    """Return words of ours on one line, whole: the terminal wraps them."""
    return Line(" ".join(visible(text).split()), style)


def queued_lines(words: tuple[str, ...], columns: int) -> list[Line]:
    """Return what waits to be put before the model, at most a few lines of it."""
    shown = [Line(fitted(f"queued: {text}", columns), "note") for text in words[:QUEUE_ROWS]]
    rest = len(words) - QUEUE_ROWS
    return [*shown, Line(f"… {rest} more queued", "note")] if rest > 0 else shown


def compacted(event: events.CompactionEnd) -> str:
    """Return what a compaction came to, in one line."""
    by = event.by or "rules"
    return (
        f"{event.kind}: {event.covered} entries are a summary by {by} now; "
        f"about {event.before:,} → {event.after:,} tokens · /undo takes it back"
    )


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
        first, *rest = _shown(text).split("\n")
        lines = [Line(f"> {first}", "you"), *(Line(_INDENT + line, "you") for line in rest)]
        return self._spaced("you", lines)

    def reply(self, text: str, *, failed: bool) -> list[Line]:
        """Return what a command answered."""
        style = "error" if failed else "note"
        return self._spaced("reply", [Line(line, style) for line in _shown(text).split("\n")])

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
            case events.AgentStart() | events.TurnStart() | events.MessageStart():
                return []
            case events.CompactionStart():
                self._saying = "summing up"
                return []
            case events.TurnEnd():
                return []
            case events.SteeringInjected():
                steered = Line(fitted(f"> {event.text}", columns), "you")
                return [*self._finished_block(), *self._spaced("you", [steered])]
            case _:
                self._saying = ""
                return [*self._finished_block(), _told(event)]

    def live(self, columns: int) -> list[Line]:
        """Return what is not finished yet: the line being said, or the tools that run."""
        if self._running:
            titles = [self._heading(call, columns) for call in self._running]
            rows = _output_lines(self._output)[-OUTPUT_ROWS:] if self._output else []
            return [*titles, *(Line(clipped(_INDENT + row, columns), "result") for row in rows)]
        if self._block is None or not self._tail:
            return []
        rows = last_rows(_shown(self._tail), columns, TAIL_ROWS)
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
        return self._spaced(self._kind(), [Line(_shown(line), self._style()) for line in whole])

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
            lines.append(remark(f"the answer ended early: {event.stop_reason}"))
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
        self._titles.clear()
        self._running.clear()
        self._output = self._saying = ""
        if event.stop_reason == "aborted":
            lines.append(remark("stopped"))
        return lines


def _without_blank_start(lines: list[str]) -> list[str]:
    start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return lines[start:]


def _told(  # noqa: PLR0911 (a case each)
    event: events.Repaired
    | events.CompactionEnd
    | events.ResultsPutAside
    | events.Named
    | events.CostLimit
    | events.TurnLimit
    | events.Warn
    | events.Failure,
) -> Line:
    """Return the one line of an event that is only told."""
    match event:
        case events.Repaired():
            counts = f"{event.injected} results made up, {event.dropped} entries left out"
            return remark(f"history was mended ({counts}): {event.why}")
        case events.CompactionEnd():
            return remark(compacted(event))
        case events.ResultsPutAside():
            return remark("older tool results are put aside: the window is filling up")
        case events.Named():
            return remark(f"this session is called {event.title!r} now")
        case events.CostLimit():
            spent = f"{money(event.spent)} of {money(event.limit)}"
            return remark(f"stopped at the limit of money: {spent} spent")
        case events.TurnLimit():
            return remark(f"stopped at the limit of {event.turns} model calls; say more to go on")
        case events.Warn():
            return remark(event.message)
        case events.Failure():
            again = " (trying again may help)" if event.retryable else ""
            return remark(f"{event.message}{again}", "error")
        case _:
            assert_never(event)
