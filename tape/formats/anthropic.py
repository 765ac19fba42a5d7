"""Message arrays of the Anthropic Messages API, written from our messages: pure.

Rules of that API kept here: user speaks first, user and assistant alternate; all results of a
batch stand first in the one user message after their calls; no empty text; ids of [a-zA-Z0-9_-] up
to 64, each once; thinking goes back only with its signature and never ends a message. Call ids on
the wire are ours, so calls and results always match.

`wire` holds, as the API writes them: text `citations`; thinking `signature`, or `data` when it is
redacted; tool call `id`, `caller`. A block of its own is opaque. System messages join the prompt.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import Struct

from ..blocks import (
    Audio,
    Block,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    text_of,
)
from .ids import ANTHROPIC_IDS, Ids, tool_name
from .turns import Encoder, Part, Turn
from .wire import (
    WireObject,
    argument_object,
    base64_of,
    bytes_of,
    form_of,
    is_of,
    outer_fields,
    provider_fields,
    told,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..blocks import Content
    from ..view import Message
    from .wire import Load

API = "anthropic-messages"
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Kinds of pictures the API takes."""

_USER, _ASSISTANT, _SYSTEM = (Turn(role, "content") for role in ("user", "assistant", "system"))
_TURNS = {"assistant": _ASSISTANT, "system": _SYSTEM}
_EMPTY: WireObject = {"string": "", "list": [], "null": None}
_BEGINNING = Part({"type": "text", "text": "(The conversation goes on.)"}, _USER)


class Options(Struct, frozen=True, kw_only=True):
    """Switches for hosts and models that speak this API."""

    thinking_as_text: bool = False
    """Thinking without a signature goes as text; otherwise it stays out."""
    system_in_place: bool = False
    """System messages after the first user message stand where they were said.

    For models that take them there; those before it join the system prompt as always.
    """
    verbatim: bool = False
    """Calls keep the id their provider gave them, where `wire` still holds it."""


PLAIN = Options()


def encoder(options: Options = PLAIN, load: Load | None = None) -> Encoder:
    """Return an encoder of arrays; `load` fetches pictures and files, without it they are told of.

    `wire` data is taken to come from this API, as repair drops any other.
    """
    return Encoder(_Form(options, load))


def messages(
    messages: Sequence[Message], options: Options = PLAIN, load: Load | None = None
) -> list[WireObject]:
    """Return the array for repaired `messages` as values: see `encoder`."""
    array = encoder(options, load).array(messages)
    return msgspec.json.decode(array, type=list[WireObject])


def system_text(system: str, messages: Iterable[Message], options: Options = PLAIN) -> str:
    """Return `system` and the texts of the system messages, which the API takes in one place."""
    if options.system_in_place:
        messages = takewhile(lambda message: message.role == "system", messages)
    later = (text_of(message.content) for message in messages if message.role == "system")
    return "\n\n".join(text for text in (system, *later) if text.strip())


class _Form:
    ids = ANTHROPIC_IDS

    def __init__(self, options: Options, load: Load | None) -> None:
        self.options, self.load = options, load

    def parts(self, message: Message, ids: Ids) -> Iterable[Part]:
        if message.role == "system" and not self.options.system_in_place:
            return []
        if message.role == "tool":
            return [Part(self._result(message, ids), _USER)]
        turn = _TURNS.get(message.role, _USER)
        content = message.content
        if message.role == "assistant":
            content = self._not_ending_in_thought(content)
        blocks = [*self._blocks(content, ids)]
        if self.options.verbatim and len(blocks) == 1 and form_of(content, API) == "string":
            return [Part(blocks[0], turn, short=_plain(blocks[0]))]
        return [Part(block, turn) for block in blocks]

    def placed(self, before: str, part: Part) -> Iterable[Part]:
        if before:
            return (part,)
        match part.role:
            case "system":
                return ()
            case "assistant":
                return (_BEGINNING, part)
        return (part,)

    def ending(self, element: bytes) -> bytes:
        """Return the element with no blank at the end of a last answer's text, which is refused."""
        if not element.startswith(b'{"role":"assistant"'):
            return element
        turn = msgspec.json.decode(element, type=WireObject)
        if isinstance(turn["content"], str):
            return msgspec.json.encode({**turn, "content": turn["content"].rstrip()})
        last = turn["content"][-1]
        if last.get("type") != "text" or last["text"] == last["text"].rstrip():
            return element
        last["text"] = last["text"].rstrip()
        return msgspec.json.encode(turn)

    def _result(self, message: Message, ids: Ids) -> WireObject:
        assert message.call_id is not None, "a tool message answers a call"
        result: WireObject = {
            **outer_fields(message.content, API),
            "type": "tool_result",
            "tool_use_id": ids.result(message.call_id).id,
        }
        content = [*self._blocks(message.content, ids)]
        form = form_of(message.content, API) if self.options.verbatim else ""
        if content:
            short = _plain(content[0]) if form == "string" and len(content) == 1 else None
            result["content"] = content if short is None else short
        elif form in _EMPTY:
            result["content"] = _EMPTY[form]
        if message.is_error:
            result["is_error"] = True
        return result

    def _not_ending_in_thought(self, content: Content) -> Content:
        end = len(content)
        while (
            end and isinstance(content[end - 1], Thinking) and not self._as_text(content[end - 1])
        ):
            end -= 1
        return content[:end]

    def _as_text(self, block: Block) -> bool:
        return self.options.thinking_as_text and not {"signature", "data"} & {
            *provider_fields(block, API)
        }

    def _blocks(self, content: Content, ids: Ids) -> Iterable[WireObject]:
        for block in content:
            wire = self._block(block, ids)
            if wire is not None:
                yield wire

    def _block(self, block: Block, ids: Ids) -> WireObject | None:
        match block:
            case Text():
                return _text(block.text, provider_fields(block, API))
            case Thinking():
                return self._thinking(block)
            case ToolCall():
                return self._tool_use(block, ids)
            case Opaque():
                return unpacked(block.raw) if is_of(block, API) else None
            case Image() | Document() | Audio():
                return self._media(block)
            case Unknown():
                return None
        assert_never(block)

    def _thinking(self, block: Thinking) -> WireObject | None:
        """Return a thinking block as it came; without the signature that vouches for it, text."""
        wire = provider_fields(block, API)
        if block.redacted:
            return {"type": "redacted_thinking", **wire} if "data" in wire else None
        if "signature" in wire:
            return {"type": "thinking", "thinking": block.text, **wire}
        return _text(block.text, {}) if self.options.thinking_as_text else None

    def _tool_use(self, call: ToolCall, ids: Ids) -> WireObject:
        wire = provider_fields(call, API)
        wanted = wire.get("id") if self.options.verbatim else None
        return {
            **wire,
            "type": "tool_use",
            "id": ids.call(call.id, wanted),
            "name": tool_name(call.name),
            "input": argument_object(call),
        }

    def _media(self, block: Image | Document | Audio) -> WireObject:
        wire = provider_fields(block, API)
        if isinstance(block, Document) and block.mime.startswith("text/"):
            return self._text_document(block, wire)
        takes = block.mime in IMAGES or block.mime == "application/pdf"
        data = base64_of(block.blob, self.load) if takes else None
        if data is None:
            return {"type": "text", "text": told(block)}
        source = {"type": "base64", "media_type": block.mime, "data": data}
        kind = "image" if block.mime in IMAGES else "document"
        return {"type": kind, "source": source, **_title(block), **wire}

    def _text_document(self, block: Document, wire: WireObject) -> WireObject:
        data = bytes_of(block.blob, self.load) or b""
        text = data.decode("utf-8", "replace")
        if not text.strip():
            return {"type": "text", "text": told(block)}
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "document", "source": source, **_title(block), **wire}


def _plain(block: WireObject) -> str | None:
    """Return the words of a block that is nothing else."""
    is_plain = block.get("type") == "text" and len(block) == 2  # noqa: PLR2004 (type and text)
    return str(block["text"]) if is_plain else None


def _text(text: str, wire: WireObject) -> WireObject | None:
    return {"type": "text", "text": text, **wire} if text.strip() else None


def _title(block: Image | Document | Audio) -> WireObject:
    return {"title": block.name} if isinstance(block, Document) and block.name else {}
