"""Torn tails: what stands behind the last whole line, and whether somebody is writing it now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..locks import is_held
from .finding import Finding, Kind, note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ..disk import Folder

_KEPT = re.compile(r"(.+?)\.[0-9]+(?:\.[0-9]+)*\Z")


def tail(
    tape: Folder, file: str, lock: str, start: int, end: int, line: int, on: tuple[str, ...]
) -> Finding:
    """Return what is to be said of the bytes `start` to `end`: torn, unless `lock` is held."""
    if is_held(tape, lock):
        message = f"{end - start} bytes of a line that is being written"
        return Finding("note", Kind.WRITING, file, line, start, message, ())
    message = f"{end - start} bytes of an incomplete line; the next append puts them in quarantine"
    return Finding("torn", Kind.TORN, file, line, start, message, on)


def unrecorded(
    tape: Folder, branches: Mapping[str, str], recorded: Collection[str | None]
) -> Iterator[Finding]:
    """Name the tails in quarantine that no entry tells of; `branches` is that of each phase."""
    for name in kept(tape):
        branch = branches.get(kept_phase(name))
        if branch is None or name in recorded or is_held(tape, branch):
            continue
        yield note(Kind.UNRECORDED, f"quarantine/{name}", "a torn tail that no repair entry names")


def kept(tape: Folder) -> list[str]:
    """Return the names in quarantine."""
    try:
        with tape.sub("quarantine") as quarantine:
            return quarantine.names()
    except (FileNotFoundError, NotADirectoryError):
        return []


def kept_phase(kept: str) -> str:
    """Return the phase whose tail stands in quarantine under this name; empty for other things."""
    named = _KEPT.match(kept)
    return named[1] if named else ""
