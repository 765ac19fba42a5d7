"""A file that is to be read: found under the name a model writes for it, and told by its bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .locate import locate_path

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment

SNIFFED_BYTES = 4100
"""Bytes at the start of a file that tell what it is."""
_PDF = re.compile(rb"%PDF-[0-9]\.[0-9]")
_BEFORE_PDF = 1024
_PICTURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)


async def open_located_file(env: ExecutionEnvironment, path: str) -> tuple[bytes, str]:
    """Return the bytes of a file and the absolute path it was found at; raises OSError."""
    found = await locate_path(env, path)
    return await env.read_file(found), found


def detect_picture_type(data: bytes) -> str | None:
    """Return the type of a picture such as image/png, whatever its name; None for other files."""
    head = data[:SNIFFED_BYTES]
    return next((kind for pattern, kind in _PICTURES if pattern.match(head)), None)


def is_pdf(data: bytes) -> bool:
    """Whether this is a PDF, whatever its name; a few bytes may stand before its mark."""
    return _PDF.search(data, 0, _BEFORE_PDF) is not None
