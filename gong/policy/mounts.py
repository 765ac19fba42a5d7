"""Folders of this machine that a container is given, and what is removed there; pure."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from .matching import find_option_value
from .tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .expansion import Argument
    from .use import Invocation

_MOUNT = re.compile(r"(?:-v|--volume=?)?([^:]+):(/[^:]*)(?::(.*))?", re.DOTALL)
_SOURCE = re.compile(r"(?:^|,)(?:source|src)=([^,]+)")
_TARGET = re.compile(r"(?:^|,)(?:target|destination|dst)=([^,]+)")
_CONTAINER_WORDS = re.compile(r"[\s'\";|&()]+")
_CONTAINER_PROGRAMS = {"docker", "podman", "nerdctl"}


def check_container_removal(use: Invocation) -> str | None:
    """Return why it is dangerous what a container removes, None where it is not."""
    if use.name not in _CONTAINER_PROGRAMS:
        return None
    every = [word for one in use.arguments for word in _CONTAINER_WORDS.split(one.text)]
    removers = {*load_tables().words.removers, "find", "chmod", "chown"} - {"mv"}
    first = next((i for i, one in enumerate(every) if one in removers), len(every))
    words = every[first + 1 :]
    folder = find_option_value(use.arguments, "-w") or find_option_value(use.arguments, "--workdir")
    for source, target in _find_mounts(use):
        here = folder is not None and posixpath.normpath(folder.text) == target
        lost = {target, *_list_parents(target), *((".", "*", "./*") if here else ())}
        if use.places.is_vital(source) and any(_strip_wildcard(one) in lost for one in words):
            return "removes what a system, home or workspace folder holds, from a container"
    return None


def _strip_wildcard(word: str) -> str:
    """Return the folder that a word with a wildcard for all of its parts stands for."""
    if word[:1] != "/":
        return word
    return posixpath.normpath(word.removesuffix("*"))


def _list_parents(folder: str) -> Iterator[str]:
    while folder != "/":
        folder = posixpath.dirname(folder)
        yield folder


def _find_mounts(use: Invocation) -> Iterator[tuple[Argument, str]]:
    """Yield each folder that may be written to, and where it stands in the container."""
    for one in use.arguments:
        found = _MOUNT.fullmatch(one.text)
        if found and "ro" not in (found[3] or "").split(","):
            source = use.places.home if found[1] == "~" else found[1]
            yield one._replace(text=source), posixpath.normpath(found[2])
        given, target = _SOURCE.search(one.text), _TARGET.search(one.text)
        if given and target and "readonly" not in one.text:
            yield one._replace(text=given[1]), posixpath.normpath(target[1])
