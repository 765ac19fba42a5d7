"""Which programs the settings of a git repository name for git to run while it only reads.

A clone brings no `.git/config`, but an archive with a `.git` in it does, and so does a repository
among the files of another one. Files are read, and git is asked for its settings, which runs none
of them:

    setting                                       run by
    --------------------------------------------  ------------------------------------------
    filter.NAME.clean, smudge, process            status, diff, ls-files -m, checkout
    diff.external, diff.NAME.command, textconv    diff, log -p, show, blame
    gpg.program, gpg.NAME.program                 log and show, with log.showSignature; commit
    merge.NAME.driver                             merge
    core.sshCommand, gitProxy, askPass,           fetch, ls-remote
    credential.helper, remote.NAME.uploadpack
    the hook post-index-change                    whatever refreshes the index, as status does

Settings of the user and of the system count as the user's own. So do the filters of git-lfs.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tape.folders import locate_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HOOK = "post-index-change"
_SUSPECT = re.compile(
    rb"filter|textconv|external|command|driver|program|proxy|askpass|helper|uploadpack|vcs|include"
    rb"|hookspath",
    re.IGNORECASE,
)
"""What a file of settings holds that names a program, or another file of settings."""
_PROGRAM_KEY = re.compile(
    r"filter\..*\.(?:clean|smudge|process)|diff\.external|diff\..*\.(?:command|textconv)"
    r"|merge\..*\.driver|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand"
    r"|core\.(?:sshcommand|gitproxy|askpass|alternaterefscommand)"
    r"|credential\.(?:.*\.)?helper|remote\..*\.(?:uploadpack|vcs)",
    re.IGNORECASE | re.DOTALL,
)
_OWN_SCOPES = {"local", "worktree"}
_LFS = {
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
}
"""What `git lfs install --local` writes."""
GIT = (
    *("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "safe.bareRepository=explicit", "-c", "log.showSignature=false"),
)
"""Git as we call it: it runs no hook, no monitor and no checker of signatures."""


class GitProgram(NamedTuple):
    """A setting of a repository that names a program, or a hook's file with its path."""

    key: str
    value: str


def may_name_programs(folder: str) -> bool:
    """Return whether the repository of a folder may name programs; quick, and never wrongly no."""
    place = locate_git_folder(folder)
    if place is None:
        return False
    for name in ("config", "config.worktree", "commondir"):
        data = _read_bytes(f"{place}/{name}")
        if name == "commondir" and data:
            common = os.path.normpath(os.path.join(place, os.fsdecode(data.strip())))  # noqa: PTH118
            data = _read_bytes(f"{common}/config")
            if _find_hook(common) is not None:
                return True
        if _SUSPECT.search(data):
            return True
    return _find_hook(place) is not None


def list_git_programs(
    folder: str, ask: Callable[[Sequence[str]], bytes | None]
) -> tuple[GitProgram, ...]:
    """Return the programs that the settings of a folder's own repository name, in their order.

    `ask` returns what a command prints in that folder, None where it fails: then git refuses the
    repository, and runs none of its programs either.
    """
    if not may_name_programs(folder):
        return ()
    listing = (*GIT, "config", "--show-scope", "--includes", "-z", "--list")
    words = os.fsdecode(ask(listing) or b"").split("\0")
    found, hooks = [], None
    for scope, setting in zip(words[::2], words[1::2], strict=False):
        key, _, value = setting.partition("\n")
        if scope not in _OWN_SCOPES:
            continue
        if key.lower() == "core.hookspath":
            hooks = value
        elif _PROGRAM_KEY.fullmatch(key) and value and (key, value) not in _LFS:
            found.append(GitProgram(key, value))
    common = os.fsdecode(ask((*GIT, "rev-parse", "--git-common-dir")) or b"").rstrip("\n")
    place = os.path.join(folder, common)  # noqa: PTH118 (as git says it)
    if hooks is not None:
        top = locate_repository(folder) or folder
        hook = os.path.join(top, os.path.expanduser(hooks), _HOOK)  # noqa: PTH111, PTH118
    else:
        hook = f"{place}/hooks/{_HOOK}"
    return (*found, *([GitProgram(_HOOK, hook)] if os.access(hook, os.X_OK) else ()))


def list_staged_files(
    top: str, files: Sequence[str], ask: Callable[[Sequence[str]], bytes | None]
) -> frozenset[str] | None:
    """Return which files of a repository are staged, by absolute path; None where git fails.

    `ask` is as `list_git_programs` takes it. The index is compared with the last commit, for which
    git reads no file and runs no filter.
    """
    specs = (f":(literal){one[len(top) + 1 :]}" for one in files)
    told = ask((*GIT, "diff-index", "--cached", "--name-only", "-z", "HEAD", "--", *specs))
    if told is None:
        return None
    return frozenset(f"{top}/{os.fsdecode(one)}" for one in told.split(b"\0") if one)


def build_overrides(programs: tuple[GitProgram, ...]) -> tuple[str, ...] | None:
    """Return options of git with which these do not run; None where that cannot be said.

    Programs that show differences are left out by `--no-ext-diff --no-textconv`, and hooks by
    `GIT`.
    """
    values: dict[str, str] = {}
    for key, _ in programs:
        driver, _, name = key.rpartition(".")
        if "=" in key:  # an option ends the name there
            return None
        if key.startswith("filter."):
            values |= {key: "", f"{driver}.required": "false"}
        elif name == "driver":
            values[key] = "false"  # a program that fails, so what it would merge is a conflict
        elif key.startswith("gpg."):
            values["commit.gpgSign"] = "false"
    return tuple(word for key, value in values.items() for word in ("-c", f"{key}={value}"))


def locate_git_folder(folder: str) -> str | None:
    """Return the folder of git's files for a folder; None where it is in no repository."""
    top = locate_repository(folder)
    if top is None:
        return None
    place = f"{top}/.git"
    data = _read_bytes(place)
    if data.startswith(b"gitdir:"):
        named = os.fsdecode(data.removeprefix(b"gitdir:").strip())
        place = os.path.normpath(os.path.join(top, named))  # noqa: PTH118 (as git says it)
    return place


def _find_hook(place: str) -> str | None:
    hook = f"{place}/hooks/{_HOOK}"
    return hook if os.access(hook, os.X_OK) else None


def _read_bytes(path: str) -> bytes:
    """Return the bytes of a file; none where there is none to read."""
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 (at every start)
        return file.read()
    return b""
