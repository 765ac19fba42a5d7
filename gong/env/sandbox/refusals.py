"""What the sandbox refused a command, as far as the command's output tells; pure.

Programs say it in their own words, with the words of the system for the error:

    Read-only file system         a file outside of the folders, or one that is fixed
    Device or resource busy       a file that is mounted: git's settings, the folder .git
    Permission denied             a file that is hidden
    Operation not permitted       a system call that the filter refuses
    Could not resolve host, …     the network
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .binds import Border

_MAX_REFUSALS = 4
_MAX_CHARS = 200_000
_WRITING = re.compile(r"read-only file system|device or resource busy|EROFS|EBUSY", re.IGNORECASE)
_READING = re.compile(r"permission denied|EACCES", re.IGNORECASE)
_NETWORK = re.compile(
    r"could not resolve (?:host(?:name)?)?:? ?(?P<a>[\w.-]+)?"
    r"|temporary failure in name resolution|name or service not known"
    r"|getaddrinfo (?:EAI_AGAIN|ENOTFOUND) ?(?P<b>[\w.-]+)?"
    r"|network is unreachable|ENETUNREACH|no route to host|failed to resolve '?(?P<c>[\w.-]+)?",
    re.IGNORECASE,
)
_SHELL = re.compile(r"(?m)^\S*bash: line \d+: (?P<path>.+): Read-only file system$")
_QUOTED = re.compile(r"['‘\"`](?P<path>[^'’\"`]+)['’\"`]")
_BEFORE = re.compile(r"(?:^|[: ])(?P<path>[^\s:'\"]+): [^:]*$")
_WORD = re.compile(r"(?:^|[\s:=(])(?P<path>(?:~?/|\.{1,2}/|\.git\b)[^\s:,;)'\"]*)")


def find_refusals(output: str, border: Border) -> tuple[str, ...]:
    """Return what was refused, as in "writing /etc/hosts", each once and the first ones only."""
    refusals: dict[str, None] = {}
    for line in output[-_MAX_CHARS:].split("\n"):
        if _WRITING.search(line):
            path = _find_path(line)
            refusals[f"writing {path}" if path else "writing a file outside of its folders"] = None
        elif _READING.search(line):
            path = _find_path(line)
            if path and border.hides(posixpath.normpath(path)):
                refusals[f"reading {path}"] = None
        elif match := _NETWORK.search(line):
            host = match["a"] or match["b"] or match["c"]
            refusals[f"reaching {host}" if host else "reaching the network"] = None
    return tuple(refusals)[:_MAX_REFUSALS]


def find_shell_refusals(output: str) -> tuple[str, ...]:
    """Return what bash could not write, as it says itself, of a command that ended well."""
    paths = (match["path"] for match in _SHELL.finditer(output[-_MAX_CHARS:]))
    return tuple(dict.fromkeys(f"writing {path}" for path in paths))[:_MAX_REFUSALS]


def _find_path(line: str) -> str:
    """Return the path that a message names; empty where it names none."""
    quoted = [match["path"] for match in _QUOTED.finditer(line)]
    if quoted:
        return next((path for path in reversed(quoted) if "/" in path), quoted[0])
    match = _BEFORE.search(line) or _WORD.search(line)
    return match["path"] if match else ""
