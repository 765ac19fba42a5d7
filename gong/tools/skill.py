"""The tool Skill: the model loads instructions for a task.

What skills there are, and how one is loaded, is the session's affair: see `gong.skills`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from .tool import ToolContext


class SkillArguments(Struct, frozen=True):
    """The skill to load."""

    skill: Annotated[str, Meta(min_length=1, description="Its name, such as commit")]
    args: Annotated[str, Meta(description="Its arguments, as a user would type them")] = ""


class SkillDetails(Struct, frozen=True):
    """What was loaded."""

    name: str
    path: str
    truncated: bool = False
    """Never: the text of a skill is not cut."""


async def run_skill(arguments: SkillArguments, context: ToolContext) -> ToolOutcome:
    """Return the text of a skill."""
    if context.load_skill is None:
        return ToolOutcome.error("There is no session here, so there are no skills.")
    loaded = await context.load_skill(arguments.skill, arguments.args)
    return ToolOutcome.from_text(loaded.text, SkillDetails(loaded.name, loaded.path))


SKILL_TOOL = AgentTool(
    name="Skill",
    description=(
        "Load a skill: instructions for a task, written by the user, the project or a plugin. The"
        " result is its text; follow it. Load a skill that fits before you begin the task, and"
        " when the user names one as /name."
    ),
    arguments=SkillArguments,
    run=run_skill,
)
