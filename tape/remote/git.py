"""A remote in a git repository: all objects are files of one commit, which one ref names.

    git+ssh://git@HOST/TEAM/tapes.git, git+https://…, git+file:///srv/tapes.git

Branches and tags of the repository stay as they are, and nothing is checked out. A batch of objects
is one commit on `refs/tapes/store`; it counts if that ref is still where it was (`git push
--force-with-lease`), else it is made again on what is there now. What was replaced leaves the
history as well: that commit has no parent. Git has no clock, so this machine's counts.

A bare repository beside the store holds what was fetched; it may be deleted. A list asks the other
one; an object is read as it was when that was asked last.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from ..errors import Busy, NotFound, RemoteUnavailable, UsageError
from ..store.disk import Folder
from ..store.locks import Lock
from .remote import Listed, Remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REF = "refs/tapes/store"
_TRIES = 200
_MAX_SECONDS = 1_800
"""How long one command of git may take: a first fetch brings everything."""
_PAUSE, _MAX_PAUSE = 0.02, 1.0
_KEY = re.compile(r"[a-z0-9][a-z0-9.-]*(/[a-z0-9][a-z0-9.-]*)*\Z")
_PLACE = re.compile(r"(file|ssh|https?)://(?!-)")
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "core.logAllRefUpdates=false",
    "-c", "protocol.ext.allow=never", "-c", "fetch.fsckObjects=true",
    "-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60",
)  # fmt: skip
"""No program of a repository is run, and nothing is tidied up while somebody reads."""
_UNMADE = "couldn't find remote ref"
_OVERTAKEN = re.compile(
    r"stale info|fetch first|cannot lock ref|failed to update ref|failed to lock"
    r"|incorrect old value|reference already exists"
)
_FAULT = re.compile(r"(?:fatal|error|remote): *(.*)")


class GitRemote(Remote):
    """Objects in a commit of the repository at an address.

    `cache` is the folder of the bare repository here, or one beside it while another process has
    that; without it, one is made for as long as this is open.
    """

    def __init__(self, url: str, cache: Path | None = None) -> None:
        self.url, self._address = url, _parse_url(url)
        self._cache = None if cache is None else _take_cache(cache)
        self._folder = (
            Path(tempfile.mkdtemp(prefix="tape-git-")) if self._cache is None else self._cache[0]
        )
        self._lock = RLock()
        self._reader: subprocess.Popen[bytes] | None = None
        self._tip = ""
        """The commit that was there when the other repository was asked last; "" for none."""
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare", ".")
        for name in (REF, "packed-refs"):  # of a process that was killed
            (self._folder / f"{name}.lock").unlink(missing_ok=True)
        if (self._folder / REF).exists():
            self._tip = (self._folder / REF).read_text("ascii").strip()

    def create(self, key: str, data: bytes) -> bool:
        """Create an object by a commit that has it as well."""
        return self.create_many([(key, data)])[0]

    def create_many(self, objects: Sequence[tuple[str, bytes]]) -> Sequence[bool]:
        """Create those of several objects that are new by one commit, and all of them or none."""
        first: dict[str, int] = {}
        for number, (key, _) in enumerate(objects):
            first.setdefault(_check_key(key), number)
        if not first:
            return []
        with self._lock:
            for turn in range(_TRIES):
                sizes = self._read_sizes([*first])
                new = {key: objects[at][1] for key, at in first.items() if sizes[key] is None}
                # What is there is there for ever: only what seems new has to be asked for.
                if not new or self._push(new, keeps_history=True):
                    return [key in new and first[key] == at for at, (key, _) in enumerate(objects)]
                self._wait(turn)
        raise RemoteUnavailable(f"{self.url}: others push all the time: try again")

    def replace(self, key: str, data: bytes) -> None:
        """Replace the bytes of an object by a commit without a parent."""
        with self._lock:
            for turn in range(_TRIES):
                self._fetch()
                if self._push({_check_key(key): data}, keeps_history=False):
                    return
                self._wait(turn)
        raise RemoteUnavailable(f"{self.url}: others push all the time: try again")

    def _wait(self, turn: int) -> None:
        """Fetch what somebody else pushed; later each time, for the others to come through."""
        if turn:
            time.sleep(random.uniform(0, min(_PAUSE * 2**turn, _MAX_PAUSE)))  # noqa: S311 (a pause)
        self._fetch()

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of a file of the commit; ask for a newer one if there is none."""
        with self._lock:
            data = self._read_file(_check_key(key))
            if data is None:
                self._fetch()
                data = self._read_file(key)
        if data is None:
            raise NotFound(f"the remote has no {key}")
        return data[start:] if end is None else data[start : max(start, end)]

    def read_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """Return the bytes of several files; ask at most once for a newer commit."""
        with self._lock:
            files = {key: self._read_file(_check_key(key)) for key in keys}
            missing = [key for key, data in files.items() if data is None]
            if missing:
                self._fetch()
                files |= {key: self._read_file(key) for key in missing}
        return [files[key] for key in keys]

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the files of the newest commit, which are in the order of their keys."""
        with self._lock:
            self._fetch()
            if not self._tip:
                return
            folder = prefix.rpartition("/")[0]
            words = ["ls-tree", "-r", "-z", "-l", self._tip, *([f"{folder}/"] if folder else [])]
            lines = self._git(*words).split(b"\0")[:-1]
        for line in lines:
            facts, _, path = line.partition(b"\t")
            key = path.decode("utf-8", "replace")
            if key.startswith(prefix) and key > after:
                yield Listed(key, int(facts.split()[3]))

    def now(self) -> int:
        """Return the time of this machine's clock: git has none."""
        return time.time_ns() // 1000

    def close(self) -> None:
        """End the process that reads, and delete a repository that nobody named."""
        self._end_reader()
        if self._cache is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            self._cache[1].close()

    def _end_reader(self) -> None:
        if self._reader is not None:
            assert self._reader.stdin is not None
            assert self._reader.stdout is not None
            self._reader.stdin.close()
            self._reader.stdout.close()
            self._reader.wait()
            self._reader = None

    def _fetch(self) -> None:
        """Fetch the commit that is there now."""
        spec = f"+{REF}:{REF}"
        words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]
        done = self._run(*words, "--", self._address, spec)
        if done.returncode:
            complaint = done.stderr.decode("utf-8", "replace")
            if _UNMADE not in complaint:
                raise self._say_unavailable(complaint)
            self._tip = ""
            return
        before, self._tip = self._tip, self._git("rev-parse", REF).decode().strip()
        if before and before != self._tip and not self._is_ancestor(before):
            self._drop_history()

    def _is_ancestor(self, commit: str) -> bool:
        return not self._run("merge-base", "--is-ancestor", commit, self._tip).returncode

    def _drop_history(self) -> None:
        """Delete what only commits before a replacement hold: it may be what was redacted."""
        self._end_reader()
        self._run("repack", "-a", "-d", "-q")
        self._run("prune", "--expire=now")

    def _push(self, files: Mapping[str, bytes], *, keeps_history: bool) -> bool:
        """Push a commit with these files; return False if the ref is elsewhere by now."""
        name = f"refs/tapes/new-{os.urandom(8).hex()}"
        self._git(
            "fast-import",
            "--quiet",
            stdin=self._build_import(name, files, keeps_history=keeps_history),
        )
        try:
            commit = self._git("rev-parse", name).decode().strip()
            lease = f"--force-with-lease={REF}:{self._tip}"
            words = ["push", "--quiet", "--no-verify", lease, "--", self._address]
            done = self._run(*words, f"{commit}:{REF}")
            if done.returncode:
                complaint = done.stderr.decode("utf-8", "replace")
                if _OVERTAKEN.search(complaint):
                    return False
                raise self._say_unavailable(complaint)
            self._git("update-ref", REF, commit)
            self._tip = commit
        finally:
            self._run("update-ref", "-d", name)
        if not keeps_history:
            self._drop_history()
        return True

    def _build_import(self, name: str, files: Mapping[str, bytes], *, keeps_history: bool) -> bytes:
        """Return what git fast-import reads: a commit with files beside those that are there."""
        # Two machines that commit the same must not both take the one commit for theirs.
        message = f"tapes\n\n{os.urandom(16).hex()}\n".encode()
        pieces = [
            f"commit {name}\ncommitter tape <tape@localhost> {int(time.time())} +0000\n".encode(),
            b"data %d\n%s" % (len(message), message),
        ]
        if self._tip and keeps_history:
            pieces.append(f"from {self._tip}\n".encode())
        elif self._tip:
            tree = self._git("rev-parse", f"{self._tip}^{{tree}}").decode().strip()
            pieces.append(f'M 040000 {tree} ""\n'.encode())
        for key, data in sorted(files.items()):
            pieces.append(b"M 100644 inline %s\ndata %d\n%s\n" % (key.encode(), len(data), data))
        return b"".join([*pieces, b"done\n"])

    def _read_sizes(self, keys: Sequence[str]) -> dict[str, int | None]:
        """Return the size of each file of the commit, None for those that are not there."""
        if not self._tip:
            return dict.fromkeys(keys)
        text = "".join(f"{self._tip}:{key}\n" for key in keys).encode()
        lines = self._git("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=text)
        sizes = [
            int(line.split()[1]) if line.startswith(b"blob ") else None
            for line in lines.split(b"\n")[:-1]
        ]
        return dict(zip(keys, sizes, strict=True))

    def _read_file(self, key: str) -> bytes | None:
        """Return the bytes of a file of the commit, by a process that reads many."""
        if not self._tip:
            return None
        if self._reader is None:
            self._reader = subprocess.Popen(
                _build_command("cat-file", "--batch"),
                cwd=self._folder,
                env=_build_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        asks, answers = self._reader.stdin, self._reader.stdout
        assert asks is not None
        assert answers is not None
        asks.write(f"{self._tip}:{key}\n".encode())
        asks.flush()
        head = answers.readline().split()
        if len(head) != 3:  # noqa: PLR2004 (id, type, size; else "missing")
            if not head:
                self._end_reader()
                raise RemoteUnavailable(f"{self._folder}: git cat-file ended")
            return None
        data = answers.read(int(head[2]) + 1)[:-1]
        return data if head[1] == b"blob" else None

    def _git(self, *words: str, stdin: bytes = b"") -> bytes:
        """Return what a git command prints; raise RemoteUnavailable where it fails."""
        done = self._run(*words, stdin=stdin)
        if done.returncode:
            raise self._say_unavailable(done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def _run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                _build_command(*words),
                cwd=self._folder,
                env=_build_environment(),
                input=stdin,
                capture_output=True,
                check=False,
                timeout=_MAX_SECONDS,
            )
        except FileNotFoundError as error:
            raise UsageError(f"{self.url}: git is not installed") from error
        except subprocess.TimeoutExpired as error:
            why = f"git {words[0]} took {_MAX_SECONDS} s"
            raise RemoteUnavailable(f"{self.url}: {why}") from error

    def _say_unavailable(self, complaint: str) -> RemoteUnavailable:
        faults = _FAULT.findall(complaint)
        return RemoteUnavailable(f"{self.url}: {(faults or [complaint.strip()])[0]}")


def _take_cache(cache: Path) -> tuple[Path, Lock]:
    """Return `cache`, or the first of `cache.2`, `cache.3`… that no other process uses.

    A replacement deletes what another process may be reading, so none shares a repository.
    """
    cache.parent.mkdir(parents=True, exist_ok=True)
    with Folder.open(cache.parent) as folder:
        for number in count(1):
            path = cache if number == 1 else cache.with_name(f"{cache.name}.{number}")
            with suppress(Busy):
                return path, Lock.take_in(folder, path.name)
    raise AssertionError


def _build_command(*words: str) -> list[str]:
    return ["git", "--git-dir", ".", "--no-pager", *_OPTIONS, *words]


def _build_environment() -> dict[str, str]:
    """Return the environment of git: nothing of another repository, English, and no question."""
    env = {name: value for name, value in os.environ.items() if name not in _OTHERS}
    return {**env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


_OTHERS = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}
    | {"GIT_NAMESPACE", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"}
)


def _parse_url(url: str) -> str:
    """Return the address that git is given; raise UsageError."""
    address = url.removeprefix("git+")
    if not _PLACE.match(address):
        raise UsageError(f"{url}: a repository is git+ssh://, git+https:// or git+file:///")
    if re.match(r"\w+://[^/@]*:[^/@]*@", address):
        raise UsageError(
            "an address is kept in a file: let git ask its credential helper for the password"
        )
    return address


def _check_key(key: str) -> str:
    if not _KEY.match(key):
        raise UsageError(f"{key!r} is no key of a remote")
    return key
