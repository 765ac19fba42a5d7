"""What quoted text of a shell stands for; pure."""

from __future__ import annotations

import re

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
    for found in _ESCAPED.finditer(text):
        runs.append((text[start : found.start()], False))
        if found[1] != "\n":
            runs.append((found[1], True))
        start = found.end()
    return [one for one in (*runs, (text[start:], False)) if one[0]]


def unescape_double_quoted(text: str) -> str:
    """Return what stands between double quotes, its backslashes taken away."""
    return _IN_DOUBLE_QUOTES.sub(lambda found: found[1].strip("\n"), text)


def decode_ansi_c(text: str) -> str:
    r"""Return what stands between `$'` and `'`: `\x2f`, `\057`, `\n` and the like."""
    return _ANSI_C.sub(_decode_escape, text).split("\0")[0]


def _decode_escape(found: re.Match[str]) -> str:
    short, wide, widest, octal, control, other = found.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control[0].upper()) & 0x1F)
    if other:
        return _NAMED_ESCAPES.get(other, other if other in "\\'\"?" else f"\\{other}")
    code = int(short or wide or widest, 16)
    return chr(code) if code <= _LAST_CODE_POINT else "\ufffd"
