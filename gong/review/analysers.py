"""Analysers of others, each asked where it is installed: its output → findings.

analyser  files          asked for
--------  -------------  ----------------------------------------------------------------
ruff      Python         rules F, B, S and E9
bandit    Python         all its rules
semgrep   Python JS Go   `data/semgrep.yaml`: values that flow from requests into commands
eslint    JavaScript     `data/eslint.config.mjs`: its core rules

They are given copies of the files, as they are reviewed, in a folder of their own: what is staged
or in a commit is seen as it is there, and no settings, plugin or program of the project is run.
What one finds is as its own documentation says; gong names it by its rule.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from ..env.variables import VariableRules
from .findings import FailedPart, ReviewFinding, mask_finding
from .memory import build_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .diff import ReviewedFile
    from .findings import Severity
    from .memory import ReviewMemory

_SECONDS = 120
_DATA = Path(__file__).with_name("data")
_SEMGREP_RULES, _ESLINT_RULES = _DATA / "semgrep.yaml", _DATA / "eslint.config.mjs"
_PYTHON = frozenset({".py", ".pyi"})
_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs"})
_TYPED = frozenset({".ts", ".tsx", ".mts", ".cts"})
_BANDIT: dict[str, Severity] = {"HIGH": "critical", "MEDIUM": "major", "LOW": "minor"}
_SEMGREP: dict[str, Severity] = {"ERROR": "critical", "WARNING": "major", "INFO": "minor"}
_FATAL = 2
"""The severity that eslint gives to an error."""


class Analysed(NamedTuple):
    """What analysers found."""

    found: list[ReviewFinding]
    ran: list[str]
    """Those that were asked, also if they knew the files already."""
    missing: list[str]
    """Those that could say something, and are not installed."""
    failed: list[FailedPart]
    """Those that were asked, and did not answer."""


class _Analyser(NamedTuple):
    name: str
    endings: frozenset[str]
    words: tuple[str, ...]
    read: Callable[[Any], list[ReviewFinding]]
    """Its JSON → findings; paths are those that it was given."""
    rules: Path | None = None


def find_with_analysers(
    files: Sequence[ReviewedFile], environ: Mapping[str, str], memory: ReviewMemory
) -> Analysed:
    """Return what the installed analysers find in files, also in unchanged lines.

    One that has seen the content of a file is not asked about it again.
    """
    done = Analysed([], [], [], [])
    for analyser in _ANALYSERS:
        named = [one for one in files if PurePath(one.path).suffix.lower() in analyser.endings]
        if not named:
            continue
        program = shutil.which(analyser.name, path=environ.get("PATH"))
        if program is None:
            done.missing.append(analyser.name)
            continue
        # The stamp changes when an analyser or our rules for it do
        real = Path(os.path.realpath(program))
        facts = real.stat()
        text = "" if analyser.rules is None else analyser.rules.read_text("utf-8")
        stamp = f"{real} {facts.st_mtime_ns} {facts.st_size} {text}"
        keys = {one.path: build_key(analyser.name, stamp, one.path, one.text) for one in named}
        known = {path: memory.get(key) for path, key in keys.items()}
        new = [one for one in named if known[one.path] is None]
        if new:
            try:
                found = _ask_analyser(analyser, program, new, environ)
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                done.failed.append(FailedPart(analyser.name, f"it cannot be read: {error}"))
                continue
            memory.keep({keys[path]: tuple(those) for path, those in found.items()})
            known.update({path: tuple(those) for path, those in found.items()})
        done.ran.append(analyser.name)
        done.found.extend(one for those in known.values() for one in those or ())
    return done


def _ask_analyser(
    analyser: _Analyser, program: str, files: Sequence[ReviewedFile], environ: Mapping[str, str]
) -> dict[str, list[ReviewFinding]]:
    """Return what an analyser finds, by file.

    Raises OSError, TimeoutExpired, and ValueError where it prints something else than JSON.
    """
    with tempfile.TemporaryDirectory(prefix="gong-review-") as folder:
        copies = []
        for number, file in enumerate(files):
            copy = Path(folder, str(number), PurePath(file.path).name)
            copy.parent.mkdir()
            copy.write_text(f"{file.text}\n", "utf-8", errors="surrogateescape")
            copies.append(f"./{number}/{copy.name}")
        said = _run_analyser([program, *analyser.words, "--", *copies], folder, environ)
    found: dict[str, list[ReviewFinding]] = {one.path: [] for one in files}
    for one in analyser.read(said):
        path = files[int(PurePath(one.file).parts[-2])].path
        placed = ReviewFinding(
            path, one.lines, one.severity, one.category, one.text, one.fix, analyser.name
        )
        found[path].append(mask_finding(placed))
    return found


def _run_analyser(command: list[str], folder: str, environ: Mapping[str, str]) -> Any:
    """Return the JSON that an analyser prints."""
    done = subprocess.run(  # noqa: S603 (a program that was found, and names of our own)
        command,
        cwd=folder,
        env=VariableRules().select_variables(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        complaint = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ValueError(f"exit code {done.returncode}; {' '.join(complaint) or error}") from error


def _read_ruff(said: Any) -> list[ReviewFinding]:
    found = []
    for one in said if isinstance(said, list) else ():
        code = str(one.get("code") or "syntax")
        severity: Severity = "major" if code.startswith(("S", "E9", "F82")) else "minor"
        if code in {"syntax", "invalid-syntax"}:
            severity = "critical"
        lines = (one["location"]["row"], one["end_location"]["row"])
        fix = (one.get("fix") or {}).get("message")
        name = f"ruff-{code}"
        found.append(ReviewFinding(one["filename"], lines, severity, name, one["message"], fix))
    return found


def _read_bandit(said: Any) -> list[ReviewFinding]:
    found = []
    for one in said.get("results", ()) if isinstance(said, dict) else ():
        numbers = one.get("line_range") or [one["line_number"]]
        severity = _BANDIT.get(one.get("issue_severity", ""), "minor")
        lines = (one["line_number"], max(numbers))
        name = f"bandit-{one['test_id']}"
        found.append(ReviewFinding(one["filename"], lines, severity, name, one["issue_text"]))
    return found


def _read_semgrep(said: Any) -> list[ReviewFinding]:
    found = []
    for one in said.get("results", ()) if isinstance(said, dict) else ():
        facts = one["extra"]
        severity = _SEMGREP.get(facts.get("severity", ""), "minor")
        # An id is the path of the rules, the language and the category: a.b.js-sql-injection.
        category = one["check_id"].rpartition(".")[2].partition("-")[2]
        lines = (one["start"]["line"], one["end"]["line"])
        found.append(ReviewFinding(one["path"], lines, severity, category, facts["message"]))
    return found


def _read_eslint(said: Any) -> list[ReviewFinding]:
    found = []
    for file in said if isinstance(said, list) else ():
        for one in file.get("messages", ()):
            rule, line = one.get("ruleId"), one.get("line") or 1
            severity: Severity = "major" if one.get("severity") == _FATAL else "minor"
            if one.get("fatal"):
                severity = "critical"
            lines = (line, one.get("endLine") or line)
            name = f"eslint-{rule or 'syntax'}"
            found.append(ReviewFinding(file["filePath"], lines, severity, name, one["message"]))
    return found


_ANALYSERS = (
    _Analyser(
        "ruff",
        _PYTHON,
        ("check", "--isolated", "--no-cache", "--output-format=json", "--select=F,B,S,E9",
         "--ignore=S101,S603,S607,S404"),
        _read_ruff,
    ),
    _Analyser("bandit", _PYTHON, ("--quiet", "--format=json"), _read_bandit),
    _Analyser(
        "semgrep",
        _PYTHON | _SCRIPT | _TYPED | {".go"},
        ("scan", f"--config={_SEMGREP_RULES}", "--metrics=off", "--disable-version-check",
         "--json", "--quiet", "--no-git-ignore"),
        _read_semgrep,
        _SEMGREP_RULES,
    ),
    _Analyser(
        "eslint",
        _SCRIPT,
        ("--no-config-lookup", f"--config={_ESLINT_RULES}", "--format=json"),
        _read_eslint,
        _ESLINT_RULES,
    ),
)  # fmt: skip
