"""`verify` and `fsck`: recompute every hash; explain damage, and repair it after showing how.

Both exit with 4 where a finding is not just a note; `fsck --repair` where one is left.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct

from ..check.explain import Explanation, explain_finding
from ..check.finding import Counts, Finding, FindingKind, build_damage
from ..check.fsck import repair_tape
from ..check.inspection import inspect_tape
from ..check.opening import UNKNOWN_TAPE_ID, open_for_check, read_start_info
from ..check.repair_plan import describe_action, plan_repairs
from ..check.scan import count_processors
from ..check.verify import verify as check
from ..errors import Damaged, NewerFormat, NotFound, TapeError, UsageError
from ..ids import is_id_prefix
from ..index.library import LINK_REASON
from ..places.reference import parse_reference
from ..store.tape_folder import is_archived
from ..text import SHORT, format_count, to_single_line
from .output import CountType, as_json, format_examples, print_json, ref
from .resolve import open_library, open_ref
from .terminal import print_lines, print_warning, show_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..store.store import Store
    from ..store.tape import Tape
    from .group import GlobalOptions


_MAX_JOBS = 64
"""The largest number of processes that can be given."""


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

    Exits with 4 when something is damaged, or torn and not being written. Stopped by Ctrl+C, it
    says how far it came, and exits with 130: the rest is not verified. --json prints {tape,
    entries, phases, blobs, findings [{level, kind, file, line, offset, message, depends}]}, or with
    --all an array of them.
    """
    if every and ref:
        raise UsageError("give a REF or --all, not both")
    if every:
        return _verify_all(options, jobs or count_processors(), as_json=as_json)
    jobs = jobs or count_processors()
    with show_progress("verified entry") as tell:
        try:
            with open_ref(options, ref, warns=False) as place:
                report = _verify_tape(place.tape, jobs, (), tell)
        except (NotFound, Damaged, OSError) as error:  # verify what little of it can be read
            with open_library(options) as (store, _):
                name = find_tape_folder(store, ref)
                if name is None or (isinstance(error, NotFound) and store.read_tape_id(name)):
                    raise
                report = _verify_folder(store, name, jobs, tell)
    print_json(report) if as_json else print_lines(format_verify_report(report))
    return _get_exit_code(report.findings)


def find_tape_folder(store: Store, ref: str) -> str | None:
    """Return the folder of the tape that a REF names by folder name or id; None if not exactly one.

    This finds also a tape whose tape.json or journal cannot be read.
    """
    word = parse_reference(ref).tape
    if not word:
        return None
    names = []
    for name in store.folders():
        end = name.rpartition("-")[2]  # the first digits of the id
        fits = end.startswith(word) or word.startswith(end)
        if (
            name == word
            or store.read_tape_id(name).startswith(word)
            or (fits and is_id_prefix(word) and is_id_prefix(end))
        ):
            names.append(name)
    return names[0] if len(names) == 1 else None


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
            codes.append(_get_exit_code(report.findings))
            reports.append(report) if as_json else print_lines(format_verify_report(report))
        for name in store.links():
            codes.append(Damaged.exit_code)
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


def _list_faults(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level != "note"]


def _get_exit_code(findings: Iterable[Finding]) -> int:
    return Damaged.exit_code if _list_faults(findings) else 0


def format_verify_report(report: VerifyReport) -> Iterator[str]:
    """Yield one line per finding, and a summary."""
    for finding in report.findings:
        on = f" [{', '.join(finding.depends)}]" if finding.depends else ""
        place = format_finding_place(finding)
        yield to_single_line(f"{finding.level}: {place}: {finding.message}{on}")
    counts = ", ".join(
        (
            format_count(report.entries, "entry"),
            format_count(report.phases, "phase"),
            format_count(report.blobs, "blob"),
        )
    )
    bad = len(_list_faults(report.findings))
    end = f"{format_count(bad, 'fault')}, see above" if bad else "all good"
    name = report.tape[:SHORT] if is_id_prefix(report.tape) else report.tape
    yield f"{name}: {counts}: {end}"


def format_finding_place(finding: Finding) -> str:
    """Return where a finding is: file, line, byte."""
    line = "" if finding.line is None else f":{finding.line}"
    byte = "" if finding.offset is None else f" (byte {finding.offset})"
    return f"{finding.file}{line}{byte}"


class ExplainedFinding(Struct):
    """A finding of verify and what it means."""

    finding: Finding
    means: Explanation


class FsckRow(Struct):
    """One repair that was done."""

    did: str
    undo: str
    """A shell command; empty where it cannot be undone."""


class FsckReport(Struct):
    """What `fsck --json` says of a tape."""

    tape: str
    findings: list[ExplainedFinding]
    actions: list[str]
    """What --repair does."""
    done: list[FsckRow]
    left: list[Finding] | None = None
    """What verify finds afterwards; null where nothing was repaired."""


@click.command(
    epilog=format_examples("tape fsck", "tape fsck 3f2a --json", "tape fsck 3f2a --repair --yes")
)
@ref
@click.option(
    "--repair", "mends", is_flag=True, help="Show what can be repaired, ask, and repair it."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@click.pass_obj
def fsck(options: GlobalOptions, ref: str, mends: bool, yes: bool, as_json: bool) -> int:
    """Explain all that verify finds: what it is, what was lost, what to do.

    Exits with 4 when there is damage, or some is left. --repair shows what it will do and asks;
    without a terminal and without --yes it only shows. It never touches a damaged entry with good
    ones behind it.

    Repairing loses nothing: what is removed is first copied to the tape's quarantine/ or moved to
    the store's trash/, and each step prints the shell command that undoes it. Run those in the
    tape's folder, the last one first, while nobody writes the tape: truncate and cat restore a
    tail, cp an old refs.jsonl or tape.json, mv a blob or a leftover. Only completing an interrupted
    redaction cannot be undone.

    --json prints {tape, findings [{finding, means {what, lost, todo, tapes}}], actions, done
    [{did, undo}], left}.
    """
    how = _FsckOptions(mends, asks=not yes, as_json=as_json)
    with open_library(options) as (store, _):
        name = find_tape_folder(store, ref)
        if name is not None:
            tape, wrong = open_for_check(store, name)
            with tape:
                if wrong and not is_archived(tape.folder):
                    read_start_info(tape.folder)  # raises where the tape's id is unknown
                return _fsck_tape(store, tape, wrong, how)
    with open_library(options) as (store, _), open_ref(options, ref, warns=False) as place:
        return _fsck_tape(store, place.tape, (), how)


class _FsckOptions(NamedTuple):
    """What the options ask for."""

    mends: bool
    asks: bool
    as_json: bool

    def confirm_plan(self, actions: list[str]) -> bool:
        """Return whether the actions that were shown may be done."""
        if not self.mends or not actions:
            return False
        if not self.asks:
            return True
        if self.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return False
        return click.confirm("Do this?")


def _fsck_tape(store: Store, tape: Tape, wrong: Iterable[Finding], how: _FsckOptions) -> int:
    """Explain the damage of a tape and repair it; `wrong` is what opening it found."""
    findings = [*wrong, *_collect_findings(tape, "nothing was repaired" if how.mends else "")]
    seen = inspect_tape(store, tape, findings)
    means = [ExplainedFinding(finding, explain_finding(finding, seen)) for finding in findings]
    todo = plan_repairs(findings, seen)
    report = FsckReport(tape.id, means, [describe_action(action) for action in todo], [])
    if not how.as_json:
        print_lines(_format_fsck_report(report, how))
    if how.confirm_plan(report.actions):
        for mended in repair_tape(store, tape, todo):
            step = FsckRow(describe_action(mended.action), mended.undo)
            report.done.append(step)
            if not how.as_json:  # each step as soon as it is done
                print_lines([to_single_line(f"did: {step.did}")])
                print_lines(["  " + to_single_line(f"undo: {step.undo or 'none'}")])
    if report.done:
        repaired, wrong = open_for_check(store, tape.folder.name)
        with repaired:
            report.left = [*wrong, *_collect_findings(repaired, "what was repaired stays")]
    if how.as_json:
        print_json(report)
    elif report.left is not None:
        left = _list_faults(report.left)
        for finding in left:
            print_lines(
                [to_single_line(f"left: {format_finding_place(finding)}: {finding.message}")]
            )
        end = (
            f"{format_count(len(left), 'fault')} left, explained above" if left else "all good now"
        )
        print_lines([f"{report.tape[:SHORT]}: {end}"])
    return _get_exit_code(findings if report.left is None else report.left)


def _collect_findings(tape: Tape, outcome: str) -> list[Finding]:
    """Return what verify finds, showing its progress; stopped, `outcome` is what holds."""
    with show_progress("verified entry", outcome=outcome) as tell:
        return list(check(tape, Counts(), progress=tell))


def _format_fsck_report(report: FsckReport, how: _FsckOptions) -> Iterator[str]:
    """Yield each finding explained, and the repairs that are possible."""
    for explained in report.findings:
        finding, means = explained.finding, explained.means
        on = [f"branch {name}" for name in finding.depends]
        on += [f"tape {identity[:SHORT]}" for identity in means.tapes]
        yield to_single_line(f"{finding.level}: {format_finding_place(finding)}: {finding.message}")
        facts = (("what:", means.what), ("lost:", means.lost), ("on it:", ", ".join(on)))
        for key, text in (*facts, ("to do:", means.todo)):
            if text or key != "on it:":
                yield "  " + to_single_line(f"{key:<6} {text}")
        yield ""
    short = report.tape[:SHORT]
    bad = len(_list_faults(explained.finding for explained in report.findings))
    yield f"{short}: {format_count(bad, 'fault')}" if bad else f"{short}: all good"
    if not report.actions:
        return
    yield "repair will:" if how.mends else f"`tape fsck {short} --repair` will:"
    yield from (f"  {to_single_line(action)}" for action in report.actions)
