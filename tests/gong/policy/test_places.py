"""Calls that act in another place are judged with the names, links and folders of that place."""

from __future__ import annotations

import asyncio
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gong.policy.modes import PermissionMode
from gong.policy.permissions import PermissionPolicy
from gong.policy.rules import RuleSet
from tests.gong.checkpoints.test_place_folder import open_far
from tests.gong.env.memory import MemoryEnvironment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def judge_far(tmp_path: Path, *deny: str) -> AsyncIterator[PermissionPolicy]:
    """Yield the policy of a session whose tools act in `far`; `here` has the same names."""
    for name in ("far", "here"):
        (tmp_path / name).mkdir(exist_ok=True)
    async with open_far(tmp_path / "far") as env:
        policy = PermissionPolicy(
            str(tmp_path / "here"), "/home/x", PermissionMode.DEFAULT, RuleSet.parse((), deny, ())
        )
        policy.move_to(env.working_directory, "/home/y", env)
        yield policy


def fill(folder: Path) -> None:
    """Make a project with credentials among its files."""
    for name in ("src/a.py", "src/deep/b/c/d/notes.txt", "config/.env", "other/plain.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    (folder / "linked").symlink_to("config")
    (folder / "src/deep/b/c/d/id_rsa").write_text("key\n")


COMMANDS = {
    "cat src/*.py": "allow",
    "cat config/.e*": "ask",
    "cat co*/.env": "ask",
    "cat conf?g/*": "allow",
    "cat other/*": "allow",
    "grep -r x config": "ask",
    "grep -r x other": "allow",
    "grep -r x src": "ask",
    "cat linked/.env": "ask",
    "find -L . -exec cat {} +": "ask",
    "cat src/deep/b/c/d/*": "ask",
    "git show HEAD": "ask",
}


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_is_judged_by_what_is_there(tmp_path: Path, command: str) -> None:
    """M122: wildcards, folders and the repository are those of the place."""
    far = tmp_path / "far"
    fill(far)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(far))
    for words in (("init", "-q"), ("add", "-f", "."), ("commit", "-qm", "x")):
        await asyncio.to_thread(subprocess.run, (*git, *words), check=True)
    async with judge_far(tmp_path) as policy:
        ruling = await policy.judge_in_time("bash", {"command": command})
        assert ruling.decision == COMMANDS[command], ruling


@pytest.mark.parametrize("name", ["grep", "find"])
async def test_a_search_is_judged_by_what_is_there(tmp_path: Path, name: str) -> None:
    """M122: files below a folder of the place that a rule denies are found, however deep."""
    fill(tmp_path / "far")
    async with judge_far(tmp_path, "Read(**/notes.txt)") as policy:
        where = str(tmp_path / "far/src")
        ruling = await policy.judge_in_time(name, {"pattern": "x", "path": where})
        elsewhere = await policy.judge_in_time(name, {"pattern": "x", "path": f"{where}/../other"})
    assert ruling.decision == ("deny" if name == "grep" else "allow")
    assert elsewhere.decision == "allow"


@pytest.mark.parametrize("where", ["here", "there"])
async def test_names_of_this_machine_count_for_nothing(tmp_path: Path, where: str) -> None:
    """M122: a folder of the same path is another one in a place."""
    folder = str(tmp_path)
    there = {f"{folder}/src/plain.txt": b"x"}
    if where == "there":
        there[f"{folder}/src/.env"] = b"x"
    else:
        (tmp_path / "src").mkdir()
        (tmp_path / "src/.env").write_text("x")
    env = MemoryEnvironment(there, folder)
    await env.initialize()
    policy = PermissionPolicy(folder, "/home/x", PermissionMode.DEFAULT)
    policy.move_to(folder, "/home/x", env)
    ruling = await policy.judge_in_time("bash", {"command": "grep -r x src"})
    assert ruling.decision == ("ask" if where == "there" else "allow")


def test_a_loop_in_another_thread_does_not_wait_for_itself():
    async def find_reading_rule() -> str:
        policy = PermissionPolicy(
            "/here", "/home/x", PermissionMode.DEFAULT, RuleSet.parse((), ("Read(/far/a)",), ())
        )
        policy.move_to("/far", "/home/y", MemoryEnvironment(folder="/far"))
        return policy.find_denied_reading("/far/b/../a")

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(asyncio.run, find_reading_rule()).result(60) == "Read(/far/a)"
