"""What a program does by itself, apart from what it runs: whether it only reads; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .matching import is_only_reading
from .tables import has_reading_subcommands, load_tables
from .variables import SETTING_BUILTINS, is_only_setting
from .wrappers import drop_harmless_execs, is_harmless_xargs

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...shell.expansion import Argument
    from .finding import CommandFinding
    from .invocation import Invocation

_SYSTEM_FOLDERS = {
    "", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin",
}  # fmt: skip
_BLANK = re.compile(r"\s")


def is_only_reading_program(first: Argument, use: Invocation, functions: Collection[str]) -> bool:
    """Whether a program changes nothing, and is the one that its name promises."""
    folder, _, name = first.text.rpartition("/")
    decided = first.known and not first.glob
    if not decided or folder not in _SYSTEM_FOLDERS or name in functions:
        return False
    if (first.text.startswith("/") and not folder) or _BLANK.search(name):
        return False  # `'git status'` is no git: its name has a blank
    arguments = use.arguments
    if name in SETTING_BUILTINS and is_only_setting(name, arguments, use.places.exported):
        return True
    if name == "xargs":
        return is_harmless_xargs(use)
    if name == "find":
        arguments = drop_harmless_execs(arguments, use.places)
    return is_only_reading(name, arguments, use.places)


def is_only_handing_on(use: Invocation, inner: tuple[CommandFinding, ...]) -> bool:
    """Whether a program does nothing but to run others, which are judged on their own."""
    if not inner or use.name != "find":
        return bool(inner) and use.name == "xargs"
    own, rest = [], iter(use.arguments)
    for argument in rest:
        if argument.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            any(after.text in {";", "+"} for after in rest)  # up to the end of the command
        else:
            own.append(argument)
    return is_only_reading("find", tuple(own), use.places)


def explain_unknown_program(use: Invocation) -> str:
    """Return why a program that is not known to only read is asked about."""
    if not use.name:
        return "the program depends on an expansion"
    if use.name in load_tables().words.interactive:
        return f"{use.name} waits for keys: use a command that prints and ends, such as cat"
    if load_tables().find_reader(use.name) or has_reading_subcommands(use.name):
        return f"{use.name} with these arguments may change something, or read elsewhere"
    return f"{use.name} is not one of the commands that only read"
