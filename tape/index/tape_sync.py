"""One tape's files → its rows in the index: all that is new, or only what one writer changed.

Reading takes no lock. What was read is stored run by run, each in a transaction that first compares
how far the index is: another process that was faster is noticed, and the rest read again.

    is the tape's beginning indexed?   and the changes known?   what is read
    yes                                yes                      the phases and branches they name
    yes                                no                       each phase, from its last known line
    no, or it is another's copy        –                        the whole tape

Two processes, A and B, catch up with one phase of 9,000 lines, of which 100 are indexed:

    A, B  read the row of the phase: 100 lines
    A     stores lines 101–4,196, as the row still says 100
    B     finds 4,196 in the row, not 100: its run does not follow, so it stores nothing
    B     begins again: reads the row (4,196), reads lines from there on
    both  end with the same rows; no line is stored twice, none is left out
"""

from __future__ import annotations

import os
from contextlib import suppress
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import TapeError
from ..store.phase import ORIGIN
from ..store.refs import JOURNAL_NAME, read_head_at
from ..store.tape_folder import is_archived
from ..text import replace_surrogates
from . import tables
from .database import write_transaction
from .reader import TapeRow, describe_archive_stamps, describe_stamps
from .tape_record import (
    IndexedBranch,
    PhaseTally,
    TapeRecord,
    is_entry_id,
    is_tape_id,
    save_stamps,
    save_tape_record,
    select_phase,
    select_redacted_ids,
    select_stamps,
    select_tallies,
    select_tape_record,
    update_tape,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from sqlite3 import Connection

    from ..store.phase import Phases
    from ..store.refs import Changes, Move, Refs
    from ..store.tape import Tape
    from ..store.writer import WritableTape
    from .ingest import LineRun
    from .tables import TapeLocation


def sync_tape(
    db: Connection,
    tape: Tape,
    where: TapeLocation,
    skipped: Callable[[str], None],
) -> None:
    """Update everything that is indexed of a tape, run by run.

    Takes no lock while reading, or if nothing is new; continues after the changes of another
    process that was faster.
    """
    while not _try_sync(db, tape, where, skipped):
        pass


def _try_sync(
    db: Connection, tape: Tape, where: TapeLocation, skipped: Callable[[str], None]
) -> bool:
    """Index what is new; return whether no other process did so meanwhile."""
    from .ingest import delete_phases, read_runs  # a list may need none of it

    stamps = _read_stamps(tape, tape.refs())  # first, so that what is written later is noticed
    refs, old = tape.refs(), select_tape_record(db, tape.id)
    phases = select_tallies(db, tape.id)
    before, last = set(phases), None
    pinned = {row.name: row for row in old.branches if row.pinned} if old else {}
    for run in read_runs(tape, refs, phases, select_redacted_ids(db, tape.id), skipped=skipped):
        # Each run is stored when the next one is there: the last one of all goes into the same
        # transaction as the tape's own row, so that lists never show a tape half updated.
        if last is not None:
            with write_transaction(db):
                if not _insert_next_run(db, tape.id, last):
                    return False
        last = run
        if run.is_anew:  # what is pinned there may be gone
            pinned.clear()
    gone = before - phases.keys()
    new = build_tape_record(tape, where.folder, refs, phases, {} if gone else pinned)
    # Nothing new: no transaction, so that readers never wait for each other. Stamps may differ all
    # the same, where files were touched or copied.
    if last is None and not gone and new == old:
        if stamps != select_stamps(db, tape.id):
            with write_transaction(db):
                save_stamps(db, tape.id, stamps)
        return True
    with write_transaction(db):
        if last is not None and not _insert_next_run(db, tape.id, last):
            return False
        delete_phases(db, tape.id, gone)
        # Another process may have stored a phase that had nothing new for us.
        if select_tallies(db, tape.id) != phases:
            return False
        save_tape_record(db, new, old)
        save_stamps(db, tape.id, stamps)
        if old is None or not old.row.folder:
            tables.update_location(db, tape.id, where)
    return True


def build_tape_record(
    tape: Tape,
    folder: str,
    refs: Refs,
    phases: dict[str, PhaseTally],
    pinned: Mapping[str, IndexedBranch] = MappingProxyType({}),
) -> TapeRecord:
    """Return the facts of a tape whose phases were read.

    `pinned` are rows of branches from before: those that did not move since are not read again.
    """
    branches = []
    for name, moves in refs.branches.items():
        before, pin = pinned.get(name), moves[-1].pin
        if before and pin and (before.phase, before.entry) == (moves[-1].phase, pin.entry):
            branches.append(before._replace(current=name == refs.current))
        else:
            branches.append(build_branch_row(tape.phases, moves[-1], refs, phases))
    own = {name: tally for name, tally in phases.items() if name != ORIGIN}
    row = _build_tape_row(tape, folder, refs, own, tuple(branches))
    labels = ((name, entry) for name, entry in refs.labels.items() if is_entry_id(entry))
    origin = tape.info.origin.tape if tape.info.origin else None
    if not is_tape_id(origin):
        origin = None
    return TapeRecord(row, tuple(sorted(branches)), tuple(sorted(labels)), phases, origin)


def _build_tape_row(
    tape: Tape,
    folder: str,
    refs: Refs,
    phases: dict[str, PhaseTally],
    branches: tuple[IndexedBranch, ...],
) -> TapeRow:
    tallies = [*phases.values()] or [PhaseTally()]
    newest = sorted(tallies, key=lambda tally: tally.time, reverse=True)
    moved = max(tallies, key=lambda tally: tally.moved)
    answered = max(tallies, key=lambda tally: tally.answered)
    costs = [tally.cost for tally in tallies if tally.cost is not None]
    return TapeRow(
        id=tape.id,
        folder=folder,
        title=refs.title or next((tally.prompt for tally in tallies if tally.prompt), None),
        cwd=moved.cwd or "",
        project=moved.project,
        created=tape.info.created,
        updated=max((branch.time or "" for branch in branches), default="") or tape.info.created,
        model=answered.model,
        entries=sum(tally.entries for tally in tallies),
        branches=len(refs.branches),
        cost=fsum(costs) if costs else None,
        provider=answered.provider,
        tokens=sum(tally.tokens for tally in tallies),
        input_tokens=sum(tally.input_tokens for tally in tallies),
        output_tokens=sum(tally.output_tokens for tally in tallies),
        git_branch=_find_newest(tally.git_branch for tally in newest),
        mode=_find_newest(tally.mode for tally in newest),
        todos=_find_newest(tally.todos for tally in newest),
        repository=moved.repository,
        person=_find_newest(tally.person for tally in newest),
        machine=_find_newest(tally.machine for tally in newest),
        agent=name_agent(tape.info.by),
        archived=is_archived(tape.folder),
    )


def name_agent(by: str) -> str | None:
    """Return the agent of a tape, from what `tape.json` says it was made by.

    `gong/1.2` → gong; `tape/1.2 (import from codex)` and `tape/1.2 (store of codex)` → codex.
    """
    name = by.partition("/")[0]
    for mark in (" (import from ", " (store of "):
        if mark in by:
            name = by.partition(mark)[2].removesuffix(")")
    return replace_surrogates(name.strip()) or None


def _find_newest(facts: Iterable[str | None]) -> str | None:
    return next((fact for fact in facts if fact is not None), None)


def build_branch_row(
    files: Phases, move: Move, refs: Refs, phases: Mapping[str, PhaseTally]
) -> IndexedBranch:
    """Return the row of the branch that made this move last."""
    current, entry, n, time = move.branch == refs.current, None, None, None
    if move.pin is None:
        tally = phases.get(move.phase)
        if tally is not None and tally.entries:
            entry, n, time = tally.last, tally.n, tally.time
    else:
        with suppress(TapeError):  # `tape verify` reports damage; show the other branches
            pinned = read_head_at(files, move.branch, move.phase, move.pin.offset, move.pin.entry)
            entry, n, time = pinned.entry, pinned.header.n, pinned.header.time
    return IndexedBranch(move.branch, move.phase, entry, n, time, current, move.pin is not None)


def apply_changes(db: Connection, tape: WritableTape, changes: Changes) -> bool:
    """Index the changes in a tape; return whether that is complete.

    It is not for a tape or a phase whose beginning is not indexed, nor if another process was
    faster, or made moves that are not among the changes.
    """
    from .ingest import read_runs  # most commands write nothing

    # `changes` are those of one writer: stamps of what others wrote stay old, for the next reader.
    refs, known = tape.journal.read(), select_stamps(db, tape.id)
    stamps = _update_stamps(tape, refs, changes, known) if known else None
    if stamps is None:
        return False
    before = select_tallies(db, tape.id, changes.phases)
    phases = dict(before)
    if not changes.phases <= before.keys() | changes.begun:
        return False
    redacted = select_redacted_ids(db, tape.id)
    for run in read_runs(tape, refs, phases, redacted, only=changes.phases):
        with write_transaction(db):
            if not _insert_next_run(db, tape.id, run):
                return False
    with write_transaction(db):
        refs = tape.journal.read()  # under the lock, so that the newest move is stored last
        if select_tallies(db, tape.id, changes.phases) != phases:
            return False
        moves = [refs.branches[name][-1] for name in changes.branches & refs.branches.keys()]
        read = phases | select_tallies(db, tape.id, {move.phase for move in moves} - phases.keys())
        update_tape(
            db,
            tape.id,
            refs,
            [build_branch_row(tape.phases, move, refs, read) for move in moves],
            {name: refs.labels.get(name) for name in changes.labels},
            [(before.get(name, PhaseTally()), tally) for name, tally in phases.items()],
        )
        save_stamps(db, tape.id, stamps)
    return True


def _read_stamps(tape: WritableTape, refs: Refs) -> str | None:
    """Return the stamps of a tape's files; None where one is missing.

    Its segments are those that can still grow: the newest one of each branch that is not pinned.
    """
    with suppress(OSError):
        if is_archived(tape.folder):
            return describe_archive_stamps(os.fstat(tape.folder.fd))
        return describe_stamps(tape.folder.fd, b"", _list_growing(refs))
    return None


def _list_growing(refs: Refs) -> list[str]:
    """Return the phases that branches are at the end of."""
    return sorted({moves[-1].phase for moves in refs.branches.values() if moves[-1].pin is None})


def _update_stamps(tape: WritableTape, refs: Refs, changes: Changes, known: str) -> str | None:
    """Return stamps that were read before, brought up to what these changes touched.

    The other files keep the stamps they had, so that a reader notices if somebody else wrote one.
    None if somebody else moved a branch, or a file is missing.
    """
    moves = (refs.branches[name][-1] for name in changes.branches & refs.branches.keys())
    own = sorted(changes.phases & {move.phase for move in moves if move.pin is None})
    with suppress(OSError):
        before = _split_stamps(known)
        if JOURNAL_NAME not in before:  # it was archived when it was read
            return None
        size = before.pop(JOURNAL_NAME).partition("/")[0]
        fresh = _split_stamps(describe_stamps(tape.folder.fd, b"", own))
        # Other branches of the tape may have writers of their own, whose lines are in one journal.
        moved = tape.journal.read_names_since(int(size))
        if moved is None or not moved <= changes.branches | changes.labels:
            return None
        stamps = {JOURNAL_NAME: fresh.pop(JOURNAL_NAME)}
        for name in _list_growing(refs):
            stamp = fresh.get(name) or before.get(name)
            if stamp is None:
                return None
            stamps[name] = stamp
        return "/".join(f"{name}/{stamp}" for name, stamp in stamps.items())
    return None


def _split_stamps(stamps: str) -> dict[str, str]:
    """Return size and time of each file, by its name."""
    fields = iter(stamps.split("/"))
    return {name: f"{size}/{time}" for name, size, time in zip(fields, fields, fields, strict=True)}


def _insert_next_run(db: Connection, tape: str, run: LineRun) -> bool:
    """Insert a run, in the caller's transaction; return False if it does not follow."""
    from . import ingest

    key, tally = select_phase(db, tape, run.phase)
    redacted = select_redacted_ids(db, tape)
    return tally == run.before and ingest.insert_run(db, tape, run, key, redacted)
