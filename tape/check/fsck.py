"""fsck: what each finding of verify means for people, and the repair of what can be repaired.

Invariant: no data is lost. What a repair removes is first stored in `quarantine/` or in the store's
trash, and damaged lines with good lines after them are never touched.

Replacing a file atomically: write a temporary file, sync, rename, sync.

Rewriting tape.json.

Executing repair actions, under the locks of writers; each can be undone afterwards.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, assert_never

import msgspec

from ..clock import choose_entry_time, format_timestamp, parse_timestamp
from ..errors import Damaged
from ..model.entries import Repair
from ..model.line import encode_line, encode_payload
from ..store import disk
from ..store import store as trash
from ..store.locks import hold_lock
from ..store.phase import ENTRIES, PhaseFile
from ..store.redaction import RedactionMark, complete_redaction
from ..store.refs import JOURNAL_NAME, quarantine_bytes
from ..store.tape import INFO_NAME, TapeInfo
from .explain import Explanation, explain_finding
from .inspection import Inspection, inspect_tape
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
    describe_action,
    find_lost_phases,
    plan_repairs,
    rebuild_journal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..model.line import Header
    from ..store.disk import Folder
    from ..store.store import Store
    from ..store.tape import Tape


__all__ = [
    "CompletedAction",
    "Explanation",
    "Inspection",
    "RepairAction",
    "describe_action",
    "explain_finding",
    "inspect_tape",
    "plan_repairs",
    "rebuild_journal",
    "repair_tape",
]


def replace_file(folder: Folder, name: str, data: bytes) -> None:
    """Write the file `name` with these bytes, whole or not at all."""
    temporary = f".{name.partition('.')[0]}.new"
    with suppress(FileNotFoundError):  # left by a process killed here
        os.unlink(temporary, dir_fd=folder.fd)
    folder.create(temporary, data)
    os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    folder.sync()


def replace_info(folder: Folder, info: TapeInfo) -> str:
    """Rewrite tape.json and return the name of the old one in quarantine."""
    old = folder.read(INFO_NAME) if folder.has(INFO_NAME) else b""
    kept = quarantine_bytes(folder, INFO_NAME, old)
    replace_file(folder, INFO_NAME, msgspec.json.encode(info) + b"\n")
    return kept


class CompletedAction(NamedTuple):
    """An action that was done."""

    action: RepairAction
    undo: str
    """The shell command that undoes it, run in the tape's folder; empty where none does."""


def repair_tape(
    store: Store, tape: Tape, actions: Iterable[RepairAction]
) -> Iterator[CompletedAction]:
    """Execute actions in order, and yield each with its undo command.

    Raises Busy when the file to repair is being written; the actions yielded before stay done.
    """
    with tape.notify_projection():
        for action in actions:
            yield CompletedAction(action, _apply_action(store, tape, action))


def _apply_action(store: Store, tape: Tape, action: RepairAction) -> str:
    """Execute an action and return the shell command that undoes it."""
    match action:
        case CutTail():
            return _cut_tail(tape, action)
        case RecordTail():
            return _record_tail(tape, action)
        case QuarantineBlob(file):
            return _quarantine_blob(tape, file)
        case CompleteRedaction():
            return _complete_redaction(tape)
        case DiscardLeftover(path):
            return _discard_leftover(store, tape, path)
        case _:
            return _apply_structure_action(store, tape, action)


def _apply_structure_action(store: Store, tape: Tape, action: StructureAction) -> str:
    match action:
        case WriteInfo():
            return _write_info(tape)
        case WriteJournal():
            return _write_journal(store, tape)
        case CutJournal(end):
            return _cut_journal(tape, end)
        case NamePhase(phase):
            return _name_phase(store, tape, phase)
        case SetCurrent(branch):
            return _append_journal_line(tape, partial(_set_current, tape, branch))
        case _:
            assert_never(action)


@contextmanager
def _lock_branches(tape: Tape, names: Iterable[str]) -> Iterator[None]:
    """Hold the locks of branches; raise Busy if one is being written."""
    with ExitStack() as stack:
        locks = stack.enter_context(tape.folder.make("locks"))
        for name in sorted(set(names)):
            stack.enter_context(hold_lock(locks, name, wait=0))
        yield


def _write_info(tape: Tape) -> str:
    info = read_start_info(tape.folder)
    fd = os.dup(tape.folder.fd)  # the real folder: that of `tape` may return another tape.json
    with disk.Folder(fd, tape.folder.name, durable=tape.folder.durable) as folder:
        return f"cp quarantine/{replace_info(folder, info)} {INFO_NAME}"


def _write_journal(store: Store, tape: Tape) -> str:
    seen = inspect_tape(store, tape, ())
    known = {phase.branch for phase in seen.phases.values()} | seen.refs.branches.keys()
    with _lock_branches(tape, known), tape.folder.make("locks") as locks, hold_lock(locks, "refs"):
        now = inspect_tape(store, tape, ())
        old = now.journal or b""
        kept = quarantine_bytes(tape.folder, "refs.damaged", old)
        replace_file(tape.folder, JOURNAL_NAME, rebuild_journal(old, find_lost_phases(now)))
    return f"cp quarantine/{kept} {JOURNAL_NAME}"


def _cut_journal(tape: Tape, end: int) -> str:
    """Open the journal as a writer does, which moves its tail to quarantine."""
    before = _list_quarantine(tape)
    with tape.journal.open_moves():
        kept = sorted(_list_quarantine(tape) - before)
    return " && ".join(_format_put_back(JOURNAL_NAME, end, name) for name in kept)


def _list_quarantine(tape: Tape) -> set[str]:
    with tape.folder.make("quarantine") as quarantine:
        return set(quarantine.names())


def _format_put_back(file: str, end: int, kept: str) -> str:
    return f"truncate -s {end} {file} && cat quarantine/{kept} >> {file}"


def _name_phase(store: Store, tape: Tape, name: str) -> str:
    """Write the line of a phase under the locks of its branch and of the journal."""
    phase = inspect_tape(store, tape, ()).phases.get(name)
    if phase is None:
        raise _build_changed_error(name)
    with _lock_branches(tape, [phase.branch]):
        return _append_journal_line(
            tape, partial(_commit_phase, tape, name, phase.branch, phase.why)
        )


def _commit_phase(tape: Tape, phase: str, branch: str, why: str) -> None:
    with tape.journal.open_moves() as moves:
        if phase not in moves.refs.phases():
            moves.branch(branch, phase, None, why)


def _set_current(tape: Tape, branch: str) -> None:
    with tape.journal.open_moves() as moves:
        moves.current(branch)


def _append_journal_line(tape: Tape, add: partial[None]) -> str:
    size = len(tape.folder.read(JOURNAL_NAME))
    add()
    return f"truncate -s {size} {JOURNAL_NAME}"


def _cut_tail(tape: Tape, action: CutTail) -> str:
    file = f"phases/{action.phase}/{ENTRIES}"
    kept = (
        _cut_by_writer(tape, action)
        if _is_branch_end(tape, action)
        else _cut_left_phase(tape, action)
    )
    return _format_put_back(file, action.end, kept) if kept else ""


def _is_branch_end(tape: Tape, action: CutTail | RecordTail) -> bool:
    moves = tape.refs().branches.get(action.branch, ())
    return bool(moves) and moves[-1].phase == action.phase and moves[-1].pin is None


def _cut_by_writer(tape: Tape, action: CutTail) -> str:
    """Open the branch for writing, which cuts the tail and records it."""
    with tape.writer(action.branch) as writer:
        return writer.torn or ""


def _cut_left_phase(tape: Tape, action: CutTail) -> str:
    """Cut the tail of a phase that its branch no longer uses, so that no writer will open it."""
    with (
        _lock_branches(tape, [action.branch]),
        tape.phases.folder.sub(action.phase) as folder,
        PhaseFile(folder.file(ENTRIES, os.O_RDWR | os.O_APPEND), action.phase) as file,
    ):
        tail = file.tail()
        if (tail.end, tail.size) != (action.end, action.size):
            raise _build_changed_error(action.phase)
        kept = quarantine_bytes(
            tape.folder, f"{action.phase}.{tail.end}", file.read(tail.end, tail.size)
        )
        os.ftruncate(file.fd, tail.end)
        if tail.header is not None:
            disk.append_bytes(
                file.fd,
                _encode_repair_line(tape, tail.header, kept, tail.size - tail.end),
                tail.end,
            )
        if tape.folder.durable:
            disk.sync_file(file.fd)
    return kept


def _record_tail(tape: Tape, action: RecordTail) -> str:
    if not _is_branch_end(tape, action):
        raise _build_changed_error(action.phase)
    with tape.writer(action.branch) as writer:
        size = writer.head.end
        why = "a torn tail was moved to quarantine; the program ended before it recorded that"
        writer.append(Repair("torn", quarantine=action.kept, why=why))
    return f"truncate -s {size} phases/{action.phase}/{ENTRIES}"


def _build_changed_error(phase: str) -> Damaged:
    return Damaged(f"{phase} changed meanwhile; run `tape fsck` again", file=phase)


def _encode_repair_line(tape: Tape, last: Header, kept: str, size: int) -> bytes:
    """Return the line of the repair entry that records a cut tail."""
    why = f"{size} bytes after the last complete line were moved to quarantine"
    time = choose_entry_time(parse_timestamp(last.time), tape.clock())
    data = encode_payload(Repair("torn", quarantine=kept, why=why))
    return encode_line("repair", last.id, last.n + 1, format_timestamp(time), data)[1]


def _quarantine_blob(tape: Tape, file: str) -> str:
    _, shelf_name, digest = file.split("/")
    with (
        tape.folder.sub("blobs") as blobs,
        blobs.sub(shelf_name) as shelf,
        tape.folder.make("quarantine") as quarantine,
    ):
        kept = trash.move_tape_folder(digest, shelf, quarantine)
    return f"mv quarantine/{kept} {file}"


def _complete_redaction(tape: Tape) -> str:
    with RedactionMark.place_mark(tape.folder) as mark:
        complete_redaction(tape)
        mark.remove()
    return ""


def _discard_leftover(store: Store, tape: Tape, path: str) -> str:
    parent, _, name = path.rpartition("/")
    with (
        disk.Folder.open(store.path / parent, durable=store.durable) as source,
        disk.Folder.open(store.path, durable=store.durable) as home,
        home.make("trash") as to,
    ):
        kept = trash.move_tape_folder(name, source, to)
    inside = f"tapes/{tape.folder.name}/"
    back = path.removeprefix(inside) if path.startswith(inside) else f"../../{path}"
    return f"mv ../../trash/{kept} {back}"
