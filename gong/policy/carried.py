"""Files that one command of a line writes and a later one runs, and what they hold.

Pure but `Carried.keep`. A file is known by its path, judged by letters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING

from .effects import printed
from .expansion import Argument
from .hidden import takes_commands
from .matching import operands, value_of
from .tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .expansion import Arguments
    from .places import Places
    from .use import Use

FETCHED = "runs what comes from the network, unseen"
_VALUED = {
    "curl": (
        *("-o", "--output", "-d", "--data", "-H", "--header", "-X", "--request", "-u", "--user"),
        *("-A", "--user-agent", "-e", "-F", "--form", "-m", "--max-time", "--retry", "-x", "-b"),
    ),
    "wget": ("-O", "--output-document", "-P", "--header", "-U", "-t", "-T", "-o"),
}
_SHELL_VALUED = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-W", "-X", "--require")
_SOURCES = {".", "source"}
_BUILDERS = {"make", "gmake", "bmake"}
_BUILD_FILES = ("Makefile", "makefile", "GNUmakefile")
_PASSES_ON = {"cat", "tee", "echo", "printf"}
"""Programs that write the text they are given, or say it."""


@dataclass(slots=True)
class Carried:
    """What the files that a command line wrote hold, by path."""

    fetched: set[str] = field(default_factory=set)
    """Those that come from the network."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Those whose text stands in the command line."""

    def keep(self, uses: Sequence[Use], targets: Sequence[Argument]) -> tuple[str, ...]:
        """Remember what the programs of one command write; `targets` are its redirections.

        Returns the texts among them that are run at a later time, at a login or a commit.
        """
        later: list[str] = []
        for use in uses:
            own = (*targets, *(operands(use.arguments) if use.name == "tee" else ()))
            paths = [path for one in own for path in use.places.paths(one)]
            if any(one.name in table().words.downloaders for one in (use, *use.before)):
                self.fetched |= {*paths, *_paths(saved(use), use.places)}
            elif use.name in _PASSES_ON:
                written = (*use.given, *printed(use))
                for path in paths:
                    self.texts.setdefault(path, []).extend(written)
                    ends = table().places.startup
                    later += written if any(fnmatchcase(path, f"*{one}") for one in ends) else ()
        return tuple(dict.fromkeys(later))

    def run_by(self, first: Argument, use: Use) -> tuple[bool, tuple[str, ...]]:
        """Return whether a program runs a fetched file, and the known texts it runs."""
        paths = _paths(scripts(first, use), use.places)
        read = {*paths, *(one for one in _paths(inputs(use), use.places) if not _is_prose(one))}
        texts = (text for path in read for text in self.texts.get(path, ()))
        return not self.fetched.isdisjoint(paths), tuple(texts)


def saved(use: Use) -> Iterator[Argument]:
    """Yield the files that curl or wget puts what it fetches in."""
    if use.name not in _VALUED:
        return
    valued = _VALUED[use.name]
    for one, after in pairwise((*use.arguments, Argument(""))):
        letters = one.text[1:] if one.text[:1] == "-" != one.text[1:2] else ""
        if letters[-1:] == ("o" if use.name == "curl" else "O"):
            yield after
    for option in ("-o", "--output") if use.name == "curl" else ("-O", "--output-document"):
        value = value_of(use.arguments, option)
        if value is not None:
            yield value
    for one in operands(use.arguments, valued):
        yield one._replace(text=one.text.split("?")[0].rstrip("/").rsplit("/", 1)[-1])


def scripts(first: Argument, use: Use) -> Iterator[Argument]:
    """Yield the files a use of a program runs: itself, or the script it is given."""
    words = table().words
    if "/" in first.text:
        yield first
    runs = use.name in words.shells or use.name in _SOURCES
    if runs or any(use.name.startswith(one.rstrip("*")) for one in words.interpreters):
        given = operands(use.arguments, _SHELL_VALUED)
        yield from given[:1] or use.read


def inputs(use: Use) -> Iterator[Argument]:
    """Yield the files in which a program of another language may find commands."""
    if takes_commands(use.name) or use.name in table().words.databases:
        yield from (*operands(use.arguments), *use.read)
        if use.name in _BUILDERS:
            yield from map(Argument, _BUILD_FILES)


def _is_prose(path: str) -> bool:
    return path.lower().endswith((".md", ".rst", ".adoc", ".html"))


def _paths(arguments: Iterator[Argument] | Arguments, places: Places) -> set[str]:
    return {path for one in arguments if one.text for path in places.paths(one)}
