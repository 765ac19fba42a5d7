"""A home for `gong eval`, with the commands in it."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import Place
from tests.gong.env.places.machines import import_image, keep_containers, make_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class EvalPlace(Place):
    """A home whose folder has a folder of tasks."""

    @property
    def tasks(self) -> Path:
        """The folder of the tasks."""
        return self.folder / "tasks"

    def results(self, *argv: object, code: int = 0) -> dict[str, dict]:
        """Return the results of a run of the tasks, by task and number."""
        document = self.json("gong", "eval", "tasks", *argv, "--json", code=code)
        return {f"{each['task']} #{each['number']}": each for each in document["results"]}

    def bash(self, command: str, name: str = "script.json") -> str:
        """Return the name of a model that runs one command and is done."""
        call = {"name": "bash", "args": {"command": command}}
        return self.script({"tool_calls": [call]}, {"text": "done"}, name=name)


@pytest.fixture
def place(tmp_path: Path) -> EvalPlace:
    return EvalPlace(tmp_path / "home")


@pytest.fixture
def podman(place: EvalPlace, tmp_path: Path) -> Iterator[list[str]]:
    """Put a podman with a store of its own and an image `box:1` on the search path."""
    make_root(tmp_path / "rootfs")
    program = shutil.which("podman")
    assert program is not None
    with keep_containers(tmp_path) as words:
        import_image(words, tmp_path / "rootfs")
        words[words.index("podman")] = program
        wrapper = tmp_path / "bin/podman"
        wrapper.parent.mkdir()
        line = shlex.join(words)
        wrapper.write_text(
            "#!/bin/sh\n"
            f'case "$1" in build) shift; exec {line} build --isolation chroot "$@";; esac\n'
            f'exec {line} "$@"\n'
        )
        wrapper.chmod(0o755)
        place.env["PATH"] = f"{wrapper.parent}{os.pathsep}{place.env['PATH']}"
        yield words
