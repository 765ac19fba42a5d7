"""The readers and writers of `registry`, imported when they are used; whose session a file is."""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Protocol, cast

from .registry import SESSION_FORMATS
from .steps import decode_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ..wire import WireObject
    from .database import SessionDatabase
    from .outline import TapeOutline
    from .steps import SourceSession

    ReadLines = Callable[[], Iterable[bytes]]
    """Gives the lines of a file from its beginning, each time it is called."""

_MAX_LINES = 25
"""Lines that are looked at to find out whose file it is."""


class SessionReader(Protocol):
    """A module that reads the sessions of one agent.

    The last three are needed where its row has `around` or `many`.
    """

    def is_session_line(self, value: WireObject) -> bool:
        """Return whether an object is a line (or the whole document) of a session."""

    def read_session(self, read_lines: ReadLines, name: str) -> SourceSession:
        """Return a session; `name` is the file's name without its ending."""

    def describe_session(self, folder: Path, *documents: WireObject) -> bytes:
        """Return the first line of a session in a folder, from the documents `around` it."""

    def list_sessions(self, lines: Iterable[str]) -> list[str]:
        """Return the names of the sessions in a file that holds `many`."""

    def select_session(self, lines: Iterable[str], path: Path, name: str) -> Iterator[bytes]:
        """Yield the lines of one of these; `path` is that of the file, an absolute one."""


def load_reader(tool: str) -> SessionReader:
    """Return the reader of an agent."""
    return cast("SessionReader", import_module(f"{__package__}.{SESSION_FORMATS[tool].reader}"))


def load_databases() -> dict[str, SessionDatabase]:
    """Return the database of each agent that has one, in the order of the registry."""
    return {
        tool: import_module(f"{__package__}.{row.reader}").DATABASE
        for tool, row in SESSION_FORMATS.items()
        if any(pattern.endswith(".db") for pattern in row.files)
    }


class LoadedWriter(Protocol):
    """A module that writes the sessions of one agent."""

    def write_session(self, tape: TapeOutline) -> Iterator[bytes]:
        """Yield the lines of a session."""

    def build_file_name(self, tape: TapeOutline) -> str:
        """Return where in its folder the agent looks for it, where sessions are installed."""

    def name_session(self, tape: str, branch: str) -> str:
        """Return the id of a branch there, where sessions are continued and not installed."""


def load_writer(tool: str) -> LoadedWriter:
    """Return the writer of an agent; raise LookupError where it has none."""
    writer = SESSION_FORMATS[tool].writer
    if writer is None:
        raise LookupError(tool)
    return cast("LoadedWriter", import_module(f"{__package__}.{writer.module}"))


def detect_tool(read_lines: ReadLines) -> str | None:
    """Return the agent whose session a file is; None if it is none that is known."""
    objects = [value for line in islice(read_lines(), _MAX_LINES) if (value := decode_object(line))]
    if not objects:  # one document over many lines
        whole = decode_object(b"\n".join(read_lines()))
        objects = [whole] if whole else []
    rows = sorted(SESSION_FORMATS.values(), key=lambda row: not row.extends)
    for value in objects:
        for row in rows:
            if load_reader(row.tool).is_session_line(value):
                return row.tool
    return None
