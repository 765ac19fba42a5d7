"""Masking: replace what looks like a secret in text and in JSON by `[redacted:kind]`; pure.

A secret that matches none of `PATTERNS` is not found. Masking again changes nothing.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .automaton import build_automaton
from .hints import select_patterns
from .patterns import ASSIGNMENT_HINT, PATTERNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .automaton import Automaton
    from .patterns import SecretPattern


_SEALED_MEMBERS = frozenset(
    b'"%b":' % name
    for name in (
        *(b"id", b"call_id", b"tool_call_id", b"tool_use_id"),
        *(b"signature", b"thoughtSignature", b"encrypted_content"),
    )
)
"""JSON members that a provider compares with what it wrote."""
_FILE_BYTES = re.compile(rb'"(?:data:[^,"]*;base64,)?[A-Za-z0-9+/]{200,}={0,2}"')
"""The bytes of a picture or a file."""


class MaskedText(NamedTuple):
    """A text without its secrets."""

    text: str
    secrets: int
    """How many were found."""


class MaskedJson(NamedTuple):
    """JSON without the secrets in its strings; all else is unchanged, byte for byte."""

    data: bytes
    secrets: int


class FoundSecret(NamedTuple):
    """A secret as it is written in a text."""

    kind: str
    value: str


_ASSIGNMENT = "assignment"
_SECRET_NAME = re.compile(rb"(?i:key|secret|token|pass|pwd|authorization|credential|cookie|_auth)")
"""Matches member names that imply a secret value."""
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_HIDING_ESCAPES = (b"\\u00", b"\\/")
"""An escape that can hide letters, so that hints cannot be found."""
_JSON_MEMBER = re.compile(rb'("(?:[^"\\]++|\\.)*+":)?("(?:[^"\\]++|\\.)*+")', re.DOTALL)
_STRUCTURAL_MEMBERS = frozenset({b'"phase":', b'"branch":', b'"call_id":', b'"$blob":'})
"""Members that are part of a tape's structure."""


_ENCODED = re.compile(
    r"(?<![\w+/=-])(?:[C-Za-f][A-Za-z0-9+/]{3}){4,1000}"
    r"(?:={0,2}|[C-Za-f](?:[A-Za-z0-9+/]{2}={1,2}|[A-Za-z0-9+/]==))(?![\w+/=-])"
)
"""What may be a short text in base64: every first of four letters says that a byte is printable."""
_ENCODED_MARK = "[redacted:base64]"


def mask_text(text: str) -> MaskedText:
    """Return a text with its secrets masked."""
    likely = _find_likely(text)
    if likely is not None and not likely:
        return MaskedText(text, 0)
    masked = _apply_patterns(text, _select_patterns(text), likely)
    encoded = _mask_encoded(masked, likely)
    return MaskedText(encoded.text, masked.secrets + encoded.secrets)


def find_secrets(text: str) -> list[FoundSecret]:
    """Return what `mask_text` masks in a text, each part with its kind."""
    secrets: list[FoundSecret] = []
    likely = _find_likely(text)
    if likely is not None and not likely:
        return secrets
    masked = _apply_patterns(text, _select_patterns(text), likely, secrets)
    encoded = (match[0] for match in _ENCODED.finditer(masked.text) if _is_encoded_secret(match[0]))
    return [*secrets, *(FoundSecret("base64", value) for value in encoded)]


@cache
def _get_automaton() -> Automaton | None:
    return build_automaton((*(pattern.text for pattern in PATTERNS), _ENCODED.pattern))


def _find_likely(text: str) -> frozenset[str] | None:
    """Return the expressions that may match in a text, nearly always none; None for all of them.

    One pass tells.
    """
    automaton = _get_automaton()
    try:
        return None if automaton is None else automaton.find(text.encode())
    except UnicodeEncodeError:  # a surrogate
        return None


def _mask_encoded(masked: MaskedText, likely: frozenset[str] | None) -> MaskedText:
    """Mask what holds a secret when it is decoded: a line of an environment in base64.

    `likely` are the expressions that may match in the text as it was before anything was masked.
    """
    text, secrets = masked.text, 0
    if not masked.secrets and likely is not None and _ENCODED.pattern not in likely:
        return MaskedText(text, 0)

    def mask(match: re.Match[str]) -> str:
        nonlocal secrets
        if not _is_encoded_secret(match[0]):
            return match[0]
        secrets += 1
        return _ENCODED_MARK

    return MaskedText(_ENCODED.sub(mask, text), secrets)


def _is_encoded_secret(word: str) -> bool:
    try:
        decoded = b64decode(word, validate=True).decode("ascii")
    except ValueError:  # of base64 and of text
        return False
    if not decoded.replace("\n", "").replace("\r", "").replace("\t", "").isprintable():
        return False
    return _apply_patterns(decoded, _select_patterns(decoded), None).secrets > 0


def _may_hold_encoded_secret(text: str) -> bool:
    """Return whether a string of JSON may hold what `_mask_encoded` masks."""
    words = _ENCODED.finditer(_ESCAPE.sub(" ", text) if "\\" in text else text)
    return any(_is_encoded_secret(word[0]) for word in words)


def _select_patterns(text: str) -> list[SecretPattern]:
    """Return the patterns that can match in a text or in JSON."""
    patterns = select_patterns(text)
    if any(pattern.kind == _ASSIGNMENT for pattern in patterns) and not ASSIGNMENT_HINT.search(
        text.lower()
    ):
        return [pattern for pattern in patterns if pattern.kind != _ASSIGNMENT]
    return patterns


def _apply_patterns(
    text: str,
    patterns: list[SecretPattern],
    likely: frozenset[str] | None,
    values: list[FoundSecret] | None = None,
) -> MaskedText:
    """Mask what patterns find; `values` gets what that was.

    Only those whose expression is `likely` to match are tried, all of them if that is None.
    """
    secrets = 0
    for pattern in patterns:
        if likely is not None and pattern.text not in likely:
            continue
        group = "secret" if "secret" in pattern.expression.groupindex else 0
        marker = f"[redacted:{pattern.kind}]"

        def mask(
            match: re.Match[str],
            group: str | int = group,
            marker: str = marker,
            kind: str = pattern.kind,
        ) -> str:
            if values is not None:
                values.append(FoundSecret(kind, match[group]))
            start, end = (at - match.start() for at in match.span(group))
            return f"{match[0][:start]}{marker}{match[0][end:]}"

        text, count = pattern.expression.subn(mask, text)
        if count:  # in a text that changed, others may match
            secrets += count
            likely = _find_likely(text) if likely is not None else None
    return MaskedText(text, secrets)


def _is_structural(name: bytes, _: bytes) -> bool:
    return name in _STRUCTURAL_MEMBERS


def mask_json(
    data: bytes, is_sealed: Callable[[bytes, bytes], bool] = _is_structural
) -> MaskedJson:
    """Return compact JSON with the secrets in its strings masked, names of members included.

    Sealed members are unchanged: `is_sealed` gets a member's name, with its colon, and its value,
    both as JSON.
    """
    automaton = _get_automaton()
    likely = None if automaton is None else automaton.find_in_json(data)
    if likely is not None and not likely:
        return MaskedJson(data, 0)
    if any(escape in data for escape in _HIDING_ESCAPES):
        patterns = list(PATTERNS)
    else:
        text = data.decode("utf-8", "replace")
        patterns = _select_patterns(text)
        if not patterns and not _may_hold_encoded_secret(text):
            return MaskedJson(data, 0)
    secrets = 0

    def mask(match: re.Match[bytes]) -> bytes:
        nonlocal secrets
        name, value = match.groups(b"")
        if is_sealed(name, value):
            return match[0]
        new_name, in_name = _mask_json_string(name[:-1], patterns, likely) if name else (b"", 0)
        new_value, in_value = _mask_json_string(value, patterns, likely, b"" if in_name else name)
        secrets += in_name + in_value
        return (new_name + b":" if name else b"") + new_value

    return MaskedJson(_JSON_MEMBER.sub(mask, data), secrets)


def _mask_json_string(
    token: bytes, patterns: list[SecretPattern], likely: frozenset[str] | None, name: bytes = b""
) -> MaskedJson:
    """Mask one string of JSON; the member `name` may imply that its value is secret."""
    try:
        text: str = msgspec.json.decode(token)
    except (ValueError, RecursionError):  # not valid text, so no pattern applies
        return MaskedJson(token, 0)
    before = name[1:-1].decode("utf-8", "replace") if _SECRET_NAME.search(name) else ""
    new, secrets = _apply_patterns(f'{before}:"{text}"' if before else text, patterns, likely)
    new = new[len(before) + 2 : -1] if before else new
    new, encoded = _mask_encoded(MaskedText(new, secrets), likely)
    if not secrets + encoded:
        return MaskedJson(token, 0)
    return MaskedJson(msgspec.json.encode(new), secrets + encoded)


def is_sealed_member(name: bytes, value: bytes) -> bool:
    """Return whether masking would break a member's value."""
    return name in _SEALED_MEMBERS or (bool(name) and _FILE_BYTES.fullmatch(value) is not None)
