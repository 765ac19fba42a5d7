"""What the calls on one tape did to files of one name, on all its branches.

Only lines that may tell of it are decoded: a name that a line does not hold, it does not name.
"""

from __future__ import annotations

import os.path
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ..blocks import NO_JSON, ToolCall, select_tool_calls
from ..checked import LineChecker, select_checked_runs
from ..entries import Assistant, Checkpoint, ToolResult, ToolStart
from ..errors import NotFound, TapeError
from ..filecalls import FileCall, FileRead, FileWrite, parse_file_calls
from ..line import read_type
from ..phase import ORIGIN
from .around import PhaseNotes, WorkContext
from .attribute import SeenVersion
from .places import find_file_location
from .seen import extract_seen_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..line import Entry
    from ..phase import PhaseFile
    from ..store import Store
    from ..tape import Tape
    from .attribute import ChangeWork
    from .places import FileLocation

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_BLOB = b'"$blob"'


class FileChange(NamedTuple):
    """What was done to one file."""

    op: str
    where: FileLocation
    source: str | None
    """Absolute path of the file that was moved here."""
    work: ChangeWork


class FileEvent(NamedTuple):
    """A deed, and the entry that tells of it."""

    time: str
    tape: str
    n: int
    entry: str
    place: int
    """Which of the files that the entry touches."""
    branch: str
    model: str | None
    prompt: str | None
    deed: FileChange
    known: bool
    """False when no result tells whether it ran."""
    is_copy: bool
    """True in the copy of another tape's past."""


class _CallPlace(NamedTuple):
    """A place on the tape that tells of a call or of files."""

    phase: PhaseNotes
    offset: int
    entry: Entry
    first: int
    """How many files the calls before it in the entry touch."""
    call: ToolCall


class _CreatedDetails(Struct, gc=False):
    created: bool | None = None


_DETAILS = msgspec.json.Decoder(_CreatedDetails | None)
_NO_CALL = ToolCall(id="", name="")


def read_file_events(
    store: Store, folder: str, name: str, skipped: Callable[[str], None]
) -> list[FileEvent]:
    """Return what the calls on the tape in a folder did to files called `name`.

    Of a tape that cannot be read nothing; `skipped` is told.
    """
    try:
        with store.open_folder(folder) as tape:
            return _CallReader(tape, name, skipped).read()
    except (OSError, TapeError) as error:
        skipped(str(error))
        return []


class _CallReader:
    """One tape while it is read."""

    def __init__(self, tape: Tape, name: str, skipped: Callable[[str], None]) -> None:
        self.tape, self.name, self.skipped = tape, name, skipped
        self.needle = max(_PLAIN.findall(name), key=len, default="").encode()
        self.around = WorkContext(tape, skipped)
        self.waiting: dict[str, _CallPlace] = {}
        self.ran: dict[str, Raw] = {}
        """Arguments of the calls whose bodies surely began to run."""
        self.has_starts = False
        self.found: list[FileEvent] = []

    def read(self) -> list[FileEvent]:
        """Return all that is found, phase by phase."""
        named = self.tape.refs().phases() | {ORIGIN}
        for phase in self.tape.phases.list_with_origin():
            if phase in named:
                try:
                    self._read_phase(phase)
                except (OSError, TapeError) as error:
                    self.skipped(f"{self.tape.id[:8]}: {error}")
        for told in self.waiting.values():
            if told.call.id in self.ran or not self.has_starts:  # the rest never ran
                self._add_call_events(told, None)
        return self.found

    def _read_phase(self, name: str) -> None:
        with self.tape.phases.open(name) as file:
            if not self.waiting and not self._has_mention(file):
                return
            phase = PhaseNotes(name, self.tape.find_branch(name), [], [])
            check = LineChecker(name, self.tape.phases.redacted_ids, self.around.report_skipped)
            for offset, line in select_checked_runs(file.read_runs(0, file.size()), check):
                kind = read_type(line)
                phase.note_line(offset, kind)
                self._read_line(phase, offset, kind, line)

    def _has_mention(self, file: PhaseFile) -> bool:
        runs = file.read_runs(0, file.size())
        return any(self.needle in run or _BLOB in run for _, run in runs)

    def _read_line(self, phase: PhaseNotes, offset: int, kind: str, line: bytes) -> None:
        match kind:
            case "assistant" | "checkpoint" if self.needle in line or _BLOB in line:
                entry = self.around.entry(line)
                if entry is not None:
                    self._note_calls(_CallPlace(phase, offset, entry, 0, _NO_CALL))
            case "tool.start" | "tool.result":
                self.has_starts = self.has_starts or kind == "tool.start"
                if any(call.encode() in line for call in self.waiting):
                    self._read_answer(self.around.entry(line))

    def _note_calls(self, told: _CallPlace) -> None:
        match told.entry.data:
            case Assistant(content=content):
                for call in select_tool_calls(content):
                    calls = parse_file_calls(call)
                    if any(self._has_name(one.path) for one in calls):
                        self.waiting[call.id] = told._replace(call=call)
                    told = told._replace(first=told.first + len(calls))
            case Checkpoint(files=files):
                for at, state in enumerate(files):
                    blob = state.after or state.before
                    if blob is not None and self._has_name(state.path):
                        with suppress(NotFound):  # what it held is not known any more
                            text = self.tape.blobs.read(blob.hash).decode("utf-8", "replace")
                            self._add_seen_version(told._replace(first=at), state.path, text)

    def _has_name(self, path: str) -> bool:
        return os.path.basename(path) == self.name  # noqa: PTH119 (text)

    def _read_answer(self, entry: Entry | None) -> None:
        match entry and entry.data:
            case ToolStart(call_id=call, args=args) if call in self.waiting:
                self.ran[call] = args
            case ToolResult(call_id=call, is_error=is_error) if call in self.waiting:
                told = self.waiting.pop(call)
                if not is_error:
                    self._add_call_events(told, entry)

    def _add_call_events(self, told: _CallPlace, answer: Entry | None) -> None:
        """Note what a call did to files of the name that is looked for."""
        calls = parse_file_calls(told.call, self.ran.get(told.call.id, NO_JSON))
        cwd = self.around.cwd(told.phase, told.offset)
        for at, call in enumerate(calls):
            work = _read_call_work(call, answer)
            if work is not None and self._has_name(call.path):
                where = find_file_location(call.path, cwd, self.around.find_newest_cwd)
                source = None if call.source is None else _join_path(cwd, call.source)
                deed = FileChange(call.op, where, source, work)
                self._add_event(told._replace(first=told.first + at), deed, answer)

    def _add_seen_version(self, told: _CallPlace, path: str, text: str) -> None:
        cwd = self.around.cwd(told.phase, told.offset)
        where = find_file_location(path, cwd, self.around.find_newest_cwd)
        self._add_event(told, FileChange("read", where, None, SeenVersion(text)), told.entry)

    def _add_event(self, told: _CallPlace, deed: FileChange, answer: Entry | None) -> None:
        entry, phase = told.entry, told.phase
        self.found.append(
            FileEvent(
                (answer or entry).time,
                self.tape.id,
                (answer or entry).n,
                entry.id,
                told.first,
                phase.branch,
                _describe_model(entry),
                self.around.prompt(phase, told.offset),
                deed,
                known=answer is not None,
                is_copy=phase.name == ORIGIN,
            )
        )


def _describe_model(entry: Entry) -> str | None:
    if not isinstance(entry.data, Assistant):
        return None
    return "/".join(filter(None, (entry.data.provider, entry.data.model))) or None


def _join_path(cwd: str, path: str) -> str:
    return os.path.normpath(os.path.join(cwd, path))  # noqa: PTH118 (text)


def _read_call_work(call: FileCall, answer: Entry | None) -> ChangeWork | None:
    """Return what a call did, as far as its answer tells; None for a look at a part."""
    result = answer.data if answer and isinstance(answer.data, ToolResult) else None
    match call.work:
        case FileRead(whole):
            text = extract_seen_text(result) if whole and result else None
            return None if text is None else SeenVersion(text)
        case FileWrite(text) if result and _is_created_file(result):
            return FileWrite(text, created=True)
        case work:
            return work


def _is_created_file(result: ToolResult) -> bool:
    """Tell whether a tool said that there was no such file before."""
    try:
        details = _DETAILS.decode(bytes(result.details) or b"null")
    except msgspec.DecodeError:  # another tool's details
        return False
    return details is not None and details.created is True
