"""What builtins, assignments and redirections do to the commands after them; pure but `remember`.

Only `remember` changes a value: the state it is given.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from .expansion import Argument
from .level import DangerLevel
from .matching import find_option_value, has_any_option, list_operands
from .places import PathContext, resolve_cd_target
from .quoting import decode_ansi_c
from .tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .expansion import Arguments, ShellState
    from .use import Invocation

DECLARING_BUILTINS = {"declare", "export", "local", "readonly", "typeset"}
"""Builtins whose assignments stay."""
SETTING_BUILTINS = {"set", "unset", "read", "mapfile", "readarray", *DECLARING_BUILTINS}
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


def judge_assignment(name: str, values: Iterable[str | None]) -> tuple[DangerLevel, str]:
    """Return how dangerous it is to give a variable these values, and why."""
    if any(value in _HISTORY.get(name, ()) for value in values):
        return DangerLevel.DANGEROUS, "switches the history of commands off"
    if is_harmless_variable(name):
        return DangerLevel.SAFE, ""
    return DangerLevel.ASK, f"sets {name}, which other programs may obey"


def judge_redirection(
    operator: str, target: Argument, places: PathContext
) -> tuple[DangerLevel, str]:
    """Return how dangerous a redirection is, and why."""
    text = target.text
    if text.startswith(("/dev/tcp/", "/dev/udp/")):
        return DangerLevel.DANGEROUS, "opens a connection to another machine"
    if ">" not in operator:
        if places.is_secret(target):
            return DangerLevel.DANGEROUS, "reads a private key or password"
        readable = places.is_readable(target) and not places.is_sensitive(target)
        harmless = target.known and text.startswith("/dev/") and not places.is_protected(target)
        return (
            DangerLevel.SAFE if readable or harmless else DangerLevel.ASK
        ), "reads a file elsewhere"
    if places.is_protected(target):
        return (
            DangerLevel.DANGEROUS,
            "writes to the system, a device, or what decides who may log in",
        )
    descriptor = "&" in operator and re.fullmatch(r"\d+|-", text)
    harmless = text.startswith("/dev/") and text != "/dev/tty"
    if target.known and (descriptor or harmless):
        return DangerLevel.SAFE, ""
    return DangerLevel.ASK, "writes to a file"


def is_harmless_variable(name: str) -> bool:
    """Whether a variable changes nothing about how programs are found and run."""
    return any(fnmatchcase(name, one) for one in load_tables().words.harmless_variables)


def is_only_setting(name: str, arguments: Arguments) -> bool:
    """Whether a builtin does no more than to set variables or options of the shell."""
    allowed = _SET if name == "set" else _OPTION
    if not all(one.known and allowed.fullmatch(one.text) for one in arguments):
        return False
    if name == "set":  # alone, or with a bare -o, it prints every variable or option
        return arguments[-1:] != () and arguments[-1].text[-1:] != "o"
    names = list_operands(arguments)
    return all(is_harmless_variable(one.text) for one in names) and bool(names)


def list_printed_texts(use: Invocation) -> Iterator[str]:
    """Yield what a command is known to print."""
    if use.name in {"echo", "printf"}:
        given = [one.text for one in list_operands(use.arguments)]
        texts = [" ".join(given)]
        if use.name == "printf" and len(given) > 1:
            texts.append(" ".join(given[1:]))
        yield from texts
        yield from (decode_ansi_c(one) for one in texts if "\\" in one)
    elif use.name == "cat" and not list_operands(use.arguments):
        yield from use.given


def find_printed_line(use: Invocation) -> str | None:
    """Return what `echo` or `printf` prints, None where it is not known."""
    given = list_operands(use.arguments)
    formats = use.name == "printf" and any("%" in one.text for one in given[:1])
    if any(not one.known or one.glob for one in use.arguments):
        return None
    whole = " ".join(one.text for one in given[1 if formats else 0 :])
    escapes = use.name == "printf" or has_any_option(use.arguments, ["-e"])
    return decode_ansi_c(whole) if escapes else whole


def list_xargs_arguments(use: Invocation) -> Arguments:
    """Return what xargs adds to its command."""
    printed_texts = [text for one in (*use.before, *use.inside) for text in list_printed_texts(one)]
    known_texts = (*printed_texts, *use.given)
    known = tuple(Argument(word) for text in known_texts for word in text.split())
    return (*known, Argument("", known=False))


def apply_builtin(
    arguments: Arguments, state: ShellState, fed: tuple[str, ...] = (), *, certain: bool
) -> None:
    """Keep in the state what a builtin changes about the commands after it.

    `fed` are the texts it may read from standard input, as far as they are known.
    """
    name = arguments[0].text
    given = list_operands(arguments[1:])
    if name in {"cd", "pushd"} and arguments[0].known:
        where = given[0] if given else Argument("")
        if where.known and where.text != "-":
            new = tuple(
                resolve_cd_target(where.text, folder, state.home) for folder in state.folders
            )
        else:
            new = (None, state.home)
        if not certain and ".." in where.text:
            new = (*new, None)  # a loop may climb any number of times
        sure = certain and where.known
        state.folders = tuple(dict.fromkeys(new if sure else (*new, *state.folders)))
    elif name == "popd":
        state.folders = (None, *state.folders)
    elif name == "printf" and (variable := find_option_value(arguments[1:], "-v")) is not None:
        text = " ".join(one.text for one in given if one != variable)
        state.variables[variable.text] = (text, None)
    elif name in {"read", "mapfile", "readarray", "getopts", "unset"}:
        known = (one for text in fed for one in (*text.split("\n"), *text.split()))
        wide = tuple(one for one in dict.fromkeys(known) if _WIDE.search(one))
        state.variables |= {one.text: (*wide[:_MOST_READ], None) for one in given}
