"""`import`: a tape from a file, and the sessions of other agents, once or as they grow."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click
from msgspec.structs import replace

from ..archive.import_ import FileImportReport, import_file
from ..clock import parse_timestamp, read_clock
from ..errors import NotFound, UsageError
from ..folders import locate_repository
from ..formats.registry import FORMATS
from ..formats.sessions.registry import SESSION_FORMATS
from ..formats.sessions.steps import describe_left_out, describe_unknown
from ..sessions.arrays import ArrayImportReport, import_array
from ..sessions.batch import (
    FileStamp,
    ImportMemory,
    import_files,
    open_locked_session,
)
from ..sessions.import_ import import_session
from ..sessions.sources import (
    SessionFile,
    find_sessions_in,
    find_sessions_of,
    find_tool_folders,
    is_session_file,
    list_sessions_in,
)
from ..store.store import Beginning
from ..text import SHORT, format_count
from .environment import find_facts, get_current_folder
from .output import as_json, format_examples, print_json
from .resolve import PROGRAM, clean_argument, open_library
from .terminal import print_lines, print_warning, show_progress
from .timeparse import parse_moment
from .unite import describe_kept_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..sessions.batch import ImportedFile
    from ..sessions.import_ import ImportedTape
    from ..store.recorded_tape import ImportReport
    from ..store.store import Store
    from .group import GlobalOptions


STDIN = "-"
AUTO = "auto"
_TOOLS = {tool: tool for tool in SESSION_FORMATS if tool not in FORMATS} | {"gemini-cli": "gemini"}
"""Name for --from → the agent; `gemini` alone is the array of the API."""
_WATCH_INTERVAL = 0.25
"""Seconds between two looks at the files that are watched."""
_MAX_LOOKS = 3
"""A file that is written without a pause is read at every such look."""
_LOOKS_A_SEARCH = 2
"""New files are searched for at every such look."""


def _name_agents() -> str:
    *first, last = (row.title for row in SESSION_FORMATS.values() if row.folders)
    return f"{', '.join(first)} and {last}"


@click.command(
    name="import",
    epilog=format_examples(
        "tape import auto",
        "tape import auto --from codex --since 30d",
        "tape import session.jsonl",
        "tape log 3f2a --json | tape --store /backup import -",
        "tape export 3f2a --to gemini | tape import --from gemini -",
    ),
)
@click.argument("file", metavar="FILE|FOLDER|auto")
@click.option(
    "--from",
    "form",
    type=click.Choice(["jsonl", *_TOOLS, *FORMATS]),
    default="jsonl",
    show_default=True,
    help="What wrote it; a session of another agent is recognized without it.",
)
@click.option("--since", metavar="TIME", help="Only files that were written since then.")
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Only sessions that worked in this folder, or below it.",
)
@click.option("--watch", is_flag=True, help="Keep importing what is written, until Ctrl+C.")
@as_json
@click.pass_obj
def import_(
    options: GlobalOptions,
    file: str,
    form: str,
    since: str | None,
    project: Path | None,
    watch: bool,
    as_json: bool,
) -> int:
    """Import a tape from FILE, or from standard input with `-`; or other agents' sessions.

    `auto` finds the sessions of ALL_AGENTS on this machine, and --from, --since and --project
    choose among them. FOLDER imports those below it, FILE one. Branches stay branches, compactions
    become anchors, and sub-agents tapes of their own. Importing again adds what is new, to the same
    tape; `claude:UUID` is a REF of it. --watch follows sessions that are being written. As JSON it
    is {tapes [{id, path, title, added, damaged, unknown, unknown_kinds, branches, tool, session,
    source, version, left_out, doubles}], failed [{source, why}]}: entries added, lines that could
    not be read, lines that were kept whole because they were not understood, also of each kind, and
    how many things of each kind are not on the tape: lines written twice (repeated), lines that say
    what another line says (covered), entries of the session that this one began with (copied),
    results cut short (not_whole), counts of tokens that are not understood (unknown_count). doubles
    is the id of another tape with the history that this one begins with: imports of earlier
    versions made two.

    A FILE of ours is what `tape export` wrote, the entries of one path as `tape log --json` prints
    them, or lines {"type":…,"data":{…}} as `tape append` takes them. Every hash is checked, and the
    tape is created whole or not at all. Importing it again adds nothing, and of a copy that was
    continued elsewhere what is new there: where both sides moved a branch, the other end becomes
    main.other, and nothing is dropped. --json prints {id, path, added, entries, lost, moves,
    kept_ends}: entries added, entries in the file, blobs that are named but missing from it, and,
    for a tape that was here, moves of branches, titles and labels that came, and branches that both
    sides moved.

    With --from and an API's name, FILE is the array of messages of a request to it, or the whole
    request. Calls without results, results without calls and other faults are recorded as they
    are; `tape export --to` repairs them. --json adds {unsent}: parts that are not messages, which
    are kept but never sent.
    """
    path = Path(file)
    if file == AUTO or path.is_dir():
        batch = _Batch(options, _TOOLS.get(form), since, project, as_json=as_json)
        if form in FORMATS:
            raise UsageError(f"--from {form} is for a FILE: name one, or an agent")
        return batch.run(None if file == AUTO else path, watch=watch)
    if watch or since or project:
        raise UsageError("--watch, --since and --project go with `auto` or a FOLDER")
    with _open_source(file) as source, open_library(options) as (store, _):
        if form not in FORMATS or form == "gemini":
            imported = _import_session(store, source, file, _TOOLS.get(form))
            if imported is not None:
                _print_sessions(imported, (), as_json=as_json, one_file=True)
                return 0
        _import_tape(store, source, form, as_json=as_json)
    return 0


import_.help = (import_.help or "").replace("ALL_AGENTS", _name_agents())
globals()["import"] = import_  # the command's name is a Python keyword


def _import_tape(store: Store, source: BinaryIO, form: str, *, as_json: bool) -> None:
    """Import a tape; a message array and bare entries are taken for work in this folder."""
    here = clean_argument(get_current_folder())
    project = locate_repository(here)
    beginning = Beginning(here, PROGRAM, project=project, **find_facts(project)._asdict())
    if form in FORMATS:
        done: ImportReport = import_array(store, source.read(), form, beginning)
    else:
        done = import_file(store, source, beginning)
    if isinstance(done, ArrayImportReport) and done.unsent:
        parts = format_count(done.unsent, "part")
        are = "is not a message" if done.unsent == 1 else "are not messages"
        print_warning(f"{parts} of it {are} of {form}: kept on the tape, never sent")
    if done.lost:
        are = "is" if done.lost == 1 else "are"
        print_warning(
            f"{format_count(done.lost, 'blob')} that its entries name {are} not in the file"
        )
    if as_json:
        print_json(done)
    elif isinstance(done, FileImportReport) and done.moves:
        came = f"{format_count(done.added, 'entry')}, {format_count(done.moves, 'move')}"
        print_lines([f"{done.id[:SHORT]}: {came}", *describe_kept_ends(done.kept_ends)])
    elif done.added:
        count = format_count(done.added, "entry")
        print_lines(
            [f"{done.id[:SHORT]} now has {count}; continue with `tape append {done.id[:SHORT]}`"]
        )
    else:
        print_lines([f"{done.id[:SHORT]} is already in the store: nothing added"])


def _import_session(
    store: Store, source: BinaryIO, file: str, tool: str | None
) -> list[ImportedTape] | None:
    """Import a session of another agent; None if the file is none and no agent was named."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(file)
        if file == STDIN:
            path = Path(scratch, "session.jsonl")
            with path.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            source.seek(0)
        if tool is None and not is_session_file(path):
            return None
        beginning = Beginning(clean_argument(get_current_folder()), PROGRAM)
        find = cache(find_facts)
        imported: list[ImportedTape] = []
        sources = list_sessions_in(path) if file != STDIN else [SessionFile(path)]
        for session_file in sources:
            name = STDIN if file == STDIN else session_file._replace(path=path.absolute()).name
            with open_locked_session(store, session_file, tool) as (session, digest, _):
                imported += import_session(store, session, beginning, name, digest, find_facts=find)
        return imported


class _Batch:
    """The import of many sessions: what is wanted, and what happened."""

    def __init__(
        self,
        options: GlobalOptions,
        tool: str | None,
        since: str | None,
        project: Path | None,
        *,
        as_json: bool,
    ) -> None:
        self.options, self.tool, self.as_json = options, tool, as_json
        self.since = parse_timestamp(parse_moment(since, read_clock())) * 1000 if since else 0
        self.project = None if project is None else os.path.realpath(project)
        self.reported: set[str] = set()
        """Files whose errors were reported."""
        self.refused: dict[str, FileStamp | None] = {}
        """Watched file that is no session → its stamp."""
        self.looks: dict[str, tuple[FileStamp, int]] = {}
        """Watched file → its stamp, and how often it has changed since it was read."""

    def run(self, folder: Path | None, *, watch: bool) -> int:
        """Import what a folder has, or every agent on this machine; return the exit code."""
        with open_library(self.options) as (store, _):
            memory = ImportMemory(store)
            sources = self._find(folder, is_announced=not self.as_json)
            code = self._import(store, sources, memory, is_last=not watch)
            if not watch:
                return code
            print_lines([] if self.as_json else ["watching; Ctrl+C ends it"])
            look = 0
            while True:
                sys.stdout.flush()
                time.sleep(_WATCH_INTERVAL)
                look += 1
                if look % _LOOKS_A_SEARCH == 0:
                    sources = self._find(folder, is_announced=False)
                changed = [*self._list_changed(sources, memory)]
                if changed:
                    self._import(store, changed, memory, is_last=False, waits=True)

    def _list_changed(
        self, sources: list[SessionFile], memory: ImportMemory
    ) -> Iterator[SessionFile]:
        """Yield the watched files that are to be read now: their last line is written by then.

        stamp at each look    A  A  A  B  C  D  D
        read                     ×           ×       (D: it has changed at three looks)

        A file that is no session is not read again until it changes.
        """
        stamps: dict[Path, FileStamp | None] = {}
        for source in sources:
            if source.path not in stamps:
                stamps[source.path] = FileStamp.find(source.path)
            stamp = stamps[source.path]
            known = memory.files.get(source.name)
            if stamp is None or (known is not None and known.is_unchanged(source, stamp)):
                continue
            before, looks = self.looks.get(source.name, (None, 0))
            is_settled = stamp == before or looks + 1 >= _MAX_LOOKS
            self.looks[source.name] = stamp, 0 if is_settled else looks + 1
            if is_settled and self.refused.get(source.name) != stamp:
                yield source

    def _find(self, folder: Path | None, *, is_announced: bool) -> list[SessionFile]:
        """Return the sessions to import, newest file last, and say what was found."""
        sessions: list[SessionFile] = []
        if folder is not None:
            sessions = find_sessions_in(folder.absolute())
        else:
            for tool, place in find_tool_folders(os.environ).items():
                if self.tool in {None, tool}:
                    of_tool = find_sessions_of(tool, place)
                    sessions += of_tool
                    if is_announced and of_tool:
                        count = format_count(len(of_tool), "session")
                        print_lines([f"{SESSION_FORMATS[tool].title}: {count} in {place}"])
        if is_announced and not sessions:
            print_lines(["no sessions of other agents were found"])
        if not self.since:
            return sessions
        return [session for session in sessions if _read_modified(session.path) >= self.since]

    def _import(
        self,
        store: Store,
        sources: list[SessionFile],
        memory: ImportMemory,
        *,
        is_last: bool,
        waits: bool = False,
    ) -> int:
        beginning = Beginning(clean_argument(get_current_folder()), PROGRAM)
        tapes: list[ImportedTape] = []
        failed: list[ImportedFile] = []
        with show_progress("imported session") as tell:
            for done in import_files(
                store,
                _count_sources(sources, tell),
                beginning,
                memory,
                tool=self.tool,
                wanted=self._is_wanted,
                find_facts=cache(find_facts),
            ):
                tapes += done.tapes
                if isinstance(done.error, UsageError):
                    self.refused[done.source.name] = FileStamp.find(done.source.path)
                if done.error is None:
                    self.reported.discard(done.source.name)
                elif done.source.name not in self.reported:
                    self.reported.add(done.source.name)
                    failed.append(done)
        if tapes:
            memory.save()
        if waits:
            tapes = [replace(tape, doubles=None) for tape in tapes if tape.added]
        if is_last or tapes or failed or not waits:
            _print_sessions(tapes, failed, as_json=self.as_json, one_file=False)
        return 1 if failed else 0

    def _is_wanted(self, cwd: str | None) -> bool:
        if self.project is None:
            return True
        if "\0" in (cwd or ""):  # of another program: it is no folder
            return False
        real = os.path.realpath(cwd or "/")
        return real == self.project or real.startswith(f"{self.project}{os.sep}")


def _count_sources(
    sources: list[SessionFile], tell: Callable[[int, int], None]
) -> Iterator[SessionFile]:
    for number, source in enumerate(sources):
        tell(number, len(sources))
        yield source


def _read_modified(path: Path) -> int:
    """Return when a file was written, in nanoseconds since 1970; 0 if it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _print_sessions(
    tapes: list[ImportedTape], failed: Iterable[ImportedFile], *, as_json: bool, one_file: bool
) -> None:
    """Print what was imported, one line for each tape that has something new."""
    failed = [*failed]
    if as_json:
        wrong = [{"source": failure.source.name, "why": str(failure.error)} for failure in failed]
        print_json(
            _describe_import(tapes, one_file=one_file) | ({} if one_file else {"failed": wrong})
        )
        return
    for failure in failed:
        print_warning(f"{failure.source.name}: {failure.error}")
    for tape in tapes:
        _print_tape(tape)
    for tool, kinds in _count_unknown(tapes).items():
        print_warning(f"{tool}: {describe_unknown(kinds)}")
    new = len({tape.id for tape in tapes if tape.added})
    if one_file and not new:
        print_lines([f"{tapes[0].id[:SHORT]} is already in the store: nothing added"])
    elif not one_file:
        entries = sum(tape.added for tape in tapes)
        words = f"{format_count(entries, 'entry')} in {format_count(new, 'tape')}"
        print_lines([f"added {words}" if new else "nothing new"])


def _print_tape(tape: ImportedTape) -> None:
    if tape.damaged:
        lines = format_count(tape.damaged, "line")
        print_warning(f"{tape.id[:SHORT]}: {lines} could not be read: left out")
    if tape.doubles is not None:
        ours, place = tape.id[:SHORT], Path(tape.source)
        source = shlex.quote(tape.source) if place.is_file() else "auto"
        print_warning(
            f"{ours} begins with what is also on {tape.doubles[:SHORT]}, which counts twice: "
            f"`tape rm {ours}` and `tape import {source}` make it a branch there"
        )
    if not tape.added:
        return
    for kind, number in tape.left_out.items():
        if remark := describe_left_out(kind, number):
            print_warning(f"{tape.id[:SHORT]}: {remark}")
    count = format_count(tape.added, "entry")
    print_lines([f"{tape.id[:SHORT]}  {count} added  {tape.tool}  {tape.title}"])


def _count_unknown(tapes: list[ImportedTape]) -> dict[str, Counter[str]]:
    """Return agent → kinds of lines that were not understood, of files that are new."""
    counts: dict[str, Counter[str]] = {}
    for tape in tapes:
        if tape.unknown_kinds and tape.added == tape.entries:
            counts.setdefault(tape.tool, Counter()).update(tape.unknown_kinds)
    return counts


def _describe_import(tapes: list[ImportedTape], *, one_file: bool) -> dict[str, object]:
    described: dict[str, object] = {"tapes": [*tapes]}
    if not one_file:
        return described
    first = tapes[0]
    return {
        **described,
        "id": first.id,
        "path": first.path,
        "added": first.added,
        "entries": first.entries,
        "lost": 0,
        "branches": first.branches,
        "skipped": first.damaged,
        "version": first.version,
    }


@contextmanager
def _open_source(file: str) -> Iterator[BinaryIO]:
    """Open the source so that it can be read twice: a stream is copied to a temporary file."""
    if file == STDIN and sys.stdin.isatty():
        raise UsageError("standard input is a terminal: name a FILE, or pipe one in")
    if file != STDIN and not Path(file).exists():
        raise NotFound(f"no file {file!r}")
    with nullcontext(sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as source:
        if file != STDIN and source.seekable():
            yield source
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(source, copy)
            copy.seek(0)
            yield cast("BinaryIO", copy)
