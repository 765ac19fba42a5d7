"""The way to each kind of place: the program of its channel, and the folder where work begins.

    docker, podman   docker exec -i NAME sh -c …
    docker-image     docker run -i --rm IMAGE -c …: it ends with the channel, and is removed
    ssh              ssh HOST …, with the settings and keys of the user, which asks nothing
    k8s              kubectl exec -i pod/NAME -- sh -c …

Names are checked before (`identity`), and stand where none is an option. Nothing of this machine's
environment travels but what is listed.
"""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import secrets
import shutil
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...errors import ConfigurationError
from ..protocol import is_inside_folder
from .environment import PlaceEnvironment
from .identity import parse_place
from .link import Link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..variables import VariableRules
    from .identity import PlaceName

_ASK_SECONDS = 60.0
_SSH_OPTIONS = (
    *("-T", "-x"),
    *("-o", "BatchMode=yes"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "RemoteCommand=none"),
    *("-o", "RequestTTY=no"),
    *("-o", "LogLevel=ERROR"),
    *("-o", "ConnectTimeout=20"),
    *("-o", "ServerAliveInterval=15"),
    *("-o", "ServerAliveCountMax=4"),
    *("-o", "ControlPath=none"),
)


class Mount(NamedTuple):
    """A folder of this machine that is in a container, too."""

    here: str
    there: str


class PlaceChoice(NamedTuple):
    """A place that was chosen, and what the settings say of it."""

    place: PlaceName
    folder: str = ""
    """Where work begins there; "" for that of the place."""
    program: tuple[str, ...] = ()
    """The program that leads there, with its first arguments; none is the usual one."""
    forward_agent: bool = False
    """Whether ssh may forward the agent that holds the user's keys."""


_LINKS: dict[tuple[object, ...], Link] = {}
"""The links of this process; environments of one place share one."""


async def open_place(
    choice: PlaceChoice, here: str, environ: Mapping[str, str], rules: VariableRules
) -> PlaceEnvironment:
    """Return the environment of a place, which is open; `here` is the folder on this machine.

    Raises ConfigurationError, in one line, where there is no such place.
    """
    place = choice.place
    loop = asyncio.get_running_loop()
    key = (id(loop), choice.place.machine, choice.program, place.scheme == "docker-image" and here)
    mounts: tuple[Mount, ...] = ()
    folder = choice.folder or place.folder
    program = choice.program
    if place.scheme in ("docker", "podman"):
        container = await _find_container(choice, environ)
        program, mounts = container.program, container.mounts
        folder = folder or translate_path(here, mounts) or container.folder
    elif not program:
        names = {"ssh": ("ssh",), "k8s": ("kubectl",)}.get(place.scheme, ("docker", "podman"))
        program = (_require_program(names, environ, place.name),)
    if place.scheme == "docker-image":
        folder = folder or here
    link = _LINKS.get(key)
    if link is None or not link.users:
        link = Link(
            place.machine,
            lambda text: _build_argv(choice, program, here, text),
            # ssh may send variables where its settings say so; kubectl asks its login with some.
            rules.select_variables(environ) if place.scheme == "ssh" else environ,
        )
        _LINKS[key] = link
    listed = {
        name: value
        for name, value in environ.items()
        if rules._replace(policy="none").is_inherited(name, value)
    }
    env = PlaceEnvironment(link, folder, name=place.name, variables=listed, folder_here=here)
    try:
        await env.initialize()
    finally:
        if not link.users:
            _LINKS.pop(key, None)
    if place.scheme == "ssh":
        env.name = place._replace(folder=env.working_directory).name
    if place.scheme == "docker-image":
        env.remarks.append(f"{here} is mounted in {place.name}, under the same name")
    for mount in mounts:
        if is_inside_folder(env.working_directory, mount.there):
            env.remarks.append(f"{mount.here} is {mount.there} in {place.name}")
    return env


def translate_path(path: str, mounts: Sequence[Mount]) -> str:
    """Return what a path of this machine is called in a container, "" where it is not there."""
    within = [mount for mount in mounts if is_inside_folder(path, mount.here)]
    if not within:
        return ""
    mount = max(within, key=lambda mount: len(mount.here))
    return posixpath.normpath(mount.there + path[len(mount.here) :])


def _require_program(names: Sequence[str], environ: Mapping[str, str], place: str) -> str:
    for name in names:
        if program := shutil.which(name, path=environ.get("PATH", os.defpath)):
            return program
    raise ConfigurationError(f"{place} needs {' or '.join(names)}, and neither is on PATH")


def _build_argv(choice: PlaceChoice, program: Sequence[str], here: str, text: str) -> Sequence[str]:
    place = choice.place
    match place.scheme:
        case "docker" | "podman":
            return (*program, "exec", "-i", place.parts[0], "sh", "-c", text)
        case "docker-image":
            name = f"gong-{secrets.token_hex(6)}"
            mount = ("--volume", f"{here}:{here}", "--workdir", here)
            options = ("run", "-i", "--rm", "--name", name, *mount, "--entrypoint", "sh")
            return (*program, *options, place.parts[0], "-c", text)
        case "ssh":
            user, host, port = place.parts
            login = (*(("-l", user) if user else ()), *(("-p", port) if port else ()))
            agent = ("-A",) if choice.forward_agent else ("-a",)
            return (*program, *_SSH_OPTIONS, *agent, *login, "--", host, text)
        case _:
            context, namespace, pod, container = place.parts
            inside = (f"--container={container}",) if container else ()
            options = (f"--context={context}", f"--namespace={namespace}", "exec", "-i", *inside)
            return (*program, *options, f"pod/{pod}", "--", "sh", "-c", text)


class _Container(NamedTuple):
    program: tuple[str, ...]
    folder: str
    mounts: tuple[Mount, ...]


async def _find_container(choice: PlaceChoice, environ: Mapping[str, str]) -> _Container:
    """Return a container that runs, as the first program that knows it describes it."""
    place = choice.place
    names = ("docker", "podman") if place.scheme == "docker" else ("podman",)
    programs: list[tuple[str, ...]] = [choice.program] if choice.program else []
    if not programs:
        path = environ.get("PATH", os.defpath)
        programs = [(which,) for name in names if (which := shutil.which(name, path=path))]
        if not programs:
            _require_program(names, environ, place.name)
    complaint = ""
    for program in programs:
        code, output, errors = await _ask_program(
            (*program, "inspect", "--type", "container", place.parts[0]), environ
        )
        if code == 0:
            return _read_description(place.name, program, output)
        complaint = complaint or errors
    raise ConfigurationError(f"{place.name}: {complaint or 'there is no such container'}")


def _read_description(name: str, program: tuple[str, ...], output: bytes) -> _Container:
    try:
        (description,) = json.loads(output)
        is_running = description["State"]["Running"]
        mounts = tuple(
            Mount(str(mount["Source"]), str(mount["Destination"]))
            for mount in description.get("Mounts") or ()
            if mount.get("Type") == "bind"
        )
        folder = description.get("Config", {}).get("WorkingDir") or ""
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigurationError(f"{name}: its description cannot be read") from None
    if not is_running:
        raise ConfigurationError(f"{name} does not run: start it first")
    return _Container(program, str(folder), mounts)


async def _ask_program(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int, bytes, str]:
    """Return exit code, output and the last line of the errors of a program."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=dict(environ)
        )
    except OSError as error:
        return 127, b"", f"{argv[0]}: {error.strerror}"
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124, b"", f"{argv[0]} does not answer"
    lines = errors.decode("utf-8", "replace").strip().split("\n")
    last = "".join(c if c.isprintable() else "?" for c in lines[-1])
    return process.returncode or 0, output, last


class PlaceFacts(Protocol):
    """The settings of a place: the table [env.NAME]."""

    @property
    def place(self) -> str:
        """Its name."""

    @property
    def folder(self) -> str:
        """Where work begins there; "" for that of the place."""

    @property
    def program(self) -> tuple[str, ...]:
        """The program that leads there; none is the usual one."""

    @property
    def forward_agent(self) -> bool:
        """Whether ssh may forward the agent that holds the user's keys."""


def choose_place(text: str, tables: Mapping[str, PlaceFacts]) -> PlaceChoice:
    """Return what a text means: the name of a table of settings, or a place itself.

    Raises ConfigurationError, in one line.
    """
    table = tables.get(text)
    if table is None:
        return PlaceChoice(parse_place(text))
    if parse_place(table.place).is_local:
        raise ConfigurationError(f"[env.{text}] names this machine: leave --env out for it")
    return PlaceChoice(
        parse_place(table.place), table.folder, tuple(table.program), table.forward_agent
    )
