"""Merging: many small chunks of a tape become one, so that who pulls it asks once.

The chunk with the highest number takes the place of those before it, which become empty; numbers
are never freed. Groups begin at the first chunk and are full at the same places whoever merges, so
that two that merge at once, or one that is killed, leave chunks that say the same. What was
redacted meanwhile is blanked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..errors import Damaged
from ..store.refs import JOURNAL_NAME
from ..store.tape import INFO_NAME
from .chunk_reader import read_chunks
from .erasure import erase_redacted
from .objects import (
    TAPES_PREFIX,
    Part,
    encode_chunk,
    make_chunk_key,
    make_gone_key,
    parse_chunk_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .objects import Chunk
    from .remote import Remote

MAX_MERGED_BYTES = 8 << 20
"""Bytes of lines after which a group is full."""


def find_mergeable(remote: Remote, min_chunks: int) -> list[str]:
    """Return the tapes with at least `min_chunks` chunks that are not empty, by one list."""
    counts: dict[str, int] = {}
    for listed in remote.list(TAPES_PREFIX):
        place = parse_chunk_key(listed.key)
        if place is not None and listed.size:
            counts[place.tape] = counts.get(place.tape, 0) + 1
    return [tape for tape, count in counts.items() if count >= min_chunks]


def merge_chunks(remote: Remote, tape: str) -> int:
    """Merge the chunks of a tape, and return how many became empty; raise Damaged for a gap."""
    numbers = [
        place.seq
        for listed in remote.list(f"{TAPES_PREFIX}{tape}/")
        if (place := parse_chunk_key(listed.key)) is not None
    ]
    if not numbers:
        return 0
    redacted = _list_redacted(remote)
    merged = 0
    for group in _group_chunks(read_chunks(remote, tape, 0, max(numbers))):
        last = group[-1].head.seq
        remote.replace(make_chunk_key(tape, last), _merge_group(group))
        for chunk in reversed(group[:-1]):  # the numbers before it have no gap meanwhile
            remote.replace(make_chunk_key(tape, chunk.head.seq), b"")
        merged += len(group) - 1
    new = _list_redacted(remote) - redacted if merged else set()
    if new:
        erase_redacted(remote, tape, new, {"why": "redacted while chunks were merged"})
    return merged


def _list_redacted(remote: Remote) -> set[str]:
    prefix = make_gone_key("entry", "")
    return {listed.key.removeprefix(prefix) for listed in remote.list(prefix)}


def _group_chunks(chunks: Iterator[Chunk]) -> Iterator[list[Chunk]]:
    """Yield runs of chunks to merge, each of two or more."""
    group: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if chunk.head.gone:
            return
        group.append(chunk)
        size += len(chunk.data)
        if size >= MAX_MERGED_BYTES:
            if len(group) > 1:
                yield group
            group, size = [], 0
    if len(group) > 1:
        yield group


def _merge_group(group: Sequence[Chunk]) -> bytes:
    """Return the bytes of a chunk that holds what those of a group do."""
    runs: dict[str, tuple[int, bytearray]] = {}
    for chunk in group:
        for part, data in chunk.iter_parts():
            offset, run = runs.setdefault(part.file, (part.offset, bytearray()))
            if part.file == JOURNAL_NAME:
                run += data
            else:
                run += _find_rest(part, data, offset + len(run))
    journal = runs.pop(JOURNAL_NAME, None)
    files = sorted(runs, key=lambda file: file != INFO_NAME)  # in the order in which they came
    parts = [Part(file, runs[file][0], len(runs[file][1])) for file in files]
    bodies = [bytes(runs[file][1]) for file in files]
    if journal is not None:
        lines = b"".join(dict.fromkeys(bytes(journal[1]).splitlines(keepends=True)))
        parts.append(Part(JOURNAL_NAME, 0, len(lines)))
        bodies.append(lines)
    head = msgspec.structs.replace(
        group[-1].head, first=group[0].head.first or group[0].head.seq, parts=tuple(parts)
    )
    return encode_chunk(head, bodies)


def _find_rest(part: Part, data: bytes, end: int) -> bytes:
    """Return what a part has behind the byte `end` of its file; raise Damaged for a gap."""
    if part.offset > end:
        raise Damaged(f"{part.file}: bytes {end} to {part.offset} are in no chunk", file=part.file)
    return data[end - part.offset :]
