"""What builtins, assignments and redirections do to the commands after them; pure but `remember`.

Only `remember` changes a value: the state it is given.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from .expansion import Argument
from .level import Level
from .matching import any_option, operands, value_of
from .places import Places, absolute
from .quoting import ansi_c
from .tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .expansion import Arguments, State
    from .use import Use

DECLARE = {"declare", "export", "local", "readonly", "typeset"}
"""Builtins whose assignments stay."""
SETTERS = {"set", "unset", "read", "mapfile", "readarray", *DECLARE}
"""Builtins that may do no more than to set variables or options of the shell."""

_OPTION = re.compile(r"[-+][A-Za-z]+|--?|[A-Za-z_]\w*")
_SET = re.compile(
    r"[-+][euxfvEoC]+|errexit|nounset|pipefail|xtrace|verbose|noglob|noclobber|errtrace"
)
"""What `set` may be told: options that only stop a script earlier, or show what it does."""
_MOST_READ = 4  # so many of the lines and words a name may read are looked at
_WIDE = re.compile(r"(?:^|\s)[/~.*-]")
"""What is read matters where it names a place or is an option."""
_HISTORY = {"HISTFILE": {"", "/dev/null"}, "HISTSIZE": {"0"}, "HISTFILESIZE": {"0"}}


def assigned(name: str, values: Iterable[str | None]) -> tuple[Level, str]:
    """Return how dangerous it is to give a variable these values, and why."""
    if any(value in _HISTORY.get(name, ()) for value in values):
        return Level.DANGEROUS, "switches the history of commands off"
    if harmless(name):
        return Level.SAFE, ""
    return Level.ASK, f"sets {name}, which other programs may obey"


def redirected(operator: str, target: Argument, places: Places) -> tuple[Level, str]:
    """Return how dangerous a redirection is, and why."""
    text = target.text
    if text.startswith(("/dev/tcp/", "/dev/udp/")):
        return Level.DANGEROUS, "opens a connection to another machine"
    if ">" not in operator:
        if places.secret(target):
            return Level.DANGEROUS, "reads a private key or password"
        readable = places.readable(target) and not places.sensitive(target)
        harmless = target.known and text.startswith("/dev/") and not places.protected(target)
        return (Level.SAFE if readable or harmless else Level.ASK), "reads a file elsewhere"
    if places.protected(target):
        return Level.DANGEROUS, "writes to the system, a device, or what decides who may log in"
    descriptor = "&" in operator and re.fullmatch(r"\d+|-", text)
    harmless = text.startswith("/dev/") and text != "/dev/tty"
    if target.known and (descriptor or harmless):
        return Level.SAFE, ""
    return Level.ASK, "writes to a file"


def harmless(name: str) -> bool:
    """Whether a variable changes nothing about how programs are found and run."""
    return any(fnmatchcase(name, one) for one in table().words.harmless_variables)


def only_sets(name: str, arguments: Arguments) -> bool:
    """Whether a builtin does no more than to set variables or options of the shell."""
    allowed = _SET if name == "set" else _OPTION
    if not all(one.known and allowed.fullmatch(one.text) for one in arguments):
        return False
    if name == "set":  # alone, or with a bare -o, it prints every variable or option
        return arguments[-1:] != () and arguments[-1].text[-1:] != "o"
    names = operands(arguments)
    return all(harmless(one.text) for one in names) and bool(names)


def printed(use: Use) -> Iterator[str]:
    """Yield what a command is known to print."""
    if use.name in {"echo", "printf"}:
        given = [one.text for one in operands(use.arguments)]
        texts = [" ".join(given)]
        if use.name == "printf" and len(given) > 1:
            texts.append(" ".join(given[1:]))
        yield from texts
        yield from (ansi_c(one) for one in texts if "\\" in one)
    elif use.name == "cat" and not operands(use.arguments):
        yield from use.given


def line(use: Use) -> str | None:
    """Return what `echo` or `printf` prints, None where it is not known."""
    given = operands(use.arguments)
    formats = use.name == "printf" and any("%" in one.text for one in given[:1])
    if any(not one.known or one.glob for one in use.arguments):
        return None
    whole = " ".join(one.text for one in given[1 if formats else 0 :])
    escapes = use.name == "printf" or any_option(use.arguments, ["-e"])
    return ansi_c(whole) if escapes else whole


def appended(use: Use) -> Arguments:
    """Return what xargs adds to its command."""
    printed_texts = [text for one in (*use.before, *use.inside) for text in printed(one)]
    known_texts = (*printed_texts, *use.given)
    known = tuple(Argument(word) for text in known_texts for word in text.split())
    return (*known, Argument("", known=False))


def remember(
    arguments: Arguments, state: State, fed: tuple[str, ...] = (), *, certain: bool
) -> None:
    """Keep in the state what a builtin changes about the commands after it.

    `fed` are the texts it may read from standard input, as far as they are known.
    """
    name = arguments[0].text
    given = operands(arguments[1:])
    if name in {"cd", "pushd"} and arguments[0].known:
        where = given[0] if given else Argument("")
        if where.known and where.text != "-":
            new = tuple(absolute(where.text, folder, state.home) for folder in state.folders)
        else:
            new = (None, state.home)
        if not certain and ".." in where.text:
            new = (*new, None)  # a loop may climb any number of times
        sure = certain and where.known
        state.folders = tuple(dict.fromkeys(new if sure else (*new, *state.folders)))
    elif name == "popd":
        state.folders = (None, *state.folders)
    elif name == "printf" and (variable := value_of(arguments[1:], "-v")) is not None:
        text = " ".join(one.text for one in given if one != variable)
        state.variables[variable.text] = (text, None)
    elif name in {"read", "mapfile", "readarray", "getopts", "unset"}:
        known = (one for text in fed for one in (*text.split("\n"), *text.split()))
        wide = tuple(one for one in dict.fromkeys(known) if _WIDE.search(one))
        state.variables |= {one.text: (*wide[:_MOST_READ], None) for one in given}
