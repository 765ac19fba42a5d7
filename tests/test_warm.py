"""A forked command cannot be told from one that is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests import warm

COMMANDS = [
    ("gong", "chat", "-p", "hello", "-m", "offline/rules"),
    ("gong", "tool", "bash", '{"command": "pwd; echo $MARK; tty; cat; exit 3"}'),
    ("gong", "nonsense"),
    ("gong", "--help"),
    ("tape", "ls", "--all", "--json"),
    ("tape", "cat", "nothing"),
    ("tape", "append", "nothing"),
    ("tape", "--version"),
]


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_the_output_and_the_exit_code_are_the_same(tmp_path, argv):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MARK": "é"}
    command = [warm.BIN / argv[0], *argv[1:]]
    both = [
        warm.run(command, cwd=tmp_path, env={**env, **more}, stdin="wörter\n".encode())
        for more in ({}, {"PYTHONNODEBUGRANGES": "1"})
    ]
    forked, started = (
        (done.returncode, done.stdout.split(b"duration_ms")[0], done.stderr) for done in both
    )
    assert forked == started


def test_a_command_that_runs_too_long_is_killed(tmp_path):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    with pytest.raises((TimeoutError, subprocess.TimeoutExpired)):
        warm.run(
            [warm.BIN / "gong", "tool", "bash", '{"command": "sleep 600"}'],
            cwd=tmp_path,
            env=env,
            seconds=0.5,
        )


def test_forks_can_be_switched_off(tmp_path):
    code = "from tests import warm; print(warm._may_be_forked([f'{warm.BIN}/tape'], warm.LOCALE))"
    answers = [
        subprocess.check_output(
            [sys.executable, "-c", code], cwd=warm.ROOT, env={**os.environ, **more}
        )
        for more in ({"TEST_WARM": "0"}, {"TEST_WARM": "1"})
    ]
    has_forks = warm.BUDGET == 1 and hasattr(os, "pidfd_open")
    assert answers == [b"False\n", f"{has_forks}\n".encode()]


def test_a_suite_under_nohup_starts_programs_that_signals_end():
    """`nohup` and the `&` of a shell ignore them, and what is ignored is inherited."""
    code = "import os, tests.conftest; os.execvp('sh', ['sh', '-c', 'kill -HUP $$; echo alive'])"
    script = f"""trap '' HUP INT; exec '{sys.executable}' -c "{code}" """
    done = subprocess.run(["sh", "-c", script], cwd=warm.ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGHUP, b"", b"")


def _run_in_shell(folder, script):
    """Run a script in which `tape` and `gong` are those of `find_commands`."""
    folder.mkdir()
    path = os.pathsep.join([str(warm.find_commands()), str(warm.BIN), os.environ["PATH"]])
    env = {"HOME": str(folder), "PATH": path, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("argv", ["gong chat -p hello -m offline/rules", "tape cat nothing"])
def test_a_shell_gets_the_same_from_a_fork(tmp_path, argv):
    forked = _run_in_shell(tmp_path / "one", f"echo x | {argv}")
    started = _run_in_shell(tmp_path / "two", f"echo x | PYTHONNODEBUGRANGES=1 {argv}")
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def test_a_shell_ends_a_fork_by_a_signal(tmp_path):
    script = (
        """gong tool bash '{"command": "echo >began; sleep 600"}' & """
        "until [ -e began ]; do sleep 0.02; done; kill $!; wait $!; echo $?"
    )
    assert _run_in_shell(tmp_path / "place", script).stdout.endswith(b"130\n")


def test_a_fork_ends_when_its_client_is_killed(tmp_path):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    command = [warm.find_commands() / "gong", "rpc", "-m", "offline/rules"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        one.stdin.write(b'{"id":1,"method":"nothing"}\n')
        one.stdin.flush()
        assert b'"id":1' in one.stdout.readline()
        one.kill()
        assert one.stdout.read() == b""
    assert one.returncode == -9
