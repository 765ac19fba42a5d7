"""From the steps of a request to tool calls, and from their results to sentences: pure.

Invariant: which step a result belongs to follows from its place alone, because every step that
has a tool makes exactly one call, in order.

The model `offline/rules`: answers plain requests by real tool calls, without network or key.

It reads only the request: the newest user message says what to do, and the tool messages after it
show which steps are done. So it has no state, and the same request always gives the same answer.
"""

from __future__ import annotations

import re
import shlex
from asyncio import sleep
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import Struct

from tape.model.entries import Text, join_texts, select_tool_calls
from tape.model.summary import render_summary

from ..summary_format import SUMMARISER, TranscriptPiece, find_focus, find_length, parse_transcript
from ..types import Finish, StreamEvent, StreamStart
from .recall import (
    HELP_BEGINS,
    SEARCHER,
    answer_from_search,
    collect_statements,
    find_summary,
    recall_answers,
    report_nothing_found,
)
from .rules import (
    ListStep,
    PuzzleStep,
    ReadStep,
    RecallStep,
    RememberStep,
    ReplaceStep,
    RunStep,
    SearchStep,
    Step,
    SummarizedStep,
    ThinkStep,
    WriteStep,
    parse_request,
)
from .scripted import count_usage, iter_call_events, iter_text_events, iter_thinking_events
from .summary import LIMIT, summarize_pieces

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from tape.context.view import Message
    from tape.model.entries import ToolCall

    from ..types import Request


HELP = (
    f"{HELP_BEGINS}: I follow rules and need no network and no key. I understand:\n"
    "- read FILE\n"
    "- list DIR\n"
    "- search TEXT in DIR\n"
    "- run COMMAND, or a line that begins with $\n"
    "- write FILE with TEXT, or with a fenced block\n"
    "- replace A with B in FILE\n"
    "- think about TEXT\n"
    "- remember that TEXT, and later a question about it\n"
    "and several of them joined by “then”, one step each.\n"
    "For a real model set ANTHROPIC_API_KEY and start "
    "`gong chat -m anthropic/claude-sonnet-5-5`."
)
"""The offline model's answer if it understands nothing."""

_SHORT = 100
_LONG = 300
_SHOWN_ENTRIES = 8
_NOTICE = re.compile(
    r"\n\n\[[^\n]*?\b(?:lines (?P<first>\d+)-\d+ of (?P<all>\d+)|of line (?P<last>\d+)"
    r"|(?P<more>\d+) more (?:entries|lines))\b[^\n]*\]\s*\Z"
)
_NOTHING = re.compile(
    r"\s*(?:\((?:no output|empty directory|empty file)\)|no matches found\.?)?\s*\Z", re.IGNORECASE
)
_NO_MATCH = re.compile(r"[^\n:]*(?:\n+[^\n:]*)?\bexit\w*\b[^\n:]*\b1\b[^\n:]*\s*\Z", re.IGNORECASE)


class _ToolOutput(Struct, frozen=True):
    """The output of a tool: `count` lines in all, of which it gave the consecutive `lines`."""

    lines: list[str]
    count: int
    from_start: bool = True
    """Whether `lines` begin with its first."""


class PlannedCall(Struct, frozen=True):
    """A tool and the arguments it is to get."""

    name: str
    args: dict[str, str]


def plan_call(step: Step, tools: frozenset[str]) -> PlannedCall | None:
    """Return the call that does `step` with these tools; None where none of them can."""
    call = _build_call(step, tools)
    return call if call and call.name in tools else None


def plan_next_call(
    steps: Iterable[Step], tools: frozenset[str], done: int
) -> tuple[tuple[ThinkStep, ...], PlannedCall | None]:
    """Return what to think of now and which call comes after `done` calls; None at the end."""
    thoughts: tuple[ThinkStep, ...] = ()
    for step in steps:
        if isinstance(step, ThinkStep):
            thoughts += (step,)
        elif call := plan_call(step, tools):
            if not done:
                return thoughts, call
            thoughts, done = (), done - 1
    return thoughts, None


def list_remaining_steps(
    steps: Sequence[Step], tools: frozenset[str], made: Sequence[PlannedCall]
) -> tuple[Step, ...]:
    """Return the steps from the first of the calls that were made on; none where they do not fit.

    So a request continues even if a summary has replaced its first results.
    """
    calls = [(place, plan_call(step, tools)) for place, step in enumerate(steps)]
    wanted = [(place, call) for place, call in calls if call]
    for begin, (place, _) in enumerate(wanted):
        if made and [call for _, call in wanted[begin : begin + len(made)]] == [*made]:
            return tuple(steps[place:])
    return ()


def report_results(steps: Sequence[Step], tools: frozenset[str], results: Iterable[Message]) -> str:
    """Return what came back, a sentence or two for each step; HELP when nothing was understood."""
    if all(isinstance(step, PuzzleStep) for step in steps):
        return HELP
    return "\n".join(_iter_sentences(steps, tools, iter(results)))


def _build_call(step: Step, tools: frozenset[str]) -> PlannedCall | None:
    call: PlannedCall | None
    match step:
        case ReadStep():
            call = PlannedCall("read", {"path": step.path})
        case ListStep():
            call = PlannedCall("ls", {"path": step.path})
        case SearchStep():
            call = _build_search(step, tools)
        case RunStep():
            call = PlannedCall("bash", {"command": step.command})
        case WriteStep():
            call = PlannedCall("write", {"path": step.path, "content": step.content})
        case ReplaceStep():
            args = {"path": step.path, "oldText": step.old, "newText": step.new}
            call = PlannedCall("edit", args)
        case RecallStep(answer=None):
            call = PlannedCall(SEARCHER, {"query": step.words})
        case ThinkStep() | PuzzleStep() | RememberStep() | RecallStep() | SummarizedStep():
            call = None
        case _:
            assert_never(step)
    return call


def _build_search(step: SearchStep, tools: frozenset[str]) -> PlannedCall:
    if "grep" in tools:
        return PlannedCall("grep", {"pattern": step.pattern, "path": step.path})
    words = ("grep", "-rnI", "--", step.pattern, step.path)
    return PlannedCall("bash", {"command": shlex.join(words)})


def _iter_sentences(
    steps: Iterable[Step], tools: frozenset[str], results: Iterator[Message]
) -> Iterator[str]:
    for step in steps:
        if isinstance(step, ThinkStep):
            yield f"I thought about {step.about}." if step.about else "I thought."
        elif isinstance(step, SummarizedStep):
            yield "I continue from the summary: the rest of the request has to be asked again."
        elif isinstance(step, RememberStep):
            yield f"Noted: {_clip_text(step.fact, _LONG)}"
        elif isinstance(step, RecallStep) and not (SEARCHER in tools and step.answer is None):
            yield step.answer or report_nothing_found(step.question)
        elif isinstance(step, PuzzleStep):
            yield f"I did not understand “{_clip_text(step.text, _SHORT)}”."
        elif call := plan_call(step, tools):
            yield _report_outcome(step, call, next(results, None))
        else:
            yield _report_missing_tool(step)


def _report_missing_tool(step: Step) -> str:
    wanted = _build_call(step, frozenset())
    assert wanted is not None, "only steps that need a tool can lack one"
    words = " ".join(wanted.args.values())
    return (
        f"I could not call {wanted.name} ({_clip_text(words, _SHORT)}): there is no such tool here."
    )


def _report_outcome(step: Step, call: PlannedCall, result: Message | None) -> str:
    if result is None:
        return f"{call.name} gave no result."
    text = join_texts(result.content)
    if isinstance(step, SearchStep) and _NO_MATCH.match(text):
        text = ""  # grep answers 1 when nothing matches, which is no failure
    elif result.is_error:
        return f"{call.name} failed: {_clip_text(text, _LONG) or 'it did not say why'}"
    return _report_success(step, text)


def _report_success(step: Step, text: str) -> str:
    shown = _parse_output(text)
    said = ""
    match step:
        case ReadStep():
            said = _describe_contents(step.path, shown)
        case ListStep():
            said = _describe_entries(step.path, shown)
        case SearchStep():
            said = _describe_matches(step, shown)
        case RunStep():
            said = _describe_printed(step.command, shown)
        case WriteStep():
            said = f"{step.path} is written."
        case ReplaceStep():
            said = (
                f"{step.path} is changed: {_quote_text(step.old)} is now {_quote_text(step.new)}."
            )
        case RecallStep():
            said = answer_from_search(step.question, text)
        case ThinkStep() | PuzzleStep() | RememberStep() | SummarizedStep():
            pass
        case _:
            assert_never(step)
    return said


def _parse_output(text: str) -> _ToolOutput:
    """Return the lines of a tool's text, without a notice at its end that there are more."""
    if _NOTHING.match(text):
        return _ToolOutput([], 0)
    notice = _NOTICE.search(text)
    lines = (text[: notice.start()] if notice else text).rstrip("\n").split("\n")
    if notice is None:
        return _ToolOutput(lines, len(lines))
    if notice["more"]:
        return _ToolOutput(lines, len(lines) + int(notice["more"]))
    count = notice["all"] or notice["last"]
    return _ToolOutput(lines, int(count), from_start=notice["first"] == "1")


def _describe_contents(path: str, shown: _ToolOutput) -> str:
    if not shown.count:
        return f"{path} is empty."
    lines = _format_count(shown.count, "line")
    return f"{path} has {lines}; it begins: {_find_first_line(shown.lines)}"


def _describe_entries(path: str, shown: _ToolOutput) -> str:
    folder = "This folder" if path == "." else path
    if not shown.count:
        return f"{folder} is empty."
    names = shown.lines[:_SHOWN_ENTRIES]
    rest = shown.count - len(names)
    more = f" and {rest} more" if rest else ""
    entries = _format_count(shown.count, "entry", "entries")
    return f"{folder} holds {entries}: {', '.join(names)}{more}."


def _describe_matches(step: SearchStep, shown: _ToolOutput) -> str:
    pattern = _quote_text(step.pattern)
    if not shown.count:
        folder = "this folder" if step.path == "." else step.path
        return f"{pattern} was not found in {folder}."
    found = _format_count(shown.count, "line")
    which = "the first" if shown.from_start else "one of them"
    return f"{pattern} was found in {found}; {which}: {_find_first_line(shown.lines)}"


def _describe_printed(command: str, shown: _ToolOutput) -> str:
    said = f"`{_clip_text(command, _SHORT)}` printed"
    if not shown.count:
        return f"{said} nothing."
    if shown.count == 1:
        return f"{said}: {_clip_text(shown.lines[0], _LONG)}"
    first = f"the first: {_find_first_line(shown.lines)}; " if shown.from_start else ""
    return f"{said} {shown.count} lines; {first}the last: {_clip_text(shown.lines[-1], _SHORT)}"


def _find_first_line(lines: list[str]) -> str:
    return _clip_text(next((line for line in lines if line.strip()), ""), _SHORT)


def _quote_text(text: str) -> str:
    return f"“{_clip_text(text, _SHORT)}”"


def _format_count(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _clip_text(text: str, longest: int) -> str:
    """Return `text` as one line of at most `longest` characters, cut in the middle."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return f"{line[: longest // 2]} … {line[-longest // 2 :]}"


class OfflineProvider:
    """Answers by rules, with one tool call per answer, so that each result is known first."""

    name = "offline"
    api = "rules"
    endpoint = "offline"

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with the next tool call or, after the last, with what came back."""
        for event in _stream_answer(request):
            await sleep(0)  # screens draw and a cancel comes through between pieces
            yield event

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _stream_answer(request: Request) -> Iterator[StreamEvent]:
    prompt, results = _find_newest_request(request.messages)
    if request.system.startswith(SUMMARISER):
        pieces = map(_replace_help, parse_transcript(prompt))
        summary = summarize_pieces(pieces, find_focus(prompt), find_length(prompt) or LIMIT)
        yield from _stream_text(request, render_summary(summary))
        return
    steps, tools = _plan_steps(request, prompt), _list_tools(request)
    thoughts, call = plan_next_call(steps, tools, len(results))
    thinking = [_describe_thought(thought) for thought in thoughts]
    yield StreamStart(request.model)
    for index, thought in enumerate(thinking):
        yield from iter_thinking_events(index, thought)
    if call:
        said = msgspec.json.encode(call.args).decode()
        yield from iter_call_events(len(thinking), call.name, f"offline_{len(results)}", said)
    else:
        said = report_results(steps, tools, results)
        yield from iter_text_events(len(thinking), said)
    yield Finish("tool_calls" if call else "stop", count_usage(request, [*thinking, said]))


def _replace_help(piece: TranscriptPiece) -> TranscriptPiece:
    """Return a piece of a transcript; of the help, only that there was nothing to answer."""
    is_help = piece.role == "assistant" and piece.text.startswith(HELP_BEGINS)
    return TranscriptPiece("assistant", "I did not understand that.") if is_help else piece


def _stream_text(request: Request, text: str) -> Iterator[StreamEvent]:
    yield StreamStart(request.model)
    yield from iter_text_events(0, text)
    yield Finish("stop", count_usage(request, [text]))


def _plan_steps(request: Request, prompt: str) -> tuple[Step, ...]:
    """Return what the newest request asks for; what is left of it, where a summary replaced it."""
    summary, tools = find_summary(prompt), _list_tools(request)
    if summary is None:
        return recall_answers(
            parse_request(prompt), prompt, collect_statements(request.messages, prompt), tools
        )
    steps = parse_request(summary.requests[-1]) if summary.requests else ()
    made = [
        _decode_call(call)
        for message in request.messages
        for call in select_tool_calls(message.content)
    ]
    return list_remaining_steps(steps, tools, made) or (SummarizedStep(),)


def _decode_call(call: ToolCall) -> PlannedCall:
    try:
        return PlannedCall(
            call.name, msgspec.json.decode(bytes(call.args) or b"{}", type=dict[str, str])
        )
    except msgspec.DecodeError:
        return PlannedCall(call.name, {})


def _find_newest_request(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """Return the newest user message's last text, and the tool results that came after it."""
    after = len(messages)
    while after and messages[after - 1].role != "user":
        after -= 1
    results = tuple(message for message in messages[after:] if message.role == "tool")
    return (_find_last_text(messages[after - 1]) if after else ""), results


def _find_last_text(message: Message) -> str:
    """Return the newest words of a message that may have been merged from several."""
    texts = [block.text for block in message.content if isinstance(block, Text)]
    return next((text for text in reversed(texts) if text.strip()), "")


def _list_tools(request: Request) -> frozenset[str]:
    if request.tool_choice.mode == "none":
        return frozenset()
    return frozenset(tool.name for tool in request.tools)


def _describe_thought(thought: ThinkStep) -> str:
    about = thought.about or "what was asked"
    return f"I am to think about {about}. I follow rules, so I note it and do the next step."
