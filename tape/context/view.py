"""The view: what of a path a model sees, from the newest anchor on (tape.md §6); pure.

The same path always gives the same view; `repair` makes messages of it that a provider accepts.
An example, with prompts and answers 1 to 6, and anchors A and B that each keep one of them in view:

    path                         summary    kept    entries
    1 2 3                        –          –       1 2 3
    1 2 3 A(1–2; keeps 3)        of A       3       –
    … A 4 5                      of A       3       4 5
    … A 4 5 B(3–4; keeps 5) 6    of B       5       6

What a target sees of a block:

    block                              its own writer          another target
    text, call, document, audio        as it is                without `wire`
    thinking with text                 as it is                without `wire`
    thinking without text              only with `wire`        left out
    thinking redacted, opaque          as it is                left out
    image                              as it is, or a note where the model does not see images
    blank text, unknown block          left out                left out

`wire` is data in the form of one API. It goes back to the endpoint, API and model that wrote it.
Data that no model wrote, such as of an imported array, names its API itself (`$api`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal, cast, overload

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
    from collections.abc import Iterator

    from ..model.entries import Assistant


Role = Literal["system", "user", "assistant", "tool"]


class Message(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message as a provider-neutral value; `call_id` and `name` only for role "tool"."""

    role: Role
    content: Content
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


class MessageSnapshot(Sequence[Message]):
    """The messages that a list holds now; made and compared in the same time at any length.

    Whoever owns the list only appends to it from then on, so a snapshot never changes, and the
    snapshots of one list begin alike.
    """

    __slots__ = ("size", "source")

    def __init__(self, source: list[Message]) -> None:
        self.source = source
        self.size = len(source)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, place: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(place, slice):
            return tuple([self.source[index] for index in range(self.size)[place]])
        return self.source[range(self.size)[place]]

    def __iter__(self) -> Iterator[Message]:
        return islice(self.source, self.size)

    def __repr__(self) -> str:
        return f"MessageSnapshot({[*self]!r})"

    def continues(self, earlier: object) -> bool:
        """Return whether this begins with `earlier` because it is of the same list."""
        return (
            isinstance(earlier, MessageSnapshot)
            and self.source is earlier.source
            and self.size >= earlier.size
        )


class View(Struct, frozen=True, gc=False):
    """The part of a path a model call is built from, oldest first."""

    summary: str | None
    """Text of the newest anchor's summary; None if there is no anchor."""
    kept: tuple[Entry, ...]
    """Entries before the anchor that it keeps in view."""
    entries: tuple[Entry, ...]
    """Entries after the anchor, or of the whole path."""


def view(path: Sequence[Entry], kept: Sequence[Entry] = ()) -> View:
    """Return the view of a path given oldest first; `kept` are its newest anchor's entries."""
    kinds = [type(entry.data) for entry in path]
    if Anchor not in kinds:
        return View(None, (), tuple(path))
    newest = len(kinds) - 1 - kinds[::-1].index(Anchor)
    anchor = cast("Anchor", path[newest].data)
    return View(render_summary(anchor.summary), tuple(kept), tuple(path[newest + 1 :]))


_NO_OUTPUT = (Text("(no output)"),)
_OMITTED_IMAGE = Text("(image omitted: model does not support images)")


_BLOCKED_IMAGE = Text("(image omitted: block_images is set)")

ForeignThinking = Literal["keep", "text", "drop"]
"""Thinking of another model: as thinking without its signature, as plain text, or left out."""


class Target(Struct, frozen=True):
    """The model that messages are for; `wire` data is sent only if the first three fields match.

    Without an endpoint there is no model yet, only the form of `api`: then prompts and tool results
    keep `wire` data that names this API (`$api`, see `formats.wire`).
    """

    endpoint: str
    api: str
    model: str
    sees_images: bool = True
    blocks_images: bool = False
    """Whether the user wants no pictures to be sent."""
    foreign_thinking: ForeignThinking = "keep"
    """What becomes of the readable thinking of other models."""


class _WireMark(Struct, frozen=True):
    """The API that owns `wire` data not written by a model; `text` holds it if it is packed."""

    api: str | None = field(name="$api", default=None)
    text: str | None = field(name="$json", default=None)


_WIRE_MARK = Decoder(_WireMark)


def list_plain_calls(content: Content) -> list[ToolCall] | None:
    """Return the calls of a content that every target sees as it is; None of any other.

    Nearly every content is such: words that are not blank and calls, without `wire`.
    """
    calls: list[ToolCall] = []
    for block in content:
        if block.wire is not NO_JSON:
            return None
        if type(block) is Text:
            if not block.text or block.text.isspace():
                return None
        elif type(block) is ToolCall:
            calls.append(block)
        else:
            return None
    return calls


def select_visible_blocks(content: Content, target: Target, *, foreign: bool) -> Content:
    """Return the blocks a target may see; `foreign` when another model wrote them."""
    if list_plain_calls(content) is not None:
        return content
    blocks = (_select_visible_block(block, target, foreign=foreign) for block in content)
    return tuple(block for block in blocks if block is not None)


def select_visible_result(content: Content, target: Target) -> Content:
    """Return what a target may see of a tool's result, or words that say there is nothing."""
    if len(content) == 1:  # as nearly always
        block = content[0]
        if (
            type(block) is Text
            and block.wire is NO_JSON
            and not block.text.isspace()
            and block.text
        ):
            return content
    visible = select_visible_blocks(content, target, foreign=True)
    if visible:
        return visible
    return tuple(block for block in content if _has_own_wire(block, target)) or _NO_OUTPUT


def is_foreign_answer(answer: Assistant, target: Target) -> bool:
    """Return whether another model wrote an answer, or the same one through another door."""
    return (
        answer.model != target.model
        or answer.api != target.api
        or answer.endpoint != target.endpoint
    )


def _has_own_wire(block: Block, target: Target) -> bool:
    """Return whether data that no model wrote goes back to the API it names, as that API has it."""
    if block.wire is NO_JSON or target.endpoint or not target.api:
        return False
    try:
        mark = _WIRE_MARK.decode(block.wire)
        if mark.text is not None:
            mark = _WIRE_MARK.decode(mark.text)
    except ValueError:  # written by another program, in another shape
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
        case Thinking():
            return _select_thinking(block, target.foreign_thinking if foreign else None)
        case Image() if target.blocks_images or not target.sees_images:
            return _BLOCKED_IMAGE if target.blocks_images else _OMITTED_IMAGE
        case Text() | Image() | Document() | Audio() | ToolCall():
            return replace(block, wire=NO_JSON) if foreign and block.wire != NO_JSON else block


def _select_thinking(block: Thinking, choice: ForeignThinking | None) -> Block | None:
    """Return what is sent of readable thinking: its model's own as it is, else by `choice`."""
    if choice is None:
        return block if block.text or block.wire != NO_JSON else None
    if choice == "drop" or not block.text.strip():
        return None
    return Text(block.text) if choice == "text" else replace(block, wire=NO_JSON)
