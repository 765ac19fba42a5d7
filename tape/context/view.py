"""The view: what of a path stands before the model, from its newest anchor on (tape.md §6).

Pure: the same path always gives the same view. `repair.py` makes sendable messages of it.

Whom messages are for, and what of a block it may see; pure.

Who writes `wire` data is the only one who gets it back: another model gets the block without it, or
nothing where the block means nothing without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from ..model.entries import (
    NO_JSON,
    Anchor,
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
from ..model.line import Entry
from ..model.summary import render_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.entries import Assistant


Role = Literal["system", "user", "assistant", "tool"]


class Message(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message as a provider-neutral value; `call_id` and `name` stand for role "tool" only."""

    role: Role
    content: Content
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


class View(Struct, frozen=True, gc=False):
    """The part of a path a model call is built from, oldest first."""

    summary: str | None
    """Text of the newest anchor's summary; None when there is no anchor."""
    kept: tuple[Entry, ...]
    """Entries before the anchor that it keeps in view."""
    entries: tuple[Entry, ...]
    """Entries after the anchor, or of the whole path."""


def view(path: Sequence[Entry], kept: Sequence[Entry] = ()) -> View:
    """Return the view of a path given oldest first; `kept` is what its newest anchor keeps."""
    kinds = [type(entry.data) for entry in path]
    if Anchor not in kinds:
        return View(None, (), tuple(path))
    newest = len(kinds) - 1 - kinds[::-1].index(Anchor)
    anchor = cast("Anchor", path[newest].data)
    return View(render_summary(anchor.summary), tuple(kept), tuple(path[newest + 1 :]))


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
