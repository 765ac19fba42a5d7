"""Chunks of a tape that are damaged or missing at a remote are made again from what is here.

Whoever pushed or pulled a chunk has what it held. The new one has all that the remote has of the
tape as far as it is known here: a chunk may repeat what others hold, and readers skip that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Damaged
from .chunk_reader import read_chunks
from .cursor import TapeCursor
from .erasure import blank_lines
from .missing import ChunkBuilder, create_blobs, find_missing_lines
from .objects import make_chunk_key, make_gone_key, parse_chunk_key

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..store.replica import Replica
    from ..store.tape import Tape
    from .missing import PlannedChunk
    from .remote import Remote


def find_unreadable(remote: Remote, tape: str, newest: int) -> int | None:
    """Return the number of the first chunk up to `newest` that keeps a tape from being pulled."""
    try:
        for _ in read_chunks(remote, tape, 0, newest):
            pass
    except Damaged as error:
        place = parse_chunk_key(error.file or "")
        return None if place is None else place.seq
    return None


def rebuild_chunks(
    remote: Remote,
    tape: Tape,
    known: TapeCursor,
    newest: int,
    replica: Replica | None,
    person: str,
) -> int:
    """Make the unreadable chunks of a tape up to `newest` again, and return how many there were.

    `known` is what the remote has of the tape that is here, too. Raises Damaged where one holds
    more than that, or where not all of it is here any more.
    """
    redacted: set[str] | None = None
    count = 0
    while (seq := find_unreadable(remote, tape.id, newest)) is not None:
        key = make_chunk_key(tape.id, seq)
        if seq > known.seq or count > newest:
            raise Damaged(f"{key} was neither pushed from here nor pulled to here", file=key)
        if redacted is None:
            prefix = make_gone_key("entry", "")
            redacted = {listed.key.removeprefix(prefix) for listed in remote.list(prefix)}
        plan = _plan_again(tape, known, seq, redacted, replica, person)
        create_blobs(remote, tape, plan.blobs)
        remote.replace(key, plan.data)
        count += 1
    return count


def _plan_again(
    tape: Tape,
    known: TapeCursor,
    seq: int,
    redacted: Collection[str],
    replica: Replica | None,
    person: str,
) -> PlannedChunk:
    """Return chunk `seq`, which holds all that is known; the data of `redacted` entries is blank.

    Raises NotFound and Damaged where not all of it is here.
    """
    builder = ChunkBuilder(tape, TapeCursor(seq - 1), replica, person)
    for phase, size in known.sizes.items():
        with tape.phases.open(phase) as file:
            run = file.read(0, size)
        if len(run) != size:
            raise Damaged(f"{phase}: its first {size} bytes are not here", file=phase)
        builder.add(phase, 0, blank_lines(run, redacted))
    lines = dict(find_missing_lines(tape, TapeCursor())[1])
    builder.add_journal([(h, lines[h]) for h in known.journal if h in lines])
    return builder.build(has_info=True)
