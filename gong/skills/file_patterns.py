"""Whether a folder has files that the `paths` of skills name; reads names of files only."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from ..env.globs import compile_glob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .skill import Skill

MAX_FILES = 20_000
"""So many names are looked at; a skill whose files come later is not offered."""
_SKIPPED = frozenset((".git", "node_modules", ".venv", "__pycache__", ".hg"))


def select_fitting(skills: Sequence[Skill], folder: str) -> list[Skill]:
    """Return the skills without `paths`, and those one of whose patterns fits a file."""
    if not any(skill.paths for skill in skills):
        return [*skills]
    names = [*islice(_walk_names(folder), MAX_FILES)]
    return [skill for skill in skills if not skill.paths or _is_fitting(skill, names)]


def _is_fitting(skill: Skill, names: Sequence[str]) -> bool:
    for pattern in skill.paths:
        try:
            glob = compile_glob(pattern.removeprefix("./"))
        except ValueError:  # `check` names it
            continue
        if any(map(glob.matches, names)):
            return True
    return False


def _walk_names(folder: str) -> Iterator[str]:
    """Yield the files below a folder, relative to it; in no order that matters."""
    for at, folders, files in os.walk(folder):
        folders[:] = [folder for folder in folders if folder not in _SKIPPED]
        base = os.path.relpath(at, folder)
        yield from (file if base == "." else f"{base}/{file}" for file in files)
