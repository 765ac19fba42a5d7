"""Decides whether a call may run: by hooks, rules and the danger floor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..tools.registry import PreparedCall


class Verdict(NamedTuple):
    """Whether a call may run; `text` is the refusal for the model."""

    allowed: bool
    text: str = ""


class Policy(Protocol):
    """Decides about a call, and may ask the user."""

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Decide about one call, before its tool runs."""
        ...


async def allow_all(prepared: PreparedCall) -> Verdict:  # noqa: ARG001 (a policy's face)
    """Let every call run."""
    return Verdict(allowed=True)
