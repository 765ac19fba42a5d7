"""`verify`: recompute every hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import Damaged, NewerFormat, NotFound, TapeError, UsageError
from ..index import LINK
from ..reference import is_prefix, parse
from ..render import SHORT, single
from ..verify import NOBODY, Counts, Finding, Kind, damage, opened, processors
from ..verify import verify as check
from .call import found, library
from .out import Count, as_json, counted, document, examples, progress, ref, say, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..store import Store
    from ..tape import Tape
    from .group import Options

_JOBS = 64
"""The largest number of processes that can be given."""
DAMAGED = Damaged.exit_code


class Report(Struct):
    """What `verify --json` says of a tape."""

    tape: str
    """Its id; the folder's name where the id is unknown."""
    entries: int
    phases: int
    blobs: int
    findings: list[Finding]


@click.command(epilog=examples("tape verify", "tape verify 3f2a --json", "tape verify --all"))
@ref
@click.option("--all", "every", is_flag=True, help="Verify all tapes of the store.")
@click.option(
    "--jobs",
    type=Count(1, most=_JOBS),
    help="Processes for a large tape. Default: one for each processor, up to 4.",
)
@as_json
@click.pass_obj
def verify(options: Options, ref: str, every: bool, jobs: int | None, as_json: bool) -> int:
    """Recompute every hash and report damage.

    Exits with 4 when something is damaged, or torn and not being written. --json prints {tape,
    entries, phases, blobs, findings [{level, kind, file, line, offset, message, depends}]}, or with
    --all an array of them.
    """
    if every and ref:
        raise UsageError("give a REF or --all, not both")
    if every:
        return _all(options, jobs or processors(), as_json=as_json)
    with progress("verified entry") as tell:
        report = _found(options, ref, jobs or processors(), tell)
    document(report) if as_json else say(lines(report))
    return _code(report)


def _found(options: Options, ref: str, jobs: int, tell: Callable[[int, int], None]) -> Report:
    """Return the report of the tape that a REF names, even if little of it can be read."""
    try:
        with found(options, ref, warns=False) as place:
            return _report(place.tape, jobs, (), tell)
    except (NotFound, Damaged, OSError) as error:
        with library(options) as (store, _):
            name = folder_named(store, ref)
            if name is None or (isinstance(error, NotFound) and store.id_of(name)):
                raise
            return _of_folder(store, name, jobs, tell)


def folder_named(store: Store, ref: str) -> str | None:
    """Return the folder of the tape that a REF names by folder name or id; None if not exactly one.

    This finds also a tape whose tape.json or journal cannot be read.
    """
    word = parse(ref).tape
    names = [name for name in store.folders() if word and _is_named(store, name, word)]
    return names[0] if len(names) == 1 else None


def _is_named(store: Store, name: str, word: str) -> bool:
    end = name.rpartition("-")[2]
    return (
        name == word
        or store.id_of(name).startswith(word)
        or (is_prefix(word) and is_prefix(end) and (end.startswith(word) or word.startswith(end)))
    )


def _all(options: Options, jobs: int, *, as_json: bool) -> int:
    """Verify every tape; a tape of a later format is reported, skipped, and sets the exit code."""
    codes, reports = [0], []
    with library(options) as (store, _), progress("verified tape") as tell:
        names = store.folders()
        for done, name in enumerate(names):
            tell(done, len(names))
            try:
                report = _of_folder(store, name, jobs, lambda _done, _total: None)
            except NewerFormat as error:
                warn(str(error))
                codes.append(NewerFormat.exit_code)
                continue
            codes.append(_code(report))
            reports.append(report) if as_json else say(lines(report))
        for name in store.links():
            codes.append(DAMAGED)
            report = Report(name, 0, 0, 0, [damage(Kind.LINK, name, LINK)])
            reports.append(report) if as_json else say(lines(report))
    if as_json:
        document(reports)
    return max(codes)


def _of_folder(
    store: Store,
    name: str,
    jobs: int,
    tell: Callable[[int, int], None],
) -> Report:
    try:
        tape, wrong = opened(store, name)
    except NewerFormat:
        raise
    except (TapeError, OSError) as error:
        wrong = (damage(Kind.UNREADABLE, name, f"cannot be opened: {error}"),)
        return Report(name, 0, 0, 0, list(wrong))
    with tape:
        return _report(tape, jobs, wrong, tell)


def _report(
    tape: Tape, jobs: int, wrong: Iterable[Finding], tell: Callable[[int, int], None]
) -> Report:
    counts = Counts()
    findings = [*wrong, *check(tape, counts, jobs=jobs, progress=tell)]
    name = tape.folder.name if tape.id == NOBODY else tape.id
    return Report(name, counts.entries, counts.phases, counts.blobs, findings)


def _code(report: Report) -> int:
    bad = any(finding.level != "note" for finding in report.findings)
    return DAMAGED if bad else 0


def lines(report: Report) -> Iterator[str]:
    """Yield one line per finding, and a summary."""
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
    name = report.tape[:SHORT] if is_prefix(report.tape) else report.tape
    yield f"{name}: {counts}: {end}"


def place(finding: Finding) -> str:
    """Return where a finding is: file, line, byte."""
    line = "" if finding.line is None else f":{finding.line}"
    byte = "" if finding.offset is None else f" (byte {finding.offset})"
    return f"{finding.file}{line}{byte}"


def _on(finding: Finding) -> str:
    return f" [{', '.join(finding.depends)}]" if finding.depends else ""
