"""Which change brought in each line of a text; pure.

Changes are gone through oldest first, with the file as far as they tell it. An edit that does not
fit what is known waits until a whole text is known again, the current one at the latest, and is
then taken back from there, newest first. What no change explains stays nobody's: somebody changed
it outside, or it stood there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..filecalls import Delete, Edit, Hunk, Write
from .lines import NEW, origins
from .place import Marked, after, before, brought, lines_at, plain, spliced, split

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .place import Place, Step

By = TypeVar("By")

OUTCOME = "no result tells whether it ran"
PART = "only a part of its text stands here"
BEFORE = "the file before it is not known"


class Seen(NamedTuple):
    """The file held this text: no change, but it tells what others changed."""

    text: str


Work = Write | Edit | Delete | Seen
"""What a change may be."""


class Change(NamedTuple, Generic[By]):
    """One change of the file."""

    by: By
    """Who made it: handed through."""
    work: Work
    known: bool = True
    """Whether it surely ran."""


class Range(NamedTuple, Generic[By]):
    """Lines that came in together: numbers of the first and the last, from 1."""

    first: int
    last: int
    by: By | None
    """None where no change explains them."""
    doubt: str | None = None
    """Why it may be otherwise."""

    @property
    def is_older(self) -> bool:
        """Tell whether the lines may have stood there before."""
        return self.doubt == BEFORE


class _Owner(NamedTuple):
    """The number of a change, and what makes it uncertain."""

    change: int
    doubt: str | None = None


_NOBODY = _Owner(NEW)
"""Owner of a line that was seen to be there, though no change brought it in."""
_Owners = list[_Owner | None]
"""Who brought in each line; None while that is not known."""


class _File:
    """The file as the changes so far tell it."""

    def __init__(self, works: Sequence[Work], known: Sequence[bool]) -> None:
        self.works, self.known = works, known
        self.version: Marked[_Owner | None] | None = None
        """As known; None while nothing is. Others may have changed it while `waiting` is not empty.
        """
        self.waiting: list[int] = []
        """Changes that could not be placed."""

    def take(self, number: int) -> None:
        """Go on by one change."""
        work = self.works[number]
        if not self.known[number]:
            self.waiting.append(number)
            return
        match work:
            case Seen():
                self._see(work)
            case Delete():
                self._know(Marked("", []))
            case Write():
                self._write(work, number)
            case Edit():
                edited = self._edited(work, number)
                if edited is None:
                    self.waiting.append(number)
                else:
                    self.version = edited

    def _know(self, version: Marked[_Owner | None]) -> None:
        self.version, self.waiting = version, []

    def _write(self, work: Write, number: int) -> None:
        if work.created:
            self._know(Marked("", []))
        is_sure = self.version is not None and not any(self.known[one] for one in self.waiting)
        owners = self.owners(plain(work.text))
        own = _Owner(number, None if is_sure else BEFORE)
        self._know(Marked(plain(work.text), [owner or own for owner in owners]))

    def _see(self, seen: Seen) -> None:
        """Take a text for the file, unless it is so different that it can hardly be."""
        text = plain(seen.text)
        if self.version is not None and not _alike(self.version.text, text):
            return
        owners = self.owners(text)
        surely = any(self.known[one] for one in self.waiting)
        if self.version is not None or any(owners) or not surely:  # else it may be a listing
            self._know(Marked(text, [owner or _NOBODY for owner in owners]))

    def _edited(self, work: Edit, number: int) -> Marked[_Owner | None] | None:
        """Return the version with an edit made, None where it does not fit."""
        version, cursor = self.version, 0
        if version is None:
            return None
        for step in work.steps:
            places = before(version.text, step, cursor)
            if not places:
                return None
            for place in reversed(places):
                version, _ = spliced(version, place, _Owner(number))
            if not (isinstance(step, Hunk) and not step.old):  # lines may be put in further down
                cursor = places[-1].start + len(places[-1].text)
        return version

    def owners(self, text: str) -> _Owners:
        """Return who brought in each line of a text that the file has now."""
        lines = split(text)
        claims: _Owners = [None] * len(lines)
        rest = Marked(text, list(range(len(lines))))
        for number in reversed(self.waiting):
            rest = self._back(number, rest, claims)
        if self.version is not None:
            known = self.version.marks
            found = origins(split(self.version.text), split(rest.text))
            for at, origin in zip(rest.marks, found, strict=True):
                if NEW not in (at, origin) and claims[at] is None:
                    claims[at] = known[origin]
        return claims

    def _back(self, number: int, rest: Marked[int], claims: _Owners) -> Marked[int]:
        """Take a change back where its text stands, and note the lines it brought."""
        work, doubt = self.works[number], None if self.known[number] else OUTCOME
        if isinstance(work, Edit):
            for step in reversed(work.steps):
                rest = self._step_back(step, rest, claims, _Owner(number, doubt))
        elif isinstance(work, Write) and plain(work.text) == rest.text:
            _claim(rest.marks, claims, _Owner(number, doubt), self._explained(rest.text))
        return rest

    def _step_back(
        self, step: Step, rest: Marked[int], claims: _Owners, owner: _Owner
    ) -> Marked[int]:
        places = after(rest.text, step)
        if not places:
            self._claim_parts(step, rest, claims, owner)
            return rest
        if self._holds(rest.text, places[0]):
            return rest
        for place in reversed(places):
            rest, gone = spliced(rest, place, NEW)
            _claim(gone, claims, owner if len(places) == 1 else owner._replace(doubt=PART))
        return rest

    def _holds(self, text: str, place: Place) -> bool:
        """Tell whether the known version has that text too: then nothing else brought it."""
        return self.version is not None and text[place.start : place.end] in self.version.text

    def _claim_parts(self, step: Step, rest: Marked[int], claims: _Owners, owner: _Owner) -> None:
        """Note the runs of lines that a step brought, where they still stand together."""
        for run in brought(step):
            starts = lines_at(rest.text, run)
            in_version = self.version is not None and lines_at(self.version.text, run)
            if len(starts) == 1 and not in_version and any(map(_says_much, run)):
                gone = rest.marks[starts[0] : starts[0] + len(run)]
                _claim(gone, claims, owner._replace(doubt=owner.doubt or PART))

    def _explained(self, text: str) -> set[int]:
        """Return the lines of a text that the known version has too."""
        if self.version is None:
            return set()
        found = origins(split(self.version.text), split(text))
        return {at for at, origin in enumerate(found) if origin != NEW}


def attribute(current: str, changes: Sequence[Change[By]]) -> list[Range[By]]:
    """Return the ranges of lines of `current`, in order and without gaps, and who brought them in.

    Changes come oldest first. Line ends and a byte order mark are no part of a line.
    """
    file = _File([change.work for change in changes], [change.known for change in changes])
    for number in range(len(changes)):
        file.take(number)
    ranges: list[Range[By]] = []
    last: _Owner | None = None
    for line, owner in enumerate(file.owners(plain(current)), 1):
        owner = owner or _NOBODY  # noqa: PLW2901 (what is not known now will not be)
        if owner == last:
            ranges[-1] = ranges[-1]._replace(last=line)
        else:
            by = None if owner == _NOBODY else changes[owner.change].by
            ranges.append(Range(line, line, by, owner.doubt))
        last = owner
    return ranges


def _claim(
    marks: Sequence[int], claims: _Owners, owner: _Owner, besides: Collection[int] = ()
) -> None:
    """Give lines that have no owner yet to a change, besides those at some places."""
    for place, at in enumerate(marks):
        if at != NEW and claims[at] is None and place not in besides:
            claims[at] = owner


def _says_much(line: str) -> bool:
    """Tell whether a line is more than a bracket: such lines stand everywhere."""
    return sum(map(str.isalnum, line)) > 3  # noqa: PLR2004 (a word)


def _alike(one: str, other: str) -> bool:
    """Tell whether two texts share half of the lines of the shorter one."""
    ours, theirs = set(split(one)), set(split(other))
    return 2 * len(ours & theirs) >= min(len(ours), len(theirs))
