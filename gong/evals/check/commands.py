"""Which files a command line names to read, to write and to remove; pure, no disk is asked.

Only what words say for certain counts: a path that an expansion decides is left out, and what a
script of a program does nobody sees.
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ...policy.commands.checks import list_written_files
from ...policy.commands.invocation import PathContext
from ...policy.commands.judge import judge_command_line
from ...policy.commands.matching import has_any_option, list_operands
from ...policy.commands.tables import load_tables
from ...policy.files.searched_files import is_showing
from .paths import NULL_DEVICES, find_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...policy.commands.invocation import Invocation
    from ...shell.expansion import Argument

_ABOVE, _NOWHERE = "/\ufffd", "/\ufffd/\ufffd"
"""Where a command works of which no folder is known: its relative paths stay relative."""
_SHOWN_BY_GIT = {"show", "diff", "blame", "annotate", "log", "grep", "cat-file"}
_IN_PLACE = {"sed", "gsed", "perl"}
_LONG_SCRIPTS = {"--expression", "--file"}
_UNPACKERS = {"tar", "bsdtar"}


class CommandFiles(NamedTuple):
    """What a command line names, each path absolute, or relative where no folder is known."""

    reads: tuple[str, ...]
    """Files it prints, or may print a part of; with wildcards where it has them."""
    writes: tuple[tuple[str, ...], ...]
    """Of each file that it writes or removes, the paths it may have."""
    makes: tuple[str, ...]
    """Those of them whose content it wrote."""


@lru_cache(maxsize=256)
def list_command_files(command: str, folder: str) -> CommandFiles:
    """Return the files that a command line names; `folder` is where it works, "" if unknown."""
    start = folder or _NOWHERE
    places = PathContext(start, find_home(folder), (start,), (start,))
    analysis = judge_command_line(command, places)
    uses = [use for each in analysis.uses.values() for use in each]
    reads = [path for use in uses for path in _list_read_paths(use)]
    changed = [path for use in uses for path in _list_made_paths(use)]
    lost = [path for use in uses for path in _list_removed_paths(use)]
    written = [*analysis.outputs, *changed, *lost]
    writes = (tuple(map(_drop_nowhere, paths)) for paths in written if paths)
    files = [paths[0] for paths in (*analysis.outputs, *changed) if len(paths) == 1]
    return CommandFiles(
        tuple(dict.fromkeys(map(_drop_nowhere, reads))),
        tuple(dict.fromkeys(paths for paths in writes if NULL_DEVICES.isdisjoint(paths))),
        tuple(dict.fromkeys(map(_drop_nowhere, files))),
    )


def _drop_nowhere(path: str) -> str:
    """Return a path; a relative one where its folder was unknown."""
    if path == _ABOVE or path.startswith(f"{_ABOVE}/"):
        return posixpath.relpath(path, _NOWHERE)
    return path


def _list_paths(use: Invocation, arguments: Iterator[Argument]) -> Iterator[tuple[str, ...]]:
    """Yield the paths that each known argument may mean."""
    for argument in arguments:
        if argument.known and argument.text and "://" not in argument.text:
            yield use.places.paths(argument)


def _list_read_paths(use: Invocation) -> Iterator[str]:
    """Yield the paths of files that a program shows."""
    words = [word for word in use.arguments if word.text[:1] != "-"]
    if use.name == "git":
        names = {word.text for word in words}
        if names.isdisjoint(_SHOWN_BY_GIT):
            return
        words += [word._replace(text=word.text.partition(":")[2]) for word in words]
    elif not is_showing(use.name):
        return
    for paths in _list_paths(use, iter((*words, *use.read))):
        yield from paths


def _list_made_paths(use: Invocation) -> Iterator[tuple[str, ...]]:
    """Yield the paths of each file that a program writes."""
    if use.name in _IN_PLACE:
        if has_any_option(use.arguments, ("-i", "--in-place")):
            yield from _list_paths(use, _list_edited(use))
    elif use.name not in _UNPACKERS or _is_unpacking(use):
        yield from _list_paths(use, list_written_files(use))


def _list_edited(use: Invocation) -> Iterator[Argument]:
    """Yield the files that sed or perl change in their place: operands behind the script."""
    letters = "eE" if use.name == "perl" else "ef"
    valued = {
        word.text
        for word in use.arguments
        if word.text[:1] == "-" != word.text[1:2] and word.text[-1] in letters
    }
    operands = [word for word in list_operands(use.arguments, valued | _LONG_SCRIPTS) if word.text]
    has_script = bool(valued) or has_any_option(use.arguments, _LONG_SCRIPTS)
    yield from operands[0 if has_script else 1 :]


def _list_removed_paths(use: Invocation) -> Iterator[tuple[str, ...]]:
    if use.name in load_tables().words.removers:
        yield from _list_paths(use, iter(list_operands(use.arguments)))


def _is_unpacking(use: Invocation) -> bool:
    first = use.arguments[:1]
    keys = first[0].text.lstrip("-") if first and first[0].text[:2] != "--" else ""
    return "x" in keys or has_any_option(use.arguments, ("-x", "--extract", "--get"))
