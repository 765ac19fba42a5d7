"""The way back: which files have to change so that they are as they were before some changes; pure.

What is done with a file depends on what is on the disk now:

    on the disk is                                        then
    ----------------------------------------------------  ------------------------------------
    what it was before the changes                        nothing: it is back already
    what the changes left, or what a restore among them   it is restored
    found or left
    anything else: somebody changed it since              a conflict: it is kept unless named
    (the bytes from before are not stored)                lost: it is kept, and `why` says so
    (a call that may have changed it did not end)         a conflict

So a restore that was killed half-way is completed by planning it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from .states import fold_changes, is_same_version, name_change

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from .changes import ChangeOp, KnownVersion, PathChange
    from .states import FileEffect

RestoreStatus = Literal["restore", "same", "conflict", "lost"]


class FileRestore(NamedTuple):
    """What is to be done with one file."""

    path: str
    status: RestoreStatus
    now: KnownVersion | None
    """The file on the disk."""
    target: KnownVersion | None
    """What it was before the changes, and is to be again."""
    why: str = ""
    """Why it is a conflict, or lost."""

    @property
    def op(self) -> ChangeOp:
        """What restoring does to the file on the disk: created, modified, deleted or mode."""
        return name_change(self.now, self.target)


class RestorePlan(NamedTuple):
    """What is to be done with each file, by path."""

    files: tuple[FileRestore, ...]

    def select(self, status: RestoreStatus) -> tuple[FileRestore, ...]:
        """Return the files of one status."""
        return tuple(file for file in self.files if file.status == status)


def plan_restore(
    changes: Iterable[PathChange],
    look: Callable[[str], KnownVersion | None],
    overwrite: Collection[str] = (),
) -> RestorePlan:
    """Return how to undo changes; `look` returns a file as it is on the disk now.

    Conflicts whose absolute paths are in `overwrite` are restored.
    """
    effects = fold_changes(changes)
    files = [_plan_file(effect, look(path)) for path, effect in sorted(effects.items())]
    return RestorePlan(
        tuple(
            file._replace(status="restore")
            if file.status == "conflict" and file.path in overwrite
            else file
            for file in files
        )
    )


def _plan_file(effect: FileEffect, now: KnownVersion | None) -> FileRestore:
    path, target = effect.path, effect.before
    if is_same_version(now, target):
        return FileRestore(path, "same", now, target)
    has_bytes = target is None or target.blob is not None or target.text is not None
    if not has_bytes and not _is_chmod(now, target):
        why = (target and target.why) or "its bytes from before were not stored"
        return FileRestore(path, "lost", now, target, why)
    if any(is_same_version(now, version) for version in (effect.after, *effect.restored)):
        return FileRestore(path, "restore", now, target)
    return FileRestore(path, "conflict", now, target, _describe_conflict(effect.after, now))


def _is_chmod(now: KnownVersion | None, target: KnownVersion | None) -> bool:
    """Return whether only the mode differs, for which no bytes are needed."""
    if now is None or target is None or now.digest is None:
        return False
    return now.digest == target.digest


def _describe_conflict(expected: KnownVersion | None, now: KnownVersion | None) -> str:
    if now is None:
        return "it was deleted since"
    if expected is None:
        return "it was created since"
    if expected.digest is None:
        return expected.why or "what the session left there is not known"
    return "it was changed since"
