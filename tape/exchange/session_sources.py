"""Where other agents keep their sessions, and the files and database rows in which they are.

claude     $CLAUDE_CONFIG_DIR or ~/.claude      projects/FOLDER/*.jsonl, and of sub-agents
projects/FOLDER/UUID/subagents/agent-*.jsonl
codex      $CODEX_HOME or ~/.codex              sessions/Y/M/D/rollout-*.jsonl, also .zst
pi         ~/.pi/agent                          sessions/FOLDER/*.jsonl
gemini     ~/.gemini                            tmp/PROJECT/chats/*.json, *.jsonl
opencode   $XDG_DATA_HOME or ~/.local/share     opencode/opencode.db, one row a session
copilot    $COPILOT_HOME or ~/.copilot          session-state/ID/events.jsonl
amp        $XDG_DATA_HOME or ~/.local/share     amp/threads/T-*.json
goose      $XDG_DATA_HOME or ~/.local/share     goose/sessions/*.jsonl, sessions.db
"""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..errors import NotFound, UsageError
from ..formats.sessions import goose, opencode
from ..formats.sessions.registry import SESSION_FORMATS, detect_tool
from ..formats.sessions.steps import decode_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..formats.sessions.steps import SourceSession

_PATTERNS = {
    "claude": ("projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl"),
    "codex": ("sessions/**/rollout-*.jsonl*", "archived_sessions/rollout-*.jsonl*"),
    "pi": ("sessions/*/*.jsonl",),
    "gemini": ("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl"),
    "opencode": ("opencode.db",),
    "copilot": ("session-state/*/events.jsonl",),
    "amp": ("threads/T-*.json",),
    "goose": ("sessions/*.jsonl", "sessions/sessions.db"),
}
_FOLDER_NAMED = frozenset({"events"})
"""Names of files whose folder is named by the session."""
_SUFFIXES = (".jsonl", ".json", ".jsonl.zst")
_DATABASE = b"SQLite format 3\0"


class SessionFile(NamedTuple):
    """A file that holds a session of another agent, or one session in a database."""

    path: Path
    tool: str | None = None
    """The agent; None where the content has to say it."""
    row: str | None = None
    """Id of the session in a database."""

    @property
    def name(self) -> str:
        """The path, with the session where the file holds many."""
        return f"{self.path}#{self.row}" if self.row else str(self.path)


def find_tool_folders(environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the folder of each agent that has one here."""
    home = Path(environ.get("HOME") or Path.home())
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    folders = {
        "claude": Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
        "codex": Path(environ.get("CODEX_HOME") or home / ".codex"),
        "pi": home / ".pi/agent",
        "gemini": home / ".gemini",
        "opencode": data / "opencode",
        "copilot": Path(environ.get("COPILOT_HOME") or home / ".copilot"),
        "amp": data / "amp",
        "goose": data / "goose",
    }
    return {tool: folder for tool, folder in folders.items() if folder.is_dir()}


def find_sessions_of(tool: str, folder: Path) -> list[SessionFile]:
    """Return the sessions of an agent in its folder, by name."""
    found = sorted({file for pattern in _PATTERNS[tool] for file in folder.glob(pattern)})
    return [one for file in found for one in list_sessions_in(file, tool)]


def find_sessions_in(folder: Path) -> list[SessionFile]:
    """Return the files below a folder that may hold sessions, by name."""
    found = sorted(
        file
        for file in folder.rglob("*")
        if file.name.endswith((*_SUFFIXES, "opencode.db", "sessions.db"))
    )
    return [one for file in found for one in list_sessions_in(file)]


def list_sessions_in(file: Path, tool: str | None = None) -> Iterator[SessionFile]:
    """Yield the sessions in a file: one, or those of a database."""
    if file.suffix != ".db":
        yield SessionFile(file, tool)
        return
    with closing(_open_database(file)) as database:
        is_goose = _select_rows(database, "SELECT 1 FROM sqlite_master WHERE name = 'sessions'")
        found, table = ("goose", "sessions") if is_goose else ("opencode", "session")
        for (row,) in _select_rows(database, f"SELECT id FROM {table} ORDER BY id"):  # noqa: S608
            yield SessionFile(file, found, str(row))


def open_session_file(source: SessionFile, tool: str | None = None) -> tuple[SourceSession, str]:
    """Return the session in a file, and the SHA-256 of its bytes.

    `tool` is the agent that the caller names; without it, and where the content says otherwise,
    the content decides. Raises NotFound, UsageError where it is no session.
    """
    if source.row is not None and source.tool == goose.TOOL:
        lines = _read_goose_lines(source.path, source.row)
        return goose.read_session(lambda: lines, source.row), sha256(b"\n".join(lines)).hexdigest()
    if source.row is not None:
        document = _read_document(source.path, source.row)
        digest = sha256(msgspec.json.encode(document)).hexdigest()
        return opencode.build_session(document, source.row), digest
    read_lines = partial(_read_lines, source.path)
    found = detect_tool(read_lines)
    if found is None and any(decode_object(line) is not None for line in read_lines()):
        found = tool or source.tool
    if found is None:
        known = ", ".join(one.title for one in SESSION_FORMATS.values())
        raise UsageError(f"{source.path} is not a session that is known: {known}")
    stem = source.path.name.removesuffix(".zst")
    stem = stem.removesuffix(".jsonl").removesuffix(".json")
    if stem in _FOLDER_NAMED:
        stem = source.path.absolute().parent.name
    session = SESSION_FORMATS[found].read(read_lines, stem)
    return session, _compute_digest(source.path)


def is_session_file(path: Path) -> bool:
    """Return whether a file is a session of another agent, and not a tape."""
    with path.open("rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            return True
    return path.name.endswith(".zst") or detect_tool(partial(_read_lines, path)) is not None


def _read_lines(path: Path) -> Iterable[bytes]:
    """Yield the lines of a file, without their newlines."""
    try:
        with path.open("rb") as raw:
            file = _open_compressed(raw) if path.suffix == ".zst" else raw
            for line in file:
                yield line.rstrip(b"\n")
    except FileNotFoundError as error:
        raise NotFound(f"no file {str(path)!r}") from error


def _open_compressed(raw: Any) -> Any:
    try:
        import zstandard  # noqa: PLC0415 (an extra, for old rollouts of Codex)
    except ImportError as error:
        raise UsageError("reading a .zst file needs zstandard: pip install 'gong[zstd]'") from error
    return io.BufferedReader(
        zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    )


def _compute_digest(path: Path) -> str:
    hashed = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            hashed.update(piece)
    return hashed.hexdigest()


def _open_database(file: Path) -> sqlite3.Connection:
    """Open the database of another program for reading, also while it writes."""
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    database.row_factory = None
    return database


def _select_rows(
    database: sqlite3.Connection, query: str, *values: object
) -> list[tuple[Any, ...]]:
    try:
        return database.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise UsageError(f"this is no database of OpenCode or Goose: {error}") from error


def _read_document(file: Path, session: str) -> dict[str, Any]:
    """Return a session in a database as the document that `opencode export` writes."""
    with closing(_open_database(file)) as database:
        columns = [row[1] for row in _select_rows(database, "PRAGMA table_info(session)")]
        rows = _select_rows(database, "SELECT * FROM session WHERE id = ?", session)
        if not rows:
            raise NotFound(f"no session {session!r} in {file}")
        row = dict(zip(columns, rows[0], strict=True))
        parts: dict[str, list[Any]] = {}
        for identity, message, data in _select_rows(
            database,
            "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id",
            session,
        ):
            parts.setdefault(message, []).append({**_decode_column(data), "id": identity})
        messages = [
            {"info": {**_decode_column(data), "id": identity}, "parts": parts.get(identity, [])}
            for identity, data in _select_rows(
                database, "SELECT id, data FROM message WHERE session_id = ? ORDER BY id", session
            )
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
    return {"info": info, "messages": messages}


def _read_goose_lines(file: Path, session: str) -> list[bytes]:
    """Return a session in a database of Goose as the lines of its older files."""
    with closing(_open_database(file)) as database:
        columns = [row[1] for row in _select_rows(database, "PRAGMA table_info(sessions)")]
        rows = _select_rows(database, "SELECT * FROM sessions WHERE id = ?", session)
        if not rows:
            raise NotFound(f"no session {session!r} in {file}")
        row = dict(zip(columns, rows[0], strict=True))
        header = {
            "working_dir": row.get("working_dir"),
            "description": row.get("name") or row.get("description"),
            "created_at": row.get("created_at"),
            "provider_name": row.get("provider_name"),
            "model_config": _decode_column(row.get("model_config_json")),
        }
        messages = _select_rows(
            database,
            "SELECT role, content_json, created_timestamp FROM messages"
            " WHERE session_id = ? ORDER BY id",
            session,
        )
    lines = [msgspec.json.encode(header)]
    for role, content, created in messages:
        try:
            blocks = msgspec.json.decode(content)
        except (msgspec.DecodeError, TypeError):
            blocks = [{"type": "damaged", "text": str(content)}]
        lines.append(msgspec.json.encode({"role": role, "created": created, "content": blocks}))
    return lines


def _decode_column(data: Any) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except msgspec.DecodeError:
        return {"type": "damaged", "text": str(data)}
    return value if isinstance(value, dict) else {}
