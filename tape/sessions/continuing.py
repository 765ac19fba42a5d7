"""The commands that continue a session: in gong, or in another agent, which is given it first.

Which agents, and by which command, is in `SESSION_FORMATS`.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import TapeError
from ..formats.sessions.loading import load_writer
from ..formats.sessions.outline import format_uuid
from ..formats.sessions.registry import SESSION_FORMATS
from ..model.entries import Start
from ..model.line import decode_line
from ..text import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.tape import Tape


class ContinueCommand(NamedTuple):
    """A line for a shell."""

    agent: str
    """Name of the agent, for people."""
    command: str


def list_continue_commands(tape: Tape) -> Iterator[ContinueCommand]:
    """Yield gong's, and those of the other agents for the current branch.

    Agents look for the sessions of the folder that they are started in. One whose name could do
    something in a terminal is left out.
    """
    short, session, folder = tape.id[:SHORT], format_uuid(tape.id), _find_folder(tape)
    yield ContinueCommand("gong", f"gong --session {short}")
    first = f"cd {shlex.quote(folder)} && " if folder.isprintable() and folder else ""
    for tool, row in SESSION_FORMATS.items():
        if row.writer is None or not row.writer.resume:
            continue
        file, how = f"{short}.json", "--install"
        if not row.writer.is_installed:
            session = load_writer(tool).name_session(tape.id, tape.refs().current)
            how = f"-o {file} --force"
        resume = row.writer.resume.format(session=session, file=file)
        export = f"tape export {short} --to {tool} {how}"
        yield ContinueCommand(row.title, f"{first}{export} && {resume}")


def _find_folder(tape: Tape) -> str:
    """Return the folder that a session began in, where its agent files it; "" if it is unknown."""
    with suppress(TapeError):
        for _, line in tape.path(tape.head())[0].lines():
            data = decode_line(line, tape.blobs.text).data
            return data.cwd if isinstance(data, Start) else ""
    return ""
