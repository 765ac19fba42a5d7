"""May this call run? Hooks, rules and the danger floor answer here; so far everything may."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..tools.registry import Prepared


class Verdict(NamedTuple):
    """Whether a call may run; `text` is what the model is told when it may not."""

    allowed: bool
    text: str = ""


class Policy(Protocol):
    """Anything that decides about a call, asking a person where it has to."""

    async def __call__(self, prepared: Prepared) -> Verdict:
        """Decide about one call, before its tool runs."""
        ...


async def allow_all(prepared: Prepared) -> Verdict:  # noqa: ARG001 (a policy's face)
    """Let every call run."""
    return Verdict(allowed=True)
