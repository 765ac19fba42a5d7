"""`fsck`: explain damage, and repair it after showing how."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct

from ..errors import Damaged
from ..fsck import (
    Explanation,
    Mended,
    described,
    explanation,
    facts,
    plan,
    repair,
)
from ..render import SHORT, single
from ..verify import Counts, Finding, opened, told_by_start
from ..verify import verify as check
from .call import found, library
from .out import as_json, counted, document, examples, progress, ref, say
from .verify import folder_named, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..store import Store
    from ..tape import Tape
    from .group import Options

DAMAGED = Damaged.exit_code


class Explained(Struct):
    """A finding of verify and what it means."""

    finding: Finding
    means: Explanation


class Step(Struct):
    """One repair that was done."""

    did: str
    undo: str
    """A shell command; empty where it cannot be undone."""


class Report(Struct):
    """What `fsck --json` says of a tape."""

    tape: str
    findings: list[Explained]
    actions: list[str]
    """What --repair does."""
    done: list[Step]
    left: list[Finding] | None = None
    """What verify finds afterwards; null where nothing was repaired."""


@click.command(
    epilog=examples("tape fsck", "tape fsck 3f2a --json", "tape fsck 3f2a --repair --yes")
)
@ref
@click.option(
    "--repair", "mends", is_flag=True, help="Show what can be repaired, ask, and repair it."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@click.pass_obj
def fsck(options: Options, ref: str, mends: bool, yes: bool, as_json: bool) -> int:
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
    how = _How(mends, asks=not yes, as_json=as_json)
    with library(options) as (store, _):
        name = folder_named(store, ref)
        if name is not None:
            return _of_folder(store, name, how)
    with library(options) as (store, _), found(options, ref, warns=False) as place:
        return _tape(store, place.tape, (), how)


class _How(NamedTuple):
    """What the options ask for."""

    mends: bool
    asks: bool
    as_json: bool

    def agreed(self, actions: list[str]) -> bool:
        """Return whether the actions that were shown may be done."""
        if not self.mends or not actions:
            return False
        if not self.asks:
            return True
        if self.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return False
        return click.confirm("Do this?")


def _of_folder(store: Store, name: str, how: _How) -> int:
    tape, wrong = opened(store, name)
    with tape:
        if wrong:
            told_by_start(tape.folder)  # raises where the tape's id is unknown
        return _tape(store, tape, wrong, how)


def _tape(store: Store, tape: Tape, wrong: Iterable[Finding], how: _How) -> int:
    """Explain the damage of a tape and repair it; `wrong` is what opening it found."""
    findings = [*wrong, *_checked(tape)]
    seen = facts(store, tape, findings)
    means = [Explained(finding, explanation(finding, seen)) for finding in findings]
    todo = plan(findings, seen)
    report = Report(tape.id, means, [described(action) for action in todo], [])
    if not how.as_json:
        _show(report, how)
    if how.agreed(report.actions):
        report.done += [_told(mended, how) for mended in repair(store, tape, todo)]
    if report.done:
        report.left = _left(store, tape.folder.name)
    if how.as_json:
        document(report)
    elif report.left is not None:
        say(_end(report))
    return _code(findings if report.left is None else report.left)


def _left(store: Store, name: str) -> list[Finding]:
    """Return what verify finds in a repaired tape."""
    tape, wrong = opened(store, name)
    with tape:
        return [*wrong, *_checked(tape)]


def _checked(tape: Tape) -> list[Finding]:
    """Return what verify finds, showing its progress."""
    with progress("verified entry") as tell:
        return list(check(tape, Counts(), progress=tell))


def _code(findings: Iterable[Finding]) -> int:
    return DAMAGED if any(finding.level != "note" for finding in findings) else 0


def _told(mended: Mended, how: _How) -> Step:
    """Return a step, and print it as soon as it is done."""
    step = Step(described(mended.action), mended.undo)
    if not how.as_json:
        say([single(f"did: {step.did}"), "  " + single(f"undo: {step.undo or 'none'}")])
    return step


def _show(report: Report, how: _How) -> None:
    document(report) if how.as_json else say(_lines(report, how))


def _lines(report: Report, how: _How) -> Iterator[str]:
    """Yield each finding explained, and the repairs that are possible."""
    for one in report.findings:
        yield from _explained(one)
    short = report.tape[:SHORT]
    bad = sum(one.finding.level != "note" for one in report.findings)
    yield f"{short}: {counted(bad, 'fault')}" if bad else f"{short}: all good"
    if not report.actions:
        return
    yield "repair will:" if how.mends else f"`tape fsck {short} --repair` will:"
    yield from (f"  {single(action)}" for action in report.actions)


def _explained(one: Explained) -> Iterator[str]:
    finding, means = one.finding, one.means
    on = [
        *(f"branch {name}" for name in finding.depends),
        *(f"tape {t[:SHORT]}" for t in means.tapes),
    ]
    yield single(f"{finding.level}: {place(finding)}: {finding.message}")
    yield "  " + single(f"what:  {means.what}")
    yield "  " + single(f"lost:  {means.lost}")
    if on:
        yield "  " + single(f"on it: {', '.join(on)}")
    yield "  " + single(f"to do: {means.todo}")
    yield ""


def _end(report: Report) -> Iterator[str]:
    """Yield what verify finds after the repair."""
    bad = [finding for finding in report.left or () if finding.level != "note"]
    for finding in bad:
        yield single(f"left: {place(finding)}: {finding.message}")
    short = report.tape[:SHORT]
    yield (
        f"{short}: {counted(len(bad), 'fault')} left, explained above"
        if bad
        else f"{short}: all good now"
    )
