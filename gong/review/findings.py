"""A finding about a change, and lists of them as text, JSON, SARIF 2.1.0 and GitHub annotations."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tape.masking.secrets import mask_text
from tape.text import format_count, show_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Severity = Literal["critical", "major", "minor", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "major", "minor", "info")
"""The worst first."""
_SARIF_LEVELS = {"critical": "error", "major": "error", "minor": "warning", "info": "note"}
_GITHUB_LEVELS = {"critical": "error", "major": "error", "minor": "warning", "info": "notice"}
_SHARED_RULE = re.compile(r"(?:ruff-S|bandit-B)(\d{3})")
"""A rule that ruff has from bandit: its number."""
_MAX_LINES = 20
"""Of a statement in which two analysers mean the same fault."""
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class ReviewFinding(Struct, frozen=True, omit_defaults=True):
    """What is wrong, where, and how bad it is."""

    file: str
    """Relative to the top of the repository."""
    lines: tuple[int, int]
    """The first and the last line, from 1, in the changed file."""
    severity: Severity
    category: str
    """What kind of fault, such as sql-injection."""
    text: str
    fix: str | None = None
    """What to write in place of it, in words or code."""
    source: str = "gong"
    """Who found it: gong, a model's name, ruff, bandit."""

    @property
    def id(self) -> str:
        """The same for the same fault in the same lines, whoever found it and however worded."""
        text = f"{self.file}\0{self.lines[0]}\0{self.lines[1]}\0{self.category}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


IN_EXTRA = ("ruff", "bandit")
"""Analysers that `pip install 'gong[review]'` brings."""


class FailedPart(Struct, frozen=True):
    """A part of a review that was asked and did not answer: a stage, an analyser, the fixing."""

    part: str
    error: str


class ReviewScope(Struct, frozen=True):
    """Who looked at the changes."""

    files: int
    """With new lines."""
    passes: tuple[str, ...] = ()
    """Checks of gong itself."""
    analysers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Analysers that could say something, and are not installed."""
    model: str | None = None
    stages: tuple[str, ...] = ()
    """Those in which the model answered."""
    failed: tuple[FailedPart, ...] = ()


def format_scope(scope: ReviewScope) -> str:
    """Return who looked, in one line for people."""
    if not scope.files:
        return "no new lines"
    parts = [f"passes: {', '.join(scope.passes)}"]
    if scope.analysers:
        parts.append(", ".join(scope.analysers))
    if scope.model is None:
        parts.append("no model: only fixed checks ran")
    else:
        parts.append(f"model {scope.model}: {', '.join(scope.stages) or 'no answer'}")
    if scope.missing:
        parts.append(f"not installed: {', '.join(scope.missing)}")
    if brought := [part for part in scope.missing if part in IN_EXTRA]:
        parts[-1] += f" (pip install 'gong[review]' for {' and '.join(brought)})"
    if scope.failed:
        parts.append(f"failed: {', '.join(failure.part for failure in scope.failed)}")
    return "; ".join(parts)


def merge_findings(findings: Iterable[ReviewFinding]) -> list[ReviewFinding]:
    """Return findings in a fixed order, each fault once: by place, the worst first; no secrets."""
    by_kind: dict[tuple[str, str], _KnownFaults] = {}
    chosen = []
    for finding in sorted(findings, key=lambda finding: _get_rank(finding.severity)):
        kind = _SHARED_RULE.sub(r"\1", finding.category)
        if by_kind.setdefault((finding.file, kind), _KnownFaults()).add(finding):
            chosen.append(mask_finding(finding))
    return sorted(
        chosen,
        key=lambda finding: (
            finding.file,
            finding.lines,
            _get_rank(finding.severity),
            finding.category,
        ),
    )


class _KnownFaults:
    """Faults of one kind in one file, found by their lines: generated code has many."""

    def __init__(self) -> None:
        self._firsts: set[int] = set()
        self._sources: dict[int, set[str]] = {}
        """Line of a short statement → who found a fault in it."""

    def add(self, finding: ReviewFinding) -> bool:
        """Add a fault; return whether it is new: from no line of another, or of its statement."""
        first, last = finding.lines
        if first in self._firsts:
            return False
        lines = range(first, last + 1) if last - first <= _MAX_LINES else range(0)
        if any(self._sources.get(line, set()) - {finding.source} for line in lines):
            return False
        self._firsts.add(first)
        for line in lines:
            self._sources.setdefault(line, set()).add(finding.source)
        return True


def mask_finding(finding: ReviewFinding) -> ReviewFinding:
    """Return a finding whose texts show no secret."""
    fix = None if finding.fix is None else _mask_said(finding.fix)
    return replace(finding, text=_mask_said(finding.text), fix=fix)


@lru_cache(maxsize=1024)
def _mask_said(text: str) -> str:
    """Return a text without secrets; a rule says the same of every fault."""
    return mask_text(text).text


def _get_rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def count_failing(findings: Iterable[ReviewFinding], fail_on: Severity) -> int:
    """Return how many findings are as bad as a severity, or worse."""
    return sum(_get_rank(finding.severity) <= _get_rank(fail_on) for finding in findings)


def format_text(findings: Sequence[ReviewFinding], scope: ReviewScope | None = None) -> list[str]:
    """Return lines for people: FILE:LINE, how bad, what; the fix below; at last who looked."""
    lines = []
    for finding in findings:
        place = f"{finding.file}:{finding.lines[0]}"
        head = f"{place}: {finding.severity}: {finding.category}: {finding.text}"
        lines.append(show_controls(head))
        if finding.fix:
            lines.append(show_controls(f"    fix: {finding.fix}"))
    count = format_count(len(findings), "finding") if findings else "No findings"
    lines.append(count if scope is None else show_controls(f"{count} ({format_scope(scope)})"))
    return lines


def format_github(findings: Sequence[ReviewFinding], scope: ReviewScope) -> list[str]:
    """Return workflow commands of GitHub Actions, which show findings beside the lines."""
    lines = [
        f"::error title=gong review::{_escape_data(f'{failure.part} failed: {failure.error}')}"
        for failure in scope.failed
    ]
    lines.append(f"::notice title=gong review::{_escape_data(format_scope(scope))}")
    for finding in findings:
        first, last = finding.lines
        place = f"file={_escape_property(finding.file)},line={first},endLine={last}"
        title = _escape_property(finding.category)
        lines.append(
            f"::{_GITHUB_LEVELS[finding.severity]} {place},title={title}::"
            f"{_escape_data(finding.text)}"
        )
    return lines


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def build_sarif(
    findings: Sequence[ReviewFinding], version: str, scope: ReviewScope
) -> dict[str, Any]:
    """Return a SARIF log of one run."""
    rules = sorted({finding.category for finding in findings})
    worst = {
        rule: min(
            (finding.severity for finding in findings if finding.category == rule), key=_get_rank
        )
        for rule in rules
    }
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "gong review",
                        "version": version,
                        "rules": [
                            {
                                "id": rule,
                                "shortDescription": {"text": rule.replace("-", " ").capitalize()},
                                "defaultConfiguration": {"level": _SARIF_LEVELS[worst[rule]]},
                            }
                            for rule in rules
                        ],
                    }
                },
                "invocations": [_build_invocation(scope)],
                "columnKind": "unicodeCodePoints",
                "results": [
                    _build_result(finding, rules.index(finding.category)) for finding in findings
                ],
            }
        ],
    }


def _build_invocation(scope: ReviewScope) -> dict[str, Any]:
    notes = [
        {"level": "error", "message": {"text": f"{failure.part} failed: {failure.error}"}}
        for failure in scope.failed
    ]
    notes.append({"level": "note", "message": {"text": format_scope(scope)}})
    return {"executionSuccessful": not scope.failed, "toolExecutionNotifications": notes}


def _build_result(finding: ReviewFinding, rule: int) -> dict[str, Any]:
    text = f"{finding.text}\n\nFix: {finding.fix}" if finding.fix else finding.text
    region = {"startLine": finding.lines[0], "endLine": finding.lines[1]}
    place = {"artifactLocation": {"uri": _encode_uri(finding.file)}, "region": region}
    return {
        "ruleId": finding.category,
        "ruleIndex": rule,
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"gongFinding/v1": finding.id},
        "properties": {"severity": finding.severity, "source": finding.source},
    }


def _encode_uri(path: str) -> str:
    from urllib.parse import quote  # only for this output

    return quote(path.encode("utf-8", "surrogateescape"))
