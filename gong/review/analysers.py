"""Analysers of others, each asked where it is installed: its output → findings.

analyser    files          asked for
----------  -------------  --------------------------------------------------------------
ruff        Python         rules F, B, S, E9, SIM115 and C901
bandit      Python         all its rules but those that ruff is not asked for
semgrep     Python JS Go   `data/semgrep.yaml`: values that flow from requests into commands
eslint      JavaScript     `data/eslint.config.mjs`: its core rules

They are given copies of the files, as they are reviewed, in a folder of their own: what is staged
or in a commit is seen as it is there, and no settings, plugin or program of the project is run.
What one finds is as its own documentation says; gong names it by its rule, or by the category that
it has for the same fault in other languages (`_CATEGORIES`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..env.variables import VariableRules
from .findings import FailedPart, ReviewFinding, mask_finding
from .memory import build_key
from .secrets import is_sample_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..env.sandbox.sandbox import Sandbox
    from .diff import ReviewedFile
    from .findings import Severity
    from .memory import ReviewMemory

    OpenSandbox = Callable[[str], Sandbox | None]
    """Opens a sandbox for programs in a folder, which whoever called it closes."""

_SECONDS = 120
_READING = 3
"""Raised where what is found is named or weighed in another way: it is asked for again."""
_DATA = Path(__file__).with_name("data")
_SEMGREP_RULES, _ESLINT_RULES = _DATA / "semgrep.yaml", _DATA / "eslint.config.mjs"
_PYTHON = frozenset({".py", ".pyi", ".pyw"})
_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs"})
_TYPED = frozenset({".ts", ".tsx", ".mts", ".cts"})
_SHELL = frozenset({".sh", ".bash", ".ksh", ".dash"})
_BANDIT: dict[str, Severity] = {"HIGH": "major", "MEDIUM": "major", "LOW": "minor"}
_SEMGREP: dict[str, Severity] = {"ERROR": "critical", "WARNING": "major", "INFO": "minor"}
_SHELLCHECK: dict[str, Severity] = {"error": "major", "warning": "minor"}
_MAX_SYNTAX_CODE = 1999
"""Rules of shellcheck up to this one are about what the shell cannot read."""
_CATEGORIES: dict[str, tuple[str, Severity]] = {
    **dict.fromkeys(("105", "106", "107"), ("secret", "minor")),
    **dict.fromkeys(("110", "112"), ("swallowed-error", "minor")),
    **dict.fromkeys(("102", "301", "302", "306", "307", "501", "506"), ("unsafe-call", "major")),
    **dict.fromkeys(("602", "604", "605"), ("command-injection", "major")),
    "608": ("sql-injection", "major"),
    "B006": ("mutable-default", "minor"),
    "C901": ("complexity", "minor"),
    "SIM115": ("unclosed-resource", "minor"),
}
"""Rules of ruff, by number those that it has from bandit → category and severity."""
_HARMLESS = "seems safe"
"""What ruff and bandit say of a shell that gets a text which is written there."""
_QUERY = re.compile(r"\b(?:execute|executemany|executescript|raw|read_sql|text)\(")
_NAME_IN_QUERY = re.compile(
    r"\b(?:select|by|from|into|update|table|join|index|view|exists)\s+[\"'`\[]?(?:\{[^}]*\}|%s|%\(\w+\)s)",
    re.IGNORECASE,
)
"""The name of a table or a column, which no placeholder can stand for."""
_COMPOSED = re.compile(
    r"\b[rR]?[fF][rR]?(?:\"|').*\{[^}]+\}|[\"']\s*[+%]|\+\s*[\"']|\.format\(", re.DOTALL
)
_SYNTAX = {"ruff-syntax", "ruff-invalid-syntax", "eslint-syntax"}
"""Categories of a file that cannot be read."""
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
    files: Sequence[ReviewedFile],
    environ: Mapping[str, str],
    memory: ReviewMemory,
    open_sandbox: OpenSandbox | None = None,
) -> Analysed:
    """Return what the installed analysers find in files, also in unchanged lines.

    One that has seen the content of a file is not asked about it again. With `open_sandbox` each
    runs in a sandbox.
    """
    done = Analysed([], [], [], [])
    for analyser in _ANALYSERS:
        named = [file for file in files if PurePath(file.path).suffix.lower() in analyser.endings]
        if not named:
            continue
        program = _find_program(analyser.name, environ)
        if program is None:
            done.missing.append(analyser.name)
            continue
        # The stamp changes when an analyser or our rules for it do
        real = Path(os.path.realpath(program))
        facts = real.stat()
        text = "" if analyser.rules is None else analyser.rules.read_text("utf-8")
        words = " ".join(analyser.words)
        stamp = f"{_READING} {real} {facts.st_mtime_ns} {facts.st_size} {words} {text}"
        keys = {file.path: build_key(analyser.name, stamp, file.path, file.text) for file in named}
        known = {path: memory.get(key) for path, key in keys.items()}
        new = [file for file in named if known[file.path] is None]
        if new:
            try:
                by_path = _ask_analyser(analyser, program, new, environ, open_sandbox)
            except (OSError, ValueError, LookupError, subprocess.TimeoutExpired) as error:
                done.failed.append(FailedPart(analyser.name, f"it cannot be read: {error}"))
                continue
            memory.keep({keys[path]: tuple(those) for path, those in by_path.items()})
            known.update({path: tuple(those) for path, those in by_path.items()})
        done.ran.append(analyser.name)
        done.found.extend(finding for those in known.values() for finding in those or ())
    return done


def _find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Return an analyser on the search path, or beside this Python: the extra `review`."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=environ.get("PATH")) or shutil.which(name, path=beside)


def _ask_analyser(
    analyser: _Analyser,
    program: str,
    files: Sequence[ReviewedFile],
    environ: Mapping[str, str],
    open_sandbox: OpenSandbox | None,
) -> dict[str, list[ReviewFinding]]:
    """Return what an analyser finds, by file.

    Raises OSError, TimeoutExpired, ValueError where it prints something else than JSON, and
    LookupError where the JSON is not what its documentation says.
    """
    with tempfile.TemporaryDirectory(prefix="gong-review-") as folder:
        copies = []
        for number, file in enumerate(files):
            copy = Path(folder, str(number), PurePath(file.path).name)
            copy.parent.mkdir()
            copy.write_text(f"{file.text}\n", "utf-8", errors="surrogateescape")
            copies.append(f"./{number}/{copy.name}")
        words = [program, *analyser.words, "--", *copies]
        sandbox = None if open_sandbox is None else open_sandbox(folder)
        try:
            output = _run_analyser(words, folder, environ, sandbox)
        finally:
            if sandbox is not None:
                sandbox.close()
    by_path: dict[str, list[ReviewFinding]] = {file.path: [] for file in files}
    try:
        listed = analyser.read(output)
    except (TypeError, AttributeError) as error:
        raise LookupError(f"a finding of another shape: {error}") from error
    unread = set[str]()
    for finding in listed:
        file = files[int(PurePath(finding.file).parts[-2])]
        if finding.category in _SYNTAX:
            # The first fault is the cause of those behind it
            if file.path in unread:
                continue
            unread.add(file.path)
        # What is missing at the end of a file is found behind its last line
        first, last = finding.lines
        if finding.category in _SYNTAX:
            first, last = (max(1, min(line, len(file.lines))) for line in finding.lines)
        finding = msgspec.structs.replace(  # noqa: PLW2901
            finding, file=file.path, lines=(first, last), source=analyser.name
        )
        severity = _weigh_finding(finding, file)
        by_path[file.path].append(mask_finding(msgspec.structs.replace(finding, severity=severity)))
    return by_path


def _weigh_finding(finding: ReviewFinding, file: ReviewedFile) -> Severity:
    """Return how bad a finding is: composed commands and queries are critical outside tests."""
    first, last = finding.lines
    text = "\n".join(file.lines[first - 1 : last])
    if finding.category == "sql-injection":
        called = _QUERY.search(file.get_line(first - 1)) or _QUERY.search(text)
        is_bad = called and _COMPOSED.search(_NAME_IN_QUERY.sub("", text))
    elif finding.category == "command-injection":
        is_bad = _COMPOSED.search(text)
    elif finding.category in _SYNTAX and is_sample_path(file.path):
        return "minor"  # what a parser is tested with, or a page shows
    else:
        return finding.severity
    return "critical" if is_bad and not is_sample_path(file.path) else finding.severity


def _name_rule(source: str, code: str, text: str, severity: Severity) -> tuple[str, Severity]:
    """Return the category and the severity of a rule of ruff or bandit."""
    number = re.fullmatch(r"S(\d{3})" if source == "ruff" else r"B(\d{3})", code)
    known = _CATEGORIES.get(number[1] if number else code)
    if _HARMLESS in text:
        return f"{source}-{code}", "minor"
    return known or (f"{source}-{code}", severity)


def _run_analyser(
    command: list[str], folder: str, environ: Mapping[str, str], sandbox: Sandbox | None
) -> Any:
    """Return the JSON that an analyser prints."""
    variables = VariableRules().select_variables(environ)
    if sandbox is not None:
        command, variables = sandbox.wrap(command, variables)
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
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


def _read_ruff(output: Any) -> list[ReviewFinding]:
    findings = []
    for row in output if isinstance(output, list) else ():
        code = str(row.get("code") or "syntax")
        severity: Severity = "major" if code.startswith(("S", "E9", "F82")) else "minor"
        if code in {"syntax", "invalid-syntax"}:
            severity = "critical"
        lines = (row["location"]["row"], row["end_location"]["row"])
        fix = (row.get("fix") or {}).get("message")
        name, severity = _name_rule("ruff", code, row["message"], severity)
        findings.append(ReviewFinding(row["filename"], lines, severity, name, row["message"], fix))
    return findings


def _read_bandit(output: Any) -> list[ReviewFinding]:
    findings = []
    for row in output.get("results", ()) if isinstance(output, dict) else ():
        numbers = row.get("line_range") or [row["line_number"]]
        severity = _BANDIT.get(row.get("issue_severity", ""), "minor")
        lines = (row["line_number"], max(numbers))
        name, severity = _name_rule("bandit", row["test_id"], row["issue_text"], severity)
        findings.append(ReviewFinding(row["filename"], lines, severity, name, row["issue_text"]))
    return findings


def _read_semgrep(output: Any) -> list[ReviewFinding]:
    findings = []
    for row in output.get("results", ()) if isinstance(output, dict) else ():
        facts = row["extra"]
        severity = _SEMGREP.get(facts.get("severity", ""), "minor")
        # An id is the path of the rules, the language and the category: a.b.js-sql-injection.
        category = row["check_id"].rpartition(".")[2].partition("-")[2]
        lines = (row["start"]["line"], row["end"]["line"])
        findings.append(ReviewFinding(row["path"], lines, severity, category, facts["message"]))
    return findings


def _read_eslint(output: Any) -> list[ReviewFinding]:
    findings = []
    for file in output if isinstance(output, list) else ():
        for message in file.get("messages", ()):
            rule, line = message.get("ruleId"), message.get("line") or 1
            severity: Severity = "major" if message.get("severity") == _FATAL else "minor"
            if message.get("fatal"):
                severity = "critical"
            lines = (line, message.get("endLine") or line)
            name = f"eslint-{rule or 'syntax'}"
            findings.append(
                ReviewFinding(file["filePath"], lines, severity, name, message["message"])
            )
    return findings


def _read_shellcheck(output: Any) -> list[ReviewFinding]:
    findings = []
    for row in output["comments"]:
        level, code, text = row["level"], row["code"], row["message"]
        severity = _SHELLCHECK.get(level, "info")
        if level == "error" and code <= _MAX_SYNTAX_CODE:
            severity = "critical"
        lines = (row["line"], row["endLine"])
        findings.append(ReviewFinding(row["file"], lines, severity, f"shellcheck-SC{code}", text))
    return findings


_ANALYSERS = (
    _Analyser(
        "ruff",
        _PYTHON,
        ("check", "--isolated", "--no-cache", "--output-format=json",
         "--select=F,B,S,E9,SIM115,C901", "--ignore=S101,S603,S607,S404",
         "--config=lint.mccabe.max-complexity=15"),
        _read_ruff,
    ),
    _Analyser("bandit", _PYTHON, ("--quiet", "--format=json", "--skip=B101,B603,B607,B404"),
              _read_bandit),
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
    _Analyser("shellcheck", _SHELL, ("--norc", "--format=json1", "--exclude=SC1090,SC1091"),
              _read_shellcheck),
)  # fmt: skip
