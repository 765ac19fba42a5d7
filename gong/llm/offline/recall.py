"""Answers questions of the offline model by quotes from the conversation. Pure.

It has no state: it reads the messages of the request and the results of a search of the tape. A
sentence answers a question if they share words, rare ones first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Summary, Text, join_texts
from tape.model.summary import render_summary

from ..summary_format import parse_summary
from .rules import PuzzleStep, RecallStep, SearchStep
from .sentences import (
    PINNED,
    WordRarity,
    clip_text,
    extract_key_words,
    is_question,
    iter_plain_words,
    split_sentences,
    weigh_sentence,
)
from .summary import AGENT, ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.context.view import Message

    from .rules import Step

HELP_BEGINS = "I am the offline model"
"""Start of its help text, which is not part of the conversation's content."""
SEARCHER = "tape_search"
"""The tool that searches entries the model no longer sees."""
_LONGEST = 300
_ENOUGH = 0.34
"""Share of a question's weight that a sentence must have to answer it."""
_SURE = 0.6
_OWN_WORDS = 0.7
"""Minimum weight of a user's sentence."""
_SECOND_HAND = 0.6
"""Factor for sentences of the agent or a tool."""
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
"""Starts of sentences in which the offline model repeats others."""


class Statement(NamedTuple):
    """A sentence that may answer, how it is to be quoted, and how much its place counts."""

    text: str
    place: str
    worth: float
    about: str = ""
    """Words it is found by that are not its own."""


def recall_answers(
    steps: Iterable[Step], prompt: str, earlier: Sequence[Statement], tools: frozenset[str]
) -> tuple[Step, ...]:
    """Return steps with questions that no rule took as something to be recalled.

    Where the whole tape can be searched, what only half fits is no answer. With nothing said
    before, a question stays what it was.
    """
    enough = _SURE if SEARCHER in tools else _ENOUGH
    return tuple(_recall_step(step, prompt, earlier, enough) if earlier else step for step in steps)


def _recall_step(step: Step, prompt: str, earlier: Sequence[Statement], enough: float) -> Step:
    match step:
        case PuzzleStep(text=text):
            asked = [one for one in split_sentences(text) if is_question(one)]
            if not asked and not _WISH.match(text):
                return step
            question = " ".join(asked) or text
            words = " ".join(dict.fromkeys(iter_plain_words(question)))
            answer = _find_answers(asked or [text], earlier, enough) if words else None
            return RecallStep(question, words, answer) if answer or (asked and words) else step
        case SearchStep(pattern=pattern) if _WHERE_IS.match(prompt):
            stated = [one for one in earlier if one.worth >= _STATED]
            answer = find_best_answer(pattern, stated, _SURE)
            return RecallStep(pattern, pattern, answer) if answer else step
        case _:
            return step


_AND = re.compile(r"\band\b|,|、|，|以及|和")


def _find_answers(
    questions: Sequence[str], earlier: Sequence[Statement], enough: float
) -> str | None:
    """Return what answers the questions, a line for each; None where nothing answers any."""
    found: dict[str, None] = {}
    for question in questions:
        parts = [part for part in _AND.split(question) if extract_key_words(part)]
        each = (
            [find_best_answer(part, earlier, _SURE) for part in parts] if len(parts) > 1 else [None]
        )
        answers = each if all(each) else [find_best_answer(question, earlier, enough)]
        found.update(dict.fromkeys(answer or report_nothing_found(question) for answer in answers))
    return "\n".join(found) if any(not line.startswith(_NOTHING) for line in found) else None


def find_best_answer(question: str, said: Sequence[Statement], enough: float) -> str | None:
    """Return the sentence that answers best, quoted with its place; the newest of equal ones."""
    wanted = {*extract_key_words(question)}
    words = [extract_key_words(f"{one.about} {one.text}") for one in said]
    rarity = WordRarity(words)
    whole = sum(map(rarity.rate_word, wanted))
    found: tuple[float, Statement] | None = None
    for one, its in zip(said, words, strict=True):
        shared = wanted & {*its}
        share = sum(map(rarity.rate_word, shared)) / whole if shared else 0.0
        if share < enough or (shared == {*its} and one.worth < 1):
            continue
        share *= _SECOND_HAND if one.worth < _OWN_WORDS else 1.0
        score = round(share + one.worth / 10 + _rate_kind(question, one.text), 6)
        if found is None or score >= found[0]:
            found = (score, one)
    return f"{found[1].place}: “{clip_text(found[1].text, _LONGEST)}”" if found else None


_KINDS = (
    (r"\bwho(?:se|m)?\b|谁", r"\b(?!I\b)[A-Z][a-z]+|@"),
    (
        r"\bwhen\b|何时|什么时候|几点|哪天",
        r"\d|day\b|morning|evening|noon|night|week|month|[日点周月年]",
    ),
    (r"\bhow (?:many|much|long|old|often)\b|多少|几|\bports?\b|\bnumber\b|端口|号码", r"\d"),
    (r"\bwhere\b|\bpath\b|\burl\b|哪里|哪儿|何处|地址", r"/|://|\b(?:in|at|on|under|near)\b|在"),
)


def _rate_kind(question: str, text: str) -> float:
    """Return a little more for a sentence that holds such a thing as is asked for."""
    asked = any(
        re.search(ask, question, re.IGNORECASE) and re.search(has, text) for ask, has in _KINDS
    )
    return 0.1 if asked else 0.0


_STATED = 1.5
"""Worth of a sentence in which a person states something."""


def collect_statements(messages: Sequence[Message], prompt: str) -> tuple[Statement, ...]:
    """Return what the messages before the newest prompt say, oldest first, tools' words first."""
    places = [number for number, message in enumerate(messages) if message.role == "user"]
    if not places:
        return ()
    past = messages[: places[-1]]
    newest = messages[places[-1]]
    found = [
        one for message in past if message.role == "tool" for one in _iter_tool_statements(message)
    ]
    prompts = len(places)
    for message in past:
        if message.role == "user":
            prompts -= 1
            found += _iter_user_statements(join_texts(message.content), prompts)
        elif message.role == "assistant":
            found += _iter_assistant_statements(join_texts(message.content))
    for block in newest.content:  # several may have been made one
        if isinstance(block, Text) and block.text != prompt:
            found += _iter_user_statements(block.text, 0)
    return tuple(found)


def _iter_tool_statements(message: Message) -> Iterator[Statement]:
    if message.name != SEARCHER:
        for line in split_sentences(join_texts(message.content)[:_LOOKED_AT]):
            yield Statement(line, f"{message.name or 'A tool'} showed", 0.0)


_LOOKED_AT = 20_000


def _iter_user_statements(text: str, ago: int) -> Iterator[Statement]:
    summary = find_summary(text)
    if summary is not None:
        yield from _iter_summary_statements(summary)
        return
    place = f"You said, {ago} prompt{'s' * (ago != 1)} ago" if ago else "You said"
    yield from _iter_person_statements(text, place)


def _iter_person_statements(text: str, place: str) -> Iterator[Statement]:
    for sentence in split_sentences(text[:_LOOKED_AT]):
        if not is_question(sentence):
            yield Statement(sentence, place, _weigh_statement(sentence))


def _weigh_statement(sentence: str) -> float:
    """Return how much a person's sentence counts: 0.7 for orders, 4 for what is to be kept."""
    return _OWN_WORDS + min(weigh_sentence(sentence), PINNED) * 0.55


def _iter_summary_statements(summary: Summary) -> Iterator[Statement]:
    for field, name in _SECTIONS.items():
        for item in getattr(summary, field):
            if not is_question(item.split(" → ")[0]):
                others = field == "done" or item.startswith((AGENT, ERROR))
                worth = 0.5 if others else max(_weigh_statement(item), _STATED)
                yield Statement(item, _describe_section(name), worth, name)
    yield Statement(summary.goal, _describe_section("goal"), _STATED, "goal")
    for request in summary.requests:
        yield from _iter_person_statements(request, "You said, before the summary")


def _describe_section(section: str) -> str:
    return f"The summary of what came before says, under {section}"


def _iter_assistant_statements(text: str) -> Iterator[Statement]:
    if text.startswith(HELP_BEGINS):
        return
    for sentence in split_sentences(text[:_LOOKED_AT]):
        if not is_question(sentence) and not sentence.startswith(_ECHO):
            yield Statement(sentence, "I said", 0.4)


def find_summary(text: str) -> Summary | None:
    """Return the summary of an anchor that a message holds; None for every other message."""
    return parse_summary(text) if text.startswith(_GOAL) else None


_GOAL = render_summary(Summary(goal=" ")).rstrip(" ")
"""How the text of every summary begins that has fields."""


def answer_from_search(question: str, result: str) -> str:
    """Return what a search of the tape gave as an answer."""
    found = [hit for line in result.split("\n") if (hit := _HIT.match(line.strip()))]
    said = [
        Statement(sentence, f"Entry {hit['id'][:12]} of the tape says", _weigh_hit(hit, sentence))
        for hit in reversed(found)
        for sentence in split_sentences(hit["said"])
        if not is_question(sentence) and not sentence.strip("… ").startswith(_ECHO)
    ]
    return find_best_answer(question, said, 0.01) or report_nothing_found(question)


def _weigh_hit(hit: re.Match[str], sentence: str) -> float:
    return _weigh_statement(sentence) if hit["type"] in {"user", "context"} else 0.4


_NOTHING = "I found nothing about"


def report_nothing_found(question: str) -> str:
    """Return that nothing was found."""
    return f"{_NOTHING} “{clip_text(question, 100)}” in what was said here."
