"""Session files of pi: JSON lines, a header and then entries that form a tree; pure.

Read leniently, as pi does: a line that is not an object is left out and counted, a file without a
header is none. Older files are brought to version 3 in the order below; versions 2 and 3 keep their
ids.

    version 1   a plain list: every entry gets an id and the one before it as its parent;
                `firstKeptEntryIndex`, which counts the header, becomes `firstKeptEntryId`
    version 2   a tree; messages of the role `hookMessage` become `custom`
    version 3   as pi writes it now

Source: docs/session.md and the tests of pi-mono's coding agent (MIT).
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ...errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PiEntry = dict[str, Any]
"""An entry as its line has it."""

VERSION = 3
_ID_DIGITS = 8


class PiSession(NamedTuple):
    """A session file in the form of version 3."""

    header: PiEntry
    entries: list[PiEntry]
    skipped: int
    """Number of lines that are no entries."""
    version: int
    """Version of the file as it was written."""
    repeated: int = 0
    """Number of lines with the id of an earlier one, which are left out."""


def parse_pi_session(data: bytes) -> PiSession:
    """Return the session in a file, as version 3; raise UsageError if it is none."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    objects = [_decode_object(line) for line in lines]
    header = _read_header(objects[0]) if objects else None
    if header is None:
        raise UsageError(
            "this is not a session of pi: its first line is not "
            '{"type":"session","id":…}; nothing was imported'
        )
    version = header.get("version")
    known = version if isinstance(version, int) else 1
    if known > VERSION:
        raise UsageError(
            f"this session of pi has version {known}, and this program knows {VERSION}: "
            "nothing was imported"
        )
    entries = [
        entry for entry in objects[1:] if entry is not None and isinstance(entry.get("type"), str)
    ]
    skipped = len(lines) - 1 - len(entries)
    migrated = migrate_entries(entries, known)
    first: dict[Any, PiEntry] = {}
    for number, entry in enumerate(migrated):
        identity = entry.get("id")
        first.setdefault(identity if isinstance(identity, str) else number, entry)
    repeated = len(migrated) - len(first)
    return PiSession({**header, "version": VERSION}, [*first.values()], skipped, known, repeated)


def migrate_entries(entries: Sequence[PiEntry], version: int) -> list[PiEntry]:
    """Return the entries of a session (without its header) in the form of version 3."""
    migrated = [dict(entry) for entry in entries]
    if version < 2:  # noqa: PLR2004 (a version)
        _add_ids(migrated)
    if version < VERSION:
        for entry in migrated:
            message = entry.get("message")
            if isinstance(message, dict) and message.get("role") == "hookMessage":
                entry["message"] = {**message, "role": "custom"}
    return migrated


def _add_ids(entries: list[PiEntry]) -> None:
    """Make a chain of a plain list. Ids come from what stands before, so they are stable."""
    seen = sha256()
    parent: str | None = None
    for entry in entries:
        seen.update(msgspec.json.encode(entry))
        entry["id"] = seen.hexdigest()[:_ID_DIGITS]
        entry["parentId"] = parent
        parent = entry["id"]
    for entry in entries:
        if entry.get("type") == "compaction":
            index = entry.pop("firstKeptEntryIndex", None)
            if isinstance(index, int) and 0 < index <= len(entries):
                entry["firstKeptEntryId"] = entries[index - 1]["id"]  # 0 is the header


class PiBranch(NamedTuple):
    """The entries that one branch adds."""

    base: str | None
    """Id of the entry it continues; None for the beginning of the session."""
    entries: list[PiEntry]


def split_branches(entries: Iterable[PiEntry]) -> list[PiBranch]:
    """Return the branches: the way to the newest entry, then what others add, in file order.

    An entry whose parent is not in the file begins at the beginning, as in pi; one with an id that
    came before is left out.

        1─2─4      file order 1 2 3 4   →   [None: 1 2 4], [2: 3]
          └3
    """
    by_id: dict[str, PiEntry] = {}
    for entry in entries:
        by_id.setdefault(str(entry.get("id")), entry)
    leaves = dict.fromkeys(by_id)
    for entry in by_id.values():
        leaves.pop(str(entry.get("parentId")), None)
    newest = next(reversed(by_id), None)
    ends = [] if newest is None else [newest, *(leaf for leaf in leaves if leaf != newest)]
    owners: dict[str, int] = {}
    branches: list[PiBranch] = []
    for number, end in enumerate((*ends, *by_id)):  # the rest are entries in a ring
        run: list[PiEntry] = []
        at = end
        while at in by_id and at not in owners:
            owners[at] = number
            run.append(by_id[at])
            at = str(by_id[at].get("parentId"))
        if run:
            branches.append(PiBranch(at if owners.get(at, number) != number else None, run[::-1]))
    return branches


def _decode_object(line: bytes) -> PiEntry | None:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read_header(value: PiEntry | None) -> PiEntry | None:
    if value is None or value.get("type") != "session" or not isinstance(value.get("id"), str):
        return None
    return value
