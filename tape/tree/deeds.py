"""Deeds: what was done in a run of entries, in brief; pure and streamed.

Prompts and how they were answered, tools, files that changed, models, tokens and cost. What a text
says at length stays on the tape; memory grows with the prompts and the files, not with the entries.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..blocks import NO_JSON, text_of, tool_calls
from ..entries import (
    Anchor,
    Assistant,
    Context,
    Cost,
    Error,
    Meta,
    SideUsage,
    Start,
    ToolResult,
    ToolStart,
    Usage,
    User,
)
from ..filecalls import Read, file_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Raw

    from ..blocks import Content, ToolCall
    from ..line import Entry

BRIEF = 200
"""Characters of a text that are kept."""
_TYPED = frozenset({"steering", "follow_up"})


class Said(Struct, frozen=True):
    """The beginning of what somebody said, on one line, and the entry that holds it."""

    entry: str
    time: str
    text: str


class Exchange(Struct, frozen=True):
    """A prompt and the last words it was answered with; None where the run has no such entry."""

    prompt: Said | None
    answer: Said | None


class ToolUse(Struct, frozen=True):
    """How often a tool was called; `open` calls have no result in the run."""

    name: str
    calls: int = 0
    failed: int = 0
    open: int = 0


class FileUse(Struct, frozen=True):
    """A file that changed: absolute where the working folder is known, and how often by what."""

    path: str
    ops: dict[str, int]


class ModelUse(Struct, frozen=True):
    """What a model was asked for: `calls`, tokens, and money where it is known."""

    model: str
    calls: int = 0
    usage: Usage = Usage()
    cost: Cost | None = None


class Deeds(Struct, frozen=True):
    """What was done in a run of entries; times are those of its first and last entry."""

    entries: int
    began: str | None
    ended: str | None
    exchanges: tuple[Exchange, ...]
    tools: tuple[ToolUse, ...]
    files: tuple[FileUse, ...]
    models: tuple[ModelUse, ...]
    usage: Usage
    cost: Cost | None
    """None when no call said what it cost."""
    anchors: int
    errors: int


def deeds(entries: Iterable[Entry], cwd: str = "", before: Iterable[Entry] = ()) -> Deeds:
    """Return what was done in entries, given oldest first; `cwd` is the folder they begin in.

    `before` is what stands before them from the newest answer on, whose calls they may answer.
    """
    told = _Told(cwd)
    for entry in before:
        told.recall(entry)
    for entry in entries:
        told.read(entry)
    return told.deeds()


class _Told:
    """What the entries read so far have told."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.entries = self.anchors = self.errors = 0
        self.began: str | None = None
        self.ended: str | None = None
        self.exchanges: list[Exchange] = []
        self.tools: dict[str, ToolUse] = {}
        self.files: dict[str, dict[str, int]] = {}
        self.models: dict[str, ModelUse] = {}
        self.open: dict[str, tuple[ToolCall, Raw]] = {}
        """Calls without a result yet, and the arguments they ran with if those were others."""
        self.recalled: set[str] = set()
        """Those of them that were made before."""

    def recall(self, entry: Entry) -> None:
        """Know of calls that were made before and not answered yet."""
        match entry.data:
            case Assistant(content=content):
                calls = tool_calls(content)
                self.open |= {call.id: (call, NO_JSON) for call in calls}
                self.recalled |= {call.id for call in calls}
            case ToolStart():
                self._begun(entry.data)
            case ToolResult():
                self.open.pop(entry.data.call_id, None)
            case _:
                pass

    def read(self, entry: Entry) -> None:
        self.entries += 1
        self.began, self.ended = self.began or entry.time, entry.time
        match entry.data:
            case User(content=content):
                self._asked(entry, content)
            case Context(origin=origin, content=content) if origin in _TYPED:
                self._asked(entry, content)
            case Assistant():
                self._answered(entry, entry.data)
            case ToolStart():
                self._begun(entry.data)
            case ToolResult():
                self._done(entry.data)
            case SideUsage(provider=provider, model=model, usage=usage, cost=cost):
                self._bill(f"{provider}/{model}", usage, cost)
            case Start(cwd=cwd) | Meta(cwd=str(cwd)):
                self.cwd = cwd
            case Anchor():
                self.anchors += 1
            case Error():
                self.errors += 1
            case _:
                pass

    def _asked(self, entry: Entry, content: Content) -> None:
        self.exchanges.append(Exchange(_said(entry, content), None))

    def _answered(self, entry: Entry, answer: Assistant) -> None:
        said = _said(entry, answer.content)
        if said.text:
            last = self.exchanges.pop() if self.exchanges else Exchange(None, None)
            self.exchanges.append(replace(last, answer=said))
        for call in tool_calls(answer.content):
            self.open[call.id] = call, NO_JSON
            self.recalled.discard(call.id)
            self._count(call.name, calls=1, waiting=1)
        if answer.model:
            name = f"{answer.provider}/{answer.model}" if answer.provider else answer.model
            self._bill(name, answer.usage, answer.cost)

    def _begun(self, start: ToolStart) -> None:
        if start.call_id in self.open:
            call, _ = self.open[start.call_id]
            self.open[start.call_id] = call, start.args

    def _done(self, result: ToolResult) -> None:
        known = self.open.pop(result.call_id, None)
        if known is None:
            self._count(result.name, calls=1, failed=result.is_error)
            return
        call, ran = known
        recalled = call.id in self.recalled
        self.recalled.discard(call.id)
        self._count(call.name, calls=recalled, failed=result.is_error, waiting=recalled - 1)
        if not result.is_error:
            done = file_calls(call, ran)
            self._changed({(one.path, one.op) for one in done if not isinstance(one.work, Read)})

    def _changed(self, files: set[tuple[str, str]]) -> None:
        for path, op in sorted(files):
            whole = posixpath.normpath(posixpath.join(self.cwd, path))
            ops = self.files.setdefault(whole, {})
            ops[op] = ops.get(op, 0) + 1

    def _count(self, name: str, *, calls: int = 0, failed: int = 0, waiting: int = 0) -> None:
        use = self.tools.get(name) or ToolUse(name)
        self.tools[name] = ToolUse(name, use.calls + calls, use.failed + failed, use.open + waiting)

    def _bill(self, name: str, usage: Usage, cost: Cost | None) -> None:
        use = self.models.get(name) or ModelUse(name)
        self.models[name] = ModelUse(name, use.calls + 1, use.usage + usage, _sum([use.cost, cost]))

    def deeds(self) -> Deeds:
        models = sorted(self.models.values(), key=lambda use: -use.calls)
        usage = Usage()
        for use in models:
            usage += use.usage
        return Deeds(
            self.entries,
            self.began,
            self.ended,
            tuple(self.exchanges),
            tuple(sorted(self.tools.values(), key=lambda use: (-use.calls, use.name))),
            tuple(FileUse(path, self.files[path]) for path in sorted(self.files)),
            tuple(models),
            usage,
            _sum([use.cost for use in models]),
            self.anchors,
            self.errors,
        )


def _said(entry: Entry, content: Content) -> Said:
    words = text_of(content)[: 4 * BRIEF]
    return Said(entry.id, entry.time, " ".join(words.split())[:BRIEF])


def _sum(costs: Iterable[Cost | None]) -> Cost | None:
    """Return what is known of a cost; None when nothing is."""
    known = [cost for cost in costs if cost is not None]
    return Cost(known[0].currency, sum(cost.amount for cost in known)) if known else None
