"""Finding the change that last touched each line of a text; pure.

Changes are applied oldest first to the known content of the file. An edit that does not fit waits
until the whole text is known again, at the latest from the current file, and is then reverted from
there, newest first. A line that no change explains has no owner: it was changed outside, or was
there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..file_calls import FileDelete, FileEdit, FileWrite, PatchHunk
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

    from .edits import EditStep, TextSpan

By = TypeVar("By")

UNKNOWN_RESULT = "there is no result, so it may not have run"
PARTIAL_MATCH = "only a part of its text is still here"
UNKNOWN_BASE = "the earlier content of the file is unknown"


class SeenVersion(NamedTuple):
    """The file was seen with this text: not a change, but it shows what others changed."""

    text: str


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

    def apply_change(self, number: int) -> None:
        """Apply one change."""
        work = self.works[number]
        if not self.known[number]:
            self.waiting.append(number)
            return
        match work:
            case SeenVersion():
                self._apply_seen(work)
            case FileDelete():
                self._set_version(MarkedText("", []))
            case FileWrite():
                self._apply_write(work, number)
            case FileEdit():
                edited = self._apply_edit(work, number)
                if edited is None:
                    self.waiting.append(number)
                else:
                    self.version = edited

    def _set_version(self, version: MarkedText[_LineOwner | None]) -> None:
        self.version, self.waiting = version, []

    def _apply_write(self, work: FileWrite, number: int) -> None:
        if work.created:
            self._set_version(MarkedText("", []))
        is_sure = self.version is not None and not any(self.known[one] for one in self.waiting)
        owners = self.find_owners(normalize_text(work.text))
        own = _LineOwner(number, None if is_sure else UNKNOWN_BASE)
        self._set_version(MarkedText(normalize_text(work.text), [owner or own for owner in owners]))

    def _apply_seen(self, seen: SeenVersion) -> None:
        """Use a seen text as the file's content, unless it is too different."""
        text = normalize_text(seen.text)
        if self.version is not None and not _is_similar(self.version.text, text):
            return
        owners = self.find_owners(text)
        surely = any(self.known[one] for one in self.waiting)
        if (
            self.version is not None or any(owners) or not surely
        ):  # else it may be a partial listing
            self._set_version(MarkedText(text, [owner or _NOBODY for owner in owners]))

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
            if not (
                isinstance(step, PatchHunk) and not step.old
            ):  # the insertion may be further down
                cursor = places[-1].start + len(places[-1].text)
        return version

    def find_owners(self, text: str) -> _LineOwners:
        """Return the owner of each line of a text that is the file's content now."""
        lines = split_lines(text)
        claims: _LineOwners = [None] * len(lines)
        rest = MarkedText(text, list(range(len(lines))))
        for number in reversed(self.waiting):
            rest = self._undo_change(number, rest, claims)
        if self.version is not None:
            known = self.version.marks
            found = match_lines(split_lines(self.version.text), split_lines(rest.text))
            for at, origin in zip(rest.marks, found, strict=True):
                if NO_ORIGIN not in (at, origin) and claims[at] is None:
                    claims[at] = known[origin]
        return claims

    def _undo_change(
        self, number: int, rest: MarkedText[int], claims: _LineOwners
    ) -> MarkedText[int]:
        """Revert a change where its text is found, and claim the lines it added."""
        work, doubt = self.works[number], None if self.known[number] else UNKNOWN_RESULT
        if isinstance(work, FileEdit):
            for step in reversed(work.steps):
                rest = self._undo_step(step, rest, claims, _LineOwner(number, doubt))
        elif isinstance(work, FileWrite) and normalize_text(work.text) == rest.text:
            _claim_lines(
                rest.marks, claims, _LineOwner(number, doubt), self._find_explained_lines(rest.text)
            )
        return rest

    def _undo_step(
        self, step: EditStep, rest: MarkedText[int], claims: _LineOwners, owner: _LineOwner
    ) -> MarkedText[int]:
        places = find_undo_spans(rest.text, step)
        if not places:
            self._claim_part_lines(step, rest, claims, owner)
            return rest
        if self._has_text(rest.text, places[0]):
            return rest
        for place in reversed(places):
            rest, gone = splice_text(rest, place, NO_ORIGIN)
            _claim_lines(
                gone, claims, owner if len(places) == 1 else owner._replace(doubt=PARTIAL_MATCH)
            )
        return rest

    def _has_text(self, text: str, place: TextSpan) -> bool:
        """Return whether the known version has that text too, so that no other change added it."""
        return self.version is not None and text[place.start : place.end] in self.version.text

    def _claim_part_lines(
        self, step: EditStep, rest: MarkedText[int], claims: _LineOwners, owner: _LineOwner
    ) -> None:
        """Claim the runs of lines that a step added, where they are still contiguous."""
        for run in list_added_runs(step):
            starts = find_line_numbers(rest.text, run)
            in_version = self.version is not None and find_line_numbers(self.version.text, run)
            if len(starts) == 1 and not in_version and any(map(_is_distinctive, run)):
                gone = rest.marks[starts[0] : starts[0] + len(run)]
                _claim_lines(gone, claims, owner._replace(doubt=owner.doubt or PARTIAL_MATCH))

    def _find_explained_lines(self, text: str) -> set[int]:
        """Return the indexes of the lines of a text that the known version has too."""
        if self.version is None:
            return set()
        found = match_lines(split_lines(self.version.text), split_lines(text))
        return {at for at, origin in enumerate(found) if origin != NO_ORIGIN}


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


def _claim_lines(
    marks: Sequence[int], claims: _LineOwners, owner: _LineOwner, besides: Collection[int] = ()
) -> None:
    """Assign lines without an owner to a change, except those in `besides`."""
    for place, at in enumerate(marks):
        if at != NO_ORIGIN and claims[at] is None and place not in besides:
            claims[at] = owner


def _is_distinctive(line: str) -> bool:
    """Return whether a line is more than a bracket, which occurs everywhere."""
    return sum(map(str.isalnum, line)) > 3  # noqa: PLR2004 (a word)


def _is_similar(one: str, other: str) -> bool:
    """Return whether two texts share half of the lines of the shorter one."""
    ours, theirs = set(split_lines(one)), set(split_lines(other))
    return 2 * len(ours & theirs) >= min(len(ours), len(theirs))
