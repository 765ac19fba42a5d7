"""Patterns for paths made regular expressions (pure): `*`, `?`, `[a-z]`, `**`, and `{a,b}`.

`*` and `?` never stand for "/". A pattern without "/" is held against the last name alone, any
other against the whole path, relative to the folder that is searched.
"""

from __future__ import annotations

import re

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-.0-~",
    "lower": "a-z",
    "print": " -.0-~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_SPECIAL = re.compile(r"\[:(\w+):\]")


def path_pattern(glob: str) -> re.Pattern[str]:
    """Return what matches the paths a glob means; the whole path is matched."""
    glob = glob.removeprefix("./")
    anywhere = "" if "/" in glob.rstrip("/") else "(?:.*/)?"
    body = "|".join(translated(one) for one in _alternatives(glob.strip("/")))
    return re.compile(f"{anywhere}(?:{body})", re.DOTALL)


def translated(glob: str) -> str:
    """Return the source of a regular expression for one glob without braces."""
    parts, place = [], 0
    while place < len(glob):
        source, place = _next(glob, place)
        parts.append(source)
    return "".join(parts)


def _next(glob: str, place: int) -> tuple[str, int]:
    """Return what one element of a glob becomes, and where the next begins."""
    character = glob[place]
    if character == "*":
        return _stars(glob, place)
    if character == "?":
        return "[^/]", place + 1
    if character == "[":
        return _set(glob, place)
    if character == "\\" and place + 1 < len(glob):
        return re.escape(glob[place + 1]), place + 2
    return re.escape(character), place + 1


def _stars(glob: str, place: int) -> tuple[str, int]:
    end = place
    while end < len(glob) and glob[end] == "*":
        end += 1
    after = glob[end : end + 1]
    alone = (place == 0 or glob[place - 1] == "/") and after in {"", "/"}
    if end - place == 1 or not alone:
        return "[^/]*", end
    return ("(?:.*/)?", end + 1) if after else (".*", end)


def _set(glob: str, place: int) -> tuple[str, int]:
    """Return a set of characters; one that is not closed matches nothing."""
    start = place + 1
    negated = glob[start : start + 1] in {"!", "^"}
    start += negated
    at = start
    members: list[str | None] = []
    while at < len(glob) and (glob[at] != "]" or at == start):
        member, at = _member(glob, at)
        members.append(member)
    if at >= len(glob) or None in members:
        return "(?!)", len(glob)
    inside = "".join(filter(None, members))
    if not inside:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1


def _member(glob: str, at: int) -> tuple[str | None, int]:
    """Return a character, range or class of a set; None for a class that is unknown."""
    special = _SPECIAL.match(glob, at)
    if special:
        return _CLASSES.get(special[1]), special.end()
    first, at = _character(glob, at)
    if glob[at : at + 1] != "-" or glob[at + 1 : at + 2] in {"", "]"}:
        return re.escape(first), at
    last, at = _character(glob, at + 1)
    # As in git, a range that ends before it begins holds its first character.
    return (f"{re.escape(first)}-{re.escape(last)}" if first <= last else re.escape(first)), at


def _character(glob: str, at: int) -> tuple[str, int]:
    escaped = glob[at] == "\\" and at + 1 < len(glob)
    return glob[at + escaped], at + escaped + 1


def _alternatives(glob: str) -> list[str]:
    """Return the globs that `{a,b}` stands for, innermost braces first."""
    found = re.search(r"(?<!\\)\{([^{}]*)\}", glob)
    if found is None:
        return [glob]
    before, after = glob[: found.start()], glob[found.end() :]
    return [
        one for choice in found[1].split(",") for one in _alternatives(f"{before}{choice}{after}")
    ]
