"""Tools that act on the session: tape_search, tape_read and compact.

The first two find and show earlier entries, also those a summary replaced. With compact the model
requests a compaction; the session runs it before the next step.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.clock import shorten_timestamp
from tape.errors import TapeError

from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from .tool import ToolContext


RECALL_LIMIT = 10
SHORT_ID_DIGITS = 12
"""Digits of an id as the model gets to see it."""
_NO_TAPE = "There is no tape here, so there is nothing to search."


class TapeSearchArguments(Struct, frozen=True):
    """What to look for."""

    query: Annotated[str, Meta(description='Words to look for; "in quotes" for a phrase')]
    limit: Annotated[int, Meta(ge=1, le=50, description="Entries to show at most")] = RECALL_LIMIT


class TapeReadArguments(Struct, frozen=True):
    """What to read."""

    entry: Annotated[str, Meta(description="Id of an entry, or its first digits (4 or more)")]
    before: Annotated[int, Meta(ge=0, le=50, description="Entries to show before it")] = 0
    after: Annotated[int, Meta(ge=0, le=50, description="Entries to show after it")] = 0
    offset: Annotated[int, Meta(ge=0, description="Characters of its text to skip")] = 0


class TapeSearchDetails(Struct, frozen=True):
    """What was found."""

    query: str
    matches: int


async def run_tape_search(arguments: TapeSearchArguments, context: ToolContext) -> ToolOutcome:
    """Return the entries that fit best, each with its id and the words around."""
    if context.tape is None:
        return ToolOutcome.error(_NO_TAPE)
    try:
        matches = await asyncio.to_thread(context.tape.search, arguments.query, arguments.limit)
    except TapeError as error:
        return ToolOutcome.error(f"{error}", kind="ValidationError")
    lines = []
    for entry, time, kind, snippet in matches:
        place = f"{entry[:SHORT_ID_DIGITS]}  {shorten_timestamp(time)[:16]}"
        lines.append(f"{place}  {kind}: {snippet}")
    text = "\n".join((*lines, "[tape_read ENTRY shows one in full]"))
    nothing = "No entry of this tape contains these words. Try other words, or fewer."
    return ToolOutcome.from_text(
        text if matches else nothing, TapeSearchDetails(arguments.query, len(matches))
    )


async def run_tape_read(arguments: TapeReadArguments, context: ToolContext) -> ToolOutcome:
    """Return an entry and those around it as text."""
    if context.tape is None:
        return ToolOutcome.error(_NO_TAPE)
    entry, before, after = arguments.entry.strip().lower(), arguments.before, arguments.after
    try:
        text = await asyncio.to_thread(context.tape.read, entry, before, after, arguments.offset)
    except TapeError as error:
        return ToolOutcome.error(f"{error}")
    return ToolOutcome.from_text(text)


TAPE_SEARCH_TOOL = AgentTool(
    name="tape_search",
    description=(
        "Search everything said and done earlier in this session: prompts, answers, tool calls and"
        " their whole output, also what a summary has replaced. Use it before you say that you do"
        " not know or no longer have something, and for exact names, values, errors or decisions"
        " that a summary leaves out. Best first, with ids for tape_read."
    ),
    arguments=TapeSearchArguments,
    run=run_tape_search,
    replay="safe",
)

TAPE_READ_TOOL = AgentTool(
    name="tape_read",
    description=(
        "Read an entry of this session in full, and those around it: a message, or a tool's output"
        " that was cut or replaced by a placeholder. `entry` is an id from tape_search, a summary"
        " or a placeholder. 8000 characters at a time; continue with `offset`."
    ),
    arguments=TapeReadArguments,
    run=run_tape_read,
    replay="safe",
)

RECALL_TOOLS = (TAPE_SEARCH_TOOL, TAPE_READ_TOOL)
"""Both of them."""


class CompactArguments(Struct, frozen=True):
    """Arguments of compact."""

    focus: Annotated[str, Meta(description="What the summary should keep in detail, if set")] = ""


async def run_compact(arguments: CompactArguments, context: ToolContext) -> ToolOutcome:
    """Request a compaction from the session; it runs after this step."""
    if context.request_compaction is None:
        return ToolOutcome.error("There is no conversation here that could be compacted.")
    focus = " ".join(arguments.focus.split())
    context.request_compaction(focus)
    about = f" (focus: {focus})" if focus else ""
    return ToolOutcome.from_text(
        f"Context compaction requested{about}. It runs before the next step."
    )


COMPACT_TOOL = AgentTool(
    name="compact",
    description=(
        "Replace the older part of this conversation by a summary, to make room in the context"
        " window. Use it between two tasks, when what came before matters only in outline. Nothing"
        " is lost: tape_search and tape_read find the covered messages again. It runs before the"
        " next step."
    ),
    arguments=CompactArguments,
    run=run_compact,
    replay="safe",
)
