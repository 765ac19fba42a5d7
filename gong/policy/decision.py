"""Asks a policy whether a call may run: an error in the policy refuses it, nothing is raised.

Every decision is recorded, that of a host's own policy as one by `policy`. `allow_all`, which is
used where a host gives none, decides nothing.
"""

from __future__ import annotations

import asyncio
from traceback import format_exception, format_exception_only
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .approval import ApprovalRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..tools.tool import PreparedCall


class Verdict(NamedTuple):
    """Whether a call may run; `text` is the refusal for the model."""

    allowed: bool
    text: str = ""


class RecordedVerdict(Verdict):
    """A verdict with what the tape keeps about it."""

    approval: ApprovalRecord

    @classmethod
    def build(cls, approval: ApprovalRecord, text: str = "") -> RecordedVerdict:
        """Return the verdict of a decision; `text` is the refusal for the model."""
        verdict = cls(approval.decision == "allow", text)
        verdict.approval = approval
        return verdict


class EditedVerdict(Verdict):
    """A person changed the call: the policy is asked again, about the new one."""

    arguments: Mapping[str, Any]

    @classmethod
    def build(cls, arguments: Mapping[str, Any]) -> EditedVerdict:
        """Return the verdict of an edit."""
        verdict = cls(allowed=False)
        verdict.arguments = arguments
        return verdict


class Policy(Protocol):
    """Decides about a call, and may ask the user."""

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Decide about one call, before its tool runs."""
        ...


async def allow_all(prepared: PreparedCall) -> Verdict:  # noqa: ARG001 (a policy's face)
    """Let every call run."""
    return Verdict(allowed=True)


_NO_REASON = "This call was refused; no reason was given."


class Decision(NamedTuple):
    """The decision of a policy."""

    verdict: Verdict
    failure: str = ""
    """The error of the policy, in one line; empty if it decided."""
    trace: str = ""
    """Python's traceback of that error, to debug the policy."""


async def decide_call(policy: Policy, prepared: PreparedCall) -> Decision:
    """Ask a policy about a call; one that raises, or answers no verdict, refuses it."""
    try:
        verdict = await policy(prepared)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"a policy answers a Verdict, not {type(verdict).__name__}")  # noqa: TRY301 (told like the rest)
        if not isinstance(verdict.allowed, bool):
            raise TypeError(f"a verdict allows with True or False, not {verdict.allowed!r}")  # noqa: TRY301 (as above)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a policy raises, the call must not run
        failure = format_error_line(error)
        text = f"Not run: the policy that decides about calls failed: {failure}"
        record = ApprovalRecord("deny", "failure", None, failure)
        return Decision(RecordedVerdict.build(record, text), failure, format_trace(error))
    if isinstance(verdict, RecordedVerdict | EditedVerdict):
        return Decision(verdict)
    if prepared.wish == "ask" and verdict.allowed:
        why = f": {prepared.wish_reason}" if prepared.wish_reason else ""
        text = f"Not run: a hook wants this call to be approved, and nobody can be asked{why}"
        record = ApprovalRecord("deny", "headless", None, prepared.wish_reason or None)
        return Decision(RecordedVerdict.build(record, text))
    if verdict.allowed:
        if policy is not allow_all:
            verdict = RecordedVerdict.build(ApprovalRecord("allow", "policy"))
        return Decision(verdict)
    record = ApprovalRecord("deny", "policy", None, verdict.text or None)
    return Decision(RecordedVerdict.build(record, verdict.text or _NO_REASON))


def format_error_line(error: BaseException) -> str:
    """Return kind and message of an error in one line."""
    return " ".join("".join(format_exception_only(error)).split())


def format_trace(error: BaseException) -> str:
    """Return the trace of an error, as Python would print it."""
    return "".join(format_exception(error))
