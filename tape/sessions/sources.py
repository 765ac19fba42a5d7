"""The files and database rows in which other agents keep their sessions, found and read.

Where they are, and which files belong together, is in `SESSION_FORMATS`. Some files hold many
sessions, as databases do: each of these is a `SessionFile` of its own.
"""

from __future__ import annotations

import io
import os
import re
import stat
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ..errors import NotFound, UsageError
from ..formats.sessions.loading import detect_tool, load_reader
from ..formats.sessions.registry import SESSION_FORMATS
from ..formats.sessions.steps import decode_object
from .databases import (
    find_database_tool,
    list_database_sessions,
    read_database_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..formats.sessions.steps import SourceSession
    from ..formats.wire import WireObject

_FIXED_NAMES = {
    pattern.rpartition("/")[2]: (form, pattern)
    for form in SESSION_FORMATS.values()
    for pattern in form.files
    if "*" not in pattern.rpartition("/")[2] and not pattern.endswith(".db")
}
"""Name that every file of an agent has → its row, and the pattern with that name."""
_FOLDERS_ABOVE = {
    name.removesuffix(".jsonl"): pattern.rpartition("*")[2].count("/") - 1
    for name, (_, pattern) in _FIXED_NAMES.items()
}
"""Name of a file whose folder is named by the session → how many folders are in between."""
_MAIN_FILES = tuple(name for name, (form, _) in _FIXED_NAMES.items() if form.is_folder)
"""Files of which the first one that is there stands for all in its folder and below it."""
_OF_MANY = {form.many: tool for tool, form in SESSION_FORMATS.items() if form.many}
"""Name of a file with many sessions → the agent."""
_SUFFIXES = (".jsonl", ".json", ".jsonl.zst")
_MAX_RESULT_BYTES = 64 << 20
"""Bytes of a file beside a session that are still read."""
_DATABASE = b"SQLite format 3\0"


class SessionFile(NamedTuple):
    """A file that holds a session of another agent, or one session in a database."""

    path: Path
    tool: str | None = None
    """The agent; None where the content has to say it."""
    row: str | None = None
    """Id of the session in a database."""
    version: str = ""
    """Changes when the session in the database does; "" where that is unknown."""

    @property
    def name(self) -> str:
        """The path, with the session where the file holds many."""
        return f"{self.path}#{self.row}" if self.row else str(self.path)


def find_tool_folders(environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the folder of each agent that has one here."""
    home = environ.get("HOME") or str(Path.home())
    folders = {
        tool: Path(folder)
        for tool, form in SESSION_FORMATS.items()
        if (folder := form.find_folder(environ, home)) is not None
    }
    return {tool: folder for tool, folder in folders.items() if folder.is_dir()}


def find_sessions_of(tool: str, folder: Path) -> list[SessionFile]:
    """Return the sessions of an agent in its folder, by name."""
    files = {file for pattern in SESSION_FORMATS[tool].files for file in folder.glob(pattern)}
    return [source for file in _keep_main_files(files) for source in list_sessions_in(file, tool)]


def find_sessions_in(folder: Path) -> list[SessionFile]:
    """Return the files below a folder that may hold sessions, by name."""
    files = {
        file
        for file in folder.rglob("*")
        if file.name.endswith((*_SUFFIXES, *_OF_MANY))
        or (file.suffix == ".db" and find_database_tool(file) is not None)
    }
    return [source for file in _keep_main_files(files) for source in list_sessions_in(file)]


def _keep_main_files(files: set[Path]) -> list[Path]:
    """Return the files by name; of a session of several files one."""
    main_files: dict[Path, Path] = {}
    for name in reversed(_MAIN_FILES):
        main_files |= {file.parent: file for file in files if file.name == name}
    return sorted({_find_main_file(file, main_files) for file in files} if main_files else files)


def _find_main_file(file: Path, main_files: dict[Path, Path]) -> Path:
    return next((main_files[folder] for folder in file.parents if folder in main_files), file)


def list_sessions_in(file: Path, tool: str | None = None) -> Iterator[SessionFile]:
    """Yield the sessions in a file: one, or those of a database.

    A database that is damaged or unknown is itself one: opening it says what is wrong.
    """
    if (owner := _OF_MANY.get(file.name)) is not None:
        names = load_reader(owner).list_sessions(_read_text_lines(file))
        yield from (SessionFile(file, owner, name) for name in names)
        return
    agent = find_database_tool(file) if file.suffix == ".db" else None
    rows = None if agent is None else list_database_sessions(file, agent)
    if rows is None:
        yield SessionFile(file, tool)
    else:
        for row, version in rows:
            yield SessionFile(file, agent, row, version)


def open_session_file(source: SessionFile, tool: str | None = None) -> tuple[SourceSession, str]:
    """Return the session in a file, and the SHA-256 of its bytes.

    `tool` is the agent that the caller names; without it, and where the content says otherwise,
    the content decides. Raises NotFound, UsageError where it is no session.
    """
    if source.row is not None and source.tool is not None:
        reader = load_reader(source.tool)
        if SESSION_FORMATS[source.tool].many:
            text = _read_text_lines(source.path)
            lines = [*reader.select_session(text, source.path.absolute(), source.row)]
        else:
            lines = read_database_session(source.path, source.tool, source.row)
        session = reader.read_session(lambda: lines, source.row)
        return session, sha256(b"\n".join(lines)).hexdigest()
    read_lines = partial(_read_lines, source.path)
    agent = detect_tool(read_lines)
    if agent is None and any(decode_object(line) is not None for line in read_lines()):
        agent = tool or source.tool
    if agent is None:
        known = ", ".join(row.title for row in SESSION_FORMATS.values())
        raise UsageError(f"{source.path} is not a session that is known: {known}")
    stem = source.path.name.removesuffix(".zst")
    stem = stem.removesuffix(".jsonl").removesuffix(".json")
    if stem in _FOLDERS_ABOVE:
        folders = source.path.absolute().parents
        stem = folders[min(_FOLDERS_ABOVE[stem], len(folders) - 1)].name or stem
    session = load_reader(agent).read_session(read_lines, stem)
    for part in (session, *session.children):
        part.read_beside = partial(read_result_beside, source.path)
    return session, _compute_digest(source.path)


def read_result_beside(file: Path, named: str) -> bytes | None:
    """Return a result that Claude Code stored in `SESSION/tool-results/` beside a session's file.

    `named` is the path in the session, perhaps of another machine: only its last part counts. None
    where there is no such file in that folder, or it is larger than `_MAX_RESULT_BYTES`.
    """
    *_, place, name = ("", *re.split(r"[/\\]", named))
    is_agent = file.parent.name == "subagents"
    own = file.parent.parent if is_agent else file.with_suffix("")
    folder = own / "tool-results"
    if place != folder.name or name in {"", ".", ".."} or folder.is_symlink() or own.is_symlink():
        return None
    try:
        with open(folder / name, "rb", opener=_open_no_link) as result:
            status = os.fstat(result.fileno())
            is_fit = stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_RESULT_BYTES
            return result.read(_MAX_RESULT_BYTES) if is_fit else None
    except (OSError, ValueError):
        return None


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _read_text_lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def is_session_file(path: Path) -> bool:
    """Return whether a file is a session of another agent, and not a tape."""
    if path.name in _OF_MANY:
        return True
    with path.open("rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            return True
    return path.name.endswith(".zst") or detect_tool(partial(_read_lines, path)) is not None


def _list_companions(path: Path) -> list[Path]:
    """Return the files of the same session that are read before this one."""
    if path.name not in _FIXED_NAMES:
        return []
    form, _ = _FIXED_NAMES[path.name]
    files = [
        file
        for pattern in form.beside
        for file in sorted(path.parent.glob(pattern), key=lambda file: (len(file.name), file))
    ]
    return [file for file in files if file != path]


def _read_lines(path: Path) -> Iterable[bytes]:
    """Yield the lines of a file, without their newlines; a file of a JSON document is one line."""
    if path.name in _FIXED_NAMES and (form := _FIXED_NAMES[path.name][0]).around:
        folder = path.absolute().parent
        paths = (Path(os.path.normpath(folder / name)) for name in form.around)
        yield load_reader(form.tool).describe_session(folder, *map(_read_document, paths))
    for companion in _list_companions(path):
        if companion.suffix == ".json":
            yield companion.read_bytes().replace(b"\n", b" ")
        else:
            yield from _read_lines_of(companion)
    yield from _read_lines_of(path)


def _read_document(path: Path) -> WireObject:
    try:
        return decode_object(path.read_bytes()) or {}
    except OSError:
        return {}


def _read_lines_of(path: Path) -> Iterable[bytes]:
    try:
        with path.open("rb") as raw:
            lines = _read_compressed_lines(raw, path) if path.suffix == ".zst" else raw
            for line in lines:
                yield line.rstrip(b"\n")
    except FileNotFoundError as error:
        raise NotFound(f"no file {str(path)!r}") from error


def _read_compressed_lines(raw: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed file; raises UsageError where it is damaged."""
    import zstandard  # noqa: PLC0415 (for old rollouts of Codex only)

    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    try:
        yield from io.BufferedReader(reader)
    except zstandard.ZstdError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _compute_digest(path: Path) -> str:
    hashed = sha256()
    for part in (*_list_companions(path), path):
        with part.open("rb") as file:
            while piece := file.read(1 << 20):
                hashed.update(piece)
    return hashed.hexdigest()
