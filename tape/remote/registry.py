"""The remotes of a store: remotes.json in it says their names and addresses.

    {"remotes": {"team": {"url": "s3://sessions/ours"}}, "default": "team"}

The default remote is the one that push and pull use when none is named: the one that was made so,
else the only one there is.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct, field

from ..errors import Damaged, InvalidName, NotFound, UsageError
from ..model.line import JSON_ERRORS
from ..store.disk import Folder, read_file
from ..text import format_names
from . import REGISTRY_NAME
from .cursor import REMOTES_NAME
from .objects import (
    FORMAT,
    REMOTE_KEY,
    RemoteInfo,
    decode_remote_info,
    encode_remote_info,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.store import Store
    from .catalogue import PostgresCatalogue
    from .remote import Remote

MODES = {
    "async": "in the background, of tapes that were pushed there once",
    "manual": "with tape push, or with the service that runs it",
    "barrier": "before an answer counts: writers wait until the remote has it",
}
"""When what is written goes to a remote → what that means."""
_RACES, _RACERS = 2, 8
_CACHE = ".cache"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}\Z")
_SCP_FORM = re.compile(r"([\w.-]+@[\w.-]+):(.+)\Z")
"""How git and ssh write an address without a scheme."""
SCHEMES = {
    "file": "a folder that several machines see",
    "s3": "object storage (pip install 'gong[s3]')",
    "postgresql": "PostgreSQL (pip install 'gong[postgres]')",
    "git+ssh": "a git repository",
}
_SAME_SCHEMES = {
    "postgres": "postgresql",
    **dict.fromkeys(("s3+http", "s3+https"), "s3"),
    **dict.fromkeys(("git+https", "git+http", "git+file"), "git+ssh"),
}


class KnownRemote(Struct, omit_defaults=True):
    """What is kept of a remote."""

    url: str
    raw: bool = False
    """Whether entries with secrets may be pushed to it."""
    mode: str = "async"
    """When what is written goes there: one of MODES."""


class Registry(Struct, omit_defaults=True):
    """remotes.json."""

    remotes: dict[str, KnownRemote] = field(default_factory=dict)
    default: str | None = None

    def choose(self, name: str | None = None) -> str:
        """Return the remote of this name, or the default one; raise NotFound."""
        if name is not None:
            if name not in self.remotes:
                known = format_names(self.remotes, name) if self.remotes else "none"
                raise NotFound(f"no remote {name!r}; there are: {known}")
            return name
        default = self.find_default()
        if default is not None:
            return default
        if not self.remotes:
            raise NotFound("this store has no remote: `tape remote add NAME URL` adds one")
        names = ", ".join(sorted(self.remotes))
        raise UsageError(
            f"which remote: {names}? Name one, or choose it with `tape remote default NAME`"
        )

    def find_default(self) -> str | None:
        """Return the default remote; None if there is none, or none was chosen among several."""
        if self.default in self.remotes:
            return self.default
        return next(iter(self.remotes)) if len(self.remotes) == 1 else None


def read_registry(store: Path) -> Registry:
    """Return the remotes of the store in a folder; raise Damaged."""
    try:
        return msgspec.json.decode(read_file(store / REGISTRY_NAME), type=Registry)
    except FileNotFoundError:
        return Registry()
    except (OSError, *JSON_ERRORS) as error:
        raise Damaged(f"{store / REGISTRY_NAME} cannot be read: {error}") from error


def write_registry(store: Path, registry: Registry) -> None:
    """Write the remotes of a store."""
    data = msgspec.json.format(msgspec.json.encode(registry), indent=2) + b"\n"
    with Folder.open(store) as home:
        home.write_whole(REGISTRY_NAME, data, f".{REGISTRY_NAME}.{os.urandom(4).hex()}")
        home.sync()


def check_remote_name(name: str) -> str:
    """Return the name of a remote; raise InvalidName."""
    if not _NAME.match(name):
        raise InvalidName("remote", name, "it must match [a-z0-9][a-z0-9_-]{0,31}")
    return name


def check_remote_url(url: str) -> str:
    """Return the address of a remote, a plain path as file://; raise UsageError."""
    parts = urlsplit(url)
    kinds = f"a remote is {', '.join(f'{name}://…' for name in SCHEMES)}, or a folder"
    if not url.strip():
        raise UsageError(f"the address is empty: {kinds}")
    if not parts.scheme and "://" not in url:
        path = Path(url).expanduser().resolve()
        if (match := _SCP_FORM.match(url)) and not path.exists():
            host, repository = match.groups()
            raise UsageError(f"{url}: that is git+ssh://{host}/{repository.lstrip('/')} here")
        return path.as_uri()
    scheme = _name_scheme(url)
    if scheme not in SCHEMES:
        is_git = scheme in ("ssh", "https", "http")
        hint = f"; for a repository of git: git+{url}" if is_git else ""
        raise UsageError(f"{url}: {kinds}{hint}")
    if scheme == "file" and parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"{url}: the path of a folder is whole: file:///{parts.netloc}{parts.path}"
        )
    return url


def _name_scheme(url: str) -> str:
    """Return which kind of remote an address names, as in SCHEMES."""
    scheme = urlsplit(url).scheme
    return _SAME_SCHEMES.get(scheme, scheme)


def open_remote(url: str, cache: Path | None = None) -> Remote:
    """Return the remote at an address; raise UsageError, RemoteUnavailable.

    `cache` is a folder for what a remote keeps of what it read; see `list_caches`.
    """
    scheme = _name_scheme(url)
    if scheme == "file":
        from .folder import FolderRemote

        return FolderRemote(Path(unquote(urlsplit(url).path)))
    if scheme == "s3":
        with _needs_extra("s3"):
            from .s3 import S3Remote

        return S3Remote(url)
    if scheme == "postgresql":
        with _needs_extra("postgres"):
            from .postgres import PostgresRemote

        return PostgresRemote(url)
    if scheme == "git+ssh":
        from .git import GitRemote

        return GitRemote(url, cache)
    raise UsageError(f"{url} is no address of a remote")


def find_catalogue(remote: Remote) -> PostgresCatalogue | None:
    """Return what a remote derives from its objects for lists and search; only PostgreSQL does."""
    if _name_scheme(remote.url) != "postgresql":
        return None
    from .catalogue import PostgresCatalogue
    from .postgres import PostgresRemote

    return PostgresCatalogue(remote) if isinstance(remote, PostgresRemote) else None


def open_named(store: Path, name: str, known: KnownRemote) -> Remote:
    """Return a remote of the store in a folder, which keeps there what the remote read."""
    return open_remote(known.url, store / REMOTES_NAME / f"{name}{_CACHE}")


def list_caches(store: Path, name: str) -> list[Path]:
    """Return the folders in which a remote of this name keeps what it read, one for a process."""
    return sorted((store / REMOTES_NAME).glob(f"{name}{_CACHE}*"))


@contextmanager
def _needs_extra(name: str) -> Iterator[None]:
    """Raise UsageError where the libraries of an extra are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(f"this remote needs {error.name}: pip install 'gong[{name}]'") from error


def probe_remote(remote: Remote) -> None:
    """Raise UsageError unless a remote creates an object once, whoever asks at the same time.

    Some object stores take every write and say that it was the first: two machines that push at
    once would lose what one of them pushed. Leaves a few small objects below `probe/`.
    """
    stem = f"probe/{os.urandom(16).hex()}"
    won = [remote.create(f"{stem}/twice", b"1"), remote.create(f"{stem}/twice", b"2")]
    fault = None
    if won != [True, False]:
        fault = f"it created one object {sum(won)} times" if sum(won) else "it created nothing"
    elif remote.read(f"{stem}/twice") != b"1":
        fault = "it replaced an object that existed"
    else:
        for turn in range(_RACES):
            key = f"{stem}/race{turn}"
            with ThreadPoolExecutor(_RACERS) as pool:
                data = [b"%d" % number for number in range(_RACERS)]
                wins = [*pool.map(remote.create, [key] * _RACERS, data)]
            if sum(wins) != 1 or remote.read(key) != data[wins.index(True)]:
                fault = f"{sum(wins)} of {_RACERS} created one object at the same time"
                break
    if fault is None and [item.key for item in remote.list(f"{stem}/")] != sorted(
        f"{stem}/{name}" for name in ("twice", *(f"race{turn}" for turn in range(_RACES)))
    ):
        fault = "its list lacks objects that were just created"
    if fault is not None:
        raise UsageError(
            f"{remote.url} cannot be a remote: {fault}. It ignores conditional writes "
            "(If-None-Match), so pushes of two machines would overwrite each other"
        )


def add_remote(store: Store, name: str, known: KnownRemote) -> None:
    """Add a remote to a store, which is made if need be; the first one is the default.

    Raises UsageError for a name that is taken, and what `probe_remote` does.
    """
    store.open_tapes_folder().close()
    registry = read_registry(store.path)
    if name in registry.remotes:
        raise UsageError(f"there is a remote {name!r} already: {registry.remotes[name].url}")
    with open_remote(known.url) as opened:
        probe_remote(opened)
        begin_remote(opened)
    registry.remotes[name] = known
    registry.default = registry.default or name
    write_registry(store.path, registry)


def begin_remote(remote: Remote) -> RemoteInfo:
    """Return what remote.json says; write it where there is none."""
    for _ in range(2):
        try:
            return decode_remote_info(remote.read(REMOTE_KEY))
        except NotFound:
            info = RemoteInfo(format=FORMAT, id=os.urandom(16).hex())
            remote.create(REMOTE_KEY, encode_remote_info(info))
    raise Damaged(f"{remote.url} has no {REMOTE_KEY}, and does not let it be created")
