"""Repair: turn a view into messages that every provider accepts (tape.md §6).

Pure and idempotent: the same view and target always give the same messages. Each call has exactly
one result, directly after its assistant message, in call order.

From a head to the input of a model call: view and repair in one pass over the path.

Each run of entries is repaired as it comes from the disk: while it is in the processor's cache that
takes half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct

from ..damage import warn_of_damage
from ..model.entries import (
    Anchor,
    Assistant,
    Context,
    Error,
    InjectedResult,
    Repair,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
    select_tool_calls,
)
from ..model.summary import render_summary
from .view import (
    Message,
    Role,
    Target,
    View,
    is_foreign_answer,
    is_plain_text,
    list_plain_call_ids,
    select_visible_blocks,
    select_visible_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..model.entries import Payload
    from ..model.line import Entry
    from ..store.refs import Head
    from ..store.tape import Tape


__all__ = [
    "ABORTED",
    "NEVER_RAN",
    "NO_RESULT",
    "STOPPED",
    "UNKNOWN_OUTCOME",
    "IncrementalRepair",
    "Repaired",
    "Target",
    "is_repair_recorded",
    "repair",
    "select_visible_blocks",
]

NO_RESULT = "No result provided"
"""The beginning of the text of every placeholder result."""
NEVER_RAN = f"{NO_RESULT}: the call never ran."
UNKNOWN_OUTCOME = (
    f"{NO_RESULT}: the call was begun and its outcome is unknown. "
    "Look at the state of things before running it again."
)
STOPPED = f"{NO_RESULT}: the user stopped it before it ran."
NOT_SENT = frozenset({"aborted", "error"})
"""Stop reasons of answers that are left out."""
ABORTED = "Aborted"
"""Class of the error entry that records that the user stopped the turn."""
_ROLES: dict[str, Role] = {"system": "system", "assistant": "assistant"}


class Repaired(Struct, frozen=True):
    """Sendable messages, and the entry that records the repair; None if nothing was repaired."""

    messages: tuple[Message, ...]
    repair: Repair | None


class _CarefulReader:
    """Processes entries in order: each call has a slot in `messages` until its result replaces it.

    It creates no object per call that the garbage collector has to track: a long history has many
    calls.
    """

    def __init__(self, target: Target, messages: list[Message | ToolCall]) -> None:
        self.target, self.messages = target, messages
        self.open: dict[str, int] = {}
        """Index in `messages` of the newest call of each id."""
        self.again: dict[int, int] = {}
        """Index of the first call, if an id is used twice in one answer."""
        self.last = range(0)
        """Indexes of the calls of the newest answer."""
        self.started: set[int] = set()
        self.stopped: set[int] = set()
        self.dropped: list[str] = []

    def read(self, entries: Iterable[Entry]) -> None:
        readers: dict[type[Payload], Callable[[Entry, Any], object]] = {
            User: self._read_user,
            Context: self._append_message,
            Assistant: self._read_answer,
            ToolStart: self._read_tool_start,
            ToolResult: self._read_result,
            Error: self._read_error,
        }
        for entry in entries:
            data = entry.data
            read = readers.get(type(data))
            if read is not None:
                read(entry, data)

    def _read_user(self, entry: Entry, user: User) -> None:
        self.last = range(0)  # stopping this turn does not concern calls of earlier turns
        self._append_message(entry, user)

    def _append_message(self, entry: Entry, data: User | Assistant | Context) -> bool:
        said = _build_message(data, self.target)
        if said is None:
            self.dropped.append(entry.id)
            return False
        self.messages.append(said)
        return True

    def _read_tool_start(self, _: Entry, start: ToolStart) -> None:
        place = self.open.get(start.call_id)
        if place is not None:
            self.started.add(place)

    def _read_error(self, _: Entry, error: Error) -> None:
        if error.kind == ABORTED:
            self.stopped.update(self.last)

    def _read_answer(self, entry: Entry, answer: Assistant) -> None:
        self.last = range(0)
        calls = select_tool_calls(answer.content)
        for call in calls:
            self.open.pop(call.id, None)
        if not self._append_message(entry, answer):
            return
        begin = len(self.messages)
        for place, call in enumerate(calls, begin):
            first = self.open.setdefault(call.id, place)
            if first != place:
                self.again[place] = first
        self.messages += calls
        self.last = range(begin, len(self.messages))

    def _read_result(self, entry: Entry, result: ToolResult) -> None:
        place = self.open.get(result.call_id)
        if place is None or isinstance(self.messages[place], Message):
            self.dropped.append(entry.id)
            return
        content = select_visible_result(result.content, self.target)
        self.messages[place] = Message(
            "tool", content, result.call_id, result.name, result.is_error
        )

    def fill_missing_results(self) -> tuple[tuple[Message, ...], list[InjectedResult]]:
        """Return the messages with a result for every call, and the placeholder results."""
        injected: list[InjectedResult] = []
        open_ones = [
            (place, call) for place, call in enumerate(self.messages) if type(call) is ToolCall
        ]
        unanswered = {place for place, _ in open_ones}
        for place, call in open_ones:
            first = self.again.get(place, place)
            if first in unanswered:
                text = self._explain_missing_result(first)
                injected.append(InjectedResult(call.id, text))
                self.messages[place] = Message(
                    "tool", (Text(text),), call.id, call.name, is_error=True
                )
            else:
                self.messages[place] = self.messages[first]
        return cast("tuple[Message, ...]", tuple(self.messages)), injected

    def _explain_missing_result(self, place: int) -> str:
        if place in self.started:
            return UNKNOWN_OUTCOME
        return STOPPED if place in self.stopped else NEVER_RAN


class _OrderlyStart(NamedTuple):
    """The beginning of a history that needs no repair."""

    messages: list[Message]
    length: int
    """Its number of entries; it ends where no call waits for a result."""
    goes_on: bool
    """Whether following entries may belong to it too."""


def _read_orderly_start(entries: Sequence[Entry], target: Target) -> _OrderlyStart:  # noqa: C901, PLR0912 (below)
    """Return the beginning of a history that needs no repair.

    For nearly every history that is all of it: everything may be sent, and each answer is followed
    by the results of its calls, in order. `_Fold` gives the same messages in four times the time:
    this loop runs for every entry, so it calls few functions, and compares types because isinstance
    is slow with Structs.
    """
    messages: list[Message] = []
    waiting: list[str] = []
    place, border = 0, (0, 0)  # `results` are those of the newest answer with calls
    goes_on = False
    for place, entry in enumerate(entries):
        data = entry.data
        if type(data) is ToolResult:
            if not waiting or waiting[-1] != data.call_id:
                break
            waiting.pop()
            content = data.content
            if not is_plain_text(content):
                content = select_visible_result(content, target)
            messages.append(Message("tool", content, data.call_id, data.name, data.is_error))
        elif type(data) is Assistant:
            content, calls = data.content, list_plain_call_ids(data.content)
            if calls is None:
                calls = [call.id for call in select_tool_calls(content)]
                content = select_visible_blocks(
                    content, target, foreign=is_foreign_answer(data, target)
                )
            if waiting or not content or data.stop_reason in NOT_SENT:
                break
            if calls:
                border, waiting = (len(messages), place), calls
                if len(calls) > 1:
                    if len({*calls}) < len(calls):
                        break
                    calls.reverse()
            messages.append(Message("assistant", content))
        elif type(data) is User or type(data) is Context:
            said = None if waiting else _build_message(data, target)
            if said is None:
                break
            messages.append(said)
    else:
        place, goes_on = len(entries), True
    if waiting:
        return _OrderlyStart(messages[: border[0]], border[1], goes_on)
    return _OrderlyStart(messages, place, goes_on)


def _build_message(data: Assistant | User | Context, target: Target) -> Message | None:
    """Return an entry as a message; None if it is not sent."""
    if type(data) is Assistant:
        if data.stop_reason in NOT_SENT:
            return None
        content = select_visible_blocks(
            data.content, target, foreign=is_foreign_answer(data, target)
        )
        return Message("assistant", content) if content else None
    role = _ROLES.get(data.role, "user") if type(data) is Context else "user"
    content = select_visible_blocks(data.content, target, foreign=True)
    return Message(role, content) if content else None


class IncrementalRepair:
    """A repair that reads its entries run by run, oldest first, as they come from the disk."""

    def __init__(self, target: Target, summary: str | None = None) -> None:
        self._target = target
        self._messages: list[Message] = []
        if summary:
            self._messages.append(Message("user", (Text(summary),)))
        self._rest: list[Entry] = []
        """Entries without messages yet: the newest answer waits for results."""
        self._fold: _CarefulReader | None = None

    def read(self, entries: Sequence[Entry]) -> None:
        """Process the next entries."""
        if self._fold is not None:
            self._fold.read(entries)
            return
        entries = [*self._rest, *entries]
        found = _read_orderly_start(entries, self._target)
        self._messages += found.messages
        self._rest = entries[found.length :]
        if not found.goes_on or len(self._rest) > _MAX_REREAD_ENTRIES:
            self._read_carefully()

    def _read_carefully(self) -> _CarefulReader:
        """Switch to the careful reading from here on."""
        self._fold = _CarefulReader(self._target, [*self._messages])
        self._fold.read(self._rest)
        return self._fold

    def finish_repair(self) -> Repaired:
        """Return the messages and the repair."""
        fold = self._fold or self._read_carefully()
        messages, injected = fold.fill_missing_results()
        return Repaired(messages, _build_repair_entry(injected, fold.dropped))


_MAX_REREAD_ENTRIES = 10_000
"""Number of pending entries above which they are no longer read again with each run."""


def repair(view: View, target: Target) -> Repaired:
    """Return the messages of a view for one target, and the repair."""
    repairing = IncrementalRepair(target, view.summary)
    repairing.read((*view.kept, *view.entries))
    return repairing.finish_repair()


def _build_repair_entry(
    injected: Sequence[InjectedResult], dropped: Sequence[str]
) -> Repair | None:
    if not injected and not dropped:
        return None
    calls, entries = len(injected), len(dropped)
    why = [f"{calls} call{'s' * (calls > 1)} had no result"] if injected else []
    why += [f"{entries} {'entries' if entries > 1 else 'entry'} cannot be sent"] if dropped else []
    return Repair("results", tuple(injected), tuple(dropped), why=" · ".join(why))


def is_repair_recorded(repair: Repair, path: Iterable[Entry]) -> bool:
    """Return whether the newest `results` repair on a path records the same."""
    newest = None
    for entry in path:
        if isinstance(entry.data, Repair) and entry.data.kind == "results":
            newest = entry.data
    return newest is not None and (newest.injected, newest.dropped) == (
        repair.injected,
        repair.dropped,
    )


class ModelInput(NamedTuple):
    """The view of a head, and the messages to send."""

    view: View
    repaired: Repaired


def build_messages(
    tape: Tape, head: Head, target: Target, skipped: Callable[[str], None] = warn_of_damage
) -> ModelInput:
    """Return the view of a head and its messages: `repair(view(path, kept), target)`.

    Entries that do not verify are left out and reported to `skipped`: changed bytes are never sent
    to a model. Raises Damaged and NotFound as `Tape.path` and `Tape.kept` do.
    """
    summary: str | None = None
    kept: tuple[Entry, ...] = ()
    entries: list[Entry] = []
    repairing: IncrementalRepair | None = None
    for run in tape.read_runs(head, to_anchor=True, skipped=skipped):
        if repairing is None:
            if run and isinstance(anchor := run[0].data, Anchor):
                summary, kept = render_summary(anchor.summary), tuple(tape.kept(anchor, skipped))
                del run[0]
            repairing = IncrementalRepair(target, summary)
            repairing.read(kept)
        repairing.read(run)
        entries += run
    repaired = (repairing or IncrementalRepair(target)).finish_repair()
    return ModelInput(View(summary, kept, tuple(entries)), repaired)
