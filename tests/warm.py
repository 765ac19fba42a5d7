"""Commands without the time that starting Python takes: forks of a server that has imported all.

A server reads and starts nothing else; each command gets streams, a folder, an environment and
arguments of its own, and ends as the real one does. Where a variable decides how Python itself
starts, on systems without `pidfd_open`, with `TEST_WARM=0` and with `TEST_BUDGET=2`, every command
is started for itself. Tests of start-up, of memory and of signals start theirs themselves.

A fork copies the table of all pages of its server, so there are two: one that has imported `tape`
alone, whose forks take a third of the time, and one for everything else.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import fcntl
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Lock
from typing import NamedTuple

import pexpect

from tests.tape.making import BUDGET

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
LOCALE = {"LC_ALL": "C.UTF-8"}
"""The locale in which the server starts, and so all of its forks."""
IMPORTS = {
    "tape": ("sqlite_utils",),
    "gong": (
        *("httpx2", "sqlite_utils", "tree_sitter_bash", "PIL.Image", "acp", "uvicorn"),
        *("mcp", "mcp.server.stdio", "mcp.server.lowlevel", "mcp.server.caching"),
    ),
}
"""Libraries that commands import inside functions: for each server what it imports beside the
modules of the package of its name."""
_OPTIONAL = (
    "tape.stores.",
    "tape.testing.",
    "tape.remote.s3",
    "tape.remote.postgres",
    "gong.evals.harbor",
)
"""Modules that need SDKs, which may be missing and which hardly a command uses."""
_REQUEST = b"run"
_HAS_FORKS = os.environ.get("TEST_WARM") != "0" and BUDGET == 1 and hasattr(os, "pidfd_open")
COMMANDS = {
    "tape": "tape.cli",
    "gong": "gong.cli",
    "sample_server": "tests.gong.mcp.sample_server",
}
"""Module of each command, whose `main` it is."""


def run(argv, *, cwd, env, stdin=b"", seconds=300):
    """Run a command to its end: `subprocess.CompletedProcess`, its output as bytes."""
    words = [os.fsdecode(word) for word in argv]
    if not _may_be_forked(words, env):
        return subprocess.run(
            words, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=seconds, check=False
        )
    (reads, writes), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
    running = start(words, cwd=cwd, env=env, streams=(reads, stdout, stderr))
    for end in (reads, stdout, stderr):
        os.close(end)
    with ThreadPoolExecutor(3) as threads:
        threads.submit(_write, writes, stdin)
        said, told = threads.submit(_read, out), threads.submit(_read, err)
        code = running.wait(seconds)
        return subprocess.CompletedProcess(words, code, said.result(), told.result())


def run_text(argv, *, cwd, env, stdin=""):
    """Run a command to its end: the same with text."""
    done = run(argv, cwd=cwd, env=env, stdin=stdin.encode("utf-8", "surrogateescape"))
    out, err = (
        data.decode().replace("\r\n", "\n").replace("\r", "\n")
        for data in (done.stdout, done.stderr)
    )
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def start(argv, *, cwd, env, streams):
    """Start a command with these standard streams; what is returned has `wait()`."""
    words = [os.fsdecode(word) for word in argv]
    if _may_be_forked(words, env):
        return _server(_choose_server(words)).start(words, str(cwd), env, streams)
    stdin, stdout, stderr = streams
    return subprocess.Popen(words, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)


def start_in_terminal(argv, *, cwd, env, rows, columns):
    """Start a command in a terminal of its own; None where it has to be a process of its own."""
    words = [os.fsdecode(word) for word in argv]
    if not _may_be_forked(words, env):
        return None
    master, slave = os.openpty()
    termios.tcsetwinsize(master, (rows, columns))
    try:
        server = _server(_choose_server(words))
        ends = server.start(words, str(cwd), env, (slave,) * 3, has_terminal=True)
    finally:
        os.close(slave)
    return InTerminal(master, ends)


# What shells and other programs run instead of a command: it hands its streams to the server, and
# waits. It starts with nothing but the standard library, in a twentieth of the time; signals are
# passed on, and where it is killed its command is too.
_STAND_IN = """\
#!{python} -IS
import json, os, signal, socket, sys
argv = ["{bin}/" + os.path.basename(sys.argv[0]), *sys.argv[1:]]
decides = {{n for n in os.environ if n.startswith(("PYTHON", "LC_", "LANG", "LD_"))}}
light = os.path.basename(argv[0]) == "tape" and "mcp" not in argv
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    is_like_it = decides == {{"LC_ALL"}} and os.environ["LC_ALL"] == "{locale}"
    is_there = is_like_it and not server.connect({addresses!r}["tape" if light else "gong"])
except OSError:
    is_there = False
if not is_there:
    os.execv("{python}", ["{python}", "-c", {starts!r}, *argv])
asked = os.memfd_create("command")
os.write(asked, json.dumps({{"argv": argv, "cwd": os.getcwd(), "env": dict(os.environ)}}).encode())
socket.send_fds(server, [{request!r}], [asked, 0, 1, 2])
for stream in (0, 1, 2):  # who reads what it writes sees the end with the command, not before
    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
pid = int(server.recv(32))
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(server.recv(32))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


# What a stand-in is where the server may not be asked.
_STARTS = """\
import importlib, os, sys
sys.argv.pop(0)
sys.path[0] = {root!r}
name = {commands!r}[os.path.basename(sys.argv[0])]
importlib.import_module(name).main()
"""


@cache
def find_commands():
    """Return a folder with `COMMANDS`, to be run by other programs."""
    folder = Path(tempfile.mkdtemp(prefix="commands-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text = _STAND_IN.format(
        python=sys.executable,
        bin=BIN,
        locale=LOCALE["LC_ALL"],
        addresses={name: _server(name).address if _HAS_FORKS else "none" for name in IMPORTS},
        request=_REQUEST,
        starts=_STARTS.format(root=str(ROOT), commands=COMMANDS),
    )
    for name in COMMANDS:
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)
    return folder


def _choose_server(words):
    """Return the name of the server whose fork a command is; `_STAND_IN` chooses as well."""
    return "tape" if Path(words[0]).name == "tape" and "mcp" not in words else "gong"


def _may_be_forked(words, env):
    """Return whether a fork of the server cannot be told from a process of its own."""
    decides = {
        name
        for name in env
        if name.startswith(("PYTHON", "LC_", "LANG", "LD_")) and name != "PYTHON_KEYRING_BACKEND"
    }
    return (
        _HAS_FORKS
        and Path(words[0]).parent == BIN
        and Path(words[0]).name in {"tape", "gong"}
        and decides == set(LOCALE)
        and env["LC_ALL"] == LOCALE["LC_ALL"]
    )


def _text(data):
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def _write(end, data):
    # The command may not read what it is given.
    with suppress(BrokenPipeError), open(end, "wb") as stream:  # noqa: PTH123 - a pipe has no path
        stream.write(data)


def _read(end):
    with open(end, "rb") as stream:  # noqa: PTH123 - as above
        return stream.read()


class Running:
    """A command that was started as a fork."""

    def __init__(self, ends):
        self._ends = ends

    def detach(self):
        """Return the socket that says its process id, and then its exit code."""
        return self._ends

    def wait(self, seconds=300):
        """Return the exit code, or less than 0 for a signal; kill it when time is up."""
        with self._ends as ends:
            pid = int(ends.recv(32))
            ends.settimeout(seconds)
            try:
                return int(ends.recv(32))
            except TimeoutError:
                os.kill(pid, 9)
                raise


class InTerminal:
    """A command in a terminal of its own: what `Terminal` uses of `pexpect.spawn`."""

    def __init__(self, master, running):
        self.child_fd, self._ends = master, running.detach()
        self.pid = int(self._ends.recv(32))
        self.closed = False
        self.exitstatus = self.signalstatus = None

    def send(self, keys):
        data = keys.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(self.child_fd, data) :]

    def read_nonblocking(self, size, timeout):
        """Return what was written; raise `pexpect.TIMEOUT` or `pexpect.EOF`, as pexpect does."""
        if not select.select([self.child_fd], [], [], timeout)[0]:
            raise pexpect.TIMEOUT("nothing was written")
        try:
            data = os.read(self.child_fd, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        if not data:
            raise pexpect.EOF("the terminal is closed")
        return data

    def setwinsize(self, rows, columns):
        termios.tcsetwinsize(self.child_fd, (rows, columns))

    def kill(self, number):
        os.kill(self.pid, number)

    def isalive(self):
        """Return whether it runs; once it does not, its exit code or signal is known."""
        if self.exitstatus is None and self.signalstatus is None:
            self._ends.settimeout(0)
            with suppress(BlockingIOError):
                self._note_end()
        return self.exitstatus is None and self.signalstatus is None

    def wait(self):
        if self.isalive():
            self._ends.settimeout(None)
            self._note_end()

    def _note_end(self):
        code = int(self._ends.recv(32))
        self._ends.close()
        if code < 0:
            self.signalstatus = -code
        else:
            self.exitstatus = code

    def close_window(self):
        """Take the terminal away."""
        self.closed = True
        os.close(self.child_fd)


class _Server:
    def __init__(self, name):
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.address = f"\0tests-of-gong-{os.getpid()}-{os.urandom(8).hex()}"
        """What other programs connect to: a name without a file."""
        listener.bind(self.address)
        listener.listen(100)
        handles = (its.fileno(), listener.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", name, *map(str, handles)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=handles,
            cwd=ROOT,
            env={**os.environ, **LOCALE},
        )
        its.close()
        listener.close()
        self._socket, self._one = ours, Lock()

    def start(self, words, cwd, env, streams, *, has_terminal=False):
        asked = os.memfd_create("command")
        command = _Command(words, cwd, dict(env), has_terminal)
        with open(asked, "wb", closefd=False) as file:
            file.write(json.dumps(command._asdict()).encode())
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its, self._one:
            socket.send_fds(self._socket, [_REQUEST], [asked, *streams, its.fileno()])
        os.close(asked)
        return Running(ours)

    def close(self):
        # What a shell left running may have inherited this end.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._process.wait()


_FIRST = Lock()


def _server(name):
    """Return a server of this process; several threads may ask at once."""
    with _FIRST:
        return _begun(name)


@cache
def _begun(name):
    made = _Server(name)
    atexit.register(made.close)
    return made


class _Command(NamedTuple):
    """What a fork is to be."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    has_terminal: bool = False
    """Whether its streams are a terminal, which is to be its own."""


class _Child(NamedTuple):
    """A fork that runs."""

    pid: int
    answers: socket.socket
    """Says its process id, and then its exit code."""
    handle: int
    ends_with_it: bool
    """Whether it is killed where who waits for its answers has gone."""


def _serve(connection, listener):
    """Start what is asked for until there is no one left; in a fork, return what it is to be."""
    waits = select.poll()
    waits.register(connection, select.POLLIN)
    waits.register(listener, select.POLLIN)
    children = {}
    """Each under its handle, and one that ends with who asked for it also under its answers."""
    while True:
        for ready, _ in waits.poll():
            if ready in children:
                _note_end(children[ready], ready, children, waits)
                continue
            is_ours = ready == connection.fileno()
            asks = connection if is_ours else listener.accept()[0]
            data, files, _, _ = socket.recv_fds(asks, 100, 5)
            if not data and is_ours:
                return None
            if not data:
                asks.close()
                continue
            answers = socket.socket(fileno=files.pop()) if is_ours else asks
            pid = os.fork()
            if pid == 0:
                _close_handles((connection, listener, answers), {*children.values()})
                return _become(*files)
            for file in files:
                os.close(file)
            _tell(answers, pid)
            child = _Child(pid, answers, os.pidfd_open(pid), not is_ours)
            for handle in [child.handle] + [answers.fileno()] * child.ends_with_it:
                children[handle] = child
                waits.register(handle, select.POLLIN)


def _close_handles(sockets, children):
    """Close in a fork what belongs to the server."""
    for one in (*sockets, *(child.answers for child in children)):
        one.close()
    for child in children:
        os.close(child.handle)


def _note_end(child, ready, children, waits):
    """Tell how a child ended; kill it where it is the one who asked for it that has."""
    waits.unregister(ready)
    del children[ready]
    if ready != child.handle:
        os.kill(child.pid, signal.SIGKILL)
        return
    if children.pop(child.answers.fileno(), None):
        waits.unregister(child.answers)
    os.close(ready)
    _tell(child.answers, os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]))
    child.answers.close()


def _tell(answers, number):
    with suppress(BrokenPipeError):  # who started it may not wait for it
        answers.send(str(number).encode())


def _become(asked, *streams):
    with open(asked, "rb") as file:  # noqa: PTH123 - it has no path
        file.seek(0)
        command = _Command(**json.load(file))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        if stream > 2:
            os.close(stream)
    if command.has_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(command.cwd)
    os.environ.clear()
    os.environ.update(command.env)
    time.tzset()
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = (
        _opened(0, "r", "surrogateescape"),
        _opened(1, "w", "surrogateescape"),
        _opened(2, "w", "backslashreplace", 1),
    )
    sys.argv = command.argv
    return command


def _opened(number, mode, errors, buffering=-1):
    """Return a standard stream as Python opens it."""
    return open(number, mode, buffering, encoding="utf-8", errors=errors, closefd=False)


def _warm(server):
    """Import what commands need: importing a module of ours does nothing."""
    for package in ("tape", "gong") if server == "gong" else ("tape",):
        for found in walk_packages(import_module(package).__path__, f"{package}."):
            if not found.name.startswith(_OPTIONAL):
                import_module(found.name)
    for library in IMPORTS[server]:
        import_module(library)
    if server == "gong":
        asyncio.run(_answer_prompt())


async def _answer_prompt():
    """Have computed what a process computes once: schemas, decoders, patterns, tables of models."""
    from gong.agent.front_end import FrontEnd  # only a server imports it all
    from gong.assembly.opening import open_session
    from gong.config import Settings
    from tape.index.library import Library
    from tape.store.store import Store

    with tempfile.TemporaryDirectory() as home:
        library = Library(Store(Path(home) / "store"), None)
        environ = {"HOME": home, "PATH": os.environ["PATH"]}
        settings = Settings(model="offline/rules")
        host = await open_session(FrontEnd(library, settings, environ, home, "tests/1"))
        async with aclosing(host.session.submit("list .")) as events:
            async for _ in events:
                pass
        await host.close()


def _exit_code(main):
    """Run a command; return what it ends with, as Python makes an exit code of it."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - Python's own last resort
        traceback.print_exc()
        return 1
    return 0


def _end(code):
    """End as Python does, but leave it to the system to take back the memory: it is much."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            try:
                stream.flush()
            except OSError:
                code = code or 120
    os._exit(code)


if __name__ == "__main__":
    _warm(sys.argv[1])
    gc.collect()
    gc.freeze()
    become = _serve(*(socket.socket(fileno=int(handle)) for handle in sys.argv[2:]))
    if become is not None:
        _end(_exit_code(import_module(COMMANDS[Path(become.argv[0]).name]).main))
