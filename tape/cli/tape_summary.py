"""The summary that `show` and `branches` print: branches and phases, without history."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ..clock import render_time
from ..errors import TapeError
from ..model.entries import (
    NO_JSON,
    TODOS_KIND,
    Anchor,
    Assistant,
    Custom,
    Meta,
    Mode,
    Model,
    Place,
    Start,
    Usage,
)
from ..model.line import describe_missing_blob, read_header
from ..store.packed import PACKED_SUFFIX
from ..store.refs import find_head
from ..store.tape_folder import is_archived
from ..text import SHORT, to_single_line
from .output import format_size
from .terminal import format_table, style_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.line import Entry
    from ..store.refs import Refs
    from ..store.tape import Tape


class BranchSummary(Struct, frozen=True):
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


class PhaseSummary(Struct, frozen=True):
    """One phase: how many `entries` it holds, its size, and its start time."""

    phase: str
    branch: str | None
    entries: int | None
    bytes: int | None
    began: str | None
    error: str | None


class TapeSummary(Struct, frozen=True):
    """A tape as `show --json` prints it."""

    id: str
    path: str
    title: str | None
    created: str
    by: str
    cwd: str | None
    origin: Place | None
    current: str
    branches: tuple[BranchSummary, ...]
    phases: tuple[PhaseSummary, ...]
    labels: dict[str, str]


class SessionFacts(Struct, frozen=True):
    """What the current branch says of its session; None where nothing on its path does.

    Tokens are those of all its answers, `git_branch` the branch of git that it started on.
    """

    model: str | None = None
    provider: str | None = None
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    git_branch: str | None = None
    mode: str | None = None
    todos: Any = ()
    repository: str | None = None
    """That of the folder where it works now."""
    person: str | None = None
    machine: str | None = None


def read_session_facts(tape: Tape) -> SessionFacts:
    """Return the facts of a session; reads the path of the current branch as far as it can."""
    facts: dict[str, Any] = {}
    spent = Usage()
    for entry in _read_path(tape):
        match entry.data:
            case Start() | Meta() as said:
                facts |= _read_place(said)
            case Model(provider=provider, model=model):
                facts |= {"provider": provider, "model": model}
            case Mode(permission=mode):
                facts["mode"] = mode
            case Custom(kind=kind, data=todos) if kind == TODOS_KIND:
                facts["todos"] = msgspec.json.decode(todos)
            case Anchor(state=state):
                facts |= {"mode": state.mode} if state.mode else {}
                facts |= (
                    {"todos": msgspec.json.decode(state.todos)} if state.todos != NO_JSON else {}
                )
            case Assistant(provider=provider, model=model, usage=usage):
                facts |= {"provider": provider, "model": model}
                spent += usage
            case _:
                pass
    return SessionFacts(
        **facts, tokens=spent.total, input_tokens=spent.input, output_tokens=spent.output
    )


def _read_place(said: Start | Meta) -> dict[str, Any]:
    """Return what an entry says of where and who, with None only for an unknown repository."""
    facts: dict[str, Any] = {}
    if isinstance(said, Start) and said.git is not None:
        facts["git_branch"] = said.git.branch
    if said.cwd is not None:
        facts["repository"] = said.repository
    facts |= {"person": said.person} if said.person else {}
    return facts | ({"machine": said.machine} if said.machine else {})


def _read_path(tape: Tape) -> Iterator[Entry]:
    with suppress(TapeError, OSError):  # `tape verify` says more
        for run in tape.read_runs(tape.head(), skipped=lambda _: None):
            yield from run


def summarize_tape(tape: Tape, store: str) -> TapeSummary:
    """Return the summary of a tape of the store at `store`, read from the ends of its files."""
    refs, start = tape.refs(), _read_start(tape)
    return TapeSummary(
        tape.id,
        _locate_tape(store, tape.folder.name + PACKED_SUFFIX * is_archived(tape.folder)),
        tape.title(),
        tape.info.created,
        tape.info.by,
        None if start is None else start.cwd,
        tape.info.origin,
        refs.current,
        summarize_branches(tape, refs),
        tuple(_summarize_phase(tape, name) for name in tape.phases.names()),
        dict(refs.labels),
    )


def _locate_tape(store: str, folder: str) -> str:
    """Return the absolute path of a tape."""
    if store != os.path.abspath(store):
        from pathlib import Path  # seldom: it is slow to import

        store = str(Path(store).absolute())
    return f"{store}/tapes/{folder}"


def _read_start(tape: Tape) -> Start | None:
    """Return what the session started with; None if unknown."""
    for name in tape.phases.names()[:1]:
        try:
            first = tape.phases.first(name, describe_missing_blob)
        except (TapeError, OSError, ValueError):
            return None  # `tape verify` says more
        if first is not None and isinstance(first.data, Start):
            return first.data
    return None


def summarize_branches(tape: Tape, refs: Refs) -> tuple[BranchSummary, ...]:
    """Return a row for each branch, oldest first."""
    rows = []
    for branch, moves in refs.branches.items():
        current, count = branch == refs.current, len(moves)
        try:
            head = find_head(refs, tape.phases, branch)
        except (TapeError, OSError) as error:
            unknown = (None, None, None, None, moves[-1].pin is not None, count, str(error))
            rows.append(BranchSummary(branch, current, moves[-1].phase, *unknown))
        else:
            at = head.header
            known = (at.id, at.n, at.time, at.type, head.pinned, count, None)
            rows.append(BranchSummary(branch, current, head.phase, *known))
    return tuple(rows)


def _summarize_phase(tape: Tape, name: str) -> PhaseSummary:
    try:
        with tape.phases.open(name) as file:
            first, tail = read_header(file.line_at(0)), file.tail()
        count = tail.header.n - first.n + 1 if tail.header else 0
        return PhaseSummary(name, tape.find_branch(name), count, tail.size, first.time, None)
    except (TapeError, OSError) as error:
        return PhaseSummary(name, None, None, None, None, str(error))


def describe_tape(tape: TapeSummary) -> Iterator[str]:
    """Yield the lines of a tape's summary."""
    facts = [
        ("title", tape.title or "–"),
        ("path", tape.path),
        ("created", f"{render_time(tape.created)} by {tape.by}"),
        ("cwd", tape.cwd or "–"),
    ]
    if tape.origin is not None:
        facts.append(("origin", f"{tape.origin.tape}@{tape.origin.entry[:SHORT]}"))
    facts += [("label", f"{name} → {entry[:SHORT]}") for name, entry in tape.labels.items()]
    yield style_text(f"tape {tape.id}", fg="yellow")
    yield from format_table([(key, to_single_line(value)) for key, value in facts])
    yield ""
    yield from format_branches(tape.branches)
    yield ""
    yield from format_phases(tape.phases)


def format_branches(rows: tuple[BranchSummary, ...]) -> list[str]:
    """Return branches as a table, `*` before the current one."""
    return format_table(
        [
            (
                "*" * row.current,
                style_text(row.branch, fg="green") if row.current else row.branch,
                style_text((row.entry or "?")[:SHORT], fg="yellow"),
                "?" if row.n is None else str(row.n),
                render_time(row.time) if row.time else "",
                row.error or row.type or "",
            )
            for row in rows
        ],
        right=(3,),
        headings=("", "BRANCH", "HEAD", "DEPTH", "TIME", "TYPE"),
        optional=("TIME", "DEPTH", "TYPE"),
    )


def format_phases(rows: tuple[PhaseSummary, ...]) -> list[str]:
    """Return phases as a table."""
    return format_table(
        [
            (
                row.phase,
                "?" if row.entries is None else str(row.entries),
                "?" if row.bytes is None else format_size(row.bytes),
                row.error or (render_time(row.began) if row.began else ""),
            )
            for row in rows
        ],
        right=(1, 2),
        headings=("PHASE", "ENTRIES", "SIZE", "BEGAN"),
        optional=("BEGAN", "SIZE"),
    )
