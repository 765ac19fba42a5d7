"""What commands change in another place is recorded, and goes back there and nowhere else."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gong.agent.rewind import plan_redo, plan_undo
from gong.config import PermissionSettings
from gong.env.places.environment import PlaceEnvironment
from gong.env.places.link import Link
from gong.env.places.opening import choose_place, open_place
from gong.env.variables import VariableRules
from gong.errors import FilesElsewhere
from tape.model.entries import Checkpoint, ToolResult
from tests.gong.agent.conftest import Stage, call, seen, stage
from tests.gong.env.places.machines import (
    ENVIRON,
    make_table,
    needs_podman,
    needs_sshd,
    run_container,
    run_sshd,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["stage"]

FREE = {"permissions": PermissionSettings(mode="bypass", read_before_write=False)}


@asynccontextmanager
async def open_far(folder: Path, name: str = "ssh://far") -> AsyncIterator[PlaceEnvironment]:
    """Yield the environment of a folder behind a real helper."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/"}
    link = Link(name, lambda text: ("sh", "-c", text), environ)
    env = PlaceEnvironment(link, str(folder), folder_here="/")
    await env.initialize()
    try:
        yield env
    finally:
        await env.cleanup()


def read_tree(folder: Path) -> dict[str, object]:
    """Return files with bytes and modes, and the texts of links, by path."""
    tree: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(".git/") or name == ".git":
            continue
        if path.is_symlink():
            tree[name] = str(path.readlink())
        elif path.is_file():
            tree[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return tree


def fill(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "b.sh").write_text("echo b\n")
    (folder / "b.sh").chmod(0o755)
    (folder / "sub").mkdir()
    (folder / "sub/c\n.bin").write_bytes(bytes(range(256)))
    (folder / "to-a").symlink_to("a.txt")


def commit(folder: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run((*git, *words), check=True)


COMMAND = (
    "echo two > a.txt; rm b.sh; mkdir -p new; printf 'x\\0' > new/d; chmod 600 sub/c*;"
    " ln -sfn sub to-a"
)


@pytest.mark.parametrize("kind", ["plain", "clean", "dirty", "inner"])
async def test_what_a_command_changes_goes_back(stage: Stage, tmp_path: Path, kind: str) -> None:
    """M125: in a folder without git, and in repositories, clean, changed and from a subfolder."""
    far = tmp_path / "far"
    fill(far)
    if kind != "plain":
        commit(far)
    if kind == "dirty":
        (far / "a.txt").write_text("not committed\n")
    folder = far
    if kind == "inner":
        fill(folder := far / "inner")
        commit(far)
    before = read_tree(far)
    fill(stage.folder)
    here = read_tree(stage.folder)
    turns = [{"tool_calls": [call("bash", command=COMMAND)]}, {"text": "done"}]
    session = await stage.session(*turns, **FREE)
    async with open_far(folder) as env:
        local = session.use_environment(env)
        await seen(session, "go")
        after = read_tree(far)
        assert before != after
        (result,) = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
        assert {(file.path, file.op) for file in result.files} == {
            ("a.txt", "modified"),
            ("b.sh", "deleted"),
            ("new/d", "created"),
            ("sub/c\n.bin", "mode"),
            ("to-a", "modified"),
        }
        plan = plan_undo(session)
        assert plan.unrecorded == ()
        assert session.apply_rewind(plan).failed == {}
        assert read_tree(far) == before
        session.apply_rewind(plan_redo(session))
        assert read_tree(far) == after
        session.use_environment(local)
        with pytest.raises(FilesElsewhere):
            plan_undo(session)
    assert read_tree(stage.folder) == here


async def test_a_repository_is_not_copied_to_the_tape(stage: Stage, tmp_path: Path) -> None:
    """What git has over there is fetched when it changes; only then are its bytes on the tape."""
    far = tmp_path / "far"
    fill(far)
    commit(far)
    commands = ["chmod 644 a.txt", "echo 1 > e.txt", "echo 2 > e.txt"]
    turns = [{"tool_calls": [call("bash", command=command)]} for command in commands]
    session = await stage.session(*turns, {"text": "done"}, **FREE)
    async with open_far(far) as env:
        session.use_environment(env)
        await seen(session, "go")
    told = [e.data for e in session.recorder.path if isinstance(e.data, Checkpoint)]
    assert [[state.path for state in one.files] for one in told] == [
        ["sub/c\n.bin", "to-a"],
        [],
        [],
    ]
    results = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert [[file.op for file in one.files] for one in results] == [[], ["created"], ["modified"]]


NAMES = ("a.txt", "b.sh", "sub/c\n.bin", "to-a", "new/d", "e f")


def choose_call(chance: random.Random) -> dict[str, object]:
    """Return a call that changes a file, or two, of a folder."""
    name, other = (chance.choice(NAMES) for _ in range(2))
    text = chance.choice(("one\n", "two\n", "", "\u00e9" * 300))
    words = {
        "create": f"mkdir -p new sub; printf %s {shlex.quote(text)} > {shlex.quote(name)}",
        "remove": f"rm -rf {shlex.quote(name)}",
        "move": f"mkdir -p new sub; mv -f {shlex.quote(name)} {shlex.quote(other)}",
        "mode": f"chmod {chance.choice(('600', '755'))} {shlex.quote(name)}",
        "link": f"mkdir -p new sub; ln -sfn {shlex.quote(other)} {shlex.quote(name)}",
        "nothing": "true > /dev/null",
    }
    if chance.random() < 0.3:
        return call("write", path=f"sub/{chance.choice('xy')}", content=text)
    return call("bash", command=chance.choice([*words.values()]))


async def play_and_undo(stage: Stage, tmp_path: Path, seed: int) -> None:
    """Play a session over two places and this machine, then undo it, prompt by prompt."""
    chance = random.Random(seed)
    folders = {"here": stage.folder, "ssh://a": tmp_path / "a", "ssh://b": tmp_path / "b"}
    for folder in folders.values():
        fill(folder)
    if chance.random() < 0.5:
        commit(folders["ssh://a"])
    where = [chance.choice([*folders]) for _ in range(5)]
    turns = [{"tool_calls": [choose_call(chance) for _ in range(2)]} for _ in where]
    answers = [answer for turn in turns for answer in (turn, {"text": "done"})]
    session = await stage.session(*answers, **FREE)

    def read_all() -> dict[str, dict[str, object]]:
        return {name: read_tree(folder) for name, folder in folders.items()}

    async with (
        open_far(folders["ssh://a"], "ssh://a") as a,
        open_far(folders["ssh://b"], "ssh://b") as b,
    ):
        envs = {"here": session.setup.env, "ssh://a": a, "ssh://b": b}
        states = []
        for name in where:
            states.append(read_all())
            session.use_environment(envs[name])
            await seen(session, "go")
        for name, before in zip(reversed(where), reversed(states), strict=True):
            now = read_all()
            for wrong in folders:
                session.use_environment(envs[wrong])
                if name not in (wrong, "here") and now != before:
                    with pytest.raises(FilesElsewhere):
                        plan_undo(session)
            session.use_environment(envs[name])
            report = session.apply_rewind(plan_undo(session))
            assert report.failed == {}
            assert read_all() == before, (seed, name)


@pytest.mark.parametrize("seed", range(3))
async def test_an_undo_changes_the_right_place_only(
    stage: Stage, tmp_path: Path, seed: int
) -> None:
    """M125."""
    await play_and_undo(stage, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 50))
async def test_fifty_sessions_go_back_in_the_right_places(
    stage: Stage, tmp_path: Path, seed: int
) -> None:
    """M125."""
    await play_and_undo(stage, tmp_path, seed)


@needs_podman
@needs_sshd
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ssh", "podman"])
async def test_what_a_command_changes_by_a_real_client_goes_back(
    stage: Stage, tmp_path: Path, kind: str
) -> None:
    """M125 M126: a machine by ssh, and a container of busybox alone."""
    run = {"ssh": run_sshd, "podman": run_container}[kind]
    (machine := tmp_path / "machine").mkdir()
    with run(machine) as table:
        folder = "/srv/app" if kind == "podman" else f"{machine}/app"
        far = machine / "rootfs/srv/app" if kind == "podman" else machine / "app"
        if kind == "podman":
            far.rmdir()
        fill(far)
        before = read_tree(far)
        names = {key: table[key] for key in ("place", "program")}
        turns = [{"tool_calls": [call("bash", command=COMMAND)]}, {"text": "done"}]
        session = await stage.session(*turns, **FREE)
        choice = choose_place("box", {"box": make_table({**names, "folder": folder})})
        env = await open_place(choice, str(stage.folder), ENVIRON, VariableRules())
        session.use_environment(env)
        await seen(session, "go")
        after = read_tree(far)
        assert before != after
        assert session.apply_rewind(plan_undo(session)).failed == {}
        assert read_tree(far) == before
        session.apply_rewind(plan_redo(session))
        assert read_tree(far) == after
        await env.cleanup()
