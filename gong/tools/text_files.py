"""What is common to tools that open text files: what counts as text, and failures in words."""

from __future__ import annotations

import errno

BOM = b"\xef\xbb\xbf"
"""The mark some programs put before UTF-8."""


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text: a NUL stands in nearly every binary and in no text."""
    return b"\0" in data


def failure(error: OSError, path: str) -> str:
    """Return what went wrong with `path`: "ENOENT: no such file or directory: notes.txt"."""
    match error:
        case IsADirectoryError():
            return f"Is a directory: {path}"
        case NotADirectoryError():
            return f"Not a directory: {path}"
    name = errno.errorcode.get(error.errno or 0, "EIO")
    return f"{name}: {(error.strerror or str(error)).lower()}: {path}"


def refusal(path: str) -> str:
    """Return what is said of a path that climbs out of the working directory."""
    return f'Path leaves the working directory: {path}. Name a file inside it, without "..".'
