"""The path rule: what a model writes for a path, made absolute (pure; no file is looked at)."""

from __future__ import annotations

import os.path
import re
from pathlib import PurePath

UNICODE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
"""Blanks that models and file dialogs put where a plain one is meant."""


def resolve_path(path: str, base: str, home: str | None, *, exact: bool = False) -> str:
    """Return the path meant by `path`: "~" expanded, relative to `base`, without "..".

    Unless `exact`, a leading "@" is dropped and odd blanks become plain ones.
    """
    return os.path.normpath(
        PurePath(base) / _expand_home(path if exact else _normalize_spelling(path), home)
    )


def is_escaping_path(path: str, resolved: str, base: str) -> bool:
    """Whether `path`, which resolves to `resolved`, leaves `base` by way of ".."."""
    return ".." in _normalize_spelling(path).split("/") and not _is_inside_folder(
        resolved, os.path.normpath(base)
    )


def _normalize_spelling(path: str) -> str:
    return UNICODE_SPACES.sub(" ", path).removeprefix("@")


def _expand_home(path: str, home: str | None) -> str:
    if home is None or (path != "~" and not path.startswith("~/")):
        return path
    return home + path[1:]


def _is_inside_folder(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
