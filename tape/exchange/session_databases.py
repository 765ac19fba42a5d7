"""Databases in which other agents keep their sessions: each session as lines, as files have them.

    OpenCode   session, message, part      one line: the document of `opencode export`
    Goose      sessions, messages          the lines of its older files
    Hermes     sessions, messages          one line: the document of `hermes sessions export`, with
                                           rows that were rewound, and the sub-agents' sessions
    Cursor     blobs, meta                 its record, with `meta.json` beside the database, and the
                                           messages; the folder is named by the chat

    llm        threads, turns, messages,   its record, and a line for each message; conversations
               parts; conversations,       of versions before 0.36 from the older tables
               responses

Databases are opened for reading only, also while their agent writes. Rows after a damaged page are
lost, and count as one damaged line.
"""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..errors import NotFound, UsageError
from ..formats.sessions import cursor, goose, hermes, llm_logs, opencode
from ..formats.wire import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..formats.wire import WireObject

_DAMAGED_LINE = b"{"
_MAX_VALUE_BYTES = 64 * 1024 * 1024
"""Of one value in a database: a message with its pictures is far below that."""
_DAMAGE = (sqlite3.Error, UnicodeError, msgspec.MsgspecError, LookupError, TypeError)
"""What a damaged database raises, or one whose tables are not those that are known."""


class _DatabaseKind(NamedTuple):
    """The database of one agent."""

    table: str
    """Table of its sessions, whose `id` names one."""
    column: str
    """A column that tells the table from those of other agents."""
    read: Callable[[sqlite3.Connection, str, Path], list[bytes] | None]
    """Returns the lines of a session in a file; None if it is not there."""
    version: str = "''"
    """What changes when a session `s` is written, in SQL; newer and older tables may lack it."""
    also: str = ""
    """Another table of sessions, in newer versions."""
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
    except _DAMAGE:
        return None
    return None


def list_database_sessions(file: Path, tool: str) -> list[tuple[str, str]] | None:
    """Return id and version of the sessions in a database, by id; None if it is damaged.

    A version changes when the session does; "" is unknown.
    """
    kind = _KINDS[tool]
    if kind.has_one:
        return [(file.absolute().parent.name, "")]
    for version in (kind.version, "''"):
        with suppress(*_DAMAGE), closing(_open_database(file)) as database:
            tables = [one for one in (kind.table, kind.also) if one and _has_table(database, one)]
            query = " UNION ".join(f"SELECT s.id, {version} FROM {one} s" for one in tables)  # noqa: S608
            found = database.execute(f"{query} ORDER BY 1")
            return [(str(row), str(changed or "")) for row, changed in found]
    return None


def read_database_session(file: Path, tool: str, session: str) -> list[bytes]:
    """Return the lines of a session in a database. Raises NotFound, UsageError."""
    try:
        with closing(_open_database(file)) as database:
            lines = _KINDS[tool].read(database, session, file)
    except _DAMAGE as error:
        is_refused = str(error) == "not authorized" or "prohibited" in str(error)
        why = "it has a view in place of a table" if is_refused else str(error)
        raise UsageError(f"the database {file} cannot be read: {why}") from error
    if lines is None:
        raise NotFound(f"no session {session!r} in {file}")
    return lines


def _open_database(file: Path) -> sqlite3.Connection:
    """Open a database for reading. A file of a stranger is read, and not asked to compute.

    A view may have no end, and a value may be larger than the memory: both are refused, as damage.
    """
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.set_authorizer(_allow_plain_reading)
    return database


def _allow_plain_reading(
    action: int, _first: str | None, _second: str | None, _file: str | None, view: str | None
) -> int:
    is_plain = view is None and action != sqlite3.SQLITE_RECURSIVE
    return sqlite3.SQLITE_OK if is_plain else sqlite3.SQLITE_DENY


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


def _read_llm(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    conversation = _read_session_row(database, "conversations", session)
    if _has_table(database, "threads"):
        thread = _read_session_row(database, "threads", session)
        if thread is not None:
            facts = {"llm_session": session, "name": thread["name"], "time": thread["datetime_utc"]}
            return [encode_json(one) for one in (facts, *_list_llm_messages(database, session))]
    if conversation is None:
        return None
    facts = {"llm_session": session, "name": conversation["name"], "model": conversation["model"]}
    return [encode_json(one) for one in (facts, *_list_llm_responses(database, session))]


def _has_table(database: sqlite3.Connection, table: str) -> bool:
    return bool(database.execute(f"PRAGMA table_info({table})").fetchall())


def _list_llm_messages(database: sqlite3.Connection, thread: str) -> Iterator[WireObject]:
    """Yield the messages that turns of a thread ended with, each after its parent."""
    turns, _ = _select_objects(
        database, "SELECT * FROM turns WHERE thread_id = ? ORDER BY datetime_utc, id", thread
    )
    seen: set[str] = set()
    for turn in turns:
        chain: list[WireObject] = []
        wanted = turn["tip_message_hash"]
        while wanted is not None and wanted not in seen:
            seen.add(wanted)
            found, _ = _select_objects(database, "SELECT * FROM messages WHERE hash = ?", wanted)
            chain += found
            wanted = found[0]["parent_hash"] if found else None
        for message in reversed(chain):
            is_tip = message["hash"] == turn["tip_message_hash"]
            yield {
                "llm_message": message["hash"],
                "parent": message["parent_hash"],
                "role": message["role"],
                "parts": _list_llm_parts(database, message["hash"]),
                "turn": {name: turn[name] for name in _LLM_TURN} if is_tip else None,
            }


_LLM_TURN = ("model", "resolved_model", "input_tokens", "output_tokens", "datetime_utc")


def _list_llm_parts(database: sqlite3.Connection, message: str) -> list[WireObject]:
    """Return the parts of a message, with the fragments and attachments that they name."""
    rows, _ = _select_objects(
        database, "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", message
    )
    parts = []
    for row in rows:
        part: WireObject = msgspec.json.decode(row["payload"]) if row["payload"] else {}
        part["type"] = row["type"]
        if row["text"] is not None:
            part["text"] = row["text"]
        for piece in part.pop("text_ref", ()):
            literal = piece.get("literal")
            text = _find_fragment(database, piece["fragment"]) if literal is None else literal
            part["text"] = part.get("text", "") + text
        if isinstance(part.get("attachment"), dict):
            part["attachment"] = _read_attachment(database, part["attachment"].get("id"))
        if isinstance(part.get("attachments"), list):
            names = [one.get("id") for one in part["attachments"]]
            part["attachments"] = [_read_attachment(database, one) for one in names]
        parts.append(part)
    return parts


def _find_fragment(database: sqlite3.Connection, fragment: object) -> str:
    found = database.execute("SELECT content FROM fragments WHERE id = ?", (fragment,)).fetchone()
    return str(found[0]) if found else ""


def _read_attachment(database: sqlite3.Connection, identity: object) -> WireObject:
    found, _ = _select_objects(database, "SELECT * FROM attachments WHERE id = ?", identity)
    if not found:
        return {}
    content = found[0].pop("content")
    if isinstance(content, bytes):
        found[0]["content"] = b64encode(content).decode()
    return found[0]


def _list_llm_responses(database: sqlite3.Connection, conversation: str) -> Iterator[WireObject]:
    """Yield the prompt and the answer of each response of an older conversation."""
    rows, _ = _select_objects(
        database,
        "SELECT * FROM responses WHERE conversation_id = ? ORDER BY datetime_utc, id",
        conversation,
    )
    parent = system = ""
    for row in rows:
        asked = [
            {"type": "tool_result", **one}
            for one in _select_of(database, "tool_results", row["id"])
        ]
        words = [
            *(_find_fragment(database, one["fragment_id"])
              for one in _select_of(database, "prompt_fragments", row["id"])),
            row["prompt"] or "",
        ]  # fmt: skip
        text = "\n".join(filter(None, words))
        asked += [{"type": "text", "text": text}] if text or not asked else []
        asked += [
            {"type": "attachment", "attachment": _read_attachment(database, one["attachment_id"])}
            for one in _select_of(database, "prompt_attachments", row["id"])
        ]
        said: list[WireObject] = []
        if row.get("reasoning"):
            said.append({"type": "reasoning", "text": row["reasoning"]})
        said.append({"type": "text", "text": row["response"] or ""})
        for call in _select_of(database, "tool_calls", row["id"]):
            given = call["arguments"]
            said.append({"type": "tool_call", **call, "arguments": msgspec.json.decode(given)})
        turn = {name: row.get(name) for name in _LLM_TURN}
        steps: list[tuple[str, list[WireObject], WireObject | None]] = [
            ("user", asked, None),
            ("assistant", said, turn),
        ]
        if row["system"] and row["system"] != system:
            system = row["system"]
            steps.insert(0, ("system", [{"type": "text", "text": system}], None))
        for role, parts, ended in steps:
            name = f"{row['id']}:{role}"
            message = {"llm_message": name, "parent": parent, "role": role, "parts": parts}
            yield {**message, "turn": ended}
            parent = name


def _select_of(database: sqlite3.Connection, table: str, response: str) -> list[WireObject]:
    """Return the rows of a table that belong to a response, in their order."""
    if not _has_table(database, table):
        return []
    order = "id" if table.startswith("tool_") else '"order"'
    query = f"SELECT * FROM {table} WHERE response_id = ? ORDER BY {order}"  # noqa: S608
    return _select_objects(database, query, response)[0]


_OF_SESSION = "FROM {} t WHERE t.session_id = s.id"
_MESSAGES, _PARTS = _OF_SESSION.format("messages"), _OF_SESSION.format("part")
_KINDS = {
    opencode.TOOL: _DatabaseKind(
        "session",
        "id",
        _read_opencode,
        f"s.time_updated || ' ' || (SELECT count(*) || ' ' || max(t.time_updated) {_PARTS})",
    ),
    goose.TOOL: _DatabaseKind(
        "sessions",
        "working_dir",
        _read_goose,
        f"s.updated_at || ' ' || (SELECT count(*) || ' ' || max(t.id) {_MESSAGES})",
    ),
    cursor.TOOL: _DatabaseKind("blobs", "data", _read_cursor, has_one=True),
    hermes.TOOL: _DatabaseKind(
        "sessions",
        "started_at",
        _read_hermes,
        "coalesce(s.title, '') || ' ' || (SELECT count(*) || ' ' || max(t.id) || ' ' ||"
        f" total(t.active) || ' ' || total(t.compacted) {_MESSAGES})",
    ),
    llm_logs.TOOL: _DatabaseKind("conversations", "model", _read_llm, also="threads"),
}
"""Agent → its database."""
