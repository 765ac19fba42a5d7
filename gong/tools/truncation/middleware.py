"""The truncation service between a tool and its reader: what no tool cut itself is cut here.

A result says of itself that it is done by `truncated` in its details, true or false, or by a `full`
beside its content; so no result ever carries two notices.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tape.blocks import Text, join_texts

from ..tool import RemovedOutput
from .storage import find_blob
from .values import CutText, TruncationOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tool import ToolResult
    from .service import TruncationService
    from .values import TruncationContext

SKIPPED_TOOLS = frozenset({"web_fetch"})
"""Tools whose results are left as they are: they page by themselves."""


@dataclass(frozen=True, slots=True)
class TruncationMiddleware:
    """Cuts results by a service."""

    service: TruncationService
    skip_tools: frozenset[str] = SKIPPED_TOOLS
    should_truncate: Callable[[str, ToolResult], bool | TruncationOptions] = lambda _name, _result: (
        True
    )
    """Given a tool's name and its result: False leaves it, options are those of this call."""

    async def __call__(self, result: ToolResult, context: TruncationContext) -> ToolResult:
        """Return the result with its texts as one, cut where that is too long."""
        text = join_texts(result.content)
        if not text or is_already_cut(result) or context.tool_name in self.skip_tools:
            return result
        decision = self.should_truncate(context.tool_name, result)
        if decision is False:
            return result
        if isinstance(decision, TruncationOptions):
            context = dataclasses.replace(context, options=decision)
        cut = await self.service.output(text, context)
        if not isinstance(cut, CutText):
            return result
        others = tuple(block for block in result.content if not isinstance(block, Text))
        removed = RemovedOutput(
            truncation_path=cut.output_path,
            truncation_removed_lines=cut.removed_lines,
            truncation_removed_bytes=cut.removed_bytes,
        )
        return replace(
            result,
            content=(Text(cut.content), *others),
            full=text,
            kept=await find_blob(context.storage, cut.output_path),
            removed=removed,
        )


def is_already_cut(result: ToolResult) -> bool:
    """Whether the tool has cut its text itself, or says that it need not be cut."""
    said = getattr(result.details, "truncated", None) is not None
    return said or result.full is not None or result.removed is not None
