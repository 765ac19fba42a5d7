"""Where the paths of a patch really lead: all of them below one folder, or the patch is refused."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from ..locate import locate_new_path, locate_path
from ..text_files import describe_refused_path
from .hunks import AddFile, DeleteFile, UpdateFile
from .plan import PatchFailures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...env.protocol import ExecutionEnvironment
    from .hunks import Hunk


class PatchPaths(NamedTuple):
    """Real paths: no link is on the way to any of them."""

    root: str
    """The folder they are all below."""
    real: Mapping[str, str]
    """Path as the patch says it → where it leads."""


async def resolve_patch_paths(
    hunks: Sequence[Hunk], folder: str, env: ExecutionEnvironment
) -> PatchPaths | PatchFailures:
    """Return where the paths of the hunks lead; those that leave the working directory if any do.

    Relative ones start from `folder`, "" being the working directory itself. A link is followed
    where a file is written, and refused where it would be what goes.
    """
    real_root, real, refusals = await env.real_path(env.working_directory), {}, []
    coming = {
        *_list_move_targets(hunks),
        *(hunk.path for hunk in hunks if isinstance(hunk, AddFile)),
    }
    going = {hunk.path for hunk in hunks if _is_leaving_path(hunk)}
    for path in _list_paths(hunks):
        meant = posixpath.join(folder, path)
        named = await (locate_new_path if path in coming else locate_path)(env, meant)
        try:
            real[path] = await env.real_path(named)
            above = await env.real_path(posixpath.dirname(named))
        except ValueError:
            refusals.append(f"Not a path: {path!r}.")
            continue
        if not real[path].startswith(real_root.rstrip("/") + "/"):
            refusals.append(describe_refused_path(meant))
        elif path in going and real[path] != posixpath.join(above, posixpath.basename(named)):
            refusals.append(f"{path} is a link. Name the file it leads to, or use a command.")
    return PatchFailures(tuple(refusals)) if refusals else PatchPaths(real_root, real)


def _list_paths(hunks: Sequence[Hunk]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(hunk.path for hunk in hunks), *_list_move_targets(hunks))))


def _list_move_targets(hunks: Sequence[Hunk]) -> dict[str, None]:
    targets = (hunk.move_to for hunk in hunks if isinstance(hunk, UpdateFile))
    return dict.fromkeys(filter(None, targets))


def _is_leaving_path(hunk: Hunk) -> bool:
    return isinstance(hunk, DeleteFile) or (
        isinstance(hunk, UpdateFile) and hunk.move_to is not None
    )
