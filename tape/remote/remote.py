"""What a remote is: bytes by key, elsewhere, of which only create-only writes are assumed.

Whoever creates a key first has it: nothing else decides between two that push at once. Keys are
texts of `[a-z0-9./-]` in folders, compared byte by byte; no name begins with a dot, and none is
that of an object and of a folder. See `objects` for the keys that there are; `tape.testing.remotes`
has the tests of what every remote keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Self

from ..errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_PARALLEL = 16
"""Requests that are under way at once, where a remote answers one object for each."""


class Listed(NamedTuple):
    """An object of a remote."""

    key: str
    size: int
    """In bytes."""


class Remote(ABC):
    """Objects by key. A context manager; thread-safe but for `close`.

    Every operation raises RemoteUnavailable where the remote cannot be reached, or does not answer
    in time: the same call may work later.
    """

    url: str
    """As it was given, without a password."""

    @abstractmethod
    def create(self, key: str, data: bytes) -> bool:
        """Create an object, whole or not at all; return False, and change nothing, if it exists."""

    @abstractmethod
    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of an object, or those from `start` up to `end`; raise NotFound.

        What somebody replaced may be read as it was before until the next `list`.
        """

    @abstractmethod
    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the objects whose keys begin with `prefix` and come after `after`, in order."""

    @abstractmethod
    def replace(self, key: str, data: bytes) -> None:
        """Replace the bytes of an object, whole or not at all: for redaction and merging only."""

    @abstractmethod
    def now(self) -> int:
        """Return the time of the remote's clock, in µs since 1970."""

    def create_many(self, objects: Sequence[tuple[str, bytes]]) -> Sequence[bool]:
        """Create several objects in any order; return what `create` would for each."""
        if len(objects) < 2:  # noqa: PLR2004 (no thread for one)
            return [self.create(key, data) for key, data in objects]
        with ThreadPoolExecutor(MAX_PARALLEL) as pool:
            return [*pool.map(lambda item: self.create(*item), objects)]

    def read_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """Return the bytes of several objects in the order of `keys`, None for missing ones."""
        if len(keys) < 2:  # noqa: PLR2004 (no thread for one)
            return [self._read_or_none(key) for key in keys]
        with ThreadPoolExecutor(MAX_PARALLEL) as pool:
            return [*pool.map(self._read_or_none, keys)]

    def _read_or_none(self, key: str) -> bytes | None:
        try:
            return self.read(key)
        except NotFound:
            return None

    def close(self) -> None:  # noqa: B027 (a folder has nothing to close)
        """Close connections; closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
