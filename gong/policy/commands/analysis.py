"""What a command line does, as far as it was analysed: findings, actions, programs and files."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .finding import CommandFinding, DangerLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...shell.expansion import SimpleCommand
    from .invocation import Invocation


@dataclass(slots=True)
class CommandAnalysis:
    """A command line as the judge sees it; lists grow in the order of the source."""

    findings: list[CommandFinding] = field(default_factory=list)
    """Every part that is not safe."""
    actions: list[CommandFinding] = field(default_factory=list)
    """What it does that is neither safe nor dangerous; a wrapper contains what it runs."""
    uses: dict[SimpleCommand, list[Invocation]] = field(default_factory=dict)
    """What each command runs."""
    inputs: list[str] = field(default_factory=list)
    """Files that are redirected into commands, absolute and not normalized."""
    outputs: list[tuple[str, ...]] = field(default_factory=list)
    """Of each file that a command is redirected to, the absolute paths it may have; without those
    devices that keep nothing."""
    removes: bool = False
    """Whether a text that it runs, and that no action shows, removes something."""

    @property
    def only_reads(self) -> bool:
        """Whether the command line is known to change nothing."""
        is_safe = all(finding.level is not DangerLevel.DANGEROUS for finding in self.findings)
        return is_safe and all(action.reads for action in self.actions)

    def add_finding(
        self, level: DangerLevel, reason: str, part: str, action: CommandFinding | None = None
    ) -> None:
        """Add a finding, and what it asks about: `action`, or the part as a whole."""
        finding = CommandFinding(level, part, reason)
        self.findings.append(finding)
        if level is DangerLevel.ASK:
            self.actions.append(action or finding)

    def add_use(self, command: SimpleCommand, use: Invocation) -> None:
        """Add a program that a command runs, once for all readings of the command."""
        uses = self.uses.setdefault(command, [])
        if use not in uses:
            uses.append(use)

    @contextmanager
    def keep_only_dangers(self, *, runs: bool = False) -> Iterator[None]:
        """Drop what is found meanwhile, except dangers: the text may run, or may not.

        With `runs` it runs for certain, so `removes` says whether it removes something.
        """
        before, actions = len(self.findings), len(self.actions)
        yield
        self.removes |= runs and any(action.removes for action in self.actions[actions:])
        self.findings[before:] = [
            finding for finding in self.findings[before:] if finding.level > DangerLevel.ASK
        ]
        del self.actions[actions:]
