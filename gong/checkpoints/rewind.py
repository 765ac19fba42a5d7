"""Undo, redo and rewind: a session's talk and files go back to an earlier entry, and forward again.

Files are restored before the talk moves, and a checkpoint of what they are now comes first, on the
line that is left. So nothing is lost, and each step that a kill leaves undone is done by the same
command again:

    checkpoint (why restore) appended, synced     nothing has changed yet
    each file restored                            the rest is planned again, the same way
    the branch moved, one line in the journal     done

`redo` reverses the newest undo or rewind that is not reversed yet, if nothing was added since.
What it goes by:

    undo or rewind of             is undone by
    ----------------------------  ----------------------------------------------------------------
    talk and files, or talk       moving the branch to where it was; the files become what the
                                  checkpoint at the end of that line says
    files                         restoring the files of the checkpoint at the head

So it reads both backwards from the head: the checkpoints there, and the moves of the branch. Two
undos and two redos of a branch whose entries are a, b, c, each with a checkpoint `!`:

    command   line of the head   head then    its moves
    --------  -----------------  -----------  -------------------------------------------
    undo      a b c !            b            pin b (undo)
    undo      a b !              a            pin b (undo), pin a (undo)
    redo      a !                b            …, pin b: the newest undo is reversed
    redo      a b !              c            …, pin c: the one before it
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from tape.errors import NotFound, UsageError
from tape.files.changes import list_file_changes
from tape.files.plan import FileRestore, RestorePlan, plan_restore
from tape.files.states import is_same_version
from tape.files.work_folder import find_work_folder
from tape.model.entries import (
    BlobRef,
    Branch,
    Checkpoint,
    Context,
    FileState,
    Meta,
    OtherEnvironment,
    SavedFile,
    Text,
    ToolStart,
    User,
    join_texts,
)

from ..errors import NothingToUndo
from ..tools.agents import AGENT_TOOLS
from .agent_changes import list_agent_runs, merge_changes
from .file_changes import NOT_RECORDED
from .local_changes import FindPlace, LocalChanges, find_folder, find_local_changes
from .restore import (
    build_restore_patch,
    describe_disk_file,
    find_obstacle,
    is_below,
    look_at_file,
    read_present_file,
    restore_files,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tape.files.changes import KnownVersion
    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape
    from tape.store.writer import Writer

    from .place_disk import PlaceDisk

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
    """The folder in force at the head, or what stands for it on this machine."""
    made_at: str = ""
    """Id of the newest entry of the branch when the plan was made."""
    place: Meta | None = None
    """What an entry says of `folder` before files go back there, where the head does not."""
    disk: PlaceDisk | None = None
    """The files of the other place that it is about."""
    unrecorded: tuple[str, ...] = ()
    """Other environments in which commands ran; what they changed stays there."""

    @property
    def is_empty(self) -> bool:
        """Whether the branch stays where it is, and no file is concerned."""
        return self.target.entry == self.made_at and not self.files.files


class RewindReport(NamedTuple):
    """What was done."""

    plan: RewindPlan
    restored: tuple[FileRestore, ...]
    kept: tuple[FileRestore, ...]
    """Conflicts and lost files: they are as they were."""
    failed: dict[str, str]
    """Why files could not be restored, by path."""
    is_unfinished: bool = False
    """Whether the same again can restore them: the disk was full, say. The talk has not moved."""


def plan_undo(
    tape: Tape,
    branch: str,
    prompts: int = 1,
    scope: Scope = "both",
    overwrite: Collection[str] = (),
    find_place: FindPlace | None = None,
    disk: PlaceDisk | None = None,
) -> RewindPlan:
    """Return what going back to before the newest prompts would do.

    With `find_place`, what was changed on another machine, or in a folder that is gone, goes back
    in the checkout of the same repository that it returns. Raises NothingToUndo where the branch
    has fewer prompts, and FilesElsewhere where files that would go back are in another environment,
    or have no place on this machine.
    """
    head = tape.head(branch)
    try:
        hit = tape.find_before_prompt(head, prompts)
    except NotFound as error:
        raise NothingToUndo(f"nothing to undo: {error}") from error
    if hit.tape is not tape:
        raise NothingToUndo("nothing to undo: that prompt is in the tape this one was forked from")
    return _plan_back(tape, head, hit.head, "undo", scope, overwrite, find_place, disk)


def plan_rewind(
    tape: Tape,
    branch: str,
    target: Head,
    scope: Scope = "both",
    overwrite: Collection[str] = (),
    find_place: FindPlace | None = None,
    disk: PlaceDisk | None = None,
) -> RewindPlan:
    """Return what going back to an entry of the branch would do; at a prompt it is before it.

    `find_place` is that of `plan_undo`. Raises UsageError where the entry is not on the branch.
    """
    head = tape.head(branch)
    steps = head.header.n - target.header.n
    with suppress(NotFound):
        hit = tape.find_ancestor(head, steps) if steps >= 0 else None
        if hit is not None and hit.tape is tape and hit.head.entry == target.entry:
            if target.header.type == User.entry_type:
                hit = tape.find_ancestor(head, steps + 1)
            if hit.tape is tape:
                return _plan_back(
                    tape, head, hit.head, "rewind", scope, overwrite, find_place, disk
                )
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
    find_place: FindPlace | None,
    disk: PlaceDisk | None,
) -> RewindPlan:
    entries = tape.entries(head)
    since = [change for change in list_file_changes(entries) if change.n > target.header.n]
    files, here = RestorePlan(()), LocalChanges((), find_folder(entries))
    unrecorded: tuple[str, ...] = ()
    if scope != "talk":
        runs = list_agent_runs(tape, entries, target.header.n, find_work_folder(entries).cwd)
        since = merge_changes(entries, since, runs)
        here = find_local_changes(tape, entries, since, find_place, disk)
        files = _plan_files(here, overwrite, disk)
        later = [entry for entry in entries if entry.n > target.header.n]
        unrecorded = _list_unrecorded_places([*later, *(e for run in runs for e in run.entries)])
    prompts = () if scope == "files" else _list_prompts(entries, target.header.n)
    to = head if scope == "files" else target
    return RewindPlan(
        *(reason, scope, to, target.entry, prompts, files, here.folder, head.entry, here.place),
        disk=disk,
        unrecorded=unrecorded,
    )


def _list_unrecorded_places(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the other environments where calls ran whose changes to files nobody recorded.

    What is recorded of a sub-agent is among its own calls.
    """
    started = [entry.data for entry in entries if isinstance(entry.data, ToolStart)]
    recorded = {
        entry.data.call_id
        for entry in entries
        if isinstance(entry.data, Checkpoint) and NOT_RECORDED not in entry.data.not_covered
    }
    return tuple(
        dict.fromkeys(
            start.environment.name
            for start in started
            if start.environment is not None
            and start.replay != "safe"
            and start.name not in AGENT_TOOLS
            and start.call_id not in recorded
        )
    )


def plan_redo(
    tape: Tape,
    branch: str,
    overwrite: Collection[str] = (),
    find_place: FindPlace | None = None,
    disk: PlaceDisk | None = None,
) -> RewindPlan:
    """Return what reversing the newest undo or rewind of a branch would do.

    One that was killed half-way counts; a redo that was is completed. `find_place` is that of
    `plan_undo`. Raises NothingToUndo where there is none, or entries were added since.
    """
    plan = _plan_redo(tape, branch, overwrite, find_place, disk)
    return plan._replace(made_at=tape.head(branch).entry)


def _plan_redo(
    tape: Tape,
    branch: str,
    overwrite: Collection[str],
    find_place: FindPlace | None,
    disk: PlaceDisk | None,
) -> RewindPlan:
    head = tape.head(branch)
    entries = tape.entries(head)
    if unfinished := _count_unfinished(entries):
        head, entries = tape.find_ancestor(head, unfinished).head, entries[:-unfinished]
    newest = entries[-1].data
    if isinstance(newest, Checkpoint) and newest.why == "restore" and newest.moves_talk:
        if newest.reason != "redo":  # the branch was not moved any more
            return _plan_forward(tape, head, head, newest, overwrite, find_place, disk)
        head = _find_line_end(tape, head)
    else:
        end, restore = _find_restored_files(entries, disk)
        if restore is not None:
            return _plan_forward(tape, head, head, restore, overwrite, find_place, disk, end)
        head = tape.find_ancestor(head, len(entries) - end).head
    left = _find_left_line(tape, branch, head)
    last = tape.entry(left).data
    if isinstance(last, Checkpoint) and last.moves_talk and last.target == head.entry:
        return _plan_forward(tape, head, left, last, overwrite, find_place, disk)
    prompts = _list_prompts(tape.entries(left), head.header.n)
    return RewindPlan("redo", "talk", left, left.entry, prompts, RestorePlan(()), "/")


def _count_unfinished(entries: Sequence[Entry]) -> int:
    """Return how many entries at the end of a path a restore left that was killed very early.

    Before its checkpoint it had changed nothing: an opened phase and a note remain.
    """
    count = 0
    while count < len(entries) and _is_restore_note(entries[-1 - count]):
        count += 1
    return count


def _find_left_line(tape: Tape, branch: str, at: Head) -> Head:
    """Return the head that the newest undo or rewind left that is not reversed yet.

    `at` is where the branch is: each move has to lead to where the next one began.
    """
    moves = tape.refs().branches[branch]
    reversals = 0
    for ago, move in enumerate(reversed(moves[1:])):
        if move.pin is None:  # a phase that begins with the checkpoint of a restore, or with work
            continue
        if move.pin.entry != at.entry or move.why not in {"undo", "rewind", "go-on"}:
            break
        left = tape.head(branch, moves_ago=ago + 1)
        if move.why != "go-on" and not reversals:
            return left
        reversals += 1 if move.why == "go-on" else -1
        at = _find_line_end(tape, left)
    raise NothingToUndo(
        "nothing to redo: the newest change of this branch is not an undo or rewind; "
        "what was left is on the tape: tape log --graph shows it, tape fork REF continues from it"
    )


def _find_restored_files(
    entries: Sequence[Entry], disk: PlaceDisk | None = None, *, completes: bool = True
) -> tuple[int, Checkpoint | None]:
    """Return the newest restore of files alone that is not reversed, and where it ends.

    Without one, the place is before the restores that end the path. If `completes`, a redo at the
    end does not count that was killed before all files were restored.
    """
    end, reversals = len(entries), 0
    while isinstance(restore := entries[end - 1].data, Checkpoint):
        if restore.why != "restore" or restore.moves_talk:
            break
        if restore.reason != "redo" and not reversals:
            return end, restore
        begin = _find_begin(entries, end, restore)
        if restore.reason != "redo":
            reversals -= 1
        elif not completes or end < len(entries) or _is_done(entries[begin:end], disk):
            reversals += 1
        end = begin
    return end, None


def _is_done(entries: Sequence[Entry], disk: PlaceDisk | None) -> bool:
    """Return whether no file is still as it was before a restore that changed it."""
    for change in list_file_changes(entries):
        if change.environment is not None and not (disk and disk.take_name(change.environment)):
            continue
        now = look_at_file(change.path, disk)
        if is_same_version(now, change.before) and not is_same_version(now, change.after):
            return False
    return True


def _plan_forward(
    tape: Tape,
    head: Head,
    left: Head,
    restore: Checkpoint,
    overwrite: Collection[str],
    find_place: FindPlace | None,
    disk: PlaceDisk | None,
    end: int | None = None,
) -> RewindPlan:
    """Return how to reverse a restore on the line of `left`, whose `end` it is by default."""
    entries = tape.entries(left)
    begin = _find_begin(entries, len(entries) if end is None else end, restore)
    base = entries[begin - 1]
    done = [change for change in list_file_changes(entries) if change.n > base.n]
    here = find_local_changes(tape, entries, done, find_place, disk)
    files = _plan_files(here, overwrite, disk)
    if not restore.moves_talk:
        return RewindPlan(
            "redo", "files", head, base.id, (), files, here.folder, place=here.place, disk=disk
        )
    before = tape.find_ancestor(left, len(entries) - begin).head
    prompts = _list_prompts(entries, head.header.n)
    return RewindPlan(
        "redo",
        "both",
        before,
        before.entry,
        prompts,
        files,
        here.folder,
        place=here.place,
        disk=disk,
    )


def _find_line_end(tape: Tape, left: Head) -> Head:
    """Return the head that a line had before the restores that end it, as far as they cancel."""
    entries = tape.entries(left)
    end = len(entries) - _count_unfinished(entries)
    last = entries[end - 1].data
    if isinstance(last, Checkpoint) and last.moves_talk:
        end = _find_begin(entries, end, last)
    end, _ = _find_restored_files(entries[:end], completes=False)
    return tape.find_ancestor(left, len(entries) - end).head


def _find_begin(entries: Sequence[Entry], end: int, restore: Checkpoint) -> int:
    """Return where a restore begins whose last entry is before `end`.

    One that was interrupted and completed later has several checkpoints.
    """
    while _is_part_of_restore(entries[end - 1], restore):
        end -= 1
    return end


def _is_part_of_restore(entry: Entry, restore: Checkpoint) -> bool:
    """Return whether an entry was written by the same undo or rewind as a checkpoint."""
    match entry.data:
        case Checkpoint(why="restore", reason=reason, target=target, moves_talk=moves_talk):
            same = (restore.reason, restore.target, restore.moves_talk)
            return (reason, target, moves_talk) == same
        case _:
            return _is_restore_note(entry)


def _is_restore_note(entry: Entry) -> bool:
    """Return whether an entry is one that a restore writes before its checkpoint."""
    match entry.data:
        case Branch() | Meta(cwd=str()):
            return True
        case Context(origin="note", content=(Text(text=text),)):
            return text.startswith(_NOTE)
        case _:
            return False


def _plan_files(
    here: LocalChanges, overwrite: Collection[str], disk: PlaceDisk | None
) -> RestorePlan:
    changes, folder = here.changes, here.folder
    named = {os.path.normpath(os.path.join(folder, path)) for path in overwrite}
    plan = plan_restore(changes, lambda path: look_at_file(path, disk), named)
    going = {
        file.path
        for file in plan.select("restore")
        if file.target is None and not find_obstacle(file.path, folder, (), disk)
    }

    def look(path: str) -> KnownVersion | None:
        return None if is_below(path, going) else look_at_file(path, disk)

    plan = plan_restore(changes, look, named)
    files = []
    for file in plan.files:
        why, status = "", file.status
        if is_below(file.path, going):  # nothing is there, so nothing can be lost
            status = "restore" if status == "conflict" else status
        elif status not in {"same", "lost"}:
            why = find_obstacle(file.path, folder, going, disk)
        unreadable = file.now is not None and file.now.digest is None
        if unreadable and status == "restore":
            why = why or (file.now.why if file.now else "") or "it cannot be read"
        status = "conflict" if why else status
        files.append(
            file._replace(status=status, why=why or ("" if status == "restore" else file.why))
        )
    unknown = named - {file.path for file in plan.files}
    if unknown:
        raise UsageError(f"{min(unknown)} is not among the files that would be restored")
    files += [
        FileRestore(path, "conflict", None, None, f"it was changed in {where}")
        for path, where in here.elsewhere.items()
    ]
    return RestorePlan(tuple(files))


def apply_plan(tape: Tape, writer: Writer, plan: RewindPlan) -> RewindReport:
    """Do what a plan says; `writer` holds the branch it was made for.

    A file that changed after the plan was made is left alone, and counts as failed. Where the disk
    or the machine kept files from being restored, the talk stays, so that the same plan made again
    completes it. Raises
    UsageError if entries were added since, and WriteFailed, both before any file has changed, if
    the files as they are now cannot be kept.
    """
    if tape.head(writer.branch).entry != plan.made_at:
        raise UsageError(f"entries were added since this {plan.reason} was planned: plan it again")
    planned = plan.files.select("restore")
    kept_states = {file: _keep_file(tape, file, plan.folder, plan.disk) for file in planned}
    todo = tuple(file for file in planned if kept_states[file] is not None)
    late = {file.path: "it was changed meanwhile" for file in planned if file not in todo}
    if todo:
        moves_talk = plan.scope == "both"
        if plan.place is not None:
            writer.append(plan.place)
        if not moves_talk:
            writer.append(Context("user", "note", (Text(text=_build_note(plan, todo)),)))
        for where, states in _group_states(kept_states, plan.disk).items():
            writer.append(
                Checkpoint(
                    states,
                    why="restore",
                    reason=plan.reason,
                    target=plan.state,
                    moves_talk=moves_talk,
                    environment=where,
                )
            )
        writer.barrier()
    failures = restore_files(
        todo, lambda digest: tape.load(BlobRef(digest, 0)), plan.folder, plan.disk
    )
    failed = late | failures.why
    # The talk stays where the same command can complete the files: they belong together
    if plan.scope != "files" and not failures.may_pass:
        writer.rewind(plan.target, "go-on" if plan.reason == "redo" else plan.reason)
    done = tuple(file for file in planned if file.path not in failed)
    skipped = plan.files.select("conflict") + plan.files.select("lost")
    return RewindReport(plan, done, skipped, failed, failures.may_pass)


def build_file_patches(
    tape: Tape, plan: RewindPlan, *, with_bytes: bool = True
) -> dict[str, bytes]:
    """Return what restoring does to each file, as a patch by absolute path: from now, to then.

    Of a conflict it is what naming it would do. Paths in a patch are relative to the folder in
    force, absolute outside of it. Binary files are named in one line, or `with_bytes` given for
    `git apply`. A file whose bytes are not known, or that changed meanwhile, has no patch.
    """
    patches = {}
    for file in plan.files.files:
        if file.status in {"restore", "conflict"}:
            with suppress(NotFound):
                patches[file.path] = build_restore_patch(
                    file,
                    lambda digest: tape.load(BlobRef(digest, 0)),
                    plan.folder,
                    plan.disk,
                    with_bytes=with_bytes,
                )
    return patches


def _keep_file(
    tape: Tape, file: FileRestore, folder: str, disk: PlaceDisk | None
) -> FileState | None:
    """Store a file as it is on the disk, and return it with what it becomes.

    None if it is not any more as it was when the plan was made.
    """
    is_behind_link = file.now is None and find_obstacle(file.path, folder, (), disk)
    disk_file, before = None if is_behind_link else read_present_file(file.path, disk), None
    if describe_disk_file(disk_file) != file.now:
        return None
    if disk_file is not None and disk_file.data is not None:
        before = SavedFile.from_blob(tape.blobs.put(disk_file.data))
    elif disk_file is not None:
        before = SavedFile.from_skipped(disk_file.digest, disk_file.size, disk_file.why)
    target, after = file.target, None
    if target is not None and target.blob is not None:
        data = tape.load(BlobRef(target.blob, 0))
        after = SavedFile.from_blob(tape.blobs.put(data))
    elif target is not None and target.text is not None:
        after = SavedFile.from_blob(tape.blobs.put(target.text.encode("utf-8", "surrogatepass")))
    elif target is not None:  # only its mode changes
        after = SavedFile.from_skipped(
            target.digest, disk_file.size if disk_file else 0, target.why or ""
        )
    mode = disk_file.mode if disk_file else None
    return FileState(file.path, before, mode, after, target.mode if target else None)


def _group_states(
    states: Mapping[FileRestore, FileState | None], disk: PlaceDisk | None
) -> dict[OtherEnvironment | None, tuple[FileState, ...]]:
    """Return the states of files by the place where they are, None for this machine."""
    groups: dict[OtherEnvironment | None, tuple[FileState, ...]] = {}
    for file, state in states.items():
        if state is None:
            continue
        where, own = None, state
        if disk is not None and disk.has_path(file.path):
            where = disk.describe(file.path)
            own = replace(state, path=disk.split_path(file.path)[1])
        groups[where] = (*groups.get(where, ()), own)
    return groups


def _build_note(plan: RewindPlan, files: Sequence[FileRestore]) -> str:
    paths = "\n".join(
        f"- {os.path.relpath(file.path, plan.folder)}{'' if file.target else ' (deleted)'}"
        for file in files
    )
    return f"{_NOTE} ({plan.reason}); read them again before you change them:\n{paths}"


def _list_prompts(entries: Sequence[Entry], after: int) -> tuple[str, ...]:
    """Return the first lines of the prompts deeper than `after`."""
    texts = (
        join_texts(entry.data.content).strip()
        for entry in entries
        if isinstance(entry.data, User) and entry.n > after
    )
    return tuple(text.partition("\n")[0] for text in texts)
