"""A summary of a transcript, made by rules and without any model: pure.

It is used where a model fails, and it is the offline model's answer to a summariser's request.
What was said is quoted, never put in other words; the user's requests word for word and the files
are not its job (`verbatim` adds them). Each field has its own source:

| field | source |
|---|---|
| goal | the earlier summary, else the first request |
| constraints, decisions, critical context | sentences worth keeping, by weight: `collect_facts` |
| done, blocked, in progress | each request → the last sentence of its answer, or its error |
| next steps | those of the earlier summary, and what is in progress |
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.model.entries import Summary
from tape.model.summary import render_summary
from tape.text import format_count

from ..search_terms import parse_words
from .parse import parse_summary
from .sentences import (
    PINNED,
    clip_text,
    find_remembered_fact,
    is_decision,
    is_precise,
    is_rule,
    replace_figures,
    split_sentences,
    weigh_sentence,
)
from .transcript import FAILED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .transcript import TranscriptPiece


LIMIT = 6_000
"""Characters a summary made by rules may have, as Markdown."""
AGENT = "The agent said: "
ERROR = "Error: "
"""How facts begin that no person stated."""
_LISTS = tuple(name for name in Summary.__struct_fields__ if name != "goal")
_MAX_FULL_WEIGHT = 40
"""Sentences of one message that have their full weight."""
_MAX_END_SENTENCES = 200
"""Sentences at the beginning and at the end of a message that are looked at."""
_EARLIER_WEIGHT = 2.0
"""Least weight of what an earlier summary contains."""
_AGENT_WEIGHT, _ERROR_WEIGHT = 0.5, 0.7
_MAX_ALIKE = 12
"""Facts of one shape that are kept, the newest."""
_MAX_DONE = 40
_RECENT_TURNS = 6
"""Turns whose failures may still be in the way."""
_NO_FACT = re.compile(r"\w+\(.*\)\Z|\[\d+ characters left out\]|(?:You said|Noted)\b")
"""Calls and cuts in a transcript, and what the agent repeats of the user's words."""
_FAILURE = re.compile(
    r"\b(?:failed|fails|error|could not|couldn't|cannot|can't|unable|blocked|denied|crashed)\b"
    r"|失败|错误|无法|不能|报错",
    re.IGNORECASE,
)
_JOINED = re.compile(r"Earlier, (\d+) requests?: (.*)\Z", re.DOTALL)
_BULLET_CHARS = len("- \n")
_DROP_ORDER = (
    "done", "next_steps", "decisions", "blocked", "critical_context", "constraints", "in_progress",
)  # fmt: skip
"""The fields whose oldest points are dropped where room is short, the first one first."""


class Fact(NamedTuple):
    """A sentence worth keeping, and the field of the summary it belongs to."""

    text: str
    field: str
    weight: float
    order: int = 0
    """Its place in what was said."""


class _Turn(NamedTuple):
    """A request and what followed; without a request it continues an earlier one."""

    request: str | None
    answers: list[str]
    failure: list[str]
    """First line of the error that is the last word, if one is."""


def summarize_pieces(
    pieces: Iterable[TranscriptPiece], focus: str = "", limit: int = LIMIT
) -> Summary:
    """Return what pieces say, in at most `limit` characters of Markdown.

    Earlier summaries among them are merged in. When room is short the oldest outcomes are joined
    first, then the facts that weigh least go; what was to be remembered goes last.
    """
    pieces = tuple(pieces)
    summaries = [parse_summary(piece.text) for piece in pieces if piece.role == "summary"]
    earlier = Summary(
        goal=next((summary.goal for summary in summaries if summary.goal), ""),
        **{name: sum((getattr(summary, name) for summary in summaries), ()) for name in _LISTS},
    )
    facts = choose_facts(collect_facts(pieces, earlier, focus), limit)
    turns = _split_turns(pieces)
    done, blocked, in_progress = _collect_outcomes(earlier, turns, limit)
    unfinished = [f"Finish: {item}" for item in in_progress]
    first = next((turn.request for turn in turns if turn.request), "")
    goal = earlier.goal or first or ("Continue the work under way." if turns else "")
    summary = Summary(
        goal=clip_text(re.sub(r"\A[\s#>*-]+", "", goal), limit // 12),
        in_progress=in_progress,
        blocked=blocked,
        next_steps=tuple(
            clip_text(step, limit // 40)
            for step in [*dict.fromkeys((*earlier.next_steps, *unfinished))][-3:]
        ),
        **{
            field: tuple(fact.text for fact in facts if fact.field == field)
            for field in ("constraints", "decisions", "critical_context")
        },
    )
    return _drop_oldest_points(_add_done(summary, done, limit), limit)


def collect_facts(pieces: Sequence[TranscriptPiece], earlier: Summary, focus: str) -> list[Fact]:
    """Return what may be worth keeping, each once, weighed; the newest saying counts.

    Facts that only differ in their figures weigh less, those with words of the focus more.
    """
    by_key: dict[str, Fact] = {}
    for order, fact in enumerate(_iter_facts(pieces, earlier)):
        key = re.sub(r"\W+", " ", fact.text.lower()).strip()
        before = by_key.pop(key, fact)
        by_key[key] = fact._replace(weight=max(fact.weight, before.weight), order=order)
    # By hash and in place: a long session has a hundred thousand facts.
    shapes = Counter(hash(replace_figures(fact.text)) for fact in by_key.values())
    terms = parse_words(focus)
    for key, fact in by_key.items():
        weight = fact.weight
        if weight < PINNED:
            weight -= 0.5 * (shapes[hash(replace_figures(fact.text))] - 1).bit_length()
        hits = sum(term.pattern.search(fact.text) is not None for term in terms)
        by_key[key] = fact._replace(weight=weight + 2 * hits / max(len(terms), 1))
    return [*by_key.values()]


def _iter_facts(pieces: Iterable[TranscriptPiece], earlier: Summary) -> Iterator[Fact]:
    """Yield what earlier summaries found worth keeping, then what the pieces say."""
    for field in ("constraints", "decisions", "critical_context"):
        for text in getattr(earlier, field):
            weight = max(weigh_sentence(text), _EARLIER_WEIGHT)
            if text.startswith((AGENT, ERROR)):
                weight = _ERROR_WEIGHT if text.startswith(ERROR) else _AGENT_WEIGHT
            yield Fact(text, field, weight)
    for piece in pieces:
        if piece.role == "user":
            yield from _iter_user_facts([*split_sentences(piece.text)])
        elif piece.role == "assistant":
            for sentence in [*split_sentences(piece.text)][:_MAX_FULL_WEIGHT]:
                if (
                    is_precise(sentence)
                    and weigh_sentence(sentence)
                    and not _NO_FACT.match(sentence)
                ):
                    text, decided = clip_text(AGENT + sentence, 300), is_decision(sentence)
                    field = "decisions" if decided else "critical_context"
                    yield Fact(text, field, _AGENT_WEIGHT + decided)
        for line in find_errors(piece):
            yield Fact(ERROR + line, "critical_context", _ERROR_WEIGHT)


def _iter_user_facts(sentences: Sequence[str]) -> Iterator[Fact]:
    wishes = [find_remembered_fact(sentence) is not None for sentence in sentences]
    for number, sentence in enumerate(sentences):
        if (
            _MAX_END_SENTENCES <= number < len(sentences) - _MAX_END_SENTENCES
            and not wishes[number]
        ):
            continue  # the middle of something pasted
        weight = weigh_sentence(sentence)
        if 0 < weight < PINNED:
            weight += any(wishes) - (number >= _MAX_FULL_WEIGHT)
        field = "decisions" if is_decision(sentence) else "critical_context"
        if weight:
            yield Fact(sentence, "constraints" if is_rule(sentence) else field, weight)


def choose_facts(facts: list[Fact], limit: int) -> list[Fact]:
    """Return the heaviest facts that fit into two thirds of `limit`, oldest first."""
    room, limit_chars = limit * 2 // 3, max(limit // 12, 40)
    chosen: list[Fact] = []
    alike: Counter[str] = Counter()
    for fact in sorted(facts, key=lambda fact: (-fact.weight, -fact.order)):
        text = clip_text(fact.text, limit_chars)
        shape, size = replace_figures(text), len(text) + _BULLET_CHARS
        alike[shape] += 1
        if size <= room and (alike[shape] <= _MAX_ALIKE or fact.weight >= PINNED):
            room -= size
            chosen.append(fact._replace(text=text))
    return sorted(chosen, key=lambda fact: fact.order)


def find_errors(piece: TranscriptPiece) -> list[str]:
    """Return the first line of a tool's error in a list; none when its call did not fail."""
    if piece.role != "tool" or not piece.text.startswith(FAILED_PREFIX):
        return []
    lines = (line for line in piece.text.removeprefix(FAILED_PREFIX).split("\n") if line.strip())
    line = clip_text(next(lines, "it did not say why"), 200)
    return [f"{piece.name}: {line}" if piece.name else line]


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
        if piece.role == "assistant":
            turns[-1].answers.append(piece.text)
        else:
            turns[-1].answers.clear()  # words before a call are no outcome
        turns[-1].failure[:] = find_errors(piece)
    return turns


def _collect_outcomes(
    earlier: Summary, turns: Sequence[_Turn], limit: int
) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return what is done, what is blocked and what is under way, each oldest first."""
    done, blocked, in_progress = [*earlier.done], [*earlier.blocked], [*earlier.in_progress]
    for number, turn in enumerate(turns, 1):
        request = clip_text(turn.request or next(iter(in_progress), "the work under way"), 70)
        # the last sentence of the newest answer; none where there is no answer
        sentences = [*split_sentences(turn.answers[-1])] if turn.answers else []
        outcome = sentences[-1:] or (["answered"] if turn.answers else [])
        failure = turn.failure or [words for words in outcome if _FAILURE.search(words)]
        blocked = [item for item in blocked if not item.startswith(f"{request} → ")]
        if failure and number > len(turns) - _RECENT_TURNS:
            blocked.append(f"{request} → {clip_text(failure[0], 160)}")
        if outcome:
            in_progress = []
            done.append(f"{request} → {clip_text(outcome[0], 140)}")
        elif number == len(turns):
            in_progress = [clip_text(turn.request or request, limit // 16)]
    return (
        done,
        tuple(clip_text(item, limit // 25) for item in blocked[-4:]),
        tuple(in_progress[-2:]),
    )


def _add_done(summary: Summary, done: list[str], limit: int) -> Summary:
    """Put in what is done, as far as there is room.

    The oldest is joined into one line: how many requests, and what the first of them were.
    """
    count = 0
    briefs: list[str] = []
    while done and (match := _JOINED.match(done[0])):
        count, done = count + int(match[1]), done[1:]
        briefs.append(match[2].removesuffix(" …"))
    room = limit - len(render_summary(summary)) - limit // 15 - len("\n\n## Done\n")
    recent = [clip_text(item, max(limit // 25, 60)) for item in done[::-1][:_MAX_DONE]]
    ends = accumulate(len(item) + _BULLET_CHARS for item in recent)
    recent_lines = recent[: sum(end <= room for end in ends)]
    older = done[: len(done) - len(recent_lines)]
    count += len(older)
    briefs += [clip_text(item.split(" → ")[0], 40) for item in older]
    if count:
        limit_chars = max(limit // 15 - _BULLET_CHARS, 40)
        line = f"Earlier, {format_count(count, 'request')}: {briefs[0]}"[: limit_chars - 2]
        for brief in briefs[1:]:
            if len(line) + len(brief) + len(";  …") > limit_chars:
                line += " …"
                break
            line += f"; {brief}"
        recent_lines.append(line)
    return replace(summary, done=tuple(reversed(recent_lines)))


def limit_summary(summary: Summary, limit: int) -> Summary:
    """Return a model's summary with at most about `limit` characters: the oldest points go first.

    A single point takes a quarter of them at most.
    """
    limit_chars = max(limit // 4, 60)
    fields = {
        name: tuple(clip_text(item, limit_chars) for item in getattr(summary, name))
        for name in _LISTS
    }
    summary = replace(summary, goal=clip_text(summary.goal, limit_chars), **fields)
    return _drop_oldest_points(summary, limit)


def _drop_oldest_points(summary: Summary, limit: int) -> Summary:
    """Return a summary of at most `limit` characters, if that is possible at all."""
    for name in _DROP_ORDER:
        over, points = len(render_summary(summary)) - limit, getattr(summary, name)
        ends = accumulate((len(point) + _BULLET_CHARS for point in points), initial=0)
        gone = sum(begin < over for begin in [*ends][:-1])
        summary = replace(summary, **{name: points[gone:]})
    over = len(render_summary(summary)) - limit
    if over > 0:
        summary = replace(summary, goal=summary.goal[: max(len(summary.goal) - over, 1)])
    return summary
