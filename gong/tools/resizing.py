"""A picture made small enough for models. Pillow does it; an extra, loaded when it is needed."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from .picture_size import PictureSize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL.Image import Image

MAX_PICTURE_SIDE = 2000
"""Maximum pixels of width and height."""
MAX_PICTURE_BYTES = 4_718_592
"""4.5 MB: maximum bytes of a picture in base64."""
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


def is_small_enough(data: bytes, size: PictureSize | None) -> bool:
    """Whether a picture fits unchanged; one of unknown size is judged by its bytes alone."""
    return count_base64_bytes(data) <= MAX_PICTURE_BYTES and (
        size is None or max(size) <= MAX_PICTURE_SIDE
    )


def count_base64_bytes(data: bytes) -> int:
    """Return the bytes of what goes over the wire."""
    return (len(data) + 2) // 3 * 4


def resize_picture(data: bytes, size: PictureSize | None) -> ResizedPicture:
    """Return the first of ever smaller versions that fits: of PNG and JPEG whichever is smaller.

    `size` is what the file tells. Raises Missing, or ValueError with what is wrong.
    """
    if size is not None and size.width * size.height > MAX_PICTURE_PIXELS:
        raise ValueError(f"{size.width}x{size.height} pixels are too many to open")
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 (slow to load)
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
    return _find_fitting_version(_convert_colours(whole), PictureSize(*original))


def _find_fitting_version(whole: Image, original: PictureSize) -> ResizedPicture:
    from PIL import Image  # noqa: PLC0415 (as above)

    share = min(1.0, MAX_PICTURE_SIDE / max(original))
    for scale in SCALES:
        size = PictureSize(*(max(1, round(side * share * scale)) for side in original))
        picture = whole if whole.size == size else whole.resize(size, Image.Resampling.LANCZOS)
        for encoded, mime in _encode_versions(picture):
            if count_base64_bytes(encoded) <= MAX_PICTURE_BYTES:
                return ResizedPicture(encoded, mime, size, original)
    raise ValueError(f"at {size.width}x{size.height} it is still too large")


def _encode_versions(picture: Image) -> Iterator[tuple[bytes, str]]:
    """Yield the smaller of PNG and JPEG, then JPEG of lesser and lesser quality."""
    png = _encode_picture(picture, "PNG")
    for quality in QUALITIES:
        jpeg = _encode_picture(_flatten_on_white(picture), "JPEG", quality=quality)
        yield (png, "image/png") if len(png) <= len(jpeg) else (jpeg, "image/jpeg")


def _encode_picture(picture: Image, form: str, **options: int) -> bytes:
    out = BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def _convert_colours(picture: Image) -> Image:
    """Return the picture in colours that both forms know, what can be seen through included."""
    clear = picture.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in picture.info
    return picture.convert("RGBA" if clear else "RGB")


def _flatten_on_white(picture: Image) -> Image:
    if picture.mode == "RGB":
        return picture
    from PIL import Image  # noqa: PLC0415 (as above)

    white = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(white, picture).convert("RGB")
