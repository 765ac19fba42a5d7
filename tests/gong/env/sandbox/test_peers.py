"""The sandboxes of codex and of sandbox-runtime beside ours: the same attempts at each.

`TAPE_SANDBOXES` names the folder `node_modules/.bin` in which npm put `codex` and `srt`. They run
as nobody, in worlds of their own, so that what gets out is in a folder that is thrown away.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gong.env.sandbox.test_attempts import ATTEMPTS, make_attempts
from tests.gong.env.sandbox.world import NOBODY, list_users, make_world, needs_bubblewrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.gong.env.sandbox.world import World

PROGRAMS = os.environ.get("TAPE_SANDBOXES", "")
HEAVY = {"memory", "processes"}
"""What would burden the machine where it is not refused; no limits are expected of them."""


def build_words(world: World, name: str, command: str) -> list[str]:
    """Return what runs a command in the sandbox of another program, writing in the folder only."""
    program = str(Path(PROGRAMS, name))
    if name == "codex":
        return [program, "sandbox", "-P", ":workspace", "/bin/bash", "-c", command]
    settings = world.base / "srt.json"
    hidden = [str(world.home / part) for part in (".ssh", ".config/gong", ".tape")]
    files = {"denyRead": hidden, "allowWrite": [str(world.project)], "denyWrite": []}
    network = {"allowedDomains": [], "deniedDomains": []}
    settings.write_text(json.dumps({"network": network, "filesystem": files}))
    settings.chmod(0o644)
    return [program, "--settings", str(settings), "-c", command]


def build_runner(name: str) -> Callable[..., dict[str, object]]:
    """Return what runs commands as `World.run_inside` does, by another program."""

    def run(world: World, commands: Sequence[str], **_more: object) -> dict[str, object]:
        environ = {**os.environ, **world.variables, "HOME": str(world.home)}
        environ |= {"CODEX_HOME": str(world.home / ".config/gong"), "LANG": "C.UTF-8"}
        rows = []
        for command in commands:
            done = subprocess.run(
                build_words(world, name, command),
                cwd=world.project,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
                **world.rights,
            )
            rows.append([done.returncode, done.stdout.decode("utf-8", "replace"), [], []])
        return {"kind": "bubblewrap", "results": rows}

    return run


def judge_attempts(run: Callable[..., dict[str, object]] | None) -> dict[str, bool]:
    """Return which attempts a sandbox holds; without `run` ours."""
    attempts = [attempt for attempt in ATTEMPTS if attempt.name not in HEAVY]
    with make_world(NOBODY, "/var/tmp") as world:
        held = {}
        for there, results in make_attempts(world, attempts, run):
            for attempt in attempts:
                held[attempt.name] = bool(attempt.held(there, results[attempt.name]))
            for folder in ("/tmp", "/dev/shm"):  # where some leave what theirs is not
                Path(folder, there.variables["ABSTRACT"]).unlink(missing_ok=True)
        return held


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.skipif(not PROGRAMS, reason="TAPE_SANDBOXES names no codex and srt")
@pytest.mark.skipif(NOBODY not in list_users(), reason="only root can be nobody")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["codex", "srt"])
def test_ours_holds_what_others_hold(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """M179: beside codex and sandbox-runtime; `-s` shows the table."""
    ours, theirs = judge_attempts(None), judge_attempts(build_runner(name))
    with capsys.disabled():
        print(f"\n{name}: {sum(theirs.values())} of {len(theirs)}; gong: {sum(ours.values())}")
        print("  open there: " + ", ".join(key for key, held in theirs.items() if not held))
    assert [key for key, held in theirs.items() if held and not ours[key]] == []
    assert all(ours.values())
