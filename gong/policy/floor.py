"""The danger floor as a policy: no rule, mode or answer overrides its refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .danger import check_command

if TYPE_CHECKING:
    from ..tools.registry import PreparedCall
    from . import Policy, Verdict


@dataclass(frozen=True, slots=True)
class DangerPolicy:
    """Asks `above` about every call but those of a dangerous command, which it refuses."""

    above: Policy
    """Decides about all other calls: rules, modes, people."""
    cwd: str
    """Where commands run; absolute."""
    home: str

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Refuse a dangerous command; leave everything else to `above`."""
        command = getattr(prepared.arguments, "command", None)
        if isinstance(command, str):
            verdict = check_command(command, self.cwd, self.home)
            if not verdict.allowed:
                return verdict
        return await self.above(prepared)
