"""The program between gong and its commands: whatever way gong ends, it ends their processes too.

Run as a file, with a socket to gong as standard input; it imports none of our rooms, so that it
begins at once. For every message there is a forked *keeper*, which starts one command and is the
parent of everything the command leaves behind: on Linux a subreaper, so no daemon escapes it.

    gong ── supervisor ─┬─ keeper ── bash ── …
                        └─ keeper ── bash ── …

A message is one byte with descriptors: the keeper's socket to gong, and where the command's output
and its errors go. On its socket a keeper reads one request (`pack_request`), then single bytes:
TERMINATE or KILL. It writes lines: `started PID` or `failed ERRNO`, then `ended CODE` when the
shell has ended. It closes the socket when no process of the command is left.

When gong has ended, however it did, the supervisor sees the end of its socket and closes the pipe
that all keepers watch; each ends its command, and the supervisor waits for them.

A keeper's life, by what happens to it (`kill at` is the time its processes are killed):

    | event                          | kill at          | what it does                      |
    | ------------------------------ | ---------------- | --------------------------------- |
    | request read                   | never            | starts the shell, "started PID"   |
    | shell ended                    | unchanged        | "ended CODE", children live on    |
    | TERMINATE                      | in 2 s, at most  | SIGTERM and SIGCONT to all, once  |
    | KILL                           | now              |                                   |
    | its socket or gong has ended   | in 0.5 s, at most| SIGTERM and SIGCONT to all, once  |
    | `kill at` reached              | stays            | SIGSTOP, then SIGKILL to all      |
    | no process left                |                  | exits, which closes the socket    |

The file has two halves: serving gong (supervisor and keepers), and processes (found, signalled and
collected). The second knows nothing of the first.
"""

from __future__ import annotations

import array
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # the module that has this name loads slowly
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    Process = tuple[int, int, int]
    """Process id, that of the parent, that of the group."""

TERMINATE = b"T"
"""Ask all processes to end, and kill those that are left after GRACE_SECONDS."""
KILL = b"K"
"""Kill all processes at once."""
GRACE_SECONDS = 2.0
"""Between asking processes to end and killing them."""
ORPHAN_GRACE_SECONDS = 0.5
"""The same when gong itself was killed and nobody waits for an orderly end."""
WITHOUT_SUBREAPER = "--without-subreaper"
"""Work as on systems that have no subreaper: by process group and by parent."""

_LENGTH_BYTES = 8
_FIND_SECONDS = 0.02
"""How often processes that are being killed are looked for again."""
_LOOK_SECONDS = 1.0
"""How often a process group is looked at where the system does not tell of its end."""
_STOP_ROUNDS = 10
_HANDLES = 3
"""Descriptors of a message: the keeper's socket, standard output and standard error."""
_GONG_ENDED = 3
"""Exit code of a keeper in reserve that is not needed any more."""
_SET_CHILD_SUBREAPER, _SET_NAME = 36, 15  # linux/prctl.h
_PS = ("/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,stat=")
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)
"""What commands may send to their parents, or the terminal to all: a keeper must outlive it."""


def pack_request(argv: Sequence[str], folder: str, variables: Mapping[str, str]) -> bytes:
    """Return what a keeper reads; ValueError where a text holds a zero byte."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    parts = [os.fsencode(part) for part in (folder, str(len(argv)), *argv, *settings)]
    if any(b"\0" in part for part in parts):
        raise ValueError("a zero byte cannot be part of a command")
    data = b"\0".join(parts)
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


# --- serving gong ---


def main(arguments: Sequence[str]) -> None:
    """Serve gong until it ends, then wait until every keeper has ended its command."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.setsid()  # the terminal's signals are for gong
    # Nothing that gong had open may live on here: a lock would outlive a killed gong.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    reaps = WITHOUT_SUBREAPER not in arguments and _become_subreaper()
    gc.disable()
    gc.freeze()
    _Supervisor(reaps=reaps).serve()


class _Supervisor:
    """Keeps one keeper in reserve, and ends what a keeper that was killed has left.

    Forking takes longer than starting bash does, so it is done ahead: the keeper in reserve takes
    gong's next message, says so on a pipe, and the supervisor forks another one.
    """

    def __init__(self, *, reaps: bool) -> None:
        self._reaps = reaps
        self._control = socket.socket(fileno=0)
        self._wakeup = _open_child_wakeup()
        self._taken, self._takes = os.pipe()
        """Keepers write a byte to the second end when they take a command."""
        self._alive, self._life = os.pipe()
        """Keepers watch the first end; they end their commands when nobody holds the second."""
        self._keepers: set[int] = set()
        self._reserve: int | None = None
        self._gong_runs = True

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._taken, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        gong = None
        with suppress(AttributeError, OSError):  # not every system has handles of processes
            # A process that gong forked may hold its end of the socket: gong itself counts.
            gong = os.pidfd_open(os.getppid())
            poll.register(gong, select.POLLIN)
        while self._gong_runs:
            if self._reserve is None:
                self._fork_keeper()
            ready = {handle for handle, _ in poll.poll()}
            if self._taken in ready:
                os.read(self._taken, 1)
                self._reserve = None
            self._reap_children()
            self._gong_runs = self._gong_runs and gong not in ready
        os.close(self._life)
        while self._reap_children() and self._keepers:
            select.select([self._wakeup], [], [])
        if self._reaps:
            self._kill_strays()

    def _fork_keeper(self) -> None:
        try:
            pid = os.fork()
        except OSError:  # no more processes for now
            time.sleep(_LOOK_SECONDS)
            return
        if pid:
            self._keepers.add(pid)
            self._reserve = pid
            return
        # Nothing of the supervisor may run in the copy, whatever happens.
        code = 1
        try:
            code = self._run_keeper()
        finally:
            os._exit(code)

    def _run_keeper(self) -> int:
        """Wait for a command and see it through; return the exit code."""
        for handle in (self._life, self._wakeup, self._taken):
            os.close(handle)
        if self._reaps:
            _become_subreaper()
        wakeup = _open_child_wakeup()
        ready, _, _ = select.select([self._control.fileno(), self._alive], [], [])
        handles = array.array("i")
        room = socket.CMSG_SPACE(handles.itemsize * _HANDLES)
        with suppress(OSError):
            received = self._control.recvmsg(1, room)[1] if self._alive not in ready else []
            for level, kind, content in received:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    whole = len(content) // handles.itemsize * handles.itemsize
                    handles.frombytes(content[:whole])
        if len(handles) != _HANDLES:
            return _GONG_ENDED
        for handle in handles:  # commands get copies of two, and no way to gong
            os.set_inheritable(handle, False)
        os.write(self._takes, b"t")
        os.close(self._takes)
        os.dup2(os.open(os.devnull, os.O_RDWR), self._control.detach())
        channel, *outputs = handles
        _Keeper(channel, outputs, self._alive, wakeup, reaps=self._reaps).serve()
        return 0

    def _reap_children(self) -> bool:
        """Collect what has ended; False when nothing is left.

        The processes of a keeper that was killed became ours, and are killed here.
        """
        _drain_descriptor(self._wakeup)
        for pid, code in _collect_ended_children():
            if pid not in self._keepers:
                continue
            self._keepers.discard(pid)
            if pid == self._reserve:
                self._reserve = None
            if code == _GONG_ENDED:
                self._gong_runs = False
            elif code != 0 and self._reaps:
                self._kill_strays()
        return _has_children()

    def _kill_strays(self) -> None:
        table = list(_list_processes())
        roots = {pid for pid, parent, _ in table if parent == os.getpid()} - self._keepers
        _kill_all_processes(lambda: _find_descendants(_list_processes(), roots))


class _Keeper:
    """Starts one command, tells gong how it goes, and leaves when none of its processes is left."""

    def __init__(
        self, channel: int, outputs: Sequence[int], alive: int, wakeup: int, *, reaps: bool
    ) -> None:
        self._channel, self._outputs = channel, outputs
        self._alive, self._wakeup, self._reaps = alive, wakeup, reaps
        self._shell: int | None = None
        self._shell_runs = True
        self._kill_at: float | None = None
        """When processes that were asked to end are killed; None while nobody wants that."""

    def serve(self) -> None:
        try:
            self._start_command()
        except OSError as error:
            self._send_line(b"failed %d\n" % (error.errno or 0))
            return
        self._send_line(b"started %d\n" % (self._shell or 0))
        poll = select.poll()
        for handle in (self._channel, self._alive, self._wakeup):
            poll.register(handle, select.POLLIN)
        while self._has_processes():
            timeout = None if self._reaps or self._shell_runs else _LOOK_SECONDS
            if self._kill_at is not None:
                timeout = max(self._kill_at - time.monotonic(), _FIND_SECONDS)
            ready = {handle for handle, _ in poll.poll(timeout and timeout * 1000)}
            _drain_descriptor(self._wakeup)
            if self._alive in ready:
                poll.unregister(self._alive)
                self._terminate_processes(ORPHAN_GRACE_SECONDS)
            if self._channel in ready and not self._handle_request():
                poll.unregister(self._channel)
            due = self._kill_at is not None and time.monotonic() >= self._kill_at
            if due and not _kill_all_processes(self._find_processes):
                return  # what is left may not be killed

    def _start_command(self) -> None:
        length = int.from_bytes(self._read_exactly(_LENGTH_BYTES), "big")
        folder, count, *parts = self._read_exactly(length).split(b"\0")
        argv, settings = parts[: int(count)], parts[int(count) :]
        stdout, stderr = self._outputs

        def spawn(**leads: Any) -> int:
            return os.posix_spawn(
                argv[0],
                argv,
                dict(setting.split(b"=", 1) for setting in settings),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, stdout, 1),
                    (os.POSIX_SPAWN_DUP2, stderr, 2),
                ],
                setsigmask=[],
                setsigdef=[*_IGNORED, signal.SIGXFSZ],  # Python ignores SIGXFSZ, too
                **leads,
            )

        os.chdir(folder)
        try:
            self._shell = spawn(setsid=True)
        except NotImplementedError:  # an old C library
            self._shell = spawn(setpgroup=0)
        finally:
            os.chdir("/")  # the folder must not be busy because of us
            os.close(stdout)
            os.close(stderr)

    def _read_exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            chunk = os.read(self._channel, length - len(data))
            if not chunk:
                os._exit(0)  # gong ended before it had said what to run
            data += chunk
        return data

    def _send_line(self, line: bytes) -> None:
        with suppress(OSError):  # gong has ended
            os.write(self._channel, line)

    def _has_processes(self) -> bool:
        """Whether anything of the command is left; tells gong when the shell has ended."""
        for pid, code in _collect_ended_children():
            if pid == self._shell:
                self._shell_runs = False
                self._send_line(b"ended %d\n" % code)
        if self._reaps or self._shell_runs:
            return not self._reaps or _has_children()
        assert self._shell is not None
        try:
            os.killpg(self._shell, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS says so of a group of zombies, too
            return any(self._find_processes())
        return True

    def _handle_request(self) -> bool:
        """Do what gong asks for; False when it asks for nothing any more."""
        try:
            request = os.read(self._channel, 16)
        except OSError:
            request = b""
        if KILL in request:
            self._kill_at = 0.0
        elif TERMINATE in request:
            self._terminate_processes(GRACE_SECONDS)
        elif not request:
            self._terminate_processes(ORPHAN_GRACE_SECONDS)
        return bool(request)

    def _terminate_processes(self, grace: float) -> None:
        """Ask every process to end, once; a shorter grace replaces a longer one."""
        at = time.monotonic() + grace
        if self._kill_at is None:
            for pid in self._find_processes():
                _send_signal(pid, signal.SIGTERM)
                _send_signal(pid, signal.SIGCONT)  # one that is stopped would not hear it
            self._kill_at = at
        self._kill_at = min(self._kill_at, at)

    def _find_processes(self) -> list[int]:
        """Return every process of the command that runs."""
        assert self._shell is not None
        table = list(_list_processes())
        if self._reaps:
            roots = {pid for pid, parent, _ in table if parent == os.getpid()}
        else:
            roots = {pid for pid, _, group in table if self._shell in (pid, group)}
        return _find_descendants(table, roots)


# --- processes: found, signalled, collected ---


def _kill_all_processes(find: Callable[[], list[int]]) -> bool:
    """Kill what `find` returns; False when there is something, and all of it refuses.

    All are stopped first, so that none of them starts another one meanwhile.
    """
    stopped: set[int] = set()
    for _ in range(_STOP_ROUNDS):
        running = [pid for pid in find() if pid not in stopped]
        if not running:
            break
        for pid in running:
            _send_signal(pid, signal.SIGSTOP)
        stopped.update(running)
    sent = [_send_signal(pid, signal.SIGKILL) for pid in stopped]
    return any(sent) or not sent


def _send_signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False when it is not ours to send, as for programs of another user."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _find_descendants(table: Iterable[Process], roots: Iterable[int]) -> list[int]:
    """Return the processes `roots` and all that descend from them."""
    children: dict[int, list[int]] = {}
    for pid, parent, _ in table:
        children.setdefault(parent, []).append(pid)
    family = list(dict.fromkeys(roots))
    seen = set(family)
    for pid in family:
        family += (fresh := [child for child in children.get(pid, ()) if child not in seen])
        seen.update(fresh)
    return family


def _list_processes() -> Iterator[Process]:
    """Yield every process that runs; zombies are dead."""
    try:
        entries = list(os.scandir("/proc"))
    except OSError:
        entries = []
    names = [entry.name for entry in entries if entry.name.isdigit()]
    if not names:
        yield from _list_processes_by_ps()
        return
    for name in names:
        try:
            handle = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:
            continue  # it ended meanwhile
        try:
            stat = os.read(handle, 4096)
        except OSError:
            continue
        finally:
            os.close(handle)
        # The name before the bracket may hold anything, spaces and brackets too.
        state, parent, group, *_ = stat[stat.rfind(b")") + 2 :].split()
        if state not in {b"Z", b"X"}:
            yield int(name), int(parent), int(group)


def _list_processes_by_ps() -> Iterator[Process]:
    reading, writing = os.pipe()
    try:
        ps = os.posix_spawn(
            _PS[0], _PS, {"LC_ALL": "C"}, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)]
        )
    except OSError:
        os.close(reading)
        return
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as file:
        lines = file.read().split(b"\n")
    os.waitpid(ps, 0)
    for line in lines:
        fields = line.split()
        if len(fields) == len(_PS[-1].split(",")) and not fields[3].startswith(b"Z"):
            pid, parent, group = map(int, fields[:3])
            if pid != ps:
                yield pid, parent, group


def _collect_ended_children() -> Iterator[tuple[int, int]]:
    """Collect children that have ended: number and exit code, -N for signal N."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _open_child_wakeup() -> int:
    """Return a descriptor that can be read when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _drain_descriptor(handle: int) -> None:
    with suppress(BlockingIOError):
        os.read(handle, 4096)


def _become_subreaper() -> bool:
    """Adopt whatever loses its parent below this process; False where the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        prctl = ctypes.CDLL(None).prctl
        prctl(_SET_NAME, b"gong-keeper", 0, 0, 0)
        return bool(prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


if __name__ == "__main__":
    main(sys.argv[1:])
