"""Objects that are read together, before each is asked for: a round trip for many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .remote import Listed, Remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ReadAhead(Remote):
    """A remote of which some objects are read at once, each for who asks for it first."""

    def __init__(self, remote: Remote, keys: Sequence[str]) -> None:
        self._remote, self.url = remote, remote.url
        objects = zip(keys, remote.read_many(keys) if keys else (), strict=True)
        self._objects = {key: data for key, data in objects if data is not None}

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Return what was read ahead, or read it."""
        data = self._objects.pop(key, None)
        return self._remote.read(key, start, end) if data is None else data[start:end]

    def read_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """Return what was read ahead, or read it."""
        if len(keys) == 1 and keys[0] in self._objects:
            return [self._objects.pop(keys[0])]
        return self._remote.read_many(keys)

    def create(self, key: str, data: bytes) -> bool:
        """Create an object."""
        return self._remote.create(key, data)

    def replace(self, key: str, data: bytes) -> None:
        """Replace an object."""
        self._remote.replace(key, data)

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """List objects."""
        return self._remote.list(prefix, after)

    def now(self) -> int:
        """Return the time of the remote's clock."""
        return self._remote.now()
