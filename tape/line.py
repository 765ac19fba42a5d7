"""One entry and its line: key order, hashes, and what to do with data we do not know (tape.md §2).

Invariant: `encode` is the only place that writes an entry line, and what `read_header` accepts is
what `encode` writes, or an earlier version's wrote. Data read from disk is never encoded again:
`UPCASTS` lifts what an earlier version wrote as it is read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha256
from io import BytesIO
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

import msgspec
from msgspec import Raw, Struct, defstruct
from msgspec.structs import fields, force_setattr

from .blocks import NO_JSON, Audio, BlobRef, Block, Document, Image, Text, ToolCall, Unknown
from .entries import PAYLOADS, Assistant, Payload
from .errors import Damaged, InvalidEntry, NewerFormat, OlderFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMAT = 1
"""The version of the entry line that this code writes."""


class Upcast(NamedTuple):
    """How the lines of one version are read as lines of the next."""

    types: Mapping[str, str]
    """Entry types that the next version calls otherwise: old name to new."""
    data: Callable[[str, dict[str, Raw]], dict[str, Raw]]
    """Members of the data, given the old type; ValueError for data of an unexpected shape."""


UPCASTS: dict[int, Upcast] = {}
"""Every version before `FORMAT` that can still be read, and what lifts it to the next."""

_V = 49  # where `"v":` begins: after `{"id":"`, 40 digits and `",`
_DATA = b',"data":'
_ID = re.compile(rb'\{"id":"([0-9a-f]{40})","v":(0|[1-9][0-9]*),')
_LINE = re.compile(
    rb'\{"id":"([0-9a-f]{40})","v":[0-9]+,"parentId":(?:null|"([0-9a-f]{40})"),"n":(0|[1-9][0-9]*),'
    rb'"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
    rb'"type":"([a-z][a-z0-9._-]{0,63})","dh":"([0-9a-f]{32})","data":'
)
_TODAYS = re.compile(
    rb'\{"id":"(.{40})","v":%d,"parentId":(?:null|"(.{40})"),"n":(0|[1-9][0-9]*),'
    rb'"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
    rb'"type":"([a-z][a-z0-9._-]{0,63})","dh":"(.{32})","data":' % FORMAT,
    re.DOTALL,
)
"""The same of a line of today's format; that hashes are hex digits is looked at apart, and faster.
"""
_HEX = b"0123456789abcdef"
_TYPE = re.compile(r"[a-z][a-z0-9._-]{0,63}\Z")
_REDACTED = re.compile(rb"null *\Z")
_GONE = b"null"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BLOB = b'"$blob"'
_BLOB_REF = re.compile(
    rb'\{"\$blob":"([0-9a-f]{64})","bytes":([0-9]{1,18}),"head":("(?:[^"\\]++|\\.)*+")\}', re.DOTALL
)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_MEDIA = frozenset({"image", "document", "audio"})
_HOLD_BLOBS = frozenset({"mode", "checkpoint"})  # their payloads name blobs in fields of their own
_UNREADABLE = (ValueError, RecursionError)  # not JSON, not UTF-8, another shape, or nested too deep


class Entry(Struct, frozen=True, gc=False, tag_field="type", tag="", rename="camel"):
    """One entry, decoded. `n` is its depth, `time` UTC with microseconds, `data` its payload."""

    id: str
    v: int
    parent_id: str | None
    n: int
    time: str
    dh: str
    data: Payload

    @property
    def type(self) -> str:
        """The entry type, also of one this version does not know."""
        data = self.data
        return data.type if isinstance(data, Unread) else data.entry_type


class Unread(Payload, frozen=True, gc=False):
    """Data kept as raw JSON: of an unknown type, of an unexpected shape, or redacted."""

    entry_type: ClassVar[str] = "?"
    type: str
    raw: Raw
    why: str


class Header(Struct, frozen=True, gc=False):
    """What a line says of itself before its data; `data` is the offset where that begins."""

    id: str
    parent_id: str | None
    n: int
    time: str
    type: str
    dh: str
    data: int


_KINDS: tuple[type[Entry], ...] = tuple(
    defstruct(  # type: ignore[misc]  # each has Entry for its base
        f"{payload.__name__}Entry",
        [("data", payload)],
        bases=(Entry,),
        tag=name,
        frozen=True,
        gc=False,
    )
    for name, payload in PAYLOADS.items()
)
_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Union[_KINDS])  # noqa: UP007 (a tuple)
_BLOCK: msgspec.json.Decoder[Block] = msgspec.json.Decoder(Block)


def now() -> int:
    """Return microseconds since 1970: the clock every writer uses unless it is given another."""
    return time_ns() // 1000


def stamp(micros: int) -> str:
    """Return microseconds since 1970 as the text that stands on a tape."""
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    time = _EPOCH + timedelta(seconds=seconds)
    return time.replace(tzinfo=None).isoformat(timespec="seconds")


def micros(time: str) -> int:
    """Return a tape's time text as microseconds since 1970."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1)


def encode(
    kind: str, parent_id: str | None, n: int, time: str, data: bytes
) -> tuple[Header, bytes]:
    """Return the header and the whole line, with its newline, of an entry with compact `data`."""
    if kind not in PAYLOADS and not _TYPE.match(kind):
        raise InvalidEntry(
            f"entry type {kind!r} is not allowed: it must match {_TYPE.pattern[:-2]}"
        )
    parent = f'"{parent_id}"' if parent_id else "null"
    dh = sha256(data).hexdigest()[:32]
    body = (
        f'"v":{FORMAT},"parentId":{parent},"n":{n},"time":"{time}","type":"{kind}","dh":"{dh}"'
    ).encode()
    identity = sha256(body).hexdigest()[:40]
    line = b'{"id":"%b",%b,"data":%b}\n' % (identity.encode(), body, data)
    return Header(identity, parent_id, n, time, kind, dh, len(line) - len(data) - 2), line


def encode_payload(payload: Payload) -> bytes:
    """Return a payload as the compact JSON that stands in a line; lone surrogates become U+FFFD.

    Raises InvalidEntry when a raw field is not JSON, or names a blob the way only the store may.
    """
    return as_written(payload)[0]


def as_written(payload: Payload) -> tuple[bytes, Payload]:
    """Return a payload as compact JSON, and as that says it: see `encode_payload`."""
    try:
        data = msgspec.json.encode(payload)
    except UnicodeEncodeError:
        payload = _well_formed(payload)
        data = msgspec.json.encode(payload)
    raws = _raws(payload)
    if all(map(_is_compact, raws)):  # what stands outside raw fields always is
        return data, payload
    data = _compact(payload, data)
    if any(_BLOB in raw for raw in map(bytes, raws)):
        _refuse_blobs(msgspec.json.decode(data))
    return data, msgspec.json.decode(data, type=type(payload))


def _raws(payload: Payload) -> list[Raw]:
    """Return what raw fields hold, those of the content's blocks and of an anchor's state too."""
    state = getattr(payload, "state", None)
    return [
        raw
        for part in (payload, *getattr(payload, "content", ()), *((state,) if state else ()))
        for name, absent in _raw_fields(type(part))  # type: ignore[arg-type]
        if (raw := getattr(part, name)) is not absent
    ]


@cache
def _raw_fields(kind: type[Struct]) -> tuple[tuple[str, object], ...]:
    """Return the name and the default of each field that holds raw JSON."""
    return tuple((field.name, field.default) for field in fields(kind) if field.type is Raw)


def _is_compact(raw: Raw) -> bool:
    """Tell whether raw JSON stands in a line as it is: no blanks, nothing to refuse or replace."""
    data = bytes(raw)
    if b"\\u" in data or _BLOB in data:
        return False
    try:
        return msgspec.json.format(data, indent=-1) == data and bool(data.decode())
    except _UNREADABLE:
        return False


def _compact(payload: Payload, data: bytes) -> bytes:
    """Return JSON whose raw fields are anything without blanks and lone surrogates."""
    if b"\\ud" in data or b"\\uD" in data:
        data = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
    try:
        data = msgspec.json.format(data, indent=-1)
        data.decode()
    except _UNREADABLE as error:
        raise InvalidEntry(f"a raw field of {payload.entry_type} is not JSON: {error}") from error
    return data


def _refuse_blobs(data: dict[str, Any]) -> None:
    """Raise InvalidEntry for a `$blob` key that is not a picture's or a file's."""
    for block in data.get("content", ()):
        if block["type"] in _MEDIA:
            del block["blob"]
    if _names_blob(data):
        raise InvalidEntry("the key $blob is the store's own and may not be written")


def _names_blob(value: Any) -> bool:
    if isinstance(value, dict):
        return "$blob" in value or any(map(_names_blob, value.values()))
    return isinstance(value, list) and any(map(_names_blob, value))


def well_formed(text: str) -> str:
    """Return text with U+FFFD in the place of each lone surrogate."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return well_formed(value)
        case Struct():
            parts = {name: _well_formed(getattr(value, name)) for name in value.__struct_fields__}
            return type(value)(**parts)
        case tuple():
            return tuple(map(_well_formed, value))
        case _:
            return value


def read_header(line: bytes) -> Header:
    """Check the id of a line (without its newline) and return its header.

    Of an older line the type is the one it has today. Raises NewerFormat or OlderFormat when it
    verifies and this version cannot read it, Damaged in every other case. The data is not looked
    at; `data_holds` checks it.
    """
    head = _TODAYS.match(line)
    if head is None or not line.endswith(b"}"):
        return _any_header(line)
    identity, parent, n, time, kind, dh = head.groups(b"")
    data = head.end()
    name = sha256(line[_V : data - len(_DATA)]).hexdigest()[:40]
    if name.encode() != identity or (parent + dh).translate(None, _HEX):
        return _any_header(line)
    return Header(
        name, parent.decode() or None, int(n), time.decode(), kind.decode(), dh.decode(), data
    )


def _any_header(line: bytes) -> Header:
    """Return the header of a line of any format, or raise what is wrong with it."""
    begin, end = _ID.match(line), line.find(_DATA, _V)
    if begin is None or end < 0 or not line.endswith(b"}"):
        raise Damaged("not an entry line")
    if sha256(line[_V:end]).hexdigest()[:40].encode() != begin[1]:
        raise Damaged("its id does not match its bytes")
    upcasts = _upcasts(int(begin[2]))
    head = _LINE.match(line)
    if head is None:
        raise Damaged(f"not an entry line of format {FORMAT}")
    identity, parent, n, time, kind, dh = head.groups()
    return Header(
        identity.decode(),
        parent.decode() if parent else None,
        int(n),
        time.decode(),
        _type_today(kind.decode(), upcasts),
        dh.decode(),
        head.end(),
    )


def _upcasts(version: int) -> list[Upcast]:
    """Return what lifts a line of this version to today's, step by step."""
    if version > FORMAT:
        raise NewerFormat(
            f"written in format {version}, this program reads up to {FORMAT}: update it"
        )
    steps = range(version, FORMAT)
    if not UPCASTS.keys() >= set(steps):
        raise OlderFormat(f"written in format {version}, which this program cannot read any more")
    return [UPCASTS[step] for step in steps]


def _type_today(kind: str, upcasts: list[Upcast]) -> str:
    for upcast in upcasts:
        kind = upcast.types.get(kind, kind)
    return kind


def data_holds(line: bytes, header: Header) -> bool:
    """Tell whether the data of a line is what its header vouches for."""
    data = line[header.data : -1]
    return sha256(data).hexdigest()[:32] == header.dh


def is_redacted(line: bytes, header: Header) -> bool:
    """Tell whether the data of a line was overwritten by `null` and spaces."""
    return _REDACTED.match(line[header.data : -1]) is not None


def is_going(line: bytes, header: Header) -> bool:
    """Tell whether the data of a line was redacted, or began to be: no entry's data is `null`."""
    return line.startswith(_GONE, header.data)


def verify(line: bytes) -> Header:
    """Check a whole line, id and data, and return its header; raise as `read_header` does.

    A line whose redaction was cut short is whole: it may not be taken for a torn one.
    """
    header = read_header(line)
    if not data_holds(line, header) and not is_going(line, header):
        raise Damaged("its data does not match its hash")
    return header


def missing_blob(ref: BlobRef) -> str:
    """Return what stands for a payload whose blob is not there."""
    return f"{ref.head}\n[{ref.bytes} bytes in all; blob {ref.hash[:16]} is missing]"


def decode(line: bytes, expand: Callable[[BlobRef], str] = missing_blob) -> Entry:
    """Return the entry of a line; `expand` gives the text of a blob.

    An older line is read as today's entry. Raises Damaged when it is not JSON of an entry,
    NewerFormat or OlderFormat when this version cannot read it. Only shape is looked at, not
    hashes: `verify` does that.
    """
    try:
        entry = _decode_loosely(line, expand) if _BLOB in line else _DECODER.decode(line)
    except _UNREADABLE:
        entry = _decode_loosely(line, expand)
    if entry.v == FORMAT:
        return entry
    read_header(line)  # newer or older only if its id verifies
    return _lifted(line, entry.v, expand)


def _lifted(line: bytes, version: int, expand: Callable[[BlobRef], str]) -> Entry:
    """Return the entry of an older line as this version would have written it."""
    bare, upcasts = _BARE.decode(line), _upcasts(version)
    kind, raw = bare.type, bare.data
    with suppress(ValueError):  # redacted, or of an unexpected shape: kept as it stands
        members = msgspec.json.decode(raw, type=dict[str, Raw])
        for upcast in upcasts:
            members, kind = upcast.data(kind, members), upcast.types.get(kind, kind)
        raw = Raw(msgspec.json.encode(members))
    try:
        return _entry(bare, _type_today(bare.type, upcasts), raw, expand)
    except _UNREADABLE as error:
        raise Damaged(f"not an entry line: {error}") from error


def decode_all(
    data: bytes, expand: Callable[[BlobRef], str], skipped: Callable[[int, Damaged], None]
) -> list[Entry]:
    """Return the entries of many whole lines at once.

    A line that cannot be read is told to `skipped` with its offset, and left out.
    """
    lines = BytesIO(data).readlines()  # takes a quarter of the time of counting or splitting
    if not any(b"$" in line and _BLOB in line for line in lines):  # one byte is found far faster
        entries = _decode_strictly(data)
        if len(entries) == len(lines) and all(entry.v == FORMAT for entry in entries):
            _let_go(entries)
            return entries
    entries = []
    offset = 0
    for line in lines:
        if line != b"\n":
            try:
                entries.append(decode(line.removesuffix(b"\n"), expand))
            except Damaged as error:
                skipped(offset, error)
        offset += len(line)
    return entries


def _let_go(entries: list[Entry]) -> None:
    """Give calls arguments of their own: raw JSON holds on to all bytes it was decoded from."""
    for entry in entries:
        data = entry.data
        if isinstance(data, Assistant):
            for block in data.content:
                if isinstance(block, ToolCall) and block.args is not NO_JSON:
                    force_setattr(block, "args", block.args.copy())


def _decode_strictly(lines: bytes) -> list[Entry]:
    """Return the entries of lines that all hold known payloads, none where one does not."""
    try:
        return _DECODER.decode_lines(lines)
    except _UNREADABLE:
        return []


class _Bare(Struct, gc=False, rename="camel"):
    id: str
    v: int
    parent_id: str | None
    n: int
    time: str
    type: str
    dh: str
    data: Raw


_BARE = msgspec.json.Decoder(_Bare)


def _decode_loosely(line: bytes, expand: Callable[[BlobRef], str]) -> Entry:
    try:
        bare = _BARE.decode(line)
        return _entry(bare, bare.type, bare.data, expand)
    except _UNREADABLE as error:
        raise Damaged(f"not an entry line: {error}") from error


def _entry(bare: _Bare, kind: str, raw: Raw, expand: Callable[[BlobRef], str]) -> Entry:
    data = _payload(kind, raw, expand)
    whole = Entry if isinstance(data, Unread) else _BY_TYPE[kind]
    return whole(bare.id, bare.v, bare.parent_id, bare.n, bare.time, bare.dh, data)


def _payload(kind: str, raw: Raw, expand: Callable[[BlobRef], str]) -> Payload:
    """Read data as far as it can be understood; what cannot is kept raw, with the reason."""
    payload = PAYLOADS.get(kind)
    if payload is None:
        return Unread(kind, raw, "unknown type")
    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw] | None)
        if members is None:
            return Unread(kind, raw, "redacted")
        return msgspec.json.decode(_whole(kind, members, expand), type=payload)
    except msgspec.ValidationError as error:
        return Unread(kind, raw, f"unexpected shape: {error}")


def _whole(kind: str, members: dict[str, Raw], expand: Callable[[BlobRef], str]) -> bytes:
    """Return data with texts in the place of their blobs; all else stays as it was written."""
    content = members.pop("content", None)
    if kind not in _HOLD_BLOBS:
        members = {key: _expanded(value, expand) for key, value in members.items()}
    if content is not None:
        members["content"] = Raw(msgspec.json.encode(_blocks(content, expand)))
    return msgspec.json.encode(members)


def _expanded(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    data = bytes(raw)
    if _BLOB not in data:
        return raw

    def text(found: re.Match[bytes]) -> bytes:
        ref = BlobRef(found[1].decode(), int(found[2]), msgspec.json.decode(found[3]))
        return msgspec.json.encode(expand(ref))

    return Raw(_BLOB_REF.sub(text, data))


def _blocks(content: Raw, expand: Callable[[BlobRef], str]) -> list[Raw]:
    """Return content as a list of known blocks: a bare string is text, null is nothing."""
    if bytes(content).startswith(b"{"):
        content = _expanded(content, expand)
    found = msgspec.json.decode(content, type=list[Raw] | str | None)
    if isinstance(found, str):
        return [Raw(msgspec.json.encode(Text(text=found)))]
    return [_block(raw, expand) for raw in found or ()]


def _block(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    if isinstance(_known(raw), Image | Document | Audio):
        return raw
    whole = _expanded(raw, expand)
    if _known(whole) is None:
        return Raw(msgspec.json.encode(Unknown(raw=raw)))
    return whole


def _known(raw: Raw) -> Block | None:
    try:
        return _BLOCK.decode(raw)
    except msgspec.ValidationError:
        return None


_BY_TYPE = dict(zip(PAYLOADS, _KINDS, strict=True))


def entry_of(header: Header, payload: Payload) -> Entry:
    """Return the entry that was just written, without reading it back."""
    kind = _BY_TYPE[payload.entry_type]
    return kind(header.id, FORMAT, header.parent_id, header.n, header.time, header.dh, payload)
