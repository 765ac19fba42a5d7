"""What leaves a remote again: the data of redacted entries, and whole tapes.

Numbers are never freed: a chunk is replaced by one of the same lines, or by an empty object, and no
store that has not heard of it can create it again. First it is recorded what is gone, then blobs
are emptied, then chunks are replaced; an interrupted erasure is completed by the next push.

A tape that is taken from a remote gets one more chunk, which says so. Who pulls that moves the tape
to the trash, and nobody pushes it again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ..errors import Damaged, NotFound
from ..model.line import blank_redacted_data
from ..store.blobs import find_blob_hashes
from ..store.phase import ENTRIES
from .chunk_reader import read_chunk
from .objects import (
    TAPES_PREFIX,
    ChunkHead,
    LogEntry,
    decode_chunk,
    encode_chunk,
    make_blob_key,
    make_chunk_key,
    make_gone_key,
    parse_chunk_key,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from .objects import Chunk, GoneKind
    from .remote import Remote


def erase_redacted(remote: Remote, tape: str, ids: Collection[str], note: dict[str, str]) -> int:
    """Blank the data of entries in the chunks of a tape, and empty the blobs that only they name.

    `note` says who redacted and why. Returns the number of chunks that were replaced.
    """
    for entry in sorted(ids):
        _record_gone(remote, "entry", entry, note)
    replaced = 0
    for chunk in _read_chunks(remote, tape):
        runs = [
            blank_lines(data, ids) if part.file.endswith(f"/{ENTRIES}") else data
            for part, data in chunk.iter_parts()
        ]
        data = b"".join(runs)
        if data == chunk.data:
            continue
        for digest in sorted({*find_blob_hashes(chunk.data)} - {*find_blob_hashes(data)}):
            _record_gone(remote, "blob", digest.decode(), note)
            remote.replace(make_blob_key(digest.decode()), b"")
        remote.replace(make_chunk_key(tape, chunk.head.seq), encode_chunk(chunk.head, runs))
        replaced += 1
    return replaced


def blank_lines(run: bytes, ids: Collection[str]) -> bytes:
    """Return lines of a phase with the data of entries blanked, as long as before."""
    lines = run.split(b"\n")
    return b"\n".join(blank_redacted_data(line, ids) if line else line for line in lines)


def remove_tape(remote: Remote, tape: str, head: ChunkHead, note: dict[str, str]) -> LogEntry:
    """Take a tape from a remote; return the chunk that says so, for the push log.

    `head` says who does it. Blobs that another tape names stay. Where this was begun before, it is
    completed. Raises NotFound if the remote has no such tape.
    """
    keys = [listed.key for listed in remote.list(f"{TAPES_PREFIX}{tape}/")]
    keys = [key for key in keys if parse_chunk_key(key) is not None]
    last = parse_chunk_key(keys[-1]) if keys else None
    if last is None:
        raise NotFound(f"{remote.url} has no tape {tape[:8]}")
    _record_gone(remote, "tape", tape, note)
    seq = last.seq
    if not _is_end(keys[-1], remote.read(keys[-1])):
        seq = _create_end(remote, tape, last.seq + 1, head, note["why"])
    for digest in sorted(_find_own_blobs(remote, tape)):
        remote.replace(make_blob_key(digest), b"")
    for number in range(1, seq):
        remote.replace(make_chunk_key(tape, number), b"")
    return LogEntry(tape, seq)


def _is_end(key: str, data: bytes) -> bool:
    """Return whether a chunk says that its tape is gone; a damaged one does not."""
    with suppress(Damaged):
        chunk = decode_chunk(key, data)
        return chunk is not None and bool(chunk.head.gone)
    return False


def _create_end(remote: Remote, tape: str, seq: int, head: ChunkHead, why: str) -> int:
    """Create the chunk that says that a tape is gone, and return its number."""
    while True:
        end = msgspec.structs.replace(head, seq=seq, gone=why or "unpushed")
        if remote.create(make_chunk_key(tape, seq), encode_chunk(end, ())):
            return seq
        seq += 1  # somebody pushed meanwhile


def _find_own_blobs(remote: Remote, tape: str) -> set[str]:
    """Return the blobs that only this tape names, but for those that damaged chunks of it do."""
    chunks = _read_chunks(remote, tape, skips_damaged=True)
    blobs = {digest for chunk in chunks for digest in _list_blobs(chunk)}
    others = sorted(_list_tapes(remote) - {tape}) if blobs else ()
    for other in others:
        for chunk in _read_chunks(remote, other):
            blobs -= _list_blobs(chunk)
    return blobs


def _list_blobs(chunk: Chunk) -> set[str]:
    return {digest.decode() for digest in find_blob_hashes(chunk.data)}


def _list_tapes(remote: Remote) -> set[str]:
    entries = (parse_chunk_key(listed.key) for listed in remote.list(TAPES_PREFIX))
    return {entry.tape for entry in entries if entry is not None}


def _read_chunks(remote: Remote, tape: str, *, skips_damaged: bool = False) -> Iterator[Chunk]:
    for listed in [*remote.list(f"{TAPES_PREFIX}{tape}/")]:
        if listed.size and parse_chunk_key(listed.key) is not None:
            try:
                chunk = read_chunk(remote, listed.key)
            except Damaged:
                if not skips_damaged:
                    raise
                continue
            if chunk is not None:
                yield chunk


def _record_gone(remote: Remote, kind: GoneKind, identity: str, note: dict[str, str]) -> None:
    remote.create(make_gone_key(kind, identity), msgspec.json.encode(note))
