"""Undo, redo and rewind of an open session: plans to show, with what each does to files.

A plan changes nothing. `Session.apply_rewind` does what it says, as long as nothing was added to
the branch since; `gong.checkpoints.rewind` says what comes back and what is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.places.resolve import resolve_in_tape

from ..checkpoints import rewind
from ..env.wrappers import is_place
from ..errors import NothingToUndo

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..checkpoints.place_disk import PlaceDisk
    from ..checkpoints.rewind import RewindPlan, Scope
    from .recorder import Recorder
    from .session import Session


def plan_undo(
    session: Session, prompts: int = 1, scope: Scope = "both", overwrite: Collection[str] = ()
) -> RewindPlan:
    """Return what going back to before the newest prompts of a session would do.

    `scope` is both, talk or files. Files that somebody else changed since are conflicts, which are
    kept unless their paths, absolute or from the session's folder, are in `overwrite`.
    Raises NothingToUndo, and UsageError for a path in `overwrite` that is not concerned.
    """
    recorder = _require_branch(session, "undo")
    plan = rewind.plan_undo(
        *(recorder.tape, recorder.branch, prompts, scope, overwrite, recorder.describe_folder),
        disk=_find_disk(session),
    )
    return _require_work(plan)


def plan_rewind(
    session: Session, ref: str, scope: Scope = "both", overwrite: Collection[str] = ()
) -> RewindPlan:
    """Return what going back to an entry of a session would do; at a prompt, to before its work.

    `ref` is the id of an entry, or its beginning, a label, `^N` for before the Nth newest prompt,
    or `~N` for N entries back. Raises NotFound and Ambiguous, UsageError for an entry that is not
    on the branch, and what `plan_undo` raises.
    """
    recorder = _require_branch(session, "rewind")
    target = resolve_in_tape(recorder.tape, ref, recorder.branch).head
    plan = rewind.plan_rewind(
        *(recorder.tape, recorder.branch, target, scope, overwrite, recorder.describe_folder),
        disk=_find_disk(session),
    )
    return _require_work(plan)


def plan_redo(session: Session, overwrite: Collection[str] = ()) -> RewindPlan:
    """Return what reversing the newest undo or rewind of a session would do, as a whole.

    Raises NothingToUndo where there is none, or entries were added since.
    """
    recorder = _require_branch(session, "redo")
    return _require_work(
        rewind.plan_redo(
            *(recorder.tape, recorder.branch, overwrite, recorder.describe_folder),
            disk=_find_disk(session),
        )
    )


def build_file_patches(
    session: Session, plan: RewindPlan, *, with_bytes: bool = False
) -> dict[str, bytes]:
    """Return what a plan does to each file, as a git patch by absolute path.

    As `gong.checkpoints.rewind.build_file_patches`.
    """
    recorder = _require_branch(session, plan.reason)
    return rewind.build_file_patches(recorder.tape, plan, with_bytes=with_bytes)


def _find_disk(session: Session) -> PlaceDisk | None:
    """Return the files of the place where the session's tools act; None on this machine."""
    if not is_place(session.setup.env):
        return None
    from ..checkpoints.place_disk import PlaceDisk  # only in a place
    from ..env.places.environment import find_place

    env = find_place(session.setup.env)
    if env.disk is None:
        env.disk = PlaceDisk(env.name, env.open_copy)
    assert isinstance(env.disk, PlaceDisk)
    return env.disk


def _require_branch(session: Session, action: str) -> Recorder:
    recorder = session.recorder
    if recorder is None or recorder.branch not in recorder.tape.refs().branches:
        raise NothingToUndo(f"the session is empty: there is nothing to {action}")
    return recorder


def _require_work(plan: RewindPlan) -> RewindPlan:
    if plan.is_empty:
        raise NothingToUndo(f"nothing to {plan.reason}: neither talk nor files would change")
    return plan
