"""Skills in a run: the one that a prompt names, those the model loads, and what ends with the run.

    prompt `/commit -m x`     the tape gets
    ------------------------  -----------------------------------------------------------
    names a skill             the prompt as typed, then its text as `context` of `system`
    names none                the prompt: the model reads it as it is

A skill may name a model and an effort. They hold for its run; a session that began with it keeps
them, as the tape says which model answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, get_args

from tape.model.entries import Anchor, Context, Text, User

from ..errors import AuthenticationError, ConfigurationError, UnknownModel
from ..llm.models import EffortChoice
from ..policy.rules import NO_RULES, HasRunRules
from . import events

if TYPE_CHECKING:
    from ..skills.session_skills import LoadedText, SkillUse
    from .events import Emit
    from .model import AgentModel
    from .recorder import Recorder
    from .run_context import RunContext
    from .setup import SessionSetup


class SkillSession(Protocol):
    """What a skill may change of a session."""

    setup: SessionSetup
    recorder: Recorder | None

    def use_model(self, model: AgentModel | str) -> None:
        """Use another model from the next call on."""
        ...

    def use_effort(self, effort: EffortChoice | None) -> None:
        """Let models think so hard from the next call on."""
        ...

    def build_run_context(self) -> RunContext:
        """Return what a run works with."""
        ...


def find_prompt_skill(session: SkillSession, prompt: str) -> SkillUse | None:
    """Return the use of a skill that a prompt is; None where it names none.

    Raises ConfigurationError for a skill that may not be used, or wrong arguments.
    """
    load = session.setup.load_skills
    if load is None or not prompt.startswith("/"):
        return None
    recorder = session.recorder
    return load().find_prompt(prompt, recorder.tape.id if recorder else "")


async def record_prompt_skill(
    setup: SessionSetup, recorder: Recorder, use: SkillUse | None, emit: Emit
) -> None:
    """Record the text of the skill that a prompt names, if it names one, after the prompt."""
    if use is None:
        return
    loaded = await _load_use(setup, use, emit)
    recorder.append(Context("user", "system", (Text(loaded.text),)))


async def load_called_skill(
    setup: SessionSetup, tape: str, emit: Emit, name: str, typed: str
) -> LoadedText:
    """Return the text of a skill that the model loads on a tape. Raises ConfigurationError."""
    load = setup.load_skills
    if load is None:
        raise ConfigurationError("this session has no skills")
    return await _load_use(setup, load().find_call(name, typed, tape), emit)


async def _load_use(setup: SessionSetup, use: SkillUse, emit: Emit) -> LoadedText:
    assert setup.load_skills is not None, "the use came from it"
    loaded = await setup.load_skills().load(use, setup.env, setup.policy)
    for refusal in loaded.refused:
        emit(events.Warn(f"skill {loaded.name}: refused {refusal}"))
    return loaded


def begin_skill(
    session: SkillSession, use: SkillUse | None
) -> tuple[str, EffortChoice | None] | None:
    """Let the model and effort of a skill answer from now on; return those to go back to.

    None where they stay: no skill is used, or the session begins with it.
    """
    recorder = session.recorder
    if use is None or recorder is None:
        return None
    before = session.setup.model.name, session.setup.config.effort
    is_first = not any(isinstance(entry.data, User | Anchor) for entry in recorder.path)
    skill = use.skill
    if skill.model is not None and session.setup.find_model is not None:
        try:
            session.use_model(skill.model)
        except (UnknownModel, AuthenticationError, ConfigurationError) as error:
            warning = f"skill {skill.name} names another model, which is not used: {error}"
            session.build_run_context().warn_once(warning)
    choice = next((effort for effort in get_args(EffortChoice) if effort == skill.effort), None)
    if choice is not None:
        session.use_effort(choice)
    return None if is_first else before


def end_skills(session: SkillSession, before: tuple[str, EffortChoice | None] | None) -> None:
    """Undo what skills have changed for a run; `before` is what `begin_skill` returned."""
    policy = session.setup.policy
    if isinstance(policy, HasRunRules):
        policy.run_rules = NO_RULES
    if before is None:
        return
    model, effort = before
    if session.setup.model.name != model:
        session.use_model(model)
    if session.setup.config.effort != effort:
        session.use_effort(effort)
