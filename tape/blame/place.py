"""Where an edit stands in a text, before it was made and after; pure.

A text here is whole lines: it is empty, or ends with a line feed, and has no other line ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..filecalls import Hunk, Insertion, Replacement
from ..lookalikes import replace_lookalikes
from .lines import NEW, origins

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")

Step = Replacement | Hunk | Insertion


class Place(NamedTuple):
    """A span of a text, by characters, and what is to stand there instead."""

    start: int
    end: int
    text: str


class Marked(NamedTuple, Generic[T]):
    """A text, and a mark for each of its lines."""

    text: str
    marks: list[T]


def plain(text: str) -> str:
    """Return a text with line feeds for its line ends, the last one too, and no byte order mark."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return f"{text}\n" if text and not text.endswith("\n") else text


def split(text: str) -> list[str]:
    """Return the lines of whole lines, without their ends."""
    return text.split("\n")[:-1]


def before(text: str, step: Step, cursor: int = 0) -> list[Place]:
    """Return what a step would change in a text; nothing where it does not fit.

    Hunks of a patch come in the order of the file: `cursor` is where the one before ended.
    """
    match step:
        case Replacement():
            places = list(_found(text, _unix(step.old), _unix(step.new)))
            return places if len(places) == 1 or step.every else []
        case Insertion(line, added):
            return _inserted(text, line, plain(added))
        case Hunk():
            place = _hunk(text, step, cursor)
            return [] if place is None else [place]


def after(text: str, step: Step) -> list[Place]:
    """Return what would take a step back in a text that holds what it brought.

    Nothing where that cannot be told: it brought nothing, or its text does not stand there, or
    more than once.
    """
    match step:
        case Replacement():
            places = list(_found(text, _unix(step.new), _unix(step.old)))
        case Insertion(_, added):
            places = list(_whole(text, split(plain(added)), []))
        case Hunk():
            places = list(_whole(text, _stripped(step.new), _stripped(step.old)))
    return places if len(places) == 1 or (isinstance(step, Replacement) and step.every) else []


def brought(step: Step) -> list[list[str]]:
    """Return the runs of whole lines that a step brought in."""
    match step:
        case Replacement():
            old, new = split(plain(step.old)), split(plain(step.new))
        case Insertion(_, added):
            old, new = [], split(plain(added))
        case Hunk():
            old, new = _stripped(step.old), _stripped(step.new)
    runs: list[list[str]] = [[]]
    for line, origin in zip(new, origins(old, new), strict=True):
        if origin == NEW:
            runs[-1].append(line)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def lines_at(text: str, run: Sequence[str]) -> list[int]:
    """Return the numbers, from 0, of the lines at which a run of whole lines begins."""
    return [text.count("\n", 0, place.start) for place in _whole(text, run, [])]


def spliced(marked: Marked[T], place: Place, mark: T) -> tuple[Marked[T], list[T]]:
    """Return a text with a place of it changed, and the marks of the lines that went.

    Lines that stay as they are keep their marks, new ones get `mark`.
    """
    text, marks = marked
    start = text.rfind("\n", 0, place.start) + 1
    region = text[start : place.start] + place.text
    end = place.end
    if not (_ends_line(text[max(end - 1, 0) : end]) and _ends_line(region[-1:])):
        end = text.find("\n", end) + 1 or len(text)
        region = plain(region + text[place.end : end])
    first = text.count("\n", 0, start)
    old, new = split(text[start:end]), split(region)
    kept = origins(old, new)
    known = marks[first : first + len(old)]
    gone = set(range(len(old))).difference(kept)
    inside = [mark if origin == NEW else known[origin] for origin in kept]
    whole = Marked(
        text[:start] + region + text[end:], marks[:first] + inside + marks[first + len(old) :]
    )
    return whole, [known[at] for at in sorted(gone)]


def _ends_line(last: str) -> bool:
    return last in {"", "\n"}


def _bare(line: str) -> str:
    return replace_lookalikes(line).strip()


def _unix(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.removesuffix("\r") for line in lines]


def _found(text: str, old: str, new: str) -> Iterator[Place]:
    """Yield the places where a text stands."""
    start = text.find(old) if old else -1
    while start >= 0:
        yield Place(start, start + len(old), new)
        start = text.find(old, start + len(old))


def _whole(text: str, old: Sequence[str], new: Sequence[str], start: int = 0) -> Iterator[Place]:
    """Yield the places from `start` on where whole lines stand."""
    needle, instead = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    at = text.find(needle, start) if needle else -1
    while at >= 0:
        if at == 0 or text[at - 1] == "\n":
            yield Place(at, at + len(needle), instead)
        at = text.find(needle, at + 1)


def _inserted(text: str, line: int | None, added: str) -> list[Place]:
    if line is None:
        return [Place(len(text), len(text), added)]
    lines = split(text)
    if not 0 <= line <= len(lines):
        return []
    start = sum(len(one) + 1 for one in lines[:line])
    return [Place(start, start, added)]


def _hunk(text: str, hunk: Hunk, cursor: int) -> Place | None:
    """Return the first place behind the contexts of a hunk where its old lines stand."""
    for context in hunk.contexts:
        found = _seek(text, [context], [], cursor)
        cursor = found.end if found else cursor
    old, new = _stripped(hunk.old), _stripped(hunk.new)
    if not old:
        at = cursor if hunk.contexts else len(text)
        return Place(at, at, "".join(f"{line}\n" for line in new))
    if hunk.at_end:
        places = [*_whole(text, old, new)]
        if places and places[-1].end == len(text):
            return places[-1]
    return _seek(text, old, new, cursor)


def _seek(text: str, old: list[str], new: list[str], start: int) -> Place | None:
    """Return the first place where lines stand: exactly, or else as people see them."""
    exact = next(_whole(text, old, new, start), None)
    if exact is not None:
        return exact
    lines, wanted = split(text[start:]), [_bare(line) for line in old]
    bare = "".join(f"{_bare(line)}\n" for line in lines)
    loose = next(_whole(bare, wanted, []), None)
    if loose is None:
        return None
    first = bare.count("\n", 0, loose.start)
    begin = start + sum(len(line) + 1 for line in lines[:first])
    end = begin + sum(len(line) + 1 for line in lines[first : first + len(old)])
    return Place(begin, end, "".join(f"{line}\n" for line in new))
