"""The command with a store and a home of its own: in this process, or `real` in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tape.cli.group import run_command
from tape.index.library import open_store
from tape.model.incoming_entry import parse_incoming_entry
from tape.store.store import Beginning
from tests import warm
from tests.measured import MEASURED

BIN = Path(sys.executable).parent / "tape"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self):
        return json.loads(self.out)


class Command:
    """`tape` with a store and a folder to run in."""

    def __init__(self, home: Path, work: Path) -> None:
        self.store, self.work = home / ".tape", work
        path = os.environ["PATH"]
        self.env = {**MEASURED, "PATH": path, "HOME": str(home), "LC_ALL": "C.UTF-8"}

    def __call__(self, *args, stdin: bytes = b"", code: int | None = 0) -> Ran:
        """Run it in this process, with its own streams, environment and folder.

        `code` is the exit code it has to end with; None for any.
        """
        env = {"TAPE_HOME": None, **self.env}
        with CliRunner().isolation(stdin, env) as (out, err, _), chdir(self.work):
            done = run_command([os.fsdecode(arg) for arg in args])
            ran = Ran(done, out.getvalue(), err.getvalue().decode())
        return self._checked(ran, code)

    def real(self, *args, stdin: bytes = b"", code: int | None = 0) -> Ran:
        """Run it in a process of its own; `code` as above."""
        done = warm.run([BIN, *args], cwd=self.work, env=self.env, stdin=stdin)
        return self._checked(Ran(done.returncode, done.stdout, done.stderr.decode()), code)

    def _checked(self, ran: Ran, code: int | None) -> Ran:
        assert code in (None, ran.code), ran
        assert "Traceback" not in ran.err
        return ran

    def refused(self, *args, code: int, stdin: bytes = b"") -> str:
        """Run what must fail and return the one line it says."""
        ran = self(*args, code=code, stdin=stdin)
        assert ran.err.startswith("tape: ")
        assert ran.err.count("\n") == 1
        return ran.err[6:-1]

    def open(self, *args) -> subprocess.Popen[bytes]:
        """Start the command with pipes."""
        return subprocess.Popen(
            [BIN, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.work,
            env=self.env,
        )

    def folder(self, tape: str) -> Path:
        (found,) = self.store.glob(f"tapes/*-{tape[:8]}")
        return found


@pytest.fixture
def tape(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return Command(home, work)


def line(kind: str, **data) -> bytes:
    return json.dumps({"type": kind, "data": data}).encode() + b"\n"


def words(text: str):
    return [{"type": "text", "text": text}]


CALL = {"type": "tool_call", "id": "c_1_0", "name": "read", "args": {"path": "a.py"}}
TALK = (
    line("user", content=words("Read a.py"))
    + line(
        "assistant",
        content=[*words("I look."), CALL],
        provider="offline",
        model="rules",
        stop_reason="tool_calls",
        cost={"currency": "USD", "amount": 0.25},
    )
    + line("tool.start", call_id="c_1_0", name="read", replay="safe")
    + line("tool.result", call_id="c_1_0", name="read", content=words("x = 1\x1b[31m"))
    + line("assistant", content=words("It sets x."), provider="offline", model="rules")
)
TYPES = ["start", "user", "assistant", "tool.start", "tool.result", "assistant"]


@pytest.fixture
def talk(tape):
    """A tape with a conversation on it: its id."""
    store = open_store(tape.store).store
    beginning = Beginning(str(tape.work), "test/1", "First", "First")
    with store.create(beginning) as made, made.writer() as writer:
        for text in TALK.split(b"\n")[:-1]:
            writer.append_data(*parse_incoming_entry(text))
        return made.id
