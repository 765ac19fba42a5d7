"""Uses of tar that do no more than to list an archive; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .expansion import Argument, Arguments

_TAR_KEYS = re.compile(r"-?[tvzjJ]*f?")
_TAR_OPTIONS = {
    "-t",
    "-v",
    "-z",
    "-j",
    "-J",
    "--list",
    "--verbose",
    "--gzip",
    "--gunzip",
    "--bzip2",
}
_TAR_OPTIONS |= {"--xz", "--zstd", "--wildcards", "--full-time"}


def find_listed_archive(arguments: Arguments) -> Arguments | None:
    """Return the archive a use of tar lists, None when it may do more than that."""
    lists, archives, rest = False, [], list(arguments)
    keys = rest[:1]  # the first argument may be keys without a dash
    while rest:
        one = rest.pop(0)
        text = one.text
        if not one.known or one.glob:
            return None
        if text.startswith("--file="):
            archives.append(one._replace(text=text.partition("=")[2]))
        elif text in _TAR_OPTIONS:
            lists |= text in {"-t", "--list"}
        elif (keys == [one] and not lists) or text[:1] == "-":
            if not _TAR_KEYS.fullmatch(text):
                return None
            lists |= "t" in text
            archives += _pop_next(rest) if text.endswith("f") else ()
        keys = []
    return (
        tuple(archives) if lists and len(archives) == 1 and _is_local_archive(archives[0]) else None
    )


def _pop_next(rest: list[Argument]) -> tuple[Argument, ...]:
    return (rest.pop(0),) if rest else ()


def _is_local_archive(archive: Argument) -> bool:
    """Whether an archive stands on this machine: `host:file` does not."""
    return archive.known and not archive.glob and ":" not in archive.text
