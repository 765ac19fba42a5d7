"""The working folder of another place as `FolderFiles` looks at it: each look asks the place.

    question             asked over there
    -------------------  ---------------------------------------------------------------------
    which files          find, without what .gitignore files leave out
    states               those that find told with the names
    bytes                many files at once, and their states again after them
    which git has        git's index, and the names under which git would store their bytes;
                         once, as no filter and no other program of the repository is to run

What `FolderFiles` asks comes from a thread, while the place is asked in the event loop. Nothing
watches the folder, so each look lists it.
"""

from __future__ import annotations

import asyncio
import posixpath
import stat
from typing import TYPE_CHECKING, Any, TypeVar

from ..git_programs import GIT
from .disk_file import DiskFile
from .folder_listing import HEAVY_FOLDERS, Listing, is_utf8, split_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Coroutine, Mapping, Sequence

    from ..env.places.environment import PlaceEnvironment
    from ..env.places.messages import FoundPath, RemoteState
    from .disk_file import FileSignature
    from .folder_listing import WantedFile

T = TypeVar("T")
_SECOND_NS = 1_000_000_000
"""Times of files over there may be whole seconds, and so is its clock."""
_ATTEMPTS = 3
_GROUP_BYTES = 8 << 20
"""So much is fetched at once, where no single file is larger."""
_ENVIRONMENT = (
    *("env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "-u", "GIT_PREFIX"),
    *("-u", "GIT_NAMESPACE", "GIT_NO_LAZY_FETCH=1"),
)
_GIT_COMMAND = (*_ENVIRONMENT, *GIT, "-c", "protocol.allow=never", "--no-optional-locks")
_PLAIN_FILES = ("100644", "100755")


class PlaceFolder:
    """The files below one folder of a place; see `FolderSource`."""

    def __init__(
        self, env: PlaceEnvironment, folder: str, skip: Sequence[str], *, has_repository: bool
    ) -> None:
        self._env, self._folder, self._has_repository = env, folder, has_repository
        self._skip = tuple(f"{path}/" for path in skip)
        self._loop = asyncio.get_running_loop()
        self._listed: dict[str, FileSignature] = {}
        """What the last listing found."""
        self._objects: dict[str, str] | None = None

    @classmethod
    async def open(
        cls, env: PlaceEnvironment, folder: str, skip: Sequence[str] = ()
    ) -> PlaceFolder:
        """Return a folder of a place; `folder` and those of `skip` are real paths over there."""
        tops = [folder]
        while tops[-1] != "/":
            tops.append(posixpath.dirname(tops[-1]))
        states = await env.find_states([posixpath.join(top, ".git") for top in tops])
        has_repository = any(not isinstance(state, OSError) for state in states.values())
        return cls(env, folder, skip, has_repository=has_repository)

    def close(self) -> None:
        """Watch nothing; nothing was watched."""

    def has_events(self) -> bool:
        """Anything may have changed."""
        return True

    def has_folder_of(self, path: str) -> bool:  # noqa: ARG002 (a source's face)
        """No folder is watched, but each look lists all."""
        return True

    def find_changed_names(
        self,
        known: Container[str],  # noqa: ARG002 (a source's face)
    ) -> set[str] | None:
        """Return None: it may be any."""
        return None

    def list_files(self, max_files: int) -> Listing:  # noqa: ARG002 (a source's face)
        """Return all files; those are tracked whose bytes git has as they are."""
        without = () if self._has_repository else sorted(HEAVY_FOLDERS)
        items = [
            item
            for item in self._run(self._env.list_files(self._folder, without))
            if not self._locate(item.path).startswith(self._skip)
        ]
        self._listed = {item.path: item.state.signature for item in items if is_utf8(item.path)}
        if self._objects is None:
            self._objects = self._run(self._find_objects(items)) if self._has_repository else {}
        tracked: dict[str, str | None] = {
            path: oid for path, oid in self._objects.items() if path in self._listed
        }
        others = [path for path in self._listed if path not in tracked]
        if self._has_repository:
            remarks = ("Files that git ignores are not recorded.",)
        else:
            remarks = ("Not recorded: what programs fill, such as folders named node_modules.",)
        limits: tuple[str, ...] = ()
        if len(self._listed) < len(items):
            limits = ("Files whose names are not UTF-8 are not recorded.",)
        return Listing(tracked, sorted(others), remarks, limits, self._has_repository)

    def read_clock(self) -> int:
        """Return about what the clock over there shows, in ns since 1970; never more.

        Whole seconds, as the times of files may be: what is written now is not from before.
        """
        now = self._env.read_clock()
        return now - now % _SECOND_NS

    def is_settled(self, signature: FileSignature, now_ns: int) -> bool:
        """Return whether an equal signature later means equal bytes."""
        return now_ns - max(signature[1], signature[2]) > _SECOND_NS

    def stat_files(self, paths: Collection[str]) -> dict[str, FileSignature | None]:
        """Return what the last listing found, and ask for those that it lacks."""
        signatures: dict[str, FileSignature | None] = {
            path: self._listed[path] for path in paths if path in self._listed
        }
        missing = [path for path in paths if path not in signatures]
        return {**signatures, **(self._run(self._find_signatures(missing)) if missing else {})}

    def read_files(
        self,
        paths: Mapping[str, FileSignature],
        refuse: Callable[[int], str],
        can_hash: Callable[[int], bool] | None,  # noqa: ARG002 (a source's face)
    ) -> dict[str, DiskFile | None]:
        """Return files as they are now; those that are refused with their states alone."""
        files: dict[str, DiskFile | None] = {}
        unread: dict[str, FileSignature] = {}
        for path, signature in paths.items():
            is_link = stat.S_ISLNK(signature[4])
            if not is_link and (why := refuse(signature[0])):
                files[path] = DiskFile(signature, why)
            else:
                unread[path] = signature
        if unread:
            files |= self._run(self._read_files(unread))
        return files

    def read_objects(self, files: Sequence[WantedFile]) -> dict[str, bytes]:
        """Return the bytes that git has of files, by path."""
        request = "".join(f"{file.oid}\n" for file in files).encode()
        answer = self._run(
            self._ask_git("cat-file", "--batch=%(objecttype) %(objectsize)", data=request)
        )
        stored = split_objects(answer or b"", len(files))
        return {
            file.path: data
            for file, data in zip(files, stored, strict=True)
            if data is not None and len(data) == file.size
        }

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _locate(self, path: str) -> str:
        return posixpath.join(self._folder, path)

    async def _find_signatures(self, paths: Sequence[str]) -> dict[str, FileSignature | None]:
        """Return signatures of files; None also for what a link in place of a folder leads to."""
        states = await self._env.find_states([self._locate(path) for path in paths])
        folders = list({posixpath.dirname(self._locate(path)) for path in paths})
        real = await self._env.find_real_paths(folders)
        return {
            path: _build_signature(states[at])
            if real[posixpath.dirname(at)] == posixpath.dirname(at)
            else None
            for path in paths
            for at in (self._locate(path),)
        }

    async def _read_files(self, unread: Mapping[str, FileSignature]) -> dict[str, DiskFile | None]:
        """Return files with their bytes; one that changes while it is read is read again."""
        files: dict[str, DiskFile | None] = {}
        left = dict(unread)
        for _ in range(_ATTEMPTS):
            now = self.read_clock()
            read = {path: data async for path, data in self._fetch(left)}
            after = await self._find_signatures([*left])
            for path, data in read.items():
                signature = after[path]
                if signature is None:
                    files[path] = None
                elif isinstance(data, OSError):
                    why = f"it cannot be read: {data.strerror or data}"
                    files[path] = DiskFile(signature, why)
                else:
                    file = DiskFile.from_bytes(data, signature)
                    files[path] = file._replace(is_settled=self.is_settled(signature, now))
            left = {
                path: signature
                for path in left
                if (signature := after[path]) is not None and signature != left[path]
            }
            if not left:
                break
        return files

    async def _fetch(self, unread: Mapping[str, FileSignature]) -> Any:
        """Yield paths with bytes, or the error; many files at once."""
        links = [path for path, signature in unread.items() if stat.S_ISLNK(signature[4])]
        is_link = set(links)
        texts = await self._env.read_links([self._locate(path) for path in links])
        for path in links:
            yield path, texts[self._locate(path)] or b""
        group: list[str] = []
        size = 0
        for path in unread:
            if path in is_link:
                continue
            if group and size + unread[path][0] > _GROUP_BYTES:
                for pair in await self._fetch_group(group):
                    yield pair
                group, size = [], 0
            group.append(path)
            size += unread[path][0]
        for pair in await self._fetch_group(group):
            yield pair

    async def _fetch_group(self, paths: Sequence[str]) -> list[tuple[str, bytes | OSError]]:
        if not paths:
            return []
        contents = await self._env.read_many([self._locate(path) for path in paths])
        return [(path, contents[self._locate(path)]) for path in paths]

    async def _find_objects(self, items: Sequence[FoundPath]) -> dict[str, str]:
        """Return the git objects that hold the bytes of files as they are, by path."""
        if "git" not in self._env.programs:
            return {}
        entries = await self._ask_git("ls-files", "-z", "-s", "-c")
        if not entries:
            return {}
        there = {item.path for item in items if stat.S_ISREG(item.state.mode)}
        oids: dict[str, str] = {}
        for line in entries.split(b"\0"):
            about, _, name = line.partition(b"\t")
            mode, _, rest = about.decode("ascii", "replace").partition(" ")
            oid, _, stage = rest.partition(" ")
            path = name.decode("utf-8", "surrogateescape")
            if mode in _PLAIN_FILES and stage == "0" and path in there and "\n" not in path:
                oids[path] = oid
        names = "".join(f"{self._locate(path)}\n" for path in oids)
        words = ("hash-object", "--no-filters", "--stdin-paths")
        hashed = await self._ask_git(*words, data=names.encode("utf-8", "surrogateescape"))
        lines = (hashed or b"").decode("ascii", "replace").split("\n")[:-1]
        if len(lines) != len(oids):
            return {}
        return {
            path: oid for (path, oid), line in zip(oids.items(), lines, strict=True) if oid == line
        }

    async def _ask_git(self, *words: str, data: bytes = b"") -> bytes | None:
        return await self._env.run_program((*_GIT_COMMAND, *words), self._folder, data)


def _build_signature(state: RemoteState | OSError) -> FileSignature | None:
    if isinstance(state, OSError) or not (stat.S_ISREG(state.mode) or stat.S_ISLNK(state.mode)):
        return None
    return state.signature
