"""The sentences of a transcript that are worth keeping in a summary, weighed and chosen: pure.

A summary of a transcript, made by rules and without any model: pure.

It is used where a model fails, and it is the offline model's answer to a summariser's request.
Sentences are quoted, never rephrased; `gong.context.summary` adds the user's requests and the
files.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.model.entries import Summary
from tape.model.summary import render_summary

from ..summary_format import FAILED_PREFIX, parse_summary
from .sentences import (
    PINNED,
    WordRarity,
    clip_text,
    extract_key_words,
    find_remembered_fact,
    is_decision,
    is_precise,
    is_question,
    is_rule,
    replace_figures,
    split_sentences,
    weigh_sentence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..summary_format import TranscriptPiece


class Fact(NamedTuple):
    """A sentence worth keeping; `order` is its position in the conversation."""

    text: str
    field: str
    weight: float
    order: int


AGENT = "The agent said: "
ERROR = "Error: "
"""How facts begin that no person stated."""
_MOST = 40
"""Sentences of one message that are looked at with full weight."""
_FIRST = 200
"""Sentences at the beginning and at the end of a message that are looked at."""
_KEPT_WEIGHT = 2.0
"""Least weight of what an earlier summary found worth keeping."""


def collect_facts(pieces: Sequence[TranscriptPiece], earlier: Summary, focus: str) -> list[Fact]:
    """Return what may be worth keeping, each once, weighed; the newest saying counts."""
    found: dict[str, Fact] = {}
    for order, (text, field, worth) in enumerate(
        (*_iter_earlier_facts(earlier), *_iter_stated_facts(pieces))
    ):
        key = re.sub(r"\W+", " ", text.lower()).strip()
        before = found.pop(key, None)
        found[key] = Fact(text, field, max(worth, before.weight if before else 0), order)
    return _weigh_facts([*found.values()], focus)


def _iter_earlier_facts(earlier: Summary) -> Iterator[tuple[str, str, float]]:
    for field in ("constraints", "decisions", "critical_context"):
        for text in getattr(earlier, field):
            worth = weigh_sentence(text)
            if text.startswith((AGENT, ERROR)):
                worth = _weigh_second_hand(text)
            else:
                worth = max(worth, _KEPT_WEIGHT)
            yield text, field, worth


def _weigh_second_hand(text: str) -> float:
    """Return the weight of a sentence of an agent or tool."""
    return 0.7 if text.startswith(ERROR) else 0.5


def _iter_stated_facts(pieces: Iterable[TranscriptPiece]) -> Iterator[tuple[str, str, float]]:
    for piece in pieces:
        if piece.role == "user":
            yield from _iter_user_facts(piece.text)
        elif piece.role == "assistant":
            for sentence in [*split_sentences(piece.text)][:_MOST]:
                if (
                    is_precise(sentence)
                    and weigh_sentence(sentence)
                    and not _NO_FACT.match(sentence)
                ):
                    field = "decisions" if is_decision(sentence) else "critical_context"
                    text = clip_text(AGENT + sentence, 300)
                    yield text, field, _weigh_second_hand(text) + (field == "decisions")
        elif piece.role == "tool":
            for line in find_errors(piece):
                yield ERROR + line, "critical_context", _weigh_second_hand(ERROR)


_NO_FACT = re.compile(r"\w+\(.*\)\Z|\[\d+ characters left out\]|(?:You said|Noted)\b")
"""Forms of calls and cuts in a transcript, and of repetitions by the agent."""


def _iter_user_facts(text: str) -> Iterator[tuple[str, str, float]]:
    said = [*split_sentences(text)]
    wished = any(find_remembered_fact(sentence) is not None for sentence in said)
    for number, sentence in enumerate(said):
        if _FIRST <= number < len(said) - _FIRST and find_remembered_fact(sentence) is None:
            continue  # the middle of something pasted
        worth = weigh_sentence(sentence)
        if not worth:
            continue
        if worth < PINNED:
            worth += wished - (number >= _MOST)
        field = "critical_context"
        if is_rule(sentence):
            field = "constraints"
        elif is_decision(sentence):
            field = "decisions"
        yield sentence, field, worth


def _weigh_facts(facts: list[Fact], focus: str) -> list[Fact]:
    """Return facts with rare ones heavier than those that many others are like."""
    words = [extract_key_words(fact.text) for fact in facts]
    rarity = WordRarity(words)
    shapes = Counter(replace_figures(fact.text) for fact in facts)
    wanted = {*extract_key_words(focus)}
    heavier = []
    for fact, its in zip(facts, words, strict=True):
        worth = fact.weight + rarity.rate_words(its) + 2 * bool(wanted & {*its})
        if fact.weight < PINNED:
            worth -= 0.5 * (shapes[replace_figures(fact.text)] - 1).bit_length()
        heavier.append(fact._replace(weight=worth))
    return heavier


_ALIKE = 12
"""Facts of one shape that are kept, the newest."""


def choose_facts(facts: list[Fact], limit: int) -> list[Fact]:
    """Return the heaviest facts that fit into two thirds of `limit`, oldest first."""
    room, longest = limit * 2 // 3, max(limit // 12, 40)
    kept: list[Fact] = []
    alike: Counter[str] = Counter()
    for fact in sorted(facts, key=lambda one: (-one.weight, -one.order)):
        text = clip_text(fact.text, longest)
        alike[replace_figures(text)] += 1
        if len(text) + 3 <= room and (
            alike[replace_figures(text)] <= _ALIKE or fact.weight >= PINNED
        ):
            room -= len(text) + 3
            kept.append(fact._replace(text=text))
    return sorted(kept, key=lambda one: one.order)


def find_errors(piece: TranscriptPiece) -> list[str]:
    """Return the first line of a tool's error in a list; none when its call did not fail."""
    if piece.role != "tool" or not piece.text.startswith(FAILED_PREFIX):
        return []
    lines = (line for line in piece.text.removeprefix(FAILED_PREFIX).split("\n") if line.strip())
    line = clip_text(next(lines, "it did not say why"), 200)
    return [f"{piece.name}: {line}" if piece.name else line]


LIMIT = 6_000
"""Characters a summary made by rules may have, as Markdown."""


def summarize_pieces(
    pieces: Iterable[TranscriptPiece], focus: str = "", limit: int = LIMIT
) -> Summary:
    """Return what pieces say, in at most `limit` characters of Markdown.

    An earlier summary among them is carried on. When room is short the oldest outcomes are joined
    first, then the facts that weigh least go; what was to be remembered goes last.
    """
    pieces = tuple(pieces)
    earlier = _merge_earlier(pieces)
    turns = _split_turns(pieces)
    kept = choose_facts(collect_facts(pieces, earlier, focus), limit)
    done, blocked, under_way = _collect_outcomes(earlier, turns, limit)
    summary = Summary(
        goal=_choose_goal(earlier, turns, limit),
        constraints=tuple(fact.text for fact in kept if fact.field == "constraints"),
        in_progress=under_way,
        blocked=blocked,
        decisions=tuple(fact.text for fact in kept if fact.field == "decisions"),
        next_steps=_find_next_steps(earlier, turns, under_way, limit),
        critical_context=tuple(fact.text for fact in kept if fact.field == "critical_context"),
    )
    return _drop_oldest_points(_add_done(summary, done, limit), limit)


def _merge_earlier(pieces: Iterable[TranscriptPiece]) -> Summary:
    """Return what the earlier summaries say, the goal of the first that has one."""
    whole = Summary()
    for said in (parse_summary(piece.text) for piece in pieces if piece.role == "summary"):
        fields = {
            name: (*getattr(whole, name), *getattr(said, name))
            for name in Summary.__struct_fields__
            if name != "goal"
        }
        whole = Summary(goal=whole.goal or said.goal, **fields)
    return whole


class _Turn(NamedTuple):
    """A request and what followed; without a request it continues an earlier one."""

    request: str | None
    answers: list[str]
    failure: list[str]
    """First line of the error that is the last word, if one is."""


def _split_turns(pieces: Iterable[TranscriptPiece]) -> list[_Turn]:
    turns: list[_Turn] = []
    for piece in pieces:
        if piece.role == "summary" or not piece.text.strip():
            continue
        if piece.role == "user":
            turns.append(_Turn(piece.text, [], []))
            continue
        if not turns:
            turns.append(_Turn(None, [], []))
        turn = turns[-1]
        turn.failure.clear()
        if piece.role == "assistant":
            turn.answers.append(piece.text)
        else:
            turn.answers.clear()  # text before a call is not an outcome
            turn.failure.extend(find_errors(piece))
    return turns


def _choose_goal(earlier: Summary, turns: Sequence[_Turn], limit: int) -> str:
    first = next((turn.request for turn in turns if turn.request), "")
    goal = earlier.goal or first or (turns and "Continue the work under way.") or ""
    return clip_text(re.sub(r"\A[\s#>*-]+", "", goal), limit // 12)


_FAILURE = re.compile(
    r"\b(?:failed|fails|error|could not|couldn't|cannot|can't|unable|blocked|denied|crashed)\b"
    r"|失败|错误|无法|不能|报错",
    re.IGNORECASE,
)
_RECENT = 6
"""Number of newest turns whose failures may still block the work."""


def _collect_outcomes(
    earlier: Summary, turns: Sequence[_Turn], limit: int
) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return what is done, what is blocked and what is under way, each oldest first."""
    done, blocked, under_way = [*earlier.done], [*earlier.blocked], [*earlier.in_progress]
    for number, turn in enumerate(turns, 1):
        request = _shorten_request(turn.request or next(iter(under_way), "the work under way"))
        last = number == len(turns)
        failure = turn.failure or [
            words for words in _find_last_words(turn.answers) if _FAILURE.search(words)
        ]
        blocked = [item for item in blocked if not item.startswith(f"{request} → ")]
        if failure and number > len(turns) - _RECENT:
            blocked.append(f"{request} → {clip_text(failure[0], 160)}")
        if turn.answers:
            under_way = []
            done.append(f"{request} → {clip_text(_find_last_words(turn.answers)[0], 140)}")
        elif last:
            under_way = [clip_text(turn.request or request, limit // 16)]
    return done, tuple(clip_text(item, limit // 25) for item in blocked[-4:]), tuple(under_way[-2:])


def _find_last_words(answers: Sequence[str]) -> list[str]:
    """Return the last sentence of the newest answer, in a list; none when there is no answer."""
    said = [*split_sentences(answers[-1])] if answers else []
    return said[-1:] or (["answered"] if answers else [])


def _shorten_request(request: str) -> str:
    return clip_text(request, 70)


_NEXT = re.compile(
    r"\b(?:next|to ?do|later|still (?:need|have|has|missing)|remains?|afterwards|follow[- ]up)\b"
    r"|下一步|接下来|待办|稍后|还需要|还要|之后",
    re.IGNORECASE,
)


def _find_next_steps(
    earlier: Summary, turns: Sequence[_Turn], under_way: Sequence[str], limit: int
) -> tuple[str, ...]:
    said = [
        sentence
        for turn in turns[-_RECENT:]
        for text in (turn.request or "", *turn.answers[-1:])
        for sentence in split_sentences(text)
        if _NEXT.search(sentence)
        and not is_question(sentence)
        and find_remembered_fact(sentence) is None
    ]
    steps = [*(earlier.next_steps if not said else ()), *said, *(f"Finish: {x}" for x in under_way)]
    return tuple(clip_text(step, limit // 40) for step in [*dict.fromkeys(steps)][-3:])


_MOST_DONE = 40
_JOINED = re.compile(r"Earlier, (\d+) requests?: (.*)\Z", re.DOTALL)


def _add_done(summary: Summary, done: list[str], limit: int) -> Summary:
    """Put in what is done, as far as there is room: the oldest is joined into one line."""
    count = 0
    briefs: list[str] = []
    while done and (found := _JOINED.match(done[0])):
        count, done = count + int(found[1]), done[1:]
        briefs.append(found[2].removesuffix(" …"))
    room = limit - len(render_summary(summary)) - limit // 15 - len("\n\n## Done\n")
    kept: list[str] = []
    for item in reversed(done):
        text = clip_text(item, max(limit // 25, 60))
        if len(text) + 3 > room or len(kept) == _MOST_DONE:
            break
        room -= len(text) + 3
        kept.append(text)
    older = done[: len(done) - len(kept)]
    if count or older:
        count += len(older)
        briefs += [clip_text(item.split(" → ")[0], 40) for item in older]
        kept.append(_join_briefs(count, briefs, max(limit // 15 - 3, 40)))
    return replace(summary, done=tuple(reversed(kept)))


def _join_briefs(count: int, briefs: Sequence[str], longest: int) -> str:
    """Return one line for many requests: how many, and what the first of them were."""
    line = f"Earlier, {count} request{'s' * (count != 1)}: {briefs[0]}"[: longest - 2]
    for brief in briefs[1:]:
        if len(line) + len(brief) + 4 > longest:
            return f"{line} …"
        line += f"; {brief}"
    return line


def limit_summary(summary: Summary, limit: int) -> Summary:
    """Return a model's summary with at most about `limit` characters: the oldest points go first.

    A single point takes a quarter of them at most.
    """
    fields = {
        name: tuple(clip_text(item, max(limit // 4, 60)) for item in getattr(summary, name))
        for name in Summary.__struct_fields__
        if name != "goal"
    }
    return _drop_oldest_points(
        replace(summary, goal=clip_text(summary.goal, max(limit // 4, 60)), **fields), limit
    )


def _drop_oldest_points(summary: Summary, limit: int) -> Summary:
    """Return a summary of at most `limit` characters, if that is possible at all."""
    for name in (
        *("done", "next_steps", "decisions", "blocked"),
        *("critical_context", "constraints", "in_progress"),
    ):
        over, points = len(render_summary(summary)) - limit, getattr(summary, name)
        ends = accumulate(len(point) + _BULLET for point in points)
        gone = sum(
            end - len(point) - _BULLET < over for end, point in zip(ends, points, strict=True)
        )
        summary = replace(summary, **{name: points[gone:]})
    over = len(render_summary(summary)) - limit
    if over > 0:
        summary = replace(summary, goal=summary.goal[: max(len(summary.goal) - over, 1)])
    return summary


_BULLET = len("- \n")
