"""No edit of a file before it was read, and no write outside of the root; pure.

What the session knows of a file, along each path of the tree:

    read, view, cat, sed -n, git show …   it was read
    a write, `> file`, tee, cp            its content is the session's own
    a search or a script printed it       read, where every line that is replaced was shown
    a file that a person attached         read

A call that failed did nothing; a command that ended with a code other than 0 ran all the same, and
what it read is what it printed. A call may overwrite a file unread, unless its result says that the
file was there.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tape.files.calls import (
    FileDelete,
    FileEdit,
    FileRead,
    FileWrite,
    PatchHunk,
    TextReplacement,
    find_command,
    find_command_folder,
    parse_file_calls,
)
from tape.formats.sessions.steps import read_object, read_text
from tape.model.entries import (
    Assistant,
    Context,
    Custom,
    Meta,
    Start,
    ToolResult,
    ToolStart,
    User,
    join_texts,
    select_tool_calls,
)

from .commands import list_command_files
from .finding import TrajectoryFinding
from .paths import NULL_DEVICES, is_outside, resolve_path
from .trajectory import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.files.calls import FileCall
    from tape.model.entries import OtherEnvironment, ToolCall

    from .trajectory import Trajectory, TrajectoryStep

_RAN = re.compile(r"\bexit(?:ed)?(?: with)?(?:[ _]code| status)?\W{1,3}-?\d", re.IGNORECASE)
"""What a result says of a command that ran and failed; one that was refused has no code."""
_FAILED = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Total output lines|Output:$)[^\n]*\n)*"
    r"(?:Exit code:|Exit code|Process exited with code) [1-9]"
    r"|\"metadata\":\s*\{\"exit_code\":\s*[1-9]"
    r"|\A(?:apply_patch verification failed|Failed to (?:find|apply|read)|patch rejected"
    r"|unsupported (?:custom tool )?call|aborted by user)",
    re.MULTILINE,
)
_OVERWROTE = re.compile(r"\bhas been updated|\b[Ss]uccessfully overwrote\b|\boverwrote\b")
_ATTACHED = re.compile(r"^(?:Content from|--- )@?(\S+?)(?: ---|:)$", re.MULTILINE)
"""How files that a person named stand in a prompt."""
_ATTACHMENT = ("filename", "filePath", "path")
_WILD = re.compile(r"[*?\[]")
_MIN_LINE = 3
"""Characters of a line that tell it from others."""


class _Known(NamedTuple):
    """What is known at one step."""

    folder: str = ""
    paths: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    """Wildcards of commands that showed files."""


class _AnsweredCall(NamedTuple):
    """A call with its result."""

    call: ToolCall
    result: ToolResult
    ran: msgspec.Raw
    folder: str
    """Where it acts: relative paths begin there."""
    place: str
    """Of another environment its name and a colon: its files are others."""


def check_files(trajectory: Trajectory, roots: Sequence[str]) -> Iterator[TrajectoryFinding]:
    """Yield edits before a read, and writes outside of the roots.

    Without roots they are the folder where the session began; in another environment, the folder
    there.
    """
    walk = _FileWalk(trajectory, [resolve_path(root, "") for root in roots])
    for place in range(len(trajectory.steps)):
        yield from walk.take_step(place)


class _FileWalk:
    """Goes through the steps of a trajectory."""

    def __init__(self, trajectory: Trajectory, roots: Sequence[str]) -> None:
        self.steps, self.roots = trajectory.steps, roots
        folder = resolve_path(trajectory.folder, "") if trajectory.folder else "".join(roots[:1])
        self.first = _Known(folder)
        self.own = roots or [folder] * bool(folder)
        self.known: list[_Known] = []
        self.results: dict[str, ToolResult] = {}
        self.starts: dict[str, ToolStart] = {}
        for step in self.steps:
            if isinstance(step.data, ToolResult):
                self.results.setdefault(step.data.call_id, step.data)
            elif isinstance(step.data, ToolStart):
                self.starts.setdefault(step.data.call_id, step.data)

    def take_step(self, place: int) -> Iterator[TrajectoryFinding]:
        """Yield what is wrong with a step, and learn from it."""
        step = self.steps[place]
        known = self.first if step.parent == FIRST else self.known[step.parent]
        match step.data:
            case Start(cwd=str(cwd)) | Meta(cwd=str(cwd)):
                known = known._replace(folder=resolve_path(cwd, known.folder))
            case User(content=content) | Context(content=content):
                named = _ATTACHED.findall(join_texts(content))
                known = _add_known(known, [resolve_path(path, known.folder) for path in named])
            case Custom() as custom:
                named = _list_attached(custom)
                known = _add_known(known, [resolve_path(path, known.folder) for path in named])
            case Assistant(content=content):
                for call in select_tool_calls(content):
                    if (answered := self._find_call(call, known)) is not None:
                        known, findings = self._take_call(answered, known, step)
                        yield from findings
            case _:
                pass
        self.known.append(known)

    def _find_call(self, call: ToolCall, known: _Known) -> _AnsweredCall | None:
        """Return a call with its result; None for one without."""
        result, start = self.results.get(call.id), self.starts.get(call.id)
        if result is None:
            return None
        where: OtherEnvironment | None = None if start is None else start.environment
        ran = msgspec.Raw() if start is None else start.args
        if where is None:
            return _AnsweredCall(call, result, ran, known.folder, "")
        return _AnsweredCall(call, result, ran, where.folder, f"{where.name}:")

    def _take_call(
        self, answered: _AnsweredCall, known: _Known, step: TrajectoryStep
    ) -> tuple[_Known, list[TrajectoryFinding]]:
        text = join_texts(answered.result.content)
        has_failed = answered.result.is_error or _FAILED.search(text) is not None
        findings: list[TrajectoryFinding] = []
        arguments = _decode_arguments(answered)
        command = find_command(answered.call.name, arguments)
        if command is not None and (not answered.result.is_error or _RAN.search(text)):
            folder = resolve_path(find_command_folder(arguments), answered.folder)
            named = list_command_files(command, "" if folder == "." else folder)
            findings += self._find_outside(answered, step, named.writes)
            files = (*(() if has_failed else named.reads), *named.makes)
            known = _add_known(known, [f"{answered.place}{path}" for path in files])
        if has_failed:
            return known, findings
        for work in parse_file_calls(answered.call, answered.ran):
            path = resolve_path(work.path, answered.folder)
            source = resolve_path(work.source, answered.folder) if work.source else path
            if self._is_blind(answered, work, known, step):
                findings.append(
                    TrajectoryFinding("edit-before-read", step.entry, answered.call.name, source)
                )
            if not isinstance(work.work, FileRead):
                findings += self._find_outside(answered, step, [(path,)])
            if not isinstance(work.work, FileDelete):
                known = _add_known(known, [f"{answered.place}{path}"])
        changed = [(resolve_path(file.path, answered.folder),) for file in answered.result.files]
        reported = {finding.detail for finding in findings}
        more = self._find_outside(answered, step, changed)
        return known, findings + [finding for finding in more if finding.detail not in reported]

    def _find_outside(
        self, answered: _AnsweredCall, step: TrajectoryStep, written: Iterable[tuple[str, ...]]
    ) -> list[TrajectoryFinding]:
        """Return what was written outside; of a file with several readings, if all are."""
        roots = self.own if self.roots or not answered.place else [answered.folder]
        outside = [
            paths[0]
            for paths in written
            if all(is_outside(path, roots) and path not in NULL_DEVICES for path in paths)
        ]
        return [
            TrajectoryFinding("outside-root", step.entry, answered.call.name, path)
            for path in dict.fromkeys(outside)
        ]

    def _is_blind(
        self, answered: _AnsweredCall, work: FileCall, known: _Known, step: TrajectoryStep
    ) -> bool:
        """Return whether a call changed a file of which the session knew nothing."""
        match work.work:
            case FileEdit(steps=parts):
                old = [line for part in parts for line in _list_old_lines(part)]
            case FileWrite(created=False) if _has_overwritten(answered.result):
                old = []
            case _:
                return False
        path = f"{answered.place}{resolve_path(work.source or work.path, answered.folder)}"
        if path in known.paths or any(fnmatchcase(path, pattern) for pattern in known.patterns):
            return False
        return not (old and self._has_shown(old, step))

    def _has_shown(self, lines: Iterable[str], step: TrajectoryStep) -> bool:
        """Return whether results before a step showed all of some lines."""
        left, at = set(lines), step.parent
        while left and at != FIRST:
            data = self.steps[at].data
            if isinstance(data, ToolResult):
                text = data.whole or join_texts(data.content)
                left = {line for line in left if line not in text}
            at = self.steps[at].parent
        return not left


def _add_known(known: _Known, paths: Iterable[str]) -> _Known:
    """Return what is known after files were shown or written, as resolved paths."""
    paths = set(paths)
    wild = {path for path in paths if _WILD.search(path)}
    if paths <= known.paths and wild <= known.patterns:
        return known
    return known._replace(paths=known.paths | paths, patterns=known.patterns | wild)


def _list_attached(custom: Custom) -> list[str]:
    """Return the files that a person attached, as a line of Claude Code names them."""
    if not custom.kind.endswith(".attachment"):
        return []
    attachment = read_object(read_object(msgspec.json.decode(custom.data)).get("attachment"))
    return [path for name in _ATTACHMENT if (path := read_text(attachment.get(name)))]


def _decode_arguments(answered: _AnsweredCall) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(bytes(answered.ran) or bytes(answered.call.args) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return read_object(arguments)


def _has_overwritten(result: ToolResult) -> bool:
    """Return whether a result says that the file was there before."""
    if result.files:
        return any(file.op == "modified" for file in result.files)
    try:
        details = read_object(msgspec.json.decode(bytes(result.details) or b"null"))
    except (ValueError, RecursionError):
        details = {}
    if (kind := read_text(details.get("type"))) in {"create", "update"}:
        return kind == "update"
    return _OVERWROTE.search(join_texts(result.content)[:300]) is not None


def _list_old_lines(part: object) -> list[str]:
    """Return the lines that a change replaces, without those that tell nothing."""
    match part:
        case TextReplacement(old=old):
            lines: Sequence[str] = old.split("\n")
        case PatchHunk(old=lines):
            pass
        case _:
            return []
    return [line.strip() for line in lines if len(line.strip()) >= _MIN_LINE]
