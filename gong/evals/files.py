"""The files of a try: what a task brings is copied, and what a try made is removed."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..child_programs import OutputTooLong, run_for_output
from ..errors import GongError
from .dockerfile import CopyStep, DockerfileFault, Recipe, parse_dockerfile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .dockerfile import InstallStep
    from .task import Task

WORK_FOLDER = "/app"
"""Where work begins in a task that does not say."""
_MAX_DOCKERFILE = _MAX_LIST = 1 << 20
_LIST_SECONDS = 60.0


class Bind(NamedTuple):
    """A folder or file of this machine that is shown in the place of a try."""

    source: str
    target: str
    """Its absolute path there."""
    read_only: bool = True


class EnvironmentFault(GongError):
    """The environment of a task could not be made; the text says why, in one line."""


def read_recipe(task: Task) -> Recipe:
    """Return the steps of a task's Dockerfile; without one its files go where work begins.

    Raises EnvironmentFault.
    """
    source = task.folder / "environment"
    if task.environment.docker_image and not (source / "Dockerfile").is_file():
        raise EnvironmentFault("it names an image: --in podman")
    if not (source / "Dockerfile").is_file():
        top = task.environment.workdir or WORK_FOLDER
        return Recipe((CopyStep((".",), f"{top}/"),)) if source.is_dir() else Recipe()
    try:
        with (source / "Dockerfile").open("rb") as file:
            text = file.read(_MAX_DOCKERFILE + 1)
        if len(text) > _MAX_DOCKERFILE:
            raise EnvironmentFault("its Dockerfile is too long")
        return parse_dockerfile(text.decode())
    except DockerfileFault as fault:
        raise EnvironmentFault(f"its Dockerfile: {fault}: --in podman") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentFault(f"its Dockerfile cannot be read: {error}") from None


async def require_packages(step: InstallStep, environ: Mapping[str, str]) -> None:
    """Raise EnvironmentFault where this machine lacks packages that a Dockerfile installs."""
    if not step.packages:
        return
    words = ("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *step.packages)
    try:
        done = await run_for_output(words, environ, max_bytes=_MAX_LIST, seconds=_LIST_SECONDS)
    except (OSError, TimeoutError, OutputTooLong):
        output = ""
    else:
        output = done.output.decode("utf-8", "replace")
    present = {line.split()[0] for line in output.split("\n") if line.endswith(" installed")}
    if missing := sorted({*step.packages} - present):
        raise EnvironmentFault(
            f"its Dockerfile installs {', '.join(missing)}, which this machine lacks: --in podman"
        )


def choose_workdir(task: Task, recipe: Recipe) -> str:
    """Return where work begins."""
    return task.environment.workdir or recipe.workdir or WORK_FOLDER


def copy_files(task: Task, step: CopyStep, root: str) -> None:
    """Copy files of a task's environment as COPY does; raises EnvironmentFault.

    The target is below `root`. Links are copied as links, and none is followed.
    """
    source, target = task.folder / "environment", Path(root + step.target)
    is_folder = step.target.endswith("/")
    try:
        for pattern in step.sources:
            inner = pattern.strip("/")
            paths = [source] if inner in ("", ".") else sorted(source.glob(inner))
            if not paths:
                raise EnvironmentFault(f"its Dockerfile copies {pattern}, which is not there")
            for path in paths:
                if path.is_dir() and not path.is_symlink():
                    skipped = shutil.ignore_patterns("Dockerfile") if path == source else None
                    shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True, ignore=skipped)
                else:
                    into = target / path.name if is_folder or target.is_dir() else target
                    into.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, into, follow_symlinks=False)
    except (OSError, shutil.Error, ValueError) as error:
        raise EnvironmentFault(f"its files cannot be copied: {error}") from None


def show_folder(source: Path, target: Path) -> None:
    """Make a fresh copy of a folder; an empty one where the source is none."""
    remove_tree(target)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        target.mkdir(parents=True)
    for script in target.glob("*.sh"):
        if not script.is_symlink():
            script.chmod(script.stat().st_mode | 0o111)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all below it, whatever rights its folders have; nothing else."""

    def open_up(_: object, path: str, __: object) -> None:
        place = Path(path)
        for each in (place.parent, place):
            if each.is_dir() and not each.is_symlink():
                each.chmod(stat.S_IRWXU)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)

    if folder.exists() and not folder.is_symlink():
        shutil.rmtree(folder, onerror=open_up)
