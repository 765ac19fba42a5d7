"""Where a task is tried: inside bubblewrap, in a container, or in a plain folder.

    kind     the agent sees                           the tests, while the agent works
    -------  ---------------------------------------  --------------------------------
    bwrap    programs of this machine, its own files  are nowhere
    podman   the image that the task builds           are nowhere
    folder   this machine                             are where the task is

Each phase (the steps of the Dockerfile, the agent, the tests) has an environment of its own. Its
end ends all of its processes; the files stay for the next phase.
"""

from __future__ import annotations

import asyncio
import posixpath
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from ..env.local import LocalEnvironment
from ..env.protocol import LOCAL, is_inside_folder
from ..errors import ConfigurationError
from .bubblewrap import find_bubblewrap_fault
from .containers import find_container_program
from .dockerfile import InstallStep, RunStep
from .files import (
    EnvironmentFault,
    choose_workdir,
    copy_files,
    read_recipe,
    remove_tree,
    require_packages,
    show_folder,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ..env.protocol import ExecutionEnvironment
    from .task import Task

PlaceKind = Literal["bwrap", "podman", "folder"]
PLACE_KINDS: tuple[PlaceKind, ...] = get_args(PlaceKind)


class TaskPlace(Protocol):
    """Where one try happens."""

    here: Path
    """The folder of this machine that holds the files of the try; removed with it."""
    workdir: str
    """Where the agent works, as it knows it."""

    @property
    def kind(self) -> PlaceKind:
        """Which kind it is."""

    async def prepare(self) -> None:
        """Make the files of the beginning; raises EnvironmentFault."""

    def locate(self, name: str) -> str:
        """Return the path of `tests`, `solution` or `logs` where they are shown."""

    async def open(self, folders: Mapping[str, Path]) -> ExecutionEnvironment:
        """Return the environment of the next phase, open, with folders shown by name."""

    async def remove(self) -> None:
        """Remove all of it."""


def choose_kind(requested: PlaceKind | None, environ: Mapping[str, str]) -> PlaceKind:
    """Return the kind to use: the one that was asked for, else the first that works here.

    Raises ConfigurationError where none does. `folder` is never chosen for anyone.
    """
    if requested in (None, "bwrap"):
        why = find_bubblewrap_fault(environ)
        if not why:
            return "bwrap"
        if requested == "bwrap":
            raise ConfigurationError(f"--in bwrap: {why}")
    if requested == "folder":
        return "folder"
    if find_container_program(environ):
        return "podman"
    raise ConfigurationError(
        "tasks can be tried neither in bubblewrap nor in podman here; --in folder tries them in"
        " plain folders, where the agent can reach everything that you can"
    )


class FolderPlace:
    """A plain folder of this machine: nothing is kept from the agent."""

    kind: Literal["folder"] = "folder"

    def __init__(self, task: Task, folder: Path, environ: Mapping[str, str]) -> None:
        self._task, self.here, self._environ = task, folder, environ
        self.workdir = str(folder / "work")

    async def prepare(self) -> None:
        """Copy the files that the Dockerfile puts into the folder where work begins."""
        recipe = read_recipe(self._task)
        await asyncio.to_thread(Path(self.workdir).mkdir, parents=True)
        top = choose_workdir(self._task, recipe)
        for step in recipe.steps:
            if isinstance(step, InstallStep):
                await require_packages(step, self._environ)
                continue
            if isinstance(step, RunStep):
                raise EnvironmentFault(
                    "its Dockerfile runs commands, which a plain folder does not"
                )
            if not is_inside_folder(step.target.rstrip("/") or "/", top):
                raise EnvironmentFault(f"its Dockerfile writes {step.target}, outside of {top}")
            inner = posixpath.relpath(step.target, top)
            slash = "/" if step.target.endswith("/") else ""
            target = f"{self.workdir}/{inner}{slash}"
            await asyncio.to_thread(copy_files, self._task, step._replace(target=target), "")

    def locate(self, name: str) -> str:
        """Return the path of a folder that is shown."""
        return str(self.here / name)

    async def open(self, folders: Mapping[str, Path]) -> ExecutionEnvironment:
        """Return the environment of the folder; what is shown is copied beside it."""
        for name, source in folders.items():
            await asyncio.to_thread(show_folder, source, self.here / name)
        env = LocalEnvironment(self.workdir, self._environ)
        await env.initialize()
        return env

    async def remove(self) -> None:
        """Remove the folder."""
        await asyncio.to_thread(remove_tree, self.here)


@asynccontextmanager
async def open_phase(
    place: TaskPlace, folders: Mapping[str, Path]
) -> AsyncGenerator[ExecutionEnvironment]:
    """Hold the environment of a phase; its end ends all processes of it."""
    env = await place.open(folders)
    try:
        yield env
    finally:
        await env.cleanup()


def is_local(place: TaskPlace) -> bool:
    """Return whether a session works there as on this machine."""
    return place.kind == "folder"


def name_place(place: TaskPlace, task: Task) -> str:
    """Return what sessions call a place."""
    return LOCAL if is_local(place) else f"{place.kind}:{task.name}"
