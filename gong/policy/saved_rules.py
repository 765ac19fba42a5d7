"""Rules in the user's config.toml: added and removed one by one; comments and order stay.

[permissions] has those that hold everywhere, [permissions.projects."FOLDER"] those of one project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..config_file import read_document, write_document
from .rules import parse_rule

if TYPE_CHECKING:
    from pathlib import Path

    from .approval import RuleScope

RuleKind = Literal["allow", "deny", "ask"]
RULE_KINDS: tuple[RuleKind, ...] = ("allow", "deny", "ask")


class RemovedRule(NamedTuple):
    """Where a rule was."""

    kind: RuleKind
    project: str | None
    """The folder of the only project that it held in; None if it held everywhere."""


def save_rule(
    file: Path, rule: str, kind: RuleKind = "allow", *, project: str | None = None
) -> None:
    """Add a rule to a config.toml, once: for everywhere, or for the project of a folder.

    Raises ConfigurationError for a wrong rule or file.
    """
    text = parse_rule(rule).text
    document = read_document(file)
    table = document.setdefault("permissions", {})
    if project is not None:
        table = table.setdefault("projects", {}).setdefault(project, {})
    rules = table.setdefault(kind, [])
    if text not in rules:
        rules.append(text)
        write_document(file, document)


def save_answered_rule(file: Path, project: str, rule: str, scope: RuleScope) -> None:
    """Add a rule that a person allowed in a session. Raises as `save_rule`."""
    save_rule(file, rule, project=project if scope == "project" else None)


def remove_rule(file: Path, rule: str, project: str) -> tuple[RemovedRule, ...]:
    """Remove a rule, of everywhere and of a project; return where it was, nothing if nowhere.

    Raises ConfigurationError for a file that is not TOML.
    """
    document = read_document(file)
    everywhere: dict[str, Any] = document.get("permissions", {})
    places = ((everywhere, None), (everywhere.get("projects", {}).get(project, {}), project))
    removed = []
    for table, where in places:
        for kind in RULE_KINDS:
            if rule in table.get(kind, ()):
                table[kind].remove(rule)
                removed.append(RemovedRule(kind, where))
    if removed:
        write_document(file, document)
    return tuple(removed)
