r"""Events → lines for the scrollback, and the few lines that still change; pure.

A returned line is finished and never changes; `Screen.live` returns the unfinished ones. No line
contains a control character, whatever its source. The unfinished part of a screen:

    event                        `_block`, `_tail`              `_running`      returned
    ---------------------------  -----------------------------  --------------  ----------------
    MessageUpdate "so\nit"       text 0, "it"                                   "so"
    MessageUpdate, other block   the new block, its last line                   "it"
    MessageEnd                   none                                           the last line
    ToolExecutionStart                                          + the call
    ToolExecutionEnd                                            – the call      heading, result
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from tape.model.entries import ToolCall, join_texts, select_tool_calls
from tape.text import measure_width, shorten_to_width

from ..agent import events
from .lines import (
    INDENT,
    StyledLine,
    StyledPart,
    clip_line,
    escape_text,
    format_seconds,
    join_parts,
    render_remark,
    wrap_parts,
)
from .markdown import MarkdownStream
from .notices import render_notice
from .tool_cards import describe_call, render_result, split_output

THOUGHT_ROWS = 6
"""Rows shown of what the model thinks."""
_THOUGHT_CHARS = 2_000
OUTPUT_ROWS = 3
"""Rows shown of a running tool's output."""
_OUTPUT_CHARS = 4_000
_EXPECTED_STOPS = {"stop", "tool_calls"}


@dataclass(slots=True)
class _Thought:
    """What the model thinks, until it says something."""

    text: str = ""
    begun: str = ""
    """Times of the first and the last piece, as in events; empty if unknown."""
    ended: str = ""
    shown: int = 0
    """How many characters are in the scrollback."""

    def describe(self) -> str:
        """Return the thought in one line."""
        if not self.begun or not self.ended:
            return "thought"
        took = datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.begun)
        return f"thought for {format_seconds(took.total_seconds())}"


def render_thought(text: str, columns: int) -> list[StyledLine]:
    """Return thinking as lines, without empty ones at the ends."""
    lines = escape_text(text).strip("\n").split("\n") if text.strip() else []
    rows = [row for line in lines for row in wrap_parts([StyledPart(line)], columns)]
    return [join_parts(row, "thinking") for row in rows]


class Screen:
    """The state of the display: the unfinished block of the answer, and the running tools.

    `is_kept` says whether the session can be continued after its end.
    """

    def __init__(self, *, is_kept: bool = True) -> None:
        self._is_kept = is_kept
        self._block: tuple[str, int] | None = None
        self._text = MarkdownStream()
        self._thought = _Thought()
        self._last_thought = ""
        self.shows_thinking = False
        """Whether thinking is shown in full, not in one line."""
        self._above = ""
        self._titles: dict[str, str] = {}
        self._running: dict[str, str] = {}
        self._output = ""
        self._saying = ""

    @property
    def doing(self) -> str:
        """The current activity in a word or two; empty while waiting for the model."""
        return ", ".join(dict.fromkeys(self._running.values())) or self._saying

    def prompt(self, text: str) -> list[StyledLine]:
        """Return the lines of a user's prompt."""
        first, *rest = escape_text(text).split("\n")
        lines = [
            StyledLine(f"> {first}", "you"),
            *(StyledLine(INDENT + line, "you") for line in rest),
        ]
        return self._space_lines("you", lines)

    def reply(self, text: str, *, failed: bool) -> list[StyledLine]:
        """Return the lines of a command's reply."""
        style = "error" if failed else "note"
        return self._space_lines(
            "reply", [StyledLine(line, style) for line in escape_text(text).split("\n")]
        )

    def clear_run(self) -> None:
        """Clear the current activity."""
        self._titles.clear()
        self._running.clear()
        self._output = self._saying = ""

    def remark(self, text: str, style: str = "note") -> list[StyledLine]:
        """Return a message of gong, without an empty line before it."""
        self._above = "remark"
        return [render_remark(text, style)]

    def show(self, event: events.Event, columns: int) -> list[StyledLine]:  # noqa: C901, PLR0911, PLR0912 (a case each)
        """Process an event; return the lines it finished, for a screen of `columns`."""
        match event:
            case events.MessageUpdate():
                return self._take_update(event, columns)
            case events.MessageEnd():
                return self._finish_message(event, columns)
            case events.ToolExecutionStart():
                self._running[event.call_id] = event.name
                return []
            case events.ToolExecutionUpdate():
                self._output = (self._output + event.output)[-_OUTPUT_CHARS:]
                return []
            case events.ToolExecutionEnd():
                return self._finish_tool(event, columns)
            case events.RunEnd():
                lines = self._finish_block(columns)
                self.clear_run()
                return [*lines, *(self.remark("stopped") if event.stop_reason == "aborted" else [])]
            case events.MessageStart():
                self._saying = ""
                return []
            case events.CompactionStart():
                self._saying = "summarising"
                return []
            case (
                events.SessionStart()
                | events.SessionEnd()
                | events.UserInput()
                | events.RunStart()
                | events.TurnStart()
                | events.TurnEnd()
                | events.ModelSelect()
                | events.ModeSelect()
                | events.MessageQueued()
                | events.MessageWithdrawn()
                | events.AgentState()
                | events.TodosChanged()
            ):
                return []
            case events.ApprovalRequested():
                return [*self._finish_block(columns), *self._render_question(event)]
            case events.QuestionAsked() | events.PlanProposed():
                return [*self._finish_block(columns), *self._render_asked(event)]
            case events.SteeringInjected():
                steered = StyledLine(shorten_to_width(f"> {event.text}", columns), "you")
                return [*self._finish_block(columns), *self._space_lines("you", [steered])]
            case _:
                if not isinstance(event, events.Warn):
                    self._saying = ""  # a warning may arrive during a summary, which continues
                lines = self._finish_block(columns)
                self._above = "remark"
                return [*lines, render_notice(event, is_kept=self._is_kept)]

    def live(self, columns: int) -> list[StyledLine]:
        """Return the unfinished lines: of the answer, or of the running tools."""
        if self._running:
            titles = [self._render_heading(call, columns) for call in self._running]
            rows = split_output(self._output)[-OUTPUT_ROWS:] if self._output else []
            return [
                *titles,
                *(StyledLine(clip_line(INDENT + row, columns), "result") for row in rows),
            ]
        if self._block is None:
            return []
        if self._block[0] == "text":
            return self._text.render_tail(columns)
        rest = self._thought.text[self._thought.shown :][-_THOUGHT_CHARS:]
        return render_thought(rest, columns)[-THOUGHT_ROWS:]

    def _take_update(self, event: events.MessageUpdate, columns: int) -> list[StyledLine]:
        """Add text to a block; return the lines it finished, and the rest of the block before."""
        before: list[StyledLine] = []
        if (event.part, event.block) != self._block:
            before = self._finish_block(columns)
            self._block = (event.part, event.block)
        match event.part:
            case "tool_call":
                self._saying = f"calling {event.name}" if event.name else self._saying
                return before
            case "thinking":
                self._saying = "thinking"
                return [*before, *self._take_thought(event, columns)]
            case _:
                self._saying = "answering"
                made = self._text.feed(event.delta, columns)
                return [*before, *self._space_lines(self._name_block(), made)]

    def _take_thought(self, event: events.MessageUpdate, columns: int) -> list[StyledLine]:
        """Add to the thought; return its finished lines where thinking is shown in full."""
        if not self._thought.text:
            self._thought = _Thought(begun=event.time)
        self._thought.text += event.delta
        self._thought.ended = event.time
        if not self.shows_thinking:
            return []
        text = self._thought.text
        end = text.rfind("\n") + 1
        start, self._thought.shown = self._thought.shown, max(end, self._thought.shown)
        lines = render_thought(text[start:end], columns) if end > start else []
        return self._space_lines(self._name_block(), lines)

    def _finish_block(self, columns: int) -> list[StyledLine]:
        """Return the last lines of the open block, and close it."""
        kind, name = self._block[0] if self._block else "", self._name_block()
        self._block = None
        if kind == "text":
            text, self._text = self._text, MarkdownStream()
            return self._space_lines(name, text.finish(columns))
        if kind == "thinking" and self._thought.text:
            thought, self._thought = self._thought, _Thought()
            self._last_thought = thought.text
            if self.shows_thinking:
                return self._space_lines(
                    name, render_thought(thought.text[thought.shown :], columns)
                )
            return self._space_lines(name, [StyledLine(thought.describe(), "thinking")])
        return []

    def switch_thinking(self, columns: int) -> list[StyledLine]:
        """Show thinking in full from now on, or in one line; return the last thought in full."""
        self.shows_thinking = not self.shows_thinking
        if not self.shows_thinking:
            return self.remark("thinking is shown in one line")
        lines = self.remark("thinking is shown in full")
        self._thought.shown = 0
        return [*lines, *render_thought(self._last_thought, columns)]

    def _name_block(self) -> str:
        return "" if self._block is None else f"{self._block[0]} {self._block[1]}"

    def _space_lines(self, kind: str, lines: list[StyledLine]) -> list[StyledLine]:
        """Return the lines, with an empty line first if another kind of line is above."""
        if not lines or self._above == kind:
            return lines
        self._above = kind
        return [StyledLine(""), *lines]

    def _finish_message(self, event: events.MessageEnd, columns: int) -> list[StyledLine]:
        lines = self._finish_block(columns)
        self._titles |= {call.id: describe_call(call) for call in select_tool_calls(event.content)}
        self._saying = ""
        if event.stop_reason not in _EXPECTED_STOPS:
            lines += self.remark(f"the answer ended early: {event.stop_reason}")
        return lines

    def _render_heading(self, call_id: str, columns: int, took: str = "") -> StyledLine:
        words = self._titles.get(call_id) or self._running[call_id]
        return StyledLine(
            f"● {shorten_to_width(words, max(columns - 2 - measure_width(took), 8))}{took}", "call"
        )

    def _finish_tool(self, event: events.ToolExecutionEnd, columns: int) -> list[StyledLine]:
        self._running.setdefault(event.call_id, event.name)
        took = f" · {format_seconds(event.duration_ms / 1000)}" if event.duration_ms > 1000 else ""  # noqa: PLR2004
        heading = self._render_heading(event.call_id, columns, took)
        del self._running[event.call_id]
        self._output = ""
        said = render_result(join_texts(event.content), columns, is_error=event.is_error)
        return self._space_lines("tool", [heading, *said])

    def _render_question(self, event: events.ApprovalRequested) -> list[StyledLine]:
        """Return what is asked about a call: all of it, why, and the keys that answer."""
        call = ToolCall(event.call_id, event.name, event.args)
        given = msgspec.json.decode(bytes(event.args) or b"{}")
        command = given.get("command") if isinstance(given, dict) else None
        shown = command if isinstance(command, str) else describe_call(call)
        rows = escape_text(f"{event.name}: {shown}").split("\n")
        why = f"{'DANGEROUS: ' if event.dangerous else ''}{event.why}"
        keys = "1 once"
        if event.offered:
            keys += f" · 2 this session · 3 always: {', '.join(event.offered)}"
        return [
            *self._space_lines("tool", [StyledLine(f"? {rows[0]}", "call")]),
            *(StyledLine(f"  {row}", "call") for row in rows[1:]),
            StyledLine(f"  {escape_text(why)}", "error" if event.dangerous else "note"),
            StyledLine(f"  {escape_text(keys)} · 4 no (a reason, then Enter)", "note"),
        ]

    def _render_asked(self, event: events.QuestionAsked | events.PlanProposed) -> list[StyledLine]:
        """Return a plan, or the questions that nobody answers; `render_choices` has the others."""
        if isinstance(event, events.PlanProposed):
            rows = ["? plan", *escape_text(event.plan).split("\n")]
            return self._space_lines("tool", [StyledLine(row, "call") for row in rows])
        if event.waits:
            return []
        asked = "; ".join(one.question for one in event.questions)
        return self.remark(f"nobody is asked: {asked}")
