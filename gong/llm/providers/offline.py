"""The model `offline/rules`: plain requests answered by real tool calls, without network or key.

It looks at nothing but the request: the newest user message says what to do, the tool messages
after it how far that has come. So it keeps no state, and the same request always gives the same
answer.
"""

from __future__ import annotations

from asyncio import sleep
from typing import TYPE_CHECKING

import msgspec

from tape.blocks import Text, tool_calls
from tape.summaries import summary_text

from ..digest import LIMIT, SUMMARISER, Piece, digest, focus_of, length_of, read
from ..types import Finish, StreamEvent, StreamStart
from .memory import HELP_BEGINS, recalled, said_before, summary_in
from .plan import Call, left, next_move, report
from .rules import parse
from .steps import Summarised
from .words import call_events, text_events, thinking_events, usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from tape.blocks import ToolCall
    from tape.view import Message

    from ..types import Request
    from .steps import Step, Think


class OfflineProvider:
    """Answers by rules, one tool call an answer, so that each result is in before the next call."""

    name = "offline"
    api = "rules"
    endpoint = "offline"

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with the next tool call or, after the last, with what came back."""
        for event in _answer(request):
            await sleep(0)  # screens draw and a cancel comes through between pieces
            yield event

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _answer(request: Request) -> Iterator[StreamEvent]:
    prompt, results = _newest_request(request.messages)
    if request.system.startswith(SUMMARISER):
        pieces = map(_without_help, read(prompt))
        summary = digest(pieces, focus_of(prompt), length_of(prompt) or LIMIT)
        yield from _said(request, summary_text(summary))
        return
    steps, tools = _steps(request, prompt), _tools(request)
    thoughts, call = next_move(steps, tools, len(results))
    thinking = [_thought(thought) for thought in thoughts]
    yield StreamStart(request.model)
    for index, thought in enumerate(thinking):
        yield from thinking_events(index, thought)
    if call:
        said = msgspec.json.encode(call.args).decode()
        yield from call_events(len(thinking), call.name, f"offline_{len(results)}", said)
    else:
        said = report(steps, tools, results)
        yield from text_events(len(thinking), said)
    yield Finish("tool_calls" if call else "stop", usage(request, [*thinking, said]))


def _without_help(piece: Piece) -> Piece:
    """Return a piece of a transcript; of the help, only that there was nothing to answer."""
    is_help = piece.role == "assistant" and piece.text.startswith(HELP_BEGINS)
    return Piece("assistant", "I did not understand that.") if is_help else piece


def _said(request: Request, text: str) -> Iterator[StreamEvent]:
    yield StreamStart(request.model)
    yield from text_events(0, text)
    yield Finish("stop", usage(request, [text]))


def _steps(request: Request, prompt: str) -> tuple[Step, ...]:
    """Return what the newest request asks for; what is left of it, where a summary replaced it."""
    summary, tools = summary_in(prompt), _tools(request)
    if summary is None:
        return recalled(parse(prompt), prompt, said_before(request.messages, prompt), tools)
    steps = parse(summary.requests[-1]) if summary.requests else ()
    made = [_call(call) for message in request.messages for call in tool_calls(message.content)]
    return left(steps, tools, made) or (Summarised(),)


def _call(call: ToolCall) -> Call:
    try:
        return Call(call.name, msgspec.json.decode(bytes(call.args) or b"{}", type=dict[str, str]))
    except msgspec.DecodeError:
        return Call(call.name, {})


def _newest_request(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """Return the newest user message's last text, and the tool results that came after it."""
    after = len(messages)
    while after and messages[after - 1].role != "user":
        after -= 1
    results = tuple(message for message in messages[after:] if message.role == "tool")
    return (_last_text(messages[after - 1]) if after else ""), results


def _last_text(message: Message) -> str:
    """Return the newest words of a message that may have been merged from several."""
    texts = [block.text for block in message.content if isinstance(block, Text)]
    return next((text for text in reversed(texts) if text.strip()), "")


def _tools(request: Request) -> frozenset[str]:
    if request.tool_choice.mode == "none":
        return frozenset()
    return frozenset(tool.name for tool in request.tools)


def _thought(thought: Think) -> str:
    about = thought.about or "what was asked"
    return f"I am to think about {about}. I follow rules, so I note it and go on to the next step."
