"""fsck: executes the repair actions of `repair_plan`, under the locks of writers.

Invariant: no data is lost. What a repair removes is first stored in `quarantine/` or in the store's
trash, and damaged lines with good lines after them are never touched. Each action but the
completion of a redaction can be undone by the shell command that is returned for it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, assert_never

import msgspec

from ..clock import choose_entry_time, format_timestamp, parse_timestamp
from ..errors import Damaged
from ..model.entries import Repair
from ..model.line import encode_line, encode_payload
from ..store import disk
from ..store.locks import hold_lock_in
from ..store.phase import ENTRIES, PhaseFile
from ..store.redaction import RedactionMark, complete_redaction
from ..store.refs import JOURNAL_NAME, quarantine_bytes
from ..store.tape import INFO_NAME
from ..store.tape_folder import TapeFolder
from .finding import list_quarantine
from .inspection import inspect_tape
from .opening import read_start_info
from .repair_plan import (
    CompleteRedaction,
    CutJournal,
    CutTail,
    DiscardLeftover,
    NamePhase,
    QuarantineBlob,
    RecordTail,
    RepairAction,
    SetCurrent,
    StructureAction,
    WriteInfo,
    WriteJournal,
    find_lost_phases,
    rebuild_journal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..store.disk import Folder
    from ..store.store import Store
    from ..store.tape import Tape


class CompletedAction(NamedTuple):
    """An action that was done."""

    action: RepairAction
    undo: str
    """The shell command that undoes it, run in the tape's folder; empty where none does."""


def repair_tape(
    store: Store, tape: Tape, actions: Iterable[RepairAction]
) -> Iterator[CompletedAction]:
    """Execute actions in order, and yield each with its undo command.

    Raises Busy when the file to repair is being written, and Damaged where the tape is no longer
    as the plan found it; the actions yielded before stay done.
    """
    with tape.notify_projection():
        if isinstance(tape.folder, TapeFolder):
            tape.folder.require_folder()
        for action in actions:
            yield CompletedAction(action, _apply_action(store, tape, action))


def _apply_action(store: Store, tape: Tape, action: RepairAction) -> str:
    """Execute an action and return the shell command that undoes it."""
    match action:
        case CutTail():
            return _cut_tail(tape, action)
        case RecordTail(phase, branch, name):
            if not _is_branch_end(tape, action):
                raise _build_changed_error(phase)
            with tape.writer(branch) as writer:
                size = writer.head.end
                why = (
                    "a torn tail was moved to quarantine; the program ended before it recorded that"
                )
                writer.append(Repair("torn", quarantine=name, why=why))
            return f"truncate -s {size} phases/{phase}/{ENTRIES}"
        case QuarantineBlob(file):
            _, shelf_name, digest = file.split("/")
            with (
                tape.folder.sub("blobs") as blobs,
                blobs.sub(shelf_name) as shelf,
                tape.folder.make("quarantine") as quarantine,
            ):
                copy_name = shelf.move_beside(digest, quarantine)
            tape.folder.sync()  # the first one made that folder
            return f"mv quarantine/{copy_name} {file}"
        case CompleteRedaction():
            with RedactionMark.place_mark(tape.folder) as mark:
                complete_redaction(tape)
                mark.remove()
            return ""
        case DiscardLeftover(path):
            return _discard_leftover(store, tape, path)
        case _:
            return _apply_structure_action(store, tape, action)


def _apply_structure_action(store: Store, tape: Tape, action: StructureAction) -> str:
    match action:
        case WriteInfo():
            info = read_start_info(tape.folder)
            fd = os.dup(tape.folder.fd)  # that of `tape` may return another tape.json
            with disk.Folder(fd, tape.folder.name, durable=tape.folder.durable) as folder:
                old = folder.read(INFO_NAME) if folder.has(INFO_NAME) else b""
                copy_name = quarantine_bytes(folder, INFO_NAME, old)
                _replace_file(folder, INFO_NAME, msgspec.json.encode(info) + b"\n")
            return f"cp quarantine/{copy_name} {INFO_NAME}"
        case WriteJournal():
            return _write_journal(store, tape)
        case CutJournal(end):
            before = {*list_quarantine(tape.folder)}
            with tape.journal.open_moves():  # as a writer does, which moves its tail to quarantine
                new = sorted({*list_quarantine(tape.folder)} - before)
            return " && ".join(_format_put_back(JOURNAL_NAME, end, name) for name in new)
        case NamePhase(name):
            phase = inspect_tape(store, tape, ()).phases.get(name)
            if phase is None:
                raise _build_changed_error(name)
            with _lock_branches(tape, [phase.branch]):
                size = len(tape.folder.read(JOURNAL_NAME))
                with tape.journal.open_moves() as moves:
                    if name not in moves.refs.phases():
                        moves.branch(phase.branch, name, None, phase.why)
            return f"truncate -s {size} {JOURNAL_NAME}"
        case SetCurrent(branch):
            size = len(tape.folder.read(JOURNAL_NAME))
            with tape.journal.open_moves() as moves:
                moves.current(branch)
            return f"truncate -s {size} {JOURNAL_NAME}"
        case _:
            assert_never(action)


@contextmanager
def _lock_branches(tape: Tape, names: Iterable[str]) -> Iterator[None]:
    """Hold the locks of branches; raise Busy if one is being written."""
    with ExitStack() as stack:
        for name in sorted(set(names)):
            stack.enter_context(hold_lock_in(tape.folder, name, wait=0))
        yield


def _replace_file(folder: Folder, name: str, data: bytes) -> None:
    """Write the file `name` with these bytes, whole or not at all: write, sync, rename, sync."""
    temporary = f".{name.partition('.')[0]}.new"
    with suppress(FileNotFoundError):  # left by a process killed here
        os.unlink(temporary, dir_fd=folder.fd)
    folder.create(temporary, data)
    os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    folder.sync()


def _write_journal(store: Store, tape: Tape) -> str:
    seen = inspect_tape(store, tape, ())
    known = {phase.branch for phase in seen.phases.values()} | seen.refs.branches.keys()
    with _lock_branches(tape, known), hold_lock_in(tape.folder, "refs"):
        now = inspect_tape(store, tape, ())
        old = now.journal or b""
        copy_name = quarantine_bytes(tape.folder, "refs.damaged", old)
        _replace_file(tape.folder, JOURNAL_NAME, rebuild_journal(old, find_lost_phases(now)))
    return f"cp quarantine/{copy_name} {JOURNAL_NAME}"


def _format_put_back(file: str, end: int, copy_name: str) -> str:
    return f"truncate -s {end} {file} && cat quarantine/{copy_name} >> {file}"


def _is_branch_end(tape: Tape, action: CutTail | RecordTail) -> bool:
    moves = tape.refs().branches.get(action.branch, ())
    return bool(moves) and moves[-1].phase == action.phase and moves[-1].pin is None


def _build_changed_error(phase: str) -> Damaged:
    return Damaged(f"{phase} changed meanwhile; run `tape fsck` again", file=phase)


def _cut_tail(tape: Tape, action: CutTail) -> str:
    """Move the torn tail of a phase to quarantine and record it.

    Opening a branch for writing does so; where the branch no longer ends in the phase, no writer
    will open it, and the same is done here.
    """
    file_name = f"phases/{action.phase}/{ENTRIES}"
    if _is_branch_end(tape, action):
        with tape.writer(action.branch) as writer:
            return _format_put_back(file_name, action.end, writer.torn) if writer.torn else ""
    with (
        _lock_branches(tape, [action.branch]),
        tape.phases.folder.sub(action.phase) as folder,
        PhaseFile(folder.file(ENTRIES, os.O_RDWR | os.O_APPEND), action.phase) as file,
    ):
        tail = file.tail()
        if (tail.end, tail.size) != (action.end, action.size):
            raise _build_changed_error(action.phase)
        copy_name = quarantine_bytes(
            tape.folder, f"{action.phase}.{tail.end}", file.read(tail.end, tail.size)
        )
        os.ftruncate(file.fd, tail.end)
        if (last := tail.header) is not None:
            size = tail.size - tail.end
            why = f"{size} bytes after the last complete line were moved to quarantine"
            time = choose_entry_time(parse_timestamp(last.time), tape.clock())
            data = encode_payload(Repair("torn", quarantine=copy_name, why=why))
            line = encode_line("repair", last.id, last.n + 1, format_timestamp(time), data)[1]
            disk.append_bytes(file.fd, line, tail.end)
        if tape.folder.durable:
            disk.sync_file(file.fd)
    return _format_put_back(file_name, action.end, copy_name)


def _discard_leftover(store: Store, tape: Tape, path: str) -> str:
    parent, _, name = path.rpartition("/")
    with (
        disk.Folder.open(store.path / parent, durable=store.durable) as source,
        disk.Folder.open(store.path, durable=store.durable) as home,
        home.make("trash") as to,
    ):
        trash_name = source.move_beside(name, to)
    inside = f"tapes/{tape.folder.name}/"
    back = path.removeprefix(inside) if path.startswith(inside) else f"../../{path}"
    return f"mv ../../trash/{trash_name} {back}"
