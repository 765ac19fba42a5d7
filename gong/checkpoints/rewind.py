"""Undo, redo and rewind: a session's talk and files go back to an earlier entry, and forward again.

Files are restored before the talk moves, and a checkpoint of what they are now comes first, on the
line that is left. So nothing is lost, and each step that a kill leaves undone is done by the same
command again:

    checkpoint (why restore) appended, synced     nothing has changed yet
    each file restored                            the rest is planned again, the same way
    the branch moved, one line in the journal     done

`redo` reverses the newest undo or rewind, if nothing was added since. What it goes by:

    undo or rewind of             is undone by
    ----------------------------  ----------------------------------------------------------------
    talk and files, or talk       moving the branch to where it was; the files become what the
                                  checkpoint at the end of that line says
    files                         restoring the files of the checkpoint at the head
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from tape.errors import NotFound, UsageError
from tape.files.changes import PathChange, list_file_changes
from tape.files.plan import FileRestore, RestorePlan, plan_restore
from tape.model.entries import (
    BlobRef,
    Branch,
    Checkpoint,
    Context,
    FileState,
    Meta,
    SavedFile,
    Start,
    Text,
    User,
    join_texts,
)

from ..errors import NothingToUndo
from .restore import find_obstacle, look_at_file, read_present_file, restore_files

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape
    from tape.store.writer import Writer

_NOTE = "The user put these files back to an earlier state"
Scope = Literal["both", "talk", "files"]
"""What goes back."""
Reason = Literal["undo", "redo", "rewind"]


class RewindPlan(NamedTuple):
    """What going back, or forward again, would do."""

    reason: Reason
    scope: Scope
    target: Head
    """The entry the branch moves to; the head it has, where only files go back."""
    state: str
    """Id of the entry after which the files were as they are to be."""
    prompts: tuple[str, ...]
    """The first lines of the prompts that leave the branch, or come back, oldest first."""
    files: RestorePlan
    folder: str
    """The folder in force at the head."""


class RewindReport(NamedTuple):
    """What was done."""

    plan: RewindPlan
    restored: tuple[FileRestore, ...]
    kept: tuple[FileRestore, ...]
    """Conflicts and lost files: they are as they were."""
    failed: dict[str, str]
    """Why files could not be restored, by path."""


def plan_undo(
    tape: Tape,
    branch: str,
    prompts: int = 1,
    scope: Scope = "both",
    overwrite: Collection[str] = (),
) -> RewindPlan:
    """Return what going back to before the newest prompts would do.

    Raises NothingToUndo where the branch has fewer prompts.
    """
    head = tape.head(branch)
    try:
        hit = tape.find_before_prompt(head, prompts)
    except NotFound as error:
        raise NothingToUndo(f"nothing to undo: {error}") from error
    if hit.tape is not tape:
        raise NothingToUndo("nothing to undo: that prompt is in the tape this one was forked from")
    return _plan_back(tape, head, hit.head, "undo", scope, overwrite)


def plan_rewind(
    tape: Tape,
    branch: str,
    target: Head,
    scope: Scope = "both",
    overwrite: Collection[str] = (),
) -> RewindPlan:
    """Return what going back to an entry of the branch would do; at a prompt it is before it.

    Raises UsageError where the entry is not on the branch.
    """
    head = tape.head(branch)
    steps = head.header.n - target.header.n
    with suppress(NotFound):
        hit = tape.find_ancestor(head, steps) if steps >= 0 else None
        if hit is not None and hit.tape is tape and hit.head.entry == target.entry:
            if target.header.type == User.entry_type:
                hit = tape.find_ancestor(head, steps + 1)
            if hit.tape is tape:
                return _plan_back(tape, head, hit.head, "rewind", scope, overwrite)
    raise UsageError(
        f"{target.entry[:12]} is not an earlier entry of branch {branch}: "
        "tape switch chooses another branch"
    )


def _plan_back(
    tape: Tape,
    head: Head,
    target: Head,
    reason: Reason,
    scope: Scope,
    overwrite: Collection[str],
) -> RewindPlan:
    entries = tape.entries(head)
    folder = _find_folder(entries)
    since = [change for change in list_file_changes(entries) if change.n > target.header.n]
    files = RestorePlan(()) if scope == "talk" else _plan_files(since, folder, overwrite)
    prompts = () if scope == "files" else _list_prompts(entries, target.header.n)
    to = head if scope == "files" else target
    return RewindPlan(reason, scope, to, target.entry, prompts, files, folder)


def plan_redo(tape: Tape, branch: str, overwrite: Collection[str] = ()) -> RewindPlan:
    """Return what reversing the newest undo or rewind of a branch would do.

    Raises NothingToUndo where none was the last thing done.
    """
    head = tape.head(branch)
    newest, move = tape.entry(head).data, tape.refs().branches[branch][-1]
    if isinstance(newest, Checkpoint) and newest.why == "restore" and not newest.moves_talk:
        if newest.reason != "redo":
            return _plan_forward(tape, head, head, newest, overwrite)
    elif move.why in {"undo", "rewind"} and move.pin is not None and head.entry == move.pin.entry:
        left = tape.head(branch, moves_ago=1)
        last = tape.entry(left).data
        if isinstance(last, Checkpoint) and last.moves_talk and last.target == head.entry:
            return _plan_forward(tape, head, left, last, overwrite)
        prompts = _list_prompts(tape.entries(left), head.header.n)
        return RewindPlan("redo", "talk", left, left.entry, prompts, RestorePlan(()), "/")
    raise NothingToUndo("nothing to redo: the last thing done on this branch is no undo or rewind")


def _plan_forward(
    tape: Tape, head: Head, left: Head, restore: Checkpoint, overwrite: Collection[str]
) -> RewindPlan:
    """Return how to reverse a restore that ends the line of `left`.

    One that was interrupted and completed later has several checkpoints there.
    """
    entries = tape.entries(left)
    kept = len(entries)
    while _is_part_of_restore(entries[kept - 1], restore):
        kept -= 1
    base = entries[kept - 1]
    done = [change for change in list_file_changes(entries) if change.n > base.n]
    folder = _find_folder(entries)
    files = _plan_files(done, folder, overwrite)
    if not restore.moves_talk:
        return RewindPlan("redo", "files", head, base.id, (), files, folder)
    before = tape.find_ancestor(left, len(entries) - kept).head
    prompts = _list_prompts(entries, head.header.n)
    return RewindPlan("redo", "both", before, before.entry, prompts, files, folder)


def _is_part_of_restore(entry: Entry, restore: Checkpoint) -> bool:
    """Return whether an entry was written by the same undo or rewind as a checkpoint."""
    match entry.data:
        case Checkpoint(why="restore", target=target, moves_talk=moves_talk):
            return (target, moves_talk) == (restore.target, restore.moves_talk)
        case Branch():
            return True
        case Context(origin="note", content=(Text(text=text),)):
            return text.startswith(_NOTE)
        case _:
            return False


def _plan_files(
    changes: Sequence[PathChange], folder: str, overwrite: Collection[str]
) -> RestorePlan:
    named = {os.path.normpath(os.path.join(folder, path)) for path in overwrite}  # noqa: PTH118
    plan = plan_restore(changes, look_at_file, named)
    files = []
    for file in plan.files:
        why = "" if file.status in {"same", "lost"} else find_obstacle(file.path, folder)
        unreadable = file.now is not None and file.now.digest is None
        if unreadable and file.status == "restore":
            why = why or (file.now.why if file.now else "") or "it cannot be read"
        files.append(file._replace(status="conflict", why=why) if why else file)
    unknown = named - {file.path for file in plan.files}
    if unknown:
        raise UsageError(f"{min(unknown)} is not among the files that would be restored")
    return RestorePlan(tuple(files))


def apply_plan(tape: Tape, writer: Writer, plan: RewindPlan) -> RewindReport:
    """Do what a plan says; `writer` holds the branch it was made for.

    Raises WriteFailed before any file has changed, if the files as they are now cannot be kept.
    """
    todo = plan.files.select("restore")
    if todo:
        states = tuple(_keep_file(tape, file) for file in todo)
        moves_talk = plan.scope == "both"
        if not moves_talk:
            writer.append(Context("user", "note", (Text(text=_build_note(plan, todo)),)))
        writer.append(
            Checkpoint(
                states,
                why="restore",
                reason=plan.reason,
                target=plan.state,
                moves_talk=moves_talk,
            )
        )
        writer.barrier()
    failed = restore_files(todo, lambda digest: tape.load(BlobRef(digest, 0)), plan.folder)
    if plan.scope != "files":
        writer.rewind(plan.target, "go-on" if plan.reason == "redo" else plan.reason)
    done = tuple(file for file in todo if file.path not in failed)
    kept = plan.files.select("conflict") + plan.files.select("lost")
    return RewindReport(plan, done, kept, failed)


def _keep_file(tape: Tape, file: FileRestore) -> FileState:
    """Store a file as it is on the disk, and return it with what it becomes."""
    found, before = read_present_file(file.path), None
    if found is not None and found.data is not None:
        before = SavedFile.from_blob(tape.blobs.put(found.data))
    elif found is not None:
        before = SavedFile.from_skipped(found.digest, found.size, found.why)
    target, after = file.target, None
    if target is not None and target.blob is not None:
        data = tape.load(BlobRef(target.blob, 0))
        after = SavedFile.from_blob(tape.blobs.put(data))
    elif target is not None and target.text is not None:
        after = SavedFile.from_blob(tape.blobs.put(target.text.encode("utf-8", "surrogatepass")))
    elif target is not None:  # only its mode changes
        after = SavedFile.from_skipped(target.digest, found.size if found else 0, target.why or "")
    mode = found.mode if found else None
    return FileState(file.path, before, mode, after, target.mode if target else None)


def _build_note(plan: RewindPlan, files: Sequence[FileRestore]) -> str:
    paths = "\n".join(
        f"- {os.path.relpath(file.path, plan.folder)}{'' if file.target else ' (deleted)'}"
        for file in files
    )
    return f"{_NOTE} ({plan.reason}); read them again before you change them:\n{paths}"


def _find_folder(entries: Sequence[Entry]) -> str:
    folder = "/"
    for entry in entries:
        match entry.data:
            case Start(cwd=str(cwd)) | Meta(cwd=str(cwd)):
                folder = cwd
            case _:
                pass
    return os.path.normpath(folder)


def _list_prompts(entries: Sequence[Entry], after: int) -> tuple[str, ...]:
    """Return the first lines of the prompts deeper than `after`."""
    texts = (
        join_texts(entry.data.content).strip()
        for entry in entries
        if isinstance(entry.data, User) and entry.n > after
    )
    return tuple(text.partition("\n")[0] for text in texts)
