"""Programs try to leave the sandbox, as the user of the tests and as nobody: harmless probes.

Each writes a marker, reads a fake key, reaches for a listener of the test, or asks the kernel for
what it should refuse. `held` says from outside whether the border held.
"""

import os
import socket
import subprocess
import time
from typing import NamedTuple

import pytest

from tests.gong.env.sandbox.world import list_users, make_world, needs_bubblewrap

pytestmark = [needs_bubblewrap]

PYTHON = "$PYTHON -c"
SOCKET = "import socket; "
CALL = "import ctypes, errno; c = ctypes.CDLL(None, use_errno=True).syscall; "


def refuse_call(*arguments, codes=("EPERM", "ENOSYS")):
    """Return a command that ends with 3 if the kernel refuses a call as the filter does."""
    text = ", ".join(map(str, arguments))
    names = " or ".join(f"n == errno.{code}" for code in codes)
    return (
        f"{PYTHON} '{CALL}r = c({text}); n = ctypes.get_errno(); "
        f"raise SystemExit(3 if r < 0 and ({names}) else 0)'"
    )


def fails(_world, result):
    return result[0] != 0


def is_refused(_world, result):
    return result[0] == 3


def keeps(name, text):
    """Return whether a file of the home, or outside, is as it was."""

    def check(world, _result):
        path = world.base / name
        return (path.read_text() if path.exists() else None) == text

    return check


keeps_out = keeps("outside/marker", None)


def hides(text):
    return lambda _world, result: text not in result[1]


def is_missing(folder):
    return lambda world, _result: not os.path.lexists(f"{folder}/{world.variables['ABSTRACT']}")


def reports(name):
    return lambda world, result: f"{world.project}/{name}" in result[3]


class Attempt(NamedTuple):
    """One way to leave; `$OUT` is outside, `$PID` a process of the same user there."""

    name: str
    command: str
    held: object


PROJECT = "home/work/project"
ATTEMPTS = [
    Attempt("startup file of a shell", "echo evil >> ~/.bashrc", keeps("home/.bashrc", "plain")),
    Attempt("folder of programs", "echo evil > ~/bin/evil", keeps("home/bin/evil", None)),
    Attempt("git's global settings", "git config --global a.b c", keeps("home/.gitconfig", "")),
    Attempt("link out", "ln -s $OUT link; echo evil > link/marker", keeps("outside/marker", None)),
    Attempt("hard link", "ln $OUT/file hard; echo evil >> hard", keeps("outside/file", "plain")),
    Attempt("move from outside", "mv $OUT/file moved", keeps("outside/file", "plain")),
    Attempt(
        "folder swapped for a link",
        "mkdir d; (for i in 1 2 3; do echo evil > d/marker; done) & rmdir d; ln -s $OUT d; wait;"
        " echo evil > d/marker",
        keeps("outside/marker", None),
    ),
    Attempt(
        "folder swapped for a link again and again",
        "mkdir r; (for i in $(seq 40); do rm -rf r; ln -s $OUT r; rm r; mkdir r; done) 2>&- &"
        " for i in $(seq 40); do echo evil > r/marker; done 2>&-; wait",
        keeps("outside/marker", None),
    ),
    Attempt("up from a descriptor", "exec 9<.; echo > /proc/self/fd/9/$UP/marker", keeps_out),
    Attempt("its own root", "echo evil > /proc/self/root$OUT/marker", keeps_out),
    Attempt("root of the first process", "echo evil > /proc/1/root$OUT/marker", keeps_out),
    Attempt(
        "git hook",
        "echo evil > .git/hooks/pre-commit",
        keeps(f"{PROJECT}/.git/hooks/pre-commit", None),
    ),
    Attempt("git's settings", "git config core.fsmonitor evil", fails),
    Attempt("git's settings appended", "echo '[a]' >> .git/config", fails),
    Attempt(
        "git's folder moved", "mv .git moved-git && mkdir .git", keeps(f"{PROJECT}/moved-git", None)
    ),
    Attempt("settings of a submodule", "echo '[a]' >> .git/modules/sub/config", fails),
    Attempt("hook of a submodule", "echo > .git/modules/sub/hooks/pre-commit", fails),
    Attempt("submodule moved", "mv .git/modules/sub .git/modules/b", fails),
    Attempt("new submodule", "mkdir .git/modules/new", fails),
    Attempt("what settings include", "echo '[a]' >> conf/git.inc", fails),
    Attempt("folder of what settings include", "mv conf conf2", fails),
    Attempt("link of a submodule", "echo gitdir: x > sub/.git", fails),
    Attempt(
        "another common folder of git",
        "mkdir c; echo ../c > .git/commondir",
        lambda world, result: (
            reports(".git/commondir")(world, result)
            and not (world.project / ".git/commondir").exists()
        ),
    ),
    Attempt(
        "settings of a worktree",
        "echo '[a]' > .git/config.worktree",
        reports(".git/config.worktree"),
    ),
    Attempt("hooks swapped for a link", "rm -rf .git/hooks; ln -sn $OUT .git/hooks", fails),
    Attempt("gong's settings of the project", "echo x > .gong/config.toml", fails),
    Attempt("new hooks of the project", "echo x > .gong/hooks.json", fails),
    Attempt("gong's folder made again", "mv .gong g && mkdir .gong", fails),
    Attempt("servers of the project", "echo x > .mcp.json", keeps(f"{PROJECT}/.mcp.json", "{}")),
    Attempt("the same by a rename", "echo x > t; mv -f t .mcp.json", fails),
    Attempt(
        "new settings of another agent",
        "mkdir .claude; echo '{}' > .claude/settings.json",
        reports(".claude"),
    ),
    Attempt("new startup file of direnv", "echo > .envrc", reports(".envrc")),
    Attempt("new tasks of an editor", "mkdir .vscode", reports(".vscode")),
    Attempt("tapes", "echo evil > ~/.tape/tapes/a", keeps("home/.tape/tapes/a", "FAKE-TAPE")),
    Attempt("tapes read", "cat ~/.tape/tapes/a", hides("FAKE-TAPE")),
    Attempt("key of ssh", "cat ~/.ssh/id_fake", hides("FAKE-KEY")),
    Attempt("gong's keys", "cat ~/.config/gong/credentials.json", hides("FAKE-CREDENTIAL")),
    Attempt("variables of a process", "tr '\\0' '\\n' < /proc/$PID/environ", hides("FAKE-SECRET")),
    Attempt("root of a process", "ls /proc/$PID/root/", fails),
    Attempt("folder of a process", "echo > /proc/$PID/cwd/marker", keeps("outside/marker", None)),
    Attempt("descriptor of a process", "ls /proc/$PID/fd", fails),
    Attempt("signal", "kill -CONT $PID", fails),
    Attempt("ptrace", refuse_call(101, 0, 0, 0, 0), is_refused),
    Attempt("memory of a process", refuse_call(310, 1, 0, 0, 0, 0, 0), is_refused),
    Attempt(
        "typing into a terminal",
        f'{PYTHON} \'import pty, fcntl\ntry: fcntl.ioctl(pty.openpty()[1], 0x5412, b"x")\n'
        "except PermissionError: raise SystemExit(3)'",
        is_refused,
    ),
    Attempt(
        "TCP", f"{PYTHON} '{SOCKET}socket.create_connection((\"127.0.0.1\", $PORT), 3)'", fails
    ),
    Attempt(
        "UDP",
        f'{PYTHON} \'{SOCKET}socket.socket(type=2).sendto(b"x", ("127.0.0.1", $PORT))\'',
        lambda world, _result: not world.datagrams(),
    ),
    Attempt(
        "abstract socket",
        f"{PYTHON} '{SOCKET}socket.socket(1).connect(\"\\0$ABSTRACT\")'",
        fails,
    ),
    Attempt("socket of a path", f"{PYTHON} '{SOCKET}socket.socket(1).connect(\"$SOCKET\")'", fails),
    Attempt("sockets of the system", "ls -A /run", lambda _world, result: result[:2] == [0, ""]),
    Attempt("socket to a host", refuse_call(41, 40, 1, 0), is_refused),
    Attempt("socket for packets", refuse_call(41, 17, 3, 0), is_refused),
    Attempt("socket to the kernel", refuse_call(41, 16, 3, 0), is_refused),
    Attempt("device", "mknod device c 1 3", fails),
    Attempt("mount", refuse_call(165, 0, 0, 0, 0, 0), is_refused),
    Attempt("new tree of mounts", refuse_call(428, 0, 0, 0), is_refused),
    Attempt("root mounted again", "mount -o remount,rw /", fails),
    Attempt("another root", refuse_call(161, 0), is_refused),
    Attempt("namespace of a process", refuse_call(308, 0, 0), is_refused),
    Attempt("descriptor by its process", refuse_call(438, 0, 0, 0), is_refused),
    Attempt("file by its handle", refuse_call(304, 0, 0, 0), is_refused),
    Attempt("faults of memory", refuse_call(323, 0), is_refused),
    Attempt("events of the machine", refuse_call(298, 0, 0, 0, 0, 0), is_refused),
    Attempt("namespace", "unshare -Ur true", fails),
    Attempt("namespace by clone3", refuse_call(435, 0, 0), is_refused),
    Attempt("rights of the owner", "touch f; chmod 4755 f", fails),
    Attempt(
        "rights of the owner at once",
        f"{PYTHON} 'import os; os.open(\"g\", os.O_CREAT | os.O_WRONLY, 0o6755)'",
        fails,
    ),
    Attempt(
        "process that outlives",
        "setsid sleep 98765$PID & sleep 0.1",
        lambda world, _result: wait_until_gone(f"sleep 98765{world.variables['PID']}"),
    ),
    Attempt("shared memory", "echo > /dev/shm/$ABSTRACT", is_missing("/dev/shm")),
    Attempt("shared temporary folder", "echo > /tmp/$ABSTRACT", is_missing("/tmp")),
    Attempt(
        "settings of the kernel",
        f"{PYTHON} 'import os; os.open(\"/proc/sys/kernel/core_pattern\", os.O_WRONLY)'",
        fails,
    ),
    Attempt(
        "keys of the kernel",
        f"{PYTHON} 'import os; os.open(\"/proc/sysrq-trigger\", os.O_WRONLY)'",
        fails,
    ),
    Attempt(
        "descriptors",
        "ls /proc/self/fd | tr '\\n' ' '",
        lambda _world, result: result[1].split() == ["0", "1", "2", "3"],
    ),
    Attempt("io_uring", refuse_call(425, 1, 0), is_refused),
    Attempt("bpf", refuse_call(321, 0, 0, 0), is_refused),
    Attempt("keyring", refuse_call(250, 0, 0), is_refused),
    Attempt("calls of another kind", refuse_call(0x40000000 + 39), is_refused),
    Attempt("memory", f"{PYTHON} 'bytearray(700 << 20).hex()'", fails),
    Attempt(
        "processes",
        f"{PYTHON} 'import os\nfor _ in range(400):\n    if os.fork() == 0:\n"
        "        import time; time.sleep(30); os._exit(0)'",
        fails,
    ),
]
BY_DESIGN = "echo evil >> Makefile"


def wait_until_gone(command):
    """Return whether no process runs a command any more; the kernel takes a moment to end one."""
    end = time.monotonic() + 30
    while command in list_commands():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def list_commands():
    return subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, check=True).stdout


@pytest.fixture(
    scope="module", params=list_users(), ids=lambda user: "self" if user is None else "nobody"
)
def attempts(request):
    """Return a world and the result of every attempt in it, all made by one sandbox.

    It is in no folder of which a sandbox has its own, so that what is outside can be seen.
    """
    with make_world(request.param, "/var/tmp") as world:
        yield from make_attempts(world)


def listen_twice():
    """Return sockets for TCP and UDP on one port that both have free."""
    while True:
        listener = socket.create_server(("127.0.0.1", 0))
        datagrams = socket.socket(type=socket.SOCK_DGRAM)
        datagrams.settimeout(0)
        try:
            datagrams.bind(listener.getsockname())
        except OSError:
            listener.close()
            datagrams.close()
            continue
        return listener, datagrams


def make_attempts(world, attempts=ATTEMPTS, run=None):
    """Yield the world and the result of each attempt in it; `run` is another sandbox's."""
    listener, datagrams = listen_twice()
    port = listener.getsockname()[1]
    abstract = f"gong-test-{os.getpid()}-{world.user}"
    hidden, named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    hidden.bind(f"\0{abstract}")
    hidden.listen()
    path = world.base / "s"
    named.bind(str(path))
    path.chmod(0o777)
    named.listen()
    victim = subprocess.Popen(
        ("sleep", "1000"), cwd=world.outside, env={"SECRET": "FAKE-SECRET"}, **world.rights
    )

    def read_datagrams():
        try:
            return datagrams.recv(10)
        except BlockingIOError:
            return b""

    world.datagrams = read_datagrams
    world.variables = {
        "PYTHON": world.python,
        "OUT": str(world.outside),
        "UP": os.path.relpath(world.outside, world.project),
        "PID": str(victim.pid),
        "PORT": str(port),
        "ABSTRACT": abstract,
        "SOCKET": str(path),
    }
    try:
        commands = [attempt.command for attempt in attempts]
        limits = [400 << 20, 200 if world.user else 300]
        run = run or type(world).run_inside
        answer = run(world, [*commands, BY_DESIGN], limits=limits)
        assert answer["kind"] == "bubblewrap"
        names = [attempt.name for attempt in attempts]
        yield world, dict(zip([*names, "by design"], answer["results"], strict=True))
    finally:
        victim.kill()
        victim.wait()
        for each in (datagrams, listener, hidden, named):
            each.close()


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_the_border_holds(attempts, attempt):
    """M179, M220: a program inside reaches nothing outside."""
    world, results = attempts
    result = results[attempt.name]
    assert attempt.held(world, result), result


def test_the_folder_itself_can_be_written(attempts):
    world, results = attempts
    assert results["by design"][0] == 0
    assert (world.project / "Makefile").read_text() == "all:\nevil\n"
