"""What the offline model finds again in a conversation: quoted, with where it was said. Pure.

It has no memory of its own: it looks at the messages of the request, and at the results of a
search of the tape. A sentence answers a question by the words they share, rare ones first
(`search_terms`); among equal ones the worth of its place counts, then the newest.

| place | worth |
|---|---|
| what a person said, an order … something to be remembered | 0.7 … 4 |
| the fields of a summary | as above, at least 1.5; 0.5 for what the agent did or said |
| what the agent said | 0.4 |
| what a tool showed | 0 |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Summary, Text, join_texts
from tape.model.summary import render_summary
from tape.text import format_count

from ...search_terms import parse_words, weigh_term
from ...summary.parse import parse_summary
from ...summary.rules import AGENT, ERROR
from ...summary.sentences import clip_text, is_question, split_sentences, weigh_sentence
from .rules import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.context.view import Message


HELP_BEGINS = "I am the offline model"
"""Start of its help text, which is not part of the conversation's content."""
SEARCHER = "tape_search"
"""The tool that looks up what is no longer in the context."""

_ENOUGH = 0.34
"""Share of a question's weight that a sentence must have to answer it."""
_SURE = 0.6
"""The same where the whole tape can be searched, or a sentence is one of many."""
_OWN_WORDS, _STATED, _SECOND_HAND = 0.7, 1.5, 0.4
"""Least worth of what a person said, and of a fact he stated; worth of the agent's words."""
_OTHERS_FACTOR = 0.6
"""How much less words are worth that no person said."""
_MAX_TEXT_CHARS = 20_000
_MAX_QUOTE_CHARS = 300
_WISH = re.compile(
    r"(?:please\s+|can you\s+|could you\s+)*(?:tell me|remind me|recall|repeat)\b"
    r"|(?:请)?(?:告诉我|提醒我|说说|回忆)",
    re.IGNORECASE,
)
_WHERE_IS = re.compile(r"\s*(?:hey,?\s+|please\s+)*where(?:'s|\s+is)\b", re.IGNORECASE)
_AND = re.compile(r"\band\b|,|、|，|以及|和")
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
_GOAL = render_summary(Summary(goal=" ")).rstrip(" ")
"""How the text of every summary begins that has fields."""


class Statement(NamedTuple):
    """A sentence that may answer, where it was said, and how much that place counts."""

    text: str
    place: str
    worth: float
    about: str = ""
    """Words it is found by that are not its own."""


def recall_answers(
    steps: Iterable[Step], prompt: str, earlier: Sequence[Statement], tools: frozenset[str]
) -> tuple[Step, ...]:
    """Return steps with the questions that no pattern took as `recall`.

    Where the whole tape can be searched, what only half fits is no answer. With nothing said
    before, a question stays unknown.
    """
    enough = _SURE if SEARCHER in tools else _ENOUGH
    stated = [statement for statement in earlier if statement.worth >= _STATED]
    recalled: list[Step] = []
    for step in steps:
        question = answer = None
        is_asked = False
        if step.verb == "unknown" and earlier:
            questions = [
                sentence for sentence in split_sentences(step.text) if is_question(sentence)
            ]
            if questions or _WISH.match(step.text):
                is_asked, question = bool(questions), " ".join(questions) or step.text
                answer = _find_answers(questions or [step.text], earlier, enough)
        elif step.verb == "search" and earlier and _WHERE_IS.match(prompt):
            question, answer = step.text, find_best_answer(step.text, stated, _SURE)
        words = " ".join(term.begins for term in parse_words(question or ""))
        is_recall = question and words and (answer or is_asked)
        recalled.append(
            Step("recall", question or "", words=words, answer=answer) if is_recall else step
        )
    return tuple(recalled)


def _find_answers(
    questions: Sequence[str], earlier: Sequence[Statement], enough: float
) -> str | None:
    """Return what answers the questions, a line for each; None where nothing answers any."""
    lines: dict[str, bool] = {}
    for question in questions:
        parts = [part for part in _AND.split(question) if parse_words(part)]
        answers = [find_best_answer(part, earlier, _SURE) for part in parts]
        if len(parts) < 2 or not all(answers):  # noqa: PLR2004 (one part is the question itself)
            answers = [find_best_answer(question, earlier, enough)]
        lines |= {answer or report_nothing_found(question): bool(answer) for answer in answers}
    return "\n".join(lines) if any(lines.values()) else None


def find_best_answer(question: str, statements: Sequence[Statement], enough: float) -> str | None:
    """Return the sentence that answers best, quoted with its place; None below `enough`."""
    terms = parse_words(question)
    matches = [
        [bool(term.pattern.search(f"{statement.about} {statement.text}")) for term in terms]
        for statement in statements
    ]
    weights = [weigh_term(sum(column), len(statements)) for column in zip(*matches, strict=True)]
    best: tuple[float, Statement] | None = None
    for statement, hits in zip(statements, matches, strict=True):
        share = sum(weight for weight, hit in zip(weights, hits, strict=True) if hit)
        share /= sum(weights) or 1
        if share and share >= enough:
            share *= _OTHERS_FACTOR if statement.worth < _OWN_WORDS else 1.0
            score = round(share + statement.worth / 10, 6)
            if best is None or score >= best[0]:
                best = (score, statement)
    return f"{best[1].place}: “{clip_text(best[1].text, _MAX_QUOTE_CHARS)}”" if best else None


def collect_statements(messages: Sequence[Message], prompt: str) -> tuple[Statement, ...]:
    """Return what the messages before the newest prompt say, oldest first, tools' words first."""
    places = [number for number, message in enumerate(messages) if message.role == "user"]
    if not places:
        return ()
    past, newest = messages[: places[-1]], messages[places[-1]]
    statements = [
        Statement(line, f"{message.name or 'A tool'} showed", 0.0)
        for message in past
        if message.role == "tool" and message.name != SEARCHER
        for line in split_sentences(join_texts(message.content)[:_MAX_TEXT_CHARS])
    ]
    prompts = len(places)
    for message in past:
        text = join_texts(message.content)
        if message.role == "user":
            prompts -= 1
            statements += _iter_user_statements(text, prompts)
        elif message.role == "assistant" and not text.startswith(HELP_BEGINS):
            for sentence in split_sentences(text[:_MAX_TEXT_CHARS]):
                if not is_question(sentence) and not sentence.startswith(_ECHO):
                    statements.append(Statement(sentence, "I said", _SECOND_HAND))
    for block in newest.content:  # several messages may have been made one
        if isinstance(block, Text) and block.text != prompt:
            statements += _iter_user_statements(block.text, 0)
    return tuple(statements)


def _iter_user_statements(text: str, ago: int) -> Iterator[Statement]:
    summary = find_summary(text)
    if summary is None:
        place = f"You said, {format_count(ago, 'prompt')} ago" if ago else "You said"
        yield from _iter_person_statements(text, place)
        return
    place = "The summary of what came before says, under"
    for field, name in _SECTIONS.items():
        for item in getattr(summary, field):
            if not is_question(item.split(" → ")[0]):
                is_others = field == "done" or item.startswith((AGENT, ERROR))
                worth = _SECOND_HAND + 0.1 if is_others else max(_weigh_statement(item), _STATED)
                yield Statement(item, f"{place} {name}", worth, name)
    yield Statement(summary.goal, f"{place} goal", _STATED, "goal")
    for request in summary.requests:
        yield from _iter_person_statements(request, "You said, before the summary")


def _iter_person_statements(text: str, place: str) -> Iterator[Statement]:
    for sentence in split_sentences(text[:_MAX_TEXT_CHARS]):
        if not is_question(sentence):
            yield Statement(sentence, place, _weigh_statement(sentence))


def _weigh_statement(sentence: str) -> float:
    """Return how much a person's sentence counts: 0.7 for orders, 4 for what is to be kept."""
    return _OWN_WORDS + weigh_sentence(sentence) * 0.55


def find_summary(text: str) -> Summary | None:
    """Return the summary of an anchor that a message holds; None for every other message."""
    return parse_summary(text) if text.startswith(_GOAL) else None


def answer_from_search(question: str, result: str) -> str:
    """Return the result of a search of the tape as an answer."""
    statements: list[Statement] = []
    for hit in filter(None, (_HIT.match(line.strip()) for line in reversed(result.split("\n")))):
        for sentence in split_sentences(hit["said"]):
            if not is_question(sentence) and not sentence.strip("… ").startswith(_ECHO):
                own = hit["type"] in {"user", "context"}
                worth = _weigh_statement(sentence) if own else _SECOND_HAND
                statements.append(
                    Statement(sentence, f"Entry {hit['id'][:12]} of the tape says", worth)
                )
    return find_best_answer(question, statements, 0.01) or report_nothing_found(question)


def report_nothing_found(question: str) -> str:
    """Return that nothing was found."""
    return f"I found nothing about “{clip_text(question, 100)}” in what was said here."
