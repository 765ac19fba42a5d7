"""What the readers of all four message arrays share: calls, results, texts and files; pure.

Providers repeat, omit and misplace the ids of calls, so each call gets one of ours. Invariant: the
same array always gives the same ids, and no two calls of it share one. A result is bound to

    the oldest unanswered call of the newest answer that used its id, else that id's last call
    without an id, to the oldest unanswered call of the newest answer that has one, of its name if
    it has a name; calls whose id a result names are left to that result
    otherwise to no call: it gets an id that no call has
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections import defaultdict
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..model.entries import (
    NO_JSON,
    Assistant,
    Audio,
    Context,
    Custom,
    Document,
    Image,
    Opaque,
    Text,
    ToolCall,
    Unknown,
)
from ..model.line import BLOB_KEY, JSON_ERRORS
from .wire import (
    KEY_API,
    KEY_FORM,
    KEY_MESSAGE,
    KEY_OUTER,
    KEY_STRANGE,
    KEY_TEXT,
    WireObject,
    decode_json,
    drop_fields,
    encode_json,
    pack_raw,
    unpack_raw,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..model.entries import Block, Content, Payload
    from .wire import Put


_PREFIX_DIGITS = 8


@dataclass(slots=True)
class _BoundToolCall:
    id: str
    name: str
    answered: bool = False


class _OpenCalls:
    """Calls in the order results are bound to them: newest answer first, its calls in order.

    Answered calls are removed when they reach the front. Lists, because an empty deque takes ten
    times the memory of one, and a session of 1 GB has a hundred thousand calls.
    """

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: list[tuple[int, list[_BoundToolCall]]] = []

    def add(self, answer: int, call: _BoundToolCall) -> None:
        """Add a call of the answer with this number; numbers only grow."""
        if not self._answers or self._answers[-1][0] != answer:
            self._answers.append((answer, []))
        self._answers[-1][1].append(call)

    def first(self) -> _BoundToolCall | None:
        """Return the next call to answer; None if all are answered."""
        while self._answers:
            calls = self._answers[-1][1]
            while calls and calls[0].answered:
                del calls[0]
            if calls:
                return calls[0]
            self._answers.pop()
        return None


_ANSWERED = _OpenCalls()
"""Stands for calls that are all answered; nothing is added to it."""


class AnsweredCall(NamedTuple):
    """The call a result answers: our id, the tool's name, and whether there is such a call."""

    id: str
    name: str
    is_known: bool


def collect_answered_ids(array: Iterable[Any]) -> frozenset[str]:
    """Return the ids of calls that results of an array name, in the way of any API."""
    pieces: list[Any] = []
    for element in array:
        pieces.append(element)
        for inside in (element.get("content"), element.get("parts")) if _is_dict(element) else ():
            pieces += inside if isinstance(inside, list) else [inside]
    ids: list[Any] = []
    for piece in filter(_is_dict, pieces):
        ids += (piece.get("tool_use_id"), piece.get("tool_call_id"))
        ids += [piece.get("call_id")] if "output" in piece else []
        responses = (piece.get("functionResponse"), piece.get("function_response"))
        ids += [response.get("id") for response in filter(_is_dict, responses)]
    return frozenset(call_id for call_id in ids if isinstance(call_id, str))


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


class CallBinder:
    """The calls of one array so far. Ids are `c_<8 hex>_<i>`, made from what came before them.

    A call with an `answered` id waits for that result; results without an id skip it.
    """

    def __init__(self, answered: frozenset[str] = frozenset()) -> None:
        self._answered = answered
        self._seen = sha256()
        self._prefixes: set[str] = set()
        self._prefix, self._index, self._answer = "", 0, 0
        self._newest: dict[str, tuple[int, _OpenCalls, _BoundToolCall]] = {}
        """Of a provider's id: the newest answer that used it, its calls, and the last of them."""
        self._open: defaultdict[tuple[bool, str | None], _OpenCalls] = defaultdict(_OpenCalls)
        """All calls, or those without a provider's id; of all names (None), or of one."""

    def begin_answer(self, raw: bytes) -> None:
        """Start an answer; `raw` are the bytes it was read from."""
        self._prefix, self._index = self._build_prefix(raw), 0
        self._answer += 1

    def call(self, provider_id: str | None, name: str) -> str:
        """Return our id for a call of the answer that began last."""
        call = _BoundToolCall(f"c_{self._prefix}_{self._index}", name)
        self._index += 1
        ways = () if provider_id in self._answered else (True,)
        for any_id in ways if provider_id is not None else (True, False):
            for named in (None, name):
                self._open[any_id, named].add(self._answer, call)
        if provider_id is not None:
            answer, calls, _ = self._newest.get(provider_id, (0, _OpenCalls(), call))
            if answer != self._answer or calls is _ANSWERED:
                calls = _OpenCalls()
            calls.add(self._answer, call)
            self._newest[provider_id] = self._answer, calls, call
        return call.id

    def result(self, provider_id: str | None, name: str | None = None) -> AnsweredCall:
        """Return the call a result answers; an id of no call when there is none."""
        if provider_id is not None and provider_id in self._newest:
            answer, calls, last = self._newest[provider_id]
            call = calls.first() or last
            call.answered = True
            if calls.first() is None:
                self._newest[provider_id] = answer, _ANSWERED, last
        elif (open_call := self._open[provider_id is None, name].first()) is not None:
            call = open_call
        else:
            prefix = self._build_prefix((provider_id or name or "").encode())
            return AnsweredCall(f"c_{prefix}_0", name or "", is_known=False)
        call.answered = True
        for key in ((True, None), (True, call.name)):  # forgets it, so that memory does not grow
            if key in self._open:
                self._open[key].first()
        return AnsweredCall(call.id, call.name, is_known=True)

    def _build_prefix(self, raw: bytes) -> str:
        """Return 8 hex digits for everything up to here, not used yet."""
        self._seen.update(raw)
        while (prefix := self._seen.hexdigest()[:_PREFIX_DIGITS]) in self._prefixes:
            self._seen.update(b"\n")
        self._prefixes.add(prefix)
        return prefix


_SOUND_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),(.*)", re.DOTALL)


def decode_elements(array: bytes | str | Sequence[Any]) -> list[Any]:
    """Return an array's elements as well-formed JSON values; raise ValueError if it is not one."""
    value = decode_json(array if isinstance(array, bytes | str) else encode_json(list(array)))
    if not isinstance(value, list):
        raise ValueError("not an array: a JSON array of messages is expected")  # noqa: TRY004
    return value


def list_content(content: Any) -> list[Any] | None:
    """Return content as a list: null is nothing, a string is one piece; None for anything else."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content] if content else []
    if isinstance(content, dict) and "type" in content:  # one piece without its list
        return [content]
    return content if isinstance(content, list) else None


def list_result_content(content: Any) -> list[Any]:
    """Return a tool's result as a list; a value that is not content becomes JSON text."""
    pieces = list_content(content)
    return [to_plain_text(content)] if pieces is None else pieces


def take_string(fields: WireObject, name: str) -> str | None:
    """Remove a string from the fields; another value stays there."""
    value = fields.get(name)
    if not isinstance(value, str):
        return None
    del fields[name]
    return value


def build_wire(fields: WireObject) -> Raw:
    """Return fields as a block's `wire`; nothing when there are none."""
    schema_fields = {name: part for name, part in fields.items() if name.startswith("$")}
    normal_fields = (
        {**drop_fields(fields, *schema_fields), KEY_STRANGE: schema_fields}
        if schema_fields
        else fields
    )
    return pack_raw(normal_fields) if normal_fields else NO_JSON


def to_opaque(value: Any) -> Opaque:
    """Return a provider's own piece unchanged."""
    return Opaque(raw=pack_raw(value))


def to_opaque_or_unknown(value: Any, known: frozenset[str]) -> Opaque | Unknown:
    """Return a piece no other block can hold: opaque, so that its provider gets it back.

    A malformed piece, not an object or of a `known` type, is kept but never sent.
    """
    if isinstance(value, dict) and str(value.get("type")) not in known:
        return to_opaque(value)
    return Unknown(raw=pack_raw(value))


def keep_whole_message(content: Iterable[Block], element: WireObject, api: str) -> Content:
    """Return content, or the whole element if content is empty, so that it is kept."""
    blocks = tuple(content)
    if all(isinstance(block, Text) and not block.text.strip() for block in blocks):
        return mark_api((to_opaque({KEY_MESSAGE: element}),), api)
    return blocks


def to_custom_entry(api: str, element: Any) -> Custom:
    """Return the entry for an element that is not a message."""
    return Custom(api, pack_raw(element))


def to_system_entry(content: Content) -> Context:
    """Return the entry for a system message."""
    return Context("system", "system", content)


def to_plain_text(value: Any) -> str:
    """Return a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else encode_json(value).decode()


def build_tool_call(call_id: str, name: Any, arguments: Any, fields: WireObject) -> ToolCall:
    """Return a call; `arguments` are its arguments as an object, or as the text a model wrote."""
    text = to_plain_text({} if arguments is None else arguments)
    if not text.strip():
        text = "{}"
    wire = build_wire(fields)
    try:
        value = decode_json(text)
    except JSON_ERRORS:
        value = None
    if not isinstance(value, dict) or BLOB_KEY in encode_json(value):
        return ToolCall(id=call_id, name=to_plain_text(name), args_text=text, wire=wire)
    args = Raw(text.encode())
    if arguments == text and msgspec.json.format(args, indent=-1) != bytes(args):
        wire = pack_raw(
            {**unpack_raw(wire), KEY_TEXT: text}
        )  # a tape stores the object without its blanks
    return ToolCall(id=call_id, name=to_plain_text(name), args=args, wire=wire)


def to_file_block(
    data: Any, mime: Any, put: Put, fields: WireObject, name: str | None = None
) -> Image | Audio | Document | None:
    """Return a file that is in an array as base64; None if it is not."""
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    try:
        blob = put(b64decode(data, validate=True))
    except (NotBase64, ValueError):
        return None
    wire = build_wire(fields)
    match mime.partition("/")[0]:
        case "image":
            return Image(blob=blob, mime=mime, wire=wire)
        case "audio":
            return Audio(blob=blob, mime=mime, wire=wire)
        case _:
            return Document(blob=blob, mime=mime, name=name, wire=wire)


def to_file_block_from_url(
    url: Any, put: Put, fields: WireObject, name: Any = None
) -> Image | Audio | Document | None:
    """Return a file that is in an array as a data URL; None if it is not."""
    match = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if match is None or match[2] != ";base64":
        return None
    return to_file_block(match[3], match[1], put, fields, name if isinstance(name, str) else None)


def to_sound_block(data: Any, kind: str, put: Put) -> Audio | None:
    """Return a sound of a kind that the OpenAI APIs name; None when it is none."""
    sound = to_file_block(data, _SOUND_MIMES.get(kind), put, {})
    return sound if isinstance(sound, Audio) else None


def add_outer_fields(content: Iterable[Block], fields: WireObject, form: str = "") -> Content:
    """Return content that carries the fields that stood beside it, on an empty text if need be.

    `form` is the word for the way it was written, empty for the usual one.
    """
    blocks = tuple(content)
    beside: WireObject = {KEY_OUTER: fields} if fields else {}
    if form:
        beside[KEY_FORM] = form
    if not beside:
        return blocks
    first, *rest = blocks or (Text(""),)
    return (replace(first, wire=pack_raw({**unpack_raw(first.wire), **beside})), *rest)


def get_content_form(holder: WireObject, key: str = "content") -> str:
    """Return the word for the way content is written: list, string, null or absent."""
    match holder.get(key, holder):
        case str():
            return "string"
        case list():
            return "list"
        case None:
            return "null"
    return "absent"


def get_content_list_form(content: Any) -> str:
    """Return "list" for a list of one piece, where a string would do; else nothing."""
    return "list" if isinstance(content, list) and len(content) == 1 else ""


def mark_api(content: Content, api: str) -> Content:
    """Return content that no model wrote, with the API's name on parts only it can read."""
    return tuple(
        replace(block, wire=pack_raw({**unpack_raw(block.wire), KEY_API: api}))
        if block.wire != NO_JSON or isinstance(block, Opaque)
        else block
        for block in content
    )


class ArrayReader:
    """Reads one array into payloads; `put` stores pictures and files."""

    api: ClassVar[str]
    """Name of the API."""

    def __init__(self, put: Put, calls: CallBinder) -> None:
        self.put, self.calls = put, calls

    @classmethod
    def parse(cls, array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
        """Return the payloads of an array; raise ValueError if it is not a JSON array."""
        elements = decode_elements(array)
        return [*cls(put, CallBinder(collect_answered_ids(elements))).read_payloads(elements)]

    def read_payloads(self, elements: list[Any]) -> Iterator[Payload]:
        """Yield what the elements give, in order."""
        for element in elements:
            yield from self.read_element(element)

    def read_element(self, element: Any) -> Iterator[Payload]:
        """Yield what one element gives."""
        raise NotImplementedError

    def read_block(self, piece: Any) -> Block:
        """Return a piece of content as a block."""
        return Text(piece) if isinstance(piece, str) else self.read_piece(piece)

    def read_piece(self, piece: Any) -> Block:
        """Return a piece that is no string as a block."""
        raise NotImplementedError

    def read_content(self, content: list[Any], outer: WireObject, form: str = "") -> Content:
        """Return content that no model wrote, with the fields beside it and its form."""
        return mark_api(add_outer_fields(map(self.read_block, content), outer, form), self.api)

    def build_answer(self, blocks: Content) -> Assistant:
        """Return the entry for what a model said."""
        has_calls = any(isinstance(block, ToolCall) for block in blocks)
        return Assistant(blocks, api=self.api, stop_reason="tool_calls" if has_calls else "stop")

    def assign_call_id(self, provider_id: Any, name: str) -> str:
        """Return our id for a call; what is no string is no id."""
        return self.calls.call(provider_id if isinstance(provider_id, str) else None, name)

    def match_result(self, outer: WireObject, key: str, name: str | None = None) -> AnsweredCall:
        """Return the call that a result names under `key`, which stays in `outer` if it is none."""
        provider_id = take_string(outer, key)
        call = self.calls.result(provider_id, name)
        if provider_id is not None and not call.is_known:
            outer[key] = provider_id
        return call
