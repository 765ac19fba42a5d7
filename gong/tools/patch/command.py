"""A patch inside a command: what models send to a shell when they mean the tool (pure).

Only a command that does nothing else is taken for a patch; anything more stays with the shell.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from .hunks import Invalid
from .parse import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("apply_patch", "applypatch")
IMPLICIT = (
    'patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]'
)
_SHELLS = {"bash", "sh", "zsh"}
_RUN = {"-c", "-lc"}
_FIRST_LINE = re.compile(
    r"""
    \s* (?: cd \s+ (?: '(?P<single>[^'\n]+)' | "(?P<double>[^"$`\\\n]+)"
                     | (?P<word>[^\s'"$`\\;&|<>()*?\[\]{}~\#!-][^\s'"$`\\;&|<>()*?\[\]{}!]*) )
        \s* && \s* )?
    (?: apply_patch | applypatch ) \s* << \s* (?P<quote>['"]?) (?P<end>\w+) (?P=quote) [ \t\r]*
    """,
    re.VERBOSE,
)


class Invocation(NamedTuple):
    """A patch that a command hands to apply_patch."""

    patch: str
    folder: str | None
    """The folder it names first, with `cd`."""


def patch_of_command(command: str | Sequence[str]) -> Invocation | Invalid | None:
    """Return the patch that a script or an argv is, None when it is something else.

    A patch that nobody is asked to apply is Invalid, with what to say instead.
    """
    if not isinstance(command, str):
        match list(command):
            case [name, patch] if name in NAMES:
                return Invocation(patch, None)
            case [shell, flag, script] if PurePosixPath(shell).name in _SHELLS and flag in _RUN:
                return _of_script(script)
            case [script]:
                return _of_script(script)
            case _:
                return None
    return _of_script(command)


def _of_script(script: str) -> Invocation | Invalid | None:
    first, _, rest = script.lstrip().partition("\n")
    called = _FIRST_LINE.fullmatch(first)
    if called is None:
        is_patch = not isinstance(parse(script), Invalid)
        return Invalid(IMPLICIT) if is_patch else None
    lines = rest.split("\n")
    ends = [number for number, line in enumerate(lines) if line.rstrip("\r") == called["end"]]
    if not ends or any(line.strip() for line in lines[ends[0] + 1 :]):
        return None
    folder = called["single"] or called["double"] or called["word"]
    return Invocation("\n".join(lines[: ends[0]]), folder)
