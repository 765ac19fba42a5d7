"""One change of a file at a time: a lock for each path, taken in one order."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

_LOCKS: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""The locks that somebody holds or waits for."""


@asynccontextmanager
async def hold_locks(paths: Iterable[str]) -> AsyncIterator[None]:
    """Hold the locks of these paths; whoever holds one of them already is waited for."""
    async with AsyncExitStack() as stack:
        for path in sorted(set(paths)):
            await stack.enter_async_context(_LOCKS.setdefault(path, asyncio.Lock()))
        yield
