"""What is removed by the names that another command lists: find itself, or ls and xargs; pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from .expansion import Argument
from .matching import any_option, operands
from .tables import table

if TYPE_CHECKING:
    from .expansion import Arguments
    from .use import Use

_CHOOSERS = {"grep", "egrep", "fgrep", "rg", "head", "tail"}
_WIDE = "removes or changes what a whole system, home or workspace folder holds"


def removed(use: Use) -> str | None:
    """Return why it is dangerous to remove what find or ls lists, None where it is not."""
    changes = {*table().words.removers, "chmod", "chown", "chgrp"}
    if use.name == "find":
        removes = any(
            one.text == "-delete"
            or (left.text.startswith(("-exec", "-ok")) and _base(one) in changes)
            for left, one in pairwise((Argument(""), *use.arguments))
        )
        return _found(use) if removes else None
    if use.name in changes:
        found = (_found(one, use.before) for one in use.before if one.name in {"find", "fd"})
        return next((one for one in found if one), None) or _listed(use)
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
    narrowed = any(one.text in table().words.narrowing for one in use.arguments)
    narrowed |= _chosen(on_the_way)
    for one in _starts(use.arguments):
        if use.places.foreign(one) or (not narrowed and use.places.vital(one)):
            return _WIDE
    return None


def _starts(arguments: Arguments) -> Arguments:
    """Return the folders a find begins in."""
    ends = (i for i, one in enumerate(arguments) if one.text[:1] in {"-", "(", "!"} and one.text)
    first = arguments[: next(ends, len(arguments))]
    return first or (
        (arguments[0]._replace(text=".", known=True, glob=False),) if arguments else ()
    )
