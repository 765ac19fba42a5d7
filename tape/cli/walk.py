"""The lines of a path, one after the other; unreadable ones are skipped with a warning."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ..blocks import BlobRef
from ..damage import warn_of_damage
from ..errors import Damaged
from ..line import decode, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..branches import Head
    from ..line import Entry
    from ..path import Source
    from ..tape import Tape


class Step(NamedTuple):
    """One line of a path, as bytes and as an entry."""

    line: bytes
    entry: Entry


class Line(NamedTuple):
    """A line and its place."""

    source: Source
    phase: str
    offset: int
    line: bytes


Expand = Callable[[BlobRef], str]
"""Returns the text that replaces a blob."""


def entry_at(tape: Tape, head: Head) -> Step:
    """Return the entry of a head; raise Damaged where it does not verify."""
    return _read(Line(tape.source, head.phase, head.offset, tape.checked_line(head)), None)


def line_at(tape: Tape, head: Head) -> bytes:
    """Return the line of a head's entry as stored, and warn where it does not verify."""
    try:
        return tape.checked_line(head)
    except Damaged as error:
        warn_of_damage(str(error))
    with tape.phases.open(head.phase) as file:
        return file.line_at(head.offset)


def steps(
    tape: Tape,
    head: Head,
    expand: Expand | None = None,
    *,
    types: frozenset[str] = frozenset(),
    newest: int | None = None,
) -> Iterable[Step]:
    """Return the readable entries of a path, oldest first, in constant memory.

    Blobs are expanded to their whole text unless `expand` returns less. Only entries of `types`,
    and only the `newest` ones, if given; those are read from the end.
    """
    tape.tell_of_tail(head, warn_of_damage)
    if newest is None:
        return legible(_forward(tape, head), expand, types)
    return list(islice(legible(_back(tape, head), expand, types), newest))[::-1]


def _forward(tape: Tape, head: Head) -> Iterator[Line]:
    for segment in tape.path(head):
        for offset, line in segment.checked_lines(warn_of_damage):
            yield Line(segment.source, segment.phase, offset, line)


def _back(tape: Tape, head: Head) -> Iterator[Line]:
    for segment in reversed(tape.path(head)):
        for offset, line in segment.checked_back(warn_of_damage):
            yield Line(segment.source, segment.phase, offset, line)


def legible(
    found: Iterable[Line], expand: Expand | None, types: frozenset[str] = frozenset()
) -> Iterator[Step]:
    """Yield the lines that can be read, only those of `types` if given; warn of damaged ones."""
    for line in found:
        kind = kind_of(line.line) if types else ""
        if kind and kind not in types:
            continue
        try:
            step = _read(line, expand)
        except Damaged as error:
            warn_of_damage(f"{error}; left out, `tape verify` says more")
            continue
        if not types or step.entry.type in types:
            yield step


def _read(line: Line, expand: Expand | None) -> Step:
    source, phase, offset, data = line
    try:
        data.decode()  # the decoder does not check raw parts of an entry
        return Step(data, decode(data, expand or source.expand))
    except (Damaged, ValueError, RecursionError) as error:
        raise Damaged(
            f"{phase}: line at byte {offset} cannot be read: {error}", file=phase, offset=offset
        ) from error
