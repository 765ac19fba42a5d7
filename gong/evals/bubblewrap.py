"""A try inside bubblewrap: the programs of this machine, and folders of its own.

/usr /bin /lib /etc /opt ...        of this machine, read-only, without secrets
/tests, /solution, /logs/verifier   copies, in their phase only
/dev /proc /run                     new in each phase
everything else                     its own, empty at first, kept from phase to phase
"""

from __future__ import annotations

import asyncio
import os
import platform
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..env.places.environment import PlaceEnvironment
from ..env.places.link import Link
from ..env.sandbox.binds import KERNEL_SETTINGS
from ..env.sandbox.limits import (
    NO_GROUPS,
    build_inner_script,
    build_limit_script,
    compute_defaults,
    find_groups,
    make_groups,
)
from ..env.sandbox.sandbox import find_bubblewrap, find_kinds
from ..env.sandbox.seccomp import MACHINES, build_filter
from .dockerfile import CopyStep, InstallStep, RunStep
from .files import (
    WORK_FOLDER,
    EnvironmentFault,
    choose_workdir,
    copy_files,
    read_recipe,
    remove_tree,
    require_packages,
    show_folder,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..env.protocol import ExecutionEnvironment
    from .files import Bind
    from .task import Task

_SYSTEM_FOLDERS = (
    *("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "gnu"),
)
"""Folders of this machine that a try can read; of others it sees nothing."""
_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FILTER = 9
"""The descriptor of the filter of system calls."""


def find_bubblewrap_fault(environ: Mapping[str, str]) -> str:
    """Return why bubblewrap cannot be used, "" where it can."""
    kinds = {each.kind: each for each in find_kinds(environ)}
    if (match := kinds.get("bubblewrap")) is None:
        return "this system has no bubblewrap"
    return "" if match.works else match.about


class BubblewrapPlace:
    """Namespaces of its own with the programs of this machine, and folders of its own."""

    kind: Literal["bwrap"] = "bwrap"

    def __init__(
        self,
        task: Task,
        folder: Path,
        environ: Mapping[str, str],
        *,
        hidden: Sequence[str] = (),
        network: bool = False,
        binds: Sequence[Bind] = (),
    ) -> None:
        """`hidden` are folders of this machine that a try must not see."""
        self._task, self.here, self._environ = task, folder, environ
        self._hidden, self._network, self._binds = hidden, network, binds
        self._root = folder / "root"
        self._env: dict[str, str] = {}
        self._limits, self._groups = compute_defaults(), NO_GROUPS
        self.workdir = WORK_FOLDER

    async def prepare(self) -> None:
        """Do the steps of the Dockerfile; commands run inside, too."""
        recipe = read_recipe(self._task)
        self.workdir = choose_workdir(self._task, recipe)
        self._env = {**recipe.env, **self._task.environment.env}
        for name in ("tmp", "var/tmp", "root", "logs/agent", "logs/artifacts"):
            (self._root / name).mkdir(parents=True)
        self._make_folder(self.workdir)
        program = find_bubblewrap(self._environ, (str(self._root),))
        if program is None:
            raise EnvironmentFault("bwrap is not installed")
        self._program = program
        machine = MACHINES[platform.machine()]
        (self.here / "filter").write_bytes(build_filter(machine, unix_sockets=True))
        self._groups = make_groups(self._limits, self.here.name)
        for step in recipe.steps:
            await self._apply_step(step)

    async def _apply_step(self, step: CopyStep | RunStep | InstallStep) -> None:
        if isinstance(step, InstallStep):
            return await require_packages(step, self._environ)
        if isinstance(step, CopyStep):
            target = step.target if step.target.endswith("/") else posixpath.dirname(step.target)
            self._make_folder(target.rstrip("/"))
            await asyncio.to_thread(copy_files, self._task, step, str(self._root))
            return None
        self._make_folder(step.workdir)
        env = await self.open({})
        try:
            done = await env.exec_command(
                step.command,
                timeout_ms=round(self._task.environment.build_timeout_sec * 1000),
                working_dir=step.workdir,
                env_vars=step.env,
            )
        finally:
            await env.cleanup()
        if done.timed_out or done.exit_code:
            how = "took too long" if done.timed_out else f"ended with {done.exit_code}"
            raise EnvironmentFault(
                f"RUN {step.command[:60]} {how}, without the rights of a container: --in podman"
            )
        return None

    def _make_folder(self, path: str) -> None:
        """Make a folder of the try; raises EnvironmentFault where this machine has its own."""
        top = posixpath.normpath(f"/{path.strip('/')}").split("/")[1]
        if top in (*_SYSTEM_FOLDERS, "dev", "proc", "run"):
            raise EnvironmentFault(f"it needs {path}, which is of this machine here: --in podman")
        (self._root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def locate(self, name: str) -> str:
        """Return the path of a folder that is shown."""
        return "/logs/verifier" if name == "logs" else f"/{name}"

    async def open(self, folders: Mapping[str, Path]) -> ExecutionEnvironment:
        """Return the environment inside, with folders shown."""
        mounts: list[str] = []
        await asyncio.to_thread(self._clear_names)
        for name, source in folders.items():
            await asyncio.to_thread(show_folder, source, self.here / name)
            mounts += ["--bind", str(self.here / name), self.locate(name)]
        return await self._open(mounts)

    def _clear_names(self) -> None:
        """Remove what the phase before left where folders are shown, links above all."""
        for name in ("logs", "logs/verifier", "tests", "solution", "dev", "proc", "run"):
            own = self._root / name
            if own.is_symlink() or own.is_file():
                own.unlink()
            elif name in ("logs/verifier", "tests", "solution"):
                remove_tree(own)
        for name in _SYSTEM_FOLDERS:
            own, theirs = self._root / name, Path("/", name)
            if own.is_symlink() or own.is_file():
                own.unlink()
            if theirs.is_symlink():
                remove_tree(own)
                own.symlink_to(theirs.readlink())

    async def _open(self, mounts: Sequence[str]) -> PlaceEnvironment:
        variables = {"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8"}
        name = f"bwrap:{self._task.name}"
        link = Link(name, lambda text: self._build_argv(mounts, text), variables)
        env = PlaceEnvironment(
            link, self.workdir, name=name, variables=self._env, folder_here=str(self.here)
        )
        await env.initialize()
        return env

    def _build_argv(self, mounts: Sequence[str], text: str) -> list[str]:
        limits = build_limit_script(self._limits, self._groups)
        start = f'{limits}\nexec {_FILTER}<"$1" || exit 126\nshift\nexec "$@"'
        if line := build_inner_script(self._limits, self._groups):
            text = f"{line}\n{text}"
        inside = [self._program, *self._build_arguments(mounts), "--", "/bin/sh", "-c", text]
        return ["/bin/sh", "-c", start, "sh", str(self.here / "filter"), *inside]

    def _build_arguments(self, mounts: Sequence[str]) -> list[str]:
        words = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"]
        words += ["--unshare-cgroup-try", *(["--unshare-net"] * (not self._network))]
        words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        words += ["--bind", str(self._root), "/"]
        for name in _SYSTEM_FOLDERS:
            path = Path("/", name)
            if path.is_dir() and not path.is_symlink():
                words += ["--ro-bind", str(path), str(path)]
        words += ["--dev", "/dev", "--proc", "/proc"]
        for setting in KERNEL_SETTINGS if os.geteuid() == 0 else ():
            words += ["--ro-bind-try", setting, setting]
        words += ["--tmpfs", "/run"]
        if self._network:
            words += ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        for secret in filter(os.path.exists, _SECRETS):
            words += ["--ro-bind", os.devnull, secret]
        for hidden in (Path(folder).resolve() for folder in self._hidden):
            if hidden.is_dir() and hidden.parts[1:2] and hidden.parts[1] in _SYSTEM_FOLDERS:
                words += ["--tmpfs", str(hidden), "--remount-ro", str(hidden)]
        for bind in self._binds:
            words += ["--ro-bind" if bind.read_only else "--bind", bind.source, bind.target]
        words += [*mounts, "--chdir", self.workdir]
        return [*words, "--seccomp", str(_FILTER)]

    async def remove(self) -> None:
        """Remove its folders, and the groups that limit it."""
        await asyncio.to_thread(remove_remains, self.here)


def remove_remains(here: Path) -> None:
    """Remove what a try made that has the folder `here`; nothing of it runs any more."""
    find_groups(here.name).remove()
    remove_tree(here)
