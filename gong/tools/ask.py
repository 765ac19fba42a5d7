"""Tools that wait for the person at a session: questions, and plans to approve.

enter_plan_mode ──▶ plan mode: what may change something is refused
                      │ exit_plan_mode(plan)
                      ▼
                    proposed ──approved──▶ the mode of before
                      └──refused, with a reason──▶ plan mode
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .dialogue import MAX_QUESTIONS, Question
from .tool import AgentTool, ToolOutcome, find_no_targets

if TYPE_CHECKING:
    from .tool import ToolContext

DECIDE_YOURSELF = (
    "No user is present: decide yourself, continue, and say at the end what you decided."
)
"""What the model reads in place of an answer."""
_NO_PERSON = "There is no session here, so there is nobody to ask."


class AskArguments(Struct, frozen=True):
    """What to ask."""

    questions: Annotated[tuple[Question, ...], Meta(min_length=1, max_length=MAX_QUESTIONS)]


class AskDetails(Struct, frozen=True):
    """The answers to each question by its text; none where nobody answered."""

    answers: dict[str, tuple[str, ...]]


async def run_ask_user(arguments: AskArguments, context: ToolContext) -> ToolOutcome:
    """Return what the person answers, or that no user is present."""
    if context.dialogue is None:
        return ToolOutcome.error(_NO_PERSON)
    answers = await context.dialogue.ask(context.call_id, arguments.questions)
    if answers is None:
        return ToolOutcome.from_text(DECIDE_YOURSELF, AskDetails({}))
    chosen_labels = {text: tuple(chosen) for text, chosen in answers.items()}
    lines = [
        f"{text}\n→ {'; '.join(chosen) or '(no answer)'}" for text, chosen in chosen_labels.items()
    ]
    return ToolOutcome.from_text(
        "The user answered:\n\n" + "\n\n".join(lines), AskDetails(chosen_labels)
    )


ASK_TOOL = AgentTool(
    name="ask_user",
    description=(
        "Ask the user up to four questions at once, and wait for the answers. Use it where the"
        " choice is the user's and changes what you do; decide yourself what has a usual answer,"
        " and look up what the files can tell. Offer 2 to 4 options, the one you advise first; the"
        " user may answer in other words."
    ),
    arguments=AskArguments,
    run=run_ask_user,
    stopped="The user did not answer.",
    find_targets=find_no_targets,
)


class EnterPlanArguments(Struct, frozen=True):
    """Nothing."""


class ExitPlanArguments(Struct, frozen=True):
    """The plan to approve."""

    plan: Annotated[str, Meta(min_length=1, description="The plan, as Markdown")]


class PlanDetails(Struct, frozen=True):
    """What became of a plan."""

    approved: bool
    mode: str
    """The permission mode from now on."""
    reason: str = ""


async def run_enter_plan_mode(_arguments: EnterPlanArguments, context: ToolContext) -> ToolOutcome:
    """Allow only what reads."""
    if context.dialogue is None:
        return ToolOutcome.error(_NO_PERSON)
    if why := context.dialogue.enter_plan_mode():
        return ToolOutcome.error(why)
    return ToolOutcome.from_text(
        "Plan mode is on: read and search, change nothing. When the plan is ready, call"
        " exit_plan_mode with it."
    )


async def run_exit_plan_mode(arguments: ExitPlanArguments, context: ToolContext) -> ToolOutcome:
    """Ask the person to approve the plan."""
    if context.dialogue is None:
        return ToolOutcome.error(_NO_PERSON)
    decision = await context.dialogue.request_approval(context.call_id, arguments.plan)
    details = PlanDetails(decision.approved, decision.mode, decision.reason)
    reason = f"\nReason: {decision.reason}" if decision.reason else ""
    if decision.approved:
        text = f"The plan is approved. The permission mode is {decision.mode} now.{reason}"
        return ToolOutcome.from_text(text, details)
    text = f"The plan is not approved; the permission mode is {decision.mode}.{reason}"
    return ToolOutcome(ToolOutcome.from_text(text).content, details, is_error=True)


ENTER_PLAN_TOOL = AgentTool(
    name="enter_plan_mode",
    description=(
        "Begin to plan: until the user approves a plan, nothing may be changed. Use it before large"
        " work that could be done in several ways, not for small changes or questions."
    ),
    arguments=EnterPlanArguments,
    run=run_enter_plan_mode,
    find_targets=find_no_targets,
)

EXIT_PLAN_TOOL = AgentTool(
    name="exit_plan_mode",
    description=(
        "In plan mode: show the user the finished plan and wait for approval. Say what will change,"
        " in which files, in which order, and how it will be checked."
    ),
    arguments=ExitPlanArguments,
    run=run_exit_plan_mode,
    stopped="The user did not decide about the plan.",
    find_targets=find_no_targets,
)

ASK_TOOLS = (ASK_TOOL, ENTER_PLAN_TOOL, EXIT_PLAN_TOOL)
"""All of them."""
