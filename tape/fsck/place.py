"""Putting a whole file in the place of another: written beside, synced, renamed, synced."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..disk import Folder


def put_in_place(folder: Folder, name: str, data: bytes) -> None:
    """Give the file `name` these bytes, whole or not at all."""
    temporary = f".{name.partition('.')[0]}.new"
    with suppress(FileNotFoundError):  # of one who was killed here before
        os.unlink(temporary, dir_fd=folder.fd)
    folder.create(temporary, data)
    os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    folder.sync()
