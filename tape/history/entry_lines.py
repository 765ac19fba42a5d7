"""The lines of a path, one after the other; unreadable ones are skipped with a warning."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ..damage import warn_of_damage
from ..errors import Damaged
from ..files.work_folder import find_work_folder
from ..model.entries import BlobRef
from ..model.line import (
    can_decode_lines,
    decode_line,
    decode_lines,
    describe_blob_head,
    read_type,
)
from ..store.path import split_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..files.work_folder import WorkFolder
    from ..model.line import Entry
    from ..store.path import Segment, Source
    from ..store.refs import Head
    from ..store.tape import Tape


class DecodedLine(NamedTuple):
    """One line of a path, as bytes and as an entry."""

    line: bytes
    entry: Entry


class LocatedLine(NamedTuple):
    """A line and its place."""

    source: Source
    phase: str
    offset: int
    line: bytes


ExpandBlob = Callable[[BlobRef], str]
"""Returns the text that replaces a blob."""


def read_entry_at(tape: Tape, head: Head) -> DecodedLine:
    """Return the entry of a head; raise Damaged where it does not verify."""
    return _decode_line(
        LocatedLine(tape.source, head.phase, head.offset, tape.read_checked_line(head)), None
    )


def read_line_at(tape: Tape, head: Head) -> bytes:
    """Return the line of a head's entry as stored, and warn where it does not verify."""
    try:
        return tape.read_checked_line(head)
    except Damaged as error:
        warn_of_damage(str(error))
    with tape.phases.open(head.phase) as file:
        return file.line_at(head.offset)


def read_path(
    tape: Tape,
    head: Head,
    expand: ExpandBlob | None = None,
    *,
    types: frozenset[str] = frozenset(),
    newest: int | None = None,
) -> Iterable[DecodedLine]:
    """Return the readable entries of a path, oldest first, in constant memory.

    Blobs are expanded to their whole text unless `expand` returns less. Only entries of `types`,
    and only the `newest` ones, if given; those are read from the end.
    """
    tape.report_torn_tail(head, warn_of_damage)
    if newest is None:
        return decode_legible(iter_lines(tape.path(head)), expand, types)
    back = iter_lines(tape.path(head), back=True)
    return list(islice(decode_legible(back, expand, types), newest))[::-1]


def read_entry_runs(tape: Tape, head: Head) -> Iterator[list[Entry]]:
    """Yield the entries of `read_path`, with whole texts of blobs, many at a time."""

    def refuse(_: int, error: Damaged) -> None:
        raise error

    tape.report_torn_tail(head, warn_of_damage)
    for source, phase, read in [(s.source, s.phase, s.read_checked_runs) for s in tape.path(head)]:
        for start, lines in read(warn_of_damage):
            try:
                lines.decode()  # the decoder does not check raw parts of an entry
                yield decode_lines(lines, source.expand, refuse)
            except (Damaged, ValueError):  # each line by itself, so that only bad ones are left out
                single = split_runs([(start, lines)])
                single_lines = (LocatedLine(source, phase, offset, line) for offset, line in single)
                yield [step.entry for step in decode_legible(single_lines, None)]


def read_line_runs(
    tape: Tape, head: Head, segments: Sequence[Segment] | None = None
) -> Iterator[bytes]:
    """Yield the lines of `read_path` as stored, with their newlines, many at a time.

    Of the path only the last `segments` if given.
    """
    tape.report_torn_tail(head, warn_of_damage)
    for segment in tape.path(head) if segments is None else segments:
        for start, lines in segment.read_checked_runs(warn_of_damage):
            if can_decode_lines(lines):
                yield lines
                continue
            single = (
                LocatedLine(segment.source, segment.phase, offset, line)
                for offset, line in split_runs([(start, lines)])
            )
            for step in decode_legible(single, describe_blob_head):
                yield step.line + b"\n"


def iter_lines(segments: Sequence[Segment], *, back: bool = False) -> Iterator[LocatedLine]:
    """Yield the lines of segments whose hashes are valid, last first if `back`; warn of others."""
    for segment in reversed(segments) if back else segments:
        read = segment.read_checked_lines_back if back else segment.read_checked_lines
        for offset, line in read(warn_of_damage):
            yield LocatedLine(segment.source, segment.phase, offset, line)


def decode_legible(
    lines: Iterable[LocatedLine], expand: ExpandBlob | None, types: frozenset[str] = frozenset()
) -> Iterator[DecodedLine]:
    """Yield the lines that can be read, only those of `types` if given; warn of damaged ones."""
    for line in lines:
        kind = read_type(line.line) if types else ""
        if kind and kind not in types:
            continue
        try:
            step = _decode_line(line, expand)
        except Damaged as error:
            warn_of_damage(f"{error}; left out, `tape verify` says more")
            continue
        if not types or step.entry.type in types:
            yield step


def _decode_line(line: LocatedLine, expand: ExpandBlob | None) -> DecodedLine:
    source, phase, offset, data = line
    try:
        data.decode()  # the decoder does not check raw parts of an entry
        return DecodedLine(data, decode_line(data, expand or source.expand))
    except (Damaged, ValueError, RecursionError) as error:
        raise Damaged(
            f"{phase}: line at byte {offset} cannot be read: {error}", file=phase, offset=offset
        ) from error


def read_work_folder(tape: Tape, head: Head) -> WorkFolder:
    """Return the folder in force at the end of a path; decodes only the entries that say it."""
    steps = read_path(tape, head, types=frozenset({"start", "meta"}))
    return find_work_folder(step.entry for step in steps)
