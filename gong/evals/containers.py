"""A try in a container of podman, or of docker where there is no podman."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..child_programs import OutputTooLong, run_for_output
from ..env.places.identity import PlaceName
from ..env.places.opening import PlaceChoice, open_place
from ..env.variables import VariableRules
from .files import EnvironmentFault, remove_tree, show_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..env.protocol import ExecutionEnvironment
    from .files import Bind
    from .task import Task

_MAX_OUTPUT = 8 << 20
_CONTAINER_SECONDS = 120.0
_SLEEP = "while :; do sleep 86400; done"


def find_container_program(environ: Mapping[str, str]) -> str:
    """Return the program of containers that is on the search path, "" without one."""
    path = environ.get("PATH", os.defpath)
    return next((match for n in ("podman", "docker") if (match := shutil.which(n, path=path))), "")


class ContainerPlace:
    """A container of podman, or of docker where there is no podman."""

    kind: Literal["podman"] = "podman"

    def __init__(
        self,
        task: Task,
        folder: Path,
        environ: Mapping[str, str],
        *,
        name: str,
        network: bool = False,
        binds: Sequence[Bind] = (),
    ) -> None:
        """`name` is that of the container."""
        self._task, self.here, self._environ = task, folder, environ
        self._name, self._network, self._binds = name, network, binds
        self._program = find_container_program(environ)
        self.workdir = ""

    async def prepare(self) -> None:
        """Build the image of the task, or take the one it names, and start a container."""
        table = self._task.environment
        image = table.docker_image or ""
        self.here.mkdir(parents=True, exist_ok=True)
        if not image:
            source = self._task.folder / "environment"
            if not (source / "Dockerfile").is_file():
                raise EnvironmentFault("there is no environment/Dockerfile and no docker_image")
            image = _name_image(self._name)
            await self._run(
                "build", "-q", "-t", image, str(source), seconds=table.build_timeout_sec
            )
        options = [*(() if self._network else ("--network", "none"))]
        if table.workdir:
            options += ["--workdir", table.workdir]
        for variable, value in table.env.items():
            options += ["--env", f"{variable}={value}"]
        for bind in self._binds:
            end = ":ro" if bind.read_only else ""
            options += ["--volume", f"{bind.source}:{bind.target}{end}"]
        names = ("--name", self._name, "--entrypoint", "sh")
        await self._run("run", "-d", *names, *options, image, "-c", _SLEEP)

    async def _run(self, *words: str, seconds: float = _CONTAINER_SECONDS) -> bytes:
        argv = (self._program, *words)
        try:
            done = await run_for_output(argv, self._environ, max_bytes=_MAX_OUTPUT, seconds=seconds)
        except TimeoutError:
            raise EnvironmentFault(f"{words[0]} took more than {seconds:g} s") from None
        except (OSError, ValueError, OutputTooLong) as error:
            raise EnvironmentFault(f"{words[0]}: {error or 'its output has no end'}") from None
        if done.exit_code:
            lines = done.errors.decode("utf-8", "replace").strip().split("\n")
            raise EnvironmentFault(f"{words[0]} failed: {lines[-1][:300]}")
        return done.output

    def locate(self, name: str) -> str:
        """Return the path of a folder that is shown."""
        return "/logs/verifier" if name == "logs" else f"/{name}"

    async def open(self, folders: Mapping[str, Path]) -> ExecutionEnvironment:
        """Return the environment of the container; what is shown is copied into it.

        The container is started again for that, so that nothing of the phase before runs.
        """
        if folders:
            await self._run("stop", "-t", "0", self._name)
            await self._run("start", self._name)
        for name, source in folders.items():
            there, own = self.locate(name), self.here / name
            await asyncio.to_thread(show_folder, source, own)
            make = f"rm -rf {there} && mkdir -p {there}"
            await self._run("exec", "-u", "0", self._name, "sh", "-c", make)
            await self._run("cp", f"{own}/.", f"{self._name}:{there}")
        scheme: Literal["docker", "podman"] = (
            "docker" if Path(self._program).name == "docker" else "podman"
        )
        choice = PlaceChoice(PlaceName(scheme, (self._name,)), self.workdir, (self._program,))
        rules = VariableRules(policy="none")
        env = await open_place(choice, str(self.here), self._environ, rules)
        self.workdir = env.working_directory
        return env

    async def remove(self) -> None:
        """Remove the container and its image."""
        await remove_container(self._name, self._environ)
        await asyncio.to_thread(remove_tree, self.here)


def _name_image(container: str) -> str:
    """Return the image that is built for a container."""
    return f"localhost/gong-eval:{container}"


async def remove_container(name: str, environ: Mapping[str, str]) -> None:
    """Remove a container and the image that was built for it, if they are there."""
    program = find_container_program(environ)
    for words in (("rm", "-f", name), ("rmi", "-f", _name_image(name))):
        try:
            await run_for_output(
                (program, *words), environ, max_bytes=_MAX_OUTPUT, seconds=_CONTAINER_SECONDS
            )
        except (OSError, ValueError, TimeoutError, OutputTooLong):
            continue  # it is not there, or cannot be removed now
