"""A summary of a transcript, made by rules and without any model: pure.

It is used where a model fails, and it is the offline model's answer to a summariser's request.
What was said is quoted, never put in other words; the user's requests word for word and the files
are not its job (`gong.context.summary` puts them in).
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.entries import Summary
from tape.summaries import render_summary

from .facts import choose_facts, collect_facts, find_errors
from .markdown import parse_summary
from .sentences import clip_text, find_remembered_fact, is_question, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..transcript import TranscriptPiece

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
            turn.answers.clear()  # words before a call are no outcome
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
"""Turns whose failures may still stand in the way."""


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
