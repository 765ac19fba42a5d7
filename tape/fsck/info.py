"""Rewriting tape.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..refs import quarantine_bytes
from ..tape import INFO_NAME, TapeInfo
from .place import replace_file

if TYPE_CHECKING:
    from ..disk import Folder


def replace_info(folder: Folder, info: TapeInfo) -> str:
    """Rewrite tape.json and return the name of the old one in quarantine."""
    old = folder.read(INFO_NAME) if folder.has(INFO_NAME) else b""
    kept = quarantine_bytes(folder, INFO_NAME, old)
    replace_file(folder, INFO_NAME, msgspec.json.encode(info) + b"\n")
    return kept
