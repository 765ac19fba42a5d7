"""Rules in the user's config.toml: added and removed one by one; comments and order stay.

[permissions] has those that hold everywhere, [permissions.projects."FOLDER"] those of one project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..config_file import read_document, write_document
from ..project import shorten_rule
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
    """Add a rule that a person allowed in a session; of a project with paths from its root.

    Raises as `save_rule`.
    """
    if scope == "project":
        save_rule(file, shorten_rule(rule, project), project=project)
    else:
        save_rule(file, rule)


def move_project_rules(file: Path, was: str, here: str) -> bool:
    """Let the rules of a project that moved hold where it is now; return whether there are any.

    Raises ConfigurationError for a file that is not TOML.
    """
    document = read_document(file)
    projects: dict[str, Any] = document.get("permissions", {}).get("projects", {})
    if was not in projects or here in projects:
        return False
    table = projects.pop(was)
    for kind in RULE_KINDS:
        if kind in table:
            table[kind] = [shorten_rule(rule, was) for rule in table[kind]]
    projects[here] = table
    write_document(file, document)
    return True


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
            for text in dict.fromkeys((rule, shorten_rule(rule, project) if where else rule)):
                if text in table.get(kind, ()):
                    table[kind].remove(text)
                    removed.append(RemovedRule(kind, where))
    if removed:
        write_document(file, document)
    return tuple(removed)
