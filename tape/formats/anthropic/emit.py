"""Message arrays of the Anthropic Messages API, written from our messages: pure.

Rules of that API kept here: user speaks first, user and assistant alternate; all results of a batch
come first in the one user message after their calls; no empty text; ids of [a-zA-Z0-9_-] up to 64,
each once; thinking goes back only with its signature and never ends a message. Call ids on the wire
are ours, so calls and results always match.

`wire` holds, as the API writes them: text `citations`; thinking `signature`, or `data` when it is
redacted; tool call `id`, `caller`. A block of its own is opaque. System messages join the prompt.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import Struct

from ...model.entries import (
    Audio,
    Block,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    join_texts,
)
from ..encoder import (
    ANTHROPIC_IDS,
    ArrayEncoder,
    ArrayPart,
    ArrayStyle,
    ArrayTurn,
    CallIds,
    to_tool_name,
)
from ..wire import (
    WireObject,
    build_argument_object,
    describe_unsent,
    get_outer_fields,
    get_provider_fields,
    get_written_form,
    is_for_api,
    load_base64,
    load_bytes,
    unpack_raw,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...context.view import Message
    from ...model.entries import Content
    from ..wire import Load

API = "anthropic-messages"
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that the API accepts."""

_USER, _ASSISTANT, _SYSTEM = (
    ArrayTurn(role, "content") for role in ("user", "assistant", "system")
)
_TURNS = {"assistant": _ASSISTANT, "system": _SYSTEM}
_EMPTY_CONTENT: WireObject = {"string": "", "list": [], "null": None}
_OPENING_PART = ArrayPart({"type": "text", "text": "(The conversation continues.)"}, _USER)


class AnthropicOptions(Struct, frozen=True, kw_only=True):
    """Switches for hosts and models that speak this API."""

    thinking_as_text: bool = False
    """Send thinking without a signature as text; otherwise it is left out."""
    system_in_place: bool = False
    """Keep system messages after the first user message in their place.

    For models that accept them there; earlier ones are part of the system prompt.
    """
    verbatim: bool = False
    """Calls keep the id their provider gave them, where `wire` still holds it."""


DEFAULT_OPTIONS = AnthropicOptions()


def build_encoder(
    options: AnthropicOptions = DEFAULT_OPTIONS, load: Load | None = None
) -> ArrayEncoder:
    """Return an encoder of arrays; `load` fetches pictures and files, which else become a text.

    `wire` data is taken to come from this API, as repair drops any other.
    """
    return ArrayEncoder(_AnthropicStyle(options, load))


def build_system_text(
    system: str, messages: Iterable[Message], options: AnthropicOptions = DEFAULT_OPTIONS
) -> str:
    """Return `system` and the texts of the system messages, which the API takes in one place."""
    if options.system_in_place:
        messages = takewhile(lambda message: message.role == "system", messages)
    later = (join_texts(message.content) for message in messages if message.role == "system")
    return "\n\n".join(text for text in (system, *later) if text.strip())


class _AnthropicStyle(ArrayStyle):
    ids = ANTHROPIC_IDS

    def __init__(self, options: AnthropicOptions, load: Load | None) -> None:
        self.options, self.load = options, load

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        if message.role == "system" and not self.options.system_in_place:
            return []
        if message.role == "tool":
            return [ArrayPart(self._encode_result(message, ids), _USER)]
        turn = _TURNS.get(message.role, _USER)
        content = message.content
        if message.role == "assistant":
            content = self._drop_final_thinking(content)
        blocks = [*self._encode_blocks(content, ids)]
        if (
            self.options.verbatim
            and len(blocks) == 1
            and get_written_form(content, API) == "string"
        ):
            return [ArrayPart(blocks[0], turn, short=_get_only_text(blocks[0]))]
        return [ArrayPart(block, turn) for block in blocks]

    def place_part(self, before: str, part: ArrayPart) -> Iterable[ArrayPart]:
        if before or part.role == "user":
            return (part,)
        return () if part.role == "system" else (_OPENING_PART, part)

    def finish_element(self, element: bytes) -> bytes:
        """Return the last answer without trailing white space, which the API refuses."""
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

    def _encode_result(self, message: Message, ids: CallIds) -> WireObject:
        assert message.call_id is not None, "a tool message answers a call"
        result: WireObject = {
            **get_outer_fields(message.content, API),
            "type": "tool_result",
            "tool_use_id": ids.result(message.call_id).id,
        }
        content = [*self._encode_blocks(message.content, ids)]
        form = get_written_form(message.content, API) if self.options.verbatim else ""
        if content:
            short = _get_only_text(content[0]) if form == "string" and len(content) == 1 else None
            result["content"] = content if short is None else short
        elif form in _EMPTY_CONTENT:
            result["content"] = _EMPTY_CONTENT[form]
        if message.is_error:
            result["is_error"] = True
        return result

    def _drop_final_thinking(self, content: Content) -> Content:
        end = len(content)
        while end and isinstance(block := content[end - 1], Thinking):
            is_signed = {"signature", "data"} & {*get_provider_fields(block, API)}
            if self.options.thinking_as_text and not is_signed:  # it goes as text
                break
            end -= 1
        return content[:end]

    def _encode_blocks(self, content: Content, ids: CallIds) -> Iterable[WireObject]:
        for block in content:
            wire = self._encode_block(block, ids)
            if wire is not None:
                yield wire

    def _encode_block(self, block: Block, ids: CallIds) -> WireObject | None:
        match block:
            case Text():
                return _to_text_block(block.text, get_provider_fields(block, API))
            case Thinking():
                return self._encode_thinking(block)
            case ToolCall():
                return self._encode_tool_use(block, ids)
            case Opaque():
                return unpack_raw(block.raw) if is_for_api(block, API) else None
            case Image() | Document() | Audio():
                return self._encode_media(block)
            case Unknown():
                return None
        assert_never(block)

    def _encode_thinking(self, block: Thinking) -> WireObject | None:
        """Return a thinking block unchanged, or as text if it has no signature."""
        wire = get_provider_fields(block, API)
        if block.redacted:
            return {"type": "redacted_thinking", **wire} if "data" in wire else None
        if "signature" in wire:
            return {"type": "thinking", "thinking": block.text, **wire}
        return _to_text_block(block.text, {}) if self.options.thinking_as_text else None

    def _encode_tool_use(self, call: ToolCall, ids: CallIds) -> WireObject:
        wire = get_provider_fields(call, API)
        wire_id = wire.get("id") if self.options.verbatim else None
        return {
            **wire,
            "type": "tool_use",
            "id": ids.call(call.id, wire_id),
            "name": to_tool_name(call.name),
            "input": build_argument_object(call),
        }

    def _encode_media(self, block: Image | Document | Audio) -> WireObject:
        wire = get_provider_fields(block, API)
        if isinstance(block, Document) and block.mime.startswith("text/"):
            return self._encode_text_document(block, wire)
        takes = block.mime in IMAGES or block.mime == "application/pdf"
        data = load_base64(block.blob, self.load) if takes else None
        if data is None:
            return {"type": "text", "text": describe_unsent(block)}
        source = {"type": "base64", "media_type": block.mime, "data": data}
        kind = "image" if block.mime in IMAGES else "document"
        return {"type": kind, "source": source, **_encode_title(block), **wire}

    def _encode_text_document(self, block: Document, wire: WireObject) -> WireObject:
        data = load_bytes(block.blob, self.load) or b""
        text = data.decode("utf-8", "replace")
        if not text.strip():
            return {"type": "text", "text": describe_unsent(block)}
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "document", "source": source, **_encode_title(block), **wire}


def _get_only_text(block: WireObject) -> str | None:
    """Return the text of a plain text block; None for others."""
    is_plain = block.get("type") == "text" and len(block) == 2  # noqa: PLR2004 (type and text)
    return str(block["text"]) if is_plain else None


def _to_text_block(text: str, wire: WireObject) -> WireObject | None:
    return {"type": "text", "text": text, **wire} if text.strip() else None


def _encode_title(block: Image | Document | Audio) -> WireObject:
    return {"title": block.name} if isinstance(block, Document) and block.name else {}
