"""Asks a policy whether a call may run: an error in the policy refuses it, nothing is raised.

Every decision is recorded, that of a host's own policy as one by `policy`. `allow_all`, which is
used where a host gives none, decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from traceback import format_exception, format_exception_only
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tape.formats.wire import encode_json
from tape.model.entries import Approval
from tape.text import clean_words

from ..tools.tool import ToolOutcome

if TYPE_CHECKING:
    from ..tools.tool import PreparedCall


class Verdict(NamedTuple):
    """Whether a call may run. A policy of a host gives the first two fields."""

    allowed: bool
    text: str = ""
    """The refusal for the model."""
    approval: Approval | None = None
    """What the tape keeps about it; for a verdict without it, that the policy decided."""
    arguments: Mapping[str, Any] | None = None
    """What a person changed the arguments to: the policy is asked again, about the new call."""
    failure: ToolOutcome | None = None
    """The result of a call that cannot do its work, so that nobody was asked about it."""
    trace: str = ""
    """Python's traceback, where the policy failed."""


class Policy(Protocol):
    """Decides about a call, and may ask the user."""

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Decide about one call, before its tool runs."""
        ...


async def allow_all(prepared: PreparedCall) -> Verdict:  # noqa: ARG001 (a policy's face)
    """Let every call run."""
    return Verdict(allowed=True)


_NO_REASON = "This call was refused; no reason was given."


async def decide_call(policy: Policy, prepared: PreparedCall) -> Verdict:
    """Ask a policy about a call; one that raises, or answers no verdict, refuses it."""
    call_id = prepared.call.id
    try:
        verdict = await policy(prepared)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"a policy answers a Verdict, not {type(verdict).__name__}")  # noqa: TRY301 (told like the rest)
        if not isinstance(verdict.allowed, bool):
            raise TypeError(f"a verdict allows with True or False, not {verdict.allowed!r}")  # noqa: TRY301 (as above)
        verdict = _check_fields(verdict)
        if verdict.arguments is not None:
            encode_json(dict(verdict.arguments))  # raises where JSON cannot hold them
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a policy raises, the call must not run
        reason = format_error_line(error)
        text = f"Not run: the policy that decides about calls failed: {reason}"
        approval = Approval(call_id, "deny", "failure", reason=reason)
        return Verdict(False, text, approval, trace=format_trace(error))
    if verdict.approval is not None or verdict.arguments is not None:
        return verdict
    if verdict.failure is not None and not verdict.allowed:
        return verdict
    if prepared.wish == "ask" and verdict.allowed:
        why = f": {prepared.wish_reason}" if prepared.wish_reason else ""
        text = f"Not run: a hook wants this call to be approved, and nobody can be asked{why}"
        approval = Approval(call_id, "deny", "headless", reason=prepared.wish_reason or None)
        return Verdict(False, text, approval)
    if verdict.allowed:
        approval = Approval(call_id, "allow", "policy")
        return verdict if policy is allow_all else verdict._replace(approval=approval)
    approval = Approval(call_id, "deny", "policy", reason=verdict.text or None)
    return Verdict(False, verdict.text or _NO_REASON, approval)


_FIELDS: Mapping[str, Any] = {
    "text": str,
    "approval": Approval | None,
    "arguments": Mapping | None,
    "failure": ToolOutcome | None,
    "trace": str,
}


def _check_fields(verdict: Verdict) -> Verdict:
    """Return a verdict of a host with clean words; raises TypeError for a field of another type."""
    for name, kind in _FIELDS.items():
        value = getattr(verdict, name)
        if not isinstance(value, kind):
            raise TypeError(f"the field {name} of a verdict cannot be {type(value).__name__}")
    return verdict._replace(text=clean_words(verdict.text))


def format_error_line(error: BaseException) -> str:
    """Return kind and message of an error in one line."""
    return " ".join("".join(format_exception_only(error)).split())


def format_trace(error: BaseException) -> str:
    """Return the trace of an error, as Python would print it."""
    return "".join(format_exception(error))
