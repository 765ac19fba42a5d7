"""What a shell offers for `gong` when somebody presses Tab: as its script asks, in real shells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

BIN = Path(sys.executable).parent
SHELLS = ("bash", "zsh", "fish")
BEGIN = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}
LOAD = {
    "bash": 'bind "set enable-bracketed-paste off" 2>/dev/null; eval "$(gong completion bash)"',
    "zsh": 'autoload -U compinit; compinit -u; eval "$(gong completion zsh)"',
    "fish": "gong completion fish | source",
}


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "home").mkdir()
    path = f"{BIN}:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(tmp_path / "home"), "PATH": path, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def session(environ, tmp_path):
    """A session with a second branch, in an index: the id of its tape."""

    def run(*argv):
        return subprocess.run(
            [BIN / argv[0], *argv[1:]],
            env=environ,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    run("gong", "-p", "list .", "-m", "offline/rules")
    (row,) = json.loads(run("tape", "ls", "--json"))
    run("tape", "fork", row["id"], "--name", "side")
    run("tape", "ls")
    return row["id"]


def offer(environ, line, cwd):
    """Return what the command answers to bash for a line; nothing on stderr."""
    done = subprocess.run(
        [BIN / "gong"],
        env={**environ, "GONG_LINE": line, "_GONG_COMPLETE": "bash_complete"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_commands_options_and_values(environ, tmp_path):
    assert offer(environ, "gong comp", tmp_path) == ["compact", "completion"]
    assert offer(environ, "gong --sess", tmp_path) == ["--session"]
    assert offer(environ, "gong -c --hist", tmp_path) == ["--history"]
    assert offer(environ, "gong chat --effort h", tmp_path) == ["high"]
    assert offer(environ, "gong chat --output-format s", tmp_path) == ["stream-json"]
    assert offer(environ, "gong tape re", tmp_path)[:2] == ["rename", "replay"]
    assert "anthropic/claude-sonnet-4-5" in offer(environ, "gong -m anthropic/claude-so", tmp_path)
    assert offer(environ, "gong -m offline/", tmp_path) == ["offline/rules"]
    assert offer(environ, "gong models --provider an", tmp_path) == ["anthropic"]
    assert offer(environ, "gong auth login dee", tmp_path) == ["deepseek"]
    assert offer(environ, "gong config get permissions.m", tmp_path) == ["permissions.mode"]
    words = ["accept_edits", "bypass", "default", "dont_ask", "locked", "plan"]
    assert offer(environ, "gong config set permissions.mode ", tmp_path) == words
    assert offer(environ, "gong config set max_turns ", tmp_path) == []


def test_sessions_and_branches(environ, tmp_path, session):
    short = session[:8]
    assert offer(environ, f"gong chat --session {short[:3]}", tmp_path) == [short]
    assert offer(environ, f"gong chat --fork {short}:s", tmp_path) == [f"{short}:side"]
    assert offer(environ, "gong chat --session :m", tmp_path) == [":main"]


@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(one, marks=pytest.mark.slow) for one in SHELLS[1:])]
)
def test_a_real_shell_completes(environ, tmp_path, session, shell):
    """Each shell runs its own script, where it is installed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    child = pexpect.spawn(
        shell,
        BEGIN[shell],
        env={**environ, "PS1": "$ ", "TERM": "dumb"},
        cwd=str(tmp_path),
        encoding="utf-8",
        timeout=120,
        dimensions=(40, 200),
    )
    child.sendline(f"{LOAD[shell]}; echo do''ne")
    child.expect_exact("done")
    for keys, then in (
        ("gong doc", "gong doctor "),
        (f"gong chat --session {session[:5]}", f"gong chat --session {session[:8]} "),
        (f"gong chat --fork {session[:8]}:si", f"gong chat --fork {session[:8]}:side "),
        ("gong tape bran", "gong tape branches "),
        ("gong -m offline/", "gong -m offline/rules "),
        ("gong chat -m offl", "gong chat -m offline/rules "),
        ("gong models --provider ant", "gong models --provider anthropic "),
    ):
        child.send(f"{keys}\t")
        child.send("\x01echo '<\x05>'\r")
        # zsh takes the blank behind a whole word off again at the next key.
        child.expect(f"\n<{re.escape(then.rstrip())} ?>")
    child.close(force=True)
