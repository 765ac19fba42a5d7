"""Which programs the settings of a git repository name for git to run while it only reads.

A clone brings no `.git/config`, but an archive with a `.git` in it does, and so does a repository
among the files of another one. Files are read, and git is asked for its settings, which runs none
of them:

    setting                                       run by
    --------------------------------------------  ------------------------------------------
    filter.NAME.clean, smudge, process            status, diff, ls-files -m, checkout
    core.fsmonitor                                status, diff, ls-files -m
    diff.external, diff.NAME.command, textconv    diff, log -p, show, blame
    gpg.program, gpg.NAME.program                 log and show, with log.showSignature; commit
    merge.NAME.driver                             merge, merge-tree
    core.sshCommand, gitProxy, askPass,           fetch, ls-remote; in a partial clone whatever
    credential.helper, remote.NAME.uploadpack,    needs an object that is not there
    core.alternateRefsCommand, protocol.ext
    man.NAME.cmd, browser.NAME.cmd                help
    alias.NAME, core.pager, core.editor           the alias, a terminal, commit
    hooks post-index-change, reference-           status and diff; fetch
    transaction, pre-auto-gc

So do those of the repositories inside of it, which git enters by itself. A repository that takes
its history or its files from elsewhere (a `.git` that leads there, core.worktree) is named as well:
what git shows is then not of this folder. Settings of the user and of the system count as the
user's own. So do the filters of git-lfs.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from .git_folders import list_inner_folders, locate_git_folder, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .git_folders import GitFolder

    Ask = Callable[[Sequence[str]], bytes | None]
    """Returns what a command prints in a folder, None where it fails."""

_HOOKS = ("post-index-change", "reference-transaction", "pre-auto-gc")
_SUSPECT = (
    rb"(?i)filter|textconv|external|command|driver|program|proxy|askpass|helper|uploadpack|vcs|include"
    rb"|hook|fsmonitor|protocol|worktree|pager|editor|alias|trailer|\blfs|\bman\b|browser|update\s*="
    rb"|\.cmd|cmd\s*="
)
"""What a file of settings holds that names a program, or another file of settings."""
_OWN_TREE = rb"(?im)^\s*worktree = .*$"
_PROGRAM_KEY = (
    r"(?is)filter\..*\.(?:clean|smudge|process)|diff\.external|diff\..*\.(?:command|textconv)"
    r"|merge\..*\.driver|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand"
    r"|core\.(?:sshcommand|gitproxy|askpass|alternaterefscommand|fsmonitor|pager|editor|worktree)"
    r"|pager\..*|sequence\.editor|interactive\.difffilter|alias\..*|trailer\..*\.(?:cmd|command)"
    r"|credential\.(?:.*\.)?helper|remote\..*\.(?:uploadpack|vcs)|protocol\.(?:ext\.)?allow"
    r"|man\..*\.(?:cmd|path)|browser\..*\.(?:cmd|path)|gc\.recentobjectshook"
    r"|submodule\..*\.update|lfs\.(?:extension|customtransfer)\..*\.(?:clean|smudge|path)"
)
_HARMLESS = {
    "core.fsmonitor": r"true|false|yes|no|on|off|[01]",
    "pager": r"true|false|yes|no|on|off|[01]",
    "alias": r"[^!-].*",
    "submodule": r"[^!].*",
    "protocol": r"never",
    "driver": r"true|false",
    "credential": r"cache(?: --timeout[= ]\d+)?|store|osxkeychain|manager(?:-core)?|libsecret"
    r"|wincred|!(?:/usr/bin/)?gh auth git-credential",
    "uploadpack": r"git-upload-pack",
}
"""By the beginning or the end of a key: values that name no program, or one of git's own."""
_SHOWING = (
    r"(?:cat|less|more|most|delta|bat|diff-so-fancy|vi|vim|nvim|nano|emacs|code|subl|micro|hx|true)"
    r"(?: -[-\w=]+)*"
)
"""Pagers and editors that people use."""
_OWN_SCOPES = {"local", "worktree"}
_LFS = {
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
}
"""What `git lfs install --local` writes."""
_TRANSPORTS = ("core.", "credential.", "remote.", "protocol.")
ELSEWHERE = {"core.worktree", "gitdir"}
"""Keys of repositories whose files or history are not of this folder."""
GIT = (
    "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "safe.bareRepository=explicit", "-c", "log.showSignature=false",
)  # fmt: skip
"""Git as we call it: it runs no hook, no monitor and no checker of signatures."""


def build_git_variables(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the environment variables of git as we call it in a folder.

    None of them names another repository, and no program is found in the repository itself: what
    works there could have put one of git's name on the search path, as into an active `.venv/bin`.
    """
    variables = {name: text for name, text in environ.items() if not name.startswith("GIT_")}
    repository = locate_git_folder(folder)
    top = folder if repository is None else repository.top
    places = variables.get("PATH", "").split(os.pathsep)
    if len(places) > 1:
        outside = (
            place for place in places if not f"{os.path.realpath(place)}/".startswith(f"{top}/")
        )
        variables["PATH"] = os.pathsep.join(outside)
    return variables


class GitProgram(NamedTuple):
    """A setting of a repository that names a program, or a hook's file with its path."""

    key: str
    value: str


def may_name_programs(folder: str) -> bool:
    """Return whether the repository of a folder may name programs; quick, and never wrongly no."""
    repository = locate_git_folder(folder)
    if repository is None:
        return False
    if repository.stranger is not None:
        return True
    every = (repository, *list_inner_folders(repository))
    return any(_is_suspect(settings) for settings in every)


def _is_suspect(repository: GitFolder) -> bool:
    common = repository.common
    files = dict.fromkeys(
        (f"{common}/config", f"{repository.place}/config", f"{repository.place}/config.worktree")
    )
    data = b"\n".join(map(read_bytes, files))
    if repository.is_bare:  # a submodule names its own tree
        data = re.sub(_OWN_TREE, b"", data)
    return re.search(_SUSPECT, data) is not None or any(_find_hooks(f"{common}/hooks"))


def list_git_programs(folder: str, ask: Ask) -> tuple[GitProgram, ...]:
    """Return the programs that the settings of a folder's own repository name, in their order.

    `ask` asks in that folder; where git fails it refuses the repository, and runs none of its
    programs either.
    """
    repository = locate_git_folder(folder)
    if repository is None or not may_name_programs(folder):
        return ()
    listing = (*GIT, "config", "--show-scope", "--includes", "-z", "--list")
    words = os.fsdecode(ask(listing) or b"").split("\0")
    settings = [
        setting
        for scope, setting in zip(words[::2], words[1::2], strict=False)
        if scope in _OWN_SCOPES
    ]
    programs = [*_choose_programs(repository, settings)]
    if (other_owner := repository.stranger) is not None:
        programs.insert(0, GitProgram("gitdir", other_owner))
    for inner in list_inner_folders(repository):
        if _is_suspect(inner):
            programs += _list_inner_programs(inner, ask)
    return tuple(dict.fromkeys(programs))


def _list_inner_programs(repository: GitFolder, ask: Ask) -> Iterator[GitProgram]:
    """Yield the programs of a repository inside of another; its settings are read as a file."""
    settings: list[str] = []
    for name in ("config", "config.worktree"):
        file = f"{repository.common}/{name}"
        if os.path.exists(file):
            listing = ask((*GIT, "config", "--file", file, "--includes", "-z", "--list"))
            settings += os.fsdecode(listing or b"").split("\0")
    yield from (
        program
        for program in _choose_programs(repository, settings)
        if program.key != "core.worktree"
    )


def _choose_programs(repository: GitFolder, settings: Sequence[str]) -> Iterator[GitProgram]:
    """Yield those of some settings (`key`, a line feed, value) that name programs, and hooks."""
    hooks = None
    for setting in settings:
        key, _, value = setting.partition("\n")
        if key.lower() == "core.hookspath":
            hooks = value
        elif re.fullmatch(_PROGRAM_KEY, key) and value and (key, value) not in _LFS:
            own_tree = key.lower() == "core.worktree" and repository.is_own_tree(value)
            if not own_tree and not _is_harmless(key.lower(), value):
                yield GitProgram(key, value)
    place = f"{repository.common}/hooks"
    if hooks is not None:
        place = os.path.join(repository.top, os.path.expanduser(hooks))
    for hook in _find_hooks(place):
        yield GitProgram(os.path.basename(hook), hook)


def _is_harmless(key: str, value: str) -> bool:
    shows = key in {"core.pager", "core.editor", "sequence.editor"} or key.startswith("pager.")
    if shows and re.fullmatch(_SHOWING, value):
        return True
    names = (key, key.partition(".")[0], key.rpartition(".")[2])
    return any(
        name in _HARMLESS and re.fullmatch(_HARMLESS[name], value, re.IGNORECASE | re.DOTALL)
        for name in names
    )


def _find_hooks(place: str) -> Iterator[str]:
    """Yield the hooks in a folder that commands run which only read."""
    yield from (path for name in _HOOKS if os.access(path := f"{place}/{name}", os.X_OK))


def list_changed_files(top: str, words: Sequence[str], ask: Ask) -> frozenset[str] | None:
    """Return which files of a repository `diff` or `show` with these words tells of.

    Paths are absolute; `words` begin with the command, and what follows are revisions and
    `--cached`. None where git fails.
    """
    command, *rest = words
    show_options = ("--format=", "-m") if command == "show" else ()
    plain = ("--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z", "--no-relative")
    output = ask((*GIT, command, *plain, *show_options, *rest, "--"))
    if output is None:
        return None
    return frozenset(f"{top}/{os.fsdecode(path)}" for path in output.split(b"\0") if path)


def build_overrides(programs: tuple[GitProgram, ...]) -> tuple[str, ...] | None:
    """Return options of git with which these do not run; None where that cannot be said.

    Programs that show differences are left out by `--no-ext-diff --no-textconv`, and hooks and the
    monitor by `GIT`.
    """
    values: dict[str, str] = {}
    for key, _ in programs:
        driver, _, name = key.rpartition(".")
        if "=" in key or key.lower() in ELSEWHERE:  # an option ends the name there
            return None
        if key.startswith("filter."):
            values |= {key: "", f"{driver}.required": "false"}
        elif key.startswith("lfs."):
            names = ("clean", "smudge", "process")
            values |= {f"filter.lfs.{name}": "" for name in names}
            values["filter.lfs.required"] = "false"
        elif name == "driver":
            values[key] = "false"  # a program that fails, so what it would merge is a conflict
        elif key.startswith("gpg."):
            values["commit.gpgSign"] = "false"
        elif key.startswith(_TRANSPORTS):
            values["protocol.allow"] = "never"
            values |= {key: "never"} if key.startswith("protocol.") else {}
    return tuple(word for key, value in values.items() for word in ("-c", f"{key}={value}"))
