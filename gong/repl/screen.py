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

from itertools import dropwhile

import msgspec

from tape.model.entries import ToolCall, join_texts, select_tool_calls
from tape.text import measure_width, shorten_to_width

from ..agent import events
from .lines import (
    INDENT,
    StyledLine,
    clip_line,
    escape_text,
    format_seconds,
    render_remark,
    wrap_last_rows,
)
from .notices import render_notice
from .tool_cards import describe_call, render_result, split_output

TAIL_ROWS = 6
"""Rows shown of an unfinished line, which may be a whole paragraph."""
OUTPUT_ROWS = 3
"""Rows shown of a running tool's output."""
_OUTPUT_CHARS = 4_000
_EXPECTED_STOPS = {"stop", "tool_calls"}


class Screen:
    """The state of the display: the unfinished block of the answer, and the running tools.

    `is_kept` says whether the session can be continued after its end.
    """

    def __init__(self, *, is_kept: bool = True) -> None:
        self._is_kept = is_kept
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
                return self._take_update(event)
            case events.MessageEnd():
                return self._finish_message(event)
            case events.ToolExecutionStart():
                self._running[event.call_id] = event.name
                return []
            case events.ToolExecutionUpdate():
                self._output = (self._output + event.output)[-_OUTPUT_CHARS:]
                return []
            case events.ToolExecutionEnd():
                return self._finish_tool(event, columns)
            case events.RunEnd():
                lines = self._finish_block()
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
                return [*self._finish_block(), *self._render_question(event)]
            case events.QuestionAsked() | events.PlanProposed():
                return [*self._finish_block(), *self._render_asked(event)]
            case events.SteeringInjected():
                steered = StyledLine(shorten_to_width(f"> {event.text}", columns), "you")
                return [*self._finish_block(), *self._space_lines("you", [steered])]
            case _:
                if not isinstance(event, events.Warn):
                    self._saying = ""  # a warning may arrive during a summary, which continues
                lines = self._finish_block()
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
        if self._block is None or not self._tail:
            return []
        rows = wrap_last_rows(escape_text(self._tail), columns, TAIL_ROWS)
        return [StyledLine(row, self._choose_style()) for row in rows]

    def _take_update(self, event: events.MessageUpdate) -> list[StyledLine]:
        """Add text to a block; return the lines it finished, and the rest of the block before."""
        before = []
        if (event.part, event.block) != self._block:
            before = self._finish_block()
            self._block = (event.part, event.block)
        if event.part == "tool_call":
            self._saying = f"calling {event.name}" if event.name else self._saying
            return before
        self._saying = "thinking" if event.part == "thinking" else "answering"
        *whole, self._tail = (self._tail + event.delta).split("\n")
        return [*before, *self._render_block_lines(whole)]

    def _finish_block(self) -> list[StyledLine]:
        lines = self._render_block_lines([self._tail] if self._tail else [])
        self._block, self._tail = None, ""
        return lines

    def _render_block_lines(self, whole: list[str]) -> list[StyledLine]:
        if self._above != self._name_block():
            whole = [*dropwhile(lambda line: not line.strip(), whole)]
        return self._space_lines(
            self._name_block(),
            [StyledLine(escape_text(line), self._choose_style()) for line in whole],
        )

    def _name_block(self) -> str:
        return "" if self._block is None else f"{self._block[0]} {self._block[1]}"

    def _choose_style(self) -> str:
        return "thinking" if self._block is not None and self._block[0] == "thinking" else ""

    def _space_lines(self, kind: str, lines: list[StyledLine]) -> list[StyledLine]:
        """Return the lines, with an empty line first if another kind of line is above."""
        if not lines or self._above == kind:
            return lines
        self._above = kind
        return [StyledLine(""), *lines]

    def _finish_message(self, event: events.MessageEnd) -> list[StyledLine]:
        lines = self._finish_block()
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
