"""Pictures for requests: bytes, a file here, or an address that the provider fetches itself.

A picture by address is an Image whose `wire` says `$url`; it is for requests, as a tape holds the
bytes of everything it shows.
"""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from tape.errors import NotFound
from tape.formats.wire import pack_raw
from tape.model.entries import NO_JSON, BlobRef, Image

from ..errors import ConfigurationError

URL_KEY = "$url"
"""Address of a picture that the provider fetches."""
DETAIL_KEY = "$detail"
"""Level of detail, if the provider supports it."""

_BY_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)
_BY_SUFFIX = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".heic": "image/heic",
    ".heif": "image/heif",
}
_DEFAULT_MIME = "image/png"
_FILE_PREFIXES = ("/", "./", "../", "~")


class Pictures:
    """Makes blocks for the messages of a request, whose `load` is the one here."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def image(
        self,
        source: str | Path | bytes,
        mime: str | None = None,
        *,
        detail: Literal["auto", "low", "high"] | None = None,
    ) -> Image:
        """Return the block of a picture.

        A text is an address, or a file if it starts with `/`, `./`, `../` or `~`. The type is given
        by `mime`, else by the bytes, else by the name. Raises ConfigurationError for a file that
        cannot be read, and for a text that is neither.
        """
        notes: dict[str, str] = {DETAIL_KEY: detail} if detail else {}
        name = ""
        if isinstance(source, str) and source.startswith("data:"):
            head, _, data = source[5:].partition(",")
            mime = mime or head.partition(";")[0] or None
            try:
                source = b64decode(data, validate=True)
            except ValueError as error:
                raise ConfigurationError(
                    f"a data: address of a picture is base64: {error}"
                ) from error
        if isinstance(source, str) and urlsplit(source).scheme in {"http", "https"}:
            blob = BlobRef(sha256(source.encode()).hexdigest(), 0, source)
            path = urlsplit(source).path
            kind = mime or _BY_SUFFIX.get(Path(path).suffix.lower(), _DEFAULT_MIME)
            return Image(blob=blob, mime=kind, wire=pack_raw({**notes, URL_KEY: source}))
        if not isinstance(source, bytes):
            name, source = str(source), _read_picture(source)
        kind = (
            mime
            or detect_picture_type(source)
            or _BY_SUFFIX.get(Path(name).suffix.lower(), _DEFAULT_MIME)
        )
        blob = BlobRef(sha256(source).hexdigest(), len(source))
        self._data[blob.hash] = source
        return Image(blob=blob, mime=kind, wire=pack_raw(notes) if notes else NO_JSON)

    def load(self, blob: BlobRef) -> bytes:
        """Return the bytes of a picture; raises NotFound if it was not added here."""
        if blob.hash not in self._data:
            raise NotFound(f"no picture {blob.hash[:12]} was given")
        return self._data[blob.hash]


def detect_picture_type(data: bytes) -> str | None:
    """Return the type of a picture such as image/png by its bytes; None for other files."""
    return next((kind for magic, kind in _BY_MAGIC if magic.match(data)), None)


def _read_picture(source: str | Path) -> bytes:
    if isinstance(source, str) and not source.startswith(_FILE_PREFIXES):
        raise ConfigurationError(
            f"{source!r} is not a picture: give an http(s) address, or a file as ./{source}"
        )
    try:
        return Path(source).expanduser().read_bytes()
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"cannot read the picture {source}: {why}") from error
