"""What the sources of tools, such as MCP servers, bring to a run; one that fails ends nothing."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ..policy.decision import format_error_line
from . import events
from .documents import AttachedDocument, record_documents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..tools.registry import ToolRegistry
    from .events import Emit
    from .recorder import Recorder
    from .setup import ToolSource

T = TypeVar("T")


async def update_tools(
    sources: Sequence[ToolSource], tools: ToolRegistry, emit: Emit, *, has_person: bool
) -> None:
    """Let the sources of tools bring theirs up to date, and say what is wrong with them."""
    for source in sources:
        offer = partial(source.offer, tools, has_person=has_person)
        for remark in await _ask_source(source, offer, emit) or ():
            emit(events.Warn(str(remark)))


async def _ask_source(source: ToolSource, ask: Callable[[], Awaitable[T]], emit: Emit) -> T | None:
    """Return what a source of tools answers; one that fails is named, and ends nothing."""
    try:
        return await ask()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - code of others
        name = type(source).__name__
        failure = format_error_line(error)
        emit(events.Warn(f"the source of tools {name} failed: {failure}"))
        return None


async def close_sources(sources: Sequence[ToolSource], emit: Emit) -> None:
    """Close the sources of tools, each also after another has failed."""
    for source in sources:
        await _ask_source(source, source.close, emit)


async def attach_mentions(
    sources: Sequence[ToolSource], recorder: Recorder, prompt: str, emit: Emit
) -> None:
    """Give the model what a prompt names of the sources of tools."""
    for source in sources:
        read = await _ask_source(source, partial(source.read_mentions, prompt), emit)
        if read is None:
            continue
        documents, remarks = read
        record_documents(recorder, [AttachedDocument(*document) for document in documents])
        for remark in remarks:
            emit(events.Warn(remark))
