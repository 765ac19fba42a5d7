"""Which files and commands would give the session more rights, or change what it recorded.

These are gong's own settings, keys, answers about trust, and tapes: changing them asks in every
mode, and a rule allows it only where it names the very file.

    echo x > FILE, tee FILE, cp a FILE, rm FILE   what a program is known to write
    vim FILE, python x FILE, find FOLDER -delete  what is named to a program not known to only read
    cp -r x ~/.config, tar x -C ~                 a folder above, and what is put there reaches it
    python -c 'open("FILE", "w")'                 what code names; it may hide the name
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from ..commands.checks import list_written_files
from ..commands.invocation import is_inside
from ..commands.matching import (
    has_any_option,
    is_reading_anywhere,
    list_operands,
    read_program_name,
)
from ..commands.tables import has_pattern_match, load_tables
from ..commands.variables import SETTING_BUILTINS
from ..commands.wrappers import drop_harmless_execs, is_name_reader
from .links import list_argument_paths, list_starts
from .real_paths import find_real_path, has_wildcard, is_there, match_files
from .searched_files import list_copied_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..commands.finding import CommandFinding
    from ..commands.invocation import Invocation

OWN_REASON = "gong's own settings, keys or tapes"
_UNPACKERS = {"tar", "bsdtar", "unzip", "7z", "7za", "cpio", "rsync", "patch", "unrar"}
_INTO = ("-C", "-d", "--directory", "-o")
_CHANGES_FOUND = {"-delete", "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"}
_MODULE_WORDS = 2  # of `python -m gong`
_RUNNERS = {"uvx", "pipx", "npx", "bunx"}
_SETTINGS = ("GONG_PERMISSION=", "GONG_CONFIG_DIR=")
"""Variables that change what another gong may do."""
_WORKTREES = "worktrees"
"""Below gong's state: where sub-agents work, in folders of their own."""
_TAKES_FOLDERS = ("-r", "-R", "-a", "--recursive", "--archive")


def is_own_file(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is in one of gong's own folders, by its letters or through a link."""
    both = {path, find_real_path(path)}
    return any(
        is_inside(each, place) and not is_inside(each, f"{place}/{_WORKTREES}")
        for each in both
        for place in _list_places(folders)
    )


def find_own_changes(
    actions: Iterable[CommandFinding], uses: Sequence[Invocation], folders: Sequence[str]
) -> Iterator[str]:
    """Yield the paths in gong's own folders that a command line may change, each once."""
    paths = [path for action in actions for path in action.paths]
    for use in uses:
        for target in list_written_files(use):
            paths += list_argument_paths(use, target)
        if use.name not in load_tables().own and not _is_only_reading(use):
            paths += _list_named_paths(use)
            paths += _list_reached_paths(use, folders)
        paths += _find_mentioned_folders(use, folders)
    for path in dict.fromkeys(map(posixpath.normpath, paths)):
        matches = match_files(path) if has_wildcard(path) else (path,)
        yield from (path for path in matches if is_own_file(path, folders))


def _list_places(folders: Sequence[str]) -> set[str]:
    return {place for folder in folders for place in (folder, find_real_path(folder))}


def _is_only_reading(use: Invocation) -> bool:
    """Whether a program is known to change no file, wherever those are that it is given."""
    tables, arguments = load_tables(), use.arguments
    if use.name == "xargs":
        operands = list_operands(arguments, tables.wrappers["xargs"].valued)
        return not operands or is_name_reader(operands[0])
    if use.name == "find":
        arguments = drop_harmless_execs(arguments, use.places)
    elif use.name in tables.wrappers or use.name in SETTING_BUILTINS:
        return True  # what it runs is another use
    return is_reading_anywhere(use.name, arguments, use.places)


def _list_named_paths(use: Invocation) -> Iterator[str]:
    """Yield the paths that a program is given, but for those it copies, and where it runs."""
    copies = use.name in load_tables().words.copiers and use.name != "mv"
    if not copies or (use.name == "ln" and not has_any_option(use.arguments, ("-s",))):
        for argument in use.arguments:
            yield from list_argument_paths(use, argument)
    yield from list_starts(use)
    if use.name == "xargs":
        for before in use.before:
            for argument in before.arguments:
                yield from list_argument_paths(before, argument)


def _list_reached_paths(use: Invocation, folders: Sequence[str]) -> Iterator[str]:
    """Yield own folders, or paths in them, that are reached through a folder above them."""
    name, words = use.name, load_tables().words
    every = [each for argument in use.arguments for each in list_argument_paths(use, argument)]
    paths = [*map(posixpath.normpath, every if name != "rsync" else every[-1:])]
    if name in _UNPACKERS and not has_any_option(use.arguments, _INTO):
        paths += list_starts(use)
    own = _list_places(folders)
    above = [
        folder
        for folder in own
        if any(is_inside(folder, each) and folder != each for each in paths)
    ]
    if not above:
        return
    recursive = has_any_option(use.arguments, _TAKES_FOLDERS)
    finds = any(argument.text in _CHANGES_FOUND for argument in use.arguments)
    removes = name in words.removers or name in {"chmod", "chown", "chgrp"}
    if (name in _UNPACKERS and _is_unpacking(use)) or (removes and recursive) or finds:
        yield from above
    elif name == "mv" or (name in {"cp", "install"} and recursive):
        if name == "mv":
            yield from (
                folder for folder in above if any(is_inside(folder, each) for each in paths[:-1])
            )
        copied = list_copied_files(paths)
        is_known = all(map(is_there, paths[:-1]))
        yield from above if copied is None or not is_known else copied


def _is_unpacking(use: Invocation) -> bool:
    """Whether an archive is unpacked; what is packed is only read."""
    if use.name not in {"tar", "bsdtar"}:
        return True
    first = use.arguments[:1]
    keys = first[0].text.lstrip("-") if first and first[0].text[:2] != "--" else ""
    return "x" in keys or has_any_option(use.arguments, ("-x", "--extract", "--get"))


def _find_mentioned_folders(use: Invocation, folders: Sequence[str]) -> Iterator[str]:
    """Yield own folders named in a text which a program may run, or write."""
    runs_tool = use.name == "gong" and [argument.text for argument in use.arguments[:1]] == ["tool"]
    if not runs_tool and not has_pattern_match(use.name, load_tables().words.interpreters):
        return
    if is_reading_anywhere(use.name, use.arguments, use.places):
        return
    for own in folders:
        ends = own.removeprefix(use.places.home.rstrip("/"))
        for text in (*(argument.text for argument in use.arguments), *use.given):
            if f"{ends}/" in f"{text}/" or f'{ends}"' in text or f"{ends}'" in text:
                yield own


def find_own_command(actions: Iterable[CommandFinding], uses: Iterable[Invocation]) -> str | None:
    """Return a command of gong or tape that changes what gong may do, or what it kept."""
    tables = load_tables()
    words = (word for action in actions for word in action.words)
    if setting := next((word for word in words if word.startswith(_SETTINGS)), None):
        return setting
    for use in uses:
        name, arguments = use.name, use.arguments
        texts = [argument.text for argument in arguments]
        if has_pattern_match(name, tables.words.interpreters) and texts[:1] == ["-m"]:
            name, arguments = "".join(texts[1:_MODULE_WORDS]), arguments[_MODULE_WORDS:]
        elif name in _RUNNERS and arguments:
            name, arguments = read_program_name(arguments[0]), arguments[1:]
        if name == "gong" and arguments[:1] and arguments[0].text == "tape":
            name, arguments = "tape", arguments[1:]
        operands = [
            operand.text for operand in list_operands(arguments, tables.valued.get(name, ()))
        ]
        options = [argument.text for argument in arguments if argument.text not in operands]
        if has_pattern_match(" ".join((*operands, *options)), tables.own.get(name, ())):
            return f"{name} {' '.join(argument.text for argument in arguments)}"
    return None
