"""`verify`: every hash again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import Damaged, NewerFormat, TapeError, UsageError
from ..render import SHORT, single
from ..verify import Counts, Finding, damage
from ..verify import verify as check
from .call import found, library
from .out import as_json, counted, document, examples, ref, say, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store import Store
    from ..tape import Tape
    from .group import Options

DAMAGED = Damaged.exit_code


class Report(Struct):
    """What `verify --json` says of a tape."""

    tape: str
    entries: int
    phases: int
    blobs: int
    findings: list[Finding]


@click.command(epilog=examples("tape verify", "tape verify 3f2a --json", "tape verify --all"))
@ref
@click.option("--all", "every", is_flag=True, help="All tapes of the store.")
@as_json
@click.pass_obj
def verify(options: Options, ref: str, every: bool, as_json: bool) -> int:
    """Compute every hash anew and name what does not hold.

    Ends with 4 when something is damaged, or torn and not being written. --json prints {tape,
    entries, phases, blobs, findings [{level, file, line, offset, message, depends}]}, or with
    --all an array of them.
    """
    if every and ref:
        raise UsageError("give a REF or --all, not both")
    if every:
        return _all(options, as_json=as_json)
    with found(options, ref, warns=False) as place:
        report = _report(place.tape)
    document(report) if as_json else say(lines(report))
    return _code(report)


def _all(options: Options, *, as_json: bool) -> int:
    """Verify every tape; one of a later format is told, left out, and ends with its own code."""
    codes, reports = [0], []
    with library(options) as (store, _):
        for name in store.folders():
            try:
                report = _of_folder(store, name)
            except NewerFormat as error:
                warn(str(error))
                codes.append(NewerFormat.exit_code)
                continue
            codes.append(_code(report))
            reports.append(report) if as_json else say(lines(report))
    if as_json:
        document(reports)
    return max(codes)


def _of_folder(store: Store, name: str) -> Report:
    try:
        tape = store.open_folder(name)
    except NewerFormat:
        raise
    except (TapeError, OSError) as error:
        return Report(name, 0, 0, 0, [damage(name, f"cannot be opened: {error}")])
    with tape:
        return _report(tape)


def _report(tape: Tape) -> Report:
    counts = Counts()
    findings = list(check(tape, counts))
    return Report(tape.id, counts.entries, counts.phases, counts.blobs, findings)


def _code(report: Report) -> int:
    bad = any(finding.level != "note" for finding in report.findings)
    return DAMAGED if bad else 0


def lines(report: Report) -> Iterator[str]:
    """Yield a line for each finding, and a summary."""
    for finding in report.findings:
        yield single(f"{finding.level}: {place(finding)}: {finding.message}{_on(finding)}")
    counts = ", ".join(
        (
            counted(report.entries, "entry"),
            counted(report.phases, "phase"),
            counted(report.blobs, "blob"),
        )
    )
    bad = sum(finding.level != "note" for finding in report.findings)
    end = f"{counted(bad, 'fault')}, see above" if bad else "all good"
    yield f"{report.tape[:SHORT]}: {counts}: {end}"


def place(finding: Finding) -> str:
    """Return where a finding is: file, line, byte."""
    line = "" if finding.line is None else f":{finding.line}"
    byte = "" if finding.offset is None else f" (byte {finding.offset})"
    return f"{finding.file}{line}{byte}"


def _on(finding: Finding) -> str:
    return f" [{', '.join(finding.depends)}]" if finding.depends else ""
