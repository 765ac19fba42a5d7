"""Commands as gong sees them: started by the supervisor, watched and ended through a socket.

A command's socket closes when none of its processes is left; that is how its end is known.
"""

from __future__ import annotations

import array
import asyncio
import os
import signal
import socket
import sys
import weakref
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from . import supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_READ_BYTES = 4096
_CLOSE_SECONDS = 10.0
"""How long everything that still runs is waited for; what hangs in the system is left."""
_LOST = -signal.SIGKILL
"""Exit code of a shell whose keeper was killed: its processes were killed, too."""


class SupervisorClient:
    """The supervisor of one environment: started with its first command, ended by `close`.

    Whoever forgets to close it loses nothing: it ends with this process, or when this value is
    forgotten. `without_subreaper` makes it work as it does where Linux is not.
    """

    def __init__(self, *, without_subreaper: bool = False) -> None:
        self._flags = (supervisor.WITHOUT_SUBREAPER,) if without_subreaper else ()
        self._control: socket.socket | None = None
        self._pid = 0
        self._release: weakref.finalize[..., SupervisorClient] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id; None while it does not run."""
        return self._pid if self._control is not None else None

    async def run(
        self, argv: Sequence[str], folder: str, variables: Mapping[str, str], output: int
    ) -> SupervisedProcess:
        """Start a program, found by its path, with both its outputs going to a descriptor.

        It leads a session of its own and has nothing to read. Raises OSError when it cannot be
        started, ValueError when a text holds a zero byte.
        """
        request = supervisor.pack_request(argv, folder, variables)
        ours, theirs = socket.socketpair()
        with theirs:
            self._send_descriptors(theirs.fileno(), output)
        process = SupervisedProcess(ours.detach())
        try:
            await process.start(request)
        except BaseException:
            process.close()
            raise
        return process

    async def close(self) -> None:
        """End it with every process it looks after, and wait for that."""
        control, self._control = self._control, None
        if control is None or self._release is None:
            return
        try:
            control.shutdown(socket.SHUT_WR)
            control.setblocking(False)
            # It answers nothing, but closes its end when it has ended everything.
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.get_running_loop().sock_recv(control, 1)
            self._release.detach()
            control.close()
            _reap_process(self._pid)
        except OSError:  # that includes the time being over
            pass
        finally:
            self._release()

    def _send_descriptors(self, *handles: int) -> None:
        """Hand over what a command needs; a supervisor that somebody killed is replaced."""
        if self._control is None:
            self._start_supervisor()
        try:
            self._send_descriptors_once(handles)
        except OSError:
            self._drop_supervisor()
            self._start_supervisor()
            self._send_descriptors_once(handles)

    def _send_descriptors_once(self, handles: Sequence[int]) -> None:
        assert self._control is not None
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))
        self._control.sendmsg([b"c"], [rights])

    def _start_supervisor(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._pid = os.posix_spawn(
                sys.executable,
                (sys.executable, "-ISE", supervisor.__file__, *self._flags),
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsigmask=[],
            )
        self._control = ours
        self._release = weakref.finalize(self, _abandon_supervisor, ours, self._pid)

    def _drop_supervisor(self) -> None:
        if self._release is not None:
            self._release()
        self._control = None


class SupervisedProcess:
    """A program that the supervisor started, and all processes that come of it."""

    def __init__(self, channel: int) -> None:
        self.pid = 0
        self.exit_code: int | None = None
        """-N when signal N ended it; None while it runs."""
        self.ended = asyncio.Event()
        """Whether the program itself has ended."""
        self.gone = asyncio.Event()
        """Whether nothing of it is left, children in the background included."""
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._channel = channel
        self._told = b""

    async def start(self, request: bytes) -> None:
        """Say what is to run, and wait until it does; OSError when it cannot be started."""
        try:
            _write_all_bytes(self._channel, request)
        except OSError:
            raise _build_lost_error() from None
        os.set_blocking(self._channel, False)
        asyncio.get_running_loop().add_reader(self._channel, self._read_messages)
        await self._started

    def terminate(self) -> None:
        """Ask every process to end; what is left two seconds later is killed."""
        self._request_signal(supervisor.TERMINATE)

    def kill(self) -> None:
        """Kill every process."""
        self._request_signal(supervisor.KILL)

    def close(self) -> None:
        """Let go of it: what is still left of it is ended as if gong had ended."""
        if self._channel < 0:
            return
        with suppress(RuntimeError):  # the loop it was watched by may be closed
            asyncio.get_running_loop().remove_reader(self._channel)
        os.close(self._channel)
        self._channel = -1
        if self.exit_code is None:
            self.exit_code = _LOST
        self.ended.set()
        self.gone.set()
        if not self._started.done():
            self._started.cancel()

    def _request_signal(self, what: bytes) -> None:
        if self._channel >= 0:
            with suppress(OSError):  # it is gone, which is told in a moment
                os.write(self._channel, what)

    def _read_messages(self) -> None:
        try:
            data = os.read(self._channel, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._told = (self._told + data).split(b"\n")
        for line in lines:
            self._handle_message(*line.split())
        if not data:
            if not self._started.done():
                self._started.set_exception(_build_lost_error())
            self.close()

    def _handle_message(self, what: bytes, number: bytes) -> None:
        if self._started.cancelled():
            return
        match what:
            case b"started":
                self.pid = int(number)
                self._started.set_result(None)
            case b"failed":
                code = int(number)
                self._started.set_exception(OSError(code, os.strerror(code)))
            case _:
                self.exit_code = int(number)
                self.ended.set()


def _build_lost_error() -> OSError:
    return ChildProcessError("the process that starts commands was killed: try again")


def _write_all_bytes(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _abandon_supervisor(control: socket.socket, pid: int) -> None:
    """Let a supervisor end that nobody closed, and have it collected meanwhile."""
    control.close()
    with suppress(RuntimeError):  # at the end of Python there are no new threads
        Thread(target=_reap_process, args=(pid,), daemon=True).start()


def _reap_process(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
