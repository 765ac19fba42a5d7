"""One entry and its bytes: the only home of entry lines and of their data (tape.md §2, §3).

A line, and the bytes of it that each hash covers:

    {"id":"<40 hex>","v":1,"parentId":…,"n":…,"time":…,"type":…,"dh":"<32 hex>","data":{…}}
           7..47     49 ──────────── id covers this ──────────────────▶│       │ dh covers │

So an id covers the parent's id and, through `dh`, the data: it vouches for the path to the root.

Invariant: this module alone writes entry lines, and what `read_header` accepts is what it writes,
or an earlier version wrote. Data read from disk is never encoded again: `UPCASTS` lifts older lines
while they are read. Raw JSON is not changed; a lone surrogate becomes U+FFFD, the key `$blob` is
reserved for the store.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

import msgspec
from msgspec import Raw, Struct, defstruct
from msgspec.structs import fields, force_setattr

from ..errors import Damaged, InvalidEntry, NewerFormat, OlderFormat
from ..text import replace_surrogates
from .entries import (
    ENTRY_TYPE,
    NO_JSON,
    PAYLOADS,
    Anchor,
    Assistant,
    Audio,
    BlobRef,
    Block,
    Context,
    Document,
    Image,
    Payload,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
    Unknown,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from .entries import Content

BLOB_KEY = b'"$blob"'
"""The key of a reference to a payload in a blob."""
READ_BYTES = 5 * 1024 * 1024
"""Most bytes of a tool's full output that is loaded together with its entry."""
JSON_ERRORS = (ValueError, RecursionError)
"""Errors for bytes that are not JSON, not UTF-8, of another shape, or nested too deep."""

FORMAT = 1
"""The version of the entry line that this code writes."""


class Upcast(NamedTuple):
    """How to read the lines of one version as lines of the next."""

    types: Mapping[str, str]
    """Entry types that are renamed in the next version: old name to new."""
    data: Callable[[str, dict[str, Raw]], dict[str, Raw]]
    """Converts the members of the data, given the old type; ValueError for an unexpected shape."""


UPCASTS: dict[int, Upcast] = {}
"""Every older version that can be read, and its conversion to the next version."""

DATA_KEY = b',"data":'
"""What is between the bytes that an id covers and the data."""
BLANK_DATA = b"null"
"""How redacted data begins; spaces follow."""

_ID = slice(7, 47)
_BODY = 49  # where the bytes begin that the id covers: after `{"id":"`, 40 digits and `",`
_LINK = b'"v":%d,"parentId":' % FORMAT
_PARENT_ID = slice(_BODY + len(_LINK) + 1, _BODY + len(_LINK) + 41)
_VERSION = rb'\{"id":"([0-9a-f]{40})","v":(0|[1-9][0-9]{0,17}),'
_FIELDS = (
    rb'"parentId":(?:null|"(%s{40})"),"n":(0|[1-9][0-9]{0,17}),'
    rb'"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)","type":"(%s)","dh":"(%s{32})","data":'
)
_TYPE = ENTRY_TYPE.encode()
_LINE = rb'\{"id":"([0-9a-f]{40})","v":[0-9]+,' + _FIELDS % (b"[0-9a-f]", _TYPE, b"[0-9a-f]")
_TODAYS = re.compile(
    rb'\{"id":"(.{40})","v":%d,' % FORMAT + _FIELDS % (b".", _TYPE, b"."), re.DOTALL
)
"""A line of today's format; its hex digits are checked separately, which is faster."""
_HEX = b"0123456789abcdef"
_KIND = re.compile(rb'Z","type":"(%s)","dh":"' % _TYPE)
_HEAD = 400  # most bytes up to the end of a line's type
_PARENT_FIELD = rb'(,"parentId":)(?:null|"[0-9a-f]{40}")(,"n":)'
_DATA_HASH = rb'"dh":"[0-9a-f]{32}"\Z'
_REDACTED = rb"null *\Z"


class Unread(Payload, frozen=True, gc=False):
    """Data kept as raw JSON: of an unknown type, of an unexpected shape, or redacted."""

    entry_type: ClassVar[str] = "?"
    type: str
    raw: Raw
    why: str


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
        """The entry type, also if this version does not know it."""
        data = self.data
        return data.type if isinstance(data, Unread) else data.entry_type


class Header(Struct, frozen=True, gc=False):
    """The fields of a line before its data; `data` is the offset of the data."""

    id: str
    parent_id: str | None
    n: int
    time: str
    type: str
    dh: str
    data: int


@cache
def _make_entry_class(kind: str) -> type[Entry]:
    """Return the class of the entries of a known type, made at its first use."""
    payload = PAYLOADS[kind]
    return defstruct(  # type: ignore[return-value]  # each has Entry for its base
        f"{payload.__name__}Entry",
        [("data", payload)],
        bases=(Entry,),
        tag=kind,
        frozen=True,
        gc=False,
    )


@cache
def _get_decoder(kind: str | None = None) -> msgspec.json.Decoder[Entry]:
    """Return the decoder of lines of a known type, or of all.

    Built at its first use: many commands read only headers, others one or two types.
    """
    if kind is not None:
        return msgspec.json.Decoder(_make_entry_class(kind))
    return msgspec.json.Decoder(Union[list_entry_classes()])  # noqa: UP007 (a tuple)


def list_entry_classes() -> tuple[type[Entry], ...]:
    """Return the class of the entries of each known type."""
    return tuple(map(_make_entry_class, PAYLOADS))


def encode_line(
    kind: str, parent_id: str | None, n: int, time: str, data: bytes
) -> tuple[Header, bytes]:
    """Return the header and the whole line, with its newline, of an entry with compact `data`.

    Raises InvalidEntry for a type that may not be written.
    """
    if kind not in PAYLOADS and not re.fullmatch(ENTRY_TYPE, kind):
        raise InvalidEntry(f"entry type {kind!r} is not allowed: it must match {ENTRY_TYPE}")
    parent = f'"{parent_id}"' if parent_id else "null"
    dh = sha256(data).hexdigest()[:32]
    body = (
        f'"v":{FORMAT},"parentId":{parent},"n":{n},"time":"{time}","type":"{kind}","dh":"{dh}"'
    ).encode()
    identity, line = _assemble_line(body, data)
    return Header(identity, parent_id, n, time, kind, dh, len(line) - len(data) - 2), line


def rewrite_line(line: bytes, header: Header, parent_id: str | None, data: bytes) -> bytes:
    """Return a line, with its newline, with another parent and other data, in its own format.

    The hash of data that is as it was stays: that of redacted data cannot be computed any more.
    """
    body = line[_BODY : header.data - len(DATA_KEY)]
    parent = f'"{parent_id}"' if parent_id else "null"
    body = re.sub(_PARENT_FIELD, rb"\g<1>%b\g<2>" % parent.encode(), body, count=1)
    if data != line[header.data : -1]:
        digest = sha256(data).hexdigest()[:32].encode()
        body = re.sub(_DATA_HASH, b'"dh":"%b"' % digest, body)
    return _assemble_line(body, data)[1]


def _assemble_line(body: bytes, data: bytes) -> tuple[str, bytes]:
    """Return the id and the whole line of a body, which is all that the id covers, and its data."""
    identity = sha256(body).hexdigest()[:40]
    return identity, b"".join((b'{"id":"', identity.encode(), b'",', body, DATA_KEY, data, b"}\n"))


def encode_id_prefix(prefix: str) -> bytes:
    """Return the bytes that the line of each entry whose id starts with `prefix` starts with."""
    return b'{"id":"' + prefix.encode()


def read_id(line: bytes) -> str:
    """Return the id in a line, unchecked."""
    return line[_ID].decode("latin-1")


def read_parent_id(line: bytes) -> str:
    """Return the id of the parent in a line of the current format, unchecked."""
    return line[_PARENT_ID].decode("latin-1")


def read_header(line: bytes) -> Header:
    """Check the id of a line (without its newline) and return its header.

    An older line gets its current type. Raises NewerFormat or OlderFormat if the line verifies but
    this version cannot read it, Damaged in every other case. The data is not checked;
    `has_valid_data` does that.
    """
    head = _TODAYS.match(line)
    if head is None or not line.endswith(b"}"):
        return _read_any_header(line)
    identity, parent, n, time, kind, dh = head.groups(b"")
    data = head.end()
    name = sha256(line[_BODY : data - len(DATA_KEY)]).hexdigest()[:40]
    if name.encode() != identity or (parent + dh).translate(None, _HEX):
        return _read_any_header(line)
    return Header(
        name, parent.decode() or None, int(n), time.decode(), kind.decode(), dh.decode(), data
    )


def _read_any_header(line: bytes) -> Header:
    """Return the header of a line of any format; raise as `read_header` does."""
    begin, end = re.match(_VERSION, line), line.find(DATA_KEY, _BODY)
    if begin is None or end < 0 or not line.endswith(b"}"):
        raise Damaged("not an entry line")
    if sha256(line[_BODY:end]).hexdigest()[:40].encode() != begin[1]:
        raise Damaged("its id does not match its bytes")
    upcasts = _find_upcasts(int(begin[2]))
    head = re.match(_LINE, line)
    if head is None:
        raise Damaged(f"not an entry line of format {FORMAT}")
    identity, parent, n, time, kind, dh = head.groups()
    return Header(
        identity.decode(),
        parent.decode() if parent else None,
        int(n),
        time.decode(),
        _upcast_type(kind.decode(), upcasts),
        dh.decode(),
        head.end(),
    )


def _find_upcasts(version: int) -> list[Upcast]:
    """Return the conversions from this version to the current one, in order."""
    if version > FORMAT:
        raise NewerFormat(
            f"written in format {version}, this program reads up to {FORMAT}: update it"
        )
    steps = range(version, FORMAT)
    if not UPCASTS.keys() >= set(steps):
        raise OlderFormat(f"written in format {version}, which this program can no longer read")
    return [UPCASTS[step] for step in steps]


def _upcast_type(kind: str, upcasts: list[Upcast]) -> str:
    for upcast in upcasts:
        kind = upcast.types.get(kind, kind)
    return kind


def read_type(line: bytes) -> str:
    """Return the type in a line, unchecked; "" if there is none."""
    match = _KIND.search(line, 0, _HEAD)
    return match[1].decode() if match else ""


def has_valid_data(line: bytes, header: Header) -> bool:
    """Return whether the data of a line matches the hash in its header."""
    data = line[header.data : -1]
    return sha256(data).hexdigest()[:32] == header.dh


def has_valid_links(lines: Iterable[bytes], before: str) -> bool:
    """Return whether both hashes of each line match, and each follows the one before.

    The lines have their newlines; the first follows the entry `before`. Gives the same answer as
    `read_header`, `has_valid_data` and the parents' ids, for lines of the current format, in half
    the time.
    """
    last = before.encode()
    for line in lines:
        cut = line.find(DATA_KEY, _BODY)
        if (
            line[_BODY : _PARENT_ID.start - 1] != _LINK
            or line[_PARENT_ID] != last
            or line[-2:] != b"}\n"
            or sha256(line[_BODY:cut]).hexdigest()[:40].encode() != line[_ID]
            or sha256(line[cut + 8 : -2]).hexdigest()[:32].encode() != line[cut - 33 : cut - 1]
        ):
            return False
        last = line[_ID]
    return True


def is_data_redacted(line: bytes, header: Header) -> bool:
    """Return whether the data of a line was overwritten by `null` and spaces."""
    return re.match(_REDACTED, line[header.data : -1]) is not None


def is_redaction_begun(line: bytes, header: Header) -> bool:
    """Return whether a line's data is redacted, also in part: no entry's data is `null`."""
    return line.startswith(BLANK_DATA, header.data)


def blank_redacted_data(line: bytes, ids: Collection[str]) -> bytes:
    """Return a line, with its data blanked if its id is in `ids`, which redact entries name.

    Data that is too short to be redacted stays.
    """
    if read_id(line) not in ids:
        return line
    try:
        header = read_header(line)
    except Damaged:
        return line
    length = len(line) - 1 - header.data
    if length < len(BLANK_DATA):
        return line
    return line[: header.data] + BLANK_DATA.ljust(length) + b"}"


def verify_line(line: bytes) -> Header:
    """Check a whole line, id and data, and return its header; raise as `read_header` does.

    A line whose redaction was interrupted verifies: it must not be mistaken for a torn one.
    """
    header = read_header(line)
    if not has_valid_data(line, header) and not is_redaction_begun(line, header):
        raise Damaged("its data does not match its hash")
    return header


def describe_missing_blob(ref: BlobRef) -> str:
    """Return the placeholder for a payload whose blob is missing."""
    return f"{ref.head}\n[{ref.bytes} bytes in all; blob {ref.hash[:16]} is missing]"


def describe_blob_head(ref: BlobRef) -> str:
    """Return the beginning of a blob's text and its size in bytes, to show in its place."""
    return f"{ref.head}… ({ref.bytes} bytes)"


def decode_line(line: bytes, expand: Callable[[BlobRef], str] = describe_missing_blob) -> Entry:
    """Return the entry of a line; `expand` gives the text of a blob.

    An older line is converted to a current entry. Raises Damaged if it is not the JSON of an entry,
    NewerFormat or OlderFormat if this version cannot read it. Checks only the shape, not the
    hashes: `verify_line` does that.
    """
    try:
        kind = read_type(line)
        if BLOB_KEY in line or kind not in PAYLOADS:
            entry = _decode_loosely(line, expand)
        else:
            entry = _get_decoder(kind).decode(line)
    except JSON_ERRORS:
        entry = _decode_loosely(line, expand)
    if entry.v == FORMAT:
        return entry
    read_header(line)  # it counts as newer or older only if its id verifies
    bare, upcasts = _get_bare_decoder().decode(line), _find_upcasts(entry.v)
    kind, raw = bare.type, bare.data
    with suppress(ValueError):  # redacted, or of an unexpected shape: kept as it is
        members = msgspec.json.decode(raw, type=dict[str, Raw])
        for upcast in upcasts:
            members, kind = upcast.data(kind, members), upcast.types.get(kind, kind)
        raw = Raw(msgspec.json.encode(members))
    try:
        return _build_bare_entry(bare, _upcast_type(bare.type, upcasts), raw, expand)
    except JSON_ERRORS as error:
        raise Damaged(f"not an entry line: {error}") from error


def can_decode_lines(data: bytes) -> bool:
    """Return whether `decode_line` can read each of many whole lines of the current format.

    False where one has to be looked at by itself: it may be readable or not. Takes half the time.
    """
    try:
        data.decode()  # the decoder does not check raw parts of an entry
        entries = _get_bare_decoder().decode_lines(data)
    except JSON_ERRORS:
        return False
    return len(entries) == data.count(b"\n") and all(entry.v == FORMAT for entry in entries)


def decode_lines(
    data: bytes, expand: Callable[[BlobRef], str], skipped: Callable[[int, Damaged], None]
) -> list[Entry]:
    """Return the entries of many whole lines at once.

    A line that cannot be read is reported to `skipped` with its offset, and left out.
    """
    with suppress(*JSON_ERRORS):  # a line of an unknown type or shape
        entries = _get_decoder().decode_lines(data)
        count = len(data) - len(data.replace(b"\n", b""))  # three times as fast as bytes.count
        if len(entries) == count and _detach_entries(entries):
            return entries
    entries = []
    offset = 0
    for line in BytesIO(data).readlines():
        if line != b"\n":
            try:
                entries.append(decode_line(line.removesuffix(b"\n"), expand))
            except Damaged as error:
                skipped(offset, error)
        offset += len(line)
    return entries


_ORIGIN = ("provider", "api", "endpoint", "model", "stop_reason", "raw_stop")
"""Fields of answers whose few values repeat from answer to answer."""


_RAWLESS = frozenset({User, Assistant, Context})
"""The most frequent payload types that have no raw field."""
_SPOKEN = _RAWLESS | {ToolResult}


_MAX_SHARED_RAW = 100
"""Bytes of raw JSON beside a block that often repeat: the name of its API, and no more."""


def drop_repeated_values(
    entries: Iterable[Entry], before: str, known: dict[object, object], *, digests: bool = True
) -> None:
    """Let entries share equal values: a parent's id, a call's, and where answers come from.

    `before` is the id of the entry before them; `known` holds the values of earlier entries.
    Without `digests` the `dh` of each becomes empty.
    """
    calls: dict[str, str] = {}
    for entry in entries:
        if entry.parent_id == before:
            force_setattr(entry, "parent_id", before)
        if not digests:
            force_setattr(entry, "dh", "")
        before = entry.id
        data = entry.data
        kind = type(data)
        if kind is Assistant:
            _replace_origin(data, known)  # type: ignore[arg-type]
        elif kind is ToolResult:
            force_setattr(data, "call_id", calls.pop(data.call_id, data.call_id))  # type: ignore[attr-defined]
            _replace_value(data, "name", known)
        if kind in _SPOKEN:
            _replace_content(data.content, known, calls)  # type: ignore[attr-defined]


def _replace_value(data: Struct, name: str, known: dict[object, object]) -> None:
    """Replace a value by an equal one that is known, or make it known."""
    value = getattr(data, name)
    if value:
        force_setattr(data, name, known.setdefault(value, value))


def _replace_origin(answer: Assistant, known: dict[object, object]) -> None:
    for name in _ORIGIN:
        _replace_value(answer, name, known)
    if answer.usage.server_tools is None:  # else it has no hash
        _replace_value(answer, "usage", known)


def _replace_content(content: Content, known: dict[object, object], calls: dict[str, str]) -> None:
    """Replace names of tools and short raw JSON; note the ids of calls for their results."""
    for block in content:
        raw = getattr(block, "wire", NO_JSON)
        if raw is not NO_JSON and len(text := bytes(raw)) < _MAX_SHARED_RAW:
            force_setattr(block, "wire", known.setdefault(text, raw))
        if type(block) is ToolCall:
            calls[block.id] = block.id
            _replace_value(block, "name", known)


def _detach_entries(entries: list[Entry]) -> bool:
    """Copy raw fields, because raw JSON keeps alive all the bytes it was decoded from.

    Returns False if one of them names a blob, which a typed decoder does not see in raw JSON or an
    anchor, or if an entry is of an older version.
    """
    for entry in entries:  # compares types: isinstance is slow with Structs
        if entry.v != FORMAT:
            return False
        data = entry.data
        kind = type(data)
        if kind in _SPOKEN and not _detach_content(data.content):  # type: ignore[attr-defined]
            return False
        if kind is ToolResult and type(data.full) is BlobRef:  # type: ignore[attr-defined]
            return False
        if kind in _RAWLESS or (kind is ToolStart and data.args is NO_JSON):  # type: ignore[attr-defined]
            continue
        if kind is Anchor or not _detach_raw_fields(data):
            return False
    return True


def _detach_content(content: Content) -> bool:
    for block in content:  # nearly all are plain text, or only one call
        if block.wire is NO_JSON and type(block) is Text:
            continue
        if block.wire is NO_JSON and type(block) is ToolCall:
            args = bytes(block.args)
            if BLOB_KEY in args:
                return False
            if args:
                force_setattr(block, "args", Raw(args))
        elif not _detach_raw_fields(block):
            return False
    return True


def _detach_raw_fields(part: Struct) -> bool:
    """Copy the raw fields of a payload or a block; return False if one names a blob."""
    for name, absent in list_raw_fields(type(part)):
        raw = getattr(part, name)
        if raw is not absent:
            data = bytes(raw)
            if BLOB_KEY in data:
                return False
            force_setattr(part, name, Raw(data))
    return True


class _BareEntry(Struct, gc=False, rename="camel"):
    id: str
    v: int
    parent_id: str | None
    n: int
    time: str
    type: str
    dh: str
    data: Raw


@cache
def _get_bare_decoder() -> msgspec.json.Decoder[_BareEntry]:
    return msgspec.json.Decoder(_BareEntry)


def _decode_loosely(line: bytes, expand: Callable[[BlobRef], str]) -> Entry:
    try:
        bare = _get_bare_decoder().decode(line)
        return _build_bare_entry(bare, bare.type, bare.data, expand)
    except JSON_ERRORS as error:
        raise Damaged(f"not an entry line: {error}") from error


def _build_bare_entry(
    bare: _BareEntry, kind: str, raw: Raw, expand: Callable[[BlobRef], str]
) -> Entry:
    data = decode_payload(kind, raw, expand)
    whole = Entry if isinstance(data, Unread) else _make_entry_class(kind)
    return whole(bare.id, bare.v, bare.parent_id, bare.n, bare.time, bare.dh, data)


def build_entry(header: Header, payload: Payload) -> Entry:
    """Return the entry that was just written, without reading it back."""
    kind = _make_entry_class(payload.entry_type)
    return kind(header.id, FORMAT, header.parent_id, header.n, header.time, header.dh, payload)


_BLOB_REF = (
    rb'(?s)\{"\$blob":"([0-9a-f]{64})","bytes":([0-9]{1,18}),"head":("(?:[^"\\]++|\\.)*+")\}'
)
_ESCAPE = rb"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
_MEDIA = frozenset({"image", "document", "audio"})
_HOLD_BLOBS = frozenset({"mode", "checkpoint"})  # their payloads have typed blob fields
_ENCODER = msgspec.json.Encoder()


def encode_payload(payload: Payload) -> bytes:
    """Return a payload as the compact JSON of its line; lone surrogates become U+FFFD.

    Raises InvalidEntry if a raw field is not JSON, or has the reserved key `$blob`.
    """
    return normalize_payload(payload)[0]


def normalize_payload(payload: Payload) -> tuple[bytes, Payload]:
    """Return a payload as compact JSON, and the payload decoded from that; see `encode_payload`."""
    try:
        data = _ENCODER.encode(payload)
    except UnicodeEncodeError:
        payload = _normalize_strings(payload)
        data = _ENCODER.encode(payload)
    raws = _list_raw_values(payload)
    if not raws or all(map(_is_compact_json, raws)):  # JSON outside raw fields always is compact
        return data, payload
    if b"\\ud" in data or b"\\uD" in data:  # a lone surrogate, maybe
        data = re.sub(_ESCAPE, lambda escape: rb"\ufffd" if escape[1] else escape[0], data)
    try:
        data = msgspec.json.format(data, indent=-1)
        data.decode()
    except JSON_ERRORS as error:
        raise InvalidEntry(f"a raw field of {payload.entry_type} is not JSON: {error}") from error
    if any(BLOB_KEY in raw for raw in map(bytes, raws)):
        _refuse_blob_keys(msgspec.json.decode(data))
    return data, msgspec.json.decode(data, type=type(payload))


def _list_raw_values(payload: Payload) -> list[Raw]:
    """Return the raw JSON in a payload: in its own fields, its blocks, the state of an anchor."""
    kind = type(payload)
    parts: list[Struct] = [] if kind in _RAWLESS else [payload]
    parts += [
        block  # nearly all blocks are plain text
        for block in getattr(payload, "content", ())
        if type(block) is not Text or block.wire is not NO_JSON
    ]
    if kind is Anchor:
        parts.append(payload.state)  # type: ignore[attr-defined]
    return [
        raw
        for part in parts
        for name, absent in list_raw_fields(type(part))
        if (raw := getattr(part, name)) is not absent
    ]


@cache
def list_raw_fields(kind: type[Struct]) -> tuple[tuple[str, object], ...]:
    """Return the name and the default of each field that holds raw JSON."""
    return tuple((field.name, field.default) for field in fields(kind) if field.type is Raw)


def _is_compact_json(raw: Raw) -> bool:
    """Return whether raw JSON can be written as it is: no blanks, nothing to refuse or replace."""
    data = bytes(raw)
    if b"\\u" in data or BLOB_KEY in data:
        return False
    try:
        return msgspec.json.format(data, indent=-1) == data and bool(data.decode())
    except JSON_ERRORS:
        return False


def _refuse_blob_keys(data: dict[str, Any]) -> None:
    """Raise InvalidEntry for a `$blob` key outside a picture or a file."""
    for block in data.get("content", ()):
        if block["type"] in _MEDIA:
            del block["blob"]
    if isinstance(data.get("full"), dict):  # a typed field: only a reference is encoded like this
        del data["full"]
    if _has_blob_key(data):
        raise InvalidEntry("the key $blob is the store's own and may not be written")


def _has_blob_key(value: Any) -> bool:
    if isinstance(value, dict):
        return "$blob" in value or any(map(_has_blob_key, value.values()))
    return isinstance(value, list) and any(map(_has_blob_key, value))


def _normalize_strings(value: Any) -> Any:
    match value:
        case str():
            return replace_surrogates(value)
        case Struct():
            parts = {
                name: _normalize_strings(getattr(value, name)) for name in value.__struct_fields__
            }
            return type(value)(**parts)
        case tuple():
            return tuple(map(_normalize_strings, value))
        case _:
            return value


def decode_payload(kind: str, raw: Raw, expand: Callable[[BlobRef], str]) -> Payload:
    """Return the payload of data; data that cannot be decoded is kept raw, with the reason."""
    payload = PAYLOADS.get(kind)
    if payload is None:
        return Unread(kind, raw, "unknown type")
    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw] | None)
        if members is None:
            return Unread(kind, raw, "redacted")
        content = members.pop("content", None)
        if kind not in _HOLD_BLOBS:
            full = re.fullmatch(_BLOB_REF, members.get("full", b""))
            is_long = full is not None and int(full[2]) > READ_BYTES
            members = {
                key: value
                if key == "files" or (key == "full" and is_long)
                else _expand_blobs(value, expand)
                for key, value in members.items()
            }
        if content is not None:
            members["content"] = Raw(msgspec.json.encode(_expand_content(content, expand)))
        return msgspec.json.decode(msgspec.json.encode(members), type=payload)
    except msgspec.ValidationError as error:
        return Unread(kind, raw, f"unexpected shape: {error}")


def _expand_blobs(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    data = bytes(raw)
    if BLOB_KEY not in data:
        return raw

    def text(match: re.Match[bytes]) -> bytes:
        ref = BlobRef(match[1].decode(), int(match[2]), msgspec.json.decode(match[3]))
        return msgspec.json.encode(expand(ref))

    return Raw(re.sub(_BLOB_REF, text, data))


def _expand_content(content: Raw, expand: Callable[[BlobRef], str]) -> list[Raw]:
    """Return content as a list of known blocks: a bare string is text, null is nothing."""
    if bytes(content).startswith(b"{"):
        content = _expand_blobs(content, expand)
    raw_blocks = msgspec.json.decode(content, type=list[Raw] | str | None)
    if isinstance(raw_blocks, str):
        return [Raw(msgspec.json.encode(Text(text=raw_blocks)))]
    blocks = []
    for raw in raw_blocks or ():
        whole = raw
        if not isinstance(_decode_known_block(raw), Image | Document | Audio):
            whole = _expand_blobs(raw, expand)
            if _decode_known_block(whole) is None:
                whole = Raw(msgspec.json.encode(Unknown(raw=raw)))
        blocks.append(whole)
    return blocks


@cache
def _get_block_decoder() -> msgspec.json.Decoder[Block]:
    return msgspec.json.Decoder(Block)


def _decode_known_block(raw: Raw) -> Block | None:
    try:
        return _get_block_decoder().decode(raw)
    except msgspec.ValidationError:
        return None
