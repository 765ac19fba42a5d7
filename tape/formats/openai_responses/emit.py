"""Input items of the OpenAI Responses API, written from our messages: pure.

Rules kept here: every call has its output; reasoning items go back whole, in their place before
what they led to, and only where something follows; item ids of at most 64 characters that do not
end in "_", and only beside all the reasoning they came with; freeform tools have calls and outputs
of their own type. A system message is an item in its place; the system prompt may be the first
message here, or the request's `instructions`.

`wire` holds: thinking the whole reasoning item; text `id`, `phase` and `status` of its message,
`annotations`, and `type: refusal` when it is one; a tool call `id` (the item's), `call_id`, `type`
and further fields of the item. Texts next to each other with the same `id` are one message.
Any other item is opaque.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ...model.entries import Audio, Document, Image, Opaque, Text, Thinking, ToolCall, Unknown
from ..encoder import (
    OPENAI_RESPONSES_IDS,
    ArrayEncoder,
    ArrayPart,
    ArrayStyle,
    CallIds,
    to_tool_name,
)
from ..wire import (
    AUDIO,
    WireObject,
    build_argument_text,
    describe_unsent,
    drop_fields,
    find_whole_message,
    get_freeform_input,
    get_outer_fields,
    get_provider_fields,
    get_written_form,
    is_for_api,
    load_base64,
    unpack_raw,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...context.view import Message
    from ...model.entries import Block, Content
    from ..wire import Load

API = "openai-responses"
MAX_ITEM_ID = 64
_ITEM_ID = re.compile(r".{0,63}[^_]", re.DOTALL)

_MESSAGE_FIELDS = ("id", "phase", "status")
_FUNCTION, _CUSTOM = "function_call", "custom_tool_call"


class OpenAIResponsesOptions(Struct, frozen=True, kw_only=True):
    """Switches for hosts and models that speak this API."""

    system_role: Literal["system", "developer"] = "developer"
    stored: bool = False
    """The provider keeps items, so reasoning can be named by its id alone (`store: true`)."""
    thinking_as_text: bool = False
    """Send thinking of other models as text; otherwise it is left out."""
    freeform: frozenset[str] = frozenset()
    """Tools whose input is plain text: their calls are of type custom_tool_call."""
    verbatim: bool = False
    """Calls keep the id and the text their provider gave them, where `wire` still holds it."""


DEFAULT_OPTIONS = OpenAIResponsesOptions()


def build_encoder(
    options: OpenAIResponsesOptions = DEFAULT_OPTIONS, load: Load | None = None
) -> ArrayEncoder:
    """Return an encoder of arrays; `load` fetches pictures and files, which else become a text.

    `wire` data is taken to come from this API, as repair drops any other.
    """
    return ArrayEncoder(_OpenAIResponsesStyle(options, load))


class _OpenAIResponsesStyle(ArrayStyle):
    ids = OPENAI_RESPONSES_IDS

    def __init__(self, options: OpenAIResponsesOptions, load: Load | None) -> None:
        self.options, self.load = options, load

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        match message.role:
            case "user" | "system" if whole := find_whole_message(message.content, API):
                return [ArrayPart(whole)] if self.options.verbatim else []
            case "assistant":
                return [ArrayPart(item) for item in self._encode_answer(message.content, ids)]
            case "tool":
                return [ArrayPart(self._encode_output(message, ids))]
            case "system" | "user":
                role = self.options.system_role if message.role == "system" else "user"
                return [ArrayPart(item) for item in self._encode_message(role, message.content)]

    def _encode_message(self, role: str, content: Content) -> Iterable[WireObject]:
        """Yield the message somebody said, and items of the API's own that stood there."""
        own = [
            block
            for block in content
            if isinstance(block, Opaque)
            and not str(unpack_raw(block.raw).get("type", "")).startswith("input_")
        ]
        parts = [
            wire for block in content if block not in own and (wire := self._encode_part(block))
        ]
        if parts:
            is_list = self.options.verbatim and get_written_form(content, API) == "list"
            shaped = parts if is_list else _shorten_content(parts)
            yield {"role": role, "content": shaped, **get_outer_fields(content, API)}
        yield from (unpack_raw(block.raw) for block in own if is_for_api(block, API))

    def _encode_output(self, message: Message, ids: CallIds) -> WireObject:
        assert message.call_id is not None, "a tool message answers a call"
        bound = ids.result(message.call_id)
        parts = [wire for block in message.content if (wire := self._encode_part(block))]
        form = get_written_form(message.content, API) if self.options.verbatim else ""
        output: str | list[WireObject] = parts
        if form != "list" or not parts:
            output = _shorten_content(parts) if parts else "" if form == "string" else "(no output)"
        return {
            **get_outer_fields(message.content, API),
            "type": f"{bound.kind or _FUNCTION}_output",
            "call_id": bound.id,
            "output": output,
        }

    def _encode_part(self, block: Block) -> WireObject | None:
        match block:
            case Text(text=text):
                wire = get_provider_fields(block, API)
                return {"type": "input_text", "text": text, **wire} if text.strip() else None
            case Image() | Document() | Audio():
                return self._encode_media(block)
            case Opaque():
                return unpack_raw(block.raw) if is_for_api(block, API) else None
            case Thinking() | ToolCall() | Unknown():
                return None

    def _encode_media(self, block: Image | Document | Audio) -> WireObject:
        data = load_base64(block.blob, self.load)
        if data is None or (isinstance(block, Audio) and block.mime not in AUDIO):
            return {"type": "input_text", "text": describe_unsent(block)}
        url, wire = f"data:{block.mime};base64,{data}", get_provider_fields(block, API)
        match block:
            case Image():
                return {"type": "input_image", "detail": "auto", "image_url": url, **wire}
            case Audio():
                sound = {"data": data, "format": AUDIO[block.mime]}
                return {"type": "input_audio", "input_audio": sound}
            case Document():
                name = block.name or "file"
                return {"type": "input_file", "filename": name, "file_data": url, **wire}

    def _encode_answer(self, content: Content, ids: CallIds) -> Iterable[WireObject]:
        sent = [block for block in content if self._is_sendable(block) and _is_new_item(block, ids)]
        while sent and _is_reasoning(sent[-1]):  # reasoning goes only where something follows
            sent.pop()
        whole = sum(_is_reasoning(block) for block in sent) == sum(map(_is_reasoning, content))
        for _, placed in groupby(enumerate(sent), key=_get_message_key):
            run = [block for _, block in placed]
            item_id = get_provider_fields(run[0], API).get("id")
            is_valid = isinstance(item_id, str) and _ITEM_ID.fullmatch(item_id)
            named = whole and is_valid and ids.is_first(str(item_id))
            match run[0]:
                case Text() if named:
                    yield _to_full_message(run)
                case Text():
                    yield from map(_to_short_message, run)
                case ToolCall() as call:
                    item = self._encode_call(call, ids)
                    yield item if named else drop_fields(item, "id")
                case Thinking(text=text) as block:
                    yield get_provider_fields(block, API) or {"role": "assistant", "content": text}
                case Opaque(raw=raw) as block:
                    yield find_whole_message((block,), API) or unpack_raw(raw)

    def _is_sendable(self, block: Block) -> bool:
        match block:
            case Text(text=text):
                return bool(text.strip())
            case Thinking(text=text):
                item = get_provider_fields(block, API)
                if not item:
                    return self.options.thinking_as_text and bool(text.strip())
                return self.options.stored or bool(
                    item.get("encrypted_content") or item.get("content")
                )
            case Opaque():
                is_whole = find_whole_message((block,), API) is not None
                return is_for_api(block, API) and (self.options.verbatim or not is_whole)
            case ToolCall():
                return True
            case Image() | Document() | Audio() | Unknown():
                return False

    def _encode_call(self, call: ToolCall, ids: CallIds) -> WireObject:
        wire = get_provider_fields(call, API)
        custom = wire.get("type", _FUNCTION) == _CUSTOM or call.name in self.options.freeform
        kind = _CUSTOM if custom else _FUNCTION
        wire_id = wire.get("call_id") if self.options.verbatim else None
        item = {**wire, "type": kind, "name": to_tool_name(call.name)}
        item["call_id"] = ids.call(call.id, wire_id, kind)
        if custom:
            return {**item, "input": get_freeform_input(call, is_own=wire.get("type") == _CUSTOM)}
        return {
            **item,
            "arguments": build_argument_text(call, verbatim=self.options.verbatim and bool(wire)),
        }


def _get_message_key(placed: tuple[int, Block]) -> tuple[bool, Any]:
    """Return a key that is equal only for texts of one message."""
    place, block = placed
    item_id = get_provider_fields(block, API).get("id") if isinstance(block, Text) else None
    return (True, item_id) if item_id else (False, place)


def _to_full_message(run: list[Block]) -> WireObject:
    """Return the texts of one message as an item."""
    wire = get_provider_fields(run[0], API)
    fields = {name: wire[name] for name in _MESSAGE_FIELDS if wire.get(name)}
    content: list[WireObject] = []
    for block in run:
        assert isinstance(block, Text), "only texts are messages"
        own = drop_fields(get_provider_fields(block, API), *_MESSAGE_FIELDS)
        if own.get("type") == "refusal":
            content.append({"type": "refusal", "refusal": block.text})
        else:
            content.append({"type": "output_text", "text": block.text, "annotations": [], **own})
    outer = get_outer_fields(run, API)
    return {"type": "message", "role": "assistant", "content": content, **fields, **outer}


def _to_short_message(block: Block) -> WireObject:
    """Return a text as an item that needs no id."""
    assert isinstance(block, Text), "only texts are messages"
    wire = get_provider_fields(block, API)
    phase = {"phase": wire["phase"]} if wire.get("phase") else {}
    return {"role": "assistant", "content": block.text, **phase, **get_outer_fields([block], API)}


def _shorten_content(parts: list[WireObject]) -> str | list[WireObject]:
    only = parts[0]
    if len(parts) == 1 and only.keys() == {"type", "text"} and only["type"] == "input_text":
        return str(only["text"])
    return parts


def _is_reasoning(block: Block) -> bool:
    return isinstance(block, Thinking) and bool(get_provider_fields(block, API))


def _is_new_item(block: Block, ids: CallIds) -> bool:
    """Return whether a provider's whole item was not sent yet."""
    match block:
        case Thinking():
            item_id = get_provider_fields(block, API).get("id")
        case Opaque(raw=raw):
            item_id = unpack_raw(raw).get("id")
        case _:
            return True
    return not isinstance(item_id, str) or ids.is_first(item_id)
