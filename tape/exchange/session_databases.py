"""Databases in which other agents keep their sessions: each session as lines, as files have them.

    OpenCode   session, message, part      one line: the document of `opencode export`
    Goose      sessions, messages          the lines of its older files
    Hermes     sessions, messages          one line: the document of `hermes sessions export`, with
                                           rows that were rewound, and the sub-agents' sessions
    Cursor     blobs, meta                 its record, with `meta.json` beside the database, and the
                                           messages; the folder is named by the chat

Databases are opened for reading only, also while their agent writes. Rows after a damaged page are
lost, and count as one damaged line.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..errors import NotFound, UsageError
from ..formats.sessions import cursor, goose, hermes, opencode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..formats.wire import WireObject

_DAMAGED_LINE = b"{"


class _DatabaseKind(NamedTuple):
    """The database of one agent."""

    table: str
    """Table of its sessions, whose `id` names one."""
    column: str
    """A column that tells the table from those of other agents."""
    read: Callable[[sqlite3.Connection, str, Path], list[bytes] | None]
    """Returns the lines of a session in a file; None if it is not there."""
    has_one: bool = False
    """Whether a database is one session, named by its folder."""


def find_database_tool(file: Path) -> str | None:
    """Return the agent whose database a file is; None if it is none that is known, or damaged."""
    try:
        with closing(_open_database(file)) as database:
            for tool, kind in _KINDS.items():
                columns = database.execute(f"PRAGMA table_info({kind.table})").fetchall()
                if kind.column in {column[1] for column in columns}:
                    return tool
    except sqlite3.Error:
        return None
    return None


def list_database_sessions(file: Path, tool: str) -> list[str] | None:
    """Return the ids of the sessions in a database of an agent; None if it is damaged."""
    try:
        with closing(_open_database(file)) as database:
            if _KINDS[tool].has_one:
                return [file.absolute().parent.name]
            query = f"SELECT id FROM {_KINDS[tool].table} ORDER BY id"  # noqa: S608
            return [str(row) for (row,) in database.execute(query)]
    except sqlite3.Error:
        return None


def read_database_session(file: Path, tool: str, session: str) -> list[bytes]:
    """Return the lines of a session in a database. Raises NotFound, UsageError."""
    try:
        with closing(_open_database(file)) as database:
            lines = _KINDS[tool].read(database, session, file)
    except sqlite3.Error as error:
        raise UsageError(f"the database {file} cannot be read: {error}") from error
    if lines is None:
        raise NotFound(f"no session {session!r} in {file}")
    return lines


def _open_database(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    return database


def _select_objects(
    database: sqlite3.Connection, query: str, *values: object
) -> tuple[list[WireObject], bool]:
    """Return the rows as objects, and whether all could be read."""
    rows: list[WireObject] = []
    cursor = database.execute(query, values)
    names = [column[0] for column in cursor.description]
    try:
        rows.extend(dict(zip(names, row, strict=True)) for row in cursor)
    except sqlite3.OperationalError:  # such as a lock: another time all can be read
        raise
    except sqlite3.DatabaseError:
        return rows, False
    return rows, True


def _read_session_row(database: sqlite3.Connection, table: str, session: str) -> WireObject | None:
    query = f"SELECT * FROM {table} WHERE id = ?"  # noqa: S608
    rows, _ = _select_objects(database, query, session)
    return rows[0] if rows else None


def _read_opencode(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    row = _read_session_row(database, "session", session)
    if row is None:
        return None
    parts: dict[str, list[Any]] = {}
    found, all_parts = _select_objects(
        database, "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", session
    )
    for part in found:
        decoded = {**_decode_column(part["data"]), "id": part["id"]}
        parts.setdefault(part["message_id"], []).append(decoded)
    found, all_messages = _select_objects(
        database, "SELECT id, data FROM message WHERE session_id = ? ORDER BY id", session
    )
    messages = [
        {
            "info": {**_decode_column(message["data"]), "id": message["id"]},
            "parts": parts.get(message["id"], []),
        }
        for message in found
    ]
    info = {
        "id": session,
        "title": row.get("title"),
        "directory": row.get("directory"),
        "version": row.get("version"),
        "parentID": row.get("parent_id"),
        "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
        "revert": _decode_column(row.get("revert")),
    }
    line = msgspec.json.encode({"info": info, "messages": messages})
    return [line, *[_DAMAGED_LINE] * (not (all_parts and all_messages))]


def _read_goose(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    row = _read_session_row(database, "sessions", session)
    if row is None:
        return None
    header = {
        "working_dir": row.get("working_dir"),
        "description": row.get("name") or row.get("description"),
        "created_at": row.get("created_at"),
        "provider_name": row.get("provider_name"),
        "model_config": _decode_column(row.get("model_config_json")),
    }
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    messages, all_read = _select_objects(database, query, session)
    lines = [msgspec.json.encode(header)]
    for message in messages:
        try:
            blocks = msgspec.json.decode(message["content_json"])
        except (msgspec.DecodeError, TypeError):
            blocks = [{"type": "damaged", "text": str(message["content_json"])}]
        line = {
            "id": message.get("message_id"),
            "role": message["role"],
            "created": message["created_timestamp"],
            "content": blocks,
            "metadata": _decode_column(message.get("metadata_json")),
        }
        lines.append(msgspec.json.encode(line))
    return [*lines, *[_DAMAGED_LINE] * (not all_read)]


def _read_hermes(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    row = _read_session_row(database, "sessions", session)
    if row is None:
        return None
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    messages, all_read = _select_objects(database, query, session)
    query = "SELECT * FROM sessions WHERE parent_session_id = ? ORDER BY started_at, id"
    children, _ = _select_objects(database, query, session)
    agents = [
        {name: child.get(name) for name in ("id", "started_at", "ended_at", "end_reason")}
        for child in children
        if _decode_column(child.get("model_config")).get("_delegate_from") == session
    ]
    line = msgspec.json.encode({**row, "messages": messages, "agents": agents})
    return [line, *[_DAMAGED_LINE] * (not all_read)]


def _read_cursor(database: sqlite3.Connection, _session: str, file: Path) -> list[bytes]:
    record: dict[str, Any] = {}
    for row in _select_objects(database, "SELECT value FROM meta ORDER BY key")[0]:
        value = row["value"]
        with suppress(ValueError, TypeError):  # it is JSON as it is, or written as hex digits
            value = bytes.fromhex(value)
        record = _decode_column(value) | record
    with suppress(OSError):
        record["chat"] = _decode_column(file.with_name("meta.json").read_bytes())
    rows, all_read = _select_objects(database, "SELECT id, data FROM blobs ORDER BY rowid")
    blobs = {str(row["id"]): _to_bytes(row["data"]) for row in rows}
    messages = {name: data for name, data in blobs.items() if data[:1] == b"{"}
    named = _list_prompt_blobs(blobs.get(str(record.get("latestRootBlobId")), b""))
    whole = set(named) == set(messages)  # the same message may be there twice
    lines = [messages[name] for name in (named if whole else messages)]
    header = msgspec.json.encode({"agentId": file.absolute().parent.name, "chat": {}} | record)
    return [header, *lines, *[_DAMAGED_LINE] * (not all_read)]


def _to_bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else str(data or "").encode()


def _list_prompt_blobs(root: bytes) -> list[str]:
    """Return the blobs that Cursor's root names as the prompt, field 1 of a Protocol Buffer."""
    size = 32
    found: list[str] = []
    head = bytes([1 << 3 | 2, size])
    while root.startswith(head) and len(root) >= len(head) + size:
        found.append(root[len(head) : len(head) + size].hex())
        root = root[len(head) + size :]
    return found


def _decode_column(data: Any) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except msgspec.DecodeError:
        return {"type": "damaged", "text": str(data)}
    return value if isinstance(value, dict) else {}


_KINDS = {
    opencode.TOOL: _DatabaseKind("session", "id", _read_opencode),
    goose.TOOL: _DatabaseKind("sessions", "working_dir", _read_goose),
    cursor.TOOL: _DatabaseKind("blobs", "data", _read_cursor, has_one=True),
    hermes.TOOL: _DatabaseKind("sessions", "started_at", _read_hermes),
}
"""Agent → its database."""
