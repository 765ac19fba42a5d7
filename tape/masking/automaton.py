"""Whether a text may hold a secret, found in one pass by an automaton of RE2; pure.

Each pattern of `PATTERNS` becomes a wider one without what RE2 lacks: looks around, places and
references are left out, long repetitions have no upper bound. So every text that a pattern matches
is matched by its wider form. Where RE2 is not installed, or cannot say, any text may hold one.
"""

from __future__ import annotations

import re
from functools import cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONG = 8
"""Repetitions beyond this number are not counted: counting makes the automaton large."""
_MEMORY = 64 << 20
"""Bytes of states; RE2 drops them and begins again when they are full."""
_WIDER = {
    ops.CATEGORY_DIGIT: r"\d\x{80}-\x{10FFFF}",
    ops.CATEGORY_SPACE: r"\s\x{b}\x{1c}-\x{1f}\x{80}-\x{10FFFF}",
    ops.CATEGORY_WORD: r"\w\x{80}-\x{10FFFF}",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_NOT_WORD: r"\W",
}
"""Classes of characters: those of RE2 are of ASCII only."""
_NARROWER = {ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_SPACE: r"\s", ops.CATEGORY_WORD: r"\w"}
"""The same inside a class that is negated."""
_FOLDED = re.compile(rb"\xc4[\xb0\xb1]|\xc5\xbf|\xe2\x84\xaa")
"""Letters that count as ASCII ones where case is ignored, but not for RE2: dotless i, long s."""
_ESCAPES = (
    *((rb"\n", b"\n"), (rb"\r", b"\r"), (rb"\t", b"\t"), (rb"\b", b"\b"), (rb"\f", b"\f")),
    *((b"\1", b'"'), (b"\0", b"\\")),
)
_MARKS = (rb"\u0000", rb"\u0001")
_UNICODE_ESCAPES = re.compile(rb"(?:\\u[0-9a-fA-F]{4})+")
_NOTHING: frozenset[str] = frozenset()


class Automaton:
    """The wider forms of expressions, together."""

    def __init__(self, expressions: Iterable[str]) -> None:
        import re2  # noqa: PLC0415 (an extra, which only masking needs)

        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        self._always = self._set.Add("")  # matches every text: without it RE2 gave up
        self._expressions = {
            self._set.Add(build_wider_expression(expression)): expression
            for expression in expressions
        }
        self._set.Compile()

    def find(self, text: bytes) -> frozenset[str] | None:
        """Return the expressions that may match in a text in UTF-8; None for all of them."""
        if not text.isascii() and _FOLDED.search(text):
            return None
        numbers = self._set.Match(text)
        if numbers == [self._always]:  # as nearly always
            return _NOTHING
        if self._always not in numbers:
            return None
        return frozenset(self._expressions[n] for n in numbers if n != self._always)

    def find_in_json(self, data: bytes) -> frozenset[str] | None:
        """Return those that may match in a string of compact JSON, or in `name:"value`.

        None for all of them.
        """
        if b"\\" not in data:
            return self.find(data.replace(b'":"', b':"'))
        if b"\0" in data or b"\1" in data or any(escape in data for escape in _MARKS):
            return None
        # A backslash and a quote of a string are marked until the quotes of JSON are known
        text = data.replace(b"\\\\", b"\0").replace(rb"\"", b"\1").replace(b'":"', b':"')
        for escape, character in _ESCAPES:
            text = text.replace(escape, character)
        if rb"\u" not in text and rb"\/" not in text:
            return self.find(text)
        # The value of a member is read behind its name as JSON has it, with its escapes
        escaped = self.find(text)
        unescaped = self.find(_UNICODE_ESCAPES.sub(_decode_escapes, text.replace(rb"\/", b"/")))
        return None if escaped is None or unescaped is None else escaped | unescaped


def _decode_escapes(match: re.Match[bytes]) -> bytes:
    """Return the UTF-8 of escapes; a surrogate without its other half becomes U+FFFD."""
    units = bytes.fromhex(match[0].replace(rb"\u", b"").decode())
    return units.decode("utf-16-be", "replace").encode()


@cache
def build_automaton(expressions: tuple[str, ...]) -> Automaton | None:
    """Return the automaton of expressions; None where RE2 is not installed."""
    try:
        return Automaton(expressions)
    except ImportError:
        return None


def build_wider_expression(expression: str) -> str:
    """Return an expression for RE2 that matches in every text in which this one does."""
    return _build_sequence(parser.parse(expression), is_first=True)


def _build_sequence(items: Sequence[tuple[Any, Any]], *, is_first: bool = False) -> str:
    rest = list(items)
    before = ""
    if is_first and rest and _is_class_before(rest[0]):
        # a quote ends the string before, where the text is JSON
        before = '(?:^|"|' + _build_negated_class(rest.pop(0)[1][1][0][1]) + ")"
    return before + "".join(_build_item(kind, value) for kind, value in rest)


def _is_class_before(item: tuple[Any, Any]) -> bool:
    """Return whether it is `(?<![class])`."""
    kind, value = item
    if kind is not ops.ASSERT_NOT or value[0] != -1 or len(value[1]) != 1:
        return False
    inner, members = value[1][0]
    return inner is ops.IN and members[0][0] is not ops.NEGATE


def _build_item(kind: Any, value: Any) -> str:  # noqa: PLR0911 (one for each kind)
    if kind in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
        return ""
    if kind in (ops.ANY, ops.NOT_LITERAL):
        return "(?s:.)"
    if kind is ops.GROUPREF:
        return "(?s:.*)"
    if kind is ops.LITERAL:
        return _build_character(value)
    if kind is ops.IN:
        is_negated = value[0][0] is ops.NEGATE
        return (
            _build_negated_class(value[1:]) if is_negated else f"[{_list_members(value, _WIDER)}]"
        )
    if kind is ops.BRANCH:
        return "(?:" + "|".join(map(_build_sequence, value[1])) + ")"
    if kind is ops.ATOMIC_GROUP:
        return f"(?:{_build_sequence(value)})"
    if kind is ops.SUBPATTERN:
        return _build_group(*value)
    if kind in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return _build_repetition(*value)
    raise NotImplementedError(str(kind))


def _build_group(_: Any, added: int, removed: int, items: Any) -> str:
    ignored = re.IGNORECASE.value
    flag = "i" if added & ignored else "-i" if removed & ignored else ""
    return f"(?{flag}:{_build_sequence(items)})"


def _build_repetition(least: int, most: int, items: Any) -> str:
    end = "" if int(most) > _LONG else int(most)
    return f"(?:{_build_sequence(items)}){{{min(least, _LONG)},{end}}}"


def _build_negated_class(members: Sequence[tuple[Any, Any]]) -> str:
    return f"[^{_list_members(members, _NARROWER)}]"


def _list_members(members: Sequence[tuple[Any, Any]], categories: dict[Any, str]) -> str:
    texts = []
    for kind, value in members:
        if kind is ops.LITERAL:
            texts.append(_build_character(value))
        elif kind is ops.RANGE:
            texts.append("-".join(map(_build_character, value)))
        else:
            texts.append(categories[value])
    return "".join(texts)


def _build_character(character: int) -> str:
    return rf"\x{{{character:x}}}"
