"""A picture made small enough for models. Pillow does it; an extra, loaded when it is needed."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from .picture_size import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL.Image import Image

MAX_SIDE = 2000
"""Maximum pixels of width and height."""
MAX_BYTES = 4_718_592
"""4.5 MB: maximum bytes of a picture in base64."""
MAX_PIXELS = 89_000_000
"""Maximum pixels to open: a third of a gigabyte in memory."""
QUALITIES = (85, 70, 55, 40)
SCALES = (1.0, 0.75, 0.5, 0.35, 0.25)


class Missing(Exception):
    """Pillow is not installed."""


class Resized(NamedTuple):
    """A picture that fits."""

    data: bytes
    mime: str
    size: Size
    original: Size
    """What it was, turned the way it is shown."""


def fits(data: bytes, size: Size | None) -> bool:
    """Whether a picture fits unchanged; one of unknown size is judged by its bytes alone."""
    return base64_size(data) <= MAX_BYTES and (size is None or max(size) <= MAX_SIDE)


def base64_size(data: bytes) -> int:
    """Return the bytes of what goes over the wire."""
    return (len(data) + 2) // 3 * 4


def resized(data: bytes, size: Size | None) -> Resized:
    """Return the first of ever smaller versions that fits: of PNG and JPEG whichever is smaller.

    `size` is what the file tells. Raises Missing, or ValueError with what is wrong.
    """
    if size is not None and size.width * size.height > MAX_PIXELS:
        raise ValueError(f"{size.width}x{size.height} pixels are too many to open")
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 (slow to load)
    except ImportError:
        raise Missing from None
    try:
        with Image.open(BytesIO(data)) as opened:
            original = opened.size
            opened.draft("RGB", (MAX_SIDE, MAX_SIDE))
            whole = ImageOps.exif_transpose(opened)
    except UnidentifiedImageError:
        raise ValueError("it is damaged") from None
    except Exception as error:
        raise ValueError(f"it is damaged: {error}") from error
    if (whole.width < whole.height) != (original[0] < original[1]):
        original = original[::-1]
    return _first_that_fits(_colours(whole), Size(*original))


def _first_that_fits(whole: Image, original: Size) -> Resized:
    from PIL import Image  # noqa: PLC0415 (as above)

    share = min(1.0, MAX_SIDE / max(original))
    for scale in SCALES:
        size = Size(*(max(1, round(side * share * scale)) for side in original))
        picture = whole if whole.size == size else whole.resize(size, Image.Resampling.LANCZOS)
        for encoded, mime in _versions(picture):
            if base64_size(encoded) <= MAX_BYTES:
                return Resized(encoded, mime, size, original)
    raise ValueError(f"at {size.width}x{size.height} it is still too large")


def _versions(picture: Image) -> Iterator[tuple[bytes, str]]:
    """Yield the smaller of PNG and JPEG, then JPEG of lesser and lesser quality."""
    png = _encoded(picture, "PNG")
    for quality in QUALITIES:
        jpeg = _encoded(_on_white(picture), "JPEG", quality=quality)
        yield (png, "image/png") if len(png) <= len(jpeg) else (jpeg, "image/jpeg")


def _encoded(picture: Image, form: str, **options: int) -> bytes:
    out = BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def _colours(picture: Image) -> Image:
    """Return the picture in colours that both forms know, what can be seen through included."""
    clear = picture.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in picture.info
    return picture.convert("RGBA" if clear else "RGB")


def _on_white(picture: Image) -> Image:
    if picture.mode == "RGB":
        return picture
    from PIL import Image  # noqa: PLC0415 (as above)

    white = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(white, picture).convert("RGB")
