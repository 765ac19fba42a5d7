"""Files that one command of a line writes and a later one runs, and what they hold.

Pure but `Carried.keep`. A file is known by its path, judged by letters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING

from .effects import list_printed_texts
from .expansion import Argument
from .hidden import can_run_input
from .matching import find_option_value, list_operands
from .tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .expansion import Arguments
    from .places import PathContext
    from .use import Invocation

FETCHED_REASON = "runs what comes from the network, unseen"
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
class WrittenFiles:
    """What the files that a command line wrote hold, by path."""

    fetched: set[str] = field(default_factory=set)
    """Those that come from the network."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Those whose text stands in the command line."""

    def keep(self, uses: Sequence[Invocation], targets: Sequence[Argument]) -> tuple[str, ...]:
        """Remember what the programs of one command write; `targets` are its redirections.

        Returns the texts among them that are run at a later time, at a login or a commit.
        """
        later: list[str] = []
        for use in uses:
            own = (*targets, *(list_operands(use.arguments) if use.name == "tee" else ()))
            paths = [path for one in own for path in use.places.paths(one)]
            if any(one.name in load_tables().words.downloaders for one in (use, *use.before)):
                self.fetched |= {*paths, *_resolve_paths(list_download_targets(use), use.places)}
            elif use.name in _PASSES_ON:
                written = (*use.given, *list_printed_texts(use))
                for path in paths:
                    self.texts.setdefault(path, []).extend(written)
                    ends = load_tables().places.startup
                    later += written if any(fnmatchcase(path, f"*{one}") for one in ends) else ()
        return tuple(dict.fromkeys(later))

    def find_run_texts(self, first: Argument, use: Invocation) -> tuple[bool, tuple[str, ...]]:
        """Return whether a program runs a fetched file, and the known texts it runs."""
        paths = _resolve_paths(list_run_scripts(first, use), use.places)
        read = {
            *paths,
            *(
                one
                for one in _resolve_paths(list_input_files(use), use.places)
                if not _is_prose_file(one)
            ),
        }
        texts = (text for path in read for text in self.texts.get(path, ()))
        return not self.fetched.isdisjoint(paths), tuple(texts)


def list_download_targets(use: Invocation) -> Iterator[Argument]:
    """Yield the files that curl or wget puts what it fetches in."""
    if use.name not in _VALUED:
        return
    valued = _VALUED[use.name]
    for one, after in pairwise((*use.arguments, Argument(""))):
        letters = one.text[1:] if one.text[:1] == "-" != one.text[1:2] else ""
        if letters[-1:] == ("o" if use.name == "curl" else "O"):
            yield after
    for option in ("-o", "--output") if use.name == "curl" else ("-O", "--output-document"):
        value = find_option_value(use.arguments, option)
        if value is not None:
            yield value
    for one in list_operands(use.arguments, valued):
        yield one._replace(text=one.text.split("?")[0].rstrip("/").rsplit("/", 1)[-1])


def list_run_scripts(first: Argument, use: Invocation) -> Iterator[Argument]:
    """Yield the files a use of a program runs: itself, or the script it is given."""
    words = load_tables().words
    if "/" in first.text:
        yield first
    runs = use.name in words.shells or use.name in _SOURCES
    if runs or any(use.name.startswith(one.rstrip("*")) for one in words.interpreters):
        given = list_operands(use.arguments, _SHELL_VALUED)
        yield from given[:1] or use.read


def list_input_files(use: Invocation) -> Iterator[Argument]:
    """Yield the files in which a program of another language may find commands."""
    if can_run_input(use.name) or use.name in load_tables().words.databases:
        yield from (*list_operands(use.arguments), *use.read)
        if use.name in _BUILDERS:
            yield from map(Argument, _BUILD_FILES)


def _is_prose_file(path: str) -> bool:
    return path.lower().endswith((".md", ".rst", ".adoc", ".html"))


def _resolve_paths(arguments: Iterator[Argument] | Arguments, places: PathContext) -> set[str]:
    return {path for one in arguments if one.text for path in places.paths(one)}
