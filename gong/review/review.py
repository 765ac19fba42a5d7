"""One review: what changed, without what is ignored → findings about the new lines."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from .findings import ReviewFinding, merge_findings
from .passes import find_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..config import ReviewRule
    from .diff import ReviewedFile

_LOOSE = {"critical", "major"}


def select_files(files: Iterable[ReviewedFile], ignore: Sequence[str]) -> list[ReviewedFile]:
    """Return the files that no pattern names; `vendor/*` also names what is deeper in it."""
    return [file for file in files if not _is_ignored(file.path, ignore)]


def _is_ignored(path: str, patterns: Sequence[str]) -> bool:
    places = [PurePath(path), *PurePath(path).parents]
    return any(
        place.match(pattern.removesuffix("/")) for pattern in patterns for place in places[:-1]
    )


def find_all_faults(
    files: Iterable[ReviewedFile], rules: Sequence[ReviewRule]
) -> list[ReviewFinding]:
    """Return what is found without a model. Raises ConfigurationError for a rule that is none."""
    return [fault for file in files for fault in find_faults(file, rules)]


def choose_findings(
    findings: Iterable[ReviewFinding],
    files: Sequence[ReviewedFile],
    *,
    strictness: str = "normal",
    all_lines: bool = False,
) -> list[ReviewFinding]:
    """Return findings that count: about new lines of these files, as bad as is asked for."""
    by_path = {file.path: file for file in files}
    chosen = []
    for finding in findings:
        file = by_path.get(finding.file)
        first, last = finding.lines
        if file is None or first < 1 or last < first or first > max(len(file.lines), 1):
            continue
        if not all_lines and not file.has_change(first, last):
            continue
        if strictness == "loose" and finding.severity not in _LOOSE:
            continue
        chosen.append(finding)
    return merge_findings(chosen)
