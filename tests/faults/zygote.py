"""Commands under strace without the time that starting Python under it takes.

A server, the zygote, has imported all that commands need; each command is a fork of it, which
stops itself until strace is attached and goes on as the real one does. What it does to a disk is
the same: importing changes none. At night (`TEST_BUDGET`) every command is started for itself.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Self

from tests.tape.making import BUDGET

TAPE = str(Path(sys.executable).parent / "tape")


class Alone:
    """A traced command that is started for itself."""

    def __init__(self, trace: list[str], command: list[str], env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["strace", *trace, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **env},
        )
        self.stdin, self.stdout = self._process.stdin, self._process.stdout

    def wait(self) -> int:
        """Return how it ended: an exit code, or less than 0 for a signal."""
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__(None, None, None)


class Forked:
    """A traced command that is a fork of the zygote."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def __init__(self, trace: list[str], command: list[str], env: dict[str, str]) -> None:
        reads, writes = os.pipe(), os.pipe()
        self.stdin, self.stdout = open(reads[1], "wb"), open(writes[0], "rb")  # noqa: PTH123, SIM115
        self._pid = _zygote().ask({"command": command, "env": env}, (reads[0], writes[1]))
        os.close(reads[0])
        os.close(writes[1])
        self._tracer = subprocess.Popen(["strace", *trace, "-p", str(self._pid)])
        status = Path(f"/proc/{self._pid}/status")
        while f"TracerPid:\t{self._tracer.pid}\n" not in status.read_text():
            assert self._tracer.poll() is None, "strace cannot attach to a command"
            time.sleep(0.001)
        os.kill(self._pid, signal.SIGCONT)

    def wait(self) -> int:
        """Return how it ended: an exit code, or less than 0 for a signal."""
        self._tracer.wait()
        return _zygote().ask({"wait": self._pid})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.stdout.close()


traced = Forked if BUDGET == 1 else Alone
"""Starts a command under strace: options of strace, the command, what its environment has more."""


def ran(trace: list[str], command: list[str], env: dict[str, str]) -> tuple[str, int]:
    """Run a command that is given nothing; return what it told and how it ended."""
    with traced(trace, command, env) as running:
        running.stdin.close()
        said = running.stdout.read().decode()
        return said, running.wait()


class _Zygote:
    def __init__(self) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote", str(its.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(its.fileno(),),
            cwd=Path(__file__).parent.parent.parent,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        its.close()
        self._socket, self._one = ours, Lock()

    def ask(self, what: dict[str, object], files: tuple[int, ...] = ()) -> int:
        with self._one:
            socket.send_fds(self._socket, [json.dumps(what).encode()], files)
            return int(self._socket.recv(100))

    def close(self) -> None:
        self._socket.close()
        self._server.wait()


_FIRST = Lock()


def _zygote() -> _Zygote:
    """Return the zygote of this process; several threads may ask at once."""
    with _FIRST:
        return _begun()


@cache
def _begun() -> _Zygote:
    made = _Zygote()
    atexit.register(made.close)
    return made


def _serve(connection: socket.socket) -> dict[str, object] | None:
    """Answer until there is no one left; in a fork, return the command it is to be."""
    while True:
        data, files, _, _ = socket.recv_fds(connection, 100_000, 2)
        if not data:
            return None
        asked = json.loads(data)
        if "wait" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                connection.close()
                os.dup2(files[0], 0)
                os.dup2(files[1], 1)
                for file in files:
                    os.close(file)
                return asked
            for file in files:
                os.close(file)
            os.waitpid(answer, os.WUNTRACED)
        connection.send(str(answer).encode())


def _become(command: list[str], env: dict[str, str]) -> None:
    """Wait until somebody traces this process, and be that command."""
    os.environ.update(env)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    os.kill(os.getpid(), signal.SIGSTOP)
    if command[0] == TAPE:
        from tape.cli import main  # in the fork only

        sys.argv = command
        main()
    else:
        sys.argv = command[1:2] + command[3:]
        exec(command[2], {"__name__": "__main__"})


def _warm() -> None:
    """Import what commands need."""
    import tape.check.verify  # noqa: F401


def _allow_tracing() -> None:
    """Let any process of this user trace this one, where only a parent might (Linux, Yama)."""
    import ctypes

    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


if __name__ == "__main__":
    _warm()
    become = _serve(socket.socket(fileno=int(sys.argv[1])))
    if become is not None:
        _allow_tracing()
        _become(become["command"], become["env"])
