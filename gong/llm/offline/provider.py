"""The model `offline/rules`: answers plain requests by real tool calls, without network or key.

It reads only the request: the newest user message says what to do, and the tool messages after it
show which steps are done. So it has no state, and the same request always gives the same answer.
"""

from __future__ import annotations

from asyncio import sleep
from typing import TYPE_CHECKING

import msgspec

from tape.blocks import Text, select_tool_calls
from tape.summaries import render_summary

from ..providers.word_events import (
    count_usage,
    iter_call_events,
    iter_text_events,
    iter_thinking_events,
)
from ..transcript import (
    SUMMARISER,
    TranscriptPiece,
    find_focus,
    find_length,
    parse_transcript,
)
from ..types import Finish, StreamEvent, StreamStart
from .memory import HELP_BEGINS, collect_statements, find_summary, recall_answers
from .plan import PlannedCall, list_remaining_steps, plan_next_call, report_results
from .rules import parse_request
from .steps import SummarizedStep
from .summary import LIMIT, summarize_pieces

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from tape.blocks import ToolCall
    from tape.view import Message

    from ..types import Request
    from .steps import Step, ThinkStep


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
