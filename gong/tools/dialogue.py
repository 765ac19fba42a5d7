"""What tools and the person at a session tell each other: todo lists, questions and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol

from msgspec import Meta, Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_QUESTIONS, MAX_OPTIONS = 4, 8


class Todo(Struct, frozen=True, omit_defaults=True):
    """One thing to do."""

    content: Annotated[str, Meta(min_length=1, description="What is to be done, as an order")]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    active_form: Annotated[str, Meta(description="The same while it is done: Running tests")] = (
        field(default="", name="activeForm")
    )


class QuestionOption(Struct, frozen=True, omit_defaults=True):
    """An answer to choose."""

    label: Annotated[str, Meta(min_length=1, description="The answer in 1 to 5 words")]
    description: Annotated[str, Meta(description="What choosing it means")] = ""


class Question(Struct, frozen=True, omit_defaults=True):
    """A question to a person, who may also answer in words of their own."""

    question: Annotated[str, Meta(min_length=1, description="The whole question")]
    options: Annotated[tuple[QuestionOption, ...], Meta(max_length=MAX_OPTIONS)] = ()
    header: Annotated[str, Meta(description="What it is about, in a word or two")] = ""
    multi_select: Annotated[bool, Meta(description="Whether several may be chosen")] = False


class PlanDecision(NamedTuple):
    """What became of a plan."""

    approved: bool
    reason: str = ""
    """Words of the person; or why nobody could decide."""
    mode: str = ""
    """The permission mode from now on."""


class Dialogue(Protocol):
    """The person at a session, as tools see them. A cancellation ends what waits."""

    has_person: bool
    """Whether somebody answers."""

    def record_todos(self, todos: Sequence[Todo]) -> None:
        """Make these the todo list of the session."""
        ...

    async def ask(
        self, question_id: str, questions: Sequence[Question]
    ) -> Mapping[str, Sequence[str]] | None:
        """Return the answers to each question by its text; None where nobody answers."""
        ...

    def enter_plan_mode(self) -> str:
        """Allow only what reads from now on; return why that cannot be, or nothing."""
        ...

    async def request_approval(self, question_id: str, plan: str) -> PlanDecision:
        """Ask about a plan; approved, the permission mode of before holds again."""
        ...
