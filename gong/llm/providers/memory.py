"""What the offline model finds again in a conversation: quoted, and where it stood. Pure.

It has no memory of its own: the messages of the request are all it looks at, and what a search of
the tape gave back. A sentence answers a question by the words they share, rare ones first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tape.blocks import Text, text_of
from tape.entries import Summary
from tape.summaries import summary_text

from .. import sections
from ..facts import AGENT, ERROR
from ..passages import (
    PINNED,
    Rarity,
    clipped,
    is_question,
    key_words,
    plain_words,
    sentences,
    weight,
)
from .steps import Puzzle, Recall, Search

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.view import Message

    from .steps import Step

HELP_BEGINS = "I am the offline model"
"""How its help begins, which says nothing of the conversation."""
SEARCHER = "tape_search"
"""The tool that looks up what no longer stands before the model."""
_LONGEST = 300
_ENOUGH = 0.34
"""Share of a question's weight that a sentence must have to answer it."""
_SURE = 0.6
_OWN_WORDS = 0.7
"""Least worth of what a person said."""
_SECOND_HAND = 0.6
"""How much less it counts that the agent or a tool said something."""
_WISH = re.compile(
    r"(?:please\s+|can you\s+|could you\s+)*(?:tell me|remind me|recall|repeat)\b"
    r"|(?:请)?(?:告诉我|提醒我|说说|回忆)",
    re.IGNORECASE,
)
_WHERE_IS = re.compile(r"\s*(?:hey,?\s+|please\s+)*where(?:'s|\s+is)\b", re.IGNORECASE)
_HIT = re.compile(r"(?P<id>[0-9a-f]{4,40})\s.*?(?P<type>[a-z][a-z.]+): (?P<said>.*)\Z")
_SECTIONS = {
    "constraints": "constraints",
    "done": "what is done",
    "in_progress": "what is under way",
    "blocked": "what is blocked",
    "decisions": "decisions",
    "next_steps": "next steps",
    "critical_context": "critical context",
}
_ECHO = ("You said", "I said", "The summary", "Noted: ", "I found nothing", "I did not understand")
"""How sentences begin in which the offline model repeats what was said."""


class Said(NamedTuple):
    """A sentence that may answer, how it is to be quoted, and how much its place counts."""

    text: str
    place: str
    worth: float
    about: str = ""
    """Words it is found by that are not its own."""


def recalled(
    steps: Iterable[Step], prompt: str, earlier: Sequence[Said], tools: frozenset[str]
) -> tuple[Step, ...]:
    """Return steps with questions that no rule took as something to be recalled.

    Where the whole tape can be searched, what only half fits is no answer. With nothing said
    before, a question stays what it was.
    """
    enough = _SURE if SEARCHER in tools else _ENOUGH
    return tuple(_recalled(step, prompt, earlier, enough) if earlier else step for step in steps)


def _recalled(step: Step, prompt: str, earlier: Sequence[Said], enough: float) -> Step:
    match step:
        case Puzzle(text=text):
            asked = [one for one in sentences(text) if is_question(one)]
            if not asked and not _WISH.match(text):
                return step
            question = " ".join(asked) or text
            words = " ".join(dict.fromkeys(plain_words(question)))
            answer = _answers(asked or [text], earlier, enough) if words else None
            return Recall(question, words, answer) if answer or (asked and words) else step
        case Search(pattern=pattern) if _WHERE_IS.match(prompt):
            stated = [one for one in earlier if one.worth >= _STATED]
            answer = best(pattern, stated, _SURE)
            return Recall(pattern, pattern, answer) if answer else step
        case _:
            return step


_AND = re.compile(r"\band\b|,|、|，|以及|和")


def _answers(questions: Sequence[str], earlier: Sequence[Said], enough: float) -> str | None:
    """Return what answers the questions, a line for each; None where nothing answers any."""
    found: dict[str, None] = {}
    for question in questions:
        parts = [part for part in _AND.split(question) if key_words(part)]
        each = [best(part, earlier, _SURE) for part in parts] if len(parts) > 1 else [None]
        answers = each if all(each) else [best(question, earlier, enough)]
        found.update(dict.fromkeys(answer or nothing(question) for answer in answers))
    return "\n".join(found) if any(not line.startswith(_NOTHING) for line in found) else None


def best(question: str, said: Sequence[Said], enough: float) -> str | None:
    """Return the sentence that answers best, quoted with its place; the newest of equal ones."""
    wanted = {*key_words(question)}
    words = [key_words(f"{one.about} {one.text}") for one in said]
    rarity = Rarity(words)
    whole = sum(map(rarity.of, wanted))
    found: tuple[float, Said] | None = None
    for one, its in zip(said, words, strict=True):
        shared = wanted & {*its}
        share = sum(map(rarity.of, shared)) / whole if shared else 0.0
        if share < enough or (shared == {*its} and one.worth < 1):
            continue
        share *= _SECOND_HAND if one.worth < _OWN_WORDS else 1.0
        score = round(share + one.worth / 10 + _fits(question, one.text), 6)
        if found is None or score >= found[0]:
            found = (score, one)
    return f"{found[1].place}: “{clipped(found[1].text, _LONGEST)}”" if found else None


_KINDS = (
    (r"\bwho(?:se|m)?\b|谁", r"\b(?!I\b)[A-Z][a-z]+|@"),
    (
        r"\bwhen\b|何时|什么时候|几点|哪天",
        r"\d|day\b|morning|evening|noon|night|week|month|[日点周月年]",
    ),
    (r"\bhow (?:many|much|long|old|often)\b|多少|几|\bports?\b|\bnumber\b|端口|号码", r"\d"),
    (r"\bwhere\b|\bpath\b|\burl\b|哪里|哪儿|何处|地址", r"/|://|\b(?:in|at|on|under|near)\b|在"),
)


def _fits(question: str, text: str) -> float:
    """Return a little more for a sentence that holds such a thing as is asked for."""
    asked = any(
        re.search(ask, question, re.IGNORECASE) and re.search(has, text) for ask, has in _KINDS
    )
    return 0.1 if asked else 0.0


_STATED = 1.5
"""Worth of a sentence in which a person states something."""


def said_before(messages: Sequence[Message], prompt: str) -> tuple[Said, ...]:
    """Return what the messages before the newest prompt say, oldest first, tools' words first."""
    places = [number for number, message in enumerate(messages) if message.role == "user"]
    if not places:
        return ()
    past = messages[: places[-1]]
    newest = messages[places[-1]]
    found = [one for message in past if message.role == "tool" for one in _shown(message)]
    prompts = len(places)
    for message in past:
        if message.role == "user":
            prompts -= 1
            found += _from_user(text_of(message.content), prompts)
        elif message.role == "assistant":
            found += _from_assistant(text_of(message.content))
    for block in newest.content:  # several may have been made one
        if isinstance(block, Text) and block.text != prompt:
            found += _from_user(block.text, 0)
    return tuple(found)


def _shown(message: Message) -> Iterator[Said]:
    if message.name != SEARCHER:
        for line in sentences(text_of(message.content)[:_LOOKED_AT]):
            yield Said(line, f"{message.name or 'A tool'} showed", 0.0)


_LOOKED_AT = 20_000


def _from_user(text: str, ago: int) -> Iterator[Said]:
    summary = summary_in(text)
    if summary is not None:
        yield from _from_summary(summary)
        return
    place = f"You said, {ago} prompt{'s' * (ago != 1)} ago" if ago else "You said"
    yield from _from_person(text, place)


def _from_person(text: str, place: str) -> Iterator[Said]:
    for sentence in sentences(text[:_LOOKED_AT]):
        if not is_question(sentence):
            yield Said(sentence, place, _worth(sentence))


def _worth(sentence: str) -> float:
    """Return how much a person's sentence counts: 0.7 for orders, 4 for what is to be kept."""
    return _OWN_WORDS + min(weight(sentence), PINNED) * 0.55


def _from_summary(summary: Summary) -> Iterator[Said]:
    for field, name in _SECTIONS.items():
        for item in getattr(summary, field):
            if not is_question(item.split(" → ")[0]):
                others = field == "done" or item.startswith((AGENT, ERROR))
                worth = 0.5 if others else max(_worth(item), _STATED)
                yield Said(item, _place(name), worth, name)
    yield Said(summary.goal, _place("goal"), _STATED, "goal")
    for request in summary.requests:
        yield from _from_person(request, "You said, before the summary")


def _place(section: str) -> str:
    return f"The summary of what came before says, under {section}"


def _from_assistant(text: str) -> Iterator[Said]:
    if text.startswith(HELP_BEGINS):
        return
    for sentence in sentences(text[:_LOOKED_AT]):
        if not is_question(sentence) and not sentence.startswith(_ECHO):
            yield Said(sentence, "I said", 0.4)


def summary_in(text: str) -> Summary | None:
    """Return the summary of an anchor that a message holds; None for every other message."""
    return sections.parse(text) if text.startswith(_GOAL) else None


_GOAL = summary_text(Summary(goal=" ")).rstrip(" ")
"""How the text of every summary begins that has fields."""


def from_search(question: str, result: str) -> str:
    """Return what a search of the tape gave as an answer."""
    found = [hit for line in result.split("\n") if (hit := _HIT.match(line.strip()))]
    said = [
        Said(sentence, f"Entry {hit['id'][:12]} of the tape says", _found_worth(hit, sentence))
        for hit in reversed(found)
        for sentence in sentences(hit["said"])
        if not is_question(sentence) and not sentence.strip("… ").startswith(_ECHO)
    ]
    return best(question, said, 0.01) or nothing(question)


def _found_worth(hit: re.Match[str], sentence: str) -> float:
    return _worth(sentence) if hit["type"] in {"user", "context"} else 0.4


_NOTHING = "I found nothing about"


def nothing(question: str) -> str:
    """Return that nothing was found."""
    return f"{_NOTHING} “{clipped(question, 100)}” in what was said here."
