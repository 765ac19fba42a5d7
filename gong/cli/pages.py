"""Pages for people, written beside the old one and put in its place."""

from __future__ import annotations

import os
from pathlib import Path

from tape.errors import WriteFailed


def demand_place(file: str) -> None:
    """Raise WriteFailed where no page could be written, before any work is done for it."""
    folder = Path(file).parent
    if not folder.is_dir():
        raise WriteFailed(f"{file} cannot be written: there is no folder {folder}")
    if Path(file).is_dir() or not os.access(folder, os.W_OK):
        why = "it is a folder" if Path(file).is_dir() else f"{folder} is not yours to write in"
        raise WriteFailed(f"{file} cannot be written: {why}")


def write_page(file: str, text: str) -> None:
    """Write a page; raises WriteFailed."""
    place = Path(file)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(place)
    except OSError as error:
        raise WriteFailed(f"{file} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
