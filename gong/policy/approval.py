"""A question about a call for a person, its answer, and what a session changes of a policy.

Values and protocols only: front ends and sessions need them, and none of the rules behind them.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
    runtime_checkable,
)

from tape.model.entries import NO_JSON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

    from tape.model.entries import Approval

    from ..env.sandbox.sandbox import Sandbox
    from ..tools.tool import PreparedCall
    from .modes import PermissionMode
    from .ruling import Ruling


class ApprovalRequest(NamedTuple):
    """A question for a person."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    ruling: Ruling
    details: Raw = NO_JSON
    """What the call would change, as the details of its result; empty where nobody looked."""
    agent: str = ""
    """The id of the sub-agent that calls; empty for the session itself."""


Answer = Literal["once", "session", "always", "everywhere", "no", "edit"]
"""`always` is for this project. `edit` asks the policy again, about other arguments."""
ANSWERS: tuple[Answer, ...] = get_args(Answer)
RuleScope = Literal["project", "everywhere"]
"""Where a saved rule holds."""
LASTING_ANSWERS: Mapping[str, RuleScope | None] = {
    "session": None,
    "always": "project",
    "everywhere": "everywhere",
}
"""Answers that keep the offered rules → where these are saved; None for the session only."""


class ApprovalAnswer(NamedTuple):
    """A person's answer."""

    decision: Answer
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    """The arguments that an edit gives the call."""


class Asker(Protocol):
    """Asks a person."""

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer; a cancellation is the end of the call."""
        ...


class Consultant(Protocol):
    """Decides about a call in place of the person, or leaves it to the person."""

    async def __call__(self, request: ApprovalRequest) -> Approval | None:
        """Return the decision; None leaves it open."""
        ...


@runtime_checkable
class ConsultingPolicy(Protocol):
    """A policy that lets somebody decide before it asks a person, or nobody."""

    consult: Consultant | None


@runtime_checkable
class ModalPolicy(Protocol):
    """A policy with modes, which may ask a person: all can be changed at any time."""

    mode: PermissionMode
    ask: Asker | None
    """Asks a person; None in a run without one."""
    timeout: float | None
    """Seconds to wait for an answer; None waits for ever."""


@runtime_checkable
class SandboxedPolicy(Protocol):
    """A policy that asks less, because a sandbox covers what calls do; and may ask to leave it."""

    sandbox: Sandbox | None

    async def ask_outside(self, prepared: PreparedCall, refused: Sequence[str]) -> Approval | None:
        """Ask whether a call runs again outside of the sandbox; None where nobody is asked."""
        ...


def find_mode(policy: object) -> str:
    """Return the permission mode of a session's policy; default where it has none."""
    return policy.mode.value if isinstance(policy, ModalPolicy) else "default"
