"""Uses of dangerous programs that are limited to plain files or paths of the workspace; pure.

What is not known to be limited is not: an expansion, a wildcard, an option whose value may be a
device.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .expansion import Argument

if TYPE_CHECKING:
    from .expansion import Arguments
    from .places import PathContext

_DEVICE = re.compile(r"/dev\b|(?:UUID|LABEL|PARTUUID|PARTLABEL|ID)=", re.IGNORECASE)
_ELSEWHERE = re.compile(r"-C|--work-tree|--git-dir|--super-prefix|--namespace")
_SUBCOMMAND_WORD = re.compile(r"[a-z][a-z-]+")
_HELP = {"--help", "--version"}


def is_limited_to_files(arguments: Arguments, places: PathContext) -> bool:
    """Whether all that is written are plain files below the folders that may be read.

    Of `dd` only what `of=` names is written; of others each operand may be.
    """
    if any(_DEVICE.search(one.text) for one in arguments if not one.text.startswith("if=")):
        return False
    outputs = [one._replace(text=one.text[3:]) for one in arguments if one.text[:3] == "of="]
    operands = [one for one in arguments if one.text[:1] != "-" and "=" not in one.text]
    named = outputs or operands
    return (
        bool(named)
        and all(one.known for one in arguments)
        and all(_is_plain_file(one, places) for one in named)
    )


def _is_plain_file(argument: Argument, places: PathContext) -> bool:
    return (
        bool(argument.text)
        and not argument.glob
        and places.is_readable(argument)
        and not (
            places.is_protected(argument) or places.is_vital(argument) or places.is_device(argument)
        )
        and not argument.text.startswith("/dev")
    )


def is_limited_to_paths(arguments: Arguments, places: PathContext) -> bool:
    """Whether a `git clean` is limited to known paths, none of which is the whole workspace.

    `arguments` are those after `git`.
    """
    if any(_ELSEWHERE.match(one.text) or not one.known for one in arguments):
        return False
    start = next((i for i, one in enumerate(arguments) if one.text == "clean"), None)
    if start is None:
        return False
    found: list[Argument] = []
    left = list(arguments[start + 1 :])
    while left:
        one = left.pop(0)
        if one.text == "--":
            found += left
            break
        if one.text[:1] != "-":
            found.append(one)
        elif one.text in {"--exclude", "--exclud", "--exclu", "--excl", "--exc", "--ex", "--e"} or (
            one.text[:2] != "--" and one.text[-1:] == "e"
        ):
            del left[:1]  # a pattern that is left alone
    return bool(found) and all(_is_workspace_path(one, places) for one in found)


def _is_workspace_path(argument: Argument, places: PathContext) -> bool:
    """Whether a pathspec names a part of the workspace; git itself knows wildcards, too."""
    return (
        bool(argument.text)
        and argument.text[:1] != ":"
        and places.is_readable(argument)
        and not places.is_vital(argument._replace(glob=True))
    )


def is_help_request(arguments: Arguments, words: int) -> bool:
    """Whether a program is only asked for its help or version, after at most so many words."""
    *before, last = arguments or (Argument(""),)
    plain = all(one.known and _SUBCOMMAND_WORD.fullmatch(one.text) for one in before)
    return last.known and last.text in _HELP and plain and len(before) <= words
