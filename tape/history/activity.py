"""What was done in a run of entries, in brief; pure and streamed.

Prompts and how they were answered, tools, files that changed, models, tokens and cost. Memory grows
with the prompts and the files, not with the entries: of a text only the beginning is kept.

What a result recorded of files counts; of a call without any record, what it says that it does.

A call is open from its answer to its result. Calls made before the run are recalled: their results
count as calls of the run, those without a result do not.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..files.calls import FileRead, parse_file_calls
from ..model.entries import (
    NO_JSON,
    Anchor,
    Assistant,
    Checkpoint,
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
    join_texts,
    select_tool_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Raw

    from ..model.entries import Content, ToolCall
    from ..model.line import Entry

BRIEF = 200
"""Characters of a text that are kept."""
_TYPED = frozenset({"steering", "follow_up"})


class Utterance(Struct, frozen=True):
    """The beginning of a text, on one line, and its entry."""

    entry: str
    time: str
    text: str


class Exchange(Struct, frozen=True):
    """A prompt and the last text of its answer; None if the run has no such entry."""

    prompt: Utterance | None
    answer: Utterance | None


class ToolUse(Struct, frozen=True):
    """How often a tool was called; `open` calls have no result in the run."""

    name: str
    calls: int = 0
    failed: int = 0
    open: int = 0


class FileUse(Struct, frozen=True):
    """A changed file: its path, absolute if the cwd is known, and counts by operation.

    Operations are those of a record, created, modified, deleted, renamed, mode; of a renamed file
    its old path has moved; an undo has restored. Without a record: write, edit and patch.
    """

    path: str
    ops: dict[str, int]


class ModelUse(Struct, frozen=True):
    """The use of a model: `calls`, tokens, and cost if known."""

    model: str
    calls: int = 0
    usage: Usage = Usage()
    cost: Cost | None = None


class Activity(Struct, frozen=True):
    """The summary of a run of entries; times are those of its first and last entry."""

    entries: int
    began: str | None
    ended: str | None
    exchanges: tuple[Exchange, ...]
    tools: tuple[ToolUse, ...]
    files: tuple[FileUse, ...]
    models: tuple[ModelUse, ...]
    usage: Usage
    cost: Cost | None
    """None if the cost of every call is unknown."""
    anchors: int
    errors: int


def summarize_activity(
    entries: Iterable[Entry], cwd: str = "", before: Iterable[Entry] = ()
) -> Activity:
    """Return the summary of entries, given oldest first; `cwd` is their initial folder.

    `before` are the entries before them from the newest answer on, whose calls they may answer.
    """
    reader = _ActivityReader(cwd)
    for entry in before:
        reader.recall_calls(entry)
    for entry in entries:
        reader.read(entry)
    return reader.build_activity()


class _ActivityReader:
    """The counts of the entries read so far."""

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
        """Calls without a result yet, and the arguments they ran with if those differ."""
        self.recalled: set[str] = set()
        """Those of them that are from before the run."""
        self.recorded: set[str] = set()
        """Calls whose files were checkpointed: what their results do not say did not happen."""

    def recall_calls(self, entry: Entry) -> None:
        """Note calls from before the run that have no result yet."""
        match entry.data:
            case Assistant(content=content):
                calls = select_tool_calls(content)
                self.open |= {call.id: (call, NO_JSON) for call in calls}
                self.recalled |= {call.id for call in calls}
            case ToolStart() | Checkpoint():
                self._note_call(entry.data, counts=False)
            case ToolResult():
                self.open.pop(entry.data.call_id, None)
            case _:
                pass

    def read(self, entry: Entry) -> None:
        self.entries += 1
        self.began, self.ended = self.began or entry.time, entry.time
        match entry.data:
            case User(content=content):
                self._add_prompt(entry, content)
            case Context(origin=origin, content=content) if origin in _TYPED:
                self._add_prompt(entry, content)
            case Assistant():
                self._add_answer(entry, entry.data)
            case ToolStart() | Checkpoint():
                self._note_call(entry.data)
            case ToolResult():
                self._add_result(entry.data)
            case SideUsage(provider=provider, model=model, usage=usage, cost=cost):
                self._add_model_use(f"{provider}/{model}", usage, cost)
            case Start(cwd=cwd) | Meta(cwd=str(cwd)):
                self.cwd = cwd
            case Anchor():
                self.anchors += 1
            case Error():
                self.errors += 1
            case _:
                pass

    def _add_prompt(self, entry: Entry, content: Content) -> None:
        self.exchanges.append(Exchange(_build_utterance(entry, content), None))

    def _add_answer(self, entry: Entry, answer: Assistant) -> None:
        utterance = _build_utterance(entry, answer.content)
        if utterance.text:
            last = self.exchanges.pop() if self.exchanges else Exchange(None, None)
            self.exchanges.append(replace(last, answer=utterance))
        for call in select_tool_calls(answer.content):
            self.open[call.id] = call, NO_JSON
            self.recalled.discard(call.id)
            self._count_tool_use(call.name, calls=1, waiting=1)
        if answer.model:
            name = f"{answer.provider}/{answer.model}" if answer.provider else answer.model
            self._add_model_use(name, answer.usage, answer.cost)

    def _note_call(self, note: ToolStart | Checkpoint, *, counts: bool = True) -> None:
        """Note the arguments that a call runs with, or that its files are recorded."""
        if isinstance(note, Checkpoint):
            self.recorded.add(note.call_id or "")
            for state in note.files if counts and note.why == "restore" else ():
                self._count_file_use(state.path, "restored")
        elif note.call_id in self.open:
            call, _ = self.open[note.call_id]
            self.open[note.call_id] = call, note.args

    def _add_result(self, result: ToolResult) -> None:
        known = self.open.pop(result.call_id, None)
        for file in result.files:
            self._count_file_use(file.path, file.op)
            if file.source:
                self._count_file_use(file.source, "moved")
        if known is None:
            self._count_tool_use(result.name, calls=1, failed=result.is_error)
            return
        call, ran = known
        recalled = call.id in self.recalled
        self.recalled.discard(call.id)
        self._count_tool_use(
            call.name, calls=recalled, failed=result.is_error, waiting=recalled - 1
        )
        is_recorded = call.id in self.recorded
        self.recorded.discard(call.id)
        if not (result.is_error or result.files or is_recorded):
            done = parse_file_calls(call, ran)
            changed = {(call.path, call.op) for call in done if not isinstance(call.work, FileRead)}
            for path, op in sorted(changed):
                self._count_file_use(path, op)

    def _count_file_use(self, path: str, op: str) -> None:
        ops = self.files.setdefault(posixpath.normpath(posixpath.join(self.cwd, path)), {})
        ops[op] = ops.get(op, 0) + 1

    def _count_tool_use(
        self, name: str, *, calls: int = 0, failed: int = 0, waiting: int = 0
    ) -> None:
        use = self.tools.get(name) or ToolUse(name)
        self.tools[name] = ToolUse(name, use.calls + calls, use.failed + failed, use.open + waiting)

    def _add_model_use(self, name: str, usage: Usage, cost: Cost | None) -> None:
        use = self.models.get(name) or ModelUse(name)
        self.models[name] = ModelUse(
            name, use.calls + 1, use.usage + usage, _sum_costs([use.cost, cost])
        )

    def build_activity(self) -> Activity:
        models = sorted(self.models.values(), key=lambda use: -use.calls)
        usage = Usage()
        for use in models:
            usage += use.usage
        return Activity(
            self.entries,
            self.began,
            self.ended,
            tuple(self.exchanges),
            tuple(sorted(self.tools.values(), key=lambda use: (-use.calls, use.name))),
            tuple(FileUse(path, self.files[path]) for path in sorted(self.files)),
            tuple(models),
            usage,
            _sum_costs([use.cost for use in models]),
            self.anchors,
            self.errors,
        )


def _build_utterance(entry: Entry, content: Content) -> Utterance:
    words = join_texts(content)[: 4 * BRIEF]
    return Utterance(entry.id, entry.time, " ".join(words.split())[:BRIEF])


def _sum_costs(costs: Iterable[Cost | None]) -> Cost | None:
    """Return the sum of the known costs; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return Cost(known[0].currency, sum(cost.amount for cost in known)) if known else None
