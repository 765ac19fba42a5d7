"""What is common to tools that open text files: what counts as text, and failures in words.

A file that is decoded and encoded again has the same bytes, whatever stands in it.
"""

from __future__ import annotations

import codecs
import errno
from typing import NamedTuple

BOM = codecs.BOM_UTF8
"""The mark some programs put before UTF-8."""
_MARK = "\ufeff"


class TextFile(NamedTuple):
    """A text file taken apart."""

    text: str
    """What it says; bytes that are no UTF-8 stand as lone surrogates."""
    encoding: str
    """utf-8, utf-16-le or utf-16-be."""
    mark: bytes
    """The byte order mark it begins with; empty for most."""

    def to_bytes(self, text: str) -> bytes:
        """Return the bytes of such a file that says `text`."""
        return self.mark + self.encode_piece(text)

    def encode_piece(self, text: str) -> bytes:
        """Return the bytes of a piece of `text`."""
        if self.encoding != "utf-8":
            return text.encode(self.encoding, "surrogatepass")
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            # A lone surrogate that stands for no byte: only a model can have written it.
            return b"".join(map(_encode_character, text))


def decode_text_file(data: bytes) -> TextFile | None:
    """Return the text of a file; None for a binary one."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decode_utf_16(data)
    if is_binary(data):
        return None
    mark = BOM if data.startswith(BOM) else b""
    return TextFile(data[len(mark) :].decode("utf-8", "surrogateescape"), "utf-8", mark)


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no UTF-8: a NUL stands in nearly every binary and in no text."""
    return b"\0" in data


def strip_byte_order_mark(text: str) -> str:
    """Return what a model wrote without a byte order mark at its start."""
    return text.removeprefix(_MARK)


def describe_os_error(error: OSError, path: str) -> str:
    """Return what went wrong with `path`: "ENOENT: no such file or directory: notes.txt"."""
    match error:
        case IsADirectoryError():
            return f"Is a directory: {path}"
        case NotADirectoryError():
            return f"Not a directory: {path}"
    if error.errno is None:
        # What an environment refuses in its own words.
        return str(error)
    name = errno.errorcode.get(error.errno, "EIO")
    return f"{name}: {(error.strerror or str(error)).lower()}: {path}"


def describe_refused_path(path: str) -> str:
    """Return the error for a path that leaves the working directory."""
    return f'Path leaves the working directory: {path}. Name a file inside it, without "..".'


def _decode_utf_16(data: bytes) -> TextFile | None:
    mark, rest = data[:2], data[2:]
    encoding = "utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be"
    try:
        text = rest.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else TextFile(text, encoding, mark)


def _encode_character(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")
