"""The values of the truncation service: configuration, context, results, events (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..settings import Direction, TruncationOverride, TruncationSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .storage import OutputStorage

__all__ = [
    "Direction",
    "TruncationOverride",
    "TruncationSettings",
]  # what is set stands in `settings`


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
