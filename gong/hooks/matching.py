"""Which calls a command hook wants: its `matcher`, compared with a name, and its `if`, a rule.

    matcher                what matches
    ---------------------  --------------------------------------------------------------
    absent, "" or "*"      everything
    `Bash`, `Edit|Write`   exactly these names, in Claude's words or gong's, in any case
    anything else          a regular expression, found anywhere in a name

    if                     what matches
    ---------------------  --------------------------------------------------------------
    `Bash`                 the tool
    `Bash(git *)`          a command line one of whose commands is like this
    `Bash(npm run:*)`      the same: the command begins with these words
    `Edit(src/**)`         a file below src of the working folder
    `WebFetch(domain:x)`   an address at x or below it

A command line that cannot be read completely matches every pattern: a hook that guards something
would rather run once too often.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from ..web.addresses import InvalidAddress, normalize_host, parse_address
from .claude import build_tool_input, list_tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PLAIN = re.compile(r"[\w\- ]+(?:[|,][\w\- ]+)*\Z")
_CONDITION = re.compile(r"\s*([\w\-*]+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)


class HookMatcher:
    """The names that a hook wants; raises ValueError for an expression that is none."""

    def __init__(self, text: str) -> None:
        self._names: frozenset[str] | None = None
        self._expression: re.Pattern[str] | None = None
        if text in {"", "*"}:
            return
        if _PLAIN.match(text):
            self._names = frozenset(name.strip() for name in re.split(r"[|,]", text))
            return
        try:
            self._expression = re.compile(text)
        except re.error as error:
            raise ValueError(f"matcher {text!r} is not a regular expression: {error}") from error

    def find_match(self, names: Iterable[str]) -> str | None:
        """Return the first of some names for one thing that the hook wants, None if it does not.

        The name as the matcher spells it goes first. A matcher for everything gives "".
        """
        if self._names is not None:
            names, lower = [*names], {name.lower() for name in self._names}
            exact = (name for name in names if name in self._names)
            return next(exact, next((name for name in names if name.lower() in lower), None))
        if self._expression is not None:
            return next((name for name in names if self._expression.search(name)), None)
        return ""


class HookCondition:
    """A rule about a tool call; raises ValueError if it is none."""

    def __init__(self, text: str) -> None:
        match = _CONDITION.match(text)
        if match is None:
            raise ValueError(f"if {text!r} is not a rule: write Tool or Tool(pattern)")
        self._tools = HookMatcher(match[1])
        self._pattern = match[2]

    def is_met(self, tool: str, args: Mapping[str, Any], cwd: str) -> bool:
        """Return whether a call of a tool fits the rule."""
        if self._tools.find_match(list_tool_names(tool)) is None:
            return False
        pattern = self._pattern
        if pattern is None or pattern in {"", "*"}:
            return True
        tool_input = build_tool_input(tool, args, cwd)
        if isinstance(command := tool_input.get("command"), str):
            return _is_like_command(command, pattern)
        if pattern.startswith("domain:"):
            return _is_of_domain(str(tool_input.get("url", "")), pattern.removeprefix("domain:"))
        if isinstance(path := tool_input.get("file_path", tool_input.get("path")), str):
            return _is_like_path(path, pattern, cwd)
        return any(
            _is_like_text(text, pattern) for text in tool_input.values() if isinstance(text, str)
        )


def _is_of_domain(url: str, domain: str) -> bool:
    """Whether an address is one of a domain, as the rules of permission see it."""
    with suppress(InvalidAddress):
        host, domain = parse_address(url).host, normalize_host(domain)
        return host == domain or host.endswith(f".{domain}")
    return False


def _is_like_command(command: str, pattern: str) -> bool:
    from ..shell.parser import parse_command_line  # loads a grammar
    from ..shell.words import ParserMissing  # with it

    try:
        parsed = parse_command_line(command)
    except ParserMissing:
        return True
    if not parsed.whole:
        return True
    return any(
        _is_like_text(_drop_assignments(command.source), pattern) for command in parsed.commands
    )


_ASSIGNMENTS = re.compile(r"(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|[^\s'\"])*\s+)+")


def _drop_assignments(source: str) -> str:
    return _ASSIGNMENTS.sub("", source.strip(), count=1) if "=" in source else source.strip()


def _is_like_text(text: str, pattern: str) -> bool:
    """Return whether a command fits: `git *` also fits `git`, and `x:*` is `x` and `x …`."""
    if pattern.endswith(":*"):
        start = pattern.removesuffix(":*")
        return text == start or text.startswith(f"{start} ")
    if pattern.endswith(" *") and text == pattern.removesuffix(" *"):
        return True
    return _compile_glob(pattern, paths=False).match(text) is not None


def _is_like_path(path: str, pattern: str, cwd: str) -> bool:
    path = posixpath.normpath(posixpath.join(cwd, path))
    spelled = pattern.replace("//", "/", 1) if pattern[:2] == "//" else pattern
    path_pattern = posixpath.expanduser(spelled)
    if not posixpath.isabs(path_pattern):
        path, path_pattern = posixpath.relpath(path, cwd), path_pattern.removeprefix("./")
    glob = _compile_glob(path_pattern, paths=True)
    if "/" not in path_pattern:  # as in .gitignore: a name matches in every folder
        return any(glob.match(part) for part in path.split("/"))
    return glob.match(path) is not None


@cache
def _compile_glob(pattern: str, *, paths: bool) -> re.Pattern[str]:
    """Return a glob as an expression; in paths `*` stays within a folder and `**` does not."""
    parts = []
    for piece in re.split(r"(\*\*/|\*+|\?)", pattern):
        if piece == "**/" and paths:
            parts.append("(?:.*/)?")
        elif piece[:1] == "*":
            parts.append("[^/]*" if paths and piece == "*" else ".*")
            parts.append("/" if piece == "**/" else "")
        else:
            parts.append("." if piece == "?" else re.escape(piece))
    return re.compile("".join(parts) + r"\Z", re.DOTALL)
