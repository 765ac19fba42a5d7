"""Rules in the user's config.toml: added and removed one by one; comments and order stay."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigurationError
from .rules import parse_rule

RuleKind = Literal["allow", "deny", "ask"]
RULE_KINDS: tuple[RuleKind, ...] = ("allow", "deny", "ask")


def save_rule(file: Path, rule: str, kind: RuleKind = "allow") -> None:
    """Add a rule to a config.toml, once. Raises ConfigurationError for a wrong rule or file."""
    text = parse_rule(rule).text
    document = _read_document(file)
    table = document.setdefault("permissions", {})
    rules = table.setdefault(kind, [])
    if text not in rules:
        rules.append(text)
        _write_document(file, document)


def remove_rule(file: Path, rule: str) -> tuple[RuleKind, ...]:
    """Remove a rule from a config.toml; return what it was for, nothing where it was not there.

    Raises ConfigurationError for a file that is not TOML.
    """
    document = _read_document(file)
    table = document.get("permissions", {})
    found = tuple(kind for kind in RULE_KINDS if rule in table.get(kind, ()))
    for kind in found:
        table[kind].remove(rule)
    if found:
        _write_document(file, document)
    return found


def _read_document(file: Path) -> Any:
    """Return a TOML file as a document that keeps its comments; empty where there is none."""
    import tomlkit  # noqa: PLC0415 (only to change the file)
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 (as above)

    try:
        return tomlkit.parse(file.read_bytes().decode())
    except FileNotFoundError:
        return tomlkit.document()
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error


def _write_document(file: Path, document: Any) -> None:
    """Write a temporary file beside it, sync it, rename it; a link is followed."""
    import tomlkit  # noqa: PLC0415 (as above)

    place = Path(os.path.realpath(file))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o600
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        with beside.open("w", encoding="utf-8", newline="") as out:
            out.write(tomlkit.dumps(document))
            out.flush()
            os.fsync(out.fileno())
        beside.chmod(mode)
        beside.replace(place)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error
