"""A process of ours and the moment it ends, without a thread where the system has pidfds.

However it ends it is buried at once, as long as the event loop runs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DISCARD = subprocess.DEVNULL


class ChildProcess:
    """A process that was started here."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ended = asyncio.Event()

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        folder: str,
        *,
        stdin: int = DISCARD,
        stdout: int = DISCARD,
        stderr: int = DISCARD,
        variables: Mapping[str, str] | None = None,
        new_session: bool = False,
    ) -> ChildProcess:
        """Start `argv` in `folder`; OSError when it cannot be."""
        process = subprocess.Popen(  # noqa: S603 - what runs is decided by policy, before
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=variables,
            start_new_session=new_session,
        )
        child = cls(process)
        if not child.watch_by_handle():
            child.watch_by_thread()
        return child

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, -N when signal N ended it; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end and return the exit code."""
        await self._ended.wait()
        return self._process.wait()

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        self._process.send_signal(number)

    async def end(self) -> None:
        """Kill it if it still runs, and wait for its end."""
        self._process.kill()
        await self.wait()

    def watch_by_handle(self) -> bool:
        """Be told by the system when it ends (Linux 5.3); False where the system cannot."""
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return False
        loop = asyncio.get_running_loop()

        def bury() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            self._process.wait()
            self._ended.set()

        loop.add_reader(handle, bury)
        return True

    def watch_by_thread(self) -> None:
        """Let a thread wait for its end."""
        loop = asyncio.get_running_loop()

        def wait() -> None:
            self._process.wait()
            with suppress(RuntimeError):  # nobody waits on a loop that is closed
                loop.call_soon_threadsafe(self._ended.set)

        Thread(target=wait, name=f"wait-{self.pid}", daemon=True).start()
