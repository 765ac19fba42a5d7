"""Which files of the working folder are recorded, and which of them git has.

    folder              listed                              left out, and said
    ------------------  ----------------------------------  -------------------------------------
    in a repository     tracked, and untracked not ignored  ignored files, repositories inside
    anything else       all below it, breadth first, up to  HEAVY_FOLDERS, what is above the limit
                        a number of files
    both                                                    names that are not UTF-8

Never listed: `.git`, and the folders of `skip` (the tapes themselves). Git is run so that it writes
nothing, and runs no program that the repository names.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..git_programs import GIT, build_overrides, list_git_programs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ProgramRunner

HEAVY_FOLDERS = frozenset((
    "node_modules", "bower_components", ".venv", "venv", "__pycache__", ".tox", ".nox",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".gradle", ".m2", "target",
    ".terraform", ".next", ".nuxt", ".hg", ".svn", ".bzr", ".jj",
))  # fmt: skip
"""Folders that programs fill, and fill again; not listed where no repository says what counts."""
_UNSET = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE")
"""Variables that would make git look at another repository."""
_GIT_SECONDS = 60.0
_PLAIN_MODES = (b"100644", b"100755", b"120000")


class Listing(NamedTuple):
    """The files of a folder, by path relative to it."""

    tracked: dict[str, str | None]
    """Path → the git object that has the bytes of the file; None where they are others."""
    others: list[str]
    """Files that are not in a repository, in order."""
    remarks: tuple[str, ...]
    """What is not covered by rule, one sentence each."""
    limits: tuple[str, ...] = ()
    """What is not covered because it is too much."""
    has_git: bool = False
    """Whether git made it."""


def list_folder(env: ProgramRunner, folder: str, skip: Sequence[str], max_files: int) -> Listing:
    """Return the files of a folder; `skip` are folders below it to leave out."""
    ours = tuple(f"{path}/" for path in skip)
    listing = _list_with_git(env, folder) if has_repository(folder) else None
    if listing is None:
        listing = _walk_folder(folder, ours, max_files)
    tracked, others = listing.tracked, listing.others
    if ours:
        tracked = {path: oid for path, oid in tracked.items() if not path.startswith(ours)}
        others = [path for path in others if not path.startswith(ours)]
    named = [path for path in others if is_utf8(path)]
    remarks = listing.limits
    if len(named) < len(others) or not all(map(is_utf8, tracked)):
        remarks = (*remarks, "Files whose names are not UTF-8 are not recorded.")
        tracked = {path: oid for path, oid in tracked.items() if is_utf8(path)}
    return Listing(tracked, named, listing.remarks, remarks, listing.has_git)


def has_repository(folder: str) -> bool:
    """Return whether a folder is in a git repository; `folder` is a real path."""
    here = Path(folder)
    return any((parent / ".git").exists() for parent in (here, *here.parents))


def is_utf8(path: str) -> bool:
    """Return whether a path can be recorded as text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_with_git(env: ProgramRunner, folder: str) -> Listing | None:
    """Return what git lists; None where it is missing, or refuses."""
    # One process: each tracked file with its object, again as C or R where the working copy is
    # another, and what is not tracked.
    flags = ("-z", "-t", "-s", "-c", "-o", "-m", "-d", "--exclude-standard")
    answer = run_git(env, folder, ("ls-files", *flags))
    if answer is None:
        return None
    tracked: dict[str, str | None] = {}
    others, inner = [], 0
    for line in answer.split(b"\0"):
        if line[:2] == b"? ":
            if line.endswith(b"/"):
                inner += 1
            else:
                others.append(os.fsdecode(line[2:]))
        elif line:
            about, _, name = line[2:].partition(b"\t")
            mode, oid, stage = about.split(b" ")
            if mode == b"160000":
                inner += 1
                continue
            is_clean = line[:1] in b"HS" and stage == b"0" and mode in _PLAIN_MODES
            path = os.fsdecode(name)
            tracked[path] = oid.decode() if is_clean else None
    remarks = ["Files that git ignores are not recorded."]
    if inner:
        remarks.append("Repositories inside of this one are not recorded.")
    return Listing(tracked, sorted(others), tuple(remarks), has_git=True)


def run_git(
    env: ProgramRunner,
    folder: str,
    words: Sequence[str],
    data: bytes = b"",
    accepted: Sequence[int] = (0,),
) -> bytes | None:
    """Return what git answers in a folder; None where it fails, is missing or takes too long.

    It runs no filter that the repository's own settings name.
    """

    def ask(argv: Sequence[str]) -> bytes | None:
        return env.run_program(argv, folder, unset=_UNSET, seconds=_GIT_SECONDS)

    options = build_overrides(list_git_programs(folder, ask))
    if options is None:
        return None
    argv = (*GIT, "--no-optional-locks", *options, *words)
    return env.run_program(
        argv, folder, data, unset=_UNSET, accepted=accepted, seconds=_GIT_SECONDS
    )


def find_ignored(env: ProgramRunner, folder: str, paths: Sequence[str]) -> set[str] | None:
    """Return which paths git ignores; None where git fails."""
    paths_text = b"".join(os.fsencode(f"./{path}") + b"\0" for path in paths)
    words = ("check-ignore", "-z", "--stdin")
    answer = run_git(env, folder, words, paths_text, accepted=(0, 1)) if paths else b""
    if answer is None:
        return None
    return {os.fsdecode(path).removeprefix("./") for path in answer.split(b"\0") if path}


class WantedFile(NamedTuple):
    """A file as it was checked out."""

    oid: str
    path: str
    size: int


def read_git_objects(
    env: ProgramRunner, folder: str, files: Sequence[WantedFile]
) -> dict[str, bytes]:
    """Return the bytes of files as git checks them out, by path, as far as their size fits.

    A file that is stored as it is checked out is read with all others. One of another size went
    through a filter (line ends, large files elsewhere) and is asked for by itself.
    """
    if not files:
        return {}
    request = "".join(f"{file.oid}\n" for file in files).encode()
    answer = run_git(env, folder, ("cat-file", "--batch=%(objecttype) %(objectsize)"), request)
    by_path = {}
    stored = split_objects(answer or b"", len(files))
    for file, data in zip(files, stored, strict=True):
        if data is not None and len(data) != file.size:
            words = ("cat-file", "--filters", f"--path=./{file.path}", file.oid)
            data = run_git(env, folder, words)  # noqa: PLW2901 (the same file, filtered)
        if data is not None and len(data) == file.size:
            by_path[file.path] = data
    return by_path


def split_objects(answer: bytes, count: int) -> list[bytes | None]:
    """Return the objects of an answer: a line "blob 5", 5 bytes and a line feed for each.

    None for a missing one, whose line says so.
    """
    objects: list[bytes | None] = []
    at = 0
    while (end := answer.find(b"\n", at)) >= 0:
        kind, _, size = answer[at:end].partition(b" ")
        at = end + 1
        if kind != b"blob" or not size.isdigit():
            objects.append(None)
            continue
        objects.append(answer[at : at + int(size)])
        at += int(size) + 1
    return (objects + [None] * count)[:count]


def _walk_folder(folder: str, skip: tuple[str, ...], max_files: int) -> Listing:
    """Return the files below a folder; folders are read breadth first, links are not followed."""
    paths: list[str] = []
    waiting, seen, heavy, is_cut = deque([""]), 0, set[str](), False
    while waiting and not is_cut:
        inside = waiting.popleft()
        with suppress(OSError), os.scandir(f"{folder}/{inside}") as entries:
            for entry in entries:
                path = f"{inside}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if entry.name in HEAVY_FOLDERS:
                        heavy.add(entry.name)
                    elif entry.name != ".git" and not f"{path}/".startswith(skip or ("\0",)):
                        waiting.append(f"{path}/")
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    paths.append(path)
                seen += 1
                if seen >= max_files:
                    is_cut = True
                    break
    names = ", ".join(sorted(heavy))
    left = (f"Not recorded: what is in folders named {names}.",) if heavy else ()
    cut = (f"Not recorded: files after the first {max_files} of this folder.",) if is_cut else ()
    return Listing({}, sorted(paths), left, cut)
