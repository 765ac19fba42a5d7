"""The values of the truncation service: configuration, context, results, events (pure).

Strategies of the truncation service: whether a text is too long, and what of it stays (pure).

The truncation service: cuts a long text, saves the full text, adds a notice, sends an event.

If a step fails, the text is returned unchanged.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import asdict, replace

from .limits import (
    CONTINUATION,
    Direction,
    TruncationOverride,
    TruncationSettings,
    encode_text,
    truncate_head,
    truncate_tail,
)
from .output_storage import FolderStorage, OutputStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


__all__ = ["Direction", "TruncationOverride", "TruncationSettings"]  # settings are in `settings`


class TruncationOptions(Struct, frozen=True):
    """What one call sets differently; `skip` turns cutting off, or on for a tool without it."""

    max_lines: int | None = None
    max_bytes: int | None = None
    direction: Direction | None = None
    skip: bool | None = None


@dataclass(frozen=True, slots=True)
class TruncationContext:
    """Whose result it is."""

    tool_name: str
    session_id: str | None = None
    message_id: str | None = None
    options: TruncationOptions | None = None
    declared: TruncationOverride | None = None
    """What the tool says of itself; the user's word on that tool goes before it."""
    storage: OutputStorage | None = None
    """Where to keep the whole instead of in the service's own storage: the session's tape."""


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


class TruncationEvent(Struct, frozen=True):
    """What became of one text; sizes in bytes, the time in milliseconds since 1970."""

    type: Literal["truncated", "skipped", "error"]
    tool_name: str
    original_size: int
    truncated_size: int
    timestamp: int
    output_path: str | None = None
    error: str | None = None


TOOL_DEFAULTS: Mapping[str, TruncationOverride] = {
    "bash": TruncationOverride(direction="tail", max_lines=500),
    "grep": TruncationOverride(max_lines=3000),
    "read": TruncationOverride(enabled=False),
}
"""What is cut differently from the start: logs show their end, read pages by itself."""


def apply_override(
    base: TruncationSettings, change: TruncationOverride | None
) -> TruncationSettings:
    """Return the configuration with what `change` sets."""
    return replace(base, **_collect_set_fields(change)) if change else base


def merge_tool_overrides(
    usual: Mapping[str, TruncationOverride], changes: Mapping[str, TruncationOverride]
) -> dict[str, TruncationOverride]:
    """Return what holds for single tools: the usual, but for what `changes` sets."""
    changed = {
        name: replace(usual.get(name, TruncationOverride()), **_collect_set_fields(one))
        for name, one in changes.items()
    }
    return {**usual, **changed}


def apply_options(
    base: TruncationSettings, options: TruncationOptions | None
) -> TruncationSettings:
    """Return the configuration with what one call sets."""
    if options is None:
        return base
    given = _collect_set_fields(options)
    skip = given.pop("skip", None)
    if skip is not None:
        given["enabled"] = not skip
    return replace(base, **given)


def _collect_set_fields(change: TruncationOverride | TruncationOptions) -> dict[str, Any]:
    return {name: value for name, value in asdict(change).items() if value is not None}


class KeptText(NamedTuple):
    """What is left of a text, and how much went: lines or bytes, never both."""

    content: str
    removed_lines: int | None = None
    removed_bytes: int | None = None


class TruncationStrategy(Protocol):
    """A way of cutting."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether the text is over a limit."""
        ...

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Cut a text that is."""
        ...


def count_lines(content: str) -> int:
    """Return the number of lines; the end of the last one opens no other."""
    return content.removesuffix("\n").count("\n") + 1


def count_bytes(content: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(encode_text(content))


class LinesAndBytesStrategy:
    """Cuts at whichever limit comes first: whole lines, or a part of one that is too long alone."""

    name = "default"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many lines or bytes."""
        too_many = count_lines(content) > config.max_lines
        return too_many or count_bytes(content) > config.max_bytes

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep the end that the configuration names; count bytes when there were too many."""
        total = count_bytes(content)
        cut = truncate_tail if config.direction == "tail" else truncate_head
        left = cut(content.removesuffix("\n"), config.max_lines, config.max_bytes)
        kept = left.content
        if left.first_line_exceeds_limit:
            kept = _take_first_bytes(content, config.max_bytes)
        if left.truncated_by == "bytes" or total > config.max_bytes:
            return KeptText(kept, removed_bytes=total - count_bytes(kept))
        return KeptText(kept, removed_lines=left.total_lines - left.output_lines)


class JsonItemsStrategy:
    """Keeps whole items of a JSON array, a line of the limit each; all else as by default.

    What is left of an array is one again, so that a program can read it.
    """

    name = "json-array"

    def __init__(self) -> None:
        self._otherwise = LinesAndBytesStrategy()

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many items, or too many lines or bytes in all."""
        items = _parse_items(content)
        too_many = items is not None and len(items) > config.max_lines
        return too_many or self._otherwise.needs_truncation(content, config)

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep items as long as they fit; removed lines are removed items."""
        items = _parse_items(content)
        if items is None:
            return self._otherwise.truncate(content, config)
        tail = config.direction == "tail"
        count = _count_fitting_items(items[::-1] if tail else items, config)
        if not count:
            return self._otherwise.truncate(content, config)
        kept = items[-count:] if tail else items[:count]
        return KeptText(_dump_items(kept), removed_lines=len(items) - count)


def _parse_items(content: str) -> list[Any] | None:
    if not content.lstrip().startswith("["):
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None  # no JSON: text like any other
    return value if isinstance(value, list) else None


def _count_fitting_items(items: list[Any], config: TruncationSettings) -> int:
    """Return how many of the first items stay within both limits."""
    size, count = count_bytes("[\n]"), 0
    for item in items[: config.max_lines]:
        size += count_bytes(_dump_items([item])) - count_bytes("[]")
        if size > config.max_bytes:
            break
        count += 1
    return count


def _dump_items(items: list[Any]) -> str:
    return json.dumps(items, indent=2, ensure_ascii=False)


def _take_first_bytes(content: str, max_bytes: int) -> str:
    data = encode_text(content)
    end = min(max_bytes, len(data))
    while 0 < end < len(data) and data[end] & 0b1100_0000 == CONTINUATION:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


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
