"""The git repository a session begins in, as `git` itself tells it.

Where git cannot tell (it is not installed, refuses somebody else's folder, or takes too long), the
repository's own files at least say that there is one, and which branch is checked out.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from tape.entries import Git

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment

_COMMAND = (
    # fsmonitor would run whatever program a strange repository names
    "git --no-optional-locks -c core.fsmonitor=false"
    " status --porcelain=v2 --branch --untracked-files=normal 2>/dev/null"
)
_TIMEOUT_MS = 2_000
_HEAD_BYTES = 65_536
"""So much of the answer holds the branch, and shows whether there are changes."""
_GITDIR = "gitdir: "
_BRANCH = "ref: refs/heads/"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BARE = ("HEAD", "objects", "refs")


class Repository(NamedTuple):
    """What is known of a git repository."""

    branch: str | None
    """The branch that is checked out; None when none is, or nobody can tell."""
    commit: str | None
    """The commit that is checked out, in hex; None when there is none yet, or nobody can tell."""
    dirty: bool | None
    """Whether something was changed since that commit; None when nobody can tell."""

    @property
    def recorded(self) -> Git | None:
        """The same as it is recorded; None when too little is known."""
        return None if self.dirty is None else Git(self.branch, self.commit, self.dirty)


async def find_repository(env: ExecutionEnvironment) -> Repository | None:
    """Return the repository that the environment's folder belongs to; None where there is none."""
    head = bytearray()

    def listen(chunk: bytes) -> None:
        head.extend(chunk[: _HEAD_BYTES - len(head)])

    try:
        result = await env.exec_command(_COMMAND, timeout_ms=_TIMEOUT_MS, on_output=listen)
    except (ConfigurationError, OSError):  # there is no shell, say: the session may not need one
        return await _read_repository(env)
    if result.exit_code != 0 or result.timed_out:
        return await _read_repository(env)
    return parse_status(head.decode("utf-8", "replace"))


def parse_status(text: str) -> Repository:
    """Return what `git status --porcelain=v2 --branch` says."""
    lines = text.split("\n")
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    branch, commit = facts.get("branch.head"), facts.get("branch.oid")
    return Repository(
        branch=None if branch == "(detached)" else branch,
        commit=None if commit == "(initial)" else commit,
        dirty=any(line and not line.startswith("#") for line in lines),
    )


async def _read_repository(env: ExecutionEnvironment) -> Repository | None:
    folder = PurePosixPath(env.working_directory)
    for place in (folder, *folder.parents):
        if await _is_repository(env, place / ".git"):
            return await _read_head(env, place / ".git")
        if all([await env.file_exists(str(place / name)) for name in _BARE]):
            found = await _read_head(env, place)
            return found._replace(dirty=False)  # nothing is checked out that could be changed
    return None


async def _is_repository(env: ExecutionEnvironment, place: PurePosixPath) -> bool:
    if await env.file_exists(str(place / "objects")):
        return True
    return (await _read_line(env, place)).startswith(_GITDIR)


async def _read_head(env: ExecutionEnvironment, place: PurePosixPath) -> Repository:
    """Return what the HEAD of a repository says; a file in its place tells where that is."""
    link = await _read_line(env, place)
    if link.startswith(_GITDIR):
        place = place.parent / link.removeprefix(_GITDIR)
    head = await _read_line(env, place / "HEAD")
    if head.startswith(_BRANCH):
        branch = head.removeprefix(_BRANCH)
        commit = await _read_line(env, place / "refs/heads" / branch)
        return Repository(branch, commit if _COMMIT.fullmatch(commit) else None, None)
    return Repository(None, head if _COMMIT.fullmatch(head) else None, None)


async def _read_line(env: ExecutionEnvironment, path: PurePosixPath) -> str:
    try:
        return (await env.read_file(str(path))).decode("utf-8", "replace").strip()
    except OSError:
        return ""
