"""Which entries `log` shows, and in which order: of one path, or of all branches by time.

Memory use is constant, except for the newest N that are printed oldest first.

    order           one path                          all branches
    newest first    backwards from the head           the runs of all phases, merged by time
    oldest first    forwards; the newest N: the same  the same, forwards
                    backwards, turned round
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ..damage import warn_of_damage
from ..errors import TapeError
from ..history.entry_lines import decode_legible, iter_lines
from ..model.entries import Anchor, Assistant, User
from ..model.line import decode_line, describe_blob_head, read_header, read_type
from ..store.refs import find_head
from .terminal import print_warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..history.entry_lines import DecodedLine, LocatedLine
    from ..store.path import Segment
    from ..store.refs import Head
    from ..store.tape import Tape


class LogFilter(NamedTuple):
    """Which entries are shown; an empty part leaves out none."""

    types: frozenset[str] = frozenset()
    since: str = ""
    """Only entries of this tape time or later."""
    until: str = ""
    """Only entries before this tape time."""
    model: str = ""
    """Only what models wrote whose PROVIDER/MODEL has this in it, in small letters."""

    def is_shown(self, line: bytes) -> bool:
        """Return whether a verified line is shown; one of a type that cannot be read is."""
        kind = read_type(line)
        if self.types and kind and kind not in self.types:
            return False
        if self.since or self.until:
            time = read_header(line).time
            if time < self.since or (self.until and time >= self.until):
                return False
        return not self.model or self.model in _read_author(line, kind).casefold()

    def is_behind(self, line: bytes, *, back: bool) -> bool:
        """Return whether neither this line nor any later one is shown, read in time's order."""
        if back:
            return bool(self.since) and read_header(line).time < self.since
        return bool(self.until) and read_header(line).time >= self.until


def _read_author(line: bytes, kind: str) -> str:
    """Return the provider and model that wrote an entry; "" for what no model wrote."""
    if kind not in {Assistant.entry_type, Anchor.entry_type}:
        return ""
    match decode_line(line, describe_blob_head).data:
        case Assistant(provider=provider, model=model):
            return f"{provider}/{model}"
        case Anchor(by=by) if by is not None:
            return f"{by.provider}/{by.model}"
    return ""


class LoggedEntry(NamedTuple):
    """An entry to show; `prompt` is the number by which `^N` goes back before it, if asked for."""

    step: DecodedLine
    prompt: int | None = None


def read_log(
    tape: Tape,
    head: Head | None,
    choice: LogFilter,
    *,
    segments: Sequence[Segment] | None = None,
    newest: int | None = None,
    newest_first: bool = False,
    numbered: bool = False,
) -> Iterable[LoggedEntry]:
    """Return the entries of the path to a head, or of all branches for None, in either order.

    Of the path only the last `segments` if given, oldest first; only the `newest` entries if given.
    Unreadable ones are left out with a warning. Prompts of a path have their numbers if `numbered`,
    for which a path that is read from its start is read twice.
    """
    back, passed = newest_first or newest is not None, None
    if head is None:
        lines = _merge_by_time(_collect_branch_segments(tape), back=back)
    else:
        tape.report_torn_tail(head, warn_of_damage)
        segments = tape.path(head) if segments is None else segments
        lines = iter_lines(segments, back=back)
        if numbered:
            passed = 0 if back else _count_prompts(segments)
    entries = _select_shown(_number_prompts(lines, passed, back=back), choice, back=back)
    if newest is not None:
        entries = islice(entries, newest)
    return entries if back == newest_first else [*entries][::-1]


def _select_shown(
    numbered: Iterable[tuple[int | None, LocatedLine]], choice: LogFilter, *, back: bool
) -> Iterator[LoggedEntry]:
    for number, line in numbered:
        if choice.is_behind(line.line, back=back):
            return
        if choice.is_shown(line.line):
            for step in decode_legible([line], describe_blob_head, choice.types):
                yield LoggedEntry(step, number)


def _count_prompts(segments: Sequence[Segment]) -> int:
    is_prompt = (
        read_type(line) == User.entry_type for segment in segments for _, line in segment.lines()
    )
    return sum(is_prompt)


def _number_prompts(
    lines: Iterable[LocatedLine], passed: int | None, *, back: bool
) -> Iterator[tuple[int | None, LocatedLine]]:
    """Yield each line, prompts with their number: 1 is the newest one.

    `passed` is 0 for lines that come newest first, else how many prompts come; None for no numbers.
    """
    if passed is None:
        yield from ((None, line) for line in lines)
        return
    for line in lines:
        is_prompt = read_type(line.line) == User.entry_type
        passed += is_prompt and back
        yield passed if is_prompt else None, line
        passed -= is_prompt and not back


def _collect_branch_segments(tape: Tape) -> list[Segment]:
    """Return what the paths of all branches cover, each part of a phase once."""
    refs, segments = tape.refs(), dict[tuple[str, str], "Segment"]()
    for branch in refs.branches:
        try:
            for segment in tape.path(find_head(refs, tape.phases, branch)):
                known = segments.setdefault((segment.source.tape, segment.phase), segment)
                if segment.end > known.end:
                    segments[segment.source.tape, segment.phase] = segment
        except TapeError as error:
            print_warning(f"branch {branch} is left out: {error}")
    return [*segments.values()]


def _merge_by_time(segments: Iterable[Segment], *, back: bool) -> Iterator[LocatedLine]:
    """Yield the lines of segments in time's order; only files whose times overlap are open."""
    from heapq import heappop, heappush  # only --all merges

    sign = -1 if back else 1

    def rank(line: bytes) -> tuple[int, int]:
        header = read_header(line)
        return sign * int("".join(filter(str.isdigit, header.time))), sign * header.n

    waiting = []
    for number, segment in enumerate(segments):
        for line in iter_lines([segment], back=back):
            waiting.append((rank(line.line), number, segment))
            break
    waiting.sort(reverse=True)
    heap: list[tuple[tuple[int, int], int, LocatedLine, Iterator[LocatedLine]]] = []
    while heap or waiting:
        if waiting and (not heap or waiting[-1][:2] <= heap[0][:2]):
            _, number, segment = waiting.pop()
            rest = iter_lines([segment], back=back)
        else:
            _, number, line, rest = heappop(heap)
            yield line
        for line in islice(rest, 1):
            heappush(heap, (rank(line.line), number, line, rest))
