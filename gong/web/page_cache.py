"""Pages that a session has fetched, for a quarter of an hour: the next part of one asks nobody.

Only texts are kept, at most `MAX_CACHED_CHARS` of them, the newest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .page_text import PageText

CACHE_SECONDS = 900.0
MAX_CACHED_CHARS = 20_000_000


class CachedPage(NamedTuple):
    """A page as text, and where and when it came from."""

    url: str
    """Its address, after redirects."""
    page: PageText
    fetched_at: float
    """Seconds of a clock that only moves forward."""


@dataclass(slots=True)
class PageCache:
    """The pages of a session by the address that was asked for."""

    _pages: dict[str, CachedPage] = field(default_factory=dict)

    def find(self, url: str, now: float) -> CachedPage | None:
        """Return the page of an address, if it is fresh."""
        cached = self._pages.get(url)
        if cached is None or now - cached.fetched_at > CACHE_SECONDS:
            return None
        return cached

    def add(self, url: str, cached: CachedPage) -> None:
        """Keep a page, and let go of old ones and of the oldest where there are too many."""
        self._pages.pop(url, None)
        self._pages[url] = cached
        oldest = cached.fetched_at - CACHE_SECONDS
        size = sum(len(page.page.text) for page in self._pages.values())
        for name, page in [*self._pages.items()]:
            if page.fetched_at >= oldest and size <= MAX_CACHED_CHARS:
                break
            size -= len(page.page.text)
            del self._pages[name]
