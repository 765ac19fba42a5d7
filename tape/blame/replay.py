"""Finding the change that last touched each line of a text; pure.

Changes are replayed oldest first. The state is the version of the file as far as it is known, with
an owner for each of its lines, and the changes that wait because they could not be placed:

    change                                               version afterwards     waiting afterwards
    seen version, exact or similar to the known one      its text               none
    delete                                               empty                  none
    write                                                its text               none
    edit that fits                                       with the edit made     as before
    edit that does not fit                               as before              and this one
    a change that may not have run                       as before              and this one

Where a whole text comes next (seen, written, or the current file at the end), the changes that wait
are undone from it, newest first: the lines that an undone change takes away are its own. Lines that
no change explains are nobody's: somebody changed them outside, or they stood there before. An exact
version that was the file's before, as after an undo, has the owners it had then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..files.calls import FileDelete, FileEdit, FileWrite, PatchHunk
from .edits import (
    NO_ORIGIN,
    MarkedText,
    find_line_numbers,
    find_step_spans,
    find_undo_spans,
    list_added_runs,
    match_lines,
    normalize_text,
    splice_text,
    split_lines,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .edits import EditStep

By = TypeVar("By")

UNKNOWN_RESULT = "there is no result, so it may not have run"
PARTIAL_MATCH = "only a part of its text is still here"
UNKNOWN_BASE = "the earlier content of the file is unknown"


_MAX_BRACKET = 3
"""Letters and digits that a line may have and still be no more than a bracket."""


class SeenVersion(NamedTuple):
    """The file was seen with this text: not a change, but it shows what others changed."""

    text: str
    exact: bool = False
    """Whether these certainly are all bytes of the file then, as a record of it says."""


ChangeWork = FileWrite | FileEdit | FileDelete | SeenVersion
"""What a change may be."""


class AttributedChange(NamedTuple, Generic[By]):
    """One change of the file."""

    by: By
    """The author of the change, passed through."""
    work: ChangeWork
    known: bool = True
    """Whether it certainly ran."""


class BlamedRange(NamedTuple, Generic[By]):
    """Lines from one change: numbers of the first and the last, from 1."""

    first: int
    last: int
    by: By | None
    """None if no change explains them."""
    doubt: str | None = None
    """Why this may be wrong; None if it is certain."""

    @property
    def is_older(self) -> bool:
        """Return whether the lines may be older than the change."""
        return self.doubt == UNKNOWN_BASE


class _LineOwner(NamedTuple):
    """The number of a change, and what makes it uncertain."""

    change: int
    doubt: str | None = None


_NOBODY = _LineOwner(NO_ORIGIN)
"""Owner of a line that was seen in the file but that no change added."""
_LineOwners = list[_LineOwner | None]
"""The owner of each line; None while unknown."""


class _FileReplay:
    """The file after the changes so far."""

    def __init__(self, works: Sequence[ChangeWork], known: Sequence[bool]) -> None:
        self.works, self.known = works, known
        self.version: MarkedText[_LineOwner | None] | None = None
        """Its known content; None if unknown. It may be outdated while `waiting` is not empty.
        """
        self.waiting: list[int] = []
        """Changes that could not be applied."""
        self.past: dict[str, _LineOwners] = {}
        """The owners of the lines of each version that is certain."""

    def apply_change(self, number: int) -> None:
        """Replay the next change."""
        work = self.works[number]
        if not self.known[number]:
            self.waiting.append(number)
            return
        match work:
            case SeenVersion(text, exact=True):
                self._apply_exact(normalize_text(text))
            case SeenVersion(text):
                self._apply_seen(normalize_text(text))
            case FileDelete():
                self._set_version(MarkedText("", []))
            case FileWrite(text, created):
                if created:
                    self._set_version(MarkedText("", []))
                is_sure = self.version is not None and not self._has_known_waiting()
                owners = self.find_owners(normalize_text(text))
                own = _LineOwner(number, None if is_sure else UNKNOWN_BASE)
                marks: _LineOwners = [owner or own for owner in owners]
                self._set_version(MarkedText(normalize_text(text), marks))
                self.past[normalize_text(text)] = marks
            case FileEdit():
                edited = self._apply_edit(work, number)
                if edited is None:
                    self.waiting.append(number)
                else:
                    self.version = edited

    def _set_version(self, version: MarkedText[_LineOwner | None]) -> None:
        self.version, self.waiting = version, []

    def _has_known_waiting(self) -> bool:
        return any(self.known[owner] for owner in self.waiting)

    def _apply_exact(self, text: str) -> None:
        """Take a text for the file: a record has its bytes."""
        if self.version is None or self.version.text != text or self.waiting:
            owners = self.past.get(text) or [owner or _NOBODY for owner in self.find_owners(text)]
            self._set_version(MarkedText(text, owners))
        assert self.version is not None
        self.past[text] = self.version.marks

    def _apply_seen(self, text: str) -> None:
        """Take a text for the file, unless it is so different that it can hardly be."""
        if self.version is not None:
            ours, theirs = set(split_lines(self.version.text)), set(split_lines(text))
            if 2 * len(ours & theirs) < min(len(ours), len(theirs)):
                return
        owners = self.find_owners(text)
        if self.version is not None or any(owners) or not self._has_known_waiting():
            self._set_version(MarkedText(text, [owner or _NOBODY for owner in owners]))
        # else it may be a listing

    def _apply_edit(self, work: FileEdit, number: int) -> MarkedText[_LineOwner | None] | None:
        """Return the version after an edit; None if the edit does not fit."""
        version, cursor = self.version, 0
        if version is None:
            return None
        for step in work.steps:
            places = find_step_spans(version.text, step, cursor)
            if not places:
                return None
            for place in reversed(places):
                version, _ = splice_text(version, place, _LineOwner(number))
            if not isinstance(step, PatchHunk) or step.old:  # else lines may come further down
                cursor = places[-1].start + len(places[-1].text)
        return version

    def find_owners(self, text: str) -> _LineOwners:
        """Return the owner of each line of a text that is the file's content now."""
        lines = split_lines(text)
        claims: _LineOwners = [None] * len(lines)
        rest = MarkedText(text, list(range(len(lines))))
        for number in reversed(self.waiting):
            work = self.works[number]
            owner = _LineOwner(number, None if self.known[number] else UNKNOWN_RESULT)
            if isinstance(work, FileEdit):
                for step in reversed(work.steps):
                    rest = self._undo_step(step, rest, claims, owner)
            elif isinstance(work, FileWrite) and normalize_text(work.text) == rest.text:
                explained = enumerate(self._match_version(rest.text))
                besides = {at for at, origin in explained if origin != NO_ORIGIN}
                _claim_lines(rest.marks, claims, owner, besides)
        if self.version is not None:
            for at, origin in zip(rest.marks, self._match_version(rest.text), strict=True):
                if NO_ORIGIN not in (at, origin) and claims[at] is None:
                    claims[at] = self.version.marks[origin]
        return claims

    def _match_version(self, text: str) -> list[int]:
        """Return for each line of a text its number in the known version, or NO_ORIGIN."""
        known = split_lines(self.version.text) if self.version else []
        return match_lines(known, split_lines(text))

    def _undo_step(
        self, step: EditStep, rest: MarkedText[int], claims: _LineOwners, owner: _LineOwner
    ) -> MarkedText[int]:
        """Return a text without what a step brought, and note whose the lines are that went.

        Where the step cannot be undone, it is given the runs of its lines that are together.
        """
        version = self.version.text if self.version else None
        partial = owner._replace(doubt=PARTIAL_MATCH)
        places = find_undo_spans(rest.text, step)
        if places and version is not None and rest.text[places[0].start : places[0].end] in version:
            return rest  # the known version has that text too: then nothing else brought it
        for place in reversed(places):
            rest, gone = splice_text(rest, place, NO_ORIGIN)
            _claim_lines(gone, claims, owner if len(places) == 1 else partial)
        for run in [] if places else list_added_runs(step):
            starts = find_line_numbers(rest.text, run)
            is_known = version is not None and find_line_numbers(version, run)
            # a line that is no more than a bracket is everywhere
            is_distinctive = any(sum(map(str.isalnum, line)) > _MAX_BRACKET for line in run)
            if len(starts) == 1 and not is_known and is_distinctive:
                gone = rest.marks[starts[0] : starts[0] + len(run)]
                _claim_lines(gone, claims, partial if owner.doubt is None else owner)
        return rest


def attribute_lines(current: str, changes: Sequence[AttributedChange[By]]) -> list[BlamedRange[By]]:
    """Return the ranges of lines of `current`, in order and without gaps, with their owners.

    Changes come oldest first. Line ends and a byte order mark are not part of a line.
    """
    file = _FileReplay([change.work for change in changes], [change.known for change in changes])
    for number in range(len(changes)):
        file.apply_change(number)
    ranges: list[BlamedRange[By]] = []
    last: _LineOwner | None = None
    for line, owner in enumerate(file.find_owners(normalize_text(current)), 1):
        owner = owner or _NOBODY  # noqa: PLW2901 (what is not known now will not be)
        if owner == last:
            ranges[-1] = ranges[-1]._replace(last=line)
        else:
            by = None if owner == _NOBODY else changes[owner.change].by
            ranges.append(BlamedRange(line, line, by, owner.doubt))
        last = owner
    return ranges


def fill_ranges(
    ranges: Sequence[BlamedRange[By]], wider: Sequence[BlamedRange[By]]
) -> list[BlamedRange[By]]:
    """Return ranges of a text, with what others of the same text know of its unexplained lines.

    A line that may be older than its change is theirs too, where they are certain of another one.
    """
    filled: list[BlamedRange[By]] = []
    others = iter(wider)
    other = next(others, None)
    for own in ranges:
        first = own.first
        while first <= own.last:
            while other is not None and other.last < first:
                other = next(others, None)
            assert other is not None  # both are of the same text
            last = min(own.last, other.last)
            is_sure = other.by is not None and other.doubt is None
            source = other if own.by is None or (own.is_older and is_sure) else own
            before = filled[-1] if filled else None
            if before is not None and (before.by, before.doubt) == (source.by, source.doubt):
                filled[-1] = before._replace(last=last)
            else:
                filled.append(source._replace(first=first, last=last))
            first = last + 1
    return filled


def _claim_lines(
    marks: Sequence[int], claims: _LineOwners, owner: _LineOwner, besides: Collection[int] = ()
) -> None:
    """Assign lines without an owner to a change, except those in `besides`."""
    for place, at in enumerate(marks):
        if at != NO_ORIGIN and claims[at] is None and place not in besides:
            claims[at] = owner
