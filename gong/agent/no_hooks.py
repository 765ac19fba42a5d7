"""The hooks of a session that has none: what `SessionHooks` does, without loading anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tape.model.entries import Approval, ToolCall

    from ..env.sandbox.sandbox import Sandbox
    from ..llm.types import Request
    from ..policy.approval import ApprovalRequest
    from ..tools.tool import PreparedCall, ToolOutcome
    from . import events
    from .recorder import Recorder


class NoHooks:
    """Changes nothing, refuses nothing and adds nothing."""

    has_watchers = False
    starts_session = False

    def enter_sandbox(self, sandbox: Sandbox) -> None:
        """Do nothing: there is no hook."""

    def begin(self, emit: Callable[[events.Event], None], find_mode: Callable[[], str]) -> None:
        """Do nothing: no hook can fail."""

    async def take_input(self, prompt: str, recorder: Recorder | None) -> str | None:
        """Return the prompt."""
        del recorder
        return prompt

    async def begin_run(
        self, recorder: Recorder, prompt: str, build_system: Callable[[], str]
    ) -> str:
        """Return the prompt."""
        del recorder, build_system
        return prompt

    def record_contexts(self, recorder: Recorder) -> None:
        """Record nothing."""

    async def change_request(self, recorder: Recorder, request: Request) -> Request:
        """Return the request."""
        del recorder
        return request

    async def check_call(
        self,
        recorder: Recorder,
        prepare: Callable[[ToolCall], PreparedCall | ToolOutcome],
        prepared: PreparedCall,
    ) -> PreparedCall | ToolOutcome:
        """Return the call."""
        del recorder, prepare
        return prepared

    async def decide_permission(self, request: ApprovalRequest) -> Approval | None:
        """Leave the decision to the person."""
        del request
        return None

    async def change_result(
        self, prepared: PreparedCall, result: ToolOutcome, duration_ms: int
    ) -> ToolOutcome:
        """Return the result."""
        del prepared, duration_ms
        return result

    def settle_turn(self, recorder: Recorder) -> bool:
        """Let the run continue."""
        del recorder
        return True

    async def keep_working(self, recorder: Recorder) -> bool:
        """Let the run end."""
        del recorder
        return False

    async def check_operation(self, operation: str, meta: dict[str, Any]) -> str | None:
        """Allow a fork, switch or compact."""
        del operation, meta
        return None

    def check_operation_now(self, operation: str, meta: dict[str, Any]) -> str | None:
        """As `check_operation`."""
        del operation, meta
        return None

    async def end_compaction(self, recorder: Recorder, trigger: str, summary: str) -> None:
        """Tell nobody of a compaction."""

    def watch_event(self, event: events.Event) -> None:
        """Show an event to nobody."""

    async def end_session(self, reason: str) -> None:
        """Tell nobody of the end."""

    def share(self, cwd: str, agent: str, kind: str) -> NoHooks:
        """Return the hooks of a sub-agent: none either."""
        del cwd, agent, kind
        return self


NO_HOOKS = NoHooks()
