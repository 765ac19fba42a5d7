"""Rewriting tape.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..refs import set_aside
from ..tape import INFO, Info
from .place import put_in_place

if TYPE_CHECKING:
    from ..disk import Folder


def mend_info(folder: Folder, info: Info) -> str:
    """Rewrite tape.json and return the name of the old one in quarantine."""
    old = folder.read(INFO) if folder.has(INFO) else b""
    kept = set_aside(folder, INFO, old)
    put_in_place(folder, INFO, msgspec.json.encode(info) + b"\n")
    return kept
