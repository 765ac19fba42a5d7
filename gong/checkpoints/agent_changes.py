"""What the sub-agents of a session did to its files, among what it did itself, by time.

A sub-agent has a branch or a tape of its own. What it did counts where it worked in the session's
folder; a worktree is a folder of its own, whose changes stay there.
"""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import Damaged, NotFound
from tape.files.changes import list_file_changes
from tape.model.entries import AgentStart

from ..env.protocol import is_inside_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.files.changes import PathChange
    from tape.model.line import Entry
    from tape.store.tape import Tape


class AgentRun(NamedTuple):
    """What a sub-agent did since a moment."""

    entries: tuple[Entry, ...]
    """Its own, oldest first; not those of the session that started it."""
    changes: tuple[PathChange, ...]


def list_agent_runs(
    tape: Tape, entries: Sequence[Entry], after: int, folder: str
) -> list[AgentRun]:
    """Return what sub-agents did that were started on a path behind the depth `after`.

    Those on tapes of their own are left out: their bytes are not in this one. `folder` is that of
    the session.
    """
    runs: list[AgentRun] = []
    seen = {entry.id for entry in entries}
    starts = [entry for entry in entries if entry.n > after and isinstance(entry.data, AgentStart)]
    done: set[str] = set()
    while starts:
        start = starts.pop(0)
        assert isinstance(start.data, AgentStart)
        branch = start.data.branch
        if branch is None or start.data.tape or branch in done:
            continue
        done.add(branch)
        try:
            path = tape.entries(tape.head(branch))
        except (NotFound, Damaged):
            continue
        own = [entry for entry in path if entry.id not in seen and entry.time >= start.time]
        ids = {entry.id for entry in own}
        changes = [
            change
            for change in list_file_changes(path)
            if change.entry in ids and _is_of_folder(change, folder)
        ]
        runs.append(AgentRun(tuple(own), tuple(changes)))
        seen |= ids
        starts += [entry for entry in own if isinstance(entry.data, AgentStart)]
    return runs


def _is_of_folder(change: PathChange, folder: str) -> bool:
    if change.environment is not None:
        return True
    return change.folder.cwd == folder or is_inside_folder(change.path, folder)


def merge_changes(
    entries: Sequence[Entry], changes: Sequence[PathChange], runs: Sequence[AgentRun]
) -> list[PathChange]:
    """Return the changes of a path and of sub-agents, each in its order, and all by time."""
    rows = [_list_dated(entries, changes)]
    rows += [_list_dated(run.entries, run.changes) for run in runs]
    return [change for _, change in merge(*rows, key=lambda row: row[0])]


def _list_dated(
    entries: Sequence[Entry], changes: Sequence[PathChange]
) -> Iterator[tuple[str, PathChange]]:
    """Yield changes with their times, which never go back: clocks may."""
    times = {entry.id: entry.time for entry in entries}
    newest = ""
    for change in changes:
        newest = max(newest, times[change.entry])
        yield newest, change
