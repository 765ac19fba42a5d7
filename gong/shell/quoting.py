"""Decodes quoted text of a shell, and the values of `${name…}` with an operator; pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

from .expansion import ANY_PATH

if TYPE_CHECKING:
    from .expansion import ShellState


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\\n])")
_ANSI_C = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_NAMED_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b"}
_NAMED_ESCAPES |= {"f": "\f", "v": "\v"}
_LAST_CODE_POINT = 0x10FFFF


def split_bare_word(text: str) -> list[tuple[str, bool]]:
    """Return runs of a bare word, each with whether a backslash quotes it."""
    runs: list[tuple[str, bool]] = []
    start = 0
    for escape in _ESCAPED.finditer(text):
        runs.append((text[start : escape.start()], False))
        if escape[1] != "\n":
            runs.append((escape[1], True))
        start = escape.end()
    return [run for run in (*runs, (text[start:], False)) if run[0]]


def unescape_double_quoted(text: str) -> str:
    """Return the text between double quotes, without its escaping backslashes."""
    return _IN_DOUBLE_QUOTES.sub(lambda match: match[1].strip("\n"), text)


def decode_ansi_c(text: str) -> str:
    r"""Return what stands between `$'` and `'`: `\x2f`, `\057`, `\n` and the like."""
    return _ANSI_C.sub(_decode_escape, text).split("\0")[0]


def _decode_escape(match: re.Match[str]) -> str:
    short, wide, widest, octal, control, other = match.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control[0].upper()) & 0x1F)
    if other:
        return _NAMED_ESCAPES.get(other, other if other in "\\'\"?" else f"\\{other}")
    code = int(short or wide or widest, 16)
    return chr(code) if code <= _LAST_CODE_POINT else "\ufffd"


_CUT = re.compile(r"\$\{([A-Za-z_]\w*)(:?\+|%%?|##?|//?|:)(.{0,200})\}", re.DOTALL)
_RANGE = re.compile(r"\s*(\d*)\s*(?::\s*(\d+)\s*)?")
_NAME_EXPANSION = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PARTS = re.compile(r"((?:\\.|[^/\\])+|/)(?:/(.*))?", re.DOTALL)
"""Pattern and replacement."""
_MAX_CUT_VALUE = 4096
_KNOWN_VALUES = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/bash"}
"""Known starts of values in the environment."""


def expand_operator(text: str, state: ShellState) -> tuple[str | None, ...]:
    """Return the values an expansion may have, None for others; nothing where it is no such one."""
    if text.startswith("${!"):
        return (ANY_PATH,)
    match = _CUT.fullmatch(text)
    if match is None:
        return ()
    name, operator, what = match[1], match[2], _substitute_names(match[3], state)
    if operator in {"+", ":+"}:
        return (what, None)
    if what is None:
        return (None,)
    before = (_KNOWN_VALUES[name],) if name in _KNOWN_VALUES else state.values(name)
    values = (
        _expand_unknown(operator, what) if value is None else _apply_operator(value, operator, what)
        for value in before
    )
    return (*dict.fromkeys(values), None)


def _substitute_names(text: str, state: ShellState) -> str | None:
    """Return a text in which names stand, each with its first value; None for other expansions."""

    def value(match: re.Match[str]) -> str:
        return state.values(match[1] or match[2])[0] or ""

    text = _NAME_EXPANSION.sub(value, text.strip("\"'"))
    if text == "~" or text.startswith("~/"):
        text = state.home + text[1:]
    return None if "$(" in text or "`" in text else text


def _expand_unknown(operator: str, what: str) -> str | None:
    """Return what may be left of a value that is not known."""
    if operator in {"/", "//"}:
        return what.partition("/")[2] or None
    return ANY_PATH if operator == ":" and re.fullmatch(r"\s*0?\s*:\s*1\s*", what) else None


def _apply_operator(value: str, operator: str, what: str) -> str | None:
    if len(value) > _MAX_CUT_VALUE or ANY_PATH in value:
        return None
    if operator == ":":
        match = _RANGE.fullmatch(what)
        if match is None:
            return None
        start = int(match[1] or 0)
        return value[start : start + int(match[2])] if match[2] else value[start:]
    if operator in {"/", "//"}:
        parts = _PARTS.fullmatch(what)
        pattern, new = (parts[1], parts[2] or "") if parts else (what, "")
        pattern, new = pattern.replace("\\/", "/"), new.replace("\\", "")
        fits = re.compile(translate(pattern).removesuffix(r"\Z").removesuffix(r"\z"))
        return fits.sub(lambda _: new, value, count=operator == "/")
    ends = range(len(value) + 1)
    if operator[0] == "#":
        left = [value[i:] for i in ends if fnmatchcase(value[:i], what)]
    else:
        left = [value[:i] for i in reversed(ends) if fnmatchcase(value[i:], what)]
    if not left:
        return value
    return left[-1] if operator in {"##", "%%"} else left[0]
