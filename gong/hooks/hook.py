"""What a hook is asked and what it answers, the same for Python objects and for commands.

The points of a run, in order, with what a hook gets and what it may change:

    point           kind    a hook gets                  it may
    --------------  ------  ---------------------------  ----------------------------------------
    input           pipe    text, images                 change them, or take the input (block)
    setup           pipe    trigger                      add context
    session_start   pipe    source                       add context
    before_agent    pipe    prompt, system, messages     change them, add messages
    context         pipe    messages                     change what this one call sends
    tool_call       gate    tool, args                   change args; allow, ask or block
    permission      gate    tool, args                   answer in place of the user
    tool_result     pipe    tool, args, result           change the result
    stop            gate    text, active                 block: the reason goes to the model
    session_op      gate    op, meta                     block: fork, switch or compact is left out
    after_compact   notify  trigger, compact_summary     –
    notification    notify  message, notification_type   –
    session_end     notify  reason                       –
    event           notify  the session event as JSON    –

Gates stop at the first block. In a pipe each hook gets what the one before it left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

Point = Literal[
    "input",
    "session_start",
    "before_agent",
    "context",
    "tool_call",
    "permission",
    "tool_result",
    "stop",
    "session_op",
    "after_compact",
    "notification",
    "setup",
    "session_end",
    "event",
]
OnFailure = Literal["continue", "block"]
"""What follows when a hook fails: nothing, or what it was asked about is refused."""

GATES: frozenset[Point] = frozenset({"input", "tool_call", "permission", "stop", "session_op"})
"""Points where a block means something."""


@dataclass(frozen=True, slots=True)
class HookSession:
    """The session that a hook is called in; texts are empty until they are known."""

    cwd: str
    session: str = ""
    """Tape id; a new session has it after its first prompt passed the input hooks."""
    transcript: str = ""
    """Path of the file that the branch is written to."""
    permission_mode: str = "default"
    agent_id: str = ""
    """Of a sub-agent; empty for the session itself."""
    agent_type: str = ""


@dataclass(frozen=True, slots=True)
class HookCall:
    """One question to one hook. Its value is a copy: whatever is changed in it stays there."""

    point: Point
    value: dict[str, Any]
    facts: HookSession


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook answered; by default nothing."""

    decision: Literal["", "allow", "ask", "block"] = ""
    reason: str = ""
    """Why it blocks or asks; of a blocked tool call the model reads it."""
    changed: Mapping[str, Any] = field(default_factory=dict)
    """New values of fields of the call's value; other fields stay."""
    context: str = ""
    """Text for the model."""
    message: str = ""
    """Text for the user."""
    remarks: tuple[str, ...] = ()
    """What is wrong with the hook although it answered, for the user."""
    stop: str | None = None
    """Why the run ends after this step; None if it continues."""


NO_ANSWER = HookAnswer()


class HookFailed(Exception):
    """A hook could not answer; the text says why. It never leaves the dispatcher."""


class UnreadableDecision(HookFailed):
    """A decision cannot be read: the tool call that it is about must not run unasked."""


class Hook(Protocol):
    """One hook, whatever it is made of."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def timeout(self) -> float:
        """Seconds after which it is skipped."""
        ...

    @property
    def on_failure(self) -> OnFailure:
        """What follows when it fails or is too slow."""
        ...

    def wants(self, point: Point) -> bool:
        """Return whether it is ever asked at a point."""
        ...

    def handles(self, call: HookCall) -> bool:
        """Return whether it wants to answer this call, which it only looks at."""
        ...

    async def answer(self, call: HookCall) -> HookAnswer:
        """Answer; whatever it raises is reported and counts as no answer."""
        ...


class Block(NamedTuple):
    """Answer of a Python hook: this must not happen."""

    reason: str


class Ask(NamedTuple):
    """Answer of a Python hook: the user has to approve this call."""

    reason: str = ""


class Allow(NamedTuple):
    """Answer of a Python hook: this call need not be asked about; `args` replaces its arguments."""

    args: Mapping[str, Any] | None = None


HANDLED = Block("")
"""Answer of a Python hook to input: it was dealt with, and the agent does not see it."""
