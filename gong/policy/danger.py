"""The danger floor: commands whose damage nobody can undo are refused, under every mode and rule.

`classify_command` says how dangerous a command line is; `judge` has the worked example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .commands.finding import CommandFinding, DangerLevel
from .commands.invocation import PathContext
from .commands.judge import choose_worst, judge_command_line
from .decision import Verdict
from .refusals import Locale, format_danger

if TYPE_CHECKING:
    from ..tools.tool import PreparedCall
    from .decision import Policy


def classify_command(
    command: str,
    cwd: str,
    home: str,
    roots: tuple[str, ...] = ("/tmp",),
) -> CommandFinding:
    """Return the most dangerous finding in a command line for bash.

    `cwd` and `home` are absolute paths; below `cwd` and `roots` files may be read unasked.
    """
    places = PathContext(cwd, home, (cwd, *roots), (cwd,))
    return choose_worst(judge_command_line(command, places).findings)


def check_command(command: str, cwd: str, home: str, locale: Locale = "en") -> Verdict:
    """Refuse a dangerous command; no rule or mode overrides a refusal."""
    worst = classify_command(command, cwd, home)
    if worst.level < DangerLevel.DANGEROUS:
        return Verdict(allowed=True)
    return Verdict(allowed=False, text=format_danger([worst.description], locale))


@dataclass(frozen=True, slots=True)
class DangerPolicy:
    """Asks `above` about every call but those of a dangerous command, which it refuses."""

    above: Policy
    """Decides about all other calls: rules, modes, people."""
    cwd: str
    """Where commands run; absolute."""
    home: str
    locale: Locale = "en"

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Refuse a dangerous command; leave everything else to `above`."""
        command = getattr(prepared.arguments, "command", None)
        if isinstance(command, str):
            verdict = check_command(command, self.cwd, self.home, self.locale)
            if not verdict.allowed:
                return verdict
        return await self.above(prepared)
