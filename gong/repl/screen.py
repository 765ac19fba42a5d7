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

import re
from itertools import dropwhile
from typing import TYPE_CHECKING, NamedTuple, assert_never

import msgspec

from tape.model.entries import ToolCall, join_texts, select_tool_calls
from tape.text import measure_width, shorten_to_width, show_controls

from ..agent import events
from ..context.costs import format_money

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..tools.dialogue import Todo

    _Notice = (
        events.HistoryRepaired
        | events.CompactionEnd
        | events.ResultsElided
        | events.SessionNamed
        | events.CostLimit
        | events.TurnLimit
        | events.LoopDetection
        | events.Warn
        | events.HookError
        | events.RunFailure
    )


RESULT_LINES = 5
QUEUE_ROWS = 3
INDENT = "  "
_ESCAPE_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_TOOL_NOTICE = re.compile(
    r"\n+\[[^\n]*?\b(?:lines (?P<first>\d+)-(?P<last>\d+) of (?P<all>\d+)|of line (?P<line>\d+)"
    r"|(?P<more>\d+) more (?:entries|lines)"
    r"|limit reached(?!, \d+ more ))\b[^\n]*\]"
    r"(?P<ending>(?:\n\n[^\n]+)?)\s*\Z"
)
"""A tool's notice of omitted output, after the output; an error text may follow it."""
_NOTICE_CHARS = 4_000
"""Number of characters at the end in which the notice is searched."""


class StyledLine(NamedTuple):
    """One line without newline; `style` is you, thinking, call, result, note, error or empty."""

    text: str
    style: str = ""


def clip_line(text: str, columns: int) -> str:
    """Return a line cut to at most `columns`, spaces kept, with `…` if it was cut."""
    if measure_width(text) <= columns:
        return text
    return f"{next(_wrap_rows(text, max(columns - 1, 1)))}…"


def wrap_last_rows(text: str, columns: int, most: int) -> list[str]:
    """Return the last rows of a line on a screen of `columns`.

    A long beginning is dropped in big steps, so that the rows do not move while the line grows.
    """
    step = columns * most * 2
    start = max(len(text) - step, 0) // step * step
    return list(_wrap_rows(text[start:], columns))[-most:]


def _wrap_rows(text: str, columns: int) -> Iterator[str]:
    row, used = "", 0
    for char in text:
        wide = measure_width(char)
        if used + wide > columns:
            yield row
            row, used = "", 0
        row, used = row + char, used + wide
    yield row


def escape_text(text: str) -> str:
    """Return text that is safe to show on a screen."""
    return show_controls(text.removesuffix("\r")).expandtabs(4)


def split_output(text: str) -> list[str]:
    """Return a tool's output as lines: escape sequences are removed, other controls shown."""
    return (
        escape_text(_ESCAPE_SEQUENCES.sub("", text).replace("\r\n", "\n")).strip("\n").split("\n")
    )


def format_seconds(duration: float) -> str:
    """Return a duration as text, such as "1 min 5 s"."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class _ResultOutput(NamedTuple):
    """The shown lines of a tool's output, and the number of omitted ones."""

    lines: list[str]
    before: int = 0
    after: int = 0
    whole: bool = True
    """Whether the numbers are exact; if not, more lines were omitted."""


def render_result(text: str, columns: int, *, is_error: bool) -> list[StyledLine]:
    """Return a result in a few lines, with the number of lines not shown.

    Shows the beginning; for a failure, and if the tool gave only the end, the end.
    """
    output = _parse_result_output(text)
    lines, at_end = output.lines, is_error or output.before > 0
    rest = max(len(lines) - RESULT_LINES, 0) + output.before + output.after
    kept = lines[-RESULT_LINES:] if at_end else lines[:RESULT_LINES]
    style = "error" if is_error else "result"
    result = [StyledLine(clip_line(INDENT + line, columns).rstrip(), style) for line in kept]
    if not rest and output.whole:
        return result
    words = (
        format_count(rest, "more line")
        if output.whole
        else f"at least {format_count(rest, 'more line')}"
    )
    more = StyledLine(f"{INDENT}… {words if rest else 'more'}", style)
    return [more, *result] if at_end else [*result, more]


def _parse_result_output(text: str) -> _ResultOutput:
    """Return the lines of a result without the tool's notice, whose numbers are counted."""
    notice = _TOOL_NOTICE.search(text, max(len(text) - _NOTICE_CHARS, 0))
    if notice is None:
        return _ResultOutput(split_output(text))
    lines = split_output(text[: notice.start()] + notice["ending"])
    if notice["more"]:
        return _ResultOutput(lines, after=int(notice["more"]))
    if notice["line"]:
        return _ResultOutput(lines, before=int(notice["line"]) - 1)
    if not notice["all"]:
        return _ResultOutput(lines, whole=False)
    first, last, count = (int(notice[name]) for name in ("first", "last", "all"))
    if last == count:
        return _ResultOutput(lines, before=first - 1)
    return _ResultOutput(lines, after=count - last)


def render_remark(text: str, style: str = "note") -> StyledLine:
    """Return a message of gong as one line; the terminal wraps it."""
    return StyledLine(" ".join(show_controls(text).split()), style)


def render_queue(words: tuple[str, ...], columns: int) -> list[StyledLine]:
    """Return the queued input as lines, at most a few."""
    shown = [
        StyledLine(shorten_to_width(f"queued: {text}", columns), "note")
        for text in words[:QUEUE_ROWS]
    ]
    rest = len(words) - QUEUE_ROWS
    return [*shown, StyledLine(f"… {rest} more queued", "note")] if rest > 0 else shown


_TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}
TODO_ROWS = 8
"""Rows of the todo list above the prompt."""


def render_todos(todos: Sequence[Todo], columns: int) -> list[StyledLine]:
    """Return a todo list as lines; nothing once all is done, and of a long one what is next."""
    first = next((n for n, one in enumerate(todos) if one.status != "completed"), None)
    if first is None:
        return []
    start = max(min(first, len(todos) - TODO_ROWS), 0)
    lines = []
    for one in todos[start : start + TODO_ROWS]:
        is_now = one.status == "in_progress"
        words = (one.active_form if is_now else "") or one.content
        text = shorten_to_width(f"{_TODO_MARKS[one.status]} {show_controls(words)}", columns)
        lines.append(StyledLine(text, "call" if is_now else "note"))
    rest = len(todos) - len(lines)
    return [*lines, StyledLine(f"… {rest} more to do or done", "note")] if rest else lines


PLAN_CHOICES = ("approve", "keep planning")


def render_choices(asked: OpenChoice) -> list[StyledLine]:
    """Return an open question with its numbered answers."""
    first, *more = escape_text(asked.text).split("\n")
    rows = [StyledLine(f"? {first}", "call"), *(StyledLine(f"  {row}", "call") for row in more)]
    for number, (label, meaning) in enumerate(asked.options, 1):
        said = f"{number}  {label}{f' – {meaning}' if meaning else ''}"
        rows.append(StyledLine(f"  {render_remark(said).text}", "call"))
    how = "numbers, as in 1,3" if asked.is_many else "a number"
    return [*rows, StyledLine(f"  {f'{how}, or ' if asked.options else ''}your words", "note")]


class OpenChoice(NamedTuple):
    """A question with what can be chosen."""

    text: str
    options: tuple[tuple[str, str], ...]
    """Label and meaning of each."""
    is_many: bool = False
    """Whether several may be chosen."""

    def read_answer(self, line: str) -> tuple[str, ...]:
        """Return the labels of a line of numbers, else the line itself."""
        numbers = line.replace(",", " ").split()
        if numbers and all(one.isdecimal() for one in numbers):
            places = [int(one) - 1 for one in numbers]
            fits = all(0 <= one < len(self.options) for one in places)
            if fits and (self.is_many or len(places) == 1):
                return tuple(dict.fromkeys(self.options[one][0] for one in places))
        return (line.strip(),)


TAIL_ROWS = 6
"""Rows shown of an unfinished line, which may be a whole paragraph."""
OUTPUT_ROWS = 3
"""Rows shown of a running tool's output."""
_OUTPUT_CHARS = 4_000
_EXPECTED_STOPS = {"stop", "tool_calls"}


def describe_call(call: ToolCall) -> str:
    """Return a short text for a call: its command, path, or arguments."""
    if call.args_text is not None:
        return f"{call.name} {call.args_text}"
    arguments = msgspec.json.decode(call.args) if call.args else {}
    if call.name == "bash" and "command" in arguments:
        return f"$ {arguments['command']}"
    if "path" in arguments:
        return f"{call.name} {arguments['path']}"
    return f"{call.name} {bytes(call.args).decode() if arguments else ''}"


def describe_limit(
    event: events.TurnLimit | events.CostLimit | events.LoopDetection, *, is_kept: bool = True
) -> str:
    """Return in one line which limit a run came to, and how to continue where the tape is kept."""
    match event:
        case events.LoopDetection():
            what = event.message.partition(":")[2].strip().partition(".")[0]
            if not event.stopped:
                return f"the model repeats itself: {what}"
            again = "" if event.what == "text" else ", again after the model was told so"
            said = f"stopped: {what}{again}"
        case events.CostLimit():
            limit, spent = format_money(event.limit), format_money(event.spent)
            said = f"stopped at the max cost of {limit}: {spent} spent"
        case events.TurnLimit(limit="time"):
            said = f"stopped at the time limit of {format_seconds(event.value)}"
        case events.TurnLimit(limit="round"):
            rounds = format_count(int(event.value), "round of tool calls", "rounds of tool calls")
            said = f"stopped at the limit of {rounds} for one prompt"
        case _:
            said = f"stopped at the limit of {format_count(int(event.value), 'model call')}"
    return f"{said}; a new prompt continues (gong chat -c)" if is_kept else said


def describe_compaction(event: events.CompactionEnd) -> str:
    """Return the result of a compaction or handoff in one line."""
    by = event.by or "rules"
    head = (
        "Compacted" if event.anchor == "compaction" else f"{event.anchor.capitalize()}: compacted"
    )
    return (
        f"{head} {format_count(event.covered, 'entry', 'entries')} "
        f"({event.before:,} → {event.after:,} tokens, summary by {by})"
    )


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
                return [*self._finish_block(), *self._render_notice(event)]

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

    def _render_notice(self, event: _Notice) -> list[StyledLine]:
        """Return the line of an event that is shown as one remark."""
        match event:
            case events.HistoryRepaired():
                calls = format_count(event.injected, "interrupted tool call")
                left = format_count(event.dropped, "entry", "entries")
                made = [f"{calls} got a placeholder result"] if event.injected else []
                counts = ", ".join([*made, *([f"{left} left out"] if event.dropped else [])])
                said = f"History repaired{f': {counts}' if counts else ''} ({event.why})"
            case events.CompactionEnd():
                said = f"{describe_compaction(event)} · /compact --undo reverts this"
            case events.ResultsElided():
                said = "older tool results become placeholders: the context window is filling up"
            case events.SessionNamed():
                said = f"session title: {event.title!r}"
            case events.CostLimit() | events.TurnLimit() | events.LoopDetection():
                said = describe_limit(event, is_kept=self._is_kept)
            case events.Warn():
                said = event.message
            case events.HookError():
                said = f"hook {event.hook}: {event.error}"
            case events.RunFailure():
                again = " (trying again may help)" if event.retryable else ""
                return self.remark(f"{event.message}{again}", "error")
            case _:
                assert_never(event)
        return self.remark(said)
