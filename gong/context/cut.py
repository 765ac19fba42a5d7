"""Where a compaction cuts: it keeps the newest entries, and each call with its result; pure."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from tape.entries import Assistant, Context, ToolResult, User

from ..llm.types import PAUSE_STOP
from .meter import count_entry_tokens, count_message_tokens
from .pairing import is_sent_answer, is_turn_start, pair_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.line import Entry
    from tape.view import Message

_SPOKEN_PAYLOADS = frozenset({User, Context, Assistant, ToolResult})


class HistoryCut(NamedTuple):
    """A place between entries, as indices into them."""

    first: int
    """The first entry that is kept; those before it are covered."""
    turn: int
    """The first entry of the turn that contains `first`, a prompt."""

    @property
    def split(self) -> bool:
        """Whether the cut is inside a turn, whose beginning `entries[turn:first]` is covered."""
        return self.turn < self.first


def find_cut(
    entries: Sequence[Entry],
    keep_tokens: int,
    tokens_of: Callable[[Entry], int] = count_entry_tokens,
) -> HistoryCut | None:
    """Return where to cut so that about the newest `keep_tokens` are kept.

    `entries` are those in view: what the newest anchor keeps, then what came after it. A cut
    is before a prompt or, in a turn that is larger than `keep_tokens`, before an answer: the
    first such position after which everything fits, or else the last one.
    Returns None if everything fits, or if no cut would cover anything.
    """
    ends = [0, *accumulate(map(tokens_of, entries))]
    fits = next(place for place, end in enumerate(ends) if ends[-1] - end <= keep_tokens)
    spoken = (place for place, entry in enumerate(entries) if type(entry.data) in _SPOKEN_PAYLOADS)
    begun = next(spoken, len(entries))
    if fits <= begun:
        return None
    turns = [place for place, entry in enumerate(entries) if is_turn_start(entry.data)]
    large = {
        place
        for begin, end in pairwise(dict.fromkeys([0, *turns, len(entries)]))
        if ends[end] - ends[begin] > keep_tokens
        for place in range(begin, end)
        if is_sent_answer(entries[place].data)
    }
    free = find_borders(entries)
    legal = [place for place in sorted({*turns, *large}) if free[place] and place > begun]
    if not legal:
        return None
    first = next((place for place in legal if place >= fits), legal[-1])
    return HistoryCut(first, max((turn for turn in turns if turn <= first), default=0))


def find_borders(entries: Sequence[Entry]) -> list[bool]:
    """Return for each entry whether a cut before it is allowed, and last for the end.

    No cut is allowed between a call and its result. A call without a result ends at the next
    message, because repair inserts a placeholder result directly after it. Nor is one allowed
    between an answer that its provider paused and the rest of it.
    """
    changes = [0] * (len(entries) + 2)
    for pair in pair_calls(entries):
        end = _find_next_spoken(entries, pair.call) if pair.result is None else pair.result + 1
        changes[pair.call + 1] += 1
        changes[end] -= 1
    for place, entry in enumerate(entries):
        data = entry.data
        if type(data) is Assistant and data.raw_stop == PAUSE_STOP and is_sent_answer(data):
            rest = _find_next_spoken(entries, place)
            if rest < len(entries) and is_sent_answer(entries[rest].data):
                changes[place + 1] += 1
                changes[rest + 1] -= 1
    return [held == 0 for held in accumulate(changes[:-1])]


def _find_next_spoken(entries: Sequence[Entry], place: int) -> int:
    """Return the index of the next message that is not a result; len if there is none."""
    for later in range(place + 1, len(entries)):
        data = entries[later].data
        if is_sent_answer(data) or type(data) is User or type(data) is Context:
            return later
    return len(entries) + 1


class SplitMessages(NamedTuple):
    """Messages split by number instead of size."""

    kept: tuple[Message, ...]
    """The messages to keep: system messages first, then the newest."""
    older: tuple[Message, ...]
    """The messages to replace by a summary; empty if all fit."""


def compact_messages(
    messages: Sequence[Message], max_tokens: int = 100_000, window_size: int = 20
) -> SplitMessages:
    """Split messages above `max_tokens` so that the newest `window_size` stay; calls no model.

    This keeps a number of messages; sessions keep a number of tokens, with `cut`.
    """
    if sum(map(count_message_tokens, messages)) <= max_tokens:
        return SplitMessages(tuple(messages), ())
    system = tuple(message for message in messages if message.role == "system")
    spoken = tuple(message for message in messages if message.role != "system")
    begin = max(len(spoken) - window_size, 0)
    return SplitMessages((*system, *spoken[begin:]), spoken[:begin])
