"""Which copy of a store this is: each has a name that no other has, so that copies never collide.

A phase is written by one copy of a store, ever (tape.md §4): its first entry names that copy, and
who continues a branch elsewhere opens a new phase. So the files of two copies of a tape are always
prefixes of one another, and uniting the copies is appending.

`machine.json` beside `store.json` holds the name, and its own inode. When a folder is copied or
restored from a backup, the file has another inode, so that copy gets a name of its own:

| machine.json                | this copy                         |
|-----------------------------|-----------------------------------|
| names it, and its own inode | keeps its name                    |
| another inode               | was copied: a new name            |
| missing or unreadable       | was never written to: a new name  |
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import UsageError
from ..model.line import JSON_ERRORS
from .disk import Folder, sync_file, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MACHINE_NAME = "machine.json"
_MIN_STEP, _STEPS = 1_000, 9_999_000
"""Sixteen copies that continue one branch at once name two phases alike once in 80,000 times."""
_MAX_NAME = 255
_MAX_SLUG = 24


class Replica(NamedTuple):
    """One copy of a store."""

    id: str
    """8 hex digits; no other copy has them."""
    machine: str
    """The name of the host, or one that a person gave; other copies may have it too."""

    def choose_step(self, tape: str) -> int:
        """Return by how much this copy raises the number of a phase after one of another copy.

        Other copies raise it by other amounts, so that none gives two phases one name.
        """
        digest = sha256(f"{self.id} {tape}".encode()).hexdigest()
        return _MIN_STEP + int(digest[:12], 16) % _STEPS


class _MachineFile(Struct):
    machine: Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_NAME)]
    replica: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8}\Z")]
    inode: int


def build_machine_slug(name: str) -> str:
    """Return the name of a host as it may be part of that of a branch: its first label, cut."""
    label = name.casefold().partition(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", label)[:_MAX_SLUG].strip("-") or "machine"


def name_host() -> str:
    """Return the name of the host."""
    return os.uname().nodename or "localhost"


def check_machine_name(name: str) -> str:
    """Return a name that a person gives a machine; raise UsageError if it is none."""
    name = name.strip()
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise UsageError(f"a machine's name is one line of at most {_MAX_NAME} characters")
    return name


def read_replica(store: str | Path) -> Replica | None:
    """Return which copy of a store a folder is; None if it has no name yet, or was copied."""
    with suppress(OSError), Folder.open(store) as home:
        info, inode = _read_machine_file(home)
        if info is not None and info.inode == inode:
            return Replica(info.replica, info.machine)
    return None


def name_replica(home: Folder, random: Callable[[int], str], machine: str | None = None) -> Replica:
    """Write which copy of a store `home` is, and return it.

    The name of the machine is kept where it is known, else it is that of the host. `random` returns
    that many random bytes in hex.
    """
    before, inode = _read_machine_file(home)
    is_ours = before is not None and before.inode == inode
    replica = Replica(
        before.replica if before is not None and is_ours else random(4)[:8],
        machine or (before.machine if before is not None and is_ours else name_host()),
    )
    temporary = f".store.{os.urandom(4).hex()}"
    fd = home.file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        about = _MachineFile(replica.machine, replica.id, os.fstat(fd).st_ino)
        write_bytes(fd, msgspec.json.encode(about) + b"\n")
        if home.durable:
            sync_file(fd)
    finally:
        os.close(fd)
    os.rename(temporary, MACHINE_NAME, src_dir_fd=home.fd, dst_dir_fd=home.fd)
    home.sync()
    return replica


def _read_machine_file(home: Folder) -> tuple[_MachineFile | None, int]:
    """Return the content of machine.json, None if it cannot be read, and its inode."""
    try:
        data = home.read(MACHINE_NAME)
        inode = os.stat(MACHINE_NAME, dir_fd=home.fd, follow_symlinks=False).st_ino
        return msgspec.json.decode(data, type=_MachineFile), inode
    except (OSError, *JSON_ERRORS):
        return None, 0
