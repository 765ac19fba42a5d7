"""Who took, held, redacted, exported or saw what: events that a remote keeps and never changes.

In PostgreSQL they are rows of `tape.audit`, elsewhere objects `audit/<time in µs>-<8 hex digits>`.
What is done at a remote is recorded there before it is done. An export, and what people do in
pages, needs no network: it waits in the file of the cursor of each remote that has the tape, and
the next push brings it. An event may be there twice where its push was killed. What people do in
pages with a tape that no remote has is a line of `audit.jsonl` in the store.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import msgspec

from ..clock import format_timestamp, parse_timestamp
from ..errors import Damaged, UsageError, WriteFailed
from ..model.line import JSON_ERRORS
from . import REGISTRY_NAME
from .cursor import EVENTS_TABLE, is_at_remote, locate_cursor
from .objects import AuditEvent
from .registry import find_catalogue, read_registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .objects import AuditedAct
    from .remote import Remote

LOCAL_NAME = "audit.jsonl"
"""The file in a store with the events of tapes that no remote has."""
_PREFIX = "audit/"
_WAIT_SECONDS = 2.0


def record_event(remote: Remote, event: AuditEvent) -> None:
    """Add an event to those of a remote."""
    catalogue = find_catalogue(remote)
    if catalogue is not None:
        with suppress(UsageError):  # no right to that table: then it is an object
            catalogue.record_event(event)
            return
    stem = f"{_PREFIX}{parse_timestamp(event.time):016d}"
    while not remote.create(f"{stem}-{os.urandom(4).hex()}", msgspec.json.encode(event)):
        pass


def read_events(remote: Remote, since: str = "") -> list[AuditEvent]:
    """Return the events of a remote since a time, oldest first; raise Damaged."""
    after = f"{_PREFIX}{parse_timestamp(since):016d}" if since else ""
    keys = [listed.key for listed in remote.list(_PREFIX, after)]
    events: list[AuditEvent] = []
    for key, data in zip(keys, remote.read_many(keys), strict=True):
        try:
            events.append(msgspec.json.decode(data or b"", type=AuditEvent))
        except JSON_ERRORS as error:
            raise Damaged(f"{key} cannot be read: {error}", file=key) from error
    catalogue = find_catalogue(remote)
    if catalogue is not None:
        events += msgspec.convert(catalogue.read_events(since), list[AuditEvent])
    return sorted(events, key=lambda event: event.time)


def note_export(store: Path, tape: str, now: int, person: str, machine: str, why: str) -> None:
    """Record that a tape was exported, for each remote of the store in a folder that has it."""
    event = AuditEvent("export", tape, format_timestamp(now), person, machine, why)
    _add_waiting_events(store, event)


def note_served_act(
    store: Path, did: AuditedAct, tape: str, now: int, person: str, why: str = ""
) -> None:
    """Record what somebody did with a tape in a page: here, or for each remote that has it.

    Raises WriteFailed.
    """
    event = AuditEvent(did, tape, format_timestamp(now), person, why=why)
    if _add_waiting_events(store, event):
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(store / LOCAL_NAME, flags, 0o600)
        with open(fd, "ab", buffering=0) as file:
            file.write(msgspec.json.encode(event) + b"\n")
    except OSError as error:
        raise WriteFailed(f"{LOCAL_NAME} cannot be written: {error.strerror}") from error


def read_local_events(store: Path, since: str = "") -> list[AuditEvent]:
    """Return the events of tapes that no remote has, oldest first; raise Damaged."""
    try:
        lines = (store / LOCAL_NAME).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    events: list[AuditEvent] = []
    for number, line in enumerate(filter(None, lines), 1):
        try:
            events.append(msgspec.json.decode(line, type=AuditEvent))
        except JSON_ERRORS as error:
            raise Damaged(f"line {number} of {LOCAL_NAME} cannot be read: {error}") from error
    return [event for event in events if event.time > since]


def _add_waiting_events(store: Path, event: AuditEvent) -> bool:
    """Note an event for each remote that has its tape; return whether there is one."""
    if not (store / REGISTRY_NAME).exists():
        return False
    names = [*list_holders(store, event.tape)]
    for name in names:
        try:
            _add_waiting_event(store, name, msgspec.json.encode(event).decode())
        except sqlite3.Error as error:
            raise WriteFailed(
                f"the {event.did} of {event.tape[:8]} cannot be recorded for {name}: {error}"
            ) from error
    return bool(names)


def _add_waiting_event(store: Path, remote: str, text: str) -> None:
    address = f"{locate_cursor(store, remote).absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)) as database, database:
        database.execute(EVENTS_TABLE)
        database.execute("INSERT INTO events (event) VALUES (?)", (text,))


def list_holders(store: Path, tape: str) -> Iterator[str]:
    """Yield the remotes that have something of a tape."""
    for name in sorted(read_registry(store).remotes):
        if is_at_remote(store, name, tape):
            yield name


def decode_event(text: str) -> AuditEvent | None:
    """Return an event that waited; None for one that cannot be read."""
    try:
        return msgspec.json.decode(text, type=AuditEvent)
    except JSON_ERRORS:
        return None
