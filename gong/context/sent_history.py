"""What the next request holds of a branch, kept between calls and folded entry by entry; pure.

    entries ──repair──▶ messages ──elide_results──▶ what is sent ──▶ its tokens

A round adds a few entries to a view that may have a hundred thousand, so the fold of those before
is kept:

    what happened since                                   the fold
    ----------------------------------------------------  -------------------------------------
    entries were appended to the same path                continues with them
    one of them elides or cuts results, or is a result    continues; results are elided once more
    for a call that was sent without one
    another path or other kept entries (compaction,       a new one, with all entries
    undo, fork, reopening), an anchor, another model

A new fold continues from nothing: there is one implementation, and what it returns never depends on
what was asked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.context.repair import IncrementalRepair
from tape.context.view import MessageSnapshot, Target, view
from tape.model.entries import Anchor, Assistant, Custom

from .tokens import (
    CHARS_PER_TOKEN,
    MESSAGE_TOKENS,
    REDUCTION_KINDS,
    ContextSize,
    SampledEstimate,
    compute_token_bound,
    count_fixed_tokens,
    get_sent_content,
    read_counted_tokens,
)
from .trim import elide_results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.context.view import Message
    from tape.model.entries import Content, Repair
    from tape.model.line import Entry

    from ..llm.types import Request

_FAR_SHARE = 0.5
"""Share of a limit up to which another tokenizer's count shows that the limit is far away."""


class HistoryFold:
    """The newest fold, of whichever branch and model it was asked for last."""

    def __init__(self) -> None:
        self._model, self._target = "", Target("", "", "")
        self._path: Sequence[Entry] | None = None
        self._kept: Sequence[Entry] = ()
        self._read = 0
        """Length of the path when it was read."""
        self._fold = _ViewFold(self._model, self._target, None, ())

    def follow(
        self, model: str, target: Target, path: Sequence[Entry], kept: Sequence[Entry]
    ) -> SentHistory:
        """Return what a model, by its id, is sent of a path; `kept` are its anchor's entries.

        A list that is passed again may only have grown at its end: whoever changes it in another
        way passes another list.
        """
        new = path[self._read :]
        if (
            (self._model, self._target) != (model, target)
            or self._path is not path
            or self._kept is not kept
            or any(type(entry.data) is Anchor for entry in new)
        ):
            seen = view(path, kept)
            self._model, self._target, self._path, self._kept = model, target, path, kept
            self._fold = _ViewFold(model, target, seen.summary, seen.kept)
            new = seen.entries
        self._read = len(path)
        self._fold.read(new)
        return self._fold.build_sent()


class _ViewFold:
    """What is sent of the entries of one view that were read so far."""

    def __init__(
        self, model: str, target: Target, summary: str | None, kept: Sequence[Entry]
    ) -> None:
        self._model = model
        self._entries = [*kept]
        self._repairing = IncrementalRepair(target, summary)
        self._repairing.read(kept)
        self._repaired = MessageSnapshot([])
        """The messages when they were asked for last."""
        self._has_reductions = self._has_new_reduction = any(map(_is_reduction, kept))
        self._reduced: list[Message] = []
        """The messages with results elided and cut, if an entry says so."""
        self._counted = 0
        """Tokens up to the newest answer that its provider counted; 0 if there is none."""
        self._tail: list[Entry] = []
        """The entries after that answer."""
        self._recorded, self._recorded_end = 0, 0
        """Tokens up to the newest answer that any provider counted, and its end in `_entries`."""
        self._bounds = _RunningTotal(lambda: compute_token_bound)
        self._estimates = _RunningTotal(lambda: SampledEstimate().count)

    def read(self, entries: Sequence[Entry]) -> None:
        """Take the next entries of the path."""
        self._repairing.read(entries)
        before = len(self._entries)
        self._entries += entries
        for end, entry in enumerate(entries, before + 1):
            data = entry.data
            if type(data) is Assistant and (tokens := read_counted_tokens(data, data.model)):
                self._recorded, self._recorded_end = tokens, end
                if data.model == self._model:
                    self._counted = tokens
                    self._tail.clear()
                    continue
            elif _is_reduction(entry):
                self._has_reductions = self._has_new_reduction = True
                self._counted = self._recorded = 0
            if self._counted:
                self._tail.append(entry)

    def build_sent(self) -> SentHistory:
        """Return what is sent of all entries read so far."""
        repaired, before = self._repairing.inject_results(), self._repaired
        messages, self._repaired = repaired, repaired
        if self._has_reductions:
            if repaired.continues(before) and not self._has_new_reduction:
                # A decision names an entry before itself, so it reaches none of the new ones.
                self._reduced += repaired[len(before) :]
            else:
                self._reduced = [*elide_results(repaired, self._entries)]
                self._has_new_reduction = False
            messages = MessageSnapshot(self._reduced)
        return SentHistory(
            messages,
            self._repairing.describe_repair(),
            self._repairing.find_unrecorded_repair(),
            HistorySize(
                messages,
                self._counted,
                [*self._tail],
                self._recorded,
                self._entries[self._recorded_end :] if self._recorded else (),
                self._bounds,
                self._estimates,
            ),
        )


def _is_reduction(entry: Entry) -> bool:
    return type(entry.data) is Custom and entry.data.kind in REDUCTION_KINDS


class _RunningTotal:
    """The tokens of messages by one rule; each is counted once while the messages only grow.

    `begin` returns the rule for messages from the first one on.
    """

    def __init__(self, begin: Callable[[], Callable[[Content], int]]) -> None:
        self.begin, self._count = begin, begin()
        self._messages, self._tokens = MessageSnapshot([]), 0

    def add_up(self, messages: MessageSnapshot) -> int:
        """Return the tokens of all messages."""
        if not messages.continues(self._messages):
            self._messages, self._tokens = MessageSnapshot([]), 0
            self._count = self.begin()
        for message in messages[len(self._messages) :]:
            self._tokens += self._count(message.content) + MESSAGE_TOKENS
        self._messages = messages
        return self._tokens


class HistorySize(NamedTuple):
    """How many tokens a history takes in a request: at most, found at once, and estimated."""

    messages: MessageSnapshot
    counted: int
    """Tokens up to the newest answer that its provider counted; 0 if there is none."""
    tail: Sequence[Entry]
    """The entries after that answer."""
    recorded: int
    """Tokens up to the newest answer that any provider counted, by its own tokenizer; 0 if none."""
    recorded_tail: Sequence[Entry]
    """The entries after that answer."""
    bounds: _RunningTotal
    estimates: _RunningTotal

    def compute_bound(self, request: Request) -> int:
        """Return at least as many tokens as `measure` finds."""
        return self._add_up(request, self.bounds)

    def measure(self, request: Request) -> ContextSize:
        """Return the size of a call that is about to be made with these messages.

        It is the provider's count for the newest answer that is still valid for the view, plus an
        estimate of what came after it; without one, an estimate of the whole request.
        """
        return ContextSize(self._add_up(request, self.estimates), self.counted > 0)

    def measure_near(self, request: Request, limit: float) -> int:
        """Return the tokens of the call, found as cheaply as `limit` allows.

        An estimate reads the whole past, which another model begins with. So what the provider of
        an earlier model counted is taken where it is far below the limit, and a part of the bound
        where nothing was counted and even the bound is within the limit:

            limit 100,000   another model counted 30,000        30,000 and an estimate of the rest
                            another model counted 70,000        measured
                            none counted, bound of 90,000       22,500
                            none counted, bound of 110,000      measured
        """
        if not self.counted:
            if self.recorded:
                tokens = self._add_tail(self.recorded, self.recorded_tail, self.estimates)
                if tokens <= _FAR_SHARE * limit:
                    return tokens
            elif (bound := self.compute_bound(request)) <= limit:
                return bound // CHARS_PER_TOKEN
        return self.measure(request).tokens

    def _add_up(self, request: Request, total: _RunningTotal) -> int:
        if self.counted:
            return self._add_tail(self.counted, self.tail, total)
        return count_fixed_tokens(request.system, request.tools) + total.add_up(self.messages)

    def _add_tail(self, counted: int, tail: Sequence[Entry], total: _RunningTotal) -> int:
        sent = [get_sent_content(entry.data) for entry in tail]
        count = total.begin()
        return counted + sum(
            count(content) + MESSAGE_TOKENS for content in sent if content is not None
        )


class SentHistory(NamedTuple):
    """What a model is sent of a branch."""

    messages: MessageSnapshot
    repair: Repair | None
    """What was repaired; None if nothing was."""
    unrecorded: Repair | None
    """The same, if the branch does not say so yet."""
    size: HistorySize
