"""A task in Harbor's format: a folder with an instruction, an environment and tests that judge.

    task.toml                limits of time, the environment; `metadata` is for people
    instruction.md           what the agent is asked
    environment/             files of the beginning, and a Dockerfile
    tests/test.sh            judges: writes /logs/verifier/reward.txt or reward.json
    solution/solve.sh        solves it (optional)

A task that is wrong is read all the same: its `fault` says what is wrong, and no try of it runs.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import tomllib
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct, field

from tape.text import replace_surrogates, to_single_line

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

AGENT_SECONDS = 1800.0
"""How long the agent has where the task does not say."""
_VERIFIER_SECONDS = _BUILD_SECONDS = 600.0
_MAX_SECONDS = 7 * 86_400.0
_MAX_TEXT = 1 << 20
"""Bytes of task.toml and of instruction.md."""
TASK_FILE, INSTRUCTION_FILE = "task.toml", "instruction.md"

Seconds = Annotated[float, Meta(gt=0, le=_MAX_SECONDS)]


class _TimedPart(Struct, frozen=True):
    timeout_sec: Seconds | None = None
    env: dict[str, str] = field(default_factory=dict)


class EnvironmentPart(Struct, frozen=True):
    """The table [environment] of task.toml, as far as it means something here."""

    build_timeout_sec: Seconds = _BUILD_SECONDS
    docker_image: str | None = None
    workdir: str | None = None
    network_mode: str | None = None
    allow_internet: bool | None = None
    env: dict[str, str] = field(default_factory=dict)
    os: str = "linux"


class _TaskPart(Struct, frozen=True):
    name: str = ""
    description: str = ""


class _TaskFile(Struct, frozen=True):
    task: _TaskPart = _TaskPart()
    metadata: dict[str, Any] = field(default_factory=dict)
    agent: _TimedPart = _TimedPart()
    verifier: _TimedPart = _TimedPart()
    environment: EnvironmentPart = EnvironmentPart()
    steps: list[Any] = field(default_factory=list)


class Task(NamedTuple):
    """One task, as its folder says."""

    name: str
    """The name of its folder; bytes of it that are not UTF-8 are U+FFFD."""
    folder: Path
    instruction: str = ""
    environment: EnvironmentPart = EnvironmentPart()
    agent_seconds: float = AGENT_SECONDS
    verifier_seconds: float = _VERIFIER_SECONDS
    verifier_env: Mapping[str, str] = MappingProxyType({})
    description: str = ""
    difficulty: str = ""
    fault: str = ""
    """What is wrong with it, in one line; no try of it runs."""

    @property
    def wants_network(self) -> bool:
        """Whether its table [environment] leaves the network open, as it does by default."""
        table = self.environment
        return table.allow_internet is not False and table.network_mode in (None, "public")


def read_task(folder: Path) -> Task:
    """Return the task of a folder; one that is wrong has a `fault`."""
    place = folder.resolve()
    task = Task(replace_surrogates(place.name), place)
    try:
        return _read_parts(task)
    except _TaskFault as fault:
        return task._replace(fault=replace_surrogates(to_single_line(str(fault))))


class _TaskFault(Exception):
    """A task is wrong; the text says how."""


def _read_parts(task: Task) -> Task:
    folder = task.folder
    text = _read_text(folder / TASK_FILE)
    try:
        parts = msgspec.convert(tomllib.loads(text), _TaskFile)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _TaskFault(f"{TASK_FILE} is no TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise _TaskFault(f"{TASK_FILE}: {error}") from None
    for name, seconds in (("agent", parts.agent), ("verifier", parts.verifier)):
        if seconds.timeout_sec is not None and not math.isfinite(seconds.timeout_sec):
            raise _TaskFault(f"{TASK_FILE}: timeout_sec of [{name}] is no time")
    instruction = _read_text(folder / INSTRUCTION_FILE)
    if not instruction.strip():
        raise _TaskFault(f"{INSTRUCTION_FILE} is empty")
    if not (folder / "tests/test.sh").is_file():
        raise _TaskFault("there is no tests/test.sh, so nothing judges a try")
    if parts.steps:
        raise _TaskFault("a task of several steps runs in Harbor only")
    if parts.environment.os != "linux":
        raise _TaskFault(f"it is for {parts.environment.os}")
    workdir = parts.environment.workdir
    if workdir is not None and not is_own_path(workdir):
        raise _TaskFault(f"{TASK_FILE}: workdir {workdir!r} is no absolute path of a folder")
    difficulty = parts.metadata.get("difficulty", "")
    return task._replace(
        instruction=instruction,
        environment=parts.environment,
        agent_seconds=parts.agent.timeout_sec or AGENT_SECONDS,
        verifier_seconds=parts.verifier.timeout_sec or _VERIFIER_SECONDS,
        verifier_env=parts.verifier.env,
        description=parts.task.description,
        difficulty=difficulty if isinstance(difficulty, str) else "",
    )


def is_own_path(path: str) -> bool:
    """Return whether a text is the absolute path of something below the root."""
    parts = PurePosixPath(path).parts
    return len(parts) > 1 and parts[0] == "/" and ".." not in parts and path.isprintable()


def _read_text(path: Path) -> str:
    try:
        # A pipe is opened too, without waiting for who writes.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _TaskFault(f"{path.name} is no file")
            data = file.read(_MAX_TEXT + 1)
    except FileNotFoundError:
        raise _TaskFault(f"there is no {path.name}") from None
    except OSError as error:
        raise _TaskFault(f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) > _MAX_TEXT:
        raise _TaskFault(f"{path.name} is larger than {_MAX_TEXT >> 20} MB")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _TaskFault(f"{path.name} is no text in UTF-8") from None


def find_tasks(places: Sequence[Path]) -> list[Task]:
    """Return the tasks that paths name, by name.

    A path is the folder of a task, a folder of such folders, a task.toml, or a file with the path
    of a folder on each line. Raises ConfigurationError where there is none, or two have one name.
    """
    tasks: dict[str, Task] = {}
    for place in places:
        folders = list(_list_folders(place))
        if not folders:
            raise ConfigurationError(
                f"{place} holds no task: a task is a folder with {TASK_FILE} and {INSTRUCTION_FILE}"
            )
        for folder in folders:
            task = read_task(folder)
            other = tasks.setdefault(task.name, task)
            if other.folder != task.folder:
                raise ConfigurationError(
                    f"two tasks are called {task.name}: {other.folder} and {task.folder}"
                )
    return sorted(tasks.values(), key=lambda task: task.name)


def _list_folders(place: Path) -> Iterator[Path]:
    if place.name == TASK_FILE and place.is_file():
        yield place.parent
    elif _is_task(place):
        yield place
    elif place.is_dir():
        yield from (folder for folder in place.iterdir() if _is_task(folder))
    elif place.is_file():
        yield from _read_list(place)
    else:
        raise ConfigurationError(f"there is no folder or file {place}")


def _is_task(folder: Path) -> bool:
    return any((folder / name).exists() for name in (TASK_FILE, INSTRUCTION_FILE))


def _read_list(place: Path) -> Iterator[Path]:
    try:
        text = _read_text(place)
    except _TaskFault as fault:
        raise ConfigurationError(f"{place}: {fault}") from None
    for number, line in enumerate(text.split("\n"), 1):
        path = line.strip()
        if path and not path.startswith("#"):
            folder = place.parent / path
            if not _is_task(folder):
                raise ConfigurationError(f"{place}, line {number}: {path} is no folder of a task")
            yield folder


def hash_task(task: Task) -> str:
    """Return a digest of a task's files, by which a change of them shows."""
    digest = hashlib.sha256()
    for top, folders, names in os.walk(task.folder):
        folders.sort()
        for name in sorted(names):
            path = Path(top, name)
            digest.update(os.fsencode(path.relative_to(task.folder)) + b"\0")
            try:
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    digest.update(hashlib.sha256(path.read_bytes()).digest())
                elif stat.S_ISLNK(status.st_mode):
                    digest.update(os.fsencode(path.readlink()))
            except OSError as error:
                digest.update(str(error.errno).encode())
    return digest.hexdigest()
