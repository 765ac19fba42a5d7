"""What a page says of a tape beside its lines: heads, labels, and what calls do to files; pure.

Invariant: what is said of an entry comes from that entry and its blobs alone, so that lines that
are written later add to it.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import Damaged, NotFound
from ..files.calls import FileRead, parse_file_calls
from ..model.entries import (
    Assistant,
    BlobRef,
    Checkpoint,
    Meta,
    Opaque,
    SideUsage,
    Start,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from ..model.line import decode_line, read_id
from ..render.calls import render_call, render_changed_files
from ..render.entries import may_cite
from ..render.sources import describe_server_block, list_sources
from ..text import extract_title, to_single_line

if TYPE_CHECKING:
    from ..model.entries import Content, ToolCall
    from ..model.line import Entry
    from ..render.calls import RenderedCall
    from ..render.paint import Kind

_MAX_DIFF_LINES = 2000
"""Lines of one diff that are drawn; the rest is on the tape."""
_LETTERS: dict[Kind, str] = {"header": "h", "note": "n"}
"""The letter in front of a line of a diff; others begin with their sign, or a space."""


class PageView:
    """What a page says about lines of an export, collected line by line."""

    def __init__(self) -> None:
        self.title = ""
        self.prompt: str | None = None
        """The beginning of the first prompt, the title of a tape that was given none."""
        self.current = ""
        self.tape = self.cwd = ""
        self.repository = self.person = self.machine = ""
        self.first = self.last = ""
        self.models: dict[str, None] = {}
        self.entries = self.secrets = 0
        self.is_damaged = False
        """Whether lines that do not verify are left out."""
        self._branches: dict[str, dict[str, Any]] = {}
        self._labels: dict[str, str | None] = {}
        self._ends: dict[str, str] = {}
        self._phase = ""
        self._blobs: dict[str, bytes | None] = {}
        self._calls: dict[str, list[dict[str, str]]] = {}
        self._paths: dict[str, list[list[str]]] = {}
        """The files that each call of an answer changes, by entry."""
        self._changes: dict[str, str] = {}
        self._searches: dict[str, dict[int, str]] = {}
        """What blocks of providers' own tools say, by entry and place of the block."""
        self._sources: dict[str, list[dict[str, str]]] = {}
        """The pages that answers cite, by entry."""

    def add_line(self, line: bytes) -> None:
        """Take in a line of an export."""
        if line.startswith(b'{"id":"'):
            self._add_entry(line[:-1])
            return
        fields = msgspec.json.decode(line)
        match fields:
            case {"export": _, "tape": info}:
                self.tape = info["id"]
                self.secrets = fields.get("masked", {}).get("secrets", 0)
            case {"blob": str(digest), "data": data}:
                self._blobs[digest] = None if data is None else data.encode()
            case {"branch": str(name), "phase": str()}:
                self._branches[name] = fields
            case {"current": str(name)}:
                self.current = name
            case {"title": str(title)}:
                self.title = to_single_line(title)
            case {"label": str(label), "entry": entry}:
                self._labels[label] = entry
            case {"phase": str(phase)}:
                self._phase = phase

    def note_end(self, phase: str, entry: str) -> None:
        """Take in what the newest entry of a phase is, whose lines are not given."""
        self._ends[phase] = entry

    def _add_entry(self, line: bytes) -> None:
        self.entries += 1
        self._ends[self._phase] = read_id(line)
        try:
            entry = decode_line(line, self._read_text)
        except (Damaged, ValueError, RecursionError):  # it is in the archive, whatever it is
            return
        self.first, self.last = self.first or entry.time, entry.time
        self._add_facts(entry)

    def _add_facts(self, entry: Entry) -> None:
        match entry.data:
            case User(content=content):
                self.prompt = self.prompt or extract_title(join_texts(content))
            case Assistant() as answer:
                self._add_answer(entry.id, answer)
            case SideUsage(model=model) if model:
                self.models[model] = None
            case ToolResult(files=files) | Checkpoint(files=files, why="restore") if files:
                lines = render_changed_files(files, self._load, _mark_kind, _MAX_DIFF_LINES)
                self._changes[entry.id] = _join_diff(tuple(lines))
            case Start() | Meta() as said:
                self.person = said.person or self.person
                self.machine = said.machine or self.machine
                if said.cwd is not None:
                    self.cwd, self.repository = said.cwd, said.repository or ""
            case _:
                cwd = getattr(entry.data, "cwd", None)
                self.cwd = cwd if isinstance(cwd, str) else self.cwd

    def _add_answer(self, entry: str, answer: Assistant) -> None:
        calls = [render_call(call, paint=_mark_kind) for call in select_tool_calls(answer.content)]
        if calls:
            self._calls[entry] = [
                {
                    "head": "\n".join(map(_drop_kind, _join_head(call))),
                    "body": _join_diff(_cut_diff(call.body)) if call.is_patch else "",
                }
                for call in calls
            ]
        paths = [*map(_list_paths, select_tool_calls(answer.content))]
        if any(paths):
            self._paths[entry] = paths
        if may_cite(answer.content):
            self._add_sources(entry, answer.content)
        if answer.model:
            self.models[answer.model] = None

    def _add_sources(self, entry: str, content: Content) -> None:
        blocks = {
            place: "\n".join(lines)
            for place, block in enumerate(content)
            if isinstance(block, Opaque) and (lines := describe_server_block(block.raw))
        }
        if blocks:
            self._searches[entry] = blocks
        if sources := list_sources(content):
            self._sources[entry] = [{"url": page.url, "title": page.title} for page in sources]

    def _load(self, ref: BlobRef) -> bytes:
        data = self._blobs.get(ref.hash)
        if data is None:
            raise NotFound(f"blob {ref.hash[:12]} is missing")
        return b64decode(data)

    def _read_text(self, ref: BlobRef) -> str:
        try:
            return self._load(ref).decode("utf-8", "replace")
        except NotFound:
            return ref.head

    def build(self) -> dict[str, Any]:
        """Return the object of `#view`."""
        branches = []
        for name, move in self._branches.items():
            pin = move.get("pin")
            head = pin["entry"] if pin else self._ends.get(move["phase"])
            if head is not None:
                branches.append({"name": name, "head": head, "current": name == self.current})
        return {
            "tape": self.tape,
            "cwd": self.cwd,
            "branches": branches,
            "labels": {name: entry for name, entry in self._labels.items() if entry},
            "calls": self._calls,
            "paths": self._paths,
            "changes": self._changes,
            "searches": self._searches,
            "sources": self._sources,
        }


def _list_paths(call: ToolCall) -> list[str]:
    done = parse_file_calls(call)
    return sorted({file.path for file in done if not isinstance(file.work, FileRead)})


def _mark_kind(kind: Kind, text: str) -> str:
    """Return a line with what it is in front; NUL tells it from text, which has none."""
    return f"\0{_LETTERS.get(kind, '')}{text}"


def _join_head(call: RenderedCall) -> tuple[str, ...]:
    """Return the lines that stand above the result of a call."""
    return call.head if call.is_patch else (*call.head, *call.body)


def _drop_kind(line: str) -> str:
    return line.removeprefix("\0")


def _join_diff(lines: tuple[str, ...]) -> str:
    drawn = [_drop_kind(line) if line[:1] in {"\0", " "} else f" {line}" for line in lines]
    return "\n".join(drawn)


def _cut_diff(lines: tuple[str, ...]) -> tuple[str, ...]:
    more = len(lines) - _MAX_DIFF_LINES
    if more <= 0:
        return lines
    return (*lines[:_MAX_DIFF_LINES], _mark_kind("note", f"… {more} more lines of this diff"))
