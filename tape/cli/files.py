"""Output files that the user names: written whole or not at all, and never replaced unasked.

A device such as /dev/null, a pipe or a terminal is written to and never replaced.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import WriteFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Write = Callable[[bytes], object]


def require_writable(file: Path, *, force: bool) -> None:
    """Raise WriteFailed where `open_output` would fail; called before any work is done.

    An existing file is refused unless `force`.
    """
    if _is_special(file):
        return
    if not force and (file.is_symlink() or file.is_file()):
        raise WriteFailed(f"{file} already exists: --force replaces it")
    if file.is_dir():
        raise WriteFailed(f"{file} cannot be written: it is a folder")
    folder = Path(os.path.realpath(file)).parent
    if not folder.is_dir():
        raise WriteFailed(f"{file} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise WriteFailed(f"{file} cannot be written: {folder} gives you no permission to write")


@contextmanager
def open_output(file: Path) -> Iterator[Write]:
    """Yield a function that writes bytes to a file; a link is followed. Raises WriteFailed.

    The file appears, synced and for its owner only, when the block ends. If the block fails, an
    existing file stays as it is.
    """
    if _is_special(file):
        try:
            stream = file.open("wb")
        except OSError as error:
            raise WriteFailed(f"{file} cannot be written: {error.strerror}") from error
        with stream:
            yield stream.write
        return
    place = Path(os.path.realpath(file))
    try:
        beside = tempfile.NamedTemporaryFile(  # noqa: SIM115 (renamed, not closed, when it is whole)
            dir=place.parent, prefix=f".{place.name}.", delete=False
        )
    except OSError as error:
        raise WriteFailed(f"{file} cannot be written: {error.strerror}") from error
    try:
        with beside:
            yield beside.write
            beside.flush()
            os.fsync(beside.fileno())
        Path(beside.name).replace(place)
    except BaseException:
        Path(beside.name).unlink(missing_ok=True)
        raise


def write_output(file: Path, text: str) -> None:
    """Write a text in UTF-8 as `open_output` does; raises WriteFailed."""
    with open_output(file) as write:
        write(text.encode("utf-8", "replace"))


def _is_special(file: Path) -> bool:
    """Return whether the path is neither a regular file nor a folder, but exists."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
