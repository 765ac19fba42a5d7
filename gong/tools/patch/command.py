"""A patch inside a command: what models send to a shell when they mean the tool (pure).

Only a command that does nothing else is taken for a patch; anything more stays with the shell.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from .hunks import InvalidPatch
from .parse import parse_patch

if TYPE_CHECKING:
    from collections.abc import Sequence

PATCH_COMMAND_NAMES = ("apply_patch", "applypatch")
IMPLICIT_PATCH_TEXT = (
    'patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]'
)
_SHELLS = {"bash", "sh", "zsh"}
_SHELL_RUN_FLAGS = {"-c", "-lc"}
_FIRST_LINE = re.compile(
    r"""
    \s* (?: cd \s+ (?: '(?P<single>[^'\n]+)' | "(?P<double>[^"$`\\\n]+)"
                     | (?P<word>[^\s'"$`\\;&|<>()*?\[\]{}~\#!-][^\s'"$`\\;&|<>()*?\[\]{}!]*) )
        \s* && \s* )?
    (?: apply_patch | applypatch ) \s* << \s* (?P<quote>['"]?) (?P<end>\w+) (?P=quote) [ \t\r]*
    """,
    re.VERBOSE,
)


class PatchCommand(NamedTuple):
    """A patch that a command hands to apply_patch."""

    patch: str
    folder: str | None
    """The folder it names first, with `cd`."""


def find_patch_in_command(command: str | Sequence[str]) -> PatchCommand | InvalidPatch | None:
    """Return the patch that a script or an argv is, None when it is something else.

    A patch that nobody is asked to apply is Invalid, with what to say instead.
    """
    if not isinstance(command, str):
        match list(command):
            case [name, patch] if name in PATCH_COMMAND_NAMES:
                return PatchCommand(patch, None)
            case [shell, flag, script] if (
                PurePosixPath(shell).name in _SHELLS and flag in _SHELL_RUN_FLAGS
            ):
                return _find_patch_in_script(script)
            case [script]:
                return _find_patch_in_script(script)
            case _:
                return None
    return _find_patch_in_script(command)


def _find_patch_in_script(script: str) -> PatchCommand | InvalidPatch | None:
    first, _, rest = script.lstrip().partition("\n")
    called = _FIRST_LINE.fullmatch(first)
    if called is None:
        is_patch = not isinstance(parse_patch(script), InvalidPatch)
        return InvalidPatch(IMPLICIT_PATCH_TEXT) if is_patch else None
    lines = rest.split("\n")
    ends = [number for number, line in enumerate(lines) if line.rstrip("\r") == called["end"]]
    if not ends or any(line.strip() for line in lines[ends[0] + 1 :]):
        return None
    folder = called["single"] or called["double"] or called["word"]
    return PatchCommand("\n".join(lines[: ends[0]]), folder)
