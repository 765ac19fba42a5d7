"""The sentences of a transcript that are worth keeping in a summary, weighed and chosen: pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ..transcript import FAILED_PREFIX
from .sentences import (
    PINNED,
    WordRarity,
    clip_text,
    extract_key_words,
    find_remembered_fact,
    is_decision,
    is_precise,
    is_rule,
    replace_figures,
    split_sentences,
    weigh_sentence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.entries import Summary

    from ..transcript import TranscriptPiece


class Fact(NamedTuple):
    """A sentence worth keeping; `order` is its place in what was said."""

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
    """Return the weight of what no person said."""
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
"""How calls and cuts stand in a transcript, and how the agent says again what the user said."""


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
