"""The sandbox of one session: which kind works here, and how a program is started inside it.

    kind         where                                        what it covers
    -----------  -------------------------------------------  ------------------------------------
    bubblewrap   Linux, where bwrap may make namespaces       all that docs/sandbox.md says
    seatbelt     macOS                                        files and network
    landlock     Linux 5.13 and newer, where bwrap cannot     writing outside of the folders, TCP

A program is started by other words (`wrap`), so that whoever starts programs can use it: tools,
hooks, servers. These words run outside before the border is up, so variables that could make them
do something else are set inside only. What may be written is decided once, at the beginning:
programs inside could change what is looked at later.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from tape import own_program

from ...errors import ConfigurationError
from ...git_folders import locate_git_folder
from ..protocol import is_inside_folder
from . import entry, landlock, seatbelt
from .binds import Border, build_arguments
from .entry import FORWARDER_FILTER, PROGRAM_FILTER
from .hidden import find_hidden
from .limits import (
    NO_GROUPS,
    NO_LIMITS,
    LimitGroups,
    UsageLimits,
    build_inner_script,
    build_limit_script,
    describe_limits,
    describe_refusals,
    find_groups,
    make_groups,
)
from .protected import Protection, find_protection
from .proxy import DomainProxy
from .refusals import find_refusals, find_shell_refusals
from .seccomp import MACHINES, build_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SandboxKind = Literal["bubblewrap", "seatbelt", "landlock"]
_PROXY_SOCKET, _PROXY_PORT = "/run/gong-proxy", 3128
_SHELL, _ENV = "/bin/sh", "/usr/bin/env"
_USUAL_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_PROBE_SECONDS = 20.0
_UNSAFE_OUTSIDE = re.compile(
    r"LD_|DYLD_|BASH|SHELLOPTS$|ENV$|PS4$|IFS$|PYTHON|GCONV_PATH$|GETCONF_DIR$|GLIBC_TUNABLES$"
    r"|HOSTALIASES$|LOCALDOMAIN$|LOCPATH$|MALLOC_|NIS_PATH$|NLSPATH$|RESOLV_HOST_CONF$|RES_OPTIONS$"
)
"""Variables that could change what the words do that make the border."""
_FOLDER_PREFIX = "gong-sandbox-"
_DISARMED = ".refused-by-sandbox"


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """What a session asks of a sandbox."""

    folder: str
    """Where its programs work; absolute."""
    environ: Mapping[str, str] = field(repr=False)
    writes: bool
    """Whether the folders may be written."""
    folders: tuple[str, ...] = ()
    """Further folders that may be written."""
    own_folders: tuple[str, ...] = ()
    """Where gong keeps its settings, keys, answers about trust, and tapes."""
    hidden: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    unix_sockets: bool = False
    domains: tuple[str, ...] = ()
    """Hosts that can be reached, as patterns; none for no network."""
    denied_domains: tuple[str, ...] = ()
    limits: UsageLimits = NO_LIMITS

    @property
    def home(self) -> str:
        """The user's home folder."""
        return os.path.realpath(self.environ.get("HOME") or "/")


class Availability(NamedTuple):
    """Whether a kind of sandbox works here."""

    kind: SandboxKind
    works: bool
    about: str
    """The program or the version; why it does not work."""


class Sandbox:
    """The border around the programs of one session; `close` removes its folder."""

    def __init__(
        self,
        kind: SandboxKind,
        request: SandboxRequest,
        border: Border,
        protection: Protection,
        place: str,
        *,
        program: str = "",
        groups: LimitGroups = NO_GROUPS,
    ) -> None:
        self.kind, self.border, self.protection = kind, border, protection
        self.request = request
        self._place, self._program, self._groups = place, program, groups
        self._counts = groups.count_refusals()
        self.proxy: DomainProxy | None = None
        """The way to the network, once it was started."""
        self._port = 0
        self.lock: int | None = None
        """A descriptor of the locked file in its folder, by which others see that it is in use."""
        self._users = 0
        """How many environments use it; the last one closes it."""
        self._reported: set[str] = {path for path in protection.watched if os.path.lexists(path)}

    @property
    def covers_all(self) -> bool:
        """Whether calls that only ask may run because of it.

        Landlock leaves too much open, and so do sockets: that of Docker gives the whole machine.
        """
        is_open = self.kind == "landlock" or self.request.unix_sockets
        return self.request.writes and not is_open

    async def start(self) -> None:
        """Open the way to the network, where the settings allow hosts; called once or more."""
        request = self.request
        if not request.domains or self.proxy is not None or self.kind == "landlock":
            return
        self.proxy = DomainProxy(request.domains, request.denied_domains)
        path = f"{self._place}/proxy" if self.kind == "bubblewrap" else None
        self._port = await self.proxy.start(path) or _PROXY_PORT

    @property
    def mode(self) -> Literal["read-only", "workspace-write"]:
        """The mode of the settings that it was made for."""
        return "workspace-write" if self.request.writes else "read-only"

    @property
    def description(self) -> str:
        """What programs inside can do, for a model."""
        folders = "the working directory and /tmp" if self.request.writes else "/tmp"
        hosts = ", ".join(self.request.domains) if self.kind != "landlock" else ""
        network = f"of the network they reach {hosts} by a proxy" if hosts else "no network"
        if self.kind == "landlock":
            return f"commands write only below {folders}; {network}"
        return (
            f"commands write only below {folders}, never .git/config and .git/hooks; {network}; a"
            " server and what asks it run in one command"
        )

    @property
    def temporary_directory(self) -> str:
        """The folder of temporary files, under the name that it has inside and outside."""
        return self.border.temporary

    @property
    def limits(self) -> str:
        """The limits in words."""
        counts = self.kind == "bubblewrap" and not self.border.is_root
        return describe_limits(self.request.limits, self._groups, counts_processes=counts)

    def wrap(
        self, argv: Sequence[str], variables: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Return the words and the variables that start a program inside."""
        outside = {k: v for k, v in variables.items() if not _UNSAFE_OUTSIDE.match(k)}
        inside = {k: v for k, v in variables.items() if k not in outside}
        inside |= self._variables
        if self.proxy is not None:
            inside |= build_proxy_variables(self._port)
        inner = [*argv]
        if self.kind == "bubblewrap" and (
            line := build_inner_script(self.request.limits, self._groups)
        ):
            inner = [_SHELL, "-c", f'{line}\nexec "$@"', "sh", *inner]
        words = self._wrap_words(inner, inside)
        script = [build_limit_script(self.request.limits, self._groups)]
        first: list[str] = []
        if self.kind == "bubblewrap":
            first = [f"{self._place}/filter", f"{self._place}/forwarder-filter"]
            script.append(
                f'exec {PROGRAM_FILTER}<"$1" {FORWARDER_FILTER}<"$2" || exit 126\nshift 2'
            )
            if self.proxy is None:
                first, script[-1] = first[:1], f'exec {PROGRAM_FILTER}<"$1" || exit 126\nshift'
        script.append('exec "$@"')
        text = "\n".join(filter(None, script))
        return [_SHELL, "-c", text, "sh", *first, *words], outside

    def _wrap_words(self, argv: list[str], variables: Mapping[str, str]) -> list[str]:
        border = self._check_border()
        if self.kind == "bubblewrap":
            if self.proxy is not None:
                # Variables that change how programs start are set behind the filter.
                arguments = build_arguments(border, {}, filter_handle=None)
                arguments += ["--ro-bind", f"{self._place}/proxy", _PROXY_SOCKET]
                entering = [_PROXY_SOCKET, str(self._port), "--"]
                start = [sys.executable, "-ISE", entry.__file__, *entering]
                return [self._program, *arguments, "--", *start, *_set_variables(variables, argv)]
            arguments = build_arguments(border, variables, filter_handle=PROGRAM_FILTER)
            return [self._program, *arguments, "--", *argv]
        inner = _set_variables(variables, argv)
        if self.kind == "seatbelt":
            profile = seatbelt.build_profile(
                border, proxy_port=self._port or None, unix_sockets=self.request.unix_sockets
            )
            return seatbelt.build_command(profile, inner)
        folders = (border.temporary, *border.roots)
        return [sys.executable, "-ISE", landlock.__file__, "off", *folders, "--", *inner]

    def _check_border(self) -> Border:
        """Return the border without what is gone: a person may have moved it meanwhile.

        A link is as good as gone, as a mount would be wherever it leads.
        """
        border = self.border

        def select(paths: Sequence[str]) -> tuple[str, ...]:
            return tuple(p for p in paths if os.path.lexists(p) and not os.path.islink(p))

        return replace(
            border,
            roots=select(border.roots),
            pinned=select(border.pinned),
            fixed=select(border.fixed),
            hidden_folders=select(border.hidden_folders),
            hidden_files=select(border.hidden_files),
            visible=select(border.visible),
        )

    @cached_property
    def _variables(self) -> dict[str, str]:
        temporary, environ = self.temporary_directory, self.request.environ
        variables = {"TMPDIR": temporary}
        cache = environ.get("XDG_CACHE_HOME") or f"{self.request.home}/.cache"
        if not self.border.may_write(os.path.realpath(cache)):
            variables["XDG_CACHE_HOME"] = f"{temporary}/cache"
        npm = environ.get("npm_config_cache") or f"{self.request.home}/.npm"
        if not self.border.may_write(os.path.realpath(npm)):
            variables["npm_config_cache"] = f"{temporary}/cache/npm"
        return variables

    def find_refusals(self, output: bytes, exit_code: int) -> tuple[str, ...]:
        """Return what the border refused a program, as far as its output tells.

        Limits that were met meanwhile are among it, where a group of the kernel's counts them.
        """
        counts, before = self._groups.count_refusals(), self._counts
        self._counts = counts
        met = [kind for kind, count in counts.items() if count > before.get(kind, 0)]
        refused = describe_refusals(self.request.limits, met)
        if self.proxy is not None:
            refused += self.proxy.take_refusals()
        text = output.decode("utf-8", "replace")
        if exit_code == 0:  # what the shell itself could not do is lost among what went well
            return (*refused, *find_shell_refusals(text))
        others = find_refusals(text, self.border)
        if refused:
            others = tuple(each for each in others if not each.startswith("reaching"))
        return (*refused, *others)

    def find_appeared(self) -> tuple[str, ...]:
        """Return protected names that are there since this was asked last.

        A `commondir` in the folder of a repository makes git obey the settings of another folder,
        and no program makes one there: it gets another name.
        """
        appeared = []
        for path in self.protection.watched:
            if not os.path.lexists(path):
                self._reported.discard(path)
            elif path not in self._reported:
                appeared.append(path)
                if path.endswith("/commondir"):
                    with suppress(OSError):
                        os.rename(path, f"{path}{_DISARMED}")
                        continue
                self._reported.add(path)
        return tuple(appeared)

    def hold(self) -> None:
        """Keep it open until `release`."""
        self._users += 1

    def release(self) -> None:
        """Let go of it; the last user closes it."""
        self._users -= 1
        if self._users <= 0:
            self.close()

    def close(self) -> None:
        """Remove its folder and its groups, and close the way to the network."""
        if self.proxy is not None:
            self.proxy.close()
        self._groups.remove()
        _remove_folder(self._place, self.lock)
        self.lock = None


def build_proxy_variables(port: int) -> dict[str, str]:
    """Return the variables by which programs find the proxy."""
    address = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    variables = {spelling: address for name in names for spelling in (name, name.lower())}
    local = "localhost,127.0.0.1,::1"
    return {**variables, "NO_PROXY": local, "no_proxy": local, "NODE_USE_ENV_PROXY": "1"}


def _set_variables(variables: Mapping[str, str], argv: Sequence[str]) -> list[str]:
    """Return the words that start a program with some more variables."""
    return [_ENV, *(f"{name}={value}" for name, value in variables.items()), *argv]


def find_kinds(environ: Mapping[str, str]) -> list[Availability]:
    """Return each kind of sandbox of this system, and whether it works here."""
    if sys.platform == "darwin":
        works = os.access(seatbelt.PROGRAM, os.X_OK)
        return [
            Availability(
                "seatbelt", works, seatbelt.PROGRAM if works else "sandbox-exec is missing"
            )
        ]
    if sys.platform != "linux":
        return []
    findings = [_try_bubblewrap(environ, ())]
    version = landlock.find_version()
    about = f"version {version}" if version else "this kernel has none"
    return [*findings, Availability("landlock", version > 0, about)]


def _try_bubblewrap(environ: Mapping[str, str], roots: Sequence[str]) -> Availability:
    program = find_bubblewrap(environ, roots)
    if program is None:
        return Availability("bubblewrap", False, "bwrap is not installed")
    if platform.machine() not in MACHINES:
        return Availability(
            "bubblewrap", False, f"no filter of system calls for {platform.machine()}"
        )
    words = [program, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/true"]
    failure = _find_failure(words, {})
    return Availability("bubblewrap", not failure, failure or program)


def find_bubblewrap(environ: Mapping[str, str], roots: Sequence[str]) -> str | None:
    """Return the program, which must not be in a folder that programs inside may write."""
    folders = (*_USUAL_FOLDERS, *environ.get("PATH", "").split(os.pathsep))
    for folder in folders:
        path = os.path.realpath(f"{folder}/bwrap")
        if not folder.startswith("/") or any(is_inside_folder(path, root) for root in roots):
            continue
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def _find_failure(words: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return why a program that should only end well does not; empty where it does."""
    try:
        done = subprocess.run(
            words,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode("utf-8", "replace").strip().split("\n")
    return lines[0][:200] or f"it ended with {done.returncode}"


class SandboxUnavailable(ConfigurationError):
    """No kind of sandbox works here."""


def open_sandbox(request: SandboxRequest, kinds: Sequence[Availability] | None = None) -> Sandbox:
    """Return the first sandbox of `kinds` that works here, of all kinds if that is None.

    Raises SandboxUnavailable, and ConfigurationError for a folder that cannot be in one.
    """
    temporary = os.path.realpath(tempfile.gettempdir())
    roots = _choose_roots(request, temporary)
    findings: list[Availability] = []
    remove_stale_folders(temporary)
    place = tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=temporary)
    lock = os.open(f"{place}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        Path(place, "tmp").mkdir(mode=0o700)
        packages = Path(__file__).resolve().parents[2], Path(own_program.__file__).resolve().parent
        own_code = os.path.realpath(sys.prefix), *map(str, packages)
        protection = find_protection(roots, os.path.realpath(request.folder), own_code)
        if not request.writes:
            protection = Protection()
        hidden = find_hidden(request.home, request.own_folders, request.hidden, request.visible)
        border = Border(
            roots=(*roots, *protection.writable) if request.writes else (),
            pinned=protection.pinned,
            fixed=protection.fixed,
            hidden_folders=hidden.folders,
            hidden_files=hidden.files,
            visible=(*hidden.visible, *_list_covered(request.folder, *own_code)),
            temporary=f"{place}/tmp",
            is_root=os.geteuid() == 0,
        )
        for finding in find_kinds(request.environ) if kinds is None else kinds:
            findings.append(finding)
            if not finding.works:
                continue
            border = replace(border, has_own_tmp=finding.kind == "bubblewrap")
            sandbox = _build_sandbox(finding, request, border, protection, place)
            words, variables = sandbox.wrap(["/bin/sh", "-c", ":"], {"PATH": os.defpath})
            failure = _find_failure(words, variables)
            if not failure:
                sandbox.lock = lock
                return sandbox
            sandbox._groups.remove()  # noqa: SLF001
            findings[-1] = finding._replace(works=False, about=failure)
    except BaseException:
        _remove_folder(place, lock)
        raise
    _remove_folder(place, lock)
    reasons = "; ".join(f"{finding.kind}: {finding.about}" for finding in findings)
    raise SandboxUnavailable(f"no sandbox works here ({reasons or 'this system has none'})")


_OWN_FOLDERS = ("/tmp", "/dev", "/run")
"""What programs inside have their own of."""


def _list_covered(folder: str, *own_code: str) -> tuple[str, ...]:
    """Return a folder, its repository and gong's code, where folders of its own would cover them.

    The code has the Python that starts what is inside.
    """
    real = os.path.realpath(folder)
    repository = locate_git_folder(real)
    tops = (real,) if repository is None else (repository.top, real)
    return tuple(
        top
        for top in dict.fromkeys((*tops, *own_code))
        if any(is_inside_folder(top, own) for own in _OWN_FOLDERS)
    )


def remove_stale_folders(temporary: str) -> None:
    """Remove what sessions that were killed have left: their folders, and their groups."""
    with suppress(OSError), os.scandir(temporary) as entries:
        for entry in entries:
            if not entry.name.startswith(_FOLDER_PREFIX):
                continue
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                    continue
                lock = os.open(f"{entry.path}/lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:  # its session runs
                    os.close(lock)
                    continue
                find_groups(entry.name).remove()
                _remove_folder(entry.path, lock)


def _remove_folder(place: str, lock: int | None) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _build_sandbox(
    finding: Availability,
    request: SandboxRequest,
    border: Border,
    protection: Protection,
    place: str,
) -> Sandbox:
    program = ""
    if finding.kind == "bubblewrap":
        program = find_bubblewrap(request.environ, border.roots) or ""
        machine = MACHINES[platform.machine()]
        Path(place, "filter").write_bytes(build_filter(machine, unix_sockets=request.unix_sockets))
        Path(place, "forwarder-filter").write_bytes(build_filter(machine, unix_sockets=True))
    groups = make_groups(request.limits, os.path.basename(place))
    return Sandbox(finding.kind, request, border, protection, place, program=program, groups=groups)


def _choose_roots(request: SandboxRequest, temporary: str) -> tuple[str, ...]:
    """Return the folders that may be written; raises ConfigurationError for one that holds all."""
    if not request.writes:
        return ()
    roots = []
    for folder in (request.folder, *request.folders):
        real = os.path.realpath(folder)
        if is_inside_folder(request.home, real):
            raise ConfigurationError(
                f"sandbox: {folder} holds your home folder, whose files run programs: work in a"
                " folder below it, or with --sandbox read-only"
            )
        if is_inside_folder(temporary, real):
            raise ConfigurationError(
                f"sandbox: {folder} holds the folder of temporary files: work in one below it"
            )
        for own in map(os.path.realpath, request.own_folders):
            if is_inside_folder(real, own) and not is_inside_folder(real, f"{own}/worktrees"):
                raise ConfigurationError(f"sandbox: {folder} is among gong's own files")
        if os.path.isdir(real):
            roots.append(real)
    return tuple(dict.fromkeys(roots))
