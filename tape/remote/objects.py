"""The objects of a remote: their keys, and the bytes in them; pure.

| key | object |
|---|---|
| `remote.json` | format and id of the remote |
| `t/<tape>/<n:08>` | chunk n of a tape: what one push brought |
| `b/<sha256>` | a blob; there before the chunk that names it |
| `log/<n:012>` | what one push brought: chunks of which tapes |
| `gone/<entry, blob or tape>/<id>` | what was redacted or removed |
| `hold/<tape>/<n:04>` | whether a tape may be taken away: see `holds` |
| `audit/<time:016>-<hex>` | who did what with a tape: see `audit` |
| `lease/<tape>/<branch>/<epoch:08>` | who works on a branch: see `leases` |

A chunk is one zstd frame of a line of JSON, the head, and the bytes of its parts, one after the
other. A part is a run of whole lines of a file of the tape. The lines of the journal come last: one
create publishes all that they name, or nothing.

    {"seq":2,"machine":"laptop","replica":"5e0c1d2a","folder":"2026-11-21-fix-3f2a9c1b",
     "parts":[["phases/0001-main-start/entries.jsonl",5120,830],["refs.jsonl",0,0]]}

An empty object stands where a chunk was merged into a later one: that one's `first` says from where
on. Numbers are never freed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import Damaged, NewerFormat
from ..model.line import JSON_ERRORS
from ..model.summary import ANCHOR_PAGE
from ..store.phase import ENTRIES, is_phase_name
from ..store.refs import JOURNAL_NAME
from ..store.tape import INFO_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zstandard import ZstdCompressor

FORMAT = 1
GoneKind = Literal["entry", "blob", "tape"]
AuditedAct = Literal[
    "unpush", "hold", "release", "redact", "export", "view", "rename", "label", "trash"
]
REMOTE_KEY = "remote.json"
MAX_CHUNK_BYTES = 1 << 28
"""Most bytes of a chunk before it is compressed: more is not read."""
_LEVEL = 3
_TAPE_KEY = re.compile(r"t/(?P<tape>[0-9a-f]{32})/(?P<seq>[0-9]{8})\Z")
_LOG_KEY = re.compile(r"log/(?P<number>[0-9]{12})\Z")
TAPES_PREFIX, LOG_PREFIX = "t/", "log/"
MAX_LOG_NUMBER = 999_999_999_999


class Part(NamedTuple):
    """A run of bytes of a file of the tape: its path there, and where the run begins."""

    file: str
    offset: int
    length: int


class ChunkHead(Struct, kw_only=True, omit_defaults=True):
    """What a chunk says of itself."""

    seq: int
    first: int = 0
    """The number of the first chunk that was merged into this one; 0 for none."""
    machine: str = ""
    """The name of the host that pushed it."""
    replica: str = ""
    """The copy of the store that pushed it: see `store.replica`."""
    person: str = ""
    folder: str = ""
    """The name of the tape's folder there."""
    parts: tuple[Part, ...] = ()
    gone: str = ""
    """Why the tape was taken from the remote; such a chunk is the last one and has no parts."""


class Chunk(NamedTuple):
    """A chunk, unpacked."""

    head: ChunkHead
    data: bytes
    """The bytes of its parts."""

    def iter_parts(self) -> Iterator[tuple[Part, bytes]]:
        """Yield each part with its bytes."""
        start = 0
        for part in self.head.parts:
            yield part, self.data[start : start + part.length]
            start += part.length


class LogEntry(NamedTuple):
    """A chunk that a push brought, as an array of two items or three."""

    tape: str
    seq: int
    is_growing: bool | None = None
    """Whether a writer publishes more as it writes, so that the newest chunks may be in no line.

    None from who knows of no such writer, False from one that ends.
    """


class RemoteInfo(Struct, kw_only=True, omit_defaults=True):
    """remote.json: written when a remote is used first, and never changed."""

    format: int
    id: str
    """32 hex digits; no other remote has them."""


class AuditEvent(Struct, frozen=True, omit_defaults=True):
    """That somebody did something with a tape."""

    did: AuditedAct
    tape: str
    time: str
    """As on a tape."""
    person: str = ""
    machine: str = ""
    why: str = ""


def make_chunk_key(tape: str, seq: int) -> str:
    """Return the key of a chunk."""
    return f"t/{tape}/{seq:08d}"


def parse_chunk_key(key: str) -> LogEntry | None:
    """Return the tape and the number of a chunk; None for another key."""
    match = _TAPE_KEY.match(key)
    return LogEntry(match["tape"], int(match["seq"])) if match else None


def make_blob_key(digest: str) -> str:
    """Return the key of a blob."""
    return f"b/{digest}"


def make_gone_key(kind: GoneKind, identity: str) -> str:
    """Return the key of what says who erased something, when and why."""
    return f"gone/{kind}/{identity}"


def make_log_key(number: int) -> str:
    """Return the key of a line of the push log."""
    return f"log/{number:012d}"


def parse_log_key(key: str) -> int | None:
    """Return the number of a line of the push log; None for another key."""
    match = _LOG_KEY.match(key)
    return int(match["number"]) if match else None


def encode_chunk(head: ChunkHead, runs: Sequence[bytes]) -> bytes:
    """Return the bytes of a chunk; `runs` are those of its parts."""
    data = b"".join((msgspec.json.encode(head), b"\n", *runs))
    compressed: bytes = _get_compressor(get_ident()).compress(data)
    return compressed


@lru_cache(maxsize=4)
def _get_compressor(_thread: int) -> ZstdCompressor:
    """Return the compressor of a thread: making one takes as long as a small chunk."""
    from zstandard import ZstdCompressor

    return ZstdCompressor(level=_LEVEL)


def decode_chunk(key: str, data: bytes) -> Chunk | None:
    """Return a chunk, None for one that was merged into a later one; raise Damaged."""
    from zstandard import ZstdDecompressor, ZstdError, frame_content_size

    if not data:
        return None
    try:
        if not 0 < frame_content_size(data) <= MAX_CHUNK_BYTES:
            raise Damaged(f"{key}: a chunk has at most {MAX_CHUNK_BYTES} bytes", file=key)
        first, _, rest = ZstdDecompressor().decompress(data).partition(b"\n")
        head = msgspec.json.decode(first, type=ChunkHead)
    except (ZstdError, *JSON_ERRORS) as error:
        raise Damaged(f"{key} cannot be read: {error}", file=key) from error
    where = parse_chunk_key(key)
    if where is None or head.seq != where.seq or not 0 <= head.first <= head.seq:
        raise Damaged(f"{key} says that it is chunk {head.seq}", file=key)
    for part in head.parts:
        if not is_tape_file(part.file) or part.offset < 0 or part.length < 0:
            raise Damaged(f"{key}: {part.file!r} is no file of a tape", file=key)
    if sum(part.length for part in head.parts) != len(rest):
        raise Damaged(f"{key}: its parts are not as long as its head says", file=key)
    return Chunk(head, rest)


def is_tape_file(path: str) -> bool:
    """Return whether a path is that of a file that chunks hold."""
    if path in (INFO_NAME, JOURNAL_NAME):
        return True
    folder, _, rest = path.partition("/")
    name, _, file = rest.partition("/")
    return folder == "phases" and file in (ENTRIES, ANCHOR_PAGE) and is_phase_name(name)


def make_entries_path(phase: str) -> str:
    """Return the path of the entries of a phase."""
    return f"phases/{phase}/{ENTRIES}"


def encode_log(entries: Sequence[LogEntry]) -> bytes:
    """Return the bytes of a line of the push log."""
    return msgspec.json.encode(
        [entry[:2] if entry.is_growing is None else entry for entry in entries]
    )


def decode_log(key: str, data: bytes) -> list[LogEntry]:
    """Return what a line of the push log names; raise Damaged."""
    try:
        entries = msgspec.json.decode(data, type=list[LogEntry])
    except JSON_ERRORS as error:
        raise Damaged(f"{key} cannot be read: {error}", file=key) from error
    if any(parse_chunk_key(make_chunk_key(*entry[:2])) != (*entry[:2], None) for entry in entries):
        raise Damaged(f"{key} names no chunk of a tape", file=key)
    return entries


def encode_remote_info(info: RemoteInfo) -> bytes:
    """Return the bytes of remote.json."""
    return msgspec.json.encode(info) + b"\n"


def decode_remote_info(data: bytes) -> RemoteInfo:
    """Return what remote.json says; raise Damaged, NewerFormat for a later format."""
    try:
        info = msgspec.json.decode(data, type=RemoteInfo)
    except JSON_ERRORS as error:
        raise Damaged(f"{REMOTE_KEY} cannot be read: {error}", file=REMOTE_KEY) from error
    if info.format > FORMAT:
        raise NewerFormat(
            f"the remote has format {info.format}, this program reads up to {FORMAT}: update it"
        )
    return info
