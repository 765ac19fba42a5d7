"""The git repository that a session starts in, as reported by `git`.

If git fails (it is not installed, refuses a folder of another user, or takes too long), the
repository's files still show that there is one, and which branch is checked out.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from tape.entries import Git

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment

_STATUS_COMMAND = (
    # fsmonitor would run a program that an untrusted repository names
    "git --no-optional-locks -c core.fsmonitor=false"
    " status --porcelain=v2 --branch --untracked-files=normal 2>/dev/null"
)
_STATUS_TIMEOUT_MS = 2_000
_STATUS_BYTES = 65_536
"""Bytes of git's output that contain the branch and show whether there are changes."""
_GITDIR_PREFIX = "gitdir: "
_BRANCH_PREFIX = "ref: refs/heads/"
_COMMIT_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BARE_ENTRIES = ("HEAD", "objects", "refs")


class GitRepository(NamedTuple):
    """The state of a git repository."""

    branch: str | None
    """The branch that is checked out; None if none is, or if unknown."""
    commit: str | None
    """The commit that is checked out, in hex; None if there is none yet, or if unknown."""
    dirty: bool | None
    """Whether there are changes since that commit; None if unknown."""

    @property
    def recorded(self) -> Git | None:
        """The state as it is recorded; None if too little is known."""
        return None if self.dirty is None else Git(self.branch, self.commit, self.dirty)


async def find_repository(env: ExecutionEnvironment) -> GitRepository | None:
    """Return the repository that contains the environment's folder; None if there is none."""
    head = bytearray()

    def listen(chunk: bytes) -> None:
        head.extend(chunk[: _STATUS_BYTES - len(head)])

    try:
        result = await env.exec_command(
            _STATUS_COMMAND, timeout_ms=_STATUS_TIMEOUT_MS, on_output=listen
        )
    except (
        ConfigurationError,
        OSError,
    ):  # for example there is no shell, which the session may not need
        return await _read_repository_files(env)
    if result.exit_code != 0 or result.timed_out:
        return await _read_repository_files(env)
    return parse_git_status(head.decode("utf-8", "replace"))


def parse_git_status(text: str) -> GitRepository:
    """Return the state from the output of `git status --porcelain=v2 --branch`."""
    lines = text.split("\n")
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    branch, commit = facts.get("branch.head"), facts.get("branch.oid")
    return GitRepository(
        branch=None if branch == "(detached)" else branch,
        commit=None if commit == "(initial)" else commit,
        dirty=any(line and not line.startswith("#") for line in lines),
    )


async def _read_repository_files(env: ExecutionEnvironment) -> GitRepository | None:
    folder = PurePosixPath(env.working_directory)
    for place in (folder, *folder.parents):
        if await _is_repository(env, place / ".git"):
            return await _read_git_head(env, place / ".git")
        if all([await env.file_exists(str(place / name)) for name in _BARE_ENTRIES]):
            found = await _read_git_head(env, place)
            return found._replace(dirty=False)  # nothing is checked out, so there are no changes
    return None


async def _is_repository(env: ExecutionEnvironment, place: PurePosixPath) -> bool:
    if await env.file_exists(str(place / "objects")):
        return True
    return (await _read_git_line(env, place)).startswith(_GITDIR_PREFIX)


async def _read_git_head(env: ExecutionEnvironment, place: PurePosixPath) -> GitRepository:
    """Return the content of HEAD; a `.git` file names the folder that contains it."""
    link = await _read_git_line(env, place)
    if link.startswith(_GITDIR_PREFIX):
        place = place.parent / link.removeprefix(_GITDIR_PREFIX)
    head = await _read_git_line(env, place / "HEAD")
    if head.startswith(_BRANCH_PREFIX):
        branch = head.removeprefix(_BRANCH_PREFIX)
        commit = await _read_git_line(env, place / "refs/heads" / branch)
        return GitRepository(branch, commit if _COMMIT_HASH.fullmatch(commit) else None, None)
    return GitRepository(None, head if _COMMIT_HASH.fullmatch(head) else None, None)


async def _read_git_line(env: ExecutionEnvironment, path: PurePosixPath) -> str:
    try:
        return (await env.read_file(str(path))).decode("utf-8", "replace").strip()
    except OSError:
        return ""
