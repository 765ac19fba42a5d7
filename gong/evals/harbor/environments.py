"""Environments of Harbor in bubblewrap and podman, without a daemon and without compose.

What is done inside goes through one shell of the place, so that files are found by whom they are
for: a link that an agent left leads nowhere outside. Everything that runs inside ends with it.
"""

from __future__ import annotations

import asyncio
import io
import os
import posixpath
import shlex
import tarfile
import tempfile
from abc import abstractmethod
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from harbor.environments.base import BaseEnvironment, ExecResult, transfer_tar_filter
from harbor.environments.capabilities import EnvironmentCapabilities
from typing_extensions import override

from ..bubblewrap import BubblewrapPlace, find_bubblewrap_fault
from ..containers import ContainerPlace, find_container_program
from ..files import Bind
from ..task import EnvironmentPart, Task

if TYPE_CHECKING:
    from ...env.places.environment import PlaceEnvironment
    from ..places import TaskPlace

_FOLDERS = "/logs/agent /logs/verifier /logs/artifacts /tests /solution /installed-agent"
_ROOT_USERS = (None, "root", 0, "0")


class _PlaceEnvironment(BaseEnvironment):
    """One place, from its start to its end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._here = Path(tempfile.gettempdir()).resolve() / f"gong-harbor-{token_hex(6)}"
        self._place: TaskPlace | None = None
        self._env: PlaceEnvironment | None = None

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True, mounted=True)

    @override
    def _validate_definition(self) -> None:
        if self.environment_dir.name != "environment":
            raise ValueError(f"{self.environment_dir} is no folder `environment` of a task")

    @abstractmethod
    def _build_place(self, task: Task, binds: tuple[Bind, ...]) -> TaskPlace:
        """Return where the task is tried."""

    @override
    async def start(self, force_build: bool) -> None:
        config = self.task_env_config
        part = EnvironmentPart(
            build_timeout_sec=float(config.build_timeout_sec),
            docker_image=config.docker_image,
            workdir=config.workdir,
            env=self._startup_env(),
        )
        task = Task(self.environment_name, self.environment_dir.parent, environment=part)
        binds = tuple(
            Bind(mount["source"], mount["target"], bool(mount.get("read_only")))
            for mount in self._host_mounts
            if mount["type"] == "bind"
        )
        for bind in binds:
            if not bind.read_only:
                await asyncio.to_thread(os.makedirs, bind.source, exist_ok=True)
        self._place = self._build_place(task, binds)
        await self._place.prepare()
        self._env = await self._place.open({})  # type: ignore[assignment]
        await self.exec(f"mkdir -p {_FOLDERS} && chmod 777 /logs/*")
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        if self._env is not None:
            await self._env.cleanup()
        if self._place is not None:
            await self._place.remove()
        self._env = self._place = None

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        done = await self._inside.exec_command(
            self._change_user(user if user is not None else self.default_user, command),
            timeout_ms=None if timeout_sec is None else round(timeout_sec * 1000),
            working_dir=cwd,
            env_vars=self._merge_env(env),
            split=True,
        )
        if done.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        return ExecResult(
            stdout=(done.stdout or b"").decode(errors="replace"),
            stderr=(done.stderr or b"").decode(errors="replace"),
            return_code=done.exit_code,
        )

    def _change_user(self, user: str | int | None, command: str) -> str:
        """Return the command for another user than that of the place."""
        if user in _ROOT_USERS:
            return command
        name = shlex.quote(str(user))
        return f'exec su -s /bin/sh -p -c {shlex.quote(command)} "$(id -nu {name})"'

    @property
    def _inside(self) -> PlaceEnvironment:
        if self._env is None:
            raise RuntimeError("the environment is not running")
        return self._env

    async def _do(self, command: str) -> None:
        """Run a command of ours; raises RuntimeError where it fails."""
        done = await self._inside.exec_command(command)
        if done.exit_code:
            text = done.output.decode(errors="replace").strip()
            raise RuntimeError(f"{command[:80]} ended with {done.exit_code}: {text[-300:]}")

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        source = Path(source_path)
        parent = posixpath.dirname(str(target_path)) or "."
        await self._do(f"mkdir -p {shlex.quote(parent)}")
        await self._inside.write_file(str(target_path), await asyncio.to_thread(source.read_bytes))
        if os.access(source, os.X_OK):
            await self._do(f"chmod 755 {shlex.quote(str(target_path))}")

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        data = await asyncio.to_thread(_pack_folder, Path(source_dir))
        archive, target = f"/tmp/.upload-{token_hex(6)}.tar", shlex.quote(str(target_dir))  # noqa: S108
        await self._inside.write_file(archive, data)
        unpack = f"tar --no-same-owner -xf {archive} -C {target}"
        await self._do(f"mkdir -p {target} && {unpack}; code=$?; rm -f {archive}; exit $code")

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        data = await self._inside.read_file(str(source_path))
        target = Path(target_path)
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(target.write_bytes, data)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        archive = f"/tmp/.download-{token_hex(6)}.tar"  # noqa: S108
        try:
            await self._do(f"tar -cf {archive} -C {shlex.quote(str(source_dir))} .")
            data = await self._inside.read_file(archive)
        finally:
            await self._inside.exec_command(f"rm -f {archive}")
        await asyncio.to_thread(_unpack_folder, data, Path(target_dir))


def _pack_folder(folder: Path) -> bytes:
    """Return a folder's content as an archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, ".", filter=_leave_out_caches)
    return packed.getvalue()


def _leave_out_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if posixpath.basename(member.name) == "__pycache__" else member


def _unpack_folder(data: bytes, folder: Path) -> None:
    """Unpack an archive that was made inside: nothing of it lands outside of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter=transfer_tar_filter)  # noqa: S202 (by the filter)


class BubblewrapEnvironment(_PlaceEnvironment):
    """Namespaces of its own with the programs of this machine; one user."""

    @staticmethod
    @override
    def type() -> str:
        return "gong-bubblewrap"

    @classmethod
    @override
    def preflight(cls) -> None:
        if why := find_bubblewrap_fault(os.environ):
            raise SystemExit(why)

    @override
    def _build_place(self, task: Task, binds: tuple[Bind, ...]) -> TaskPlace:
        network = self._network_is_public
        hidden = (str(task.folder),)
        return BubblewrapPlace(
            task, self._here, os.environ, hidden=hidden, network=network, binds=binds
        )

    @override
    def _change_user(self, user: str | int | None, command: str) -> str:
        if user not in _ROOT_USERS:
            raise RuntimeError(f"the task needs the user {user}, and bubblewrap has one user")
        return command


class PodmanEnvironment(_PlaceEnvironment):
    """A container of podman, or of docker where there is no podman."""

    @staticmethod
    @override
    def type() -> str:
        return "gong-podman"

    @classmethod
    @override
    def preflight(cls) -> None:
        if not find_container_program(os.environ):
            raise SystemExit("neither podman nor docker is installed")

    @override
    def _build_place(self, task: Task, binds: tuple[Bind, ...]) -> TaskPlace:
        name = f"gong-harbor-{token_hex(6)}"
        network = self._network_is_public
        return ContainerPlace(task, self._here, os.environ, name=name, network=network, binds=binds)
