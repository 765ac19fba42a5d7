"""One entry and its line: key order, hashes, and what to do with data we do not know (tape.md §2).

Invariant: `encode` is the only place that writes an entry line, and what `read_header` accepts is
what `encode` writes. Data read from disk is never encoded again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, Union

import msgspec
from msgspec import Raw, Struct, defstruct

from .blocks import BlobRef, Content
from .entries import PAYLOADS, Payload
from .errors import Damaged, InvalidEntry, NewerFormat

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = 1
"""The version of the entry line that this code writes."""

_V = 49  # where `"v":` begins: after `{"id":"`, 40 digits and `",`
_DATA = b',"data":'
_ID = re.compile(rb'\{"id":"([0-9a-f]{40})","v":([1-9][0-9]*),')
_LINE = re.compile(
    rb'\{"id":"([0-9a-f]{40})","v":1,"parentId":(?:null|"([0-9a-f]{40})"),"n":(0|[1-9][0-9]*),'
    rb'"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
    rb'"type":"([a-z][a-z0-9._-]{0,63})","dh":"([0-9a-f]{32})","data":'
)
_TYPE = re.compile(r"[a-z][a-z0-9._-]{0,63}\Z")
_REDACTED = re.compile(rb"null *\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MEDIA = frozenset({"image", "document", "audio"})
_HOLD_BLOBS = frozenset({"mode", "checkpoint"})  # their payloads name blobs in fields of their own


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
_CONTENT: msgspec.json.Decoder[Content] = msgspec.json.Decoder(Content)


def now() -> int:
    """Return microseconds since 1970: the clock every writer uses unless it is given another."""
    return time_ns() // 1000


def stamp(micros: int) -> str:
    """Return microseconds since 1970 as the text that stands on a tape."""
    time = _EPOCH + timedelta(microseconds=micros)
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def micros(time: str) -> int:
    """Return a tape's time text as microseconds since 1970."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1)


def encode(
    kind: str, parent_id: str | None, n: int, time: str, data: bytes
) -> tuple[Header, bytes]:
    """Return the header and the whole line, with its newline, of an entry with compact `data`."""
    if not _TYPE.match(kind):
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
    try:
        data = msgspec.json.encode(payload)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(payload)))
    try:
        data = msgspec.json.format(data, indent=-1)  # raw fields may hold blanks
    except msgspec.DecodeError as error:
        raise InvalidEntry(f"a raw field of {payload.entry_type} is not JSON: {error}") from error
    if b'"$blob"' in data and payload.entry_type not in _HOLD_BLOBS:
        _refuse_blobs(msgspec.json.decode(data))
    return data


def _refuse_blobs(value: Any) -> None:
    """Raise InvalidEntry for a `$blob` key that is not a picture's or a file's."""
    if isinstance(value, dict):
        if "$blob" in value:
            raise InvalidEntry("the key $blob is the store's own and may not be written")
        keep = "blob" if value.get("type") in _MEDIA else None
        value = [item for key, item in value.items() if key != keep]
    if isinstance(value, list):
        for item in value:
            _refuse_blobs(item)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value


def read_header(line: bytes) -> Header:
    """Check the id of a line (without its newline) and return its header.

    Raises NewerFormat when it verifies and a later version wrote it, Damaged in every other case.
    The data is not looked at; `data_holds` checks it.
    """
    begin, end = _ID.match(line), line.find(_DATA, _V)
    if begin is None or end < 0 or not line.endswith(b"}"):
        raise Damaged("not an entry line")
    if sha256(line[_V:end]).hexdigest()[:40].encode() != begin[1]:
        raise Damaged("its id does not match its bytes")
    if int(begin[2]) > FORMAT:
        raise NewerFormat(
            f"written in format {int(begin[2])}, this program reads up to {FORMAT}: update it"
        )
    head = _LINE.match(line)
    if head is None:
        raise Damaged("not an entry line of format 1")
    identity, parent, n, time, kind, dh = head.groups()
    return Header(
        identity.decode(),
        parent.decode() if parent else None,
        int(n),
        time.decode(),
        kind.decode(),
        dh.decode(),
        head.end(),
    )


def data_holds(line: bytes, header: Header) -> bool:
    """Tell whether the data of a line is what its header vouches for."""
    data = line[header.data : -1]
    return sha256(data).hexdigest()[:32] == header.dh


def is_redacted(line: bytes, header: Header) -> bool:
    """Tell whether the data of a line was overwritten by `null` and spaces."""
    return _REDACTED.match(line[header.data : -1]) is not None


def verify(line: bytes) -> Header:
    """Check a whole line, id and data; raise Damaged or NewerFormat, return its header."""
    header = read_header(line)
    if not data_holds(line, header) and not is_redacted(line, header):
        raise Damaged("its data does not match its hash")
    return header


def missing_blob(ref: BlobRef) -> str:
    """Return what stands for a payload whose blob is not there."""
    return f"{ref.head}\n[{ref.bytes} bytes in all; blob {ref.hash[:16]} is missing]"


def decode(line: bytes, expand: Callable[[BlobRef], str] = missing_blob) -> Entry:
    """Return the entry of a line; `expand` gives the text of a blob.

    Raises Damaged when it is not JSON of an entry, NewerFormat when a later version wrote it. Only
    shape is looked at, not hashes: `verify` does that.
    """
    try:
        entry = _DECODER.decode(line)
    except msgspec.DecodeError:
        entry = _decode_loosely(line, expand)
    if entry.v > FORMAT:
        read_header(line)  # newer only if its id verifies
    return entry


def decode_all(
    lines: bytes, expand: Callable[[BlobRef], str], skipped: Callable[[int, Damaged], None]
) -> list[Entry]:
    """Return the entries of many whole lines at once.

    A line that cannot be read is told to `skipped` with its offset, and left out.
    """
    try:
        entries = _DECODER.decode_lines(lines)
    except msgspec.DecodeError:
        entries = []
    else:
        if all(entry.v == FORMAT for entry in entries):
            return entries
        entries = []
    offset = 0
    for line in lines.split(b"\n"):
        if line:
            try:
                entries.append(decode(line, expand))
            except Damaged as error:
                skipped(offset, error)
        offset += len(line) + 1
    return entries


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
        data = _payload(bare.type, bare.data, expand)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"not an entry line: {error}") from error
    return Entry(bare.id, bare.v, bare.parent_id, bare.n, bare.time, bare.dh, data)


def _payload(kind: str, raw: Raw, expand: Callable[[BlobRef], str]) -> Payload:
    """Read data as far as it can be understood; what cannot is kept raw, with the reason."""
    payload = PAYLOADS.get(kind)
    if payload is None:
        return Unread(kind, raw, "unknown type")
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        return Unread(kind, raw, "redacted" if value is None else "unexpected shape")
    value = _expanded(value, expand)
    if "content" in value:
        value["content"] = _blocks(value["content"])
    try:
        return msgspec.json.decode(msgspec.json.encode(value), type=payload)
    except msgspec.ValidationError as error:
        return Unread(kind, raw, f"unexpected shape: {error}")


def _expanded(value: Any, expand: Callable[[BlobRef], str]) -> Any:
    """Put texts in the place of blob references; pictures and files keep theirs."""
    if isinstance(value, list):
        return [_expanded(item, expand) for item in value]
    if not isinstance(value, dict):
        return value
    if "$blob" in value:
        return expand(msgspec.convert(value, BlobRef))
    keep = "blob" if value.get("type") in _MEDIA else None
    return {k: v if k == keep else _expanded(v, expand) for k, v in value.items()}


def _blocks(content: Any) -> Any:
    """Return content as a list of known blocks: a bare string is text, null is nothing."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    return [block if _is_known(block) else {"type": "unknown", "raw": block} for block in content]


def _is_known(block: Any) -> bool:
    try:
        _CONTENT.decode(msgspec.json.encode([block]))
    except msgspec.ValidationError:
        return False
    return True


_BY_TYPE = dict(zip(PAYLOADS, _KINDS, strict=True))


def entry_of(header: Header, payload: Payload) -> Entry:
    """Return the entry that was just written, without reading it back."""
    kind = _BY_TYPE[payload.entry_type]
    return kind(header.id, FORMAT, header.parent_id, header.n, header.time, header.dh, payload)
