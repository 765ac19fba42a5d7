"""Whom messages are for, and what of a block it may see; pure.

Who writes `wire` data is the only one who gets it back: another model gets the block without it, or
nothing where the block means nothing without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from .blocks import (
    NO_JSON,
    Audio,
    Block,
    Content,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
)

if TYPE_CHECKING:
    from .entries import Assistant

_NO_OUTPUT = (Text("(no output)"),)
_OMITTED_IMAGE = Text("(image omitted: model does not support images)")


class Target(Struct, frozen=True):
    """Who the messages are for; `wire` data goes only where all three first fields are equal.

    Without an endpoint they are for nobody yet, but written in the form of `api`: then what people
    and tools said keeps the data that names this API as its own (`$api`, see `formats.wire`).
    """

    endpoint: str
    api: str
    model: str
    sees_images: bool = True


class _WireMark(Struct, frozen=True):
    """What tells whose `wire` data is that no model wrote; `text` holds it where it is packed."""

    api: str | None = field(name="$api", default=None)
    text: str | None = field(name="$json", default=None)


_WIRE_MARK = Decoder(_WireMark)


def select_visible_blocks(content: Content, target: Target, *, foreign: bool) -> Content:
    """Return the blocks a target may see; `foreign` when another model wrote them."""
    for block in content:  # nearly all are such as everybody may see
        if block.wire is not NO_JSON:
            break
        if type(block) is Text:
            if not block.text or block.text.isspace():
                break
        elif type(block) is not ToolCall:
            break
    else:
        return content
    blocks = (_select_visible_block(block, target, foreign=foreign) for block in content)
    return tuple(block for block in blocks if block is not None)


def select_visible_result(content: Content, target: Target) -> Content:
    """Return what a tool said, or words that say it said nothing."""
    found = select_visible_blocks(content, target, foreign=True)
    if found:
        return found
    return tuple(block for block in content if _has_own_wire(block, target)) or _NO_OUTPUT


def is_plain_text(content: Content) -> bool:
    """Tell whether content is one text that everybody may see as it is."""
    if len(content) != 1:
        return False
    block = content[0]
    return (
        type(block) is Text
        and block.wire is NO_JSON
        and bool(block.text)
        and not block.text.isspace()
    )


def list_plain_call_ids(content: Content) -> list[str] | None:
    """Return the ids of calls; None where something stands beside them and plain words."""
    calls: list[str] = []
    for block in content:
        if block.wire is not NO_JSON:
            return None
        if type(block) is Text:
            if not block.text or block.text.isspace():
                return None
        elif type(block) is ToolCall:
            calls.append(block.id)
        else:
            return None
    return calls


def is_foreign_answer(answer: Assistant, target: Target) -> bool:
    """Tell whether another model wrote an answer, or the same one through another door."""
    return (
        answer.model != target.model
        or answer.api != target.api
        or answer.endpoint != target.endpoint
    )


def _has_own_wire(block: Block, target: Target) -> bool:
    """Tell whether data that no model wrote goes back to the API it names, as that API has it."""
    if block.wire is NO_JSON or target.endpoint or not target.api:
        return False
    try:
        mark = _WIRE_MARK.decode(block.wire)
        if mark.text is not None:
            mark = _WIRE_MARK.decode(mark.text)
    except ValueError:  # another program's, of another shape
        return False
    return mark.api == target.api


def _select_visible_block(block: Block, target: Target, *, foreign: bool) -> Block | None:
    foreign = foreign and not _has_own_wire(block, target)
    match block:
        case Unknown():
            return None
        case Text(text=text) if not text.strip():  # providers refuse blank ones too
            return None
        case Opaque() | Thinking(redacted=True):
            return None if foreign else block
        case Thinking(text=text) if not text and (foreign or block.wire == NO_JSON):
            return None
        case Image() if not target.sees_images:
            return _OMITTED_IMAGE
        case Text() | Thinking() | Image() | Document() | Audio() | ToolCall():
            return replace(block, wire=NO_JSON) if foreign and block.wire != NO_JSON else block
