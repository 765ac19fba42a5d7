"""`verify`: recompute every hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import Damaged, NewerFormat, NotFound, TapeError, UsageError
from ..index import LINK_REASON
from ..reference import is_id_prefix, parse_reference
from ..render import SHORT, to_single_line
from ..verify import (
    UNKNOWN_TAPE_ID,
    Counts,
    Finding,
    FindingKind,
    build_damage,
    count_processors,
    open_for_check,
)
from ..verify import verify as check
from .call import open_library, open_ref
from .out import (
    CountType,
    as_json,
    format_count,
    format_examples,
    print_json,
    print_lines,
    print_warning,
    ref,
    show_progress,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..store import Store
    from ..tape import Tape
    from .group import GlobalOptions

_MAX_JOBS = 64
"""The largest number of processes that can be given."""
DAMAGED_CODE = Damaged.exit_code


class VerifyReport(Struct):
    """What `verify --json` says of a tape."""

    tape: str
    """Its id; the folder's name where the id is unknown."""
    entries: int
    phases: int
    blobs: int
    findings: list[Finding]


@click.command(
    epilog=format_examples("tape verify", "tape verify 3f2a --json", "tape verify --all")
)
@ref
@click.option("--all", "every", is_flag=True, help="Verify all tapes of the store.")
@click.option(
    "--jobs",
    type=CountType(1, most=_MAX_JOBS),
    help="Processes for a large tape. Default: one for each processor, up to 4.",
)
@as_json
@click.pass_obj
def verify(options: GlobalOptions, ref: str, every: bool, jobs: int | None, as_json: bool) -> int:
    """Recompute every hash and report damage.

    Exits with 4 when something is damaged, or torn and not being written. --json prints {tape,
    entries, phases, blobs, findings [{level, kind, file, line, offset, message, depends}]}, or with
    --all an array of them.
    """
    if every and ref:
        raise UsageError("give a REF or --all, not both")
    if every:
        return _verify_all(options, jobs or count_processors(), as_json=as_json)
    with show_progress("verified entry") as tell:
        report = _verify_ref(options, ref, jobs or count_processors(), tell)
    print_json(report) if as_json else print_lines(format_verify_report(report))
    return _get_verify_code(report)


def _verify_ref(
    options: GlobalOptions, ref: str, jobs: int, tell: Callable[[int, int], None]
) -> VerifyReport:
    """Return the report of the tape that a REF names, even if little of it can be read."""
    try:
        with open_ref(options, ref, warns=False) as place:
            return _verify_tape(place.tape, jobs, (), tell)
    except (NotFound, Damaged, OSError) as error:
        with open_library(options) as (store, _):
            name = find_tape_folder(store, ref)
            if name is None or (isinstance(error, NotFound) and store.read_tape_id(name)):
                raise
            return _verify_folder(store, name, jobs, tell)


def find_tape_folder(store: Store, ref: str) -> str | None:
    """Return the folder of the tape that a REF names by folder name or id; None if not exactly one.

    This finds also a tape whose tape.json or journal cannot be read.
    """
    word = parse_reference(ref).tape
    names = [name for name in store.folders() if word and _is_folder_named(store, name, word)]
    return names[0] if len(names) == 1 else None


def _is_folder_named(store: Store, name: str, word: str) -> bool:
    end = name.rpartition("-")[2]
    return (
        name == word
        or store.read_tape_id(name).startswith(word)
        or (
            is_id_prefix(word)
            and is_id_prefix(end)
            and (end.startswith(word) or word.startswith(end))
        )
    )


def _verify_all(options: GlobalOptions, jobs: int, *, as_json: bool) -> int:
    """Verify every tape; a tape of a later format is reported, skipped, and sets the exit code."""
    codes, reports = [0], []
    with open_library(options) as (store, _), show_progress("verified tape") as tell:
        names = store.folders()
        for done, name in enumerate(names):
            tell(done, len(names))
            try:
                report = _verify_folder(store, name, jobs, lambda _done, _total: None)
            except NewerFormat as error:
                print_warning(str(error))
                codes.append(NewerFormat.exit_code)
                continue
            codes.append(_get_verify_code(report))
            reports.append(report) if as_json else print_lines(format_verify_report(report))
        for name in store.links():
            codes.append(DAMAGED_CODE)
            report = VerifyReport(
                name, 0, 0, 0, [build_damage(FindingKind.LINK, name, LINK_REASON)]
            )
            reports.append(report) if as_json else print_lines(format_verify_report(report))
    if as_json:
        print_json(reports)
    return max(codes)


def _verify_folder(
    store: Store,
    name: str,
    jobs: int,
    tell: Callable[[int, int], None],
) -> VerifyReport:
    try:
        tape, wrong = open_for_check(store, name)
    except NewerFormat:
        raise
    except (TapeError, OSError) as error:
        wrong = (build_damage(FindingKind.UNREADABLE, name, f"cannot be opened: {error}"),)
        return VerifyReport(name, 0, 0, 0, list(wrong))
    with tape:
        return _verify_tape(tape, jobs, wrong, tell)


def _verify_tape(
    tape: Tape, jobs: int, wrong: Iterable[Finding], tell: Callable[[int, int], None]
) -> VerifyReport:
    counts = Counts()
    findings = [*wrong, *check(tape, counts, jobs=jobs, progress=tell)]
    name = tape.folder.name if tape.id == UNKNOWN_TAPE_ID else tape.id
    return VerifyReport(name, counts.entries, counts.phases, counts.blobs, findings)


def _get_verify_code(report: VerifyReport) -> int:
    bad = any(finding.level != "note" for finding in report.findings)
    return DAMAGED_CODE if bad else 0


def format_verify_report(report: VerifyReport) -> Iterator[str]:
    """Yield one line per finding, and a summary."""
    for finding in report.findings:
        yield to_single_line(
            f"{finding.level}: {format_finding_place(finding)}: {finding.message}{_format_dependents(finding)}"
        )
    counts = ", ".join(
        (
            format_count(report.entries, "entry"),
            format_count(report.phases, "phase"),
            format_count(report.blobs, "blob"),
        )
    )
    bad = sum(finding.level != "note" for finding in report.findings)
    end = f"{format_count(bad, 'fault')}, see above" if bad else "all good"
    name = report.tape[:SHORT] if is_id_prefix(report.tape) else report.tape
    yield f"{name}: {counts}: {end}"


def format_finding_place(finding: Finding) -> str:
    """Return where a finding is: file, line, byte."""
    line = "" if finding.line is None else f":{finding.line}"
    byte = "" if finding.offset is None else f" (byte {finding.offset})"
    return f"{finding.file}{line}{byte}"


def _format_dependents(finding: Finding) -> str:
    return f" [{', '.join(finding.depends)}]" if finding.depends else ""
