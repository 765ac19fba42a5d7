"""Which files a tool call reads or changes, and how: one table for the tools of all agents; pure.

Names of tools and of their arguments are data (`table.py`): an agent that calls them otherwise
needs a line there and nothing else.
"""

from __future__ import annotations

from .steps import (
    FileCall,
    FileDelete,
    FileEdit,
    FileRead,
    FileWork,
    FileWrite,
    PatchHunk,
    TextInsertion,
    TextReplacement,
)
from .table import parse_file_calls, parse_named_call

__all__ = [
    "FileCall",
    "FileDelete",
    "FileEdit",
    "FileRead",
    "FileWork",
    "FileWrite",
    "PatchHunk",
    "TextInsertion",
    "TextReplacement",
    "parse_file_calls",
    "parse_named_call",
]
