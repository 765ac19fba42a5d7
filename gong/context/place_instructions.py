"""Instructions of a project that is in another place: its files are copied, then read as here.

The copies lie in a folder of their own while they are read; the paths that the model sees are those
of the place.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from .instructions import (
    INSTRUCTION_NAMES,
    MAX_IMPORT_DEPTH,
    MAX_INSTRUCTION_BYTES,
    Instructions,
    list_imports,
    read_instructions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..env.places.environment import PlaceEnvironment

_MAX_IMPORTS = 50
_GIT = ".git"


async def copy_instructions(env: PlaceEnvironment) -> dict[str, bytes]:
    """Return the files of instructions of a project, and what they import, by path.

    An empty `.git` marks the top of the project.
    """
    folder = PurePosixPath(env.working_directory)
    places = (folder, *folder.parents)
    tops = [str(place / _GIT) for place in places]
    states = await env.find_states(tops)
    top = next((at for at, path in enumerate(tops) if not isinstance(states[path], OSError)), 0)
    inside = places[: top + 1]
    named = [str(place / name) for place in inside for name in INSTRUCTION_NAMES]
    files = {str(inside[-1] / _GIT): b""}
    for _ in range(MAX_IMPORT_DEPTH + 1):
        contents = await env.read_many([path for path in named if path not in files])
        level = {
            path: data[: MAX_INSTRUCTION_BYTES + 1]
            for path, data in contents.items()
            if isinstance(data, bytes)
        }
        files |= level
        named = [
            posixpath.normpath(PurePosixPath(path).parent / name)
            for path, data in level.items()
            for name in list_imports(data.decode("utf-8", "replace"))
            if not name.startswith("~") and name.isprintable()
        ][:_MAX_IMPORTS]
        if not named:
            break
    return files


def read_place_instructions(
    files: Mapping[str, bytes],
    folder: str,
    *,
    home: str,
    config_folder: str,
    own_file: str | None = None,
) -> Instructions:
    """Return the instructions for a session in a folder of a place; see `read_instructions`."""
    with TemporaryDirectory(prefix="gong-instructions-") as built:
        copies = os.path.realpath(built)
        Path(copies + folder).mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            copy = Path(copies + path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
        read = read_instructions(
            copies + folder, home=home, config_folder=config_folder, own_file=own_file
        )
    return Instructions(
        tuple(file._replace(path=file.path.removeprefix(copies)) for file in read.files),
        tuple(remark.replace(copies, "") for remark in read.remarks),
    )
