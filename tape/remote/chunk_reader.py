"""Chunks of one tape, in order, whether they were merged or not; a gap is an error.

A chunk that holds others says from which number on (`first`); where those were there is an empty
object. So the newest chunk may be all that has to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Damaged
from ..text import SHORT
from .objects import TAPES_PREFIX, decode_chunk, make_chunk_key, parse_chunk_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .objects import Chunk
    from .remote import Remote

_SLICE = 32
"""Chunks that are read at once."""
_FEW = 8
"""Chunks that are read by their numbers: of more, some may have been merged."""


def read_chunks(remote: Remote, tape: str, after: int, end: int) -> Iterator[Chunk]:
    """Yield the chunks of a tape with numbers over `after` that hold all up to `end`; in order.

    Raises Damaged for a chunk that is missing or cannot be read.
    """
    if end - after > _FEW:
        newest = _read_one(remote, make_chunk_key(tape, end))
        if newest is not None and (newest.head.gone or _get_first(newest) <= after + 1):
            yield newest
            return
        keys = _list_keys(remote, tape, after, end)
    else:
        keys = [make_chunk_key(tape, number) for number in range(after + 1, end + 1)]
    expected = after + 1
    for chunk in _read_all(remote, keys):
        if chunk.head.gone or _get_first(chunk) <= expected:
            expected = max(expected, chunk.head.seq + 1)
            yield chunk  # one that comes after a gap is part of a later one, or the gap is an error
    if expected <= end:  # the last one was merged into a later one
        for key in _list_keys(remote, tape, end):
            later = _read_one(remote, key)
            if later is not None and (later.head.gone or _get_first(later) <= expected):
                yield later
                return
        missing = make_chunk_key(tape, expected)
        raise _say_missing(missing)


def read_chunk(remote: Remote, key: str) -> Chunk | None:
    """Return a chunk, None for one that was merged into a later one; raise NotFound, Damaged."""
    return _decode_with_remedy(key, remote.read(key))


def _decode_with_remedy(key: str, data: bytes) -> Chunk | None:
    """Return a chunk as `decode_chunk` does; an error says what can be done."""
    try:
        return decode_chunk(key, data)
    except Damaged as error:
        raise Damaged(f"{error}: {_suggest_remedy(key)}", file=key) from error


def _say_missing(key: str) -> Damaged:
    return Damaged(f"the remote has no {key}: {_suggest_remedy(key)}", file=key)


def _suggest_remedy(key: str) -> str:
    place = parse_chunk_key(key)
    tape = "TAPE" if place is None else place.tape[:SHORT]
    return (
        "`tape doctor --remote --repair` makes it again where that chunk was pushed from or "
        f"pulled to; where nobody has it, `tape unpush {tape}` takes the tape away"
    )


def _get_first(chunk: Chunk) -> int:
    return chunk.head.first or chunk.head.seq


def _list_keys(remote: Remote, tape: str, after: int, end: int | None = None) -> list[str]:
    """Return the keys of chunks that are not empty."""
    last = None if end is None else make_chunk_key(tape, end)
    listed = remote.list(f"{TAPES_PREFIX}{tape}/", make_chunk_key(tape, after))
    return [
        item.key
        for item in listed
        if item.size and parse_chunk_key(item.key) and (last is None or item.key <= last)
    ]


def _read_one(remote: Remote, key: str) -> Chunk | None:
    return next(_read_all(remote, [key]), None)


def _read_all(remote: Remote, keys: Sequence[str]) -> Iterator[Chunk]:
    for start in range(0, len(keys), _SLICE):
        part = keys[start : start + _SLICE]
        for key, data in zip(part, remote.read_many(part), strict=True):
            if data is None:
                raise _say_missing(key)
            chunk = _decode_with_remedy(key, data)
            if chunk is not None:
                yield chunk
