"""Where the paths of a patch lead, and what its hunks make of each file (`plan_patch` is pure).

All paths lead below one folder, or the patch is refused. Hunks see the changes of those before
them; nothing is planned if one of them fails, and all reasons are given.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

from ...env.protocol import FileUpdate, is_inside_folder
from ..limits import encode_text
from ..paths import describe_os_error, describe_refused_path, locate_new_path, locate_path
from ..text_files import is_binary
from .parse import AddFile, DeleteFile, UpdateFile
from .update import patch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...env.protocol import ExecutionEnvironment
    from .parse import Hunk


class FileOperation(NamedTuple):
    """What one hunk does, paths as the patch says them."""

    op: Literal["add", "update", "delete", "move"]
    path: str
    destination: str | None
    before: bytes
    after: bytes


class PatchPlan(NamedTuple):
    """What is to be done."""

    operations: tuple[FileOperation, ...]
    """One for each hunk."""
    changes: tuple[FileUpdate, ...]
    """One for each file that is not as before."""
    notes: tuple[str, ...]
    """What was overlooked to find the places."""


class PatchFailures(NamedTuple):
    """All reasons why a patch fails, one text each."""

    texts: tuple[str, ...]


def plan_patch(
    hunks: Sequence[Hunk],
    read: Callable[[str], bytes | None],
    place: Callable[[str], str] = posixpath.normpath,
) -> PatchPlan | PatchFailures:
    """Return what the hunks make of the files.

    `place` says where a path of the patch leads, one answer for all names of a file; `read` is
    asked with that answer, and returns None where no file is. An OSError of `read` is a failure.
    """
    draft = _PatchDraft(read, place)
    for hunk in hunks:
        try:
            draft.apply_hunk(hunk)
        except OSError as error:
            reason = error.strerror.lower() if error.strerror else str(error)
            draft.failures.append(f"Failed to {_VERBS[type(hunk)]} {hunk.path}: {reason}")
    return PatchFailures(tuple(draft.failures)) if draft.failures else draft.build_plan()


_VERBS: dict[type[Hunk], str] = {
    AddFile: "write file",
    DeleteFile: "delete file",
    UpdateFile: "read file to update",
}


class _PatchDraft:
    """The files as far as the hunks went."""

    def __init__(self, read: Callable[[str], bytes | None], place: Callable[[str], str]) -> None:
        self._read = read
        self._place = place
        self._before: dict[str, bytes | None] = {}
        self._now: dict[str, bytes | None] = {}
        self._like: dict[str, str] = {}
        self._operations: list[FileOperation] = []
        self._notes: list[str] = []
        self.failures: list[str] = []

    def build_plan(self) -> PatchPlan:
        """Return what is to be done so far."""
        changes = (
            FileUpdate(path, before, self._now[path], self._like.get(path))
            for path, before in self._before.items()
            if self._now[path] != before
        )
        return PatchPlan(tuple(self._operations), tuple(changes), tuple(self._notes))

    def apply_hunk(self, hunk: Hunk) -> None:
        """Apply one hunk."""
        match hunk:
            case AddFile(path, content):
                place = self._place(path)
                before, after = self._read_content(place) or b"", encode_text(content)
                self._now[place] = after
                self._operations.append(FileOperation("add", path, None, before, after))
            case DeleteFile(path):
                place = self._place(path)
                before = self._require_content(place)
                self._now[place] = None
                self._operations.append(FileOperation("delete", path, None, before, b""))
            case UpdateFile():
                self._apply_update(hunk)
            case _:
                assert_never(hunk)

    def _apply_update(self, hunk: UpdateFile) -> None:
        place = self._place(hunk.path)
        before = self._require_content(place)
        after = self._apply_chunks(before, hunk)
        if hunk.move_to is None:
            self._now[place] = after
            self._operations.append(FileOperation("update", hunk.path, None, before, after))
            return
        destination = self._place(hunk.move_to)
        self._read_content(destination)
        if destination != place:
            self._now[place] = None
            self._like[destination] = self._like.get(place, place)
        self._now[destination] = after
        self._operations.append(FileOperation("move", hunk.path, hunk.move_to, before, after))

    def _apply_chunks(self, before: bytes, hunk: UpdateFile) -> bytes:
        """Return the file with the chunks applied; those that fail are recorded."""
        if not hunk.chunks:
            return before
        failed = f"Failed to read file to update {hunk.path}: it is"
        try:
            result = None if is_binary(before) else patch_file(before, hunk)
        except UnicodeDecodeError:
            self.failures.append(f"{failed} not UTF-8 text. Use edit, or a command, to change it.")
            return before
        if result is None:
            self.failures.append(f"{failed} a binary file. Use a command to change it.")
            return before
        self.failures += result.failures
        self._notes += result.notes
        return result.data

    def _require_content(self, place: str) -> bytes:
        data = self._read_content(place)
        if data is None:
            raise FileNotFoundError("no such file")
        return data

    def _read_content(self, place: str) -> bytes | None:
        if place not in self._before:
            self._before[place] = self._now[place] = self._read(place)
        return self._now[place]


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
    updates = [hunk for hunk in hunks if isinstance(hunk, UpdateFile) and hunk.move_to]
    moves = {hunk.path: hunk.move_to or "" for hunk in updates}
    coming = {*moves.values(), *(hunk.path for hunk in hunks if isinstance(hunk, AddFile))}
    going = {*moves, *(hunk.path for hunk in hunks if isinstance(hunk, DeleteFile))}
    for path in dict.fromkeys((*(hunk.path for hunk in hunks), *moves.values())):
        meant = posixpath.join(folder, path)
        try:
            named = await (locate_new_path if path in coming else locate_path)(env, meant)
            real[path] = await env.real_path(named)
            above = await env.real_path(posixpath.dirname(named))
        except ValueError:
            refusals.append(f"Not a path: {path!r}.")
            continue
        except OSError as error:
            refusals.append(describe_os_error(error, path))
            continue
        if real[path] == real_root or not is_inside_folder(real[path], real_root):
            refusals.append(describe_refused_path(meant))
        elif path in going and real[path] != posixpath.join(above, posixpath.basename(named)):
            refusals.append(f"{path} is a link. Name the file it leads to, or use a command.")
    return PatchFailures(tuple(refusals)) if refusals else PatchPaths(real_root, real)
