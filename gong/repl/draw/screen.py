r"""Events → lines for the scrollback, and the few lines that still change; pure.

A returned line is finished and never changes; `Screen.live` returns the unfinished ones. No line
contains a control character, whatever its source. The unfinished part of a screen:

    event                        live                              returned
    ---------------------------  --------------------------------  ---------------------------
    MessageUpdate "so\n\nit"      "it"                              "so"
    MessageUpdate, thinking      its last rows
    MessageUpdate, a call        ○ path or command, the diff       the rest of the block before
    MessageEnd                   none                              the last line, "thought"
    ToolExecutionStart           ● the call, the end of its output
    ToolExecutionEnd, read, ls   ● read 2 files: a.py, b.py        the line, once others follow
    ToolExecutionEnd, others                                       ● the call, result or diff
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from tape.formats.wire import encode_json
from tape.model.entries import Opaque, ToolCall, join_texts, select_tool_calls
from tape.render.sources import describe_server_block, render_sources
from tape.text import format_seconds, measure_width, shorten_to_width

from ...agent import events
from ...agent.short_answer import describe_short_answer
from ...policy.approval import LASTING_ANSWERS
from .approval_panel import describe_answer, render_call
from .lines import (
    INDENT,
    StyledLine,
    StyledPart,
    clip_line,
    escape_text,
    join_parts,
    render_remark,
    wrap_parts,
    wrap_row,
    wrap_text,
)
from .markdown import MarkdownStream
from .notices import render_notice
from .own_cards import OwnCard, render_own_card
from .tool_cards import (
    Reading,
    describe_arguments,
    describe_call,
    describe_readings,
    read_arguments,
    read_reading,
    render_change,
    render_diffs,
    render_draft,
    render_full_result,
    render_result,
    split_output,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tape.model.entries import Content

THOUGHT_ROWS = 6
"""Rows shown of what the model thinks."""
_THOUGHT_CHARS = 2_000
OUTPUT_ROWS = 5
"""Rows shown of a running tool's output."""
SHARED_OUTPUT_ROWS = 2
"""The same where several tools run."""
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")
"""What a progress bar has written over."""
_OUTPUT_CHARS = 4_000
_REFUSED = "refused"
_ROWS_BELOW = 9
"""Rows that stay for the answers to a question, the prompt and the status line."""


@dataclass(slots=True)
class _Thought:
    """What the model thinks, until it says something."""

    text: str = ""
    started_at: str = ""
    """Times of the first and the last piece, as in events; empty if unknown."""
    ended: str = ""
    printed: int = 0
    """How many characters are in the scrollback."""

    def describe(self) -> str:
        """Return the thought in one line; empty for a short one."""
        if not self.started_at or not self.ended:
            return "thought"
        took = datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.started_at)
        seconds = took.total_seconds()
        return f"thought for {format_seconds(seconds)}" if seconds >= 1 else ""


def render_thought(text: str, columns: int) -> list[StyledLine]:
    """Return thinking as lines, without empty ones at the ends."""
    lines = escape_text(text).strip("\n").split("\n") if text.strip() else []
    rows = [row for line in lines for row in wrap_parts([StyledPart(line)], columns)]
    return [join_parts(row, "thinking") for row in rows]


class Screen:
    """The state of the display: the unfinished block of the answer, and the running tools.

    `is_kept` says whether the session can be continued after its end.
    """

    def __init__(
        self,
        *,
        is_kept: bool = True,
        folder: str = "",
        count_rows: Callable[[], int] = lambda: 24,
    ) -> None:
        """`folder` is where paths begin; `count_rows` returns how many rows the screen has."""
        self._is_kept, self._folder, self._count_rows = is_kept, folder, count_rows
        self._question: events.ApprovalRequested | None = None
        """The question about a call that is open."""
        self._asking: set[str] = set()
        """Calls whose question stands above the prompt."""
        self._answers: dict[str, list[str]] = {}
        """What a person decided about a call, by its id, until it has ended."""
        self._shown_calls: set[str] = set()
        """Calls whose diff or arguments are in the scrollback, because they were too long."""
        self._block: tuple[str, int] | None = None
        self._text = MarkdownStream()
        self._thought = _Thought()
        self._last_thought = ""
        self.shows_thinking = False
        """Whether thinking is shown in full, not in one line."""
        self._above = ""
        self._calls: dict[str, ToolCall] = {}
        """The calls of the answer, by id."""
        self._draft: tuple[str, dict[str, object]] = ("", {})
        """Name and arguments so far of the call that the model writes."""
        self._running: dict[str, str] = {}
        self._outputs: dict[str, str] = {}
        """The end of what each running call has written."""
        self._readings: list[Reading] = []
        """The last calls, which only read: one line, once another follows."""
        self._columns = 80
        self.last_result: events.ToolExecutionEnd | None = None
        """The newest result."""
        self._last_title = ""
        self._saying = ""
        self.turn = 0
        """Model calls of the run so far."""
        self.has_failed = False
        """Whether the newest run ended with an error."""

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

    def reply(self, text: str, columns: int | None = None, *, failed: bool) -> list[StyledLine]:
        """Return the lines of a command's reply, with `columns` wrapped at blanks."""
        style, lines = "error" if failed else "note", escape_text(text).split("\n")
        if columns is not None:
            lines = [row for line in lines for row in wrap_row(line, columns)]
        return self._space_lines("reply", [StyledLine(line, style) for line in lines])

    def clear_run(self) -> None:
        """Clear the current activity."""
        self._calls.clear()
        self._answers.clear()
        self._shown_calls.clear()
        self._asking.clear()
        if self._question is not None and not self._question.agent:
            self._question = None
        self._running.clear()
        self._outputs.clear()
        self._saying = ""

    def note_columns(self, columns: int) -> None:
        """Note how wide the screen is."""
        self._columns = columns

    def remark(self, text: str, style: str = "note") -> list[StyledLine]:
        """Return a message of gong, wrapped at blanks, without an empty line before it."""
        return self._place_remark(render_remark(text, style))

    def _place_remark(self, line: StyledLine) -> list[StyledLine]:
        before = self._finish_readings()
        self._above = "remark"
        return [
            *before,
            *(StyledLine(row, line.style) for row in wrap_row(line.text, self._columns)),
        ]

    def show(self, event: events.Event, columns: int) -> list[StyledLine]:  # noqa: C901, PLR0911, PLR0912 (a case each)
        """Process an event; return the lines it finished, for a screen of `columns`."""
        self._columns = columns
        match event:
            case events.MessageUpdate():
                return self._take_update(event, columns)
            case events.MessageEnd():
                return self._finish_message(event, columns)
            case events.ToolExecutionStart():
                self._running[event.call_id] = event.name
                return []
            case events.ToolExecutionUpdate():
                written = self._outputs.get(event.call_id, "") + event.output
                self._outputs[event.call_id] = written[-_OUTPUT_CHARS:]
                return []
            case events.ToolExecutionEnd():
                return self._finish_tool(event, columns)
            case events.RunEnd():
                lines = [*self._finish_block(columns), *self._finish_readings()]
                self.clear_run()
                return [*lines, *(self.remark("stopped") if event.stop_reason == "aborted" else [])]
            case events.RunStart():
                self.turn, self.has_failed = 0, False
                return []
            case events.TurnStart():
                self.turn, self._saying = event.turn, "thinking"
                return []
            case events.MessageStart():
                self._saying = "thinking"
                return []
            case events.CompactionStart():
                self._saying = "summarising"
                return []
            case (
                events.SessionStart()
                | events.SessionEnd()
                | events.UserInput()
                | events.TurnEnd()
                | events.ModelSelect()
                | events.ModeSelect()
                | events.MessageQueued()
                | events.MessageWithdrawn()
                | events.AgentState()
                | events.TodosChanged()
                | events.SubagentStart()
                | events.SubagentEnd()
                | events.ResultTruncated()
                | events.SessionNamed()
            ):
                return []
            case events.ApprovalRequested():
                return [*self._finish_block(columns), *self._open_question(event, columns)]
            case events.QuestionAsked() | events.PlanProposed():
                if event.waits:
                    self._asking.add(event.question_id)
                return [*self._finish_block(columns), *self._render_asked(event)]
            case events.SteeringInjected():
                steered = StyledLine(shorten_to_width(f"> {event.text}", columns), "you")
                return [*self._finish_block(columns), *self._space_lines("you", [steered])]
            case _:
                self.has_failed |= isinstance(event, events.RunFailure)
                if not isinstance(event, events.Warn):
                    self._saying = ""  # a warning may arrive during a summary, which continues
                lines = self._finish_block(columns)
                return [*lines, *self._place_remark(render_notice(event, is_kept=self._is_kept))]

    def live(self, columns: int) -> list[StyledLine]:
        """Return the unfinished lines: of the answer, or of the running tools."""
        read = self._render_readings(columns)
        if self._question is not None and not self._question.agent:
            return read  # none of the calls runs before the answer
        if self._running:
            limit = OUTPUT_ROWS if len(self._running) == 1 else SHARED_OUTPUT_ROWS
            running = (call for call in self._running if call not in self._asking)
            cards = [self._render_running(call, columns, limit) for call in running]
            return [*read, *(line for card in cards for line in card)]
        return [*read, *self._render_growing(columns)]

    def _render_running(self, call_id: str, columns: int, limit: int) -> list[StyledLine]:
        written = _OVERWRITTEN.sub("", self._outputs.get(call_id, ""))
        rows = split_output(written)[-limit:] if written else []
        output = [StyledLine(clip_line(INDENT + row, columns), "result") for row in rows]
        return [self._render_heading(call_id, columns), *output]

    def _render_growing(self, columns: int) -> list[StyledLine]:
        """Return the unfinished rows of the answer."""
        if self._block is None:
            return []
        if self._block[0] == "text":
            return self._text.render_tail(columns)
        if self._block[0] == "tool_call":
            return render_draft(*self._draft, columns)
        rest = self._thought.text[self._thought.printed :][-_THOUGHT_CHARS:]
        return render_thought(rest, columns)[-THOUGHT_ROWS:]

    def _open_question(self, event: events.ApprovalRequested, columns: int) -> list[StyledLine]:
        """Show a call that waits for an answer; return it where it does not fit above the prompt.

        It is printed once then, and what the call did is not shown again.
        """
        self._question = event
        rows = self.render_question(columns)
        narrow = 4 if columns < 60 else 0  # noqa: PLR2004 (there the answers take more rows)
        if len(rows) <= self._count_rows() - _ROWS_BELOW - narrow:
            return []
        self._shown_calls.add(event.call_id)
        return self._space_lines("tool", rows)

    def render_question(self, columns: int) -> list[StyledLine]:
        """Return the call that is asked about; nothing without a question."""
        event = self._question
        if event is None:
            return []
        who = [render_remark(f"{event.agent} asks:")] if event.agent else []
        whole = event.call_id not in self._shown_calls
        return [*who, *render_call(event, columns, self._folder, whole=whole)]

    def close_question(
        self,
        event: events.ApprovalRequested,
        decision: str,
        reason: str = "",
        arguments: dict[str, Any] | None = None,
    ) -> list[StyledLine]:
        """Take the answer to a question; return what is recorded of it beside the call's own line.

        An edit may be asked about again; `arguments` are what it made of the call.
        """
        self._question = None
        answer = describe_answer(event, decision, reason, self._folder)
        if arguments is not None:
            call = ToolCall(event.call_id, event.name, Raw(encode_json(arguments)))
            self._calls[event.call_id] = call
            self._shown_calls.discard(event.call_id)
        if event.agent:
            what = describe_arguments(event.name, read_arguments(bytes(event.args)), self._folder)
            return self.remark(f"{event.agent}: {answer} · {what}")
        if decision in LASTING_ANSWERS:
            return self.remark(answer)
        self._answers.setdefault(event.call_id, []).append(answer)
        return []

    def _take_update(self, event: events.MessageUpdate, columns: int) -> list[StyledLine]:
        """Add text to a block; return the lines it finished, and the rest of the block before."""
        before: list[StyledLine] = []
        if (event.part, event.block) != self._block:
            before = self._finish_block(columns)
            self._block = (event.part, event.block)
        match event.part:
            case "tool_call":
                if event.name:
                    self._saying, self._draft = f"calling {event.name}", (event.name, {})
                if bytes(event.arguments):
                    self._draft = (self._draft[0], read_arguments(bytes(event.arguments)))
                return before
            case "thinking":
                self._saying = "thinking"
                return [*before, *self._take_thought(event, columns)]
            case _:
                self._saying = "answering"
                lines = self._text.feed(event.delta, columns)
                return [*before, *self._space_lines(self._name_block(), lines)]

    def _take_thought(self, event: events.MessageUpdate, columns: int) -> list[StyledLine]:
        """Add to the thought; return its finished lines where thinking is shown in full."""
        if not self._thought.text:
            self._thought = _Thought(started_at=event.time)
        self._thought.text += event.delta
        self._thought.ended = event.time
        if not self.shows_thinking:
            return []
        text = self._thought.text
        end = text.rfind("\n") + 1
        start, self._thought.printed = self._thought.printed, max(end, self._thought.printed)
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
                    name, render_thought(thought.text[thought.printed :], columns)
                )
            summary = thought.describe()
            lines = [StyledLine(summary, "thinking")] if summary else []
            return self._space_lines(name, lines)
        return []

    def switch_thinking(self, columns: int) -> list[StyledLine]:
        """Show thinking in full from now on, or in one line; return the last thought in full."""
        self.shows_thinking = not self.shows_thinking
        if not self.shows_thinking:
            return self.remark("thinking is shown in one line")
        lines = self.remark("thinking is shown in full")
        self._thought.printed = 0
        return [*lines, *render_thought(self._last_thought, columns)]

    def _name_block(self) -> str:
        return "" if self._block is None else f"{self._block[0]} {self._block[1]}"

    def _space_lines(self, kind: str, lines: list[StyledLine]) -> list[StyledLine]:
        """Return the lines, with an empty line first if another kind of line is above."""
        if not lines:
            return lines
        before = self._finish_readings()
        apart = [] if self._above == kind else [StyledLine("")]
        self._above = kind
        return [*before, *apart, *lines]

    def _render_readings(self, columns: int) -> list[StyledLine]:
        """Return the line of the reading calls that may still grow."""
        if not self._readings:
            return []
        readings = shorten_to_width(describe_readings(self._readings), max(columns - 2, 8))
        return [StyledLine(f"● {readings}", "call")]

    def _finish_readings(self) -> list[StyledLine]:
        """Return the line of the reading calls; the next one begins another."""
        lines, self._readings = self._render_readings(self._columns), []
        return self._space_lines("tool", lines)

    def _finish_message(self, event: events.MessageEnd, columns: int) -> list[StyledLine]:
        lines = self._finish_block(columns)
        self._calls |= {call.id: call for call in select_tool_calls(event.content)}
        self._saying = ""
        if notes := _describe_search(event.content):
            rows = [
                StyledLine(row, note.style)
                for note in notes
                for row in wrap_row(note.text, columns)
            ]
            lines += self._space_lines("tool", rows)
        if short_answer := describe_short_answer(event.content, event.stop_reason):
            lines += self.remark(short_answer)
        return lines

    def _render_heading(self, call_id: str, columns: int, more: str = "") -> StyledLine:
        call = self._calls.get(call_id)
        words = describe_call(call, self._folder) if call else self._running[call_id]
        room = max(columns - 2 - measure_width(more), 8)
        return StyledLine(f"● {shorten_to_width(words, room)}{more}", "call")

    def _finish_tool(self, event: events.ToolExecutionEnd, columns: int) -> list[StyledLine]:
        """Return the card of a call that has ended; of one that only read, with its likes."""
        self._running.setdefault(event.call_id, event.name)
        if self._question is not None and self._question.call_id == event.call_id:
            self._question = None
        if bytes(event.args):
            self._calls[event.call_id] = ToolCall(event.call_id, event.name, event.args)
        call = self._calls.get(event.call_id)
        arguments = read_arguments(bytes(call.args)) if call else {}
        self.last_result = event
        self._last_title = describe_call(call, self._folder) if call else event.name
        self._outputs.pop(event.call_id, None)
        answers = self._answers.pop(event.call_id, [])
        reading = (
            None if event.is_error or answers else read_reading(event.name, arguments, self._folder)
        )
        if reading is not None:
            del self._running[event.call_id]
            self._readings.append(reading)
            return []
        took = f" · {format_seconds(event.duration_ms / 1000)}" if event.duration_ms > 1000 else ""  # noqa: PLR2004
        own = render_own_card(
            event.name,
            arguments,
            read_arguments(bytes(event.details)),
            join_texts(event.content),
            columns,
            is_error=event.is_error,
        )
        if own is not None:
            del self._running[event.call_id]
            return self._finish_own_card(event, own, answers, took)
        change = None
        if not event.is_error:
            change = render_change(read_arguments(bytes(event.details)), arguments, columns)
        if answers and answers[-1].startswith(_REFUSED):
            answers[-1], _, reason = answers[-1].partition(": ")
            rows = wrap_text(escape_text(reason), columns - len(INDENT)) if reason else []
            change = ("", [StyledLine(INDENT + row, "error") for row in rows])
        elif change is not None and event.call_id in self._shown_calls:
            change = (change[0], [])
        if change is None:
            text = join_texts(event.content)
            change = ("", render_result(text, columns, is_error=event.is_error))
        count, lines = change
        facts = "".join(f" · {fact}" for fact in dict.fromkeys((count, *answers)) if fact)
        heading = self._render_heading(event.call_id, columns, f"{facts}{took}")
        del self._running[event.call_id]
        return self._space_lines("tool", [heading, *lines])

    def _finish_own_card(
        self, event: events.ToolExecutionEnd, own: OwnCard, answers: list[str], took: str
    ) -> list[StyledLine]:
        """Return the card of a call of the agent's own tools."""
        sentence, lines = own
        details = read_arguments(bytes(event.details))
        if details.keys() & {"answers", "approved", "todos"}:
            took = ""  # a person's time, or none
        facts = "".join(f" · {fact}" for fact in dict.fromkeys(answers)) + took
        room = max(self._columns - 2 - measure_width(facts), 8)
        heading = StyledLine(f"● {shorten_to_width(sentence, room)}{facts}", "call")
        return self._space_lines("tool", [heading, *lines])

    def expand_result(self, text: str) -> list[StyledLine]:
        """Return the newest result in full; `text` is all of it."""
        event = self.last_result
        if event is None:
            return self.remark("there is no result yet")
        title = shorten_to_width(self._last_title, max(self._columns - 2, 8))
        heading = StyledLine(f"● {title}", "call")
        diffs = render_diffs(read_arguments(bytes(event.details)))
        return self._space_lines("result", [heading, *(diffs or render_full_result(text))])

    def _render_asked(self, event: events.QuestionAsked | events.PlanProposed) -> list[StyledLine]:
        """Return a plan, or the questions that nobody answers; `render_choices` has the others."""
        if isinstance(event, events.PlanProposed):
            plan = MarkdownStream()
            lines = [*plan.feed(f"{event.plan}\n", self._columns), *plan.finish(self._columns)]
            return self._space_lines("tool", [StyledLine("● Plan", "call"), *lines])
        if event.waits:
            return []
        questions = "; ".join(question.question for question in event.questions)
        return self.remark(f"nobody is asked: {questions}")


def _describe_search(content: Content) -> list[StyledLine]:
    """Return what the provider looked for on the web, and which pages the answer cites."""
    lines = [
        StyledLine(f"● {escape_text(words[0])}", "call")
        for block in content
        if isinstance(block, Opaque) and (words := describe_server_block(block.raw))
    ]
    sources = render_sources(content)
    return [*lines, *(StyledLine(escape_text(line), "result") for line in sources)]
