"""The mode and the rules in force, and rulings by them: the first line that fits decides.

deny rules      deny
plan mode       refuses what changes something
ask rules       ask
allow rules     allow
locked mode     refuses
dont_ask mode   allows
other modes     as the caller says
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .modes import PermissionMode
from .refusals import Locale, format_refusal
from .ruling import Ruling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..env.sandbox.binds import Border
    from .rules import PermissionRule, RuleSet

    FindRule = Callable[[Sequence[PermissionRule]], PermissionRule | None]


@dataclass(frozen=True, slots=True)
class AccessRules:
    """One state of mode and rules."""

    mode: PermissionMode
    rules: RuleSet
    allow: tuple[PermissionRule, ...]
    """Those of `rules`, and more: of the session, or offered."""
    granted: tuple[PermissionRule, ...] = ()
    """Which of them a person allowed for this session."""
    locale: Locale = "en"
    border: Border | None = None
    """What files gong and its commands may change in a sandbox; None where there is none."""
    relaxes: bool = False
    """Whether calls that only ask may run because that border covers what they do."""

    def decide(
        self, find: FindRule, why: str, by_mode: Callable[[], Ruling], *, changes: bool
    ) -> Ruling:
        """Return the first decision of the table about what `why` says; `by_mode` is its last line.

        `find` returns the rule among those of one kind that is about it.
        """
        rule = find(self.rules.deny)
        if rule is not None:
            return self.build_denial(rule)
        if changes and self.mode is PermissionMode.PLAN:
            return self.build_refusal("plan", why)
        rule = find(self.rules.ask)
        if rule is not None:
            return self.build_question(rule)
        rule = find(self.allow)
        return self.build_allowance(rule) if rule is not None else self.decide_unnamed(why, by_mode)

    def decide_unnamed(self, why: str, by_mode: Callable[[], Ruling]) -> Ruling:
        """Decide about what no rule names."""
        if self.mode is PermissionMode.LOCKED:
            return self.build_refusal("locked", why)
        return Ruling("allow") if self.mode is PermissionMode.DONT_ASK else by_mode()

    def build_allowance(self, rule: PermissionRule) -> Ruling:
        """Return what a rule allows."""
        by = "session" if rule in self.granted else "rule"
        return Ruling("allow", f"allowed by {rule.text}", rule.text, by)

    def build_denial(self, rule: PermissionRule) -> Ruling:
        """Return what a rule denies."""
        text = format_refusal("rule", self.locale, rule=rule.text)
        return Ruling("deny", f"the rule {rule.text} denies it", rule.text, "rule", text=text)

    def build_question(self, rule: PermissionRule) -> Ruling:
        """Return what a rule asks about."""
        return Ruling("ask", f"the rule {rule.text} asks", rule.text, "rule")

    def build_refusal(self, kind: str, why: str) -> Ruling:
        """Return what a mode refuses; `kind` is as `format_refusal` has it."""
        return Ruling("deny", why, text=format_refusal(kind, self.locale, why=why))

    def find_open_rule(self, tool: str) -> PermissionRule | None:
        """Return the rule that allows every call of a tool, None if there is none."""
        return next((rule for rule in self.allow if rule.tool == tool and rule.is_open), None)

    def build_border_refusal(self, path: str) -> Ruling:
        """Return what is said of a file that the sandbox does not let gong change."""
        text = format_refusal("sandbox", self.locale, why=path)
        return Ruling("deny", f"the sandbox refused writing {path}", by="sandbox", text=text)

    @property
    def has_person(self) -> bool:
        """Whether a person answers in this mode."""
        return self.mode in {PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS}

    @property
    def reading_rules(self) -> list[PermissionRule]:
        """Rules that ask about files that are read, or deny it: each name may be one of theirs."""
        asking = (*self.rules.deny, *self.rules.ask)
        return [rule for rule in asking if rule.tool == "read" and not rule.is_open]
