"""Message arrays of the OpenAI Chat Completions API and hosts that speak it: pure.

Rules kept here: the tool messages of a batch come right after their calls, with nothing between;
pictures of tools follow in a user message; an assistant's content is a string, or null beside
calls; ids up to 40 characters; arguments are always a JSON object as text. A system message is
in its place, so the system prompt is the first message.

`wire` holds: thinking `field` (the name its text had: reasoning_content, reasoning, reasoning_text)
and `details` (a list of reasoning_details); a tool call `id`, its own `details`, and fields of
its host such as `extra_content`; a text `refusal: true` when it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ...model.entries import Audio, Document, Image, Opaque, Text, Thinking, ToolCall, Unknown
from ..encoder import (
    OPENAI_CHAT_IDS,
    ArrayEncoder,
    ArrayPart,
    ArrayStyle,
    ArrayTurn,
    CallIds,
    IdRule,
    to_tool_name,
)
from ..wire import (
    AUDIO,
    WireObject,
    build_argument_text,
    describe_unsent,
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

API = "openai-chat"
_ATTACHED = ArrayTurn("user", "content", "attached")
_ATTACHED_HEAD = ArrayPart(
    {"type": "text", "text": "Attached image(s) from tool result:"}, _ATTACHED, late=True
)
_CALL_FIELDS = {"id", "type", "details"}
_FILLER = ArrayPart({"role": "assistant", "content": "I have the results."})


class OpenAIChatOptions(Struct, frozen=True, kw_only=True):
    """Switches for hosts that speak this API in their own way; the defaults fit OpenAI's."""

    ids: IdRule = OPENAI_CHAT_IDS
    """Which ids of calls the host takes; Mistral wants `MISTRAL_IDS`."""
    system_role: Literal["system", "developer"] = "system"
    content: Literal["auto", "string", "list"] = "auto"
    """Texts as one string, as a list of parts, or a string where there is just one."""
    thinking_as_text: bool = False
    """Send thinking without a field of the host as tagged text; otherwise it is left out."""
    replay_reasoning: bool = False
    """Every answer has `reasoning_content`, empty if there is none."""
    tool_result_name: bool = False
    """A tool message names its tool."""
    filler_after_tools: bool = False
    """Insert an assistant message between results and the user message after them."""
    freeform: frozenset[str] = frozenset()
    """Tools whose input is plain text: their calls are of type custom."""
    verbatim: bool = False
    """Calls keep the id and the text their provider gave them, where `wire` still holds it."""


DEFAULT_OPTIONS = OpenAIChatOptions()


def build_encoder(
    options: OpenAIChatOptions = DEFAULT_OPTIONS, load: Load | None = None
) -> ArrayEncoder:
    """Return an encoder of arrays; `load` fetches pictures and files, which else become a text.

    `wire` data is taken to come from this API, as repair drops any other.
    """
    return ArrayEncoder(_OpenAIChatStyle(options, load))


class _OpenAIChatStyle(ArrayStyle):
    def __init__(self, options: OpenAIChatOptions, load: Load | None) -> None:
        self.options, self.load = options, load
        self.ids = options.ids

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        if message.role != "tool" and (whole := find_whole_message(message.content, API)):
            return [ArrayPart(whole)] if self.options.verbatim else []
        if message.role == "assistant":
            answer = self._encode_answer(message.content, ids)
            return [ArrayPart(answer)] if answer else []
        if message.role == "tool":
            return self._encode_result(message, ids)
        is_system = message.role == "system"
        content = [
            wire
            for block in message.content
            if (wire := self._encode_part(block, is_system=is_system))
        ]
        if not content:
            return []
        role = self.options.system_role if message.role == "system" else "user"
        form = get_written_form(message.content, API) if self.options.verbatim else ""
        fields = {"role": role, "content": self._shape_content(content, form)}
        return [ArrayPart({**fields, **get_outer_fields(message.content, API)})]

    def place_part(self, before: str, part: ArrayPart) -> Iterable[ArrayPart]:
        after_tools = self.options.filler_after_tools and before == "tool"
        return (_FILLER, part) if after_tools and part.role == "user" else (part,)

    def _shape_content(self, parts: list[WireObject], form: str = "") -> str | list[WireObject]:
        plain = all(part.keys() == {"type", "text"} for part in parts)
        if self.options.content == "list" or form == "list" or not plain:
            return parts
        if len(parts) == 1:
            return str(parts[0]["text"])
        if self.options.content == "auto":
            return parts
        return "\n\n".join(part["text"] for part in parts)

    def _encode_result(self, message: Message, ids: CallIds) -> list[ArrayPart]:
        assert message.call_id is not None, "a tool message answers a call"
        texts = [block for block in message.content if isinstance(block, Text)]
        others = [block for block in message.content if not isinstance(block, Text)]
        attached = [wire for block in others if (wire := self._encode_part(block))]
        parts = [wire for block in texts if (wire := self._encode_part(block))]
        form = get_written_form(message.content, API) if self.options.verbatim else ""
        if not parts and not attached and form == "string":
            parts = [{"type": "text", "text": ""}]
        if not parts:
            words = "(see the attachment)" if attached else "(no output)"
            parts = [{"type": "text", "text": words}]
        result: WireObject = {
            **get_outer_fields(message.content, API),
            "role": "tool",
            "tool_call_id": ids.result(message.call_id).id,
            "content": self._shape_content(parts, form),
        }
        if self.options.tool_result_name and message.name:
            result["name"] = to_tool_name(message.name)
        late = [ArrayPart(wire, _ATTACHED, late=True) for wire in attached]
        return [ArrayPart(result), *([_ATTACHED_HEAD] if late else []), *late]

    def _encode_answer(self, content: Content, ids: CallIds) -> WireObject | None:
        calls = [self._encode_call(block, ids) for block in content if isinstance(block, ToolCall)]
        words = self._answer_content(content)
        refusals = [text for block in content if (text := _get_refusal(block))]
        answer: WireObject = {"role": "assistant", "content": words or None}
        if refusals:
            answer["refusal"] = "".join(refusals)
        match get_written_form(content, API) if self.options.verbatim else "":
            case "list" if isinstance(words, str) and words:
                answer["content"] = [{"type": "text", "text": words}]
            case "string" if not words:
                answer["content"] = ""
            case "absent" if not words:
                del answer["content"]
        answer |= self._encode_reasoning(content) | get_outer_fields(content, API)
        if calls:
            answer["tool_calls"] = calls
        sendable = words or calls or refusals or {"audio", "function_call"} & answer.keys()
        return answer if sendable else None

    def _answer_content(self, content: Content) -> str | list[Any]:
        """Return the text of an answer as one string, or a list if it has more than text."""
        own = [
            block.raw for block in content if isinstance(block, Opaque) and is_for_api(block, API)
        ]
        words: list[str] = []
        for block in content:
            match block:
                case Text(text=text) if not _get_refusal(block):
                    words.append(text)
                case Thinking(text=text) if self.options.thinking_as_text and text.strip():
                    if "field" not in get_provider_fields(block, API):
                        words.append(f"<thinking>\n{text}\n</thinking>\n")
        text = "".join(words)
        if not own:
            return text if text.strip() else ""
        texts = [{"type": "text", "text": word} for word in words if word.strip()]
        return [*texts, *map(unpack_raw, own)]

    def _encode_reasoning(self, content: Content) -> WireObject:
        """Return thinking under the name it came with, an empty one too, and its details."""
        fields: WireObject = {}
        details: list[Any] = []
        for block in content:
            if isinstance(block, Thinking | ToolCall) and (wire := get_provider_fields(block, API)):
                details += wire.get("details", [])
                if isinstance(block, Thinking) and (name := wire.get("field")):
                    fields[name] = fields.get(name, "") + block.text
        if self.options.replay_reasoning and not fields:
            fields["reasoning_content"] = ""
        return {**fields, "reasoning_details": details} if details else fields

    def _encode_call(self, call: ToolCall, ids: CallIds) -> WireObject:
        wire = get_provider_fields(call, API)
        wire_id = wire.get("id") if self.options.verbatim else None
        extra = {name: wire[name] for name in wire.keys() - _CALL_FIELDS}
        custom = wire.get("type") == "custom" or call.name in self.options.freeform
        identity = {"id": ids.call(call.id, wire_id), **extra}
        name = to_tool_name(call.name)
        if custom:
            text = get_freeform_input(call, is_own=wire.get("type") == "custom")
            return {**identity, "type": "custom", "custom": {"name": name, "input": text}}
        text = build_argument_text(call, verbatim=self.options.verbatim and bool(wire))
        return {**identity, "type": "function", "function": {"name": name, "arguments": text}}

    def _encode_part(self, block: Block, *, is_system: bool = False) -> WireObject | None:
        match block:
            case Text(text=text):
                wire = get_provider_fields(block, API)
                return {"type": "text", "text": text, **wire} if text.strip() else None
            case Image() | Document() | Audio():
                return (
                    {"type": "text", "text": describe_unsent(block)}
                    if is_system
                    else self._encode_media(block)
                )
            case Opaque():
                return unpack_raw(block.raw) if is_for_api(block, API) else None
            case Thinking() | ToolCall() | Unknown():
                return None

    def _encode_media(self, block: Image | Document | Audio) -> WireObject:
        data = load_base64(block.blob, self.load)
        if data is None or (isinstance(block, Audio) and block.mime not in AUDIO):
            return {"type": "text", "text": describe_unsent(block)}
        url, wire = f"data:{block.mime};base64,{data}", get_provider_fields(block, API)
        match block:
            case Image():
                return {"type": "image_url", "image_url": {"url": url, **wire}}
            case Audio():
                sound = {"data": data, "format": AUDIO[block.mime]}
                return {"type": "input_audio", "input_audio": sound}
            case Document():
                file = {"filename": block.name or "file", "file_data": url}
                return {"type": "file", "file": {**file, **wire}}


def _get_refusal(block: Block) -> str:
    """Return the text of a refusal; "" if the block is none."""
    is_one = isinstance(block, Text) and get_provider_fields(block, API).get("refusal")
    return block.text if isinstance(block, Text) and is_one else ""
