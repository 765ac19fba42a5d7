"""Torn tails: bytes after the last whole line, and whether they are being written now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..locks import is_lock_held
from .finding import Finding, FindingKind, build_note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ..disk import Folder

_KEPT_NAME = re.compile(r"(.+?)\.[0-9]+(?:\.[0-9]+)*\Z")


def describe_tail(
    tape: Folder, file: str, lock: str, start: int, end: int, line: int, on: tuple[str, ...]
) -> Finding:
    """Return the finding about the bytes `start` to `end`: torn, unless `lock` is held."""
    if is_lock_held(tape, lock):
        message = f"{end - start} bytes of a line that is being written"
        return Finding("note", FindingKind.WRITING, file, line, start, message, ())
    message = f"{end - start} bytes of an incomplete line; the next append puts them in quarantine"
    return Finding("torn", FindingKind.TORN, file, line, start, message, on)


def find_unrecorded_tails(
    tape: Folder, branches: Mapping[str, str], recorded: Collection[str | None]
) -> Iterator[Finding]:
    """Yield findings for tails in quarantine without an entry; `branches` maps phase to branch."""
    for name in list_quarantine(tape):
        branch = branches.get(parse_kept_phase(name))
        if branch is None or name in recorded or is_lock_held(tape, branch):
            continue
        yield build_note(
            FindingKind.UNRECORDED, f"quarantine/{name}", "a torn tail that no repair entry names"
        )


def list_quarantine(tape: Folder) -> list[str]:
    """Return the file names in quarantine."""
    try:
        with tape.sub("quarantine") as quarantine:
            return quarantine.names()
    except (FileNotFoundError, NotADirectoryError):
        return []


def parse_kept_phase(kept: str) -> str:
    """Return the phase whose tail has this name in quarantine; "" for other files."""
    named = _KEPT_NAME.match(kept)
    return named[1] if named else ""
