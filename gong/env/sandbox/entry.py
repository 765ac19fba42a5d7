"""The first program inside a sandbox with a network: leads a port to the proxy, then becomes it.

Run as a file, with

    SOCKET PORT -- PROGRAM ARGUMENT…

and two filters of system calls on the descriptors 3 and 4. A forked process listens on the port,
which only programs of this sandbox see, and passes connections on to the socket of the proxy. It
has to open such sockets, which the program's own filter (3) forbids, so each of both gets a filter
of its own, and nobody may look into the forked one. It imports none of our rooms.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False  # the module that has this name loads slowly
if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM_FILTER, FORWARDER_FILTER = 3, 4
"""The descriptors of the filters."""
_SET_DUMPABLE, _SET_NAME, _SET_SECCOMP, _FILTER_MODE = 4, 15, 22, 2  # linux/prctl.h
_STEP_BYTES = 8
_CHUNK_BYTES = 65_536
_FAILED = 126


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def enter_sandbox(arguments: Sequence[str]) -> None:
    """Start the forwarder, and become the program."""
    path, port, _, *program = arguments
    filters = [_read_all(handle) for handle in (PROGRAM_FILTER, FORWARDER_FILTER)]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    ready, done = os.pipe()
    if os.fork() == 0:
        try:
            os.close(ready)
            _begin_serving(filters[1])
            os.close(done)
            _serve_connections(listener, path)
        finally:
            os._exit(1)
    listener.close()
    os.close(done)
    os.read(ready, 1)  # the end of the pipe: the forwarder is out of reach
    os.close(ready)
    try:
        _install_filter(filters[0])
        os.execvp(program[0], program)  # noqa: S606 (the words of a session)
    except OSError as error:
        os.write(2, f"gong sandbox: {program[0]}: {error.strerror}\n".encode())
        os._exit(_FAILED)


def _read_all(handle: int) -> bytes:
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _begin_serving(steps: bytes) -> None:
    """Let go of the command's output, and let nobody look into this process."""
    null = os.open(os.devnull, os.O_RDWR)
    for handle in range(3):
        os.dup2(null, handle)
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SET_NAME, b"gong-forwarder", 0, 0, 0)
    library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    _install_filter(steps)


def _install_filter(steps: bytes) -> None:
    """Put this process under a filter, for good; raises OSError."""
    program = _FilterProgram(len(steps) // _STEP_BYTES, steps)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _serve_connections(listener: socket.socket, path: str) -> None:
    while True:
        inside, _ = listener.accept()
        outside = socket.socket(socket.AF_UNIX)
        try:
            outside.connect(path)
        except OSError:
            inside.close()
            continue
        for pair in ((inside, outside), (outside, inside)):
            threading.Thread(target=_copy_stream, args=pair, daemon=True).start()


def _copy_stream(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(_CHUNK_BYTES):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    enter_sandbox(sys.argv[1:])
