"""The size of a picture, told by the first bytes of its file, and a picture made small enough.

The size is enough to tell whether a picture can be shown as it is where nothing is installed that
opens pictures. Pillow makes it smaller; an extra, loaded when it is needed.
"""

from __future__ import annotations

import struct
from io import BytesIO
from struct import unpack_from
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image


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


MAX_PICTURE_SIDE = 2000
"""Maximum pixels of width and height."""
MAX_PICTURE_BYTES = 4_718_592
"""4.5 MB: maximum bytes of a picture in base64."""
MAX_PICTURE_FILE = MAX_PICTURE_BYTES // 4 * 3
"""Bytes of a picture that has so many in base64."""
MAX_PICTURE_PIXELS = 89_000_000
"""Maximum pixels to open: a third of a gigabyte in memory."""
QUALITIES = (85, 70, 55, 40)
SCALES = (1.0, 0.75, 0.5, 0.35, 0.25)


class PillowMissing(Exception):
    """Pillow is not installed."""


class ResizedPicture(NamedTuple):
    """A picture that fits."""

    data: bytes
    mime: str
    size: PictureSize
    original: PictureSize
    """What it was, turned the way it is shown."""


def is_small_enough(
    data: bytes, size: PictureSize | None, max_bytes: int = MAX_PICTURE_FILE
) -> bool:
    """Whether a picture fits unchanged; one of unknown size is judged by its bytes alone."""
    return len(data) <= min(max_bytes, MAX_PICTURE_FILE) and (
        size is None or max(size) <= MAX_PICTURE_SIDE
    )


def count_base64_bytes(data: bytes) -> int:
    """Return the bytes of what goes over the wire."""
    return (len(data) + 2) // 3 * 4


def resize_picture(
    data: bytes, size: PictureSize | None, max_bytes: int = MAX_PICTURE_FILE
) -> ResizedPicture:
    """Return the first of ever smaller versions that fits: of PNG and JPEG whichever is smaller.

    `size` is what the file tells, `max_bytes` how many the version may have. Raises PillowMissing,
    or ValueError with what is wrong.
    """
    if size is not None and size.width * size.height > MAX_PICTURE_PIXELS:
        raise ValueError(f"{size.width}x{size.height} pixels are too many to open")
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError  # slow to load
    except ImportError:
        raise PillowMissing from None
    try:
        with Image.open(BytesIO(data)) as opened:
            original = opened.size
            opened.draft("RGB", (MAX_PICTURE_SIDE, MAX_PICTURE_SIDE))
            whole = ImageOps.exif_transpose(opened)
    except UnidentifiedImageError:
        raise ValueError("it is damaged") from None
    except Exception as error:
        raise ValueError(f"it is damaged: {error}") from error
    if (whole.width < whole.height) != (original[0] < original[1]):
        original = original[::-1]
    clear = whole.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in whole.info
    picture = whole.convert("RGBA" if clear else "RGB")
    return _find_fitting_version(picture, PictureSize(*original), min(max_bytes, MAX_PICTURE_FILE))


def _find_fitting_version(whole: Image, original: PictureSize, max_bytes: int) -> ResizedPicture:
    from PIL import Image

    share = min(1.0, MAX_PICTURE_SIDE / max(original))
    # Ever smaller sizes; of each the smaller of PNG and JPEG, then JPEG of lesser quality.
    for scale in SCALES:
        size = PictureSize(*(max(1, round(side * share * scale)) for side in original))
        picture = whole if whole.size == size else whole.resize(size, Image.Resampling.LANCZOS)
        png = _encode_picture(picture, "PNG")
        flat = picture
        if picture.mode != "RGB":  # JPEG has no transparency: white shows through
            white = Image.new("RGBA", picture.size, "white")
            flat = Image.alpha_composite(white, picture).convert("RGB")
        for quality in QUALITIES:
            jpeg = _encode_picture(flat, "JPEG", quality=quality)
            encoded = (png, "image/png") if len(png) <= len(jpeg) else (jpeg, "image/jpeg")
            if len(encoded[0]) <= max_bytes:
                return ResizedPicture(*encoded, size, original)
    raise ValueError(f"at {size.width}x{size.height} it is still too large")


def _encode_picture(picture: Image, form: str, **options: int) -> bytes:
    out = BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()
