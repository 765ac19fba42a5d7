"""Executing repair actions, under the locks of writers; each can be undone afterwards."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, assert_never

from .. import disk, trash
from ..clock import after, micros, stamp
from ..entries import Repair
from ..errors import Damaged
from ..line import encode
from ..locks import hold
from ..payload import encode_payload
from ..phase import ENTRIES, PhaseFile
from ..redaction import Mark, complete
from ..refs import REFS, set_aside
from ..tape import INFO
from ..verify import told_by_start
from .actions import (
    Action,
    CompleteRedaction,
    CutJournal,
    CutTail,
    Discard,
    NamePhase,
    RecordTail,
    SetBlobAside,
    SetCurrent,
    StructureAction,
    WriteInfo,
    WriteJournal,
)
from .facts import facts
from .info import mend_info
from .journal import lost_phases, rebuilt
from .place import put_in_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..line import Header
    from ..store import Store
    from ..tape import Tape


class Mended(NamedTuple):
    """An action that was done."""

    action: Action
    undo: str
    """The shell command that undoes it, run in the tape's folder; empty where none does."""


def repair(store: Store, tape: Tape, actions: Iterable[Action]) -> Iterator[Mended]:
    """Execute actions in order, and yield each with its undo command.

    Raises Busy when the file to repair is being written; the actions yielded before stay done.
    """
    with tape.followed():
        for action in actions:
            yield Mended(action, _done(store, tape, action))


def _done(store: Store, tape: Tape, action: Action) -> str:
    """Execute an action and return the shell command that undoes it."""
    match action:
        case CutTail():
            return _cut_tail(tape, action)
        case RecordTail():
            return _record_tail(tape, action)
        case SetBlobAside(file):
            return _set_blob_aside(tape, file)
        case CompleteRedaction():
            return _complete_redaction(tape)
        case Discard(path):
            return _discard(store, tape, path)
        case _:
            return _structure_done(store, tape, action)


def _structure_done(store: Store, tape: Tape, action: StructureAction) -> str:
    match action:
        case WriteInfo():
            return _write_info(tape)
        case WriteJournal():
            return _write_journal(store, tape)
        case CutJournal(end):
            return _cut_journal(tape, end)
        case NamePhase(phase):
            return _name(store, tape, phase)
        case SetCurrent(branch):
            return _line_added(tape, partial(_make_current, tape, branch))
        case _:
            assert_never(action)


@contextmanager
def _branches(tape: Tape, names: Iterable[str]) -> Iterator[None]:
    """Hold the locks of branches; raise Busy if one is being written."""
    with ExitStack() as stack:
        locks = stack.enter_context(tape.folder.make("locks"))
        for name in sorted(set(names)):
            stack.enter_context(hold(locks, name, wait=0))
        yield


def _write_info(tape: Tape) -> str:
    info = told_by_start(tape.folder)
    fd = os.dup(tape.folder.fd)  # the real folder: that of `tape` may return another tape.json
    with disk.Folder(fd, tape.folder.name, durable=tape.folder.durable) as folder:
        return f"cp quarantine/{mend_info(folder, info)} {INFO}"


def _write_journal(store: Store, tape: Tape) -> str:
    seen = facts(store, tape, ())
    known = {phase.branch for phase in seen.phases.values()} | seen.refs.branches.keys()
    with _branches(tape, known), tape.folder.make("locks") as locks, hold(locks, "refs"):
        now = facts(store, tape, ())
        old = now.journal or b""
        kept = set_aside(tape.folder, "refs.damaged", old)
        put_in_place(tape.folder, REFS, rebuilt(old, lost_phases(now)))
    return f"cp quarantine/{kept} {REFS}"


def _cut_journal(tape: Tape, end: int) -> str:
    """Open the journal as a writer does, which moves its tail to quarantine."""
    before = _quarantine(tape)
    with tape.journal.moving():
        kept = sorted(_quarantine(tape) - before)
    return " && ".join(_put_back(REFS, end, name) for name in kept)


def _quarantine(tape: Tape) -> set[str]:
    with tape.folder.make("quarantine") as quarantine:
        return set(quarantine.names())


def _put_back(file: str, end: int, kept: str) -> str:
    return f"truncate -s {end} {file} && cat quarantine/{kept} >> {file}"


def _name(store: Store, tape: Tape, name: str) -> str:
    """Write the line of a phase under the locks of its branch and of the journal."""
    phase = facts(store, tape, ()).phases.get(name)
    if phase is None:
        raise _changed(name)
    with _branches(tape, [phase.branch]):
        return _line_added(tape, partial(_move_to, tape, name, phase.branch, phase.why))


def _move_to(tape: Tape, phase: str, branch: str, why: str) -> None:
    with tape.journal.moving() as moves:
        if phase not in moves.refs.phases():
            moves.branch(branch, phase, None, why)


def _make_current(tape: Tape, branch: str) -> None:
    with tape.journal.moving() as moves:
        moves.current(branch)


def _line_added(tape: Tape, add: partial[None]) -> str:
    size = len(tape.folder.read(REFS))
    add()
    return f"truncate -s {size} {REFS}"


def _cut_tail(tape: Tape, action: CutTail) -> str:
    file = f"phases/{action.phase}/{ENTRIES}"
    kept = _opened(tape, action) if _goes_on(tape, action) else _cut(tape, action)
    return _put_back(file, action.end, kept) if kept else ""


def _goes_on(tape: Tape, action: CutTail | RecordTail) -> bool:
    moves = tape.refs().branches.get(action.branch, ())
    return bool(moves) and moves[-1].phase == action.phase and moves[-1].pin is None


def _opened(tape: Tape, action: CutTail) -> str:
    """Open the branch for writing, which cuts the tail and records it."""
    with tape.writer(action.branch) as writer:
        return writer.torn or ""


def _cut(tape: Tape, action: CutTail) -> str:
    """Cut the tail of a phase that its branch no longer uses, so that no writer will open it."""
    with (
        _branches(tape, [action.branch]),
        tape.phases.folder.sub(action.phase) as folder,
        PhaseFile(folder.file(ENTRIES, os.O_RDWR | os.O_APPEND), action.phase) as file,
    ):
        tail = file.tail()
        if (tail.end, tail.size) != (action.end, action.size):
            raise _changed(action.phase)
        kept = set_aside(tape.folder, f"{action.phase}.{tail.end}", file.read(tail.end, tail.size))
        os.ftruncate(file.fd, tail.end)
        if tail.header is not None:
            disk.append(file.fd, _told(tape, tail.header, kept, tail.size - tail.end), tail.end)
        if tape.folder.durable:
            disk.sync(file.fd)
    return kept


def _record_tail(tape: Tape, action: RecordTail) -> str:
    if not _goes_on(tape, action):
        raise _changed(action.phase)
    with tape.writer(action.branch) as writer:
        size = writer.head.end
        why = "a torn tail was moved to quarantine; the program ended before it recorded that"
        writer.append(Repair("torn", quarantine=action.kept, why=why))
    return f"truncate -s {size} phases/{action.phase}/{ENTRIES}"


def _changed(phase: str) -> Damaged:
    return Damaged(f"{phase} changed meanwhile; run `tape fsck` again", file=phase)


def _told(tape: Tape, last: Header, kept: str, size: int) -> bytes:
    """Return the line of the repair entry that records a cut tail."""
    why = f"{size} bytes after the last complete line were moved to quarantine"
    time = after(micros(last.time), tape.clock())
    data = encode_payload(Repair("torn", quarantine=kept, why=why))
    return encode("repair", last.id, last.n + 1, stamp(time), data)[1]


def _set_blob_aside(tape: Tape, file: str) -> str:
    _, shelf_name, digest = file.split("/")
    with (
        tape.folder.sub("blobs") as blobs,
        blobs.sub(shelf_name) as shelf,
        tape.folder.make("quarantine") as quarantine,
    ):
        kept = trash.move(digest, shelf, quarantine)
    return f"mv quarantine/{kept} {file}"


def _complete_redaction(tape: Tape) -> str:
    with Mark.put(tape.folder) as mark:
        complete(tape)
        mark.remove()
    return ""


def _discard(store: Store, tape: Tape, path: str) -> str:
    parent, _, name = path.rpartition("/")
    with (
        disk.Folder.open(store.path / parent, durable=store.durable) as source,
        disk.Folder.open(store.path, durable=store.durable) as home,
        home.make("trash") as to,
    ):
        kept = trash.move(name, source, to)
    inside = f"tapes/{tape.folder.name}/"
    back = path.removeprefix(inside) if path.startswith(inside) else f"../../{path}"
    return f"mv ../../trash/{kept} {back}"
