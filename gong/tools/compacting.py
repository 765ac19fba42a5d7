"""compact: the model requests a compaction; the session runs it before the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .tool import AgentTool, ToolResult

if TYPE_CHECKING:
    from .tool import ToolContext


class CompactArguments(Struct, frozen=True):
    """Arguments of compact."""

    focus: Annotated[str, Meta(description="What the summary should keep in detail, if set")] = ""


async def run_compact(arguments: CompactArguments, context: ToolContext) -> ToolResult:
    """Request a compaction from the session; it runs after this step."""
    if context.request_compaction is None:
        return ToolResult.error("There is no conversation here that could be compacted.")
    focus = " ".join(arguments.focus.split())
    context.request_compaction(focus)
    about = f" (focus: {focus})" if focus else ""
    return ToolResult.from_text(
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
