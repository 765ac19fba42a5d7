"""The summary that `show` and `branches` print: branches and phases, without history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ..branches import head_of
from ..clock import moment
from ..entries import Place, Start
from ..errors import TapeError
from ..line import read_header
from ..payload import missing_blob
from ..render import SHORT, single
from .out import counted, size, style, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..refs import Refs
    from ..tape import Tape


class BranchRow(Struct, frozen=True):
    """The head of a branch; what cannot be read is None, and `error` says why."""

    branch: str
    current: bool
    phase: str
    entry: str | None
    n: int | None
    time: str | None
    type: str | None
    pinned: bool
    moves: int
    error: str | None


class PhaseRow(Struct, frozen=True):
    """One phase: how many `entries` it holds, its size, and its start time."""

    phase: str
    branch: str | None
    entries: int | None
    bytes: int | None
    began: str | None
    error: str | None


class Summary(Struct, frozen=True):
    """A tape as `show --json` prints it."""

    id: str
    path: str
    title: str | None
    created: str
    by: str
    cwd: str | None
    origin: Place | None
    current: str
    branches: tuple[BranchRow, ...]
    phases: tuple[PhaseRow, ...]
    labels: dict[str, str]


def summary(tape: Tape, store: Path) -> Summary:
    """Return the summary of a tape, read from the ends of its files."""
    refs = tape.refs()
    return Summary(
        tape.id,
        str(store.absolute() / "tapes" / tape.folder.name),
        tape.title(),
        tape.info.created,
        tape.info.by,
        _cwd(tape),
        tape.info.origin,
        refs.current,
        branch_rows(tape, refs),
        tuple(_phase_row(tape, name) for name in tape.phases.names()),
        dict(refs.labels),
    )


def _cwd(tape: Tape) -> str | None:
    """Return the folder the session started in; None if unknown."""
    for name in tape.phases.names()[:1]:
        try:
            first = tape.phases.first(name, missing_blob)
        except (TapeError, OSError, ValueError):
            return None  # `tape verify` says more
        if first is not None and isinstance(first.data, Start):
            return first.data.cwd
    return None


def branch_rows(tape: Tape, refs: Refs) -> tuple[BranchRow, ...]:
    """Return a row for each branch, oldest first."""
    return tuple(_branch_row(tape, refs, branch) for branch in refs.branches)


def _branch_row(tape: Tape, refs: Refs, branch: str) -> BranchRow:
    moves, current = refs.branches[branch], branch == refs.current
    newest, count = moves[-1], len(moves)
    try:
        head = head_of(refs, tape.phases, branch)
    except (TapeError, OSError) as error:
        unknown = (None, None, None, None, newest.pin is not None, count, str(error))
        return BranchRow(branch, current, newest.phase, *unknown)
    at = head.header
    known = (at.id, at.n, at.time, at.type, head.pinned, count, None)
    return BranchRow(branch, current, head.phase, *known)


def _phase_row(tape: Tape, name: str) -> PhaseRow:
    try:
        with tape.phases.open(name) as file:
            first, tail = read_header(file.line_at(0)), file.tail()
        count = tail.header.n - first.n + 1 if tail.header else 0
        return PhaseRow(name, tape.branch_of(name), count, tail.size, first.time, None)
    except (TapeError, OSError) as error:
        return PhaseRow(name, None, None, None, None, str(error))


def described(tape: Summary) -> Iterator[str]:
    """Yield the lines of a tape's summary."""
    facts = [
        ("title", tape.title or "–"),
        ("path", tape.path),
        ("created", f"{moment(tape.created)} by {tape.by}"),
        ("cwd", tape.cwd or "–"),
    ]
    if tape.origin is not None:
        facts.append(("origin", f"{tape.origin.tape}@{tape.origin.entry[:SHORT]}"))
    facts += [("label", f"{name} → {entry[:SHORT]}") for name, entry in tape.labels.items()]
    yield style(f"tape {tape.id}", fg="yellow")
    yield from table([(key, single(value)) for key, value in facts])
    yield ""
    yield from branch_lines(tape.branches)
    yield ""
    yield from phase_lines(tape.phases)


def branch_lines(rows: tuple[BranchRow, ...]) -> list[str]:
    """Return branches as a table, `*` before the current one."""
    return table(
        [
            (
                "*" * row.current,
                style(row.branch, fg="green") if row.current else row.branch,
                style((row.entry or "?")[:SHORT], fg="yellow"),
                "?" if row.n is None else str(row.n),
                moment(row.time) if row.time else "",
                row.error or row.type or "",
            )
            for row in rows
        ],
        right=(3,),
    )


def phase_lines(rows: tuple[PhaseRow, ...]) -> list[str]:
    """Return phases as a table."""
    return table(
        [
            (
                row.phase,
                "?" if row.entries is None else counted(row.entries, "entry"),
                "?" if row.bytes is None else size(row.bytes),
                row.error or (moment(row.began) if row.began else ""),
            )
            for row in rows
        ],
        right=(1, 2),
    )
