"""What is removed by names that find, fd or ls lists, or from within a container; pure."""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from ...shell.expansion import Argument
from .finding import WORKSPACE_REMOVAL
from .matching import find_option_value, has_any_option, list_operands, read_program_name
from .tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...shell.expansion import Arguments
    from .invocation import Invocation


_MOUNT = re.compile(r"(?:-v|--volume=?)?([^:]+):(/[^:]*)(?::(.*))?", re.DOTALL)
_SOURCE = re.compile(r"(?:^|,)(?:source|src)=([^,]+)")
_TARGET = re.compile(r"(?:^|,)(?:target|destination|dst)=([^,]+)")
_CONTAINER_WORDS = re.compile(r"[\s'\";|&()]+")
_CONTAINER_PROGRAMS = {"docker", "podman", "nerdctl"}


def check_container_removal(use: Invocation) -> str | None:
    """Return why it is dangerous what a container removes, None where it is not."""
    if use.name not in _CONTAINER_PROGRAMS:
        return None
    every = [word for argument in use.arguments for word in _CONTAINER_WORDS.split(argument.text)]
    removers = {*load_tables().words.removers, "find", "chmod", "chown"} - {"mv"}
    first = next((i for i, word in enumerate(every) if word in removers), len(every))
    words = every[first + 1 :]
    folder = find_option_value(use.arguments, "-w") or find_option_value(use.arguments, "--workdir")
    for source, target in _find_mounts(use):
        here = folder is not None and posixpath.normpath(folder.text) == target
        lost = {target, *_list_parents(target), *((".", "*", "./*") if here else ())}
        if use.places.is_vital(source) and any(_strip_wildcard(word) in lost for word in words):
            return "removes what a system, home or workspace folder holds, from a container"
    return None


def _strip_wildcard(word: str) -> str:
    """Return the folder that a word with a wildcard for all of its parts means."""
    if word[:1] != "/":
        return word
    return posixpath.normpath(word.removesuffix("*"))


def _list_parents(folder: str) -> Iterator[str]:
    while (above := posixpath.dirname(folder)) != folder:  # `//` is its own parent, too
        folder = above
        yield folder


def _find_mounts(use: Invocation) -> Iterator[tuple[Argument, str]]:
    """Yield each writable folder, and its path in the container."""
    for argument in use.arguments:
        match = _MOUNT.fullmatch(argument.text)
        if match and "ro" not in (match[3] or "").split(","):
            source = use.places.home if match[1] == "~" else match[1]
            yield argument._replace(text=source), posixpath.normpath(match[2])
        source_match, target = _SOURCE.search(argument.text), _TARGET.search(argument.text)
        if source_match and target and "readonly" not in argument.text:
            yield argument._replace(text=source_match[1]), posixpath.normpath(target[1])


_RECURSIVE = {
    **dict.fromkeys(("rm", "srm", ""), ("-r", "-R", "--recursive")),
    **dict.fromkeys(("chmod", "chown", "chgrp"), ("-R", "--recursive")),
    "rsync": ("--delete*", "--del"),
}
"""By program: options with which it goes through all that a folder holds."""
_CHOOSERS = {"grep", "egrep", "fgrep", "rg", "head", "tail"}
_ACTIONS = {"-delete", "-exec", "-execdir", "-ok", "-okdir"}
_ANY = re.compile(r"[*?./]*\*[*?./]*")
_WORDS = re.compile(r"[\s'\";|&()`]+")
_FD_FOLDERS = ("--search-path", "--base-directory", "-C")
_FD_CHOOSES = ("-e", "--extension", "-S", "--size", "--changed-within", "--changed-before")
_FD_VALUED = (*_FD_FOLDERS, *_FD_CHOOSES, "-t", "--type", "-d", "--max-depth", "-E", "--exclude")
_WIDE = "removes or changes what a whole system, home or workspace folder holds"


def check_unknown_removal(use: Invocation) -> str | None:
    """Return why it is dangerous to remove below what a command prints, None where it is not."""
    operands = list_operands(use.arguments)
    recursive = use.name == "rimraf" or has_any_option(use.arguments, _RECURSIVE.get(use.name, ()))
    if use.name == "find":
        operands = _list_start_folders(use.arguments)
        recursive = any(
            argument.text == "-delete"
            or read_program_name(argument) in load_tables().words.removers
            for argument in use.arguments
        )
    if recursive and any(operand.free and not operand.text.strip("/.*") for operand in operands):
        return "removes or changes everything below a folder that is unknown"
    return None


def check_listed_removal(use: Invocation) -> str | None:
    """Return why it is dangerous to remove what find or ls lists, None where it is not."""
    changes = {*load_tables().words.removers, "chmod", "chown", "chgrp"}
    if use.name == "find":
        ran = [*_list_find_commands(use.arguments)]
        if any(map(_is_overwriting, ran)) and any(
            map(use.places.is_foreign, _list_start_folders(use.arguments))
        ):
            return _WIDE
        removes = any(argument.text == "-delete" for argument in use.arguments) or any(
            word in changes for each in ran for word in _list_program_names(each)
        )
        return _check_find_removal(use) if removes else None
    if use.name in {"fd", "fdfind"}:
        return _check_fd_removal(use, changes)
    if use.name in changes:
        reasons = (
            _check_find_removal(feeder, use.before)
            for feeder in use.before
            if feeder.name in {"find", "fd"}
        )
        return next((reason for reason in reasons if reason), None) or _check_ls_removal(use)
    return None


def _list_find_commands(arguments: Arguments) -> Iterator[Arguments]:
    """Yield the commands that a find runs."""
    for index, argument in enumerate(arguments):
        if argument.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            rest = arguments[index + 1 :]
            yield tuple(takewhile(lambda each: each.text not in {";", "+"}, rest))


def _list_program_names(command: Arguments) -> Iterator[str]:
    """Yield the names that may be programs in a command, texts for a shell included."""
    if command and load_tables().is_reader(read_program_name(command[0])):
        return
    for argument in command:
        yield from (word.rsplit("/", 1)[-1].lower() for word in _WORDS.split(argument.text))


def _is_overwriting(command: Arguments) -> bool:
    """Whether a command overwrites the files whose names it is given as `{}`."""
    names = {*_list_program_names(command)}
    if names & {"tee", "dd", "sponge"}:
        return any("{}" in argument.text for argument in command)
    if names & {"sed", "perl"}:
        return has_any_option(command, ["-i", "--in-place"])
    return bool(names & {"cp", "install", "ln"}) and command[-1].text == "{}"


def _check_fd_removal(use: Invocation, changes: set[str]) -> str | None:
    marks = {"-x", "-X", "--exec", "--exec-batch"}
    start = next((i for i, argument in enumerate(use.arguments) if argument.text in marks), None)
    if start is None or not {*_list_program_names(use.arguments[start + 1 :])} & changes:
        return None
    own = use.arguments[:start]
    pattern, *folders = list_operands(own, _FD_VALUED) or (Argument(""),)
    chosen = has_any_option(own, _FD_CHOOSES) or pattern.text.strip(".*^$") != ""
    folders += [
        folder for name in _FD_FOLDERS if (folder := find_option_value(own, name)) is not None
    ]
    for folder in folders or [Argument("." if pattern.text else "")]:
        if use.places.is_foreign(folder) or (not chosen and use.places.is_vital(folder)):
            return _WIDE
    return None


def _check_ls_removal(use: Invocation) -> str | None:
    """Look at what is removed by the names that ls prints."""
    if use.name == "mv" or use.name not in load_tables().words.removers:
        return None
    for feeder in use.before:
        folders = list_operands(feeder.arguments) or (Argument("."),)
        wide = use.places.is_foreign if _has_line_filter(use.before) else use.places.is_vital
        if feeder.name == "ls" and any(map(wide, folders)):
            return _WIDE
    return None


def _has_line_filter(uses: tuple[Invocation, ...]) -> bool:
    """Whether some of the lines on the way are chosen."""
    return any(
        use.name in _CHOOSERS and not has_any_option(use.arguments, ["-v", "--invert-match"])
        for use in uses
    )


def _check_find_removal(use: Invocation, on_the_way: tuple[Invocation, ...] = ()) -> str | None:
    narrowed = _is_narrowed_find(use.arguments) or _has_line_filter(on_the_way)
    places, wide = use.places, None
    for start in _list_start_folders(use.arguments):
        if places.is_foreign(start):
            return _WIDE
        if not narrowed and places.is_vital(start):
            own = places.paths(start) == (places.start,) and places.start != places.home
            if not own:
                return _WIDE
            wide = WORKSPACE_REMOVAL
    return wide


def _is_narrowed_find(arguments: Arguments) -> bool:
    """Whether a find chooses among files before it removes them, in the alternative that does."""
    tests, depth, narrow, acted = load_tables().words.narrowing, 0, False, False
    before = ""
    for argument, value in pairwise((*arguments, Argument(""))):
        text = argument.text
        depth += (text == "(") - (text == ")")
        if text in {"-o", "-or", ","} and not depth:
            if acted:
                return narrow
            narrow = False
        elif text in _ACTIONS and not narrow:
            if text == "-delete" or read_program_name(value) in load_tables().words.removers:
                return False
        elif text in tests and before not in {"!", "-not"}:
            every = _ANY.fullmatch(value.text) or (text == "-maxdepth" and value.text == "0")
            narrow |= not every
        acted |= text in _ACTIONS
        before = text
    return narrow


def _list_start_folders(arguments: Arguments) -> Arguments:
    """Return the folders a find begins in."""
    ends = (
        i
        for i, argument in enumerate(arguments)
        if argument.text[:1] in {"-", "(", "!"} and argument.text
    )
    first = arguments[: next(ends, len(arguments))]
    return first or (
        (arguments[0]._replace(text=".", known=True, glob=False),) if arguments else ()
    )
