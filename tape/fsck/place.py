"""Replacing a file atomically: write a temporary file, sync, rename, sync."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..disk import Folder


def replace_file(folder: Folder, name: str, data: bytes) -> None:
    """Write the file `name` with these bytes, whole or not at all."""
    temporary = f".{name.partition('.')[0]}.new"
    with suppress(FileNotFoundError):  # left by a process killed here
        os.unlink(temporary, dir_fd=folder.fd)
    folder.create(temporary, data)
    os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    folder.sync()
