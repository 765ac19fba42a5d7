"""Ids of entries and tapes, as people type them and as other agents' sessions are given them."""

from __future__ import annotations

import re
from hashlib import sha256

_PREFIX = r"[0-9a-f]{3,40}\Z"


def is_id_prefix(word: str) -> bool:
    """Return whether a word can be the beginning of an id: three hex digits or more."""
    return re.match(_PREFIX, word) is not None


def compute_tape_id(tool: str, session: str) -> str:
    """Return the id (32 hex digits) of the tape that a session of another agent becomes."""
    return sha256(f"session of {tool}\n{session}\n".encode()).hexdigest()[:32]
