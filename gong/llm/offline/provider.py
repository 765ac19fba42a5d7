"""The model `offline/rules`: answers plain requests by real tool calls, without network or key.

It reads only the request, so it has no state, and the same request always gives the same answer.
The newest user message says what to do (`rules`), and the tool messages after it show how far it
is: every step that has a tool makes exactly one call, in order. For "read a then think then run b":

| tool messages after the prompt | answer |
|---|---|
| none | a call of read |
| one | a thought and a call of bash |
| two | text: a sentence or two for each step |
"""

from __future__ import annotations

import re
import shlex
from asyncio import sleep
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tape.model.entries import Text, join_texts, select_tool_calls
from tape.model.summary import render_summary
from tape.text import format_count

from ...summary.prompt import SUMMARISER, find_focus, find_length
from ...summary.rules import LIMIT, summarize_pieces
from ...summary.sentences import clip_text
from ...summary.transcript import parse_transcript
from ..scripted import count_usage, iter_call_events, iter_text_events, iter_thinking_events
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
from .rules import Step, parse_request

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

_SUMMARY_PIECE = 1_000
"""Characters of a piece of a summary, which nobody watches as it comes."""
_SHORT, _LONG = 100, 300
"""Characters of quoted words, and of quoted output."""
_MAX_NAMES = 8
_CALLS = {
    "read": ("read", {"path": "path"}),
    "list": ("ls", {"path": "path"}),
    "search": ("grep", {"pattern": "text", "path": "path"}),
    "run": ("bash", {"command": "text"}),
    "write": ("write", {"path": "path", "content": "text"}),
    "replace": ("edit", {"path": "path", "oldText": "text", "newText": "new"}),
    "recall": (SEARCHER, {"query": "words"}),
}
"""The tool of each step, and the field of the step that is each argument."""
_EMPTY_RESULTS = {
    "read": "{path} is empty.",
    "list": "{folder} is empty.",
    "search": "{quoted} was not found in {folder}.",
    "run": "{command} printed nothing.",
}
_NOTICE = re.compile(
    r"\n\n\[[^\n]*?\b(?:lines (?P<first>\d+)-\d+ of (?P<all>\d+)|of line (?P<last>\d+)"
    r"|(?P<more>\d+) more (?:entries|lines))\b[^\n]*\]\s*\Z"
)
_NOTHING = re.compile(
    r"\s*(?:\((?:no output|empty directory|empty file)\)|no matches found\.?)?\s*\Z", re.IGNORECASE
)
_NO_MATCH = re.compile(r"[^\n:]*(?:\n+[^\n:]*)?\bexit\w*\b[^\n:]*\b1\b[^\n:]*\s*\Z", re.IGNORECASE)


class PlannedCall(NamedTuple):
    """A tool and the arguments it is to get."""

    name: str
    args: dict[str, str]


def plan_call(step: Step, tools: frozenset[str]) -> PlannedCall | None:
    """Return the call that does `step` with these tools; None where none of them can."""
    call = _build_call(step, tools)
    return call if call and call.name in tools else None


def _build_call(step: Step, tools: frozenset[str]) -> PlannedCall | None:
    if step.verb not in _CALLS or step.answer is not None:
        return None
    if step.verb == "search" and "grep" not in tools:
        command = shlex.join(("grep", "-rnI", "--", step.text, step.path))
        return PlannedCall("bash", {"command": command})
    name, fields = _CALLS[step.verb]
    return PlannedCall(name, {key: getattr(step, field) for key, field in fields.items()})


def _list_remaining_steps(
    steps: Sequence[Step], tools: frozenset[str], done: Sequence[PlannedCall]
) -> tuple[Step, ...]:
    """Return the steps from the first of the calls that were made on; none where they do not fit.

    So a request continues even if a summary has replaced its first results.
    """
    planned = [
        (place, call) for place, step in enumerate(steps) if (call := plan_call(step, tools))
    ]
    for begin, (place, _) in enumerate(planned):
        if done and [call for _, call in planned[begin : begin + len(done)]] == [*done]:
            return tuple(steps[place:])
    return ()


def _iter_sentences(
    steps: Iterable[Step], tools: frozenset[str], results: Iterator[Message]
) -> Iterator[str]:
    """Yield what came back, a sentence or two for each step."""
    for step in steps:
        if step.verb == "think":
            yield f"I thought about {step.text}." if step.text else "I thought."
        elif step.verb == "resume":
            yield "I continue from the summary: the rest of the request has to be asked again."
        elif step.verb == "remember":
            yield f"Noted: {clip_text(step.text, _LONG)}"
        elif step.verb == "unknown":
            yield f"I did not understand {_quote_text(step.text)}."
        elif call := plan_call(step, tools):
            yield _report_outcome(step, call.name, next(results, None))
        elif step.verb == "recall":
            yield step.answer or report_nothing_found(step.text)
        elif call := _build_call(step, tools):
            words = clip_text(" ".join(call.args.values()), _SHORT)
            yield f"I could not call {call.name} ({words}): there is no such tool here."


def _report_outcome(step: Step, tool: str, result: Message | None) -> str:
    if result is None:
        return f"{tool} gave no result."
    text = join_texts(result.content)
    if step.verb == "search" and _NO_MATCH.match(text):
        text = ""  # grep answers 1 when nothing matches, which is no failure
    elif result.is_error:
        return f"{tool} failed: {clip_text(text, _LONG) or 'it did not say why'}"
    if step.verb == "write":
        return f"{step.path} is written."
    if step.verb == "replace":
        return f"{step.path} is changed: {_quote_text(step.text)} is now {_quote_text(step.new)}."
    if step.verb == "recall":
        return answer_from_search(step.text, text)
    return _describe_output(step, text)


def _describe_output(step: Step, text: str) -> str:
    """Return what was read, listed, found or printed: how much, and how it begins."""
    lines, count, from_start = _parse_output(text)
    folder = "this folder" if step.path == "." else step.path
    quoted, command = _quote_text(step.text), f"`{clip_text(step.text, _SHORT)}`"
    first = clip_text(next(filter(str.strip, lines), ""), _SHORT)
    counted = format_count(count, "line")
    if not count:
        summary = _EMPTY_RESULTS[step.verb].format(
            path=step.path, folder=folder, quoted=quoted, command=command
        )
    elif step.verb == "read":
        summary = f"{step.path} has {counted}; it begins: {first}"
    elif step.verb == "list":
        names, rest = lines[:_MAX_NAMES], count - len(lines[:_MAX_NAMES])
        more = f" and {rest} more" if rest else ""
        entries = format_count(count, "entry")
        summary = f"{folder} holds {entries}: {', '.join(names)}{more}."
    elif step.verb == "search":
        which = "the first" if from_start else "one of them"
        summary = f"{quoted} was found in {counted}; {which}: {first}"
    elif count == 1:
        summary = f"{command} printed: {clip_text(lines[0], _LONG)}"
    else:
        begin = f"the first: {first}; " if from_start else ""
        last = clip_text(lines[-1], _SHORT)
        summary = f"{command} printed {counted}; {begin}the last: {last}"
    return f"This{summary[4:]}" if summary.startswith("this folder") else summary


def _parse_output(text: str) -> tuple[list[str], int, bool]:
    """Return the lines a tool gave, how many there are in all, and whether the first is there.

    A notice at the end that there are more is not one of them.
    """
    if _NOTHING.match(text):
        return [], 0, True
    notice = _NOTICE.search(text)
    lines = (text[: notice.start()] if notice else text).rstrip("\n").split("\n")
    if notice is None or notice["more"]:
        return lines, len(lines) + int(notice["more"] if notice else 0), True
    return lines, int(notice["all"] or notice["last"]), notice["first"] == "1"


def _quote_text(text: str) -> str:
    return f"“{clip_text(text, _SHORT)}”"


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
    tools = frozenset(tool.name for tool in request.tools if request.tool_choice.mode != "none")
    yield StreamStart(request.model)
    thoughts: list[str] = []
    call, size = None, None
    if request.system.startswith(SUMMARISER):
        text, size = _summarize_transcript(prompt), _SUMMARY_PIECE
    else:
        steps = _plan_steps(request, prompt, tools)
        thoughts, call = _plan_next_call(steps, tools, len(results))
        if call:
            text = msgspec.json.encode(call.args).decode()
        elif all(step.verb == "unknown" for step in steps):
            text = HELP
        else:
            text = "\n".join(_iter_sentences(steps, tools, iter(results)))
    for index, thought in enumerate(thoughts):
        yield from iter_thinking_events(index, thought)
    if call:
        yield from iter_call_events(len(thoughts), call.name, f"offline_{len(results)}", text)
    else:
        yield from iter_text_events(len(thoughts), text, size)
    yield Finish("tool_calls" if call else "stop", count_usage(request, [*thoughts, text]))


def _summarize_transcript(prompt: str) -> str:
    """Return a summariser's answer; the help says only that there was nothing to answer."""
    pieces = (
        msgspec.structs.replace(piece, text="I did not understand that.")
        if piece.role == "assistant" and piece.text.startswith(HELP_BEGINS)
        else piece
        for piece in parse_transcript(prompt)
    )
    summary = summarize_pieces(pieces, find_focus(prompt), find_length(prompt) or LIMIT)
    return render_summary(summary)


def _plan_steps(request: Request, prompt: str, tools: frozenset[str]) -> tuple[Step, ...]:
    """Return what the newest request asks for; what is left of it, where a summary replaced it."""
    summary = find_summary(prompt)
    if summary is None:
        return recall_answers(
            parse_request(prompt), prompt, collect_statements(request.messages, prompt), tools
        )
    steps = parse_request(summary.requests[-1]) if summary.requests else ()
    past_calls = [
        _decode_call(call)
        for message in request.messages
        for call in select_tool_calls(message.content)
    ]
    return _list_remaining_steps(steps, tools, past_calls) or (Step("resume"),)


def _plan_next_call(
    steps: Iterable[Step], tools: frozenset[str], done: int
) -> tuple[list[str], PlannedCall | None]:
    """Return the thoughts before the next call, and the call after `done` ones; None at the end."""
    thoughts: list[str] = []
    for step in steps:
        if step.verb == "think":
            about = step.text or "what was asked"
            thoughts.append(
                f"I am to think about {about}. I follow rules, so I note it and do the next step."
            )
        elif call := plan_call(step, tools):
            # each result so far is of one call, in order: pass over as many calls
            if not done:
                return thoughts, call
            thoughts, done = [], done - 1
    return thoughts, None


def _decode_call(call: ToolCall) -> PlannedCall:
    try:
        args = msgspec.json.decode(bytes(call.args) or b"{}", type=dict[str, str])
    except msgspec.DecodeError:
        args = {}
    return PlannedCall(call.name, args)


def _find_newest_request(messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """Return the newest user message's last text, and the tool results that came after it.

    A file or an output that a person gave along is not their words, unless there are no others.
    """
    after = len(messages)
    while after and messages[after - 1].role != "user":
        after -= 1
    results = tuple(message for message in messages[after:] if message.role == "tool")
    begin = after
    while begin and messages[begin - 1].role == "user":
        begin -= 1
    blocks = [block for message in messages[begin:after] for block in message.content]
    texts = [block.text for block in blocks if isinstance(block, Text) and block.text.strip()]
    words = [text for text in texts if not text.startswith(_GIVEN_ALONG)] or texts
    return (words[-1] if words else ""), results


_GIVEN_ALONG = ("<file path=", "<folder path=", "[Picture ", "The user ran this command:\n")
"""How texts begin that are no words of the person: they may hold lines that begin with $."""
