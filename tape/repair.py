"""Repair: a view becomes messages that every provider accepts, and says what it did (tape.md §6).

Pure and idempotent: the same view and target always give the same messages. Each call has exactly
one result, directly after its assistant message, in call order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from .blocks import (
    NO_JSON,
    Audio,
    Block,
    Content,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    tool_calls,
)
from .entries import Assistant, Context, Error, Injected, Repair, ToolResult, ToolStart, User
from .view import Message, Role, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .line import Entry

NO_RESULT = "No result provided"
"""How the text of every result made up by repair begins."""
NEVER_RAN = f"{NO_RESULT}: the call never ran."
UNKNOWN_OUTCOME = (
    f"{NO_RESULT}: the call was begun and its outcome is unknown. "
    "Look at the state of things before running it again."
)
STOPPED = f"{NO_RESULT}: the user stopped it before it ran."
ABORTED = "Aborted"
"""Class of the error entry that says a user stopped the turn."""
_BLIND = Text("(image omitted: model does not support images)")
_ROLES: dict[str, Role] = {"system": "system", "assistant": "assistant"}


class Target(Struct, frozen=True):
    """Who the messages are for; `wire` data goes only where all three first fields are equal."""

    endpoint: str
    api: str
    model: str
    sees_images: bool = True


class Repaired(Struct, frozen=True):
    """Sendable messages, and the entry that records what was mended; None when nothing was."""

    messages: tuple[Message, ...]
    repair: Repair | None


class _Turn:
    """A message on its way; an assistant's collects the results of its calls."""

    __slots__ = ("calls", "entry", "message", "results", "started", "stopped")

    def __init__(self, entry: Entry, message: Message) -> None:
        self.entry, self.message = entry, message
        self.calls: tuple[ToolCall, ...] = ()
        self.results: dict[str, Message] = {}
        self.started: set[str] = set()
        self.stopped = False


class _Fold:
    """Reads entries in order and sorts results to their calls."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.turns: list[_Turn] = []
        self.open: dict[str, _Turn] = {}
        self.last: _Turn | None = None
        self.dropped: list[str] = []

    def read(self, entry: Entry) -> None:
        match entry.data:
            case User(content=content):
                self.last = None  # stopping now is not stopping what went before
                self._say(entry, "user", content)
            case Context(role=role, content=content):
                self._say(entry, _ROLES.get(role, "user"), content)
            case Assistant() as answer:
                self._answer(entry, answer)
            case ToolStart(call_id=call):
                if call in self.open:
                    self.open[call].started.add(call)
            case ToolResult() as result:
                self._result(entry, result)
            case Error(kind=kind) if kind == ABORTED and self.last is not None:
                self.last.stopped = True
            case _:
                pass

    def _say(self, entry: Entry, role: Role, content: Content) -> None:
        content = sendable(content, self.target, foreign=True)
        if content:
            self.turns.append(_Turn(entry, Message(role, content)))
        else:
            self.dropped.append(entry.id)

    def _answer(self, entry: Entry, answer: Assistant) -> None:
        self.last = None
        calls = tool_calls(answer.content)
        for call in calls:
            self.open.pop(call.id, None)
        foreign = (answer.endpoint, answer.api, answer.model) != (
            self.target.endpoint,
            self.target.api,
            self.target.model,
        )
        content = sendable(answer.content, self.target, foreign=foreign)
        if answer.stop_reason in {"aborted", "error"} or not content:
            self.dropped.append(entry.id)
            return
        turn = _Turn(entry, Message("assistant", content))
        turn.calls = calls
        self.turns.append(turn)
        self.last = turn
        self.open.update((call.id, turn) for call in calls)

    def _result(self, entry: Entry, result: ToolResult) -> None:
        turn = self.open.get(result.call_id)
        if turn is None or result.call_id in turn.results:
            self.dropped.append(entry.id)
            return
        content = sendable(result.content, self.target, foreign=True) or (Text("(no output)"),)
        turn.results[result.call_id] = Message(
            "tool", content, result.call_id, result.name, result.is_error
        )


def repair(view: View, target: Target) -> Repaired:
    """Return the messages of a view for one target, and what had to be mended."""
    fold = _Fold(target)
    for entry in (*view.kept, *view.entries):
        fold.read(entry)
    messages = [Message("user", (Text(view.summary),))] if view.summary else []
    injected: list[Injected] = []
    for turn in fold.turns:
        messages.append(turn.message)
        for call in turn.calls:
            result = turn.results.get(call.id)
            if result is None:
                text = _unanswered(turn, call)
                injected.append(Injected(call.id, text))
                result = Message("tool", (Text(text),), call.id, call.name, is_error=True)
            messages.append(result)
    return Repaired(tuple(messages), _record(injected, fold.dropped))


def _unanswered(turn: _Turn, call: ToolCall) -> str:
    if call.id in turn.started:
        return UNKNOWN_OUTCOME
    return STOPPED if turn.stopped else NEVER_RAN


def _record(injected: Sequence[Injected], dropped: Sequence[str]) -> Repair | None:
    if not injected and not dropped:
        return None
    why = [f"{len(injected)} calls had no result"] if injected else []
    why += [f"{len(dropped)} entries cannot be sent"] if dropped else []
    return Repair("results", tuple(injected), tuple(dropped), why=" · ".join(why))


def is_recorded(repair: Repair, path: Iterable[Entry]) -> bool:
    """Tell whether the newest `results` repair on a path says the same already."""
    newest = None
    for entry in path:
        if isinstance(entry.data, Repair) and entry.data.kind == "results":
            newest = entry.data
    return newest is not None and (newest.injected, newest.dropped) == (
        repair.injected,
        repair.dropped,
    )


def sendable(content: Content, target: Target, *, foreign: bool) -> Content:
    """Return the blocks a target may see; `foreign` when another model wrote them."""
    blocks = (_sendable(block, target, foreign=foreign) for block in content)
    return tuple(block for block in blocks if block is not None)


def _sendable(block: Block, target: Target, *, foreign: bool) -> Block | None:
    match block:
        case Unknown():
            return None
        case Text(text=text) if not text.strip():  # providers refuse blank ones too
            return None
        case Opaque() | Thinking(redacted=True):
            return None if foreign else block
        case Thinking(text=text) if not text and (foreign or block.wire == NO_JSON):
            return None
        case Image() if not target.sees_images:
            return _BLIND
        case Text() | Thinking() | Image() | Document() | Audio() | ToolCall():
            return replace(block, wire=NO_JSON) if foreign and block.wire != NO_JSON else block
