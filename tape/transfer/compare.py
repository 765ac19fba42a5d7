"""What a tape that is about to be imported has, and the one of the same id in the store lacks."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ..errors import NotFound
from ..phase import ORIGIN
from ..refs import JOURNAL_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..tape import Tape

_ID_BYTES = slice(7, 47)
_IMPORT_MOVE = b'"why":"import"'


class TapeDifference(NamedTuple):
    """What is new."""

    entries: int
    moves: int
    """Lines of the journal: branches, titles, labels."""


def find_missing(there: Tape, new: Tape, made: str | None) -> TapeDifference:
    """Return what `new` holds that `there` lacks; `made` is an entry that only the import added.

    Entries are told by their ids, so one that was redacted meanwhile counts as there.
    """
    entries = sum(
        _count_new_entries(there, new, phase, made) for phase in new.phases.list_with_origin()
    )
    old = set(there.folder.read(JOURNAL_NAME).split(b"\n"))
    moves = [line for line in new.folder.read(JOURNAL_NAME).split(b"\n") if line not in old]
    return TapeDifference(entries, sum(_IMPORT_MOVE not in line for line in moves))


def _count_new_entries(there: Tape, new: Tape, phase: str, made: str | None) -> int:
    if phase == ORIGIN and not there.phases.has_origin:
        return 0  # there it is read in the tape it was forked from
    both = zip_longest(_iter_entry_ids(new, phase), _iter_entry_ids(there, phase))
    ours = made and made.encode()
    return sum(one is not None and one not in (other, ours) for one, other in both)


def _iter_entry_ids(tape: Tape, phase: str) -> Iterator[bytes]:
    try:
        with tape.phases.open(phase) as file:
            for _, line in file.lines():
                yield line[_ID_BYTES]
    except NotFound:
        return
