"""Content blocks: what a message is made of, one tagged union for all providers (tape.md §3).

`wire` holds a provider's own data as raw JSON (signature, item id, thought signature). It is stored
byte for byte and sent back only to the same endpoint, api and model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw, Struct, field

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_JSON = Raw(b"")
"""Default of every raw JSON field: empty, and not written."""


class BlobRef(Struct, frozen=True, gc=False):
    """A payload in `blobs/`: SHA-256 as 64 hex digits, size in bytes, first 2 000 characters."""

    hash: str = field(name="$blob")
    bytes: int
    head: str = ""


class _BlockBase(Struct, frozen=True, tag_field="type", omit_defaults=True, gc=False, kw_only=True):
    """The optional fields of every block."""

    wire: Raw = NO_JSON


class Text(_BlockBase, frozen=True, tag="text", gc=False):
    """Plain text."""

    text: str


class Thinking(_BlockBase, frozen=True, tag="thinking", gc=False):
    """A model's reasoning; `redacted` if only its encrypted form is known (in `wire`)."""

    text: str
    redacted: bool = False


class Image(_BlockBase, frozen=True, tag="image", gc=False):
    """A picture; `mime` such as image/png."""

    blob: BlobRef
    mime: str


class Document(_BlockBase, frozen=True, tag="document", gc=False):
    """A file given to the model as a file, for example a PDF."""

    blob: BlobRef
    mime: str
    name: str | None = None


class Audio(_BlockBase, frozen=True, tag="audio", gc=False):
    """An audio recording."""

    blob: BlobRef
    mime: str


class ToolCall(_BlockBase, frozen=True, tag="tool_call", gc=False):
    """A model's request to run a tool: `args` is the JSON object exactly as the model wrote it.

    `args_text` is used instead if that text is not valid JSON or the tool is freeform.
    """

    id: str
    name: str
    args: Raw = NO_JSON
    args_text: str | None = None


class Opaque(_BlockBase, frozen=True, tag="opaque", gc=False):
    """A provider's own block, stored unchanged."""

    raw: Raw


class Unknown(_BlockBase, frozen=True, tag="unknown", gc=False):
    """A block of a type that this version does not know, created on reading: shown, never sent."""

    raw: Raw


Block = Text | Thinking | Image | Document | Audio | ToolCall | Opaque | Unknown
"""Every block that a message may contain."""

Content = tuple[Block, ...]
"""The content of one message, in order."""


def join_texts(content: Iterable[Block]) -> str:
    """Return the text blocks, concatenated; "" if there are none."""
    return "".join(block.text for block in content if isinstance(block, Text))


def select_tool_calls(content: Iterable[Block]) -> tuple[ToolCall, ...]:
    """Return the tool calls in order."""
    return tuple([block for block in content if type(block) is ToolCall])  # isinstance is slow
