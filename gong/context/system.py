"""The system prompt: the agent's role, its rules, and its working environment.

It must not change between the turns of a session, or the provider's prompt cache is lost: it
contains the date but not the time, and the names of the tools, which change only on request.

It names the git repository that the session starts in, as reported by `git`. If git fails (it is
not installed, refuses a folder of another user, or takes too long), the repository's files still
show that there is one, and which branch is checked out.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Git

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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
    except (ConfigurationError, OSError):  # such as: there is no shell, which may not be needed
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
        git = place / ".git"
        is_folder = await env.file_exists(str(git / "objects"))
        if is_folder or (await _read_git_line(env, git)).startswith(_GITDIR_PREFIX):
            return await _read_git_head(env, git)
        if all([await env.file_exists(str(place / name)) for name in _BARE_ENTRIES]):
            found = await _read_git_head(env, place)
            return found._replace(dirty=False)  # nothing is checked out, so there are no changes
    return None


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


_WHO = """\
You are gong, a coding agent in a terminal. You work in the user's folder with the tools you are \
given; everything you do is recorded."""
_WHO_WITHOUT_TOOLS = """\
You are gong, a coding agent in a terminal. You have no tools in this session: you cannot look at \
the user's folder or change it. Say so when you would need that; everything you say is recorded."""
_CHANGING = (
    "Look before you change: read a file before you change it, and make the smallest change that"
    " does what was asked."
)
_FAILING = "When a tool reports an error, read it, adapt, and say so if you cannot continue."
_CHECKING = "Check your work by running it where that is possible."
_ANSWERING = (
    "Answer briefly, in the user's language. Say what you did and what you found, not what you are"
    " about to do."
)
_COMMIT_DIGITS = 12

_EDITORS = ("edit", "edit_file", "replace", "apply_patch")
_WRITERS = ("write", "write_file")
_SHELLS = ("bash", "shell")
_USES = (
    (_EDITORS, "to change a part of a file"),
    (_WRITERS, "for new files or whole rewrites"),
    (_SHELLS, "to run commands"),
)
"""Names of tools with the same purpose, and that purpose."""


class Surroundings(NamedTuple):
    """A session's working environment, for the system prompt."""

    folder: str
    platform: str
    os_version: str
    date: str
    """YYYY-MM-DD"""
    repository: GitRepository | None = None


def build_system_prompt(where: Surroundings, model: str, tools: Collection[str]) -> str:
    """Return the whole system prompt of a session that has tools of these names."""
    repository = where.repository
    branch = _describe_checkout(repository) if repository else None
    facts = {
        "Working directory": where.folder,
        "Is git repository": "yes" if repository else "no",
        **({"Git branch": branch} if branch else {}),
        "Platform": where.platform,
        "OS version": where.os_version,
        "Today's date": where.date,
        "Model": model,
    }
    who = _WHO if tools else _WHO_WITHOUT_TOOLS
    rules = "\n".join(f"- {rule}" for rule in _list_rules(tools))
    lines = "\n".join(f"{name}: {fact}" for name, fact in facts.items())
    return f"{who}\n\n{rules}\n\n<environment>\n{lines}\n</environment>"


def _list_rules(tools: Collection[str]) -> Iterator[str]:
    if any(name in tools for name in (*_EDITORS, *_WRITERS)):
        yield _CHANGING
    uses = [
        f"{' or '.join(f'`{name}`' for name in there)} {purpose}"
        for names, purpose in _USES
        if (there := [name for name in names if name in tools])
    ]
    if uses:
        yield f"Use {', '.join(uses)}."
    if tools:
        yield _FAILING
    if any(name in tools for name in _SHELLS):
        yield _CHECKING
    yield _ANSWERING


def _describe_checkout(repository: GitRepository) -> str | None:
    branch, commit = repository.branch, repository.commit
    if branch is not None:
        is_new = commit is None and repository.dirty is not None
        return f"{branch} (no commit yet)" if is_new else branch
    return None if commit is None else f"none (detached HEAD at {commit[:_COMMIT_DIGITS]})"
