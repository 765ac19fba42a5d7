"""Limits of what programs inside the sandbox use: memory, processes, processor time, file sizes.

    limit        in a group of the kernel's (cgroup)     otherwise, for each process
    -----------  --------------------------------------  -------------------------------------
    memory       of all programs of the session          its data (RLIMIT_DATA)
    processes    of all programs of the session          of each sandbox; not for root
    CPU time     –                                       of each process (RLIMIT_CPU)
    file size    –                                       of each file (RLIMIT_FSIZE)

A group needs a place where this user may make one: as root, or below what the system's manager
delegated. Groups are plain folders; those of both versions of cgroup are made alike.
"""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOUNT = "/sys/fs/cgroup"
_V2_FILES = {"memory": "memory.max", "processes": "pids.max"}
_V1_FILES = {
    "memory": ("memory", "memory.limit_in_bytes"),
    "processes": ("pids", "pids.max"),
}
_SWAP_FILES = ("memory.swap.max", "memory.memsw.limit_in_bytes")
_COUNTS = {
    "memory.events": ("oom_kill", "memory"),
    "memory.oom_control": ("oom_kill", "memory"),
    "pids.events": ("max", "processes"),
}
"""Where the kernel counts what it refused: file → the line of that count, and the limit."""
_V2_CONTROLLERS = {"memory": "memory", "processes": "pids"}
_BLOCK = 512
_MIN_PROCESSES, _PROCESSES_PER_CORE = 1024, 64
_MEMORY_SHARE = 0.8
_REMOVAL_TRIES, _REMOVAL_SECONDS = 10, 0.02


class UsageLimits(NamedTuple):
    """The limits; None is no limit."""

    memory: int | None = None
    """Bytes."""
    processes: int | None = None
    cpu_seconds: int | None = None
    file_size: int | None = None
    """Bytes."""


NO_LIMITS = UsageLimits()


def compute_defaults() -> UsageLimits:
    """Return limits that only what runs away meets: most of the memory, many processes."""
    memory = None
    with suppress(OSError, ValueError):
        memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_SHARE)
    cores = os.cpu_count() or 1
    return UsageLimits(memory, max(_MIN_PROCESSES, _PROCESSES_PER_CORE * cores))


@dataclass(frozen=True, slots=True)
class LimitGroups:
    """Groups of the kernel's for the programs of one session, which are empty at first."""

    folders: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    """Which limits they hold: memory, processes."""

    def count_refusals(self) -> dict[str, int]:
        """Return how often each of their limits was met; the counts only grow."""
        counts: dict[str, int] = {}
        for folder in self.folders:
            for file, (name, kind) in _COUNTS.items():
                with suppress(OSError, ValueError):
                    for line in Path(folder, file).read_text().split("\n"):
                        word, _, count = line.partition(" ")
                        if word == name:
                            counts[kind] = counts.get(kind, 0) + int(count)
        return counts

    def remove(self) -> None:
        """Remove the groups, as soon as what ran in them has ended; one that is in use stays."""
        for folder in self.folders:
            for _ in range(_REMOVAL_TRIES):
                with suppress(OSError):
                    os.rmdir(folder)
                if not os.path.lexists(folder):
                    break
                time.sleep(_REMOVAL_SECONDS)


NO_GROUPS = LimitGroups()


def make_groups(limits: UsageLimits, name: str, mount: str = _MOUNT) -> LimitGroups:
    """Make groups with the limits of memory and processes, as far as this user may."""
    values = {
        kind: value
        for kind, value in (("memory", limits.memory), ("processes", limits.processes))
        if value is not None
    }
    folders: list[str] = []
    kinds: set[str] = set()
    for folder, files in _list_places(values, mount):
        group = f"{folder}/{name}"
        try:
            Path(group).mkdir(mode=0o755)
        except OSError:
            continue
        is_limited = False
        for kind, file in files.items():
            with suppress(OSError):
                Path(group, file).write_text(str(values[kind]))
                kinds.add(kind)
                is_limited = True
        if is_limited and os.access(f"{group}/cgroup.procs", os.W_OK):
            for file in _SWAP_FILES:
                with suppress(OSError):
                    swap = 0 if file == _SWAP_FILES[0] else values.get("memory", 0)
                    if "memory" in files and os.path.exists(f"{group}/{file}"):
                        Path(group, file).write_text(str(swap))
            folders.append(group)
        else:
            kinds -= set(files)
            with suppress(OSError):
                Path(group).rmdir()
    return LimitGroups(tuple(folders), frozenset(kinds))


def find_groups(name: str, mount: str = _MOUNT) -> LimitGroups:
    """Return the groups of a name that are there."""
    kinds = dict.fromkeys(_V2_FILES, 0)
    folders = [f"{folder}/{name}" for folder, _ in _list_places(kinds, mount)]
    return LimitGroups(tuple(filter(os.path.isdir, folders)))


def _list_places(values: dict[str, int], mount: str) -> list[tuple[str, dict[str, str]]]:
    """Return folders in which groups could be made, with the file of each limit that they hold."""
    own = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().split("\n"):
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            own.update(dict.fromkeys(controllers.split(","), path))
    places: list[tuple[str, dict[str, str]]] = []
    for kind, (controller, file) in _V1_FILES.items():
        if kind in values and controller in own:
            path = own[controller].rstrip("/")
            places.append((f"{mount}/{controller}{path}", {kind: file}))
    if places or "" not in own:
        return places
    # Beside our own group, for one that holds processes can give no limits to groups below it.
    above = os.path.dirname(f"{mount}{own['']}".rstrip("/"))
    if not above.startswith(mount):
        return []
    given: set[str] = set()
    with suppress(OSError):
        given = set(Path(above, "cgroup.subtree_control").read_text().split())
    files = {
        kind: file
        for kind, file in _V2_FILES.items()
        if kind in values and _V2_CONTROLLERS[kind] in given
    }
    return [(above, files)] if files else []


def build_limit_script(limits: UsageLimits, groups: LimitGroups) -> str:
    """Return lines of sh that put the shell that runs them under the limits."""
    lines = [f"echo $$ >{shlex.quote(folder + '/cgroup.procs')}" for folder in groups.folders]
    if limits.memory is not None and "memory" not in groups.kinds:
        lines.append(f"ulimit -d {max(limits.memory // 1024, 1)}")
    if limits.cpu_seconds is not None:
        lines.append(f"ulimit -t {limits.cpu_seconds}")
    if limits.file_size is not None:
        lines.append(f"ulimit -f {max(limits.file_size // _BLOCK, 1)}")
    return "\n".join(lines)


def build_inner_script(limits: UsageLimits, groups: LimitGroups) -> str:
    """Return a line of sh for inside, where only processes of the sandbox are counted, or none.

    Outside all processes of the user count, and a sandbox could not start beside many of them.
    """
    if limits.processes is None or "processes" in groups.kinds:
        return ""
    return f"ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes}"


def describe_refusals(limits: UsageLimits, met: Sequence[str]) -> tuple[str, ...]:
    """Return what limits that were met refused, as in "more processes than 300"."""
    texts = {
        "memory": f"more memory than {(limits.memory or 0) / (1 << 30):.1f} GB in all",
        "processes": f"more processes than {limits.processes}",
    }
    return tuple(texts[kind] for kind in texts if kind in met)


def describe_limits(limits: UsageLimits, groups: LimitGroups, *, counts_processes: bool) -> str:
    """Return in words which limits there are, and what holds each.

    `counts_processes` says whether a limit of processes works without a group: not for root, and
    only where the sandbox has users of its own.
    """
    parts = []
    for kind, value in (("memory", limits.memory), ("processes", limits.processes)):
        if value is None:
            continue
        holder = "cgroup" if kind in groups.kinds else "rlimit"
        if kind == "processes" and holder == "rlimit" and not counts_processes:
            parts.append("processes not limited (that needs a cgroup here)")
        else:
            text = f"{value / (1 << 30):.1f} GB" if kind == "memory" else str(value)
            each = " each" if kind == "memory" and holder == "rlimit" else ""
            parts.append(f"{kind} {text}{each} ({holder})")
    if limits.cpu_seconds is not None:
        parts.append(f"CPU {limits.cpu_seconds} s each (rlimit)")
    if limits.file_size is not None:
        parts.append(f"files {limits.file_size / (1 << 20):.1f} MB each (rlimit)")
    return ", ".join(parts) or "none"
