"""A git worktree for one sub-agent: the files of the commit that is checked out, in a new folder.

    made        on a branch of its own, at the commit of the repository that it was started in
    at the end  nothing changed and nothing committed: worktree and branch are removed
                anything else: both are kept, and the result says where they are
    lost        a worktree whose program ended is kept as it is

git runs no program that the repository names as a hook or file monitor.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tape.folders import locate_repository

from ..errors import ConfigurationError
from ..git_programs import GIT, build_git_variables, build_overrides
from ..private_files import locate_state_folder
from ..trust import list_untrusted_git_programs

if TYPE_CHECKING:
    from collections.abc import Mapping


class Worktree(NamedTuple):
    """A worktree and where it came from."""

    repository: str
    """The root of the repository it was made in."""
    folder: str
    branch: str
    commit: str
    """The commit that it began at."""
    variables: Mapping[str, str]
    """The environment variables of git."""

    async def remove_unchanged(self) -> str:
        """Remove it if nothing was done in it; return where it is, in words, or nothing."""
        status = await self._run(self.folder, "status", "--porcelain", "--untracked-files=all")
        head = await self._run(self.folder, "rev-parse", "HEAD")
        if status or head != self.commit:
            return f"Its work is in the git worktree {self.folder}, on branch {self.branch}."
        await self.remove()
        return ""

    async def remove(self, *, keep_branch: bool = False) -> None:
        """Remove the folder, with what is not committed in it, and the branch.

        Raises ConfigurationError where git cannot.
        """
        await self._run(self.repository, "worktree", "remove", "--force", self.folder)
        if not keep_branch:
            await self._run(self.repository, "branch", "-D", self.branch)

    async def _run(self, folder: str, *words: str) -> str:
        return await run_git(self.variables, folder, *words)


async def add_worktree(folder: str, environ: Mapping[str, str], name: str) -> Worktree:
    """Return a new worktree of the repository that a folder is in, on a branch gong/NAME.

    Raises ConfigurationError where there is no repository, or no commit.
    """
    root = locate_repository(folder)
    if root is None:
        raise ConfigurationError(f"{folder} is in no git repository: there can be no worktree")
    variables = build_git_variables(environ, root)
    commit = await run_git(variables, root, "rev-parse", "--verify", "HEAD")
    known = hashlib.sha256(root.encode()).hexdigest()[:8]
    place = locate_state_folder(environ) / "worktrees" / f"{Path(root).name}-{known}" / name
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    branch = f"gong/{name}"
    words = ("worktree", "add", "--quiet", "-b", branch, str(place), commit)
    await run_git(variables, root, *words)
    return Worktree(root, str(place), branch, commit, variables)


async def run_git(variables: Mapping[str, str], folder: str, *words: str) -> str:
    """Return what git prints, without blanks around it; raises as `read_git`."""
    return (await read_git(variables, folder, *words)).strip()


async def read_git(variables: Mapping[str, str], folder: str, *words: str) -> str:
    """Return what git prints; raises ConfigurationError with what it says where it fails.

    Programs that the repository's own settings name do not run, unless the user trusts them.
    """
    options = build_overrides(list_untrusted_git_programs(folder, variables))
    if options is None:
        raise ConfigurationError(f"{folder}: the names of its filters hold a =; git is not run")
    try:
        process = await asyncio.create_subprocess_exec(
            *GIT,
            *options,
            *words,
            cwd=folder,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise ConfigurationError(f"git cannot be run: {error.strerror}") from error
    output, complaint = await process.communicate()
    if process.returncode:
        text = " ".join(complaint.decode("utf-8", "replace").split())
        raise ConfigurationError(f"git {words[0]} failed: {text}")
    return output.decode("utf-8", "surrogateescape")
