"""The work of a task in git: a worktree of its own, its commit, and its merge.

made       at the commit that is checked out when the task begins, on a branch gong/…
restored   to its last commit, where a program ended in the middle; what was there is kept as a
           commit under refs/gong/kept/
committed  whatever the executor or a fixer left in it, all on its branch
updated    what is checked out in the repository is merged into it; conflicts are resolved there
merged     into what is checked out, by a commit of its own; worktree and branch are removed

The folder that the user works in is touched by the last step alone, and only where it merges
without a conflict. Each step may be done again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..git_programs import build_git_variables
from ..subagents.worktree import add_worktree, run_git

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..subagents.worktree import Worktree

_SOMEBODY = ("-c", "user.name=gong", "-c", "user.email=gong@localhost")
_KEPT = "refs/gong/kept/"
"""Where work of programs that ended in the middle stays."""
_MAX_CHANGES = 60_000
"""Characters of a diff that a reviewer is given."""


class MergeFailed(ConfigurationError):
    """Work could not be merged; it stays on its branch. The text says why."""


class TaskRepository:
    """The repository that a workflow's folder is in."""

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        self.folder, self._environ = folder, environ
        self._variables = build_git_variables(environ, folder)

    async def run(self, folder: str, *words: str) -> str:
        """Return what git prints in a folder; raises ConfigurationError where it fails."""
        return await run_git(self._variables, folder, *words)

    async def is_usable(self) -> bool:
        """Return whether there is a repository with a commit."""
        try:
            await self.run(self.folder, "rev-parse", "--verify", "HEAD")
        except ConfigurationError:
            return False
        return True

    async def add(self, name: str) -> Worktree:
        """Return a new worktree; one that an earlier program left under this name is removed."""
        try:
            return await add_worktree(self.folder, self._environ, name)
        except ConfigurationError:
            listed = await self.run(self.folder, "worktree", "list", "--porcelain")
            for line in listed.splitlines():
                mark, _, place = line.partition(" ")
                if mark != "worktree" or not place.endswith(f"/{name}"):
                    continue
                await self.run(self.folder, "worktree", "remove", "--force", place)
            await self.run(self.folder, "worktree", "prune")
            await self._delete_branch(f"gong/{name}")
            return await add_worktree(self.folder, self._environ, name)

    async def _delete_branch(self, branch: str) -> None:
        if await self.run(self.folder, "branch", "--list", branch):
            await self.run(self.folder, "branch", "-D", branch)

    async def commit(self, worktree: str, message: str) -> None:
        """Commit all that is changed in a worktree; nothing where nothing is."""
        await self.run(worktree, "add", "--all")
        if await self.run(worktree, "status", "--porcelain"):
            who = await self._find_author(worktree)
            await self.run(worktree, *who, "commit", "--quiet", "--no-verify", "-m", message)

    async def restore(self, worktree: str, name: str) -> None:
        """Return a worktree to its last commit; keep what is not committed as refs/gong/kept/NAME.

        `name` may be used again: a number is added.
        """
        await self.run(worktree, "add", "--all")
        if not await self.run(worktree, "status", "--porcelain"):
            return
        who = await self._find_author(worktree)
        commit = await self.run(worktree, *who, "stash", "create", f"interrupted: {name}")
        there = await self.run(self.folder, "for-each-ref", "--format=%(refname)", _KEPT)
        refs = (f"{_KEPT}{name}-{number}" for number in range(1, 1 << 30))
        ref = next(ref for ref in refs if ref not in there.split())
        await self.run(self.folder, "update-ref", ref, commit)
        await self.run(worktree, "reset", "--quiet", "--hard")

    async def _find_author(self, folder: str) -> tuple[str, ...]:
        """Return options that name an author, where the user has named none."""
        try:
            await self.run(folder, "var", "GIT_AUTHOR_IDENT")
            named = await self.run(folder, "config", "user.email")
        except ConfigurationError:
            return _SOMEBODY
        return () if named else _SOMEBODY

    async def read_changes(self, worktree: str, base: str) -> str:
        """Return what was changed in a worktree since a commit, as a diff, cut where it is long."""
        text = await self.run(worktree, "diff", "--no-ext-diff", "--no-textconv", base, "HEAD")
        if len(text) <= _MAX_CHANGES:
            return text
        names = await self.run(worktree, "diff", "--stat", base, "HEAD")
        return f"{names}\n\n{text[:_MAX_CHANGES]}\n… cut: read the files for the rest"

    async def update(self, worktree: str) -> list[str]:
        """Merge what is checked out into a worktree, where the two would conflict.

        Returns the files with conflicts.
        """
        if not await self.list_conflicts(worktree) and await self._fits(worktree):
            return []
        head = await self.run(self.folder, "rev-parse", "HEAD")
        conflicts = await self.list_conflicts(worktree)
        if conflicts:
            return conflicts
        who = await self._find_author(worktree)
        try:
            await self.run(worktree, *who, "merge", "--quiet", "--no-edit", head)
        except ConfigurationError:
            conflicts = await self.list_conflicts(worktree)
            if not conflicts:
                raise
            return conflicts
        return []

    async def _fits(self, worktree: str) -> bool:
        """Return whether a worktree's commits merge without a conflict; nothing is touched."""
        theirs = await self.run(worktree, "rev-parse", "HEAD")
        try:
            await self.run(self.folder, "merge-tree", "--write-tree", "HEAD", theirs)
        except ConfigurationError:
            return False  # so say those without this command, too
        return True

    async def list_conflicts(self, worktree: str) -> list[str]:
        """Return the files that a merge has left with conflicts."""
        listing = await self.run(worktree, "diff", "--name-only", "--diff-filter=U", "-z")
        return [path for path in listing.split("\0") if path]

    async def finish_resolution(self, worktree: str, files: list[str]) -> list[str]:
        """Commit a merge whose conflicts were resolved; return the files that still have some."""
        left = [file for file in files if _has_markers(Path(worktree, file))]
        if left:
            return left
        await self.run(worktree, "add", "--all")
        who = await self._find_author(worktree)
        await self.run(worktree, *who, "commit", "--quiet", "--no-verify", "--no-edit")
        return []

    async def merge(self, branch: str, message: str) -> None:
        """Merge a branch into what is checked out, unless it is in it already.

        Raises MergeFailed; the folder is then as it was.
        """
        if await self.is_merged(branch):
            return
        who = await self._find_author(self.folder)
        try:
            await self.run(
                self.folder, *who, "merge", "--quiet", "--no-ff", "--no-edit", "-m", message, branch
            )
        except ConfigurationError as error:
            if await self._is_merging():
                await self.run(self.folder, "merge", "--abort")
            raise MergeFailed(f"its work stays on branch {branch}: {error}") from error

    async def is_merged(self, branch: str) -> bool:
        """Return whether all of a branch is in what is checked out."""
        try:
            await self.run(self.folder, "merge-base", "--is-ancestor", branch, "HEAD")
        except ConfigurationError:
            return False
        return True

    async def _is_merging(self) -> bool:
        try:
            await self.run(self.folder, "rev-parse", "--verify", "--quiet", "MERGE_HEAD")
        except ConfigurationError:
            return False
        return True

    async def stop_merging(self, branches: set[str]) -> None:
        """Abort a merge of one of these branches that a program left half done."""
        if not await self._is_merging():
            return
        merged = await self.run(self.folder, "rev-parse", "MERGE_HEAD")
        for branch in branches:
            try:
                head = await self.run(self.folder, "rev-parse", branch)
            except ConfigurationError:
                continue
            if head == merged:
                await self.run(self.folder, "merge", "--abort")
                return

    async def remove(self, worktree: str, branch: str) -> None:
        """Remove a worktree and its branch; safe to do twice."""
        if await asyncio.to_thread(Path(worktree).exists):
            await self.run(self.folder, "worktree", "remove", "--force", worktree)
        await self.run(self.folder, "worktree", "prune")
        await self._delete_branch(branch)


def _has_markers(file: Path) -> bool:
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return False  # removed, which resolves it
    return any(line.startswith((b"<<<<<<< ", b">>>>>>> ")) for line in lines)
