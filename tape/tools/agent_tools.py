"""What an agent may ask the store: plain functions from checked arguments to values with a text.

Each tool is a row of `TOOLS`: its arguments and its answer are Structs, from which their schemas
are made. Lists come in pages: `next` of an answer is the `offset` of the next page. Pure of any
protocol: `mcp_server` serves these tools.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from posixpath import relpath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from ..blame.history import blame_file
from ..clock import render_time
from ..context.repair import build_messages
from ..context.view import Target
from ..errors import InvalidEntry, UsageError
from ..files.changes import list_file_changes
from ..files.states import list_net_changes
from ..files.work_folder import find_work_folder
from ..index.library import search_entries
from ..model.entries import Note
from ..model.incoming_entry import parse_incoming_entry
from ..places.resolve import find_reference, resolve_reference
from ..render.entries import render_content, render_entry
from ..text import SHORT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..index.library import Library
    from ..model.line import Entry
    from ..store.tape import Hit

NO_MODEL = Target("", "", "")
"""A target that wrote none of the messages."""
MAX_ROWS = 200
PAGE_CHARS = 16_000
"""Characters of one entry, or of one message, in an answer."""
_LINES_OF_ENTRY = 6
"""Lines of each entry that a log shows."""

Ref = Annotated[
    str,
    Meta(
        description="[TAPE][:BRANCH][@ENTRY][~N]: ids by any unique prefix; empty is the newest"
        " session of this folder"
    ),
]
Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS, description="How many rows at most")]
Offset = Annotated[int, Meta(ge=0, description="Where to continue: `next` of the page before")]
Words = Annotated[
    str,
    Meta(
        min_length=1,
        description='All words must match; "a phrase", -without, begin*, one OR two',
    ),
]
FilePath = Annotated[str, Meta(description="A file, relative to the folder of the server")]


class SearchArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of search."""

    query: Words
    limit: Limit = 20
    offset: Offset = 0


class FoundEntry(Struct, frozen=True):
    """An entry that matches."""

    ref: str
    """Names it in the other tools."""
    title: str | None
    time: str
    type: str
    snippet: str
    prompt: str | None
    """The prompt that led to it."""


class SearchAnswer(Struct, frozen=True):
    """The best matches first."""

    matches: list[FoundEntry]
    next: int | None = None


class LogArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of log."""

    ref: Ref = ""
    limit: Limit = 20
    offset: Offset = 0


class HandedEntry(Struct, frozen=True):
    """An entry with the beginning of its text."""

    ref: str
    n: int
    """Its depth: the first entry of a path is 0."""
    time: str
    type: str
    text: str


class LogAnswer(Struct, frozen=True):
    """The entries of a path, newest first."""

    entries: list[HandedEntry]
    next: int | None = None


class ShowArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of show."""

    ref: Ref = ""
    offset: Annotated[int, Meta(ge=0, description="The character to continue at")] = 0


class ShowAnswer(Struct, frozen=True):
    """One entry, and the tape that it is in."""

    ref: str
    tape: str
    title: str | None
    branches: list[str]
    labels: list[str]
    n: int
    time: str
    type: str
    text: str
    next: int | None = None


class ContextMessage(Struct, frozen=True):
    """A message that the next model call would get."""

    role: str
    text: str


class ContextAnswer(Struct, frozen=True):
    """The messages of the next model call, newest first."""

    messages: list[ContextMessage]
    total: int
    next: int | None = None


class BlameArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of blame."""

    file: FilePath
    limit: Limit = 50
    offset: Offset = 0


class BlamedLines(Struct, frozen=True):
    """Lines of a file, and the change that they come from; null where no session made it."""

    first: int
    last: int
    lines: list[str]
    ref: str | None
    time: str | None
    model: str | None
    prompt: str | None


class BlameAnswer(Struct, frozen=True):
    """The lines of a file in their order."""

    ranges: list[BlamedLines]
    next: int | None = None


class FilesArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of files."""

    ref: Ref = ""
    file: Annotated[str, Meta(description="Only files whose path ends so")] = ""
    limit: Limit = 50
    offset: Offset = 0


class ChangedPath(Struct, frozen=True):
    """A file that a session changed."""

    path: str
    op: str
    """created, modified, deleted, renamed, mode or unknown."""
    source: str | None
    """Its path before, where it was renamed."""
    ref: str
    """The entry that changed it last."""


class FilesAnswer(Struct, frozen=True):
    """What is left of all changes of a path."""

    files: list[ChangedPath]
    next: int | None = None


class AppendArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of append."""

    text: Annotated[str, Meta(description="A remark for people; or give type and data")] = ""
    ref: Ref = ""
    type: Annotated[str, Meta(description="The type of the entry")] = "note"
    data: Annotated[dict[str, Any] | None, Meta(description="Its data, in place of text")] = None


class LabelArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of label."""

    name: Annotated[str, Meta(min_length=1, description="The name that the entry gets")]
    ref: Ref = ""


class ForkArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of fork."""

    ref: Ref = ""
    name: Annotated[str, Meta(description="Name of the new branch; empty for one of its own")] = ""


class WrittenAnswer(Struct, frozen=True):
    """What was written."""

    ref: str
    branch: str | None = None
    label: str | None = None


class ToolAnswer(NamedTuple):
    """An answer: a value of the tool's answer type, and the same as text."""

    value: Struct
    text: str


@dataclass(frozen=True, slots=True)
class StoreTool:
    """A tool that agents may call."""

    name: str
    description: str
    arguments: type[Struct]
    answer: type[Struct]
    run: Callable[[AgentLibrary, Any], ToolAnswer]
    writes: bool = False

    def call(self, library: AgentLibrary, arguments: Any) -> ToolAnswer:
        """Check the arguments, JSON values, and run the tool.

        Raises UsageError for wrong arguments, and what the store raises.
        """
        try:
            checked = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise UsageError(f"{self.name}: {error}") from error
        return self.run(library, checked)


class AgentLibrary(NamedTuple):
    """The store that an agent asks, and the folder that it works in."""

    library: Library
    folder: str

    def find(self, ref: str, opened: ExitStack) -> Hit:
        """Return the entry of a REF; its tape is closed with `opened`."""
        hit = resolve_reference(*self.library, ref, self.folder)
        opened.enter_context(hit.tape)
        return hit


def build_schema(kind: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a Struct, with an object at its root."""
    schema = msgspec.json.schema(kind)
    root: dict[str, Any] = schema["$defs"].pop(schema["$ref"].rpartition("/")[2])
    return {**root, "$defs": schema["$defs"]} if schema["$defs"] else root


def _cut_page(rows: Sequence[Any], offset: int, limit: int) -> tuple[list[Any], int | None]:
    """Return the rows of a page, and the offset of the next; `rows` may end right behind it."""
    end = offset + limit
    return [*rows[offset:end]], end if len(rows) > end else None


def _join_lines(lines: Iterable[str], more: int | None) -> str:
    ending = [f"(more with offset {more})"] if more is not None else []
    return "\n".join([*lines, *ending]) or "nothing found"


def _name_entry(tape: str, entry: str) -> str:
    return f"{tape[:SHORT]}@{entry[:SHORT]}"


def _search_store(library: AgentLibrary, arguments: SearchArguments) -> ToolAnswer:
    results = search_entries(
        *library.library, arguments.query, limit=arguments.offset + arguments.limit + 1
    )
    hits, more = _cut_page(results, arguments.offset, arguments.limit)
    matches = [
        FoundEntry(
            ref=_name_entry(hit.tape, hit.entry),
            title=hit.title,
            time=hit.time,
            type=hit.type,
            snippet=hit.snippet,
            prompt=None if hit.prompt is None else hit.prompt.text,
        )
        for hit in hits
    ]
    lines = [
        f"{match.ref}  {render_time(match.time)}  {match.type}  {match.title or ''}"
        f"\n    {match.snippet}" + (f"\n    prompt: {match.prompt}" if match.prompt else "")
        for match in matches
    ]
    return ToolAnswer(SearchAnswer(matches, more), _join_lines(lines, more))


def _list_log(library: AgentLibrary, arguments: LogArguments) -> ToolAnswer:
    with ExitStack() as opened:
        tape, head = library.find(arguments.ref, opened)
        newest: deque[Entry] = deque(maxlen=arguments.offset + arguments.limit + 1)
        for run in tape.read_runs(head):
            newest.extend(run)
        page, more = _cut_page([*newest][::-1], arguments.offset, arguments.limit)
        rendered = [(entry, render_entry(entry, _LINES_OF_ENTRY)) for entry in page]
        entries = [
            HandedEntry(
                ref=_name_entry(tape.id, entry.id),
                n=entry.n,
                time=entry.time,
                type=entry.type,
                text="\n".join(lines[1:]),
            )
            for entry, lines in rendered
        ]
    return ToolAnswer(
        LogAnswer(entries, more), _join_lines(("\n".join(lines) for _, lines in rendered), more)
    )


def _show_entry(library: AgentLibrary, arguments: ShowArguments) -> ToolAnswer:
    with ExitStack() as opened:
        tape, head = library.find(arguments.ref, opened)
        entry, refs = tape.entry(head), tape.refs()
        text = "\n".join(render_entry(entry))
        end = arguments.offset + PAGE_CHARS
        more = end if len(text) > end else None
        part = text[arguments.offset : end]
        value = ShowAnswer(
            ref=_name_entry(tape.id, entry.id),
            tape=tape.id,
            title=refs.title,
            branches=[*refs.branches],
            labels=[*refs.labels],
            n=entry.n,
            time=entry.time,
            type=entry.type,
            text=part,
            next=more,
        )
    branches = ", ".join(value.branches)
    about = f"tape {tape.id[:SHORT]}: {value.title or 'untitled'}; branches: {branches}"
    return ToolAnswer(value, _join_lines([about, part], more))


def _show_context(library: AgentLibrary, arguments: LogArguments) -> ToolAnswer:
    with ExitStack() as opened:
        sent = build_messages(*library.find(arguments.ref, opened), NO_MODEL)[1].messages
    page, more = _cut_page(sent[::-1], arguments.offset, arguments.limit)
    messages = [
        ContextMessage(message.role, "\n".join(render_content(message.content))[:PAGE_CHARS])
        for message in page
    ]
    lines = (f"── {message.role}\n{message.text}" for message in messages)
    return ToolAnswer(ContextAnswer(messages, len(sent), more), _join_lines(lines, more))


def _blame_lines(library: AgentLibrary, arguments: BlameArguments) -> ToolAnswer:
    blame = blame_file(*library.library, Path(library.folder, arguments.file))
    page, more = _cut_page(blame.ranges, arguments.offset, arguments.limit)
    ranges = [
        BlamedLines(
            first=attributed.first,
            last=attributed.last,
            lines=blame.lines[attributed.first - 1 : attributed.last],
            ref=attributed.by and _name_entry(attributed.by.tape, attributed.by.entry),
            time=attributed.by and attributed.by.time,
            model=attributed.by and attributed.by.model,
            prompt=attributed.by and attributed.by.prompt,
        )
        for attributed in page
    ]
    lines = (
        f"{line_range.first}-{line_range.last}  {line_range.ref or 'not by a session'}"
        + (f"  {render_time(line_range.time)}" if line_range.time else "")
        + (f"  prompt: {line_range.prompt}" if line_range.prompt else "")
        for line_range in ranges
    )
    return ToolAnswer(BlameAnswer(ranges, more), _join_lines(lines, more))


def _list_files(library: AgentLibrary, arguments: FilesArguments) -> ToolAnswer:
    with ExitStack() as opened:
        tape, head = library.find(arguments.ref, opened)
        entries = tape.entries(head)
        changes = list_file_changes(entries)
        order = {change.entry: change.n for change in changes}
        folder = find_work_folder(entries).cwd
        net = sorted(
            list_net_changes(changes), key=lambda change: (order[change.entry], change.path)
        )
        chosen = [change for change in net if change.path.endswith(arguments.file)]
        page, more = _cut_page(chosen, arguments.offset, arguments.limit)
        files = [
            ChangedPath(
                path=_shorten_path(change.path, folder),
                op=change.op,
                source=None if change.source is None else _shorten_path(change.source, folder),
                ref=_name_entry(tape.id, change.entry),
            )
            for change in page
        ]
    lines = (
        f"{file.op}  {f'{file.source} → ' if file.source else ''}{file.path}  {file.ref}"
        for file in files
    )
    return ToolAnswer(FilesAnswer(files, more), _join_lines(lines, more))


def _shorten_path(path: str, folder: str) -> str:
    return relpath(path, folder) if f"{path}/".startswith(f"{folder.rstrip('/')}/") else path


def _append_entry(library: AgentLibrary, arguments: AppendArguments) -> ToolAnswer:
    if bool(arguments.text) == (arguments.data is not None):
        raise UsageError("append: give either text, or type and data")
    target = find_reference(*library.library, arguments.ref, library.folder)
    if target.reference.names_entry:
        raise UsageError("append: entries are added to a branch, not at an entry: use fork")
    with ExitStack() as opened:
        tape = opened.enter_context(library.library.store.open_folder(target.folder))
        writer = opened.enter_context(tape.writer(target.reference.branch))
        if arguments.data is None:
            identity = writer.append(Note(arguments.text)).id
        else:
            line = msgspec.json.encode({"type": arguments.type, "data": arguments.data})
            try:
                incoming = parse_incoming_entry(line)
            except InvalidEntry as error:
                raise UsageError(f"append: {error}") from error
            identity = writer.append_data(incoming.type, incoming.data)
        writer.barrier()
        value = WrittenAnswer(_name_entry(tape.id, identity), writer.branch)
    return ToolAnswer(value, f"added {value.ref} to branch {value.branch}")


def _set_label(library: AgentLibrary, arguments: LabelArguments) -> ToolAnswer:
    with ExitStack() as opened:
        tape, head = library.find(arguments.ref, opened)
        tape.label(arguments.name, head.entry)
        value = WrittenAnswer(_name_entry(tape.id, head.entry), label=arguments.name)
    return ToolAnswer(value, f"{value.ref} is @{arguments.name} now")


def _fork_branch(library: AgentLibrary, arguments: ForkArguments) -> ToolAnswer:
    with ExitStack() as opened:
        tape, head = library.find(arguments.ref, opened)
        branch = tape.fork(head, arguments.name or None)
        value = WrittenAnswer(_name_entry(tape.id, head.entry), branch)
    return ToolAnswer(value, f"branch {branch} begins at {value.ref}")


TOOLS = (
    StoreTool(
        "search",
        "Search all recorded sessions of this machine for words: prompts, answers, calls, results.",
        SearchArguments,
        SearchAnswer,
        _search_store,
    ),
    StoreTool(
        "log",
        "List the entries of a session, newest first, with the beginning of each.",
        LogArguments,
        LogAnswer,
        _list_log,
    ),
    StoreTool(
        "show",
        "Show one entry of a session in full; without an entry the newest one.",
        ShowArguments,
        ShowAnswer,
        _show_entry,
    ),
    StoreTool(
        "context",
        "Show the messages that the next model call of a session would get, newest first.",
        LogArguments,
        ContextAnswer,
        _show_context,
    ),
    StoreTool(
        "blame",
        "Say which session, model and prompt last changed each line of a file.",
        BlameArguments,
        BlameAnswer,
        _blame_lines,
    ),
    StoreTool(
        "files",
        "List the files that a session changed.",
        FilesArguments,
        FilesAnswer,
        _list_files,
    ),
    StoreTool(
        "append",
        "Add a remark, or another entry, to the end of a session's branch.",
        AppendArguments,
        WrittenAnswer,
        _append_entry,
        writes=True,
    ),
    StoreTool(
        "label",
        "Give an entry a name that finds it again.",
        LabelArguments,
        WrittenAnswer,
        _set_label,
        writes=True,
    ),
    StoreTool(
        "fork",
        "Start a branch at an entry; nothing is copied.",
        ForkArguments,
        WrittenAnswer,
        _fork_branch,
        writes=True,
    ),
)
"""Every tool; those that write are served only where that was asked for."""
