"""A title for a new session, made from its first prompt by a cheap model."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from tape.blocks import Text
from tape.entries import SideUsage
from tape.text import fitted, single
from tape.view import Message

from ..errors import ModelError
from ..llm.accumulate import StreamAccumulator
from ..llm.types import Request

if TYPE_CHECKING:
    from .parts import Model, Parts

LONGEST = 60
"""Maximum columns of a title."""
_SYSTEM = (
    "You name conversations. Answer with a title of three to six words for the one that begins "
    "with these words, in their language: no quotes, no full stop, nothing else."
)
_SHOWN = 2_000
"""Maximum characters of the prompt that the model sees."""
_SECONDS = 15
_TOKENS = 2_000
"""Maximum tokens of a title, and of the model's thinking before it."""


async def name_session(parts: Parts, model: Model, prompt: str) -> str | None:
    """Give the tape a title, unless it has one; return it, or None if none was set.

    A failure or timeout of the model is ignored.
    """
    tape = parts.record.tape
    if tape.refs().title is not None:
        return None
    try:
        async with asyncio.timeout(_SECONDS):
            said = await _asked(parts, model, prompt)
    except (ModelError, TimeoutError):
        return None
    title = fitted(single(said).strip(" \"'.。“”#*"), LONGEST)
    if not title or tape.refs().title is not None:
        return None
    tape.rename(title)
    return title


async def _asked(parts: Parts, model: Model, prompt: str) -> str:
    request = Request(
        model=model.id,
        messages=(Message("user", (Text(prompt[:_SHOWN]),)),),
        system=_SYSTEM,
        max_tokens=_TOKENS,
    )
    answer = StreamAccumulator(parts.call_prefix())
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            answer.process(event)
    response = answer.response()
    cost = model.cost(response.usage)
    parts.pressure.count(response.usage, cost)
    parts.record.append(SideUsage("title", model.provider, model.id, response.usage, cost=cost))
    return response.text
