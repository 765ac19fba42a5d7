"""Which files a tool call reads or changes, and how: one table for the tools of all agents; pure.

Names of tools and of their arguments are data (`table.py`): an agent that calls them otherwise
needs a line there and nothing else.
"""

from __future__ import annotations

from .steps import Delete, Edit, FileCall, Hunk, Insertion, Read, Replacement, Work, Write
from .table import calls_of, file_calls

__all__ = [
    "Delete",
    "Edit",
    "FileCall",
    "Hunk",
    "Insertion",
    "Read",
    "Replacement",
    "Work",
    "Write",
    "calls_of",
    "file_calls",
]
