"""Where a compaction cuts: the newest entries stay, and no call is parted from its result; pure."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from tape.entries import Assistant, Context, ToolResult, User

from ..llm.types import PAUSED
from .meter import entry_tokens, message_tokens
from .pairing import begins, is_sent, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.line import Entry
    from tape.view import Message

_SPOKEN = frozenset({User, Context, Assistant, ToolResult})


class Cut(NamedTuple):
    """A place between entries, as indices into them."""

    first: int
    """The first entry that is kept: those before it are covered."""
    turn: int
    """Where the turn of `first` begins: a prompt, and all that follows it."""

    @property
    def split(self) -> bool:
        """The cut is inside a turn, whose beginning `entries[turn:first]` is covered."""
        return self.turn < self.first


def cut(
    entries: Sequence[Entry],
    keep_tokens: int,
    tokens_of: Callable[[Entry], int] = entry_tokens,
) -> Cut | None:
    """Return where to cut so that about the newest `keep_tokens` stay.

    `entries` are those in view: what the newest anchor keeps, then what came after it. A cut
    stands before a prompt or, in a turn that is itself larger than `keep_tokens`, before an
    answer: the first such place from which on everything fits, or else the last one there is.
    None when all of it fits, or when no cut would cover anything.
    """
    ends = [0, *accumulate(map(tokens_of, entries))]
    fits = next(place for place, end in enumerate(ends) if ends[-1] - end <= keep_tokens)
    spoken = (place for place, entry in enumerate(entries) if type(entry.data) in _SPOKEN)
    begun = next(spoken, len(entries))
    if fits <= begun:
        return None
    turns = [place for place, entry in enumerate(entries) if begins(entry.data)]
    large = {
        place
        for begin, end in pairwise(dict.fromkeys([0, *turns, len(entries)]))
        if ends[end] - ends[begin] > keep_tokens
        for place in range(begin, end)
        if is_sent(entries[place].data)
    }
    free = borders(entries)
    legal = [place for place in sorted({*turns, *large}) if free[place] and place > begun]
    if not legal:
        return None
    first = next((place for place in legal if place >= fits), legal[-1])
    return Cut(first, max((turn for turn in turns if turn <= first), default=0))


def borders(entries: Sequence[Entry]) -> list[bool]:
    """Tell before which entry a history may be parted, and last whether behind all of them.

    Not between a call and its result. A call that nothing answers is done with as soon as
    something else is said: its missing result is made up directly behind it. Nor between an
    answer that its provider paused and the rest of it.
    """
    changes = [0] * (len(entries) + 2)
    for pair in pairs(entries):
        end = _next_said(entries, pair.call) if pair.result is None else pair.result + 1
        changes[pair.call + 1] += 1
        changes[end] -= 1
    for place, entry in enumerate(entries):
        data = entry.data
        if type(data) is Assistant and data.raw_stop == PAUSED and is_sent(data):
            rest = _next_said(entries, place)
            if rest < len(entries) and is_sent(entries[rest].data):
                changes[place + 1] += 1
                changes[rest + 1] -= 1
    return [held == 0 for held in accumulate(changes[:-1])]


def _next_said(entries: Sequence[Entry], place: int) -> int:
    """Return where something is said next that is no result; one past the end if nowhere."""
    for later in range(place + 1, len(entries)):
        data = entries[later].data
        if is_sent(data) or type(data) is User or type(data) is Context:
            return later
    return len(entries) + 1


class Parted(NamedTuple):
    """Messages parted by number instead of size."""

    kept: tuple[Message, ...]
    """What stays as it is: system messages first, then the newest."""
    older: tuple[Message, ...]
    """What a summary is to stand for; nothing when all of it fits."""


def compact(
    messages: Sequence[Message], max_tokens: int = 100_000, window_size: int = 20
) -> Parted:
    """Part messages above `max_tokens` so that the newest `window_size` stay; no model is asked.

    The rule of keeping a number of messages; sessions keep tokens, with `cut`.
    """
    if sum(map(message_tokens, messages)) <= max_tokens:
        return Parted(tuple(messages), ())
    system = tuple(message for message in messages if message.role == "system")
    spoken = tuple(message for message in messages if message.role != "system")
    begin = max(len(spoken) - window_size, 0)
    return Parted((*system, *spoken[begin:]), spoken[:begin])
