"""What the calls on one tape did to files of one name, on all its branches.

Only lines that may say something about it are decoded: a file that a line does not name, it does
not touch. Phases are read one after the other, each in order of its lines:

    line                           what it means
    assistant, with a call         the call waits for its result
    tool.start                     the call ran, perhaps with other arguments
    tool.result                    the call is done: what it recorded of files counts, and only
                                   where it recorded nothing what the call says, unless it failed
    checkpoint                     the files it names had that content; after a restore another
    (the end)                      a call that waits may have run, unless tools record their start
                                   on this tape and it has none
"""

from __future__ import annotations

import os.path
import re
from contextlib import suppress
from functools import cached_property
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct, UnsetType

from ..errors import Damaged, NotFound, TapeError
from ..files.calls import FileCall, FileDelete, FileRead, FileWrite, parse_file_calls
from ..files.changes import is_link_mode
from ..files.work_folder import WorkFolder, find_work_folder
from ..model.entries import (
    NO_JSON,
    Assistant,
    ChangedFile,
    Checkpoint,
    Context,
    SavedFile,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
    join_texts,
    select_tool_calls,
)
from ..model.line import (
    blank_redacted_data,
    decode_line,
    has_valid_data,
    is_data_redacted,
    read_header,
    read_type,
)
from ..store.path import FSCK_ADVICE, LineChecker, select_checked_runs, split_runs
from ..store.phase import ORIGIN
from ..store.refs import read_head_at
from .replay import SeenVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.line import Entry
    from ..store.store import Store
    from ..store.tape import Tape
    from .replay import ChangeWork


T = TypeVar("T")

_NUMBERED = re.compile(r"[ ]*([0-9]+)(?:→|\t| ?\| ?|: )(.*)", re.DOTALL)
_NOTICE = re.compile(r"\[[^\]\n]*(lines|limit|truncated)[^\]\n]*\]\s*\Z", re.IGNORECASE)
_PAGE = 2000
"""Line limits of agents: a listing of that length may not be the whole file."""


def extract_seen_text(answer: ToolResult) -> str | None:
    """Return the text of a file that was read completely; None if that is unclear.

    Lines may be numbered; then a remark may follow.
    """
    text = answer.whole if answer.whole is not None else join_texts(answer.content)
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    numbered = list(takewhile(bool, map(_NUMBERED.fullmatch, lines)))
    if not numbered:
        has_more = bytes(answer.details) not in {bytes(NO_JSON), b"null"} or _NOTICE.search(text)
        return None if has_more else text
    matches = [match for match in numbered if match is not None]
    rest = "".join(lines[len(matches) :]).strip()
    is_whole = [int(match[1]) for match in matches] == list(range(1, len(matches) + 1))
    if not is_whole or len(matches) >= _PAGE or (rest and not rest.startswith("<")):
        return None
    return "".join(f"{match[2]}\n" for match in matches)


class FileLocation(NamedTuple):
    """The possible paths of a file, normalized without following links."""

    paths: tuple[str, ...]
    """Absolute: its old path, and its path in the project's new folder."""
    tail: str | None = None
    """Last parts of its path, from the project's folder on, if that no longer exists and the
    tape does not have a new one."""
    versioned: VersionedPath | None = None
    """Its place in the repository that the tape names, if it is inside of it."""


class VersionedPath(NamedTuple):
    """A file by its place in a repository: the same one in every checkout."""

    repository: str
    """`host/owner/name`."""
    path: str
    """From the top of the repository."""
    top: str
    """The top of the checkout that it was named in."""


def find_versioned_path(path: str, top: str, repository: str) -> VersionedPath | None:
    """Return the place of a file in the repository that is checked out at `top`, if it is there."""
    inside = f"{top.rstrip('/')}/"
    if not path.startswith(inside):
        return None
    return VersionedPath(repository, path.removeprefix(inside), top)


def find_file_location(
    path: str, folder: WorkFolder, newest: Callable[[], str | None]
) -> FileLocation:
    """Return where a file is that was named in a folder.

    `newest` returns where its tape works now.
    """
    was = os.path.normpath(os.path.join(folder.cwd, path))  # text, and not looked at
    versioned = None
    if folder.project is not None and folder.repository is not None:
        versioned = find_versioned_path(was, folder.project, folder.repository)
    inside = f"{folder.cwd.rstrip('/')}/"
    if os.path.isdir(folder.cwd) or not was.startswith(inside):
        return FileLocation((was,), versioned=versioned)
    rest, now = was.removeprefix(inside), newest()
    if now is not None and os.path.isdir(now):
        return FileLocation((was, os.path.join(now, rest)), versioned=versioned)
    tail = f"/{os.path.basename(inside[:-1])}/{rest}"
    return FileLocation((was,), tail, versioned)


_MOVES = frozenset({"start", "meta"})
_ASKS = frozenset({"user", "context"})
_TYPED = frozenset({"steering", "follow_up"})
"""Origins of context entries that a person typed."""


class PhaseNotes(NamedTuple):
    """A phase, and the byte offsets of entries in it that set the working folder or ask."""

    name: str
    branch: str
    moves: list[int]
    asks: list[int]


class _PhaseContext(NamedTuple):
    """The folder and the prompt at the start of a phase."""

    folder: WorkFolder | None = None
    prompt: str | None = None


class CallContext:
    """The working folder and the prompt at places of one tape.

    Lines that cannot be read are left out and reported to `skipped`.
    """

    def __init__(self, tape: Tape, skipped: Callable[[str], None]) -> None:
        self.tape, self.skipped = tape, skipped
        self._contexts: dict[str, _PhaseContext] = {}

    def entry(self, line: bytes) -> Entry | None:
        """Return the entry of a line; None if it does not verify."""
        try:
            header = read_header(line)
            if not has_valid_data(line, header):
                line = blank_redacted_data(line, self.tape.phases.read_redacted_ids())
                if not is_data_redacted(line, header):
                    raise Damaged(
                        f"entry {header.id[:12]}: its data does not match its hash; {FSCK_ADVICE}"
                    )
            return decode_line(line, self.tape.blobs.text)
        except TapeError as error:
            self.report_skipped(str(error))
            return None

    def report_skipped(self, text: str) -> None:
        """Report something on this tape that is left out."""
        self.skipped(f"{self.tape.id[:8]}: {text}")

    def folder(self, phase: PhaseNotes, offset: int) -> WorkFolder:
        """Return the working folder at a place; of an unknown one, all is empty."""
        own = self._read_newest(phase, phase.moves, offset, read_work_folder)
        return own or self._read_phase_context(phase.name).folder or WorkFolder("", None)

    def prompt(self, phase: PhaseNotes, offset: int) -> str | None:
        """Return the first line of the newest prompt before a place."""
        own = self._read_newest(phase, phase.asks, offset, read_prompt)
        return self._read_phase_context(phase.name).prompt if own is None else own

    @cached_property
    def newest_cwd(self) -> str | None:
        """The folder that the tape works in now; None where nothing says."""
        lines = (
            line for _, _, line in self.tape.phases.read_all_lines() if read_type(line) in _MOVES
        )
        moves = [entry for entry in map(self.entry, lines) if entry and read_work_folder(entry)]
        newest = read_work_folder(max(moves, key=lambda entry: entry.time, default=None))
        return newest and newest.cwd

    def _read_newest(
        self,
        phase: PhaseNotes,
        offsets: list[int],
        end: int,
        read: Callable[[Entry | None], T | None],
    ) -> T | None:
        """Return the value of `read` for the newest of these lines before `end`."""
        with self.tape.phases.open(phase.name) as file:
            entries = (self.entry(file.line_at(at)) for at in reversed(offsets) if at < end)
            return next((value for value in map(read, entries) if value is not None), None)

    def _read_phase_context(self, phase: str) -> _PhaseContext:
        """Return what the path that leads to a phase says, read from its end."""
        if phase in self._contexts:
            return self._contexts[phase]
        folder: WorkFolder | None = None
        prompt: str | None = None
        begin = read_head_at(self.tape.phases, "", phase, 0)
        lines = (
            line
            for segment in islice(self.tape.walk_path_back(begin), 1, None)
            for _, line in segment.read_checked_lines_back(self.report_skipped)
        )
        for line in lines:
            kind = read_type(line)
            if kind in _MOVES and folder is None:
                folder = read_work_folder(self.entry(line))
            elif kind in _ASKS and prompt is None:
                prompt = read_prompt(self.entry(line))
            if folder is not None and prompt is not None:
                break
        self._contexts[phase] = _PhaseContext(folder, prompt)
        return self._contexts[phase]


def read_work_folder(entry: Entry | None) -> WorkFolder | None:
    """Return the working folder that an entry sets; None if it sets none."""
    folder = find_work_folder(() if entry is None else (entry,))
    return folder if folder.cwd else None


def read_prompt(entry: Entry | None) -> str | None:
    """Return the first line of what a person typed; None for other entries."""
    match entry and entry.data:
        case User(content=content):
            pass
        case Context(origin=origin, content=content) if origin in _TYPED:
            pass
        case _:
            return None
    return join_texts(content).strip().partition("\n")[0].rstrip()


_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_BLOB = b'"$blob"'
_FILES = b'"files":['
_VERSIONS = 4
"""More than the events of one file that an entry gives."""
_ANSWERS_BACK = 64
"""How many answers before a result are searched for its call."""


class FileChange(NamedTuple):
    """A change of one file."""

    op: str
    where: FileLocation
    source: str | None
    """Absolute path of the file that was moved here."""
    work: ChangeWork


class FileEvent(NamedTuple):
    """What was done to a file, and the entry that says so."""

    time: str
    tape: str
    n: int
    entry: str
    place: int
    """Index among the files that the entry touches."""
    branch: str
    model: str | None
    prompt: str | None
    deed: FileChange
    known: bool
    """False if no result shows whether it ran."""
    is_copy: bool
    """True in a copied past of another tape."""


class _CallPlace(NamedTuple):
    """A place on the tape where a call or a checkpoint is."""

    phase: PhaseNotes
    offset: int
    entry: Entry
    first: int
    """Number of files that earlier calls of the entry touch."""
    call: ToolCall


class _CreatedDetails(Struct, gc=False):
    created: bool | None = None


_DETAILS = msgspec.json.Decoder(_CreatedDetails | None)
_NO_CALL = ToolCall(id="", name="")


def read_file_events(
    store: Store, folder: str, name: str, skipped: Callable[[str], None]
) -> list[FileEvent]:
    """Return what the calls on the tape in a folder did to files called `name`.

    A tape that cannot be read has no events and is reported to `skipped`.
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
        self.around = CallContext(tape, skipped)
        self.waiting: dict[str, _CallPlace] = {}
        self.answers: list[tuple[PhaseNotes, int]] = []
        """Where the answers are, oldest first: one of them made the call of a result."""
        self.ran: dict[str, Raw] = {}
        """Arguments of the calls that certainly started."""
        self.has_starts = False
        self.found: list[FileEvent] = []

    def read(self) -> list[FileEvent]:
        """Return all file changes, phase by phase."""
        named = self.tape.refs().phases() | {ORIGIN}
        for phase in self.tape.phases.list_with_origin():
            if phase in named:
                try:
                    self._read_phase(phase)
                except (OSError, TapeError) as error:
                    self.skipped(f"{self.tape.id[:8]}: {error}")
        for call in self.waiting.values():
            if call.call.id in self.ran or not self.has_starts:  # the rest never ran
                self._add_call_events(call, None)
        return self.found

    def _read_phase(self, name: str) -> None:
        with self.tape.phases.open(name) as file:
            runs = (run for _, run in file.read_runs(0, file.size()))
            if not self.waiting and not any(self.needle in run or _BLOB in run for run in runs):
                return
            phase = PhaseNotes(name, self.tape.find_branch(name), [], [])
            redacted = self.tape.phases.read_redacted_ids
            check = LineChecker(name, redacted, self.around.report_skipped)
            checked = select_checked_runs(file.read_runs(0, file.size()), check)
            for offset, line in split_runs(checked):
                kind = read_type(line)
                if kind in _MOVES:
                    phase.moves.append(offset)
                elif kind in _ASKS:
                    phase.asks.append(offset)
                else:
                    self._read_line(phase, offset, kind, line)

    def _read_line(self, phase: PhaseNotes, offset: int, kind: str, line: bytes) -> None:
        if kind == "assistant":
            self.answers.append((phase, offset))
        match kind:
            case "assistant" | "checkpoint" if self.needle in line or _BLOB in line:
                entry = self.around.entry(line)
                if entry is not None:
                    self._read_calls(_CallPlace(phase, offset, entry, 0, _NO_CALL))
            case "tool.start" | "tool.result":
                self.has_starts = self.has_starts or kind == "tool.start"
                is_record = _FILES in line and self.needle in line
                if is_record or any(call.encode() in line for call in self.waiting):
                    self._read_answer(phase, offset, self.around.entry(line))

    def _read_calls(self, place: _CallPlace) -> None:
        match place.entry.data:
            case Assistant(content=content):
                for call in select_tool_calls(content):
                    calls = parse_file_calls(call)
                    if any(self._has_name(call.path) for call in calls):
                        self.waiting[call.id] = place._replace(call=call)
                    place = place._replace(first=place.first + len(calls))
            case Checkpoint(files=files):
                for at, state in enumerate(files):
                    if self._has_name(state.path) and not is_link_mode(state.mode):
                        for number, saved in enumerate((state.before, state.after)):
                            number_in_entry = _VERSIONS * at + number
                            self._add_saved(
                                place._replace(first=number_in_entry), state.path, saved
                            )

    def _add_saved(self, place: _CallPlace, path: str, saved: SavedFile | UnsetType | None) -> None:
        """Note a version of a file that a checkpoint has; None of one that did not exist."""
        text: str | None = ""
        if saved is not None:
            text = self._read_version(saved.blob) if saved and saved.blob else None
        if text is not None:
            look = FileCall("read", path, FileRead())
            self._add_event(place, look, SeenVersion(text, exact=True), place.entry)

    def _read_version(self, digest: str) -> str | None:
        """Return the text of a blob; None where it is not known any more."""
        with suppress(NotFound):
            return self.tape.blobs.read(digest).decode("utf-8", "replace")
        return None

    def _has_name(self, path: str) -> bool:
        return os.path.basename(path) == self.name

    def _read_answer(self, phase: PhaseNotes, offset: int, entry: Entry | None) -> None:
        match entry and entry.data:
            case ToolStart(call_id=call, args=args) if call in self.waiting:
                self.ran[call] = args
            case ToolResult() as result:
                assert entry is not None
                place = self.waiting.pop(result.call_id, None)
                changed = [file for file in result.files if self._is_about(file)]
                if changed:
                    place = place or self._find_call(result.call_id)
                    place = place or _CallPlace(phase, offset, entry, 0, _NO_CALL)
                    if self._add_recorded_events(place, entry, changed):
                        return
                if place and not result.is_error and bool(changed) == bool(result.files):
                    self._add_call_events(place, entry)

    def _is_about(self, file: ChangedFile) -> bool:
        return self._has_name(file.path) or bool(file.source and self._has_name(file.source))

    def _find_call(self, call_id: str) -> _CallPlace | None:
        """Return where a call was made whose arguments do not name the file, as of a command."""
        for phase, offset in islice(reversed(self.answers), _ANSWERS_BACK):
            with self.tape.phases.open(phase.name) as file:
                entry = self.around.entry(file.line_at(offset))
            if entry is not None and isinstance(entry.data, Assistant):
                for call in select_tool_calls(entry.data.content):
                    if call.id == call_id:
                        return _CallPlace(phase, offset, entry, 0, call)
        return None

    def _add_recorded_events(
        self, place: _CallPlace, answer: Entry, changed: list[ChangedFile]
    ) -> bool:
        """Note what a result recorded of files; return False if it lacks bytes of one.

        A change is two events: the file was seen as it was before, then written. What was before
        belongs to the old path of a renamed file.
        """
        events: list[tuple[FileCall, ChangeWork]] = []
        calls = parse_file_calls(place.call, self.ran.get(place.call.id, NO_JSON))
        ops: dict[str, str] = {os.path.basename(call.path): call.op for call in calls}
        for file in changed:
            op = ops.get(os.path.basename(file.path)) or place.call.name or file.op
            call = FileCall(op, file.path, FileRead(), file.source)
            if file.source and self._has_name(file.source):
                events.append((call._replace(path=file.source, source=None), FileDelete()))
            if not self._has_name(file.path):
                continue
            versions = [
                self._read_version(blob.hash) if blob else None
                for blob in (file.before_blob, file.after_blob)
            ]
            before, after = versions
            if file.op == "deleted":
                events.append((call, FileDelete()))
            elif after is None:
                return False
            elif not is_link_mode(file.mode):
                is_new = file.op == "created"
                if is_new or before is not None:
                    events.append((call, SeenVersion(before or "", exact=True)))
                    call = call._replace(source=None)
                events.append((call, FileWrite(after, created=is_new)))
        number = answer.n << 16  # no other call of this answer has it
        for at, (call, work) in enumerate(events):
            self._add_event(place._replace(first=number + at), call, work, answer)
        return True

    def _add_call_events(self, place: _CallPlace, answer: Entry | None) -> None:
        """Note what a call did to files of the name that is looked for."""
        calls = parse_file_calls(place.call, self.ran.get(place.call.id, NO_JSON))
        for at, call in enumerate(calls):
            work = _read_call_work(call, answer)
            if work is not None and self._has_name(call.path):
                self._add_event(place._replace(first=place.first + at), call, work, answer)

    def _add_event(
        self, place: _CallPlace, call: FileCall, work: ChangeWork, answer: Entry | None
    ) -> None:
        (phase, offset, entry, number, _), around = place, self.around
        folder, source_entry, model = around.folder(phase, offset), answer or entry, None
        where = find_file_location(call.path, folder, lambda: around.newest_cwd)
        source = call.source and os.path.normpath(os.path.join(folder.cwd, call.source))
        if isinstance(entry.data, Assistant):
            model = "/".join(filter(None, (entry.data.provider, entry.data.model))) or None
        self.found.append(
            FileEvent(
                source_entry.time,
                self.tape.id,
                source_entry.n,
                entry.id,
                number,
                phase.branch,
                model,
                around.prompt(phase, offset),
                FileChange(call.op, where, source, work),
                known=answer is not None,
                is_copy=phase.name == ORIGIN,
            )
        )


def _read_call_work(call: FileCall, answer: Entry | None) -> ChangeWork | None:
    """Return what a call did, as far as its answer says; None for a look at a part."""
    result = answer.data if answer and isinstance(answer.data, ToolResult) else None
    if isinstance(call.work, FileRead):
        text = extract_seen_text(result) if call.work.whole and result else None
        return None if text is None else SeenVersion(text)
    if isinstance(call.work, FileWrite) and result:
        details = None
        with suppress(msgspec.DecodeError):  # another tool's details
            details = _DETAILS.decode(bytes(result.details) or b"null")
        if details is not None and details.created is True:
            return FileWrite(call.work.text, created=True)
    return call.work
