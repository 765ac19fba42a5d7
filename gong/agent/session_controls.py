"""What of a session can be changed between two model calls: model, tools, policy, limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as replace_fields

from tape.model.entries import Mode

from ..errors import ConfigurationError
from ..policy.approval import ConsultingPolicy, ModalPolicy, SandboxedPolicy, find_mode
from ..policy.modes import parse_mode
from ..sdk.objects import check_object_schema
from ..setting_values import check_names, check_value
from ..tools.builtin import change_tools
from ..tools.registry import TOOL_PRESETS
from . import events
from .answer_form import ANSWER_TOOL, AnswerForm
from .model import AgentModel
from .queues import SessionQueues
from .run_context import RunState
from .session_config import SessionConfig

if TYPE_CHECKING:
    from tape.model.entries import Payload

    from ..env.protocol import ExecutionEnvironment
    from ..llm.models import EffortChoice
    from ..policy.decision import Policy
    from ..sdk.objects import JsonSchema
    from .dialogue import SessionDialogue
    from .recorder import Recorder
    from .run_context import RunContext
    from .setup import SessionSetup


class SessionControls:
    """A session's parts, and the methods that exchange them; a change holds from the next call."""

    _dialogue: SessionDialogue

    def __init__(self, setup: SessionSetup, recorder: Recorder | None) -> None:
        self.setup = setup
        self.recorder = recorder
        """The open branch; None until the first prompt of a new session."""
        self.run_state = RunState()
        self._queues = SessionQueues()
        self._queues.agent = setup.agent
        self._context: RunContext | None = None
        """What runs on the open branch work with."""

    def use_model(self, model: AgentModel | str) -> None:
        """Use another model from the next call on, with the tools that its family knows.

        A name is provider/model, or an alias. Raises UnknownModel, and AuthenticationError if there
        is no key for it.
        """
        if isinstance(model, str):
            if self.setup.find_model is None:
                raise ConfigurationError("this session knows no models by name: give an AgentModel")
            model = self.setup.find_model(model)
        if not isinstance(model, AgentModel):
            raise ConfigurationError(f"a model is a name or an AgentModel, not {model!r}")
        previous = self.setup.model.name
        tools = model.equip(self.setup.tools, self.setup.tuning)
        self._change_setup(model=model, tools=tools)
        self.run_state.refused = self.run_state.warned = False
        if model.name != previous:
            self._queues.emit(events.ModelSelect(model.name, previous))

    def use_effort(self, effort: EffortChoice | None) -> None:
        """Let models think so hard from the next call on; None is as each model's settings say."""
        self.configure(effort=effort)

    def use_tools(self, names: Iterable[str]) -> None:
        """Offer these tools from the next call on, or those of one preset, such as `readonly`.

        `default` alone are those of the model's family again, where the session began with them.
        ConfigurationError for an unknown name. The tape shows what is offered from here on.
        """
        choice = names if isinstance(names, str) or not isinstance(names, Iterable) else [*names]
        chosen = check_value("tools", choice, tuple[str, ...])
        tools = self.setup.tools
        if chosen == ("default",) and tools.forget_choice():
            tools = self.setup.model.equip(tools, self.setup.tuning)
            self._change_setup(tools=tools)
        elif len(chosen) == 1 and chosen[0] in TOOL_PRESETS:
            tools.set_active(tools.preset(chosen[0]))
        else:
            tools.set_active(chosen)
        self._record(Mode(self.permission, tools.active))

    def use_policy(self, policy: Policy) -> None:
        """Let another policy decide from the next call on which calls may run."""
        if not callable(policy):
            raise ConfigurationError(f"a policy is called with a call, which {policy!r} cannot be")
        self._attach_hooks(policy)
        self._change_setup(policy=policy)

    def use_permission(self, mode: str) -> None:
        """Let another permission mode decide from the next call on; `mode` is its name.

        It is kept on the tape, and holds again when the session is continued (bypass and dont_ask
        do not).

        Raises ConfigurationError for an unknown name, or a policy that has no modes.
        """
        policy = self.setup.policy
        if not isinstance(policy, ModalPolicy):
            raise ConfigurationError("the policy of this session has no modes")
        self._dialogue.change_mode(policy, parse_mode(mode))

    @property
    def permission(self) -> str:
        """The permission mode of now; default where the policy has none."""
        return find_mode(self.setup.policy)

    def restore_permission(self) -> str:
        """Let the mode hold in which the session was left; return what to tell, or nothing.

        Modes that run commands unasked are not restored, and the text says so.
        """
        return self._dialogue.restore_mode()

    def leave_plan_mode(self) -> str | None:
        """Let the permission mode of before hold again, without a plan.

        Returns its name, or None where plan mode is not on.
        """
        return self._dialogue.leave_plan_mode()

    def use_environment(self, env: ExecutionEnvironment) -> ExecutionEnvironment:
        """Let tools act somewhere else from the next call on; return the old environment.

        The caller has initialized the new one, and cleans up the old one.
        """
        old = self.setup.env
        self._change_setup(env=env)
        if isinstance(self.setup.policy, SandboxedPolicy):
            self.setup.policy.sandbox = getattr(env, "sandbox", None)
        return old

    def require_object(self, schema: JsonSchema | None) -> None:
        """Let each run from now on end with an object that fits a JSON Schema: `object_answer`.

        None lets runs end with any answer again. A run without an object is tried again once, then
        it fails with an `error` event, NoObject. Raises ConfigurationError where it is not the
        schema of an object.
        """
        if schema is not None:
            check_object_schema(schema)
        tools, old = self.setup.tools, self.run_state.form
        # Whether a tool is needed depends on the current model and tools, so it is decided again.
        if old is not None and old.by_tool:
            tools.unregister(ANSWER_TOOL)
        self.run_state.form = None
        if schema is None:
            return
        is_held = self.setup.model.can_hold_objects(has_tools=bool(tools.active))
        form = AnswerForm(schema, by_tool=not is_held)
        if form.by_tool:
            tools.register(form.build_tool())
            tools.activate((ANSWER_TOOL,))
        self.run_state.form = form

    @property
    def object_answer(self) -> dict[str, Any] | None:
        """The object that the last run ended with; None if none was required, or none came."""
        form = self.run_state.form
        return None if form is None else form.answer

    def configure(self, **limits: Any) -> None:
        """Change limits and timeouts from the next call on; the names are those of SessionConfig.

        Raises ConfigurationError for a wrong value, and for an unknown name, with those near it.
        """
        check_names(limits, [limit.name for limit in fields(SessionConfig)])
        config = replace(self.setup.config, **limits)
        parts: dict[str, Any] = {"config": config}
        if not limits.keys().isdisjoint({"tool_output_limits", "tool_line_limits"}):
            tuning = replace_fields(
                self.setup.tuning,
                output_limits=config.tool_output_limits,
                line_limits=config.tool_line_limits,
            )
            tools = self.setup.model.equip(change_tools(self.setup.tools, tuning), tuning)
            parts |= {"tuning": tuning, "tools": tools}
        self._change_setup(**parts)

    def _change_setup(self, **parts: Any) -> None:
        self.setup = replace(self.setup, **parts)
        if self._context is not None:
            self._context.setup = self.setup

    def _attach_hooks(self, policy: Policy) -> None:
        """Let hooks at PermissionRequest decide before a policy asks a person."""
        if isinstance(policy, ConsultingPolicy):
            policy.consult = self.setup.hooks.decide_permission

    def _record(self, payload: Payload) -> bool:
        """Record an entry, where a branch is open; return whether one is."""
        if self.recorder is not None:
            self.recorder.append(payload)
        return self.recorder is not None
