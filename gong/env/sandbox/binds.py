"""The arguments of bubblewrap for one border: which folders a program sees, and how.

Mounts are made from the root down, so that one below another wins:

    everything of this machine          read-only
    /dev, /proc, /run, /tmp, /dev/shm   its own
    what is hidden                      an empty folder, an unreadable file
    what is shown in hidden folders     read-only
    the folders that may be written     as they are
    pinned folders in them              as they are, but mounted: nothing can move them
    fixed files and folders             read-only

Nothing is mounted where nothing is, so no file appears on this machine.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..protocol import is_inside_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""What root could write although it has no rights."""
_RUN_FOLDERS = ("/run/current-system", "/run/opengl-driver")
"""What a system may need below /run: the programs of NixOS; no sockets."""


@dataclass(frozen=True, slots=True)
class Border:
    """What programs inside may do with files; real paths of what is there."""

    roots: tuple[str, ...] = ()
    """Folders that may be written."""
    pinned: tuple[str, ...] = ()
    """Folders in them that cannot be moved."""
    fixed: tuple[str, ...] = ()
    """What in them cannot be changed."""
    hidden_folders: tuple[str, ...] = ()
    hidden_files: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    """What in hidden folders can be read all the same."""
    temporary: str = "/tmp"
    """The folder for temporary files: inside it is /tmp, too."""
    is_root: bool = False
    """Whether the programs' user is root, who may write some settings of the kernel."""

    has_own_tmp: bool = False
    """Whether the folder for temporary files is /tmp inside."""

    def find_inside(self, path: str) -> str:
        """Return where a file really is that programs inside know by a path: their /tmp is own."""
        if not self.has_own_tmp or not is_inside_folder(path, "/tmp"):
            return path
        places = (self.temporary, *self.roots, *self.fixed, *self.visible)
        if any(is_inside_folder(path, place) for place in places):
            return path
        own = f"{self.temporary}{path.removeprefix('/tmp')}"
        return own if os.path.lexists(own) or not os.path.lexists(path) else path

    def may_write(self, path: str) -> bool:
        """Return whether a file at a real path may be changed."""
        if is_inside_folder(path, self.temporary):
            return True
        return _is_nearest(
            path,
            (self.roots, True),
            (self.pinned, True),
            (self.fixed, False),
            (self.hidden_folders, False),
            (self.hidden_files, False),
        )

    def find_root(self, path: str) -> str | None:
        """Return the nearest folder around a path that may be written; None where none is."""
        places = (self.temporary, *self.roots)
        around = [place for place in places if is_inside_folder(path, place) and path != place]
        return max(around, key=len, default=None)

    def hides(self, path: str) -> bool:
        """Return whether what is at a real path cannot be read."""
        return _is_nearest(
            path,
            (self.hidden_folders, True),
            (self.hidden_files, True),
            (self.visible, False),
            (self.roots, False),
        )


def _is_nearest(path: str, *kinds: tuple[Sequence[str], bool]) -> bool:
    """Return what the nearest place around a path says; of two at one place the later one.

    False outside of all places.
    """
    nearest, says = "", False
    for places, value in kinds:
        for place in places:
            if is_inside_folder(path, place) and len(place) >= len(nearest):
                nearest, says = place, value
    return says


def build_arguments(
    border: Border, variables: Mapping[str, str], *, filter_handle: int | None
) -> list[str]:
    """Return the arguments of bubblewrap before the program.

    `filter_handle` is the descriptor of the filter of system calls; None where the first program
    inside brings it up.
    """
    words = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--unshare-net"]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in KERNEL_SETTINGS if border.is_root else ():
        words += ["--ro-bind-try", path, path]
    words += ["--tmpfs", "/run"]
    for path in _RUN_FOLDERS:
        words += ["--ro-bind-try", path, path]
    words += ["--bind", border.temporary, "/tmp"]
    for step in _sort_mounts(border):
        words += step
    for folder in border.hidden_folders:
        words += ["--remount-ro", folder]
    if filter_handle is not None:
        words += ["--seccomp", str(filter_handle)]
    for name, value in variables.items():
        words += ["--setenv", name, value]
    return words


def _sort_mounts(border: Border) -> Iterator[Sequence[str]]:
    """Yield the mounts from the root down; of two at one place the stricter one is last."""
    mounts: list[tuple[str, int, tuple[str, ...]]] = []
    for order, places, kind in (
        (1, border.visible, "--ro-bind"),
        (2, (border.temporary, *border.roots, *border.pinned), "--bind"),
        (3, border.fixed, "--ro-bind"),
    ):
        mounts += [(path, order, (kind, path, path)) for path in places]
    mounts += [(path, 0, ("--tmpfs", path)) for path in border.hidden_folders]
    mounts += [(path, 4, ("--ro-bind", os.path.devnull, path)) for path in border.hidden_files]
    mounts.sort(key=lambda mount: (mount[0].count("/"), mount[0], mount[1]))
    for _, _, words in mounts:
        yield words
