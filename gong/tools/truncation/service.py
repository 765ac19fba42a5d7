"""The truncation service: cuts a long text, saves the full text, adds a notice, sends an event.

If a step fails, the text is returned unchanged.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from .storage import FolderStorage, OutputStorage
from .strategy import KeptText, LinesAndBytesStrategy, TruncationStrategy, count_bytes
from .values import (
    TOOL_DEFAULTS,
    CutText,
    TruncationEvent,
    TruncationSettings,
    WholeText,
    apply_options,
    apply_override,
    merge_tool_overrides,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .values import Direction, TruncationContext, TruncationOverride


class TruncationService:
    """Cuts texts by a configuration for all, one for each tool, and one for each call.

    Later ones win: for all, what the tool declares, what was set for the tool, the call's options.
    What `config.tools` sets for a tool goes before `tools`, field by field.
    """

    def __init__(
        self,
        config: TruncationSettings = TruncationSettings(),  # noqa: B008 (a frozen value)
        tools: Mapping[str, TruncationOverride] = TOOL_DEFAULTS,
        *,
        on_event: Callable[[TruncationEvent], None] = lambda _: None,
        storage: OutputStorage | None = None,
        strategy: TruncationStrategy | None = None,
    ) -> None:
        self._config = config
        self._tools = merge_tool_overrides(tools, config.tools)
        self._on_event = on_event
        self._storage = storage
        self._strategy: TruncationStrategy = strategy or LinesAndBytesStrategy()

    async def output(self, content: str, context: TruncationContext) -> WholeText | CutText:
        """Return the text, cut if it is over a limit and cutting is enabled for it."""
        config = self._choose_config(context)
        try:
            if not config.enabled or not self._strategy.needs_truncation(content, config):
                self._emit_event("skipped", content, content, context)
                return WholeText(content)
            kept = self._strategy.truncate(content, config)
            path = await (context.storage or self._open_own_storage()).save(
                content, context.tool_name
            )
        except Exception as error:  # noqa: BLE001 - whatever fails, the text is more than the cut
            said = str(error) or type(error).__name__
            self._emit_event("error", content, content, context, error=said)
            return WholeText(content)
        shown = _add_notice(kept, path, config.direction)
        self._emit_event("truncated", content, shown, context, output_path=path)
        return CutText(shown, path, kept.removed_lines, kept.removed_bytes)

    async def cleanup(self) -> int:
        """Delete saved files that are too old; return how many were deleted."""
        return await self._open_own_storage().cleanup(self._config.retention_days)

    def update_config(self, **changes: Any) -> None:
        """Change fields of the configuration for all tools, from the next text on."""
        self._config = replace(self._config, **changes)

    def set_tool_config(self, tool_name: str, change: TruncationOverride) -> None:
        """Replace the settings of one tool."""
        self._tools[tool_name] = change

    def _choose_config(self, context: TruncationContext) -> TruncationSettings:
        config = apply_override(self._config, context.declared)
        config = apply_override(config, self._tools.get(context.tool_name))
        return apply_options(config, context.options)

    def _open_own_storage(self) -> OutputStorage:
        if self._storage is not None:
            return self._storage
        folder = self._config.storage_dir or build_temporary_path(tempfile.gettempdir())
        return FolderStorage(folder, self._config.retention_days)

    def _emit_event(
        self,
        kind: Literal["truncated", "skipped", "error"],
        before: str,
        after: str,
        context: TruncationContext,
        *,
        output_path: str | None = None,
        error: str | None = None,
    ) -> None:
        now = time.time_ns() // 1_000_000
        sizes = count_bytes(before), count_bytes(after)
        self._on_event(TruncationEvent(kind, context.tool_name, *sizes, now, output_path, error))


def build_temporary_path(directory: str) -> str:
    """Return this user's folder of saved files among temporary ones."""
    return str(Path(directory) / f"gong-output-{os.geteuid()}")


def _add_notice(kept: KeptText, path: str, direction: Direction) -> str:
    if kept.removed_bytes is None:
        removed = f"{kept.removed_lines} lines"
    else:
        removed = f"{kept.removed_bytes} bytes"
    notice = (
        f"...{removed} truncated...\n\n"
        f"The tool call succeeded but the output was truncated. Full output saved to: {path}\n"
        "Use Grep to search the full content or Read with offset/limit to view specific sections."
    )
    if direction == "head":
        return f"{kept.content}\n\n{notice}"
    return f"{notice}\n\n{kept.content}"
