"""Command lines that are read before click is loaded: for commands that must start fast.

Invariant: what is read here click would read the same way; everything else gives None, and click
reads it, and reports what is wrong with it.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

STORE_OPTION = "--store"
_COUNT_PATTERN = r"[1-9][0-9]{0,9}\Z"


def split_command(arguments: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the command and its arguments; --store before the command becomes the first of these.

    None where another option stands before the command, or where there is none.
    """
    first = 0
    while first < len(arguments) and arguments[first].startswith("-"):
        if arguments[first] == STORE_OPTION:
            first += 2
        elif arguments[first].startswith(f"{STORE_OPTION}="):
            first += 1
        else:
            return None
    if first >= len(arguments):
        return None
    return arguments[first], [*arguments[:first], *arguments[first + 1 :]]


def parse_plain_arguments(
    arguments: Sequence[str], flags: Collection[str], named: Mapping[str, str]
) -> tuple[list[str], list[tuple[str, str]]] | None:
    """Return the words, and the options as (name, value), in order; a flag's value is "".

    `named` maps each option that takes a value to its name. None where click has to read them:
    another option, a value that is missing or begins with `-`, or a `limit` that is no count.
    """
    words, options = list[str](), list[tuple[str, str]]()
    rest = iter(arguments)
    for argument in rest:
        option, equals, value = argument.partition("=")
        if not argument.startswith("-"):
            words.append(argument)
        elif argument in flags:
            options.append((argument.lstrip("-"), ""))
        elif option in named and (not equals or option.startswith("--")):
            value = value if equals else next(rest, "")
            name = named[option]
            if not value or value.startswith("-"):
                return None
            if name == "limit" and not re.match(_COUNT_PATTERN, value):
                return None
            options.append((name, value))
        else:
            return None
    return words, options
