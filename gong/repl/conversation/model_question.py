"""Questions of the model, answered by one line each: choices, own words, or the word on a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.events import PlanProposed
from ..draw.panels import PLAN_CHOICES, OpenChoice

if TYPE_CHECKING:
    from ...agent.events import QuestionAsked
    from ...agent.session import Session

_APPROVALS = frozenset({"approve", "yes", "y", "ok"})


class ModelQuestion:
    """The questions of one call, and the answers so far."""

    def __init__(self, event: QuestionAsked | PlanProposed, *, has_draft: bool) -> None:
        self.id = event.question_id
        self.has_draft = has_draft
        """Whether the next line was begun before the question came: it is no answer."""
        self._answers: list[tuple[str, ...]] = []
        self._is_plan = isinstance(event, PlanProposed)
        self._choices = (
            [_build_plan_choice(event)]
            if isinstance(event, PlanProposed)
            else [
                OpenChoice(
                    f"{item.header}: {item.question}" if item.header else item.question,
                    tuple((option.label, option.description) for option in item.options),
                    item.multi_select,
                )
                for item in event.questions
            ]
        )

    @property
    def current(self) -> OpenChoice:
        """The question that the next line answers."""
        return self._choices[len(self._answers)]

    def take_line(self, line: str) -> tuple[str, ...]:
        """Take a line as the answer to the current question; return what it means."""
        answer = self.current.read_answer(line)
        self._answers.append(answer)
        return answer

    @property
    def is_answered(self) -> bool:
        """Whether no question is left."""
        return len(self._answers) == len(self._choices)

    def answer(self, session: Session) -> None:
        """Pass the answers on to the session."""
        if not self._is_plan:
            session.answer(self.id, self._answers)
            return
        word, (_, planning) = self._answers[0][0], PLAN_CHOICES
        is_approved = word.lower() in _APPROVALS
        reason = "" if is_approved or word == planning else word
        session.answer(self.id, approve=is_approved, reason=reason)


def _build_plan_choice(event: PlanProposed) -> OpenChoice:
    meanings = (f"the mode is {event.mode} then", "say what is missing")
    options = tuple(zip(PLAN_CHOICES, meanings, strict=True))
    return OpenChoice("Continue with this plan?", options)
