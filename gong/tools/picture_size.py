"""Width and height of a picture, from the first bytes of its file (pure).

Enough to tell whether it can be shown as it is where nothing is installed that opens pictures.
"""

from __future__ import annotations

import struct
from struct import unpack_from
from typing import NamedTuple

_MARK = 0xFF
"""First byte of every mark of a JPEG."""
_ALONE = {0x01, *range(0xD0, 0xDA)}
"""Marks of a JPEG without a length."""
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""Marks of a JPEG before its measures."""


class PictureSize(NamedTuple):
    """Measures in pixels."""

    width: int
    height: int


def read_picture_size(data: bytes, mime: str) -> PictureSize | None:
    """Return the measures that a file tells; None where its head is damaged."""
    try:
        match mime:
            case "image/png":
                return (
                    PictureSize(*unpack_from(">II", data, 16)) if data[12:16] == b"IHDR" else None
                )
            case "image/gif":
                return PictureSize(*unpack_from("<HH", data, 6))
            case "image/jpeg":
                return _read_jpeg_size(data)
            case "image/webp":
                return _read_webp_size(data)
    except struct.error:  # cut short
        return None
    return None


def _read_jpeg_size(data: bytes) -> PictureSize | None:
    place = 2
    while place < len(data):
        if data[place] != _MARK:
            return None
        mark = data[place + 1 : place + 2]
        if mark == b"\xff":
            place += 1
        elif not mark or mark[0] in _ALONE:
            place += 2
        elif mark[0] in _FRAMES:
            height, width = unpack_from(">HH", data, place + 5)
            return PictureSize(width, height)
        else:
            place += 2 + int(unpack_from(">H", data, place + 2)[0])
    return None


def _read_webp_size(data: bytes) -> PictureSize | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = unpack_from("<HH", data, 26)
            return PictureSize(width & 0x3FFF, height & 0x3FFF)
        case b"VP8L":
            (bits,) = unpack_from("<I", data, 21)
            return PictureSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            low, high = unpack_from("<HB", data, 24), unpack_from("<HB", data, 27)
            return PictureSize((low[0] | low[1] << 16) + 1, (high[0] | high[1] << 16) + 1)
    return None
