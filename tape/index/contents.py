"""One line → what the index keeps of it: its place, its words, what it cost and touched; pure.

Invariant: each line's data is decoded once. What is redacted, or of a shape nobody knows, says
nothing and hides nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from ..blocks import NO_JSON, BlobRef
from ..glance.words import ANSWERED, strings
from ..payload import UNREADABLE
from ..reference import is_prefix
from .touched import Touched, touched

if TYPE_CHECKING:
    from ..line import Header

_ID = 40
ANSWER = "answer"
"""The purpose of usage that an assistant entry tells of."""


class Words(NamedTuple):
    """The text of one entry, by who it comes from."""

    said: str = ""
    """By people and models, or put before the model for them."""
    called: str = ""
    """Names and arguments of tools."""
    answered: str = ""
    """The beginning of what a tool answered."""


class Spent(NamedTuple):
    """What one model call took; None where nobody said."""

    purpose: str
    provider: str
    model: str
    input: int
    output: int
    reasoning: int | None
    cache_read: int | None
    cache_write: int | None
    total: int
    cost: float | None
    duration_ms: int | None


class Done(NamedTuple):
    """How one tool call ended."""

    name: str
    is_error: bool
    duration_ms: int


class Contents(NamedTuple):
    """All that one line tells."""

    words: Words | None = None
    spent: Spent | None = None
    done: Done | None = None
    touched: tuple[Touched, ...] = ()
    cwd: str | None = None
    project: str | None = None
    branch: str | None = None
    base: tuple[str, int] | None = None
    """Phase and offset of the entry that a phase begun by a fork or an anchor goes on from."""
    targets: tuple[str, ...] = ()
    """Ids of the entries that a redaction names."""


NOTHING = Contents()


_Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
"""Tokens or milliseconds that one call can have taken; any other number says nothing."""
_Amount = Annotated[float, msgspec.Meta(ge=0, le=10**9)]
"""The same of money."""


class Amount(Struct, gc=False):
    """The part of a cost that is summed."""

    amount: _Amount
    currency: Literal["USD"] = "USD"
    """What is in another one is no amount that can be added up."""


class _Tokens(Struct, gc=False):
    input: _Count = 0
    output: _Count = 0
    reasoning: _Count | None = None
    cache_read: _Count | None = None
    cache_write: _Count | None = None
    total: _Count = 0


class _Block(Struct, gc=False):
    type: str = ""
    text: str | BlobRef = ""
    id: str = ""
    name: str = ""
    args: Raw = NO_JSON
    args_text: str | BlobRef | None = None


class _Message(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""


class _Answer(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""
    provider: str = ""
    model: str = ""
    usage: _Tokens | None = None
    cost: Amount | None = None
    duration_ms: _Count | None = None


class _Result(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""
    name: str = ""
    is_error: bool = False
    duration_ms: _Count = 0


class _Side(Struct, gc=False):
    purpose: str = ""
    provider: str = ""
    model: str = ""
    usage: _Tokens | None = None
    cost: Amount | None = None


class _Base(Struct, gc=False):
    phase: str
    offset: int
    tape: str | None = None


class _Opening(Struct, gc=False):
    branch: str | None = None
    cwd: str | None = None
    project: str | None = None
    base: _Base | None = None


class _Redaction(Struct, gc=False):
    targets: tuple[str, ...] = ()


_KINDS: dict[str, type[Struct]] = {
    "user": _Message,
    "context": _Message,
    "assistant": _Answer,
    "tool.result": _Result,
    "usage": _Side,
    "start": _Opening,
    "meta": _Opening,
    "branch": _Opening,
    "anchor": _Opening,
    "redact": _Redaction,
}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(kind) for name, kind in _KINDS.items()
}


def contents(header: Header, line: bytes) -> Contents:
    """Return what a line (without its newline) tells."""
    decoder = _DECODERS.get(header.type)
    if decoder is None:
        return NOTHING
    data = line[header.data : -1]
    try:
        found = decoder.decode(data)
    except UNREADABLE:
        found = _by_field(_KINDS[header.type], data)
    return _told(found) if found is not None else NOTHING


def _by_field(kind: type[Struct], data: bytes | Raw) -> Struct | None:
    """Return those members of the data that are as they should be; None where it is no object."""
    try:
        members = msgspec.json.decode(data, type=dict[str, Raw])
    except UNREADABLE:
        return None
    fit = {}
    for field in fields(kind):
        raw = members.get(field.encode_name)
        if raw is None:
            continue
        try:
            fit[field.name] = msgspec.json.decode(raw, type=field.type)
        except UNREADABLE:
            if _Tokens in get_args(field.type):  # one odd count does not take the others along
                fit[field.name] = _by_field(_Tokens, raw)
    return kind(**fit)


def _told(found: Struct) -> Contents:
    told = NOTHING
    match found:
        case _Answer():
            called, places = _calls(found.content)
            words = Words(_said(found.content), called)
            spent = _spent(ANSWER, found.duration_ms, found)
            told = Contents(words if any(words) else None, spent, touched=places)
        case _Message():
            text = _said(found.content)
            told = Contents(Words(said=text)) if text else NOTHING
        case _Result():
            done = Done(found.name, found.is_error, found.duration_ms)
            text = _said(found.content, ANSWERED)
            told = Contents(Words(answered=text) if text else None, done=done)
        case _Side():
            told = Contents(spent=_spent(found.purpose, None, found))
        case _Opening(branch=branch, cwd=cwd, project=project, base=base):
            here = base is not None and base.tape is None
            place = (base.phase, base.offset) if base and here else None
            told = Contents(cwd=cwd, project=project, branch=branch, base=place)
        case _Redaction():
            told = Contents(
                targets=tuple([t for t in found.targets if len(t) == _ID and is_prefix(t)])
            )
    return told


def _spent(purpose: str, duration_ms: int | None, found: _Answer | _Side) -> Spent:
    tokens = found.usage or _Tokens()
    return Spent(
        purpose,
        found.provider,
        found.model,
        tokens.input,
        tokens.output,
        tokens.reasoning,
        tokens.cache_read,
        tokens.cache_write,
        tokens.total,
        found.cost.amount if found.cost else None,
        duration_ms,
    )


def _said(content: list[_Block] | str | BlobRef, most: int | None = None) -> str:
    """Return the words of a message, its thinking left out; of a blob those in its head."""
    if not isinstance(content, list):
        return _text(content)[:most]
    return "\n".join([_text(b.text)[:most] for b in content if b.text and b.type != "thinking"])


def _text(text: str | BlobRef) -> str:
    return text if isinstance(text, str) else text.head


def _calls(content: list[_Block] | str | BlobRef) -> tuple[str, tuple[Touched, ...]]:
    """Return the names and arguments of an answer's calls, and the files they are about."""
    words: list[str] = []
    places: list[Touched] = []
    for block in content if isinstance(content, list) else ():
        if block.type == "tool_call":
            args = _args(block)
            words += (block.name, *strings(args))
            places += touched(block.id, block.name, args)
    return "\n".join(words), tuple(places)


def _args(block: _Block) -> object:
    if block.args_text is not None:
        return _text(block.args_text)
    try:
        return msgspec.json.decode(block.args) if block.args else None
    except UNREADABLE:
        return bytes(block.args).decode(errors="replace")
