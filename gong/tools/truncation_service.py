"""The truncation service: cuts a long text, saves the full text, adds a notice, sends an event.

If a step fails, the text is returned unchanged. What each call is cut by, later ones win:

    settings for all tools < what the tool declares < settings for the tool < options of the call
"""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, fields, replace

from ..setting_values import check_names, check_value
from ..tool_settings import TruncationOverride, TruncationSettings
from .limits import count_bytes
from .output_storage import (
    FolderStorage,
    OutputStorage,
    TruncationContext,
    TruncationOptions,
    build_temporary_path,
)
from .truncation import STRATEGIES, TruncationEvent, TruncationStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class WholeText(Struct, frozen=True):
    """A text that was not cut."""

    content: str
    truncated: Literal[False] = False


class CutText(Struct, frozen=True):
    """A text that was cut: what is left with a notice, and where the whole is.

    Either lines or bytes are counted, whichever limit was met.
    """

    content: str
    output_path: str
    removed_lines: int | None = None
    removed_bytes: int | None = None
    truncated: Literal[True] = True


TOOL_DEFAULTS: Mapping[str, TruncationOverride] = {
    "bash": TruncationOverride(direction="tail", max_lines=500),
    "grep": TruncationOverride(max_lines=3000),
    "read": TruncationOverride(enabled=False),
}
"""What is cut differently from the start: logs show their end, read pages by itself."""


def _collect_set_fields(change: TruncationOverride | TruncationOptions | None) -> dict[str, Any]:
    set_fields = {} if change is None else asdict(change)
    return {name: value for name, value in set_fields.items() if value is not None}


_NOTICE = "The tool call succeeded but the output was truncated. Full output saved to: {path}"
_SEARCH_TOOLS = ("Grep", "grep", "grep_search")
_READ_TOOLS = ("Read", "read", "read_file")
_SHELL_TOOLS = ("Bash", "bash", "shell", "run_shell_command")
"""Names of these tools in model families."""


def _describe_way_to_rest(tools: Sequence[str] | None) -> str:
    """Return how the model sees more of a text that was saved, by tools that it has.

    Without a session these are named as the contract does.
    """
    names = (_SEARCH_TOOLS, _READ_TOOLS, _SHELL_TOOLS)
    search, read, shell = (
        next((one for one in family if tools is None or one in tools), None) for family in names
    )
    ways = []
    if search:
        ways.append(f"{search} to search the full content")
    if read:
        ways.append(f"{read} with offset/limit to view specific sections")
    if not ways and shell:
        ways.append(f"{shell} with grep or sed -n to view specific sections")
    return f"Use {' or '.join(ways)}." if ways else ""


class TruncationService:
    """Cuts texts by a configuration for all, one for each tool, and one for each call.

    Later ones win: for all, what the tool declares, what was set for the tool, the call's options.
    What `config.tools` sets for a tool goes before `tools`, field by field.
    """

    def __init__(
        self,
        config: TruncationSettings = TruncationSettings(),
        tools: Mapping[str, TruncationOverride] = TOOL_DEFAULTS,
        *,
        on_event: Callable[[TruncationEvent], None] = lambda _: None,
        storage: OutputStorage | None = None,
        strategy: TruncationStrategy | None = None,
    ) -> None:
        self._config = config
        self._tools = dict(tools)
        for name, change in config.tools.items():
            usual = tools.get(name, TruncationOverride())
            self._tools[name] = replace(usual, **_collect_set_fields(change))
        self._on_event = on_event
        self._storage = storage
        self._strategy = strategy

    async def output(self, content: str, context: TruncationContext) -> WholeText | CutText:
        """Return the text, cut if it is over a limit and cutting is enabled for it."""
        config = self.choose_settings(context)
        strategy = self._strategy or STRATEGIES[config.strategy]
        try:
            if not config.enabled or not strategy.needs_truncation(content, config):
                self._emit_event("skipped", content, content, context)
                return WholeText(content)
            remaining = strategy.truncate(content, config)
            storage = self._storage or context.storage or self._open_own_storage()
            path = await storage.save(content, context)
        except Exception as error:  # noqa: BLE001 - whatever fails, the text is more than the cut
            reason = str(error) or type(error).__name__
            self._emit_event("error", content, content, context, error=reason)
            return WholeText(content)
        removed = f"{remaining.removed_lines} lines"
        if remaining.removed_bytes is not None:
            removed = f"{remaining.removed_bytes} bytes"
        hint = "\n".join(
            filter(None, (_NOTICE.format(path=path), _describe_way_to_rest(context.tools)))
        )
        notice = f"...{removed} truncated...\n\n{hint}"
        parts = (
            (remaining.content, notice)
            if config.direction == "head"
            else (notice, remaining.content)
        )
        text = "\n\n".join(parts)
        self._emit_event("truncated", content, text, context, output_path=path)
        return CutText(text, path, remaining.removed_lines, remaining.removed_bytes)

    def choose_settings(self, context: TruncationContext) -> TruncationSettings:
        """Return what a text is cut by."""
        changes = _collect_set_fields(context.declared)
        changes |= _collect_set_fields(self._tools.get(context.tool_name))
        changes |= _collect_set_fields(context.options)
        skip = changes.pop("skip", None)
        if skip is not None:
            changes["enabled"] = not skip
        return replace(self._config, **changes)

    async def cleanup(self) -> int:
        """Delete saved files that are too old; return how many were deleted."""
        return await self._open_own_storage().cleanup(self._config.retention_days)

    def update_config(self, **changes: Any) -> None:
        """Change fields of the configuration for all tools, from the next text on.

        Raises ConfigurationError for an unknown field, and for a value of a wrong type or range.
        """
        kinds = {field.name: field.type for field in fields(TruncationSettings)}
        check_names(changes, [*kinds])
        for name, value in changes.items():
            check_value(name, value, kinds[name])
        self._config = replace(self._config, **changes)

    def set_tool_config(self, tool_name: str, change: TruncationOverride) -> None:
        """Replace the settings of one tool."""
        self._tools[tool_name] = change

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
        event = TruncationEvent(kind, context.tool_name, *sizes, now, output_path, error)
        self._on_event(event)
        context.on_event(event)
