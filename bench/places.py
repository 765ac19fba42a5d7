"""Commands in a sandbox against plain ones, and in a place against its channel alone.

The place is a shell of this machine behind gong's helper: what a network adds is the same for both.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from measure import Row, Scale, by_turns, seconds

from gong.checkpoints.place_folder import PlaceFolder
from gong.env.local import LocalEnvironment
from gong.env.places.environment import PlaceEnvironment
from gong.env.places.link import Link
from gong.env.sandbox.limits import compute_defaults
from gong.env.sandbox.sandbox import SandboxRequest, SandboxUnavailable, open_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILES = 300
STARTS = 20
LISTED = 3_000
IDENTITY = "-c user.name=a -c user.email=a@b"
COMMIT = (
    f"rm -rf r; mkdir r; cd r; git init -q; for i in $(seq {FILES}); do echo $i > f$i; done;"
    f" git add .; git {IDENTITY} commit -qm x"
)
PYTHONS = f"for i in $(seq {STARTS}); do /usr/bin/python3 -c pass; done"


def places_rows(path: Path, scale: Scale) -> list[Row]:
    """Return the rows of the sandbox, where one works here, and those of a place."""
    with asyncio.Runner() as runner:
        return [*_sandbox_rows(runner, scale), *_place_rows(runner, path / "place", scale)]


def _sandbox_rows(runner: asyncio.Runner, scale: Scale) -> Iterator[Row]:
    works = (
        ("bash -c true", "true", 7.0, scale.rounds),
        (f"commit of {FILES} files", COMMIT, 1.15, max(scale.rounds // 20, 3)),
        (f"{STARTS} starts of Python", PYTHONS, 1.15, max(scale.rounds // 20, 3)),
    )
    with _make_home() as home:
        environ = {"HOME": home, "PATH": os.environ["PATH"]}
        folder = f"{home}/project"
        subprocess.run(("git", "init", "-q", folder), check=True)
        request = SandboxRequest(folder, environ, writes=True, limits=compute_defaults())
        try:
            sandbox = open_sandbox(request)
        except SandboxUnavailable:
            return
        plain = LocalEnvironment(folder, environ)
        inside = LocalEnvironment(folder, environ, sandbox=sandbox)
        for env in (plain, inside):
            runner.run(env.initialize())
        for name, command, target, rounds in works:
            ours, floor = (_build_call(runner, env, command) for env in (inside, plain))
            ours()
            pair = by_turns(
                rounds, lambda ours=ours: seconds(ours), lambda floor=floor: seconds(floor)
            )
            yield Row(f"sandboxed {name}", "the same without", pair.ratio, "×", target)
        for env in (plain, inside):
            runner.run(env.cleanup())


@contextmanager
def _make_home() -> Iterator[str]:
    """Hold a home outside of /tmp and /dev/shm, of which a sandbox has its own."""
    home = tempfile.mkdtemp(prefix="gong-bench-", dir="/var/tmp")
    try:
        yield home
    finally:
        shutil.rmtree(home)


def _build_call(
    runner: asyncio.Runner, env: LocalEnvironment | PlaceEnvironment, command: str
) -> Callable[[], None]:
    def call() -> None:
        result = runner.run(env.exec_command(command))
        assert result.exit_code == 0, result.output

    return call


def _place_rows(runner: asyncio.Runner, folder: Path, scale: Scale) -> Iterator[Row]:
    folder.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": "/"}
    link = Link("sh:bench", lambda text: ("sh", "-c", text), environ)
    env = PlaceEnvironment(link, str(folder))
    runner.run(env.initialize())
    channel = subprocess.Popen("sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert channel.stdin is not None
    assert channel.stdout is not None

    def echo() -> None:
        assert channel.stdin is not None
        assert channel.stdout is not None
        channel.stdin.write(b"/bin/echo x\n")
        channel.stdin.flush()
        channel.stdout.readline()

    command = _build_call(runner, env, "true")
    command()
    pair = by_turns(scale.rounds, lambda: seconds(command), lambda: seconds(echo))
    yield Row("command in a place", "echo on its channel", pair.ratio, "×", 5.0)
    channel.stdin.close()
    channel.wait()
    for number in range(LISTED):
        file = folder / f"d{number % 60}/s{number % 7}/f{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n", "utf-8")
    source = runner.run(PlaceFolder.open(env, str(folder)))

    def look() -> None:
        assert len(runner.run(asyncio.to_thread(source.list_files, LISTED * 2)).others) == LISTED

    find = f"find {folder} -exec stat {{}} + > /dev/null"
    pair = by_turns(
        max(scale.rounds // 20, 3),
        lambda: seconds(look),
        lambda: seconds(lambda: subprocess.run(("sh", "-c", find), check=True)),
    )
    yield Row(f"look at {LISTED:,} files in a place", "find with stat", pair.ratio, "×", None)
    runner.run(env.cleanup())
