"""What the entries of a path did to files, in order, by absolute path; pure.

What an entry says of files, where paths are relative to the folder in force at that entry:

    entry                                   what it means
    --------------------------------------  ----------------------------------------------------
    start, meta with cwd                    relative paths start there from here on
    tool.result with `files`                these changes, exactly
    tool.result, its call has a checkpoint  it changed nothing
    tool.result without a record            what the call's arguments name, unless it failed:
                                            `recorded` is False, and bytes are known of a whole
                                            text only
    checkpoint of a restore                 each file became what the checkpoint says
    tool.start with `environment`           its files are there: `NAME:/path`
    tool.start without a result             the files of its checkpoint may be anything now

A version of a file is None where it does not exist. Where its bytes are not known it has no digest,
and `why` says so.
"""

from __future__ import annotations

import posixpath
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..model.entries import (
    NO_JSON,
    Assistant,
    Checkpoint,
    Meta,
    OtherEnvironment,
    SavedFile,
    Start,
    ToolResult,
    ToolStart,
    User,
    select_tool_calls,
)
from .calls import FileDelete, FileRead, FileWrite, parse_file_calls
from .work_folder import WorkFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from msgspec import Raw

    from ..model.entries import ChangedFile, FileState, ToolCall
    from ..model.line import Entry
    from .calls import FileCall

NO_FOLDER = WorkFolder("/", None)
"""What paths are relative to before an entry says it."""
ChangeOp = Literal["created", "modified", "deleted", "renamed", "mode", "unknown"]
"""`unknown` is what an unfinished call may have done."""


class KnownVersion(NamedTuple):
    """A file at one moment, as far as a tape tells."""

    digest: str | None
    """SHA-256 of its bytes (of a link: of its target) as 64 hex digits; None if not known."""
    mode: str | None = None
    """Kind and permissions as six octal digits, 100644 or 120777; None if not known."""
    blob: str | None = None
    """Digest of the blob with its bytes; None if they are not stored."""
    text: str | None = None
    """Its whole text, where only the arguments of a call have it."""
    why: str | None = None
    """Why its bytes are not known, or not stored."""


class PathChange(NamedTuple):
    """What one entry did to one file."""

    path: str
    """Absolute, without "." and ".."; in another environment behind its name and a colon."""
    op: ChangeOp
    source: str | None
    """The old absolute path of a renamed file."""
    before: KnownVersion | None
    """As it was; of a renamed file, under its old path."""
    after: KnownVersion | None
    entry: str
    """Id of the entry that tells of it: a result, a checkpoint, the start of an unfinished call."""
    n: int
    """Depth of that entry."""
    call_id: str | None
    prompt: int
    """How many prompts stand before it."""
    recorded: bool = True
    """False where only the arguments of a call tell of it."""
    environment: str | None = None
    """The name of the environment it was made in; None for the machine of the session."""
    is_restore: bool = False
    folder: WorkFolder = NO_FOLDER
    """Where the session worked."""


class _OpenCall(NamedTuple):
    """A call without a result so far."""

    call: ToolCall
    ran: Raw
    """The arguments it ran with, if they are others than the call's."""
    start: Entry | None
    checkpoint: Checkpoint | None
    cwd: str
    environment: str | None = None


def find_recorded_versions(
    entries: Iterable[Entry], where: OtherEnvironment | None = None
) -> dict[str, KnownVersion | None]:
    """Return each file as its newest record tells, by path as recorded; None where it is gone.

    A checkpoint tells of a file as the call found it, or as a restore left it. What was done in
    another environment than `where` is left out, and on this machine what came before the session
    went to another folder.
    """
    versions: dict[str, KnownVersion | None] = {}
    entries = [*entries]
    places = {
        entry.data.call_id: entry.data.environment
        for entry in entries
        if isinstance(entry.data, ToolStart)
    }
    for entry in entries:
        if not _is_about(entry.data, where, places):
            continue
        match entry.data:
            case Meta(cwd=str()) if where is None:
                versions.clear()
            case Checkpoint(files=states):
                for state in states:
                    after = state.after
                    if isinstance(after, SavedFile):
                        versions[state.path] = _read_saved(after, state.after_mode)
                    else:
                        versions[state.path] = None if after is None else _read_before(state)
            case ToolResult(files=files):
                for file in files:
                    if file.source is not None:
                        versions[file.source] = None
                    versions[file.path] = _read_versions(file)[1]
            case _:
                pass
    return versions


def _is_about(
    data: object, where: OtherEnvironment | None, places: Mapping[str, OtherEnvironment | None]
) -> bool:
    """Return whether an entry tells of files of a place; `places` has where calls ran."""
    match data:
        case Checkpoint(environment=OtherEnvironment() as other):
            return other == where
        case Checkpoint(call_id=str(call_id)) | ToolResult(call_id=call_id):
            return places.get(call_id) == where
        case Checkpoint():
            return where is None
        case _:
            return True


def is_link_mode(mode: str | None) -> bool:
    """Return whether a mode of six octal digits is that of a symbolic link."""
    return mode is not None and mode.startswith("12")


def list_file_changes(entries: Iterable[Entry]) -> list[PathChange]:
    """Return what a whole path, from its root on, did to files, oldest first.

    The path of a tape that was forked from another begins there.
    """
    reader = _ChangeReader()
    changes = [change for entry in entries for change in reader.read_entry(entry)]
    return changes + list(reader.read_end())


class _ChangeReader:
    """Reads the entries of a path one after the other."""

    def __init__(self) -> None:
        self.folder = NO_FOLDER
        self.prompts = 0
        self.calls: dict[str, _OpenCall] = {}
        self.known: dict[str, KnownVersion | None] = {}
        """The newest version of each file that changed."""

    def read_entry(self, entry: Entry) -> Iterator[PathChange]:
        """Yield what an entry did to files."""
        match entry.data:
            case Start() | Meta():
                self.folder = self.folder.follow(entry.data)
            case User():
                self.prompts += 1
            case Assistant(content=content):
                for call in select_tool_calls(content):
                    self.calls[call.id] = _OpenCall(call, NO_JSON, None, None, self.folder.cwd)
            case ToolStart(call_id=call_id, args=args) if call_id in self.calls:
                started_call = self.calls[call_id]._replace(start=entry, ran=args)
                if (other := entry.data.environment) is not None:
                    folder = f"{other.name}:{other.folder}"
                    started_call = started_call._replace(cwd=folder, environment=other.name)
                self.calls[call_id] = started_call
            case Checkpoint(why="restore"):
                yield from self._note_changes(self._read_restore(entry, entry.data))
            case Checkpoint(call_id=str(call_id)) if call_id in self.calls:
                self.calls[call_id] = self.calls[call_id]._replace(checkpoint=entry.data)
            case ToolResult(call_id=call_id):
                ended_call = self.calls.pop(call_id, None)
                where = None if ended_call is None else ended_call.environment
                changes = self._read_result(entry, entry.data, ended_call)
                yield from self._note_changes(
                    change._replace(environment=where) for change in changes
                )
            case _:
                pass

    def read_end(self) -> Iterator[PathChange]:
        """Yield what calls may have done that were started and have no result."""
        for call in self.calls.values():
            if call.start is None or call.checkpoint is None:
                continue
            for state in call.checkpoint.files:
                path = _resolve_path(call.cwd, state.path)
                lost = KnownVersion(None, why="the call that may have changed it did not end")
                change = self._build_change(call.start, path, "unknown", _read_before(state), lost)
                yield change._replace(environment=call.environment)

    def _note_changes(self, changes: Iterable[PathChange]) -> Iterator[PathChange]:
        for change in changes:
            if change.source is not None:
                self.known[change.source] = None
            self.known[change.path] = change.after
            yield change

    def _read_restore(self, entry: Entry, restore: Checkpoint) -> Iterator[PathChange]:
        for state in restore.files:
            if not isinstance(state.after, SavedFile | None):  # it says nothing of it
                continue
            where = restore.environment
            cwd = self.folder.cwd if where is None else f"{where.name}:{where.folder}"
            path, before = _resolve_path(cwd, state.path), _read_before(state)
            after = None if state.after is None else _read_saved(state.after, state.after_mode)
            op: ChangeOp = "modified"
            if before is None or after is None:
                op = "created" if before is None else "deleted"
            elif before.digest == after.digest:
                op = "mode"
            change = self._build_change(entry, path, op, before, after)
            yield change._replace(
                is_restore=True, environment=None if where is None else where.name
            )

    def _read_result(
        self, entry: Entry, result: ToolResult, call: _OpenCall | None
    ) -> Iterator[PathChange]:
        cwd = self.folder.cwd if call is None else call.cwd
        for file in result.files:
            before, after = _read_versions(file)
            path, source = (
                _resolve_path(cwd, file.path),
                file.source and _resolve_path(cwd, file.source),
            )
            yield self._build_change(entry, path, file.op, before, after, source)
        if call is not None and not (result.files or call.checkpoint or result.is_error):
            for named in parse_file_calls(call.call, call.ran):
                if not isinstance(named.work, FileRead):
                    yield self._build_unrecorded(entry, named, cwd)

    def _build_unrecorded(self, entry: Entry, named: FileCall, cwd: str) -> PathChange:
        """Return what a call did to a file, as far as its arguments tell."""
        path = _resolve_path(cwd, named.path)
        source = named.source and _resolve_path(cwd, named.source)
        missing = KnownVersion(None, why="its bytes were not recorded")
        before = self.known.get(source or path, missing)
        op: ChangeOp = "renamed" if source else "modified"
        after: KnownVersion | None = missing
        if isinstance(named.work, FileDelete):
            op, after = "deleted", None
        elif isinstance(named.work, FileWrite):
            data = named.work.text.encode("utf-8", "surrogatepass")
            after = KnownVersion(sha256(data).hexdigest(), text=named.work.text)
            if named.work.created or before is None:
                op, before = "created", None
        change = self._build_change(entry, path, op, before, after, source)
        return change._replace(recorded=False)

    def _build_change(
        self,
        entry: Entry,
        path: str,
        op: ChangeOp,
        before: KnownVersion | None,
        after: KnownVersion | None,
        source: str | None = None,
    ) -> PathChange:
        call_id = getattr(entry.data, "call_id", None)
        return PathChange(
            *(path, op, source, before, after, entry.id, entry.n, call_id, self.prompts),
            folder=self.folder,
        )


def _read_before(state: FileState) -> KnownVersion | None:
    return None if state.before is None else _read_saved(state.before, state.mode)


def _read_saved(saved: SavedFile, mode: str | None) -> KnownVersion:
    return KnownVersion(saved.digest, mode, saved.blob or None, why=saved.why or None)


def _read_versions(file: ChangedFile) -> tuple[KnownVersion | None, KnownVersion | None]:
    """Return a changed file before and after."""
    before = after = None
    why = file.why or "its bytes were not recorded"
    if file.op != "created":
        blob = file.before_blob.hash if file.before_blob else None
        before = KnownVersion(file.before, file.before_mode or file.mode, blob)
    if file.op != "deleted":
        blob = file.after_blob.hash if file.after_blob else None
        after = KnownVersion(file.after, file.mode, blob)
    return (
        before if before is None or before.blob else before._replace(why=why),
        after if after is None or after.blob else after._replace(why=why),
    )


def _resolve_path(cwd: str, path: str) -> str:
    """Return an absolute path; `cwd` in another environment is `NAME:/folder`, as is the result."""
    name, mark, folder = cwd.rpartition(":") if cwd[:1] != "/" else ("", "", cwd)
    return name + mark + posixpath.normpath(posixpath.join(folder, path))
