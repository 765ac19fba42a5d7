"""A title for a new session, made from its first prompt by a cheap model."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from tape.blocks import Text
from tape.entries import SideUsage
from tape.text import shorten_to_width, to_single_line
from tape.view import Message

from ..errors import ModelError
from ..llm.accumulate import StreamAccumulator
from ..llm.types import Request

if TYPE_CHECKING:
    from .parts import AgentModel, RunContext

TITLE_COLUMNS = 60
"""Maximum columns of a title."""
_TITLE_SYSTEM = (
    "You name conversations. Answer with a title of three to six words for the one that begins "
    "with these words, in their language: no quotes, no full stop, nothing else."
)
_TITLE_PROMPT_CHARS = 2_000
"""Maximum characters of the prompt that the model sees."""
_TITLE_SECONDS = 15
_TITLE_TOKENS = 2_000
"""Maximum tokens of a title, and of the model's thinking before it."""


async def name_session(parts: RunContext, model: AgentModel, prompt: str) -> str | None:
    """Give the tape a title, unless it has one; return it, or None if none was set.

    A failure or timeout of the model is ignored.
    """
    tape = parts.record.tape
    if tape.refs().title is not None:
        return None
    try:
        async with asyncio.timeout(_TITLE_SECONDS):
            said = await _request_title(parts, model, prompt)
    except (ModelError, TimeoutError):
        return None
    title = shorten_to_width(to_single_line(said).strip(" \"'.。“”#*"), TITLE_COLUMNS)
    if not title or tape.refs().title is not None:
        return None
    tape.rename(title)
    return title


async def _request_title(parts: RunContext, model: AgentModel, prompt: str) -> str:
    request = Request(
        model=model.id,
        messages=(Message("user", (Text(prompt[:_TITLE_PROMPT_CHARS]),)),),
        system=_TITLE_SYSTEM,
        max_tokens=_TITLE_TOKENS,
    )
    answer = StreamAccumulator(parts.call_prefix())
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            answer.process(event)
    response = answer.response()
    cost = model.cost(response.usage)
    parts.pressure.count_usage(response.usage, cost)
    parts.record.append(SideUsage("title", model.provider, model.id, response.usage, cost=cost))
    return response.text
