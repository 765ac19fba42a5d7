"""What is removed by the names that another command lists: find itself, or ls and xargs; pure."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from .expansion import Argument
from .matching import any_option, operands, value_of
from .tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .expansion import Arguments
    from .use import Use

_RECURSIVE = {
    **dict.fromkeys(("rm", "srm", ""), ("-r", "-R", "--recursive")),
    **dict.fromkeys(("chmod", "chown", "chgrp"), ("-R", "--recursive")),
    "rsync": ("--delete*", "--del"),
}
"""By program: options with which it goes through all that a folder holds."""
_CHOOSERS = {"grep", "egrep", "fgrep", "rg", "head", "tail"}
_ACTIONS = {"-delete", "-exec", "-execdir", "-ok", "-okdir"}
_ANY = re.compile(r"[*?./]*\*[*?./]*")
_WORDS = re.compile(r"[\s'\";|&()`]+")
_FD_FOLDERS = ("--search-path", "--base-directory", "-C")
_FD_CHOOSES = ("-e", "--extension", "-S", "--size", "--changed-within", "--changed-before")
_FD_VALUED = (*_FD_FOLDERS, *_FD_CHOOSES, "-t", "--type", "-d", "--max-depth", "-E", "--exclude")
_WIDE = "removes or changes what a whole system, home or workspace folder holds"


def untold(use: Use) -> str | None:
    """Return why it is dangerous to remove below what a command prints, None where it is not."""
    given = operands(use.arguments)
    recursive = use.name == "rimraf" or any_option(use.arguments, _RECURSIVE.get(use.name, ()))
    if use.name == "find":
        given = _starts(use.arguments)
        recursive = any(
            one.text == "-delete" or _base(one) in table().words.removers for one in use.arguments
        )
    if recursive and any(one.free and not one.text.strip("/.*") for one in given):
        return "removes or changes everything below a folder that cannot be told"
    return None


def removed(use: Use) -> str | None:
    """Return why it is dangerous to remove what find or ls lists, None where it is not."""
    changes = {*table().words.removers, "chmod", "chown", "chgrp"}
    if use.name == "find":
        ran = [*_ran(use.arguments)]
        if any(map(_overwrites, ran)) and any(map(use.places.foreign, _starts(use.arguments))):
            return _WIDE
        removes = any(one.text == "-delete" for one in use.arguments) or any(
            word in changes for each in ran for word in _programs(each)
        )
        return _found(use) if removes else None
    if use.name in {"fd", "fdfind"}:
        return _found_by_fd(use, changes)
    if use.name in changes:
        found = (_found(one, use.before) for one in use.before if one.name in {"find", "fd"})
        return next((one for one in found if one), None) or _listed(use)
    return None


def _ran(arguments: Arguments) -> Iterator[Arguments]:
    """Yield the commands that a find runs."""
    for index, one in enumerate(arguments):
        if one.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            rest = arguments[index + 1 :]
            yield tuple(takewhile(lambda each: each.text not in {";", "+"}, rest))


def _programs(command: Arguments) -> Iterator[str]:
    """Yield the names that may be programs in a command, texts for a shell included."""
    if command and table().reader(_base(command[0])) is not None:
        return
    for one in command:
        yield from (word.rsplit("/", 1)[-1].lower() for word in _WORDS.split(one.text))


def _overwrites(command: Arguments) -> bool:
    """Whether a command overwrites the files whose names it is given as `{}`."""
    names = {*_programs(command)}
    if names & {"tee", "dd", "sponge"}:
        return any("{}" in one.text for one in command)
    if names & {"sed", "perl"}:
        return any_option(command, ["-i", "--in-place"])
    return bool(names & {"cp", "install", "ln"}) and command[-1].text == "{}"


def _found_by_fd(use: Use, changes: set[str]) -> str | None:
    marks = {"-x", "-X", "--exec", "--exec-batch"}
    start = next((i for i, one in enumerate(use.arguments) if one.text in marks), None)
    if start is None or not {*_programs(use.arguments[start + 1 :])} & changes:
        return None
    own = use.arguments[:start]
    pattern, *folders = operands(own, _FD_VALUED) or (Argument(""),)
    chosen = any_option(own, _FD_CHOOSES) or pattern.text.strip(".*^$") != ""
    folders += [one for name in _FD_FOLDERS if (one := value_of(own, name)) is not None]
    for one in folders or [Argument("." if pattern.text else "")]:
        if use.places.foreign(one) or (not chosen and use.places.vital(one)):
            return _WIDE
    return None


def _base(argument: Argument) -> str:
    return argument.text.rsplit("/", 1)[-1].lower()


def _listed(use: Use) -> str | None:
    """Look at what is removed by the names that ls prints."""
    if use.name == "mv" or use.name not in table().words.removers:
        return None
    for one in use.before:
        folders = operands(one.arguments) or (Argument("."),)
        wide = use.places.foreign if _chosen(use.before) else use.places.vital
        if one.name == "ls" and any(map(wide, folders)):
            return _WIDE
    return None


def _chosen(uses: tuple[Use, ...]) -> bool:
    """Whether some of the lines on the way are chosen."""
    return any(
        one.name in _CHOOSERS and not any_option(one.arguments, ["-v", "--invert-match"])
        for one in uses
    )


def _found(use: Use, on_the_way: tuple[Use, ...] = ()) -> str | None:
    narrowed = _narrowed(use.arguments) or _chosen(on_the_way)
    for one in _starts(use.arguments):
        if use.places.foreign(one) or (not narrowed and use.places.vital(one)):
            return _WIDE
    return None


def _narrowed(arguments: Arguments) -> bool:
    """Whether a find chooses among files before it removes them, in the alternative that does."""
    tests, depth, narrow, acted = table().words.narrowing, 0, False, False
    before = ""
    for one, value in pairwise((*arguments, Argument(""))):
        text = one.text
        depth += (text == "(") - (text == ")")
        if text in {"-o", "-or", ","} and not depth:
            if acted:
                return narrow
            narrow = False
        elif text in _ACTIONS and not narrow and _removes(text, value):
            return False
        elif text in tests and before not in {"!", "-not"} and not _is_idle(text, value.text):
            narrow = True
        acted |= text in _ACTIONS
        before = text
    return narrow


def _removes(action: str, command: Argument) -> bool:
    return action == "-delete" or _base(command) in table().words.removers


def _is_idle(test: str, value: str) -> bool:
    """Whether a test of find chooses nothing: every name, or no depth."""
    return bool(_ANY.fullmatch(value)) or (test == "-maxdepth" and value == "0")


def _starts(arguments: Arguments) -> Arguments:
    """Return the folders a find begins in."""
    ends = (i for i, one in enumerate(arguments) if one.text[:1] in {"-", "(", "!"} and one.text)
    first = arguments[: next(ends, len(arguments))]
    return first or (
        (arguments[0]._replace(text=".", known=True, glob=False),) if arguments else ()
    )
