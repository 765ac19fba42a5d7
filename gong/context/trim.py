"""Which part of a history a request leaves out: cuts for summaries, and elided results; pure.

A compaction cuts where every call stays with its result, and keeps the newest entries:

    entries        prompt  answer+call  result  answer  prompt  answer+call  result  answer
    allowed       |       |                    |       |       |                    |
    preferred     |                                    |

A cut inside a turn (before an answer) is made only if the turn alone is larger than what is kept.

Elided results are sent as a one-line placeholder; the tape has their text. Each decision to elide
results, or to cut them if that is not enough, is an entry on the tape. Decisions are made in
batches: between two of them every request starts with the same bytes as the one before, so that
the provider's prompt cache is used.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.model.entries import (
    Assistant,
    Audio,
    Context,
    Custom,
    Document,
    Image,
    Text,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.text import SHORT

from ..llm.types import PAUSE_STOP
from .tokens import (
    ELIDED,
    MESSAGE_TOKENS,
    REDUCTION_KINDS,
    TRUNCATED,
    count_content_tokens,
    count_entry_tokens,
    count_message_tokens,
    is_sent_answer,
    is_turn_start,
    pair_calls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tape.context.view import Message
    from tape.model.entries import Content
    from tape.model.line import Entry


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

    With `keep_tokens` 300:

        place    0       1       2       3       4       5
        entry    user    answer  user    answer  answer  answer
        tokens   100     200     50      200     200     100
        turn     300, not large  550, large

    Places 4 and 5 have 300 tokens, so 4 is the first that fits. The turn from 2 on is large, and
    4 is an answer: the cut is before it, `HistoryCut(first=4, turn=2)`, inside the turn.
    """
    ends = [0, *accumulate(map(tokens_of, entries))]
    # The end itself always fits: what is after it has no tokens.
    fits = next(place for place, end in enumerate(ends) if ends[-1] - end <= keep_tokens)
    spoken = (place for place, entry in enumerate(entries) if type(entry.data) in _SPOKEN_PAYLOADS)
    first_turn = next(spoken, len(entries))
    if fits <= first_turn:
        return None
    turns = [place for place, entry in enumerate(entries) if is_turn_start(entry.data)]
    # Entries before the first prompt, of a turn whose beginning is covered, are a turn as well.
    large = {
        place
        for begin, end in pairwise(dict.fromkeys([0, *turns, len(entries)]))
        if ends[end] - ends[begin] > keep_tokens
        for place in range(begin, end)
        if is_sent_answer(entries[place].data)
    }
    free = find_borders(entries)
    legal = [place for place in sorted({*turns, *large}) if free[place] and place > first_turn]
    if not legal:
        return None
    # If nothing legal fits, keeping too much is better than to cut a call from its result.
    first = next((place for place in legal if place >= fits), legal[-1])
    return HistoryCut(first, max((turn for turn in turns if turn <= first), default=0))


def find_borders(entries: Sequence[Entry]) -> list[bool]:
    """Return for each entry whether a cut before it is allowed, and last for the end.

    No cut is allowed between a call and its result. A call without a result ends at the next
    message, because repair inserts a placeholder result directly after it. Nor is one allowed
    between an answer that its provider paused and the rest of it.
    """
    # Each pair holds the places between its ends: +1 where that begins, -1 where it ends. The sum
    # up to a place is how many pairs a cut there would part; one pass, however they overlap.
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


EXECUTED = "executed"
"""The first word of the placeholder of an elided result."""
TRUNCATION_LIMITS = (2_000, 400)
"""Lengths in characters to which results are cut as a last resort, tried in order."""
_SMALL_RESULT_CHARS = 200
"""Characters up to which a result is never elided."""
_PLACEHOLDER_TOKENS = 30
_FULL_SHARE = 0.8
"""Share of the context window above which a single result is elided, too."""
_MEDIA = (Image, Document, Audio)


class Elision(Struct, frozen=True, omit_defaults=True):
    """The data of an elision or truncation of the results in view up to the entry `to`."""

    to: str
    keep: int | None = None
    """How many results after `to` were kept."""
    limit: int | None = None
    """Characters to which longer results are cut; only in a truncation."""


def decide_elision(
    entries: Sequence[Entry],
    tokens: int,
    window: int | None,
    *,
    high_water: float = 0.6,
    keep: int = 3,
    gain: float = 0.1,
    batch: int = 3,
) -> Custom | None:
    """Return the elision to record before the next call; None if it would free too little.

    `entries` are those in view and `tokens` is their size. An elision is made above the share
    `high_water` of the context window, if it frees at least the share `gain` of `tokens`. The
    newest `keep` results stay, and so does every result that no answer has followed yet. Below the
    share `_FULL_SHARE` it takes at least `batch` results: each elision costs the prompt's cache.
    """
    if not window or tokens <= high_water * window:
        return None
    places = sorted(pair.result for pair in pair_calls(entries) if pair.result is not None)
    backwards = range(len(entries) - 1, -1, -1)
    seen = next((place for place in backwards if is_sent_answer(entries[place].data)), 0)
    reach, size = _read_elision_rules(entries).reach, build_sizer(entries)
    old = [place for place in places[: max(len(places) - keep, 0)] if reach < place < seen]
    freed = {
        place: size(entries[place]) - MESSAGE_TOKENS - _PLACEHOLDER_TOKENS
        for place in old
        if _is_bulky(_get_tool_result(entries[place]).content)
    }
    worth = [place for place, tokens_freed in freed.items() if tokens_freed > 0]
    if len(worth) < (1 if tokens > _FULL_SHARE * window else batch):
        return None
    if sum(freed[place] for place in worth) < gain * tokens:
        return None
    return _encode_decision(ELIDED, Elision(entries[worth[-1]].id, keep))


def decide_truncation(entries: Sequence[Entry]) -> Custom | None:
    """Return the truncation to record if the next call does not fit and nothing else helps.

    It cuts the longer results in view, including the newest, to one of `LIMITS`; None if there are
    none.
    """
    less = _find_reduced_results(entries)
    places = sorted(pair.result for pair in pair_calls(entries) if pair.result is not None)
    lengths = {
        place: len(join_texts(less.get(place) or _get_tool_result(entries[place]).content))
        for place in places
    }
    for limit in TRUNCATION_LIMITS:
        longer = [place for place in places if lengths[place] > limit]
        if longer:
            return _encode_decision(TRUNCATED, Elision(entries[longer[-1]].id, limit=limit))
    return None


def _encode_decision(kind: str, elision: Elision) -> Custom:
    return Custom(kind, Raw(msgspec.json.encode(elision)))


def elide_results(
    messages: Iterable[Message], entries: Sequence[Entry], word: str = EXECUTED
) -> tuple[Message, ...]:
    """Return messages with results elided and cut according to the decisions on the path.

    `messages` is the repaired view of `entries`, kept entries first. The function is idempotent.
    """
    return tuple(iter_elided_messages(messages, entries, word))


def iter_elided_messages(
    messages: Iterable[Message], entries: Sequence[Entry], word: str = EXECUTED
) -> Iterator[Message]:
    """Yield what `elide_results` returns."""
    less = _find_reduced_results(entries, word)
    if not less:
        yield from messages
        return
    seen_ids: Counter[str] = Counter()
    contents = {}
    for pair in pair_calls(entries):
        seen_ids[pair.id] += 1
        if pair.result in less:
            contents[pair.id, seen_ids[pair.id]] = less[pair.result]
    seen_ids.clear()
    for message in messages:
        if message.role == "assistant":
            seen_ids.update({call.id for call in select_tool_calls(message.content)})
        content = message.call_id and contents.get((message.call_id, seen_ids[message.call_id]))
        yield replace(message, content=content) if content else message


def build_sizer(entries: Sequence[Entry]) -> Callable[[Entry], int]:
    """Return a function from an entry to its tokens as it is sent, elided or not."""
    less = {entries[place].id: content for place, content in _find_reduced_results(entries).items()}

    def size(entry: Entry) -> int:
        if (content := less.get(entry.id)) is not None:
            return count_content_tokens(content) + MESSAGE_TOKENS
        return count_entry_tokens(entry)

    return size


class _ElisionRules(NamedTuple):
    """The decisions on a path, by indices of entries."""

    reach: int = -1
    """The last index that is elided."""
    limits: tuple[tuple[int, int], ...] = ()
    """The last index that is cut, and to how many characters, for each truncation."""


def _read_elision_rules(entries: Sequence[Entry]) -> _ElisionRules:
    """Read the decisions; ignore those that are malformed or for entries out of view."""
    rules = []
    for entry in entries:
        data = entry.data
        if type(data) is Custom and data.kind in REDUCTION_KINDS:
            with suppress(msgspec.MsgspecError):
                rules.append((data.kind, msgspec.json.decode(data.data, type=Elision)))
    if not rules:
        return _ElisionRules()
    places = {entry.id: place for place, entry in enumerate(entries)}
    reaches = [places.get(rule.to, -1) for kind, rule in rules if kind == ELIDED]
    limits = ((places.get(rule.to, -1), rule.limit) for kind, rule in rules if kind == TRUNCATED)
    return _ElisionRules(
        max(reaches, default=-1), tuple((to, limit) for to, limit in limits if limit)
    )


def _find_reduced_results(entries: Sequence[Entry], word: str = EXECUTED) -> dict[int, Content]:
    """Return the indices of results that are not sent whole, with the content sent instead."""
    rules = _read_elision_rules(entries)
    less: dict[int, Content] = {}
    for place in range(max([rules.reach, *(to for to, _ in rules.limits)]) + 1):
        data = entries[place].data
        if type(data) is not ToolResult:
            continue
        if place <= rules.reach and _is_bulky(data.content):
            text, media = len(join_texts(data.content)), _count_media(data.content)
            parts = [f"{text:,} characters"] if text else []
            parts += [f"{media} file{'s' * (media > 1)}"] if media else []
            hint = _format_read_hint(entries[place])
            placeholder = f"[{word}: {data.name}, {' and '.join(parts)}; {hint}]"
            less[place] = _build_text_content(placeholder)
            continue
        limit = min((limit for to, limit in rules.limits if place <= to), default=None)
        if limit is not None and len(join_texts(data.content)) > limit:
            hint = _format_read_hint(entries[place])
            less[place] = _shorten_content(data.content, limit, f"; {hint}")
    return less


def _is_bulky(content: Content) -> bool:
    return len(join_texts(content)) > _SMALL_RESULT_CHARS or _count_media(content) > 0


def _count_media(content: Content) -> int:
    return sum(isinstance(block, _MEDIA) for block in content)


def _get_tool_result(entry: Entry) -> ToolResult:
    assert type(entry.data) is ToolResult
    return entry.data


@lru_cache(maxsize=10_000)
def _build_text_content(text: str) -> Content:
    """Return a text as content, the same object each time, so that caches by identity work."""
    return (Text(text=text),)


def _format_read_hint(entry: Entry) -> str:
    return f"read it with tape_read {entry.id[:SHORT]}"


def micro_compact(
    messages: Sequence[dict[str, Any]], keep: int = 3, placeholder: str = f"[{EXECUTED}]"
) -> list[dict[str, Any]]:
    """Return messages of an API with the content of all tool results but the newest replaced.

    This works on message arrays of the Anthropic or OpenAI API (M161): the newest `keep` messages
    with results stay. Nothing is changed in place.
    """
    changed: list[tuple[int, dict[str, Any]]] = []
    for place, message in enumerate(messages):
        content = message.get("content")
        blocks: list[Any] = content if isinstance(content, list) else []
        results = [
            isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks
        ]
        if message.get("role") == "tool":
            changed.append((place, {**message, "content": placeholder}))
        elif any(results):
            shorter = [
                {**block, "content": placeholder} if is_result else block
                for block, is_result in zip(blocks, results, strict=True)
            ]
            changed.append((place, {**message, "content": shorter}))
    older = dict(changed[: max(len(changed) - keep, 0)])
    return [older.get(place, message) for place, message in enumerate(messages)]


def _shorten_content(content: Content, limit: int, where: str) -> Content:
    """Return content whose text is cut in the middle to about `limit` characters."""
    text = join_texts(content)

    def format_notice(characters: int) -> str:
        return f"\n[{characters:,} characters left out{where}]\n"

    room = max(limit - len(format_notice(len(text))), 0)
    head, tail = (room + 1) // 2, room // 2
    cut = text[:head] + format_notice(len(text) - head - tail) + text[len(text) - tail :]
    return (Text(text=cut), *(block for block in content if not isinstance(block, Text)))
