"""Repair: turn a view into messages that every provider accepts (tape.md §6).

Pure and idempotent: the same view and target always give the same messages. Each call has exactly
one result, directly after its assistant message, in call order.

One fold over the entries, oldest first. Each call that may be sent gets a place in `messages`
directly after its answer, and the call itself is there until its result takes the place:

    entry                              messages
    user "go"                          [user]
    assistant, calls a and b           [user, assistant, a, b]
    tool.result b                      [user, assistant, a, result b]
    user "and?"                        [user, assistant, a, result b, user]
    tool.result a                      [user, assistant, result a, result b, user]
    tool.result a, once more           dropped: the first one wins
    (the end)                          a call still in its place gets an error as its result

What the error says of a call without a result:

    what follows the call                                        text
    tool.start of the call                                       UNKNOWN_OUTCOME
    error "Aborted", before another prompt or answer             STOPPED
    anything else                                                NEVER_RAN
"""

from __future__ import annotations

from itertools import chain, islice
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
from ..text import format_count
from .view import (
    Message,
    MessageSnapshot,
    Role,
    Target,
    View,
    is_foreign_answer,
    list_plain_calls,
    select_visible_blocks,
    select_visible_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..model.line import Entry
    from ..store.refs import Head
    from ..store.tape import Tape

NO_RESULT = "No result provided"
"""How the text of every injected result begins."""
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
    """Sendable messages, and the entry that records what was repaired; None when nothing was."""

    messages: tuple[Message, ...]
    repair: Repair | None


class IncrementalRepair:
    """A repair that is handed its entries run by run, oldest first, as they come.

    `summary` is the text of the anchor that the view begins with, and becomes the first message.
    What it gives can be asked for after any run, and costs what the run and the calls without a
    result do, whatever came before:

        read                         list                          snapshot
        user, answer with call a     [user, answer, a]             user, answer, error for a
        tool.result a                a new list, because the       user, answer, result a
                                     error was in a snapshot
        user                         the same, longer              user, answer, result a, user
    """

    def __init__(self, target: Target, summary: str | None = None) -> None:
        self._target = target
        self._messages: list[Message | ToolCall] = []
        """A call is in the place of its result until that comes, or an error stands for it."""
        self._taken = 0
        """How many messages were taken away from the front of the list: places count them, too."""
        self._shown = 0
        """Length of the newest snapshot of the list: these places stay as they are."""
        if summary:
            self._messages.append(Message("user", (Text(summary),)))
        # Places in `_messages`, as plain numbers: a long history has many calls, and objects that
        # the garbage collector tracks would cost more than all the rest.
        self._places: dict[str, int] = {}
        """Of the newest call of each id."""
        self._repeated: dict[int, int] = {}
        """Of the first call, for one whose id is in the same answer twice."""
        self._newest = range(0)
        """Of the calls of the newest answer; empty after a prompt."""
        self._waiting: dict[int, ToolCall] = {}
        """Of the calls without a result."""
        self._started: set[int] = set()
        self._stopped: set[int] = set()
        self._dropped: list[str] = []
        self._recorded: Repair | None = None
        """What the newest repair among the entries says."""

    def read(self, entries: Iterable[Entry]) -> None:
        """Take the next entries.

        This runs for every entry of a history, so it asks for exact types: isinstance and match
        take several times as long with Structs.
        """
        places, target = self._places, self._target
        for entry in entries:
            data: Any = entry.data
            kind = type(data)
            if kind is ToolResult:
                # Providers refuse a result without a call, and a second one for the same call; both
                # occur in imported histories.
                place = places.get(data.call_id)
                if place is None or self._waiting.pop(place, None) is None:
                    self._dropped.append(entry.id)
                    continue
                content = select_visible_result(data.content, target)
                message = Message("tool", content, data.call_id, data.name, data.is_error)
                self._fill_place(place, message)
            elif kind is Assistant:
                self._read_answer(entry.id, data)
            elif kind is ToolStart:  # a kill after this leaves a call that may have had effects
                if data.call_id in places:
                    self._started.add(places[data.call_id])
            elif kind is User or kind is Context:
                self._read_prompt(entry.id, data)
            elif kind is Error and data.kind == ABORTED:
                self._stopped.update(self._newest)
            elif kind is Repair and data.kind == "results":
                self._recorded = data

    def _fill_place(self, place: int, message: Message) -> None:
        # Somebody may still read the snapshot, so the list it shows is left as it is.
        if place < self._shown:
            self._messages, self._shown = [*self._messages], 0
        self._messages[place - self._taken] = message

    def _read_prompt(self, entry: str, prompt: User | Context) -> None:
        role: Role = "user"
        if type(prompt) is Context:
            role = _ROLES.get(prompt.role, role)
        else:
            self._newest = range(0)  # stopping now is not stopping what went before
        content = select_visible_blocks(prompt.content, self._target, foreign=True)
        if content:
            self._messages.append(Message(role, content))
        else:
            self._dropped.append(entry)

    def _read_answer(self, entry: str, answer: Assistant) -> None:
        content, calls = answer.content, list_plain_calls(answer.content)
        if calls is None:  # more than plain words and calls: nearly never
            calls = [*select_tool_calls(content)]
            foreign = is_foreign_answer(answer, self._target)
            content = select_visible_blocks(content, self._target, foreign=foreign)
        self._newest = range(0)
        # A provider refuses an empty answer, and one that broke off may end in half a call.
        if not content or answer.stop_reason in NOT_SENT:
            self._dropped.append(entry)
            # Ids repeat in imported histories. A result that follows is of the answer left out, and
            # must not become the result of an older call with its id.
            for call in calls:
                self._places.pop(call.id, None)
            return
        messages, places = self._messages, self._places
        messages.append(Message("assistant", content))
        if not calls:
            return
        begin = self._taken + len(messages)
        messages += calls
        self._newest = range(begin, begin + len(calls))
        for place, call in enumerate(calls, begin):
            self._waiting[place] = call
            first = places.get(call.id, -1)
            # An id twice in one answer has one result on the tape: both calls are sent with it.
            if first >= begin:
                self._repeated[place] = first
            else:
                places[call.id] = place

    def inject_results(self) -> MessageSnapshot:
        """Return the messages of what was read, each call with a result."""
        for place, call in self._waiting.items():
            first = self._repeated.get(place, place)
            if first in self._waiting:
                content = (Text(self._explain_missing(first)),)
                message = Message("tool", content, call.id, call.name, is_error=True)
            else:
                message = cast("Message", self._messages[first - self._taken])
            # The error may have been asked for before, with another text: a tool.start came since.
            if self._messages[place - self._taken] != message:
                self._fill_place(place, message)
        self._shown = len(self._messages)
        return MessageSnapshot(cast("list[Message]", self._messages))

    def take_settled(self) -> list[Message]:
        """Return the messages that nothing can change any more, and forget them.

        They end before the first call without a result. Snapshots from then on begin behind them.
        """
        needed = (min(place, self._repeated.get(place, place)) for place in self._waiting)
        end = min(needed, default=self._taken + len(self._messages)) - self._taken
        settled = cast("list[Message]", self._messages[:end])
        del self._messages[:end]
        self._taken += end
        return settled

    def describe_repair(self) -> Repair | None:
        """Return what had to be repaired in what was read."""
        injected = tuple(
            InjectedResult(call.id, self._explain_missing(first))
            for place, call in self._waiting.items()
            if (first := self._repeated.get(place, place)) in self._waiting
        )
        if not injected and not self._dropped:
            return None
        calls, entries = len(injected), len(self._dropped)
        why = [f"{format_count(calls, 'call')} had no result"] if injected else []
        why += [f"{entries} {'entries' if entries > 1 else 'entry'} cannot be sent"] * (entries > 0)
        return Repair("results", injected, tuple(self._dropped), why=" · ".join(why))

    def find_unrecorded_repair(self) -> Repair | None:
        """Return what had to be repaired, if the newest repair among the entries differs."""
        repair, recorded = self.describe_repair(), self._recorded
        if repair is None or recorded is None:
            return repair
        is_same = (recorded.injected, recorded.dropped) == (repair.injected, repair.dropped)
        return None if is_same else repair

    def _explain_missing(self, place: int) -> str:
        if place in self._started:
            return UNKNOWN_OUTCOME
        return STOPPED if place in self._stopped else NEVER_RAN

    def finish_repair(self) -> Repaired:
        """Return the messages, each call with a result, and what had to be repaired."""
        return Repaired(tuple(self.inject_results()), self.describe_repair())


def repair(view: View, target: Target) -> Repaired:
    """Return the messages of a view for one target, and what had to be repaired."""
    repairing = IncrementalRepair(target, view.summary)
    repairing.read(view.kept)
    repairing.read(view.entries)
    return repairing.finish_repair()


def iter_repaired_messages(view: View, target: Target) -> Iterator[Message]:
    """Yield what `repair` returns the messages of, in little memory whatever the view holds."""
    repairing = IncrementalRepair(target, view.summary)
    entries = chain(view.kept, view.entries)
    while run := [*islice(entries, _RUN)]:
        repairing.read(run)
        yield from repairing.take_settled()
    yield from repairing.inject_results()


_RUN = 1_000
"""Entries that are repaired before messages are yielded."""


class ModelInput(NamedTuple):
    """What a model sees of a path, and the messages it is sent."""

    view: View
    repaired: Repaired


def build_messages(
    tape: Tape, head: Head, target: Target, skipped: Callable[[str], None] = warn_of_damage
) -> ModelInput:
    """Return the view of a head and its messages: `repair(view(path, kept), target)`.

    Each run of entries is repaired as it comes from the disk: while it is in the processor's cache
    that takes half the time. Entries that do not verify are left out and reported to `skipped`:
    changed bytes never go to a model. Raises Damaged and NotFound as `Tape.path` and `Tape.kept`
    do.
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
