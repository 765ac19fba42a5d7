"""Whether files of a folder make a command do more than to read: its configuration, its modules.

A table names the files that configure a program and what they must not hold (`configs`, `unless`).
Reads these files from the disk; nothing is run.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .matching import find_reader_of, is_version_request
from .read_only_uses import find_library_tool_files
from .tables import load_tables

if TYPE_CHECKING:
    from .invocation import Invocation

_MAX_BYTES = 1_000_000
_MODULE_ENDINGS = {"", ".py", ".pyc", ".so"}


def find_extending_file(use: Invocation) -> str | None:
    """Return the file that makes a reading use do more, None where it only reads.

    A folder that is not known, and a file that is too large or cannot be read, count as doing so.
    """
    if is_version_request(use.name, use.arguments):
        return _find_named_version(use)
    if find_library_tool_files(use.name, use.arguments) is not None:
        return next(filter(None, map(_find_shadowing_module, use.places.folders)), None)
    reader = find_reader_of(use.name, use.arguments, use.places)
    if reader is None or not reader.configs:
        return None
    for folder in use.places.folders:
        if folder is None:
            return reader.configs[0]
        for above in (Path(folder), *Path(folder).parents):
            for name in reader.configs:
                if _has_setting(above / name, reader.unless):
                    return str(above / name)
    return None


def _find_named_version(use: Invocation) -> str | None:
    """Return the file that names the program which prints its version or help; None without."""
    files = load_tables().named_versions.get(use.name, {})
    for folder in use.places.folders:
        if folder is None and files:
            return next(iter(files))
        for above in (Path(folder), *Path(folder).parents) if folder is not None else ():
            for name, pattern in files.items():
                if _has_setting(above / name, pattern):
                    return str(above / name)
    return None


def _has_setting(file: Path, pattern: str) -> bool:
    try:
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
    except OSError:
        return True
    return len(data) > _MAX_BYTES or re.search(pattern.encode(), data) is not None


def _find_shadowing_module(folder: str | None) -> str | None:
    """Return what Python would import from the folder in place of its own library."""
    if folder is None:
        return "the folder"
    try:
        names = sorted(child.name for child in Path(folder).iterdir())
    except OSError:
        return folder
    for name in names:
        stem, dot, ending = name.partition(".")
        ends = "." + ending.rpartition(".")[2] if dot else ""
        if stem in sys.stdlib_module_names and ends in _MODULE_ENDINGS:
            return f"{folder}/{name}"
    return None
