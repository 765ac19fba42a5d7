"""Torn tails: bytes after the last whole line, and whether they are being written now."""

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
    """Return the finding about the bytes `start` to `end`: torn, unless `lock` is held."""
    if is_held(tape, lock):
        message = f"{end - start} bytes of a line that is being written"
        return Finding("note", Kind.WRITING, file, line, start, message, ())
    message = f"{end - start} bytes of an incomplete line; the next append puts them in quarantine"
    return Finding("torn", Kind.TORN, file, line, start, message, on)


def unrecorded(
    tape: Folder, branches: Mapping[str, str], recorded: Collection[str | None]
) -> Iterator[Finding]:
    """Yield findings for tails in quarantine without an entry; `branches` maps phase to branch."""
    for name in kept(tape):
        branch = branches.get(kept_phase(name))
        if branch is None or name in recorded or is_held(tape, branch):
            continue
        yield note(Kind.UNRECORDED, f"quarantine/{name}", "a torn tail that no repair entry names")


def kept(tape: Folder) -> list[str]:
    """Return the file names in quarantine."""
    try:
        with tape.sub("quarantine") as quarantine:
            return quarantine.names()
    except (FileNotFoundError, NotADirectoryError):
        return []


def kept_phase(kept: str) -> str:
    """Return the phase whose tail has this name in quarantine; "" for other files."""
    named = _KEPT.match(kept)
    return named[1] if named else ""
