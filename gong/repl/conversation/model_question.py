"""Questions of the model: lists with a cursor above the prompt, or own words typed into it.

    keys, the prompt empty   one answer            several answers
    -----------------------  --------------------  ---------------------------------------
    ↑ ↓                      move the cursor       move the cursor
    a number, a letter       is the answer         chooses it, or leaves it out again
    Space                                          the same for the one under the cursor
    y, n (a plan)            is the answer
    Enter                    the one under the     the chosen ones; without any the one
                             cursor                under the cursor

What is typed is an answer in own words, or names answers by number (`1,3`) or by label. For 0.4
seconds no key counts: one typed for the prompt must not answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, has_completions

from ...agent.events import PlanProposed, QuestionAsked, RunEnd, ToolExecutionEnd
from ..draw.panels import PLAN_CHOICES, OpenChoice, build_choices, render_choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from ...agent.events import Event
    from ...agent.session import Session
    from ..draw.choice_list import ChoiceList
    from ..draw.lines import StyledLine

_APPROVALS = frozenset({"approve", "yes", "y", "ok"})
_OPTION_LETTERS = "abcdefghi"
_KEYS = f"123456789yn{_OPTION_LETTERS}"
_DEAF_SECONDS = 0.4


class ModelQuestion:
    """The questions of one call, and the answers so far."""

    def __init__(
        self,
        event: QuestionAsked | PlanProposed,
        *,
        has_draft: bool,
        clock: Callable[[], float],
    ) -> None:
        self.id = event.question_id
        self.has_draft = has_draft
        """Whether the next line was begun before the question came: it is no answer."""
        self._clock, self._opened_at = clock, clock()
        self._answers: list[tuple[str, ...]] = []
        self.is_plan = isinstance(event, PlanProposed)
        self._choices = (
            [_build_plan_choice(event)]
            if isinstance(event, PlanProposed)
            else [
                OpenChoice(
                    f"{item.header}: {item.question}" if item.header else item.question,
                    tuple((option.label, option.description) for option in item.options),
                    item.multi_select,
                    letters=_OPTION_LETTERS[: len(item.options)],
                )
                for item in event.questions
            ]
        )
        self.list: ChoiceList = build_choices(self.current)
        """The answers to the current question."""

    @property
    def current(self) -> OpenChoice:
        """The question that the next line answers."""
        return self._choices[len(self._answers)]

    @property
    def is_deaf(self) -> bool:
        """Whether keys are no answers yet."""
        return self._clock() - self._opened_at < _DEAF_SECONDS

    def note_key(self) -> None:
        """Note that a key is pressed: while keys follow each other the question stays deaf."""
        if self.is_deaf:
            self._opened_at = self._clock()

    def render(self, columns: int) -> list[StyledLine]:
        """Return the current question with its answers."""
        place = (len(self._answers) + 1, len(self._choices))
        return render_choices(self.current, self.list, columns, place)

    def take_line(self, line: str) -> None:
        """Take a line as the answer to the current question."""
        self._take_answer(self.current.read_answer(line))

    def take_key(self, key: str) -> bool:
        """Take a key; return whether it answers the current question."""
        choice = self.list.find(key)
        if choice is None:
            return False
        if self.list.is_many:
            self.list.switch(choice.value)
            return False
        self._take_answer((choice.value,))
        return True

    def take_cursor(self) -> bool:
        """Take what is chosen, or under the cursor; return whether that is an answer."""
        chosen = tuple(self.list.chosen)
        if not chosen and self.list.choices and self.list.current.key:
            chosen = (self.list.current.value,)
        if chosen:
            self._take_answer(chosen)
        return bool(chosen)

    def _take_answer(self, answer: tuple[str, ...]) -> None:
        self._answers.append(answer)
        if not self.is_answered:
            self.list = build_choices(self.current)

    @property
    def is_answered(self) -> bool:
        """Whether no question is left."""
        return len(self._answers) == len(self._choices)

    def answer(self, session: Session) -> None:
        """Pass the answers on to the session."""
        if not self.is_plan:
            session.answer(self.id, self._answers)
            return
        word, (_, planning) = self._answers[0][0], PLAN_CHOICES
        is_approved = word.lower() in _APPROVALS
        reason = "" if is_approved or word == planning else word
        session.answer(self.id, approve=is_approved, reason=reason)


class OpenModelQuestion:
    """The question of the model that waits for a person, if one does, and the keys that answer."""

    def __init__(
        self,
        session: Session,
        draft: Callable[[], Buffer],
        is_hidden: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        """`is_hidden` returns whether another question is shown in its place."""
        self._session, self._draft, self._is_hidden = session, draft, is_hidden
        self._clock = clock
        self._question: ModelQuestion | None = None

    @property
    def is_open(self) -> bool:
        """Whether the model asks."""
        return self._question is not None

    @property
    def takes_lines(self) -> bool:
        """Whether the next line is an answer: one begun before the question came is none."""
        return self._question is not None and not self._question.has_draft

    def take_event(self, event: Event) -> None:
        """Open a question that is asked; forget it where its call or the run has ended."""
        match event:
            case QuestionAsked(waits=True) | PlanProposed(waits=True):
                has_draft = bool(self._draft().text.strip())
                self._question = ModelQuestion(event, has_draft=has_draft, clock=self._clock)
            case ToolExecutionEnd(call_id=call_id):
                if self._question is not None and self._question.id == call_id:
                    self._question = None
            case RunEnd():
                self._question = None
            case _:
                pass

    def take_line(self, line: str) -> None:
        """Take a line as an answer; the last one goes to the session."""
        if self._question is not None:
            self._question.take_line(line)
            self._finish(self._question)

    def end_draft(self) -> None:
        """Take the lines from now on: the one that was begun before is sent."""
        if self._question is not None:
            self._question.has_draft = False

    def note_key(self) -> None:
        """Note that a key is pressed."""
        if self._question is not None:
            self._question.note_key()

    def render(self, columns: int) -> list[StyledLine]:
        """Return the question with its answers; nothing without one."""
        return [] if self._question is None else self._question.render(columns)

    def _find(self) -> ModelQuestion | None:
        return None if self._is_hidden() else self._question

    def _finish(self, question: ModelQuestion) -> None:
        """Pass the answers on, once there is one to each question."""
        if question.is_answered:
            self._question = None
            question.answer(self._session)

    def add_keys(self, keys: KeyBindings) -> None:
        """Bind the keys that answer."""
        free = Condition(lambda: self._find_free() is not None)
        listed = Condition(lambda: self._find_listed() is not None)
        several = Condition(self._may_take_several)
        for key in _KEYS:
            keys.add(key, filter=Condition(partial(self._may_take, key)))(self._take_key)
        for key, by in (("up", -1), ("down", 1)):
            keys.add(key, filter=listed & ~has_completions)(partial(self._move, by))
        keys.add("enter", filter=free)(self._take_cursor)
        keys.add(" ", filter=several)(self._switch)
        keys.add(",", filter=several)(lambda _: None)  # between numbers, as in a typed line
        keys.add("escape", filter=Condition(self._is_plan))(self._keep_planning)

    def _find_free(self) -> ModelQuestion | None:
        """Return the question where keys may answer it: not at first, nor while words are typed."""
        question = self._find()
        return None if question is None or question.is_deaf or self._draft().text else question

    def _find_listed(self) -> ModelQuestion | None:
        """Return such a question that has a list of answers."""
        question = self._find_free()
        return question if question is not None and question.list.choices else None

    def _may_take(self, key: str) -> bool:
        question = self._find_listed()
        is_on_answer = question is not None and bool(question.list.current.key)
        return is_on_answer and question is not None and question.list.find(key) is not None

    def _may_take_several(self) -> bool:
        question = self._find_listed()
        return question is not None and question.list.is_many and bool(question.list.current.key)

    def _is_plan(self) -> bool:
        question = self._find_free()
        return question is not None and question.is_plan

    def _take_key(self, event: KeyPressEvent) -> None:
        question = self._find_listed()
        if question is not None and question.take_key(event.data):
            self._finish(question)

    def _move(self, by: int, _: KeyPressEvent) -> None:
        question = self._find_listed()
        if question is not None:
            question.list.move(by)

    def _take_cursor(self, _: KeyPressEvent) -> None:
        question = self._find_free()
        if question is not None and question.take_cursor():
            self._finish(question)

    def _switch(self, _: KeyPressEvent) -> None:
        question = self._find_listed()
        if question is not None:
            question.list.switch(question.list.current.value)

    def _keep_planning(self, _: KeyPressEvent) -> None:
        question = self._find_free()
        if question is not None:
            question.take_line(PLAN_CHOICES[1])
            self._finish(question)


def _build_plan_choice(event: PlanProposed) -> OpenChoice:
    meanings = (f"the mode is {event.mode} then", "say what is missing")
    options = tuple(zip(PLAN_CHOICES, meanings, strict=True))
    return OpenChoice("Continue with this plan?", options, letters="yn")
