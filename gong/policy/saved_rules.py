"""Rules in the user's config.toml: added and removed one by one; comments and order stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..config_file import read_document, write_document
from .rules import parse_rule

if TYPE_CHECKING:
    from pathlib import Path

RuleKind = Literal["allow", "deny", "ask"]
RULE_KINDS: tuple[RuleKind, ...] = ("allow", "deny", "ask")


def save_rule(file: Path, rule: str, kind: RuleKind = "allow") -> None:
    """Add a rule to a config.toml, once. Raises ConfigurationError for a wrong rule or file."""
    text = parse_rule(rule).text
    document = read_document(file)
    table = document.setdefault("permissions", {})
    rules = table.setdefault(kind, [])
    if text not in rules:
        rules.append(text)
        write_document(file, document)


def remove_rule(file: Path, rule: str) -> tuple[RuleKind, ...]:
    """Remove a rule from a config.toml; return what it was for, nothing where it was not there.

    Raises ConfigurationError for a file that is not TOML.
    """
    document = read_document(file)
    table = document.get("permissions", {})
    found = tuple(kind for kind in RULE_KINDS if rule in table.get(kind, ()))
    for kind in found:
        table[kind].remove(rule)
    if found:
        write_document(file, document)
    return found
