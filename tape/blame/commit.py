"""The lines that a git commit adds, who wrote them, and the notes of it.

Only commands are called that read objects or write notes, and none that a repository's settings
could make run another program.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import NotFound, UsageError
from ..model.entries import Start
from ..model.line import decode_line
from .history import read_file_history
from .notes import (
    NotedCommit,
    NotedLines,
    NotedSession,
    build_log,
    build_trace,
    is_own_log,
    is_own_trace,
)
from .replay import PARTIAL_MATCH, UNKNOWN_RESULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..index.projection import Index
    from ..store.store import Store
    from .history import ChangeCause

_HUNK = re.compile(rb"@@ -[0-9,]+ \+([0-9]+)(?:,([0-9]+))? @@")
LOG_REF = "refs/notes/ai"
"""Where git-ai keeps its logs."""
TRACE_REF = "refs/notes/agent-trace"
"""Where Agent Trace is kept."""

_RUN_NOTHING = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.allow=never",
)  # fmt: skip
"""Options of git with which it runs no program of the repository: no monitor, no hook, and nothing
to fetch an object that is not there."""


class Repository:
    """A git repository, by the folder it was asked about."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.top = self.run("rev-parse", "--show-toplevel").decode().rstrip("\n")

    def run(self, *words: str, stdin: bytes = b"") -> bytes:
        """Return what a git command prints; raise NotFound with its message where it fails."""
        from subprocess import run  # noqa: PLC0415 (for this only)

        try:
            done = run(
                ["git", "--no-pager", "--literal-pathspecs", *_RUN_NOTHING, *words],  # noqa: S607
                cwd=self.folder,
                input=stdin,
                capture_output=True,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError as error:
            raise NotFound("git is not installed") from error
        if done.returncode:
            words_of_git = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
            raise NotFound(f"git {words[0]}: {words_of_git}")
        return done.stdout

    def read_commit(self, name: str) -> NotedCommit:
        """Return the commit of this name."""
        output = self.run("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        commit = output.decode().strip()
        author_and_time = self.run(
            "show", "-s", "--no-show-signature", "--format=%an <%ae>%n%cI", commit
        )
        author, time = author_and_time.decode("utf-8", "replace").split("\n")[:2]
        return NotedCommit(commit, author, time)

    def list_added_lines(self, commit: str) -> Iterator[tuple[str, list[int]]]:
        """Yield the files that a commit changes against its first parent, with the new lines."""
        parents = self.run("rev-list", "--parents", "-n", "1", commit).decode().split()[1:]
        base = parents[0] if parents else self.run("hash-object", "-t", "tree", "--stdin").decode()
        between = (base.strip(), commit)
        diff = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv")
        names = self.run(*diff, "-z", "--name-only", "--diff-filter=AM", *between)
        for name in filter(None, names.split(b"\0")):
            path = os.fsdecode(name)
            added: list[int] = []
            for line in self.run(*diff, "-p", "-U0", *between, "--", path).split(b"\n"):
                if hunk := _HUNK.match(line):
                    count = 1 if hunk[2] is None else int(hunk[2])
                    added += range(int(hunk[1]), int(hunk[1]) + count)
            if added:
                yield path, added

    def read_note(self, ref: str, commit: str) -> str | None:
        """Return the note of a commit; None where it has none."""
        try:
            return self.run("notes", f"--ref={ref}", "show", commit).decode("utf-8", "replace")
        except NotFound:
            return None

    def write_note(self, ref: str, commit: str, text: str) -> None:
        """Give a commit this note in place of the one it has."""
        blob = self.run("hash-object", "-w", "--stdin", stdin=text.encode("utf-8", "replace"))
        self.run("notes", f"--ref={ref}", "add", "-f", "-C", blob.decode().strip(), commit)


class WrittenNotes(NamedTuple):
    """What was noted on a commit."""

    commit: str
    noted: list[NotedLines]
    """Empty where no tape explains a line of it: then nothing was written."""
    added: int
    """Lines that the commit adds."""


def write_notes(
    store: Store,
    index: Index | None,
    folder: str,
    name: str,
    skipped: Callable[[str], None],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> WrittenNotes:
    """Write both notes of a commit; the same tapes give the same notes.

    Raises NotFound where git knows no such commit, UsageError where it has a note of another
    program, which is never replaced.
    """
    repository = Repository(folder)
    commit = repository.read_commit(name)
    for ref, is_own in ((LOG_REF, is_own_log), (TRACE_REF, is_own_trace)):
        text = repository.read_note(ref, commit.id)
        if text is not None and not is_own(text):
            raise UsageError(
                f"{commit.id[:12]} has a note of another program in {ref}: `git notes --ref={ref}"
                f" remove {commit.id[:12]}` removes it"
            )
    noted, count = list[NotedLines](), 0
    sessions: dict[str, NotedSession] = {}
    until = repository.run("show", "-s", "--no-show-signature", "--format=%ct", commit.id)
    for path, added in repository.list_added_lines(commit.id):
        count += len(added)
        data = repository.run("cat-file", "blob", f"{commit.id}:{path}")
        if b"\0" in data:
            continue
        history = read_file_history(store, index, Path(repository.top, path), skipped, progress)
        by_cause: dict[tuple[str, bool], tuple[ChangeCause, list[int]]] = {}
        known = history.select_until(int(until))
        for attributed in known.attribute_lines(data.decode("utf-8", "replace")):
            lines = [line for line in added if attributed.first <= line <= attributed.last]
            if attributed.by is not None and attributed.doubt != UNKNOWN_RESULT and lines:
                mixed = attributed.doubt == PARTIAL_MATCH
                by_cause.setdefault((attributed.by.entry, mixed), (attributed.by, []))[1].extend(
                    lines
                )
        for (entry, mixed), (by, lines) in by_cause.items():
            if by.tape not in sessions:
                sessions[by.tape] = _read_session(store, by)
            session = sessions[by.tape]._replace(model=by.model)
            noted.append(NotedLines(path, sorted(lines), session, entry, mixed))
    if noted:
        repository.write_note(LOG_REF, commit.id, build_log(commit, noted))
        trace = json.dumps(build_trace(commit, noted), ensure_ascii=False) + "\n"
        repository.write_note(TRACE_REF, commit.id, trace)
    return WrittenNotes(commit.id, noted, count)


def _read_session(store: Store, by: ChangeCause) -> NotedSession:
    """Return the session of a tape: that of the agent it was imported from, else its own."""
    with store.open(by.tape) as tape:
        tool, session = tape.info.by.split("/", 1)[0], tape.id
        for first in tape.phases.read_first_lines(tape.phases.names()[0])[:1]:
            start = decode_line(first).data
            if isinstance(start, Start) and start.imported is not None:
                tool, session = start.imported.tool, start.imported.session
    return NotedSession(by.tape, tool, session, by.model)
