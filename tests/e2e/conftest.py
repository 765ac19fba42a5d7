"""A home and a folder of nobody's, and the real commands in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.e2e.terminal import Terminal
from tests.measured import MEASURED

BIN = Path(sys.executable).parent


class Place:
    """A throw-away home with a folder to work in."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.bin = BIN
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        self.env = {
            **MEASURED,
            "HOME": str(home),
            "GONG_PERMISSION": "bypass",  # these tests are about other things than permissions
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *argv, stdin="", code=0, cwd=None, **env):
        """Run a command to its end and return what it printed.

        `code` is the exit code it has to end with; None for any.
        """
        done = warm.run_text(
            [BIN / argv[0], *map(str, argv[1:])],
            cwd=cwd or self.folder,
            env={**self.env, **env},
            stdin=stdin,
        )
        assert code in (None, done.returncode), (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    def start(self, *argv, **env):
        """Start a command and return its process."""
        return subprocess.Popen(
            [str(BIN / argv[0]), *map(str, argv[1:])],
            cwd=self.folder,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def json(self, *argv, **more):
        """Return the JSON document a command prints."""
        return json.loads(self.run(*argv, **more).stdout)

    def script(self, *answers, name="script.json"):
        """Write a script and return the name of the model that plays it."""
        (self.home / name).write_text(json.dumps(answers))
        return f"scripted/{self.home / name}"

    def tapes(self):
        """Return the folders of all tapes."""
        return sorted((self.home / ".tape" / "tapes").glob("[!.]*"))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "home")


@pytest.fixture
def open_chat(place):
    """Open `gong chat` with the offline model in a terminal, once some text stands there."""
    open_terminals = []

    def open_chat(*arguments, ready="ready", **size):
        env = {**place.env, "GONG_PERMISSION": "bypass"}
        command = [str(place.bin / "gong"), "chat", "-m", "offline/rules", *arguments]
        terminal = Terminal(command, cwd=place.folder, env=env, **size)
        open_terminals.append(terminal)
        terminal.wait_for(ready)
        return terminal

    yield open_chat
    for terminal in open_terminals:
        terminal.__exit__()
