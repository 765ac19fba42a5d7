"""Commands as gong sees them: started by the supervisor, read live, ended as a whole.

Each command has a socket to its keeper (see `supervisor`), which closes when none of its processes
is left; that is how its end is known. What one command goes through:

    | message or event    | `ended` | `gone` | exit code                          |
    | ------------------- | ------- | ------ | ---------------------------------- |
    | "started PID"       |         |        | none; `start` returns              |
    | "failed ERRNO"      |         |        | none; `start` raises OSError       |
    | "ended CODE"        | set     |        | CODE; children may still run       |
    | socket closed       | set     | set    | as it was, else that of SIGKILL    |

The end of the shell is the end of the command. A child in the background may keep the pipe open
for ever, so the pipe is drained for a moment only, never until it closes. Such a child may live on
until the environment is closed, and ends then.
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
    from collections.abc import Callable, Mapping, Sequence


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
        self,
        argv: Sequence[str],
        folder: str,
        variables: Mapping[str, str],
        output: int,
        errors: int | None = None,
    ) -> SupervisedProcess:
        """Start a program, found by its path; its errors go where its output goes, or elsewhere.

        It leads a session of its own and has nothing to read. Raises OSError when it cannot be
        started, ValueError when a text holds a zero byte.
        """
        request = supervisor.pack_request(argv, folder, variables)
        ours, theirs = socket.socketpair()
        with theirs:
            self._send_descriptors(theirs.fileno(), output, output if errors is None else errors)
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
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))
        if self._control is not None:
            try:
                self._control.sendmsg([b"c"], [rights])
            except OSError:
                if self._release is not None:
                    self._release()
            else:
                return
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
        ours.sendmsg([b"c"], [rights])


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
            view = memoryview(request)
            while view:
                view = view[os.write(self._channel, view) :]
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
            with suppress(OSError):  # it has ended, which is reported in a moment
                os.write(self._channel, what)

    def _read_messages(self) -> None:
        try:
            data = os.read(self._channel, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._told = (self._told + data).split(b"\n")
        for line in lines if not self._started.cancelled() else ():
            what, number = line.split()
            match what:
                case b"started":
                    self.pid = int(number)
                    self._started.set_result(None)
                case b"failed":
                    self._started.set_exception(OSError(int(number), os.strerror(int(number))))
                case _:
                    self.exit_code = int(number)
                    self.ended.set()
        if not data:
            if not self._started.done():
                self._started.set_exception(_build_lost_error())
            self.close()


def _build_lost_error() -> OSError:
    return ChildProcessError("the process that starts commands was killed: try again")


def _abandon_supervisor(control: socket.socket, pid: int) -> None:
    """End a supervisor that was not closed, and collect it in the background."""
    control.close()
    with suppress(RuntimeError):  # at the end of Python there are no new threads
        Thread(target=_reap_process, args=(pid,), daemon=True).start()


def _reap_process(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


NEWEST_BYTES = 102_400
"""How much output is kept in memory."""
CHUNK_BYTES = 65_536
DRAIN_SECONDS = 0.1
"""How long the pipe is read after the shell has ended."""
GONE_SECONDS = 10.0
"""How long a command that is being ended is waited for; one that hangs in the system is left."""


class CommandOutput:
    """What a command writes: the newest bytes, a count, and each chunk passed on as it arrives."""

    def __init__(self, on_output: Callable[[bytes], None] | None = None) -> None:
        self.newest = bytearray()
        self.total_bytes = 0
        self._on_output = on_output

    def take(self, chunk: bytes) -> None:
        """Add what came."""
        self.total_bytes += len(chunk)
        self.newest += chunk
        del self.newest[:-NEWEST_BYTES]
        if self._on_output is not None:
            self._on_output(chunk)


class OutputPipe:
    """A pipe that a command writes to, read as its output comes."""

    def __init__(self, *outputs: CommandOutput) -> None:
        """Open the pipe and begin to read; each of `outputs` takes every chunk."""
        self.closed = asyncio.Event()
        self._outputs = outputs
        self._handle, self.writing_end = os.pipe()
        os.set_blocking(self._handle, False)
        asyncio.get_running_loop().add_reader(self._handle, self._read_chunk)

    def ignore(self) -> None:
        """Read on and forget: a server left in the background must not die of a closed pipe."""
        self._outputs = ()

    def close_writing_end(self) -> None:
        """Let go of the command's end, so that the pipe ends with the command."""
        os.close(self.writing_end)

    def close(self) -> None:
        """Stop reading."""
        if not self.closed.is_set():
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self.closed.set()

    def _read_chunk(self) -> None:
        try:
            chunk = os.read(self._handle, CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
            return
        for output in self._outputs:
            output.take(chunk)


class CommandStreams:
    """The outputs of a command: merged as they come and, where they are `split`, each by itself.

    With one pipe for both the order is exact; with one for each it is that of their arrival.
    """

    def __init__(self, on_output: Callable[[bytes], None] | None, *, split: bool) -> None:
        self.merged = CommandOutput(on_output)
        self.stdout = CommandOutput() if split else None
        self.stderr = CommandOutput() if split else None
        streams = ((self.stdout,), (self.stderr,)) if split else ((),)
        self.pipes = tuple(OutputPipe(self.merged, *filter(None, stream)) for stream in streams)

    @property
    def is_closed(self) -> bool:
        """Whether no process can write to them any more."""
        return all(pipe.closed.is_set() for pipe in self.pipes)

    async def drain(self) -> None:
        """Read what is still in the pipes, for a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                for pipe in self.pipes:
                    await pipe.closed.wait()

    def ignore(self) -> None:
        """Read on and forget."""
        for pipe in self.pipes:
            pipe.ignore()

    def close(self) -> None:
        """Stop reading."""
        for pipe in self.pipes:
            pipe.close()


class RunningCommand:
    """A running command and its output."""

    def __init__(self, process: SupervisedProcess, output: CommandStreams) -> None:
        self.output = output
        self._process = process

    @classmethod
    async def start(
        cls,
        supervisor: SupervisorClient,
        argv: Sequence[str],
        folder: str,
        variables: Mapping[str, str],
        on_output: Callable[[bytes], None] | None,
        *,
        split: bool = False,
    ) -> RunningCommand:
        """Start `argv` in `folder`, in a session of its own, with nothing to read.

        Raises OSError when it cannot be started, ValueError when a text holds a zero byte.
        """
        output = CommandStreams(on_output, split=split)
        ends = [pipe.writing_end for pipe in output.pipes]
        try:
            process = await supervisor.run(argv, folder, variables, ends[0], ends[-1])
        except BaseException:
            output.close()
            raise
        finally:
            for pipe in output.pipes:
                pipe.close_writing_end()
        return cls(process, output)

    @property
    def exit_code(self) -> int:
        """The shell's exit code; 128 + N when signal N ended it."""
        code = self._process.exit_code
        assert code is not None
        return code if code >= 0 else 128 - code

    @property
    def is_gone(self) -> bool:
        """Whether no process of it is left and its output is closed."""
        return self._process.gone.is_set() and self.output.is_closed

    async def ends_within(self, seconds: float | None) -> bool:
        """Wait for the shell to end; False when the time is over first."""
        try:
            async with asyncio.timeout(seconds):
                await self._process.ended.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """End every process of it, asking first; being cancelled meanwhile kills them at once."""
        self._process.terminate()
        try:
            async with asyncio.timeout(GONE_SECONDS):
                await self._process.gone.wait()
        except TimeoutError:
            self._process.close()
        except BaseException:
            self._process.kill()
            raise

    def close(self) -> None:
        """Stop listening; what is left of it is ended as if gong had ended."""
        self._process.close()
        self.output.close()
