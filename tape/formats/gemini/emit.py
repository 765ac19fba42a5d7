"""Contents of the Gemini API (generateContent), written from our messages: pure.

Rules kept here: as many function responses as calls, all in the one turn after theirs; a user
speaks before a call; a thought signature stays on the part it came with, and where a newer model
insists on one that is not there, the documented word takes its place. System messages join the
system instruction.

`wire` holds, as the API writes them, the fields of the part besides its content:
`thoughtSignature`, `thought` on thinking, and of a function call its `id`. Any
other part is opaque.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...model.entries import (
    Audio,
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
    GEMINI_IDS,
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
    find_whole_message,
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

API = "google-generate"
BESIDE = "$beside"
"""Among a function response's fields, those of the part around it."""
UNSIGNED = "skip_thought_signature_validator"
"""Replaces the signature of a call that another model made."""

_MODEL, _RESULTS = ArrayTurn("model", "parts"), ArrayTurn("user", "parts", "results")
_ATTACHED = ArrayTurn("user", "parts", "attached")
_OPENING_TURN = ArrayPart({"role": "user", "parts": [{"text": "(The conversation continues.)"}]})


class GeminiOptions(Struct, frozen=True, kw_only=True):
    """Switches for models and hosts that speak this API."""

    signed_calls: bool = False
    """The first call of a turn must be signed (Gemini 3)."""
    media_in_results: bool = False
    """Put pictures and files of a tool inside its response (Gemini 3), else in a turn after it."""
    thinking_as_text: bool = False
    """Send thinking of other models as text; otherwise it is left out."""
    verbatim: bool = False
    """Calls keep the id of their provider; the Gemini API itself needs none."""


DEFAULT_OPTIONS = GeminiOptions()


def build_encoder(
    options: GeminiOptions = DEFAULT_OPTIONS, load: Load | None = None
) -> ArrayEncoder:
    """Return an encoder of arrays; `load` fetches pictures and files, which else become a text.

    `wire` data is taken to come from this API, as repair drops any other.
    """
    return ArrayEncoder(_GeminiStyle(options, load))


def build_system_instruction(system: str, messages: Iterable[Message]) -> WireObject | None:
    """Return `system` and the texts of the system messages as the request carries them."""
    later = (join_texts(message.content) for message in messages if message.role == "system")
    parts = [{"text": text} for text in (system, *later) if text.strip()]
    return {"parts": parts} if parts else None


class _GeminiStyle(ArrayStyle):
    ids = GEMINI_IDS

    def __init__(self, options: GeminiOptions, load: Load | None) -> None:
        self.options, self.load = options, load

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        match message.role:
            case "user" | "assistant" if whole := find_whole_message(message.content, API):
                return [ArrayPart(whole)] if self.options.verbatim else []
            case "assistant":
                return [
                    ArrayPart(part, _MODEL) for part in self._encode_answer(message.content, ids)
                ]
            case "tool":
                return self._encode_result(message, ids)
            case "user":
                parts = self._encode_parts(message.content)
                outer = get_outer_fields(message.content, API)
                if self.options.verbatim and get_written_form(message.content, API) == "joined":
                    return [ArrayPart(part, _RESULTS) for part in parts]
                return [ArrayPart({"role": "user", "parts": parts, **outer})] if parts else []
            case "system":
                return []

    def place_part(self, before: str, part: ArrayPart) -> Iterable[ArrayPart]:
        return (_OPENING_TURN, part) if not before and part.role == "model" else (part,)

    def _encode_parts(self, content: Content) -> list[WireObject]:
        return [wire for block in content if (wire := self._encode_part(block))]

    def _encode_part(self, block: Block) -> WireObject | None:
        match block:
            case Text(text=text):
                return {"text": text, **get_provider_fields(block, API)} if text.strip() else None
            case Image() | Document() | Audio():
                return self._encode_media(block)
            case Opaque():
                part = unpack_raw(block.raw) if is_for_api(block, API) else None
                # sources are no part of a content: the API sends them beside it
                return None if part is None or "groundingMetadata" in part else part
            case Thinking():
                wire = get_provider_fields(block, API)
                if wire:
                    return {"text": block.text, "thought": True, **wire}
                as_text = self.options.thinking_as_text and block.text.strip()
                return {"text": block.text} if as_text else None
            case ToolCall() | Unknown():
                return None

    def _encode_media(self, block: Image | Document | Audio) -> WireObject:
        data = load_base64(block.blob, self.load)
        if data is None:
            return {"text": describe_unsent(block)}
        return {
            "inlineData": {"mimeType": block.mime, "data": data},
            **get_provider_fields(block, API),
        }

    def _encode_answer(self, content: Content, ids: CallIds) -> Iterable[WireObject]:
        signed = not self.options.signed_calls
        for block in content:
            if isinstance(block, ToolCall):
                part = self._encode_call(block, ids)
                if not signed:
                    part.setdefault("thoughtSignature", UNSIGNED)
                signed = True
                yield part
            elif part_of := self._encode_part(block):
                yield part_of

    def _encode_call(self, call: ToolCall, ids: CallIds) -> WireObject:
        wire = get_provider_fields(call, API)
        known = wire.pop("id", None)
        wire_id = known if self.options.verbatim and isinstance(known, str) and known else None
        name = to_tool_name(call.name)
        sent_id = ids.call(call.id, wire_id, kind=name)
        function: WireObject = {"name": name, "args": build_argument_object(call)}
        is_bare = bytes(call.args) == b"{}" and get_written_form([call], API) == "absent"
        if self.options.verbatim and is_bare:
            del function["args"]
        return {"functionCall": {**({"id": sent_id} if wire_id else {}), **function}, **wire}

    def _encode_result(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        assert message.call_id is not None, "a tool message answers a call"
        bound = ids.result(message.call_id)
        response = get_outer_fields(message.content, API)
        beside = response.pop(BESIDE, {})
        response.pop("id", None)
        if bound.is_wanted:
            response["id"] = bound.id
        response["name"] = bound.kind or to_tool_name(message.name or "")
        others = self._encode_parts(
            tuple(block for block in message.content if not isinstance(block, Text))
        )
        attached = [part for part in others if "text" not in part]
        texts = [part["text"] for part in others if "text" in part]
        text = "\n".join(filter(None, [join_texts(message.content), *texts]))
        response.setdefault("response", {"error" if message.is_error else "output": text})
        if self.options.media_in_results and attached:
            response["parts"] = attached
            attached = []
        yield ArrayPart({"functionResponse": response, **beside}, _RESULTS)
        yield from (ArrayPart(part, _ATTACHED, late=True) for part in attached)
