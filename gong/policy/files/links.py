"""Where what commands name really lies: links of a repository, followed on the disk.

    cat notes, cat < notes       where the link leads, also one further up: `cat linked/file`
    cd linked && cat file        the folder that a command runs in
    cat linked/../file           behind a link `..` is the folder above where it leads
    ln -s ~ x; cat x/file        a link that the same command line makes
    rg -L, find -L, tree -l      links below a folder, where the option follows them

Every program is taken to open what it is given, but for those that are known to open nothing, or
to show links themselves. Nothing is run, and no file is opened.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from ..commands.invocation import is_inside
from ..commands.matching import find_reader_of, has_any_option, list_operands
from ..commands.tables import load_tables
from .place_names import PASSED_FOLDERS
from .real_paths import (
    MAX_MATCHES,
    LinkResolver,
    find_real_path,
    has_wildcard,
    is_folder,
    is_program,
    list_folder,
    match_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...shell.expansion import Argument
    from ..commands.invocation import Invocation
    from .real_paths import Match

_FOLLOWS: dict[str, tuple[str, ...]] = {
    "find": ("-L", "-follow"),
    "tree": ("-l",),
    "du": ("-L", "--dereference"),
    "ls": ("-L", "--dereference"),
    "fd": ("-L", "--follow"),
    "fdfind": ("-L", "--follow"),
    "rg": ("-L", "--follow"),
    "ag": ("-f", "--follow"),
    "grep": ("-R", "--dereference-recursive"),
    "cp": ("-L", "--dereference"),
    "tar": ("-h", "--dereference"),
    "rsync": ("-L", "--copy-links", "-k", "--copy-dirlinks", "--copy-unsafe-links"),
    "zip": ("-r", "-R", "--recurse-paths"),
    "scp": ("-r",),
    "diff": ("-r", "--recursive"),
}
"""Options with which a program goes through the links below its folders."""
_OPENS_NOTHING = {
    "echo", "printf", "test", "[", "[[", "popd", "pwd", "true", "false", "basename", "dirname",
    "readlink", "realpath", "which", "type", "command", "rm", "unlink", "rmdir", "mkdir",
    "touch", "tee", "ln", "alias", "export", "set", "exit", "kill",
}  # fmt: skip
"""Programs that read none of the files they are given; what they write is judged elsewhere."""
_SHOWS_LINKS = {"ls", "stat", "file", "find", "du", "tree", "git"}
_FOLLOWS_NAMED = ("-L", "-H", "-D", "--dereference", "--dereference-args")
_GIT_OPENS = {"apply", "am", "hash-object", "commit", "tag", "notes", "merge", "bundle", "config"}
"""Subcommands of git that read a file they are given, whatever it is for the repository."""
_MAX_BEHIND = 5_000
"""So many names are looked at where what lies behind links that lead out is listed, too."""
_NEEDS_FOLDER = {"cp", "tar", "rsync", "zip", "scp", "diff"}
"""Programs that go through no folder where they are given none."""
_PARTED = ("=", "@")
"""What stands before a path in an argument: `if=a`, `--file=a`, `-d @a`."""
_SHORT = 2  # characters of an option such as -f


def find_linked_paths(
    uses: Iterable[Invocation],
    inputs: Iterable[str],
    roots: Sequence[str],
    match: Match = match_files,
) -> Iterator[str]:
    """Yield the paths of what commands read through a link in one of the folders `roots`.

    `inputs` are absolute, and not made plain: behind a link `..` means another folder than before
    it.
    """
    uses = tuple(uses)
    links = dict(_list_made_links(uses))
    opened = (path for use in uses for path in _list_opened_paths(use, match))
    input_paths = (
        each for path in inputs for each in (match(path) if has_wildcard(path) else (path,))
    )
    resolver = LinkResolver()
    for path in dict.fromkeys((*input_paths, *opened)):
        led = _follow_made_link(path, links) if links else path
        if led != path:
            yield led
        plain = os.path.normpath(path)
        real = resolver.resolve(plain) if ".." not in path else find_real_path(path)
        # Links elsewhere are the system's, and what they are named is judged by its letters.
        if real != plain and any(is_inside(plain, root) for root in roots):
            yield plain if ".." not in path or find_real_path(plain) == real else path


def find_followed_paths(
    uses: Iterable[Invocation], roots: Sequence[str], *, deep: bool
) -> Iterator[str]:
    """Yield the links below folders that programs go through, and the files behind them.

    What lies behind a link that leads out of `roots` is listed where it is `deep` only: the link
    tells enough for a question.
    """
    for use in uses:
        options = _FOLLOWS.get(use.name, ())
        if not has_any_option(use.arguments, options):
            continue
        named = [path for argument in use.arguments for path in list_argument_paths(use, argument)]
        folders = [path for path in named if is_folder(path)]
        if not folders and use.name not in _NEEDS_FOLDER:
            folders = [*list_starts(use)]
        for folder in dict.fromkeys(folders):
            yield from islice(_walk_links(os.path.normpath(folder), roots, deep), MAX_MATCHES)


def _walk_links(top: str, roots: Sequence[str], deep: bool) -> Iterator[str]:
    """Yield the links below a folder, those near the top first, and what is behind them."""
    waiting, seen, looked_at = deque([(top, False)]), set[tuple[str, bool]](), 0
    while waiting and looked_at < (_MAX_BEHIND if deep else MAX_MATCHES):
        folder, behind = waiting.popleft()
        place = (find_real_path(folder), behind)
        if place in seen:
            continue
        seen.add(place)
        with suppress(OSError, ValueError):
            for name, child in sorted(list_folder(folder).items()):
                looked_at += 1
                path = os.path.join(folder, name)
                if not is_program(path) if child.is_link else behind and not child.is_folder:
                    yield path
                if name in PASSED_FOLDERS or not child.is_folder:
                    continue
                real = find_real_path(path) if child.is_link else ""
                if deep or not child.is_link or any(is_inside(real, root) for root in roots):
                    waiting.append((path, behind or child.is_link))


def list_starts(use: Invocation) -> Iterator[str]:
    """Yield the folders that a program runs in, also those that `cd` names by a wildcard."""
    for folder in use.places.folders:
        if folder is None:
            continue
        yield from match_files(folder) if has_wildcard(folder) else (folder,)


def _list_opened_paths(use: Invocation, match: Match) -> Iterator[str]:
    """Yield the paths, absolute and not made plain, that a program opens, its folder included."""
    is_known = _is_known_opener(use)
    if is_known is None:
        return
    if use.name not in {"cd", "pushd"}:
        yield from list_starts(use)
    shows = use.name in _SHOWS_LINKS and not has_any_option(use.arguments, _FOLLOWS_NAMED)
    if use.name == "git":
        operands = list_operands(use.arguments, load_tables().valued.get("git", ()))
        reads = {*_GIT_OPENS, "--no-index"}
        shows = reads.isdisjoint(argument.text for argument in (*operands[:1], *use.arguments))
    for argument in use.arguments:
        for path in list_argument_paths(use, argument, match):
            if shows and (use.name == "git" or not is_folder(path)):
                yield os.path.dirname(path)
            elif is_known or not is_program(path):
                yield path


def _is_known_opener(use: Invocation) -> bool | None:
    """Whether a program is known to open what it is given; None where it opens nothing."""
    tables = load_tables()
    if use.name in _OPENS_NOTHING:
        return None
    reader = find_reader_of(use.name, use.arguments, use.places)
    if reader is not None and not reader.opens:
        return None
    return reader is not None or use.name in tables.words.fetchers


def list_argument_paths(
    use: Invocation, argument: Argument, match: Match = match_files
) -> Iterator[str]:
    """Yield the paths, absolute and not made plain, that an argument may name."""
    if not argument.known:
        return
    for text in dict.fromkeys(_split_argument(argument.text)):
        starts = [""] if text[:1] == "/" else [f"{start}/" for start in list_starts(use)]
        for start in starts:
            path = f"{start}{text}"
            yield from match(path) if argument.glob else (path,)


def _split_argument(text: str) -> Iterator[str]:
    """Yield what may be a path of an argument: all of it, what an option is glued to, a part."""
    parts = [text] if text[:1] != "-" else [text[_SHORT:] if text[:2] != "--" else ""]
    for mark in _PARTED:
        parts += (text.partition(mark)[2], text.rpartition(mark)[2] if mark in text else "")
    yield from filter(None, parts)


def _list_made_links(uses: Iterable[Invocation]) -> Iterator[tuple[str, str]]:
    """Yield the links that `ln -s` makes, each with where it leads, both absolute."""
    for use in uses:
        if use.name != "ln" or not has_any_option(use.arguments, ("-s", "--symbolic")):
            continue
        operands = [
            operand.text
            for operand in list_operands(use.arguments)
            if operand.known and operand.text
        ]
        *targets, last = operands or [""]
        for start in list_starts(use):
            name = os.path.join(start, last)
            for target in targets or [last]:
                inside = is_folder(name) or not targets
                folder = (name if targets else start) if inside else os.path.dirname(name)
                base = os.path.basename(target.rstrip("/"))
                place = os.path.join(folder, base) if inside else name
                yield os.path.normpath(place), os.path.join(folder, target)


def _follow_made_link(path: str, links: dict[str, str]) -> str:
    plain = os.path.normpath(path)
    for name, target in links.items():
        if is_inside(plain, name):
            return f"{target}{plain[len(name) :]}"
    return path
