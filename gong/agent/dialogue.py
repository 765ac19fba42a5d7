"""The person at a session: what tools ask them, and what they answer through the session.

    no user present   a question is an event and answered immediately: decide yourself
    a user present    a question is emitted, the session awaits input, until one of these:

        Session.answer        the answer is the tool's result
        the time limit        as with no user present, but a plan is refused
        Session.ask_nobody    the same
        an interrupt, a stop  the tool is stopped; the question is closed

On the tape are `custom` entries, `gong.todos`, for each change of the todo list, which is also in
the state of every anchor. A `mode` entry is there for each change of the permission mode, which is
in the state of later anchors too. A session that continues has both again:

    the tape shows    the mode was named now (--permission)   it was not
    ----------------  --------------------------------------  ------------------------------------
    no mode           that one                                that of the settings
    bypass, dont_ask  that one                                that of the settings, and a remark:
                                                              what they allow has to be asked for
    plan              that one                                plan; then that of the settings
    any other         that one                                the tape's
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.formats.wire import encode_json
from tape.model.entries import (
    NO_JSON,
    TODOS_KIND,
    Anchor,
    Assistant,
    Custom,
    Mode,
    join_texts,
    select_tool_calls,
)
from tape.text import clean_words

from ..errors import ConfigurationError
from ..policy.approval import ModalPolicy, find_mode
from ..policy.modes import PermissionMode, parse_mode
from ..tools.dialogue import PlanDecision, Question, Todo
from . import events
from .recorder import find_last_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tape.model.entries import Payload
    from tape.model.line import Entry

    from ..policy.decision import Policy

_NEVER_RESTORED = {PermissionMode.BYPASS, PermissionMode.DONT_ASK}
"""Modes that run commands unasked: each session has to ask for them itself."""

Answers = str | Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]]
"""Answers to questions: by the question's text, in their order, or the only one."""

_QUESTION = re.compile(
    r"[?？؟][\s*_\"'”’)）」』]*+(?:[(\[][^()\[\]\n/]{1,40}(?:/[^()\[\]\n/]{1,40})+[)\]][\s*_:]*+)?+"
    r"[\s\u2600-\u27bf\ufe0f\U0001f300-\U0001faff]*+\Z"
)
"""The end of a text that asks something.

Behind it may be marks of Markdown, quotes, the choice (`[y/N]`) and emoji.
"""
_OPTION = re.compile(r"\s*(?:[-*+•]|\(?(?:\d{1,2}|[A-Za-z])[.):、）])\s+\S")
"""The first line of an item of a list."""
_MORE_OF_OPTION = re.compile(r"\s*\Z|[ \t]{2,}\S")
"""A line between two items, or one that continues an item."""


def find_todos(entries: Sequence[Entry]) -> tuple[Todo, ...]:
    """Return the newest todo list of a path; `entries` are those it keeps, then its own."""
    for entry in reversed(entries):
        packed_todos = NO_JSON
        match entry.data:
            case Custom(kind=kind, data=data) if kind == TODOS_KIND:
                packed_todos = data
            case Anchor(state=state):
                packed_todos = state.todos
            case _:
                continue
        if packed_todos != NO_JSON:
            with suppress(msgspec.MsgspecError):  # another program's entry under our name
                return msgspec.json.decode(packed_todos, type=tuple[Todo, ...])
    return ()


def ends_with_question(path: Sequence[Entry], prompt: Entry) -> bool:
    """Return whether the newest answer after a prompt ends with a question, and its options."""
    for entry in reversed(path):
        if isinstance(entry.data, Assistant):
            content = entry.data.content
            text = join_texts(content)
            asks = any(_QUESTION.search(part) for part in (text, _remove_options(text)))
            return asks and not select_tool_calls(content)
        if entry.id == prompt.id:
            break
    return False


def _remove_options(text: str) -> str:
    """Return a text without the list of two items or more that it ends with."""
    lines = text.rstrip().split("\n")
    first, count = len(lines), 0
    for number in range(len(lines) - 1, -1, -1):
        if _OPTION.match(lines[number]):
            first, count = number, count + 1
        elif not _MORE_OF_OPTION.match(lines[number]):
            break
    return "\n".join(lines[:first]) if count > 1 else text


def encode_todos(todos: Iterable[Todo]) -> Raw:
    """Return a todo list as JSON."""
    return Raw(encode_json([*todos]))


@dataclass(frozen=True, slots=True)
class _OpenQuestion:
    questions: tuple[Question, ...]
    """Empty for a plan."""
    answer: asyncio.Future[dict[str, tuple[str, ...]] | PlanDecision | None]
    """None where nobody is left to answer."""


class SessionDialogue:
    """What a session asks the person at it; see the table above."""

    def __init__(
        self,
        emit: Callable[[events.Event], None],
        note: Callable[[], None],
        record: Callable[[Payload], bool],
        find_policy: Callable[[], Policy],
        list_tools: Callable[[], tuple[str, ...]],
    ) -> None:
        self.has_person = False
        """Whether somebody answers."""
        self.approves_plans = False
        """Whether plans are approved where nobody answers."""
        self.timeout: float | None = None
        """Seconds to wait for an answer; None waits for ever."""
        self._emit, self._note = emit, note
        self._record, self._find_policy, self._list_tools = record, find_policy, list_tools
        self._open: dict[str, _OpenQuestion] = {}
        self._mode_before: PermissionMode | None = None
        """The permission mode that holds again after the plan; None if none was left."""
        self._announced_mode = self._recorded_mode = find_mode(find_policy())
        """The modes that the front ends were told, and that the tape shows."""

    @property
    def is_waiting(self) -> bool:
        """Whether a question is open."""
        return bool(self._open)

    def record_todos(self, todos: Sequence[Todo]) -> None:
        """Make these the todo list of the session: on the tape, and told."""
        self._record(Custom(TODOS_KIND, encode_todos(todos)))
        self._emit(events.TodosChanged(tuple(todos)))

    async def ask(
        self, question_id: str, questions: Sequence[Question]
    ) -> Mapping[str, Sequence[str]] | None:
        """Return the answers to each question by its text; None where nobody answers.

        A text that another question has too gets a number: `Which one? (2)`.
        """
        numbered = tuple(_number_repeats(questions))
        event = events.QuestionAsked(question_id, numbered, self.has_person)
        answer = await self._wait(question_id, numbered, event)
        return answer if isinstance(answer, dict) else None

    async def _wait(
        self, question_id: str, questions: tuple[Question, ...], event: events.Event
    ) -> dict[str, tuple[str, ...]] | PlanDecision | None:
        """Tell of a question and wait for its answer; None where nobody answers."""
        if not self.has_person:
            self._emit(event)
            return None
        question = _OpenQuestion(questions, asyncio.get_running_loop().create_future())
        self._open[question_id] = question
        self._note()
        try:
            self._emit(event)
            async with asyncio.timeout(self.timeout):
                return await question.answer
        except TimeoutError:
            return None
        finally:
            del self._open[question_id]
            self._note()

    def close_questions(self) -> None:
        """Ask nobody from now on, and close what is open: no user is present to answer it."""
        self.has_person = False
        for question in self._open.values():
            if not question.answer.done():
                question.answer.set_result(None)

    def answer(
        self,
        question_id: str,
        answers: Answers = (),
        *,
        approve: bool | None = None,
        reason: str = "",
    ) -> None:
        """Answer an open question, or approve or refuse a plan.

        Raises ConfigurationError where no such question is open, or the answers do not fit it.
        """
        question = self._open.get(question_id) if isinstance(question_id, str) else None
        if question is None or question.answer.done():
            raise ConfigurationError(f"no question {question_id} is open")
        is_plan = not question.questions
        if is_plan is (approve is None):
            need = "approve=True or False" if is_plan else "answers"
            raise ConfigurationError(f"question {question_id} is answered with {need}")
        if not isinstance(approve, bool | None):
            raise ConfigurationError(f"a plan is approved with True or False, not {approve!r}")
        if not isinstance(reason, str):
            raise ConfigurationError(f"the reason of an answer is a text, not {reason!r}")
        if approve is not None:
            question.answer.set_result(PlanDecision(approve, clean_words(reason)))
        else:
            question.answer.set_result(_assign_answers(question.questions, answers))

    def enter_plan_mode(self) -> str:
        """Allow only what reads from now on; return why that cannot be, or nothing."""
        policy = self._find_policy()
        if not isinstance(policy, ModalPolicy):
            return "This session has no permission modes: plan without one, and change nothing."
        self.change_mode(policy, PermissionMode.PLAN)
        return ""

    def change_mode(self, policy: ModalPolicy, mode: PermissionMode) -> None:
        """Let another mode hold, told and recorded; plan mode remembers the one before it."""
        if mode is not PermissionMode.PLAN:
            self._mode_before = None
        elif policy.mode is not PermissionMode.PLAN:
            self._mode_before = policy.mode
        policy.mode = mode
        self.record_mode()

    def record_mode(self) -> None:
        """Tell and record the mode of now where it is new; without a branch the next call does."""
        policy = self._find_policy()
        if not isinstance(policy, ModalPolicy):
            return
        mode, last_mode = policy.mode.value, self._announced_mode
        if mode != last_mode:
            self._announced_mode = mode
            self._emit(events.ModeSelect(mode, last_mode))
        if mode != self._recorded_mode and self._record(Mode(mode, self._list_tools())):
            self._recorded_mode = mode

    def follow_path(self, entries: Sequence[Entry]) -> None:
        """Take over which mode a path shows: that of a session that continues, or went back."""
        self._recorded_mode = find_last_mode(entries) or self._recorded_mode

    def restore_mode(self) -> str:
        """Let the mode hold that the tape shows; return what to tell of it, or nothing."""
        policy = self._find_policy()
        if not isinstance(policy, ModalPolicy) or self._recorded_mode == policy.mode:
            return ""
        try:
            mode = parse_mode(self._recorded_mode)
        except ConfigurationError:  # of a newer version
            name = self._recorded_mode
            return f"the session was left in permission mode {name}, which is unknown here"
        if mode in _NEVER_RESTORED:
            return (
                f"the session was left in permission mode {mode}, which is never restored: "
                f"it is {policy.mode} now; --permission {mode} changes that"
            )
        if mode is PermissionMode.PLAN:
            self._mode_before = policy.mode
        policy.mode, self._announced_mode = mode, mode.value
        return ""

    def leave_plan_mode(self) -> str | None:
        """Let the mode of before hold again; return it, or None where plan mode is not on."""
        policy = self._find_policy()
        if not isinstance(policy, ModalPolicy) or policy.mode is not PermissionMode.PLAN:
            return None
        self.change_mode(policy, self._mode_before or PermissionMode.DEFAULT)
        return policy.mode

    async def request_approval(self, question_id: str, plan: str) -> PlanDecision:
        """Ask about a plan; approved, the permission mode of before holds again."""
        policy = self._find_policy()
        if not isinstance(policy, ModalPolicy) or policy.mode is not PermissionMode.PLAN:
            mode = policy.mode if isinstance(policy, ModalPolicy) else ""
            return PlanDecision(False, "Plan mode is not on: there is nothing to approve.", mode)
        after = self._mode_before or PermissionMode.DEFAULT
        was_asked = self.has_person
        proposal = events.PlanProposed(question_id, plan, after, was_asked)
        decision = await self._wait(question_id, (), proposal)
        if not isinstance(decision, PlanDecision):
            # nobody answers; silence of somebody who was asked is no approval
            if was_asked:
                text = "Nobody answered: end with the plan as your answer."
                decision = PlanDecision(False, text)
            elif self.approves_plans or after is PermissionMode.BYPASS:
                text = "No user is present to read it: continue as planned."
                decision = PlanDecision(True, text)
            else:
                text = "No user is present to approve it: end with the plan as your answer."
                decision = PlanDecision(False, text)
        if not decision.approved:
            return decision._replace(mode=policy.mode)
        self.change_mode(policy, after)
        return decision._replace(mode=after)


def _number_repeats(questions: Sequence[Question]) -> Iterator[Question]:
    """Yield the questions, each with a text of its own."""
    texts = set[str]()
    for question in questions:
        text, number = question.question, 1
        while text in texts:
            number += 1
            text = f"{question.question} ({number})"
        texts.add(text)
        yield replace(question, question=text)


def _assign_answers(questions: Sequence[Question], answers: Answers) -> dict[str, tuple[str, ...]]:
    """Return the answers by the text of their question; what has none is empty.

    Raises ConfigurationError for an answer to something else.
    """
    if isinstance(answers, str):
        answers = (answers,)
    if not isinstance(answers, Mapping | list | tuple):
        raise ConfigurationError(f"answers are texts in a list, or by question, not {answers!r}")
    if isinstance(answers, Mapping):
        by_question = dict(answers)
    elif len(answers) <= len(questions):
        by_question = {
            question.question: answer for question, answer in zip(questions, answers, strict=False)
        }
    else:
        raise ConfigurationError(f"{len(answers)} answers to {len(questions)} questions")
    if unknown := by_question.keys() - {question.question for question in questions}:
        raise ConfigurationError(f"it was not asked: {', '.join(sorted(map(str, unknown)))}")
    chosen = {question.question: by_question.get(question.question, ()) for question in questions}
    return {text: _read_answer(answer) for text, answer in chosen.items()}


def _read_answer(answer: object) -> tuple[str, ...]:
    """Return the texts of one answer; raises ConfigurationError for anything else."""
    texts = (answer,) if isinstance(answer, str) else answer
    if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
        raise ConfigurationError(f"an answer is a text, or a list of texts, not {answer!r}")
    return tuple(map(clean_words, texts))
