"""However gong ends, every process that its commands started ends, too: signals by shapes.

Each shape is ended by SIGKILL and by one signal more, and with TEST_BUDGET above 1 by all of them.
The processes of a test are found by a variable in their environment, which no shape can lose but
on purpose.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.tape.making import crossed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")

PATIENCE_SECONDS = 30
ASKING = [signal.SIGHUP, signal.SIGTERM, signal.SIGINT]
"""Signals that ask gong to end: it handles them alike, and it cannot handle SIGKILL."""
_PYTHON = sys.executable
_DAEMON = (
    "import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.closerange(0, 3)\n"
    "open('p1', 'w').write(str(os.getpid()))\n"
    "time.sleep(600)\n"
)
_SUBPROCESS = (
    "import subprocess, sys\n"
    "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    "open('p1', 'w').write(str(child.pid))\n"
    "child.wait()\n"
)

SHAPES = {
    "sleep": "echo $$ >p1; sleep 600",
    "pipeline": "sleep 600 | (echo $BASHPID >p1; sleep 600) | cat",
    "background": "sleep 600 & echo $! >p1; wait",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & echo $! >p1; wait",
    "setsid": "setsid sleep 600 & echo $! >p1; setsid -w bash -c 'echo $$ >p2; sleep 600'",
    "daemon": f'{_PYTHON} -c "{_DAEMON}"; sleep 600',
    "ignores signals": "trap '' TERM HUP INT; echo $$ >p1; while :; do sleep 0.1; done",
    "keeps the output": "(echo $BASHPID >p1; exec sleep 600) & wait",
    "subshells": "( ( (echo $BASHPID >p1; sleep 600; :) ; : ); : ); :",
    "exec": "echo $$ >p1; exec sleep 600",
    "python": f'{_PYTHON} -c "{_SUBPROCESS}"',
    "disown": "sleep 600 & echo $! >p1; disown; sleep 600",
    "coproc": "coproc sleep 600; echo $COPROC_PID >p1; wait",
    "stopped": "sleep 600 & kill -STOP $!; echo $! >p1; wait",
}
"""What a command may be; each writes the number of a process it wants to outlive us with."""

BEHIND = {
    "server": "sleep 600 & echo $! >p1",
    "daemon": f'{_PYTHON} -c "{_DAEMON}"; until [ -s p1 ]; do sleep 0.01; done',
    "ignores signals": "(trap '' TERM HUP INT; echo $BASHPID >p1; while :; do sleep 0.1; done) &"
    " until [ -s p1 ]; do sleep 0.01; done",
}
"""What a command may leave running when its shell has ended."""


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


class Marked:
    """Runs gong with a mark in its environment, and finds what it started by that."""

    def __init__(self, place):
        self.place, self.mark = place, f"mark{uuid.uuid4().hex}"

    def start(self, *argv, **more):
        return self.place.start(*argv, MARK=self.mark, **more)

    def model(self, command, *more, **args):
        call = {"tool_calls": [{"name": "bash", "args": {"command": command, **args}}]}
        return self.place.script(call, *more)

    def running(self):
        """Return what runs with the mark, as number → command line."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                marked = self.mark.encode() in (folder / "environ").read_bytes()
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                dead = (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                continue
            if marked and not dead:
                found[int(folder.name)] = line
        return found

    def wait_for_files(self, *names):
        files = [self.place.folder / name for name in names]
        wait_until(
            lambda: all(file.exists() and file.read_text().strip() for file in files),
            lambda: f"{names} did not appear",
        )

    def wait_for_none(self):
        wait_until(lambda: not self.running(), lambda: f"still running: {self.running()}")

    def end_all(self):
        for pid in self.running():
            with suppress(ProcessLookupError):  # it may have ended since
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def marked(place):
    marked = Marked(place)
    yield marked
    marked.end_all()


def awaited(command):
    return ("p1", "p2") if "p2" in command else ("p1",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "number"), [*crossed(SHAPES, [signal.SIGKILL]), *crossed(SHAPES, ASKING)]
)
def test_a_signal_to_a_prompt_ends_every_process_of_its_command(marked, number, shape):
    """M089"""
    command = SHAPES[shape]
    process = marked.start("gong", "chat", "-p", "go", "-m", marked.model(command))
    marked.wait_for_files(*awaited(command))
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    if number != signal.SIGKILL:
        assert marked.running() == {}
        assert said_last(marked.place) == ["tool.result", "error"]
    marked.wait_for_none()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_time_out_ends_every_process_of_its_command(marked, shape):
    """M089 M093"""
    for seconds in (1, 4, 16):  # a loaded machine may not come to start it in the first
        model = marked.model(SHAPES[shape], {"text": "done"}, timeout=seconds)
        done = marked.place.run("gong", "chat", "-p", "go", "-m", model, MARK=marked.mark)
        assert done.stdout == "done\n"
        assert marked.running() == {}
        if (marked.place.folder / "p1").exists():
            break
    assert (marked.place.folder / "p1").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "number"),
    crossed(["sleep", "setsid", "daemon", "ignores signals"], [signal.SIGKILL, *ASKING]),
)
def test_a_signal_to_a_tool_run_by_hand_ends_every_process_of_it(marked, number, shape):
    command = SHAPES[shape]
    process = marked.start("gong", "tool", "bash", json.dumps({"command": command}))
    marked.wait_for_files(*awaited(command))
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    if number != signal.SIGKILL:
        assert marked.running() == {}
    marked.wait_for_none()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "shape"),
    crossed([0, signal.SIGKILL, signal.SIGHUP, signal.SIGTERM], list(BEHIND)),
)
def test_what_a_command_leaves_behind_lives_until_gong_ends(marked, number, shape):
    """M089: a server that a model starts serves later calls, and ends with gong."""
    second = "kill -0 $(cat p1) && touch lived; until [ -e go ]; do sleep 0.02; done"
    calls = [
        {"tool_calls": [{"name": "bash", "args": {"command": command}}]}
        for command in (BEHIND[shape], second)
    ]
    model = marked.place.script(*calls, {"text": "done"})
    process = marked.start("gong", "chat", "-p", "go", "-m", model)
    wait_until((marked.place.folder / "lived").exists, lambda: "the server did not live")
    if number:
        process.send_signal(number)
    else:
        (marked.place.folder / "go").touch()
    process.communicate(timeout=PATIENCE_SECONDS)
    if number != signal.SIGKILL:
        assert process.returncode == (130 if number else 0)
        assert marked.running() == {}
    marked.wait_for_none()


def test_the_lock_of_a_killed_gong_is_free_immediately(marked):
    """No lock is inherited by a command or by what looks after it."""
    place = marked.place
    command = SHAPES["ignores signals"]
    process = marked.start("gong", "chat", "-p", "go", "-m", marked.model(command))
    marked.wait_for_files("p1")
    (tape,) = place.tapes()
    held = [
        (pid, target)
        for pid in {*marked.running(), *below(process.pid)} - {process.pid}
        for target in opened(pid)
        if str(tape) in target
    ]
    assert held == []
    process.kill()
    process.communicate()
    model = place.script({"text": "on"}, name="after.json")
    done = place.run("gong", "chat", "-c", "-p", "and now?", "-m", model)
    assert (done.stdout, "branch of its own" in done.stderr) == ("on\n", False)


def opened(pid):
    """Return what a process has open; nothing of one that has ended."""
    found = []
    with suppress(FileNotFoundError):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(str(handle.readlink()))
    return found


def below(pid):
    """Return the processes that descend from one."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    parents = dict(map(int, line.split()) for line in table.splitlines())
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_file_of_a_long_output_is_left_when_gong_is_ended(marked, number):
    """M030 J9-1.6"""
    place = marked.place
    temporary = place.home / "temporary"
    temporary.mkdir()
    model = marked.model("seq 1 300000; echo x >p1; sleep 600")
    process = marked.start("gong", "chat", "-p", "go", "-m", model, TMPDIR=str(temporary))
    marked.wait_for_files("p1")
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)
    marked.wait_for_none()
    assert list(temporary.iterdir()) == []


def test_a_second_signal_kills_what_does_not_want_to_end(marked):
    """C2"""
    model = marked.model(SHAPES["ignores signals"])
    process = marked.start("gong", "chat", "-p", "go", "-m", model)
    marked.wait_for_files("p1")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert marked.running() == {}


def test_a_prompt_under_nohup_outlives_its_terminal(marked):
    command = "echo $$ >p1; until [ -e go ]; do sleep 0.02; done"
    model = marked.model(command, {"text": "done"})
    gong = str(marked.place.bin / "gong")
    process = subprocess.Popen(
        ["nohup", gong, "chat", "-p", "go", "-m", model],
        cwd=marked.place.folder,
        env={**marked.place.env, "MARK": marked.mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    marked.wait_for_files("p1")
    process.send_signal(signal.SIGHUP)
    (marked.place.folder / "go").touch()
    assert process.communicate(timeout=PATIENCE_SECONDS)[0] == b"done\n"


@pytest.mark.parametrize("flags", [(), ("-p", "go")])
def test_a_closed_terminal_ends_the_session_in_order(marked, flags):
    place, model = marked.place, marked.model(SHAPES["setsid"])
    terminal = Terminal(
        [str(place.bin / "gong"), "chat", "-m", model, *flags],
        cwd=place.folder,
        env={**place.env, "MARK": marked.mark},
    )
    if not flags:
        terminal.wait_for("ready")
        terminal.say("go")
    marked.wait_for_files("p1", "p2")
    terminal.close_window()
    marked.wait_for_none()
    assert said_last(place) == ["tool.result", "error"]


def said_last(place):
    """Return the types of the last two entries of the session."""
    return [entry["type"] for entry in place.json("tape", "log", "--json")[-2:]]
