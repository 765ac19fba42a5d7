"""Names of files handed from one command to another: `find -exec` and `xargs`; pure.

What lists files of a folder that may be read hands on nothing else; the command that takes the
names has to be one that only reads, whatever they are.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from .expansion import Argument
from .matching import list_operands
from .tables import load_tables

if TYPE_CHECKING:
    from .expansion import Arguments
    from .places import PathContext
    from .use import Invocation

LISTED_NAME = Argument("{}")
"""Stands for a file below the folder."""
_TAKERS = {"grep", "egrep", "fgrep", "echo", "basename", "dirname", "file"}
_LISTERS = {
    "find": re.compile(r"(?!-(?:f?printf|files0-from|exec|ok)).*", re.DOTALL),
    "fd": re.compile(r"-[a-zA-Z0-9]+|[^-].*", re.DOTALL),
    "fdfind": re.compile(r"-[a-zA-Z0-9]+|[^-].*", re.DOTALL),
    "ls": re.compile(r"-[1aAdrtSR]+|[^-].*", re.DOTALL),
    "git": re.compile(r"ls-files|-[zmoc]+|--(?:others|exclude-standard|modified|cached)"),
}
"""By program: the arguments with which it lists files and prints nothing else."""
_FILTERS = {
    "grep": re.compile(r"-[viEFzxw]+|[^-].*", re.DOTALL),
    "sort": re.compile(r"-[urnz]+"),
    "uniq": re.compile(r"-[z]"),
    "head": re.compile(r"-n?\d+"),
    "tail": re.compile(r"-n?\d+"),
}
"""By program: the arguments with which it passes on some of the lines it is given."""
_OWN = re.compile(r"-[0rt]+|-[nPL]\d+|--null|--no-run-if-empty|-I\S+")
_OWN_VALUED = {"-n", "-P", "-L", "-I"}


def is_name_reader(argument: Argument) -> bool:
    """Whether a program only reads the files it is given, whatever their names are."""
    words = load_tables().words
    known = argument.known and not argument.glob
    return known and argument.text in {*words.read, *words.look, *_TAKERS} - {"cd", "pushd"}


def drop_harmless_execs(arguments: Arguments, places: PathContext) -> Arguments:
    """Return the arguments of a find without each `-exec` whose command takes names."""
    left: list[Argument] = []
    rest = list(arguments)
    while rest:
        one = rest.pop(0)
        given = [*takewhile(lambda each: each.text not in {";", "+"}, rest)]
        if (
            one.text != "-exec"
            or len(given) == len(rest)
            or not given
            or not is_name_reader(given[0])
        ):
            left.append(one)
        else:
            del rest[: len(given) + 1]
    return arguments if _has_sensitive_names(arguments, places) else tuple(left)


def is_harmless_xargs(use: Invocation) -> bool:
    """Whether an xargs does no more than to hand listed names to a command that takes them."""
    rest = list(use.arguments)
    while rest and rest[0].known and rest[0].text[:1] == "-":
        own = rest.pop(0).text
        if own in _OWN_VALUED and rest:
            rest.pop(0)
        elif not _OWN.fullmatch(own):
            return False
    return bool(rest) and is_name_reader(rest[0]) and is_listing_files(use)


def is_listing_files(use: Invocation) -> bool:
    """Whether what stands before a command lists files and nothing else."""
    if not use.before or any(one.read or one.given for one in (use, *use.before)):
        return False
    first, *others = use.before
    if not _is_allowed_use(first, _LISTERS) or _has_sensitive_names(first.arguments, first.places):
        return False
    if first.name == "git" and [one.text for one in first.arguments[:1]] != ["ls-files"]:
        return False
    return all(
        _is_allowed_use(one, _FILTERS) and len(list_operands(one.arguments)) == (one.name == "grep")
        for one in others
    )


def _is_allowed_use(use: Invocation, table_of: dict[str, re.Pattern[str]]) -> bool:
    pattern = table_of.get(use.name)
    return pattern is not None and all(
        one.known and pattern.fullmatch(one.text) for one in use.arguments
    )


def _has_sensitive_names(arguments: Arguments, places: PathContext) -> bool:
    """Whether names that often hold credentials are asked for."""
    return any(places.is_sensitive(one._replace(glob=True)) for one in arguments if one.text)
