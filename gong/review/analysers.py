"""Analysers of others, each asked where it is installed: its output → findings.

analyser  files    command
--------  -------  --------------------------------------------------------------
ruff      *.py     ruff check --output-format json, rules F, B, S and E9
bandit    *.py     bandit -f json

What one finds is as its own documentation says; gong names it by its rule.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .findings import ReviewFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .diff import ReviewedFile
    from .findings import Severity

_SECONDS = 120
_BANDIT: dict[str, Severity] = {"HIGH": "critical", "MEDIUM": "major", "LOW": "minor"}


class Analysed(NamedTuple):
    """What analysers found."""

    found: list[ReviewFinding]
    ran: list[str]
    missing: list[str]
    """Those that could say something, and are not installed."""


def find_with_analysers(
    root: str, files: Sequence[ReviewedFile], environ: Mapping[str, str]
) -> Analysed:
    """Return what the installed analysers find in changed files, also in unchanged lines."""
    done = Analysed([], [], [])
    python = [one.path for one in files if one.path.endswith((".py", ".pyi"))]
    for name, command, read in _ANALYSERS:
        if not python:
            continue
        program = shutil.which(name, path=environ.get("PATH"))
        if program is None:
            done.missing.append(name)
            continue
        said = _run_analyser([program, *command, *(f"./{one}" for one in python)], root, environ)
        if said is not None:
            done.ran.append(name)
            done.found.extend(read(said, root))
    return done


def _run_analyser(command: list[str], root: str, environ: Mapping[str, str]) -> Any:
    """Return the JSON that an analyser prints; None where it prints none."""
    try:
        done = subprocess.run(  # noqa: S603 (a program that was found, and names of files)
            command, cwd=root, env=dict(environ), capture_output=True, timeout=_SECONDS, check=False
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _read_ruff(said: Any, root: str) -> list[ReviewFinding]:
    found = []
    for one in said if isinstance(said, list) else ():
        code = str(one.get("code") or "syntax")
        severity: Severity = "major" if code.startswith(("S", "E9", "F82")) else "minor"
        if code == "syntax":
            severity = "critical"
        lines = (one["location"]["row"], one["end_location"]["row"])
        fix = (one.get("fix") or {}).get("message")
        path = _shorten_path(one["filename"], root)
        found.append(
            ReviewFinding(path, lines, severity, f"ruff-{code}", one["message"], fix, "ruff")
        )
    return found


def _read_bandit(said: Any, root: str) -> list[ReviewFinding]:
    found = []
    for one in said.get("results", ()) if isinstance(said, dict) else ():
        numbers = one.get("line_range") or [one["line_number"]]
        severity = _BANDIT.get(one.get("issue_severity", ""), "minor")
        path = _shorten_path(one["filename"], root)
        lines = (one["line_number"], max(numbers))
        name = f"bandit-{one['test_id']}"
        found.append(ReviewFinding(path, lines, severity, name, one["issue_text"], None, "bandit"))
    return found


def _shorten_path(path: str, root: str) -> str:
    place = Path(root, path)
    return str(place.relative_to(root)) if place.is_relative_to(root) else path.removeprefix("./")


_ANALYSERS: tuple[tuple[str, list[str], Callable[[Any, str], list[ReviewFinding]]], ...] = (
    ("ruff", ["check", "--isolated", "--no-cache", "--output-format=json", "--select=F,B,S,E9",
              "--ignore=S101,S603,S607,S404", "--"], _read_ruff),
    ("bandit", ["--quiet", "--format=json", "--"], _read_bandit),
)  # fmt: skip
