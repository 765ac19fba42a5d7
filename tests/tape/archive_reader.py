"""A reader of archived tapes written from docs/format.md alone: it imports nothing of `tape`."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from zstandard import ZstdDecompressor

if TYPE_CHECKING:
    from pathlib import Path

_TRAILER, _HEAD = 28, 8
_MAGIC = 0x184D2A5E


def read_archive(path: Path) -> dict[str, bytes | None]:
    """Return the bytes of each file in an archived tape by its path, None for an empty folder."""
    data = path.read_bytes()
    index, end = _read_index(data)
    plain, start = b"", 0
    for packed, length, digest in index["frames"]:
        frame = data[start : start + packed]
        assert sha256(frame).hexdigest()[:32] == digest
        plain += ZstdDecompressor().decompress(frame, max_output_size=length)
        start += packed
    assert start == end
    files = {name: plain[at : at + size] for name, at, size in index["files"]}
    return files | dict.fromkeys(index["folders"])


def _read_index(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the index, and where the frames before it end."""
    trailer = data[-_TRAILER:]
    assert trailer[20:] == b"TAPETZST"
    size = int.from_bytes(trailer[16:20], "little")
    start = len(data) - _TRAILER - size
    text = data[start:-_TRAILER]
    assert sha256(text).digest()[:16] == trailer[:16]
    head = data[start - _HEAD : start]
    assert head[:4] == _MAGIC.to_bytes(4, "little")
    assert int.from_bytes(head[4:], "little") == size + _TRAILER
    index = json.loads(ZstdDecompressor().decompress(text))
    assert index["format"] == 1
    return index, start - _HEAD


def unpack_archive(path: Path, folder: Path) -> None:
    """Write the files of an archived tape below a folder."""
    for name, data in read_archive(path).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir() if data is None else target.write_bytes(data)
