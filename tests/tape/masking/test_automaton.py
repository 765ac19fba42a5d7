"""`automaton`: whatever a pattern matches, the automaton lets through, in text and in JSON."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.masking.automaton import build_automaton
from tape.masking.patterns import PATTERNS
from tape.masking.secrets import (
    _ENCODED,
    _HIDING_ESCAPES,
    MaskedText,
    _apply_patterns,
    _mask_encoded,
    _mask_json_string,
    _select_patterns,
    find_secrets,
    mask_json,
    mask_text,
)
from tests.tape.masking.test_secrets import CASES, KEYS

pytest.importorskip("re2")
EXPRESSIONS = (*(pattern.text for pattern in PATTERNS), _ENCODED.pattern)
AUTOMATON = build_automaton(EXPRESSIONS)
SECRETS = [*KEYS.values(), *(part for case in CASES for part in case if isinstance(part, str))]
NAMES = [
    "password",
    "api_key",
    "Authorization",
    "text",
    "token\\",
    'to"ken',
    ":",
    "\u017fecret",
    "",
]
PIECES = st.one_of(
    st.sampled_from(SECRETS),
    st.sampled_from(sorted({hint for pattern in PATTERNS for hint in pattern.hints})),
    st.sampled_from(["\\", '"', "\\n", "\n", "\t", ":", ' = "', ": ", "=", "é", "\u2028", "\x1f"]),
    st.text("aZ0é/-_\u017f\u0131", max_size=12),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)


MEMBER = '{"a":[":","%s"],"%s":"%s","z":":"}'
ESCAPES = st.integers(0, 5)
"""Every how many letters one is escaped though it need not be; 0 for none."""


def _match_all(*texts: str) -> set[str]:
    """The expressions that match in one of some texts."""
    return {
        expression for expression in EXPRESSIONS for text in texts if re.search(expression, text)
    }


def _is_let_through(chosen: frozenset[str] | None, expected: set[str]) -> bool:
    return chosen is None or chosen >= expected


def _escape(text: str, every: int) -> str:
    """A text as another program may write it in JSON: with escapes that are not needed."""
    parts = []
    for number, character in enumerate(text, 1):
        if character == "/" and every == 1:
            parts.append("\\/")
        elif every and number % every == 0:
            parts.append(json.dumps(character, ensure_ascii=True)[1:-1])
            if len(parts[-1]) == 1:
                parts[-1] = f"\\u{ord(character):04X}"
        else:
            parts.append(json.dumps(character, ensure_ascii=False)[1:-1])
    return "".join(parts)


@pytest.mark.parametrize("text", SECRETS)
def test_every_known_secret_is_let_through(text):
    expected = _match_all(text)
    assert _is_let_through(AUTOMATON.find(text.encode()), expected)
    assert _is_let_through(AUTOMATON.find_in_json(msgspec.json.encode([text])), expected)
    for every in range(1, 4):
        data = f'["{_escape(text, every)}"]'.encode()
        assert json.loads(data) == [text]
        assert _is_let_through(AUTOMATON.find_in_json(data), expected)


@given(TEXTS)
def test_a_text_that_a_pattern_matches_is_let_through(text):
    assert _is_let_through(AUTOMATON.find(text.encode()), _match_all(text))


@given(st.sampled_from(NAMES), TEXTS, TEXTS, ESCAPES)
def test_a_member_that_a_pattern_matches_is_let_through(name, value, other, every):
    written = [_escape(text, every) for text in (other, name, value)]
    data = (MEMBER % tuple(written)).encode()
    # A value is looked at behind its name as JSON has it.
    expected = _match_all(value, other, name, f'{name}:"{value}"', f'{written[1]}:"{value}"')
    assert _is_let_through(AUTOMATON.find_in_json(data), expected)


@given(st.sampled_from(NAMES), TEXTS, TEXTS, ESCAPES)
def test_masking_with_it_changes_nothing_of_what_is_masked(name, value, other, every):
    """Against the same patterns, each tried on each string."""
    written = [_escape(text, every) for text in (other, name, value)]
    data = (MEMBER % tuple(written)).encode()
    patterns = list(PATTERNS)
    if not any(escape in data for escape in _HIDING_ESCAPES):
        patterns = _select_patterns(data.decode())
    masked = mask_json(data)
    texts = json.loads(masked.data)
    plain = [_mask_json_string(f'"{written[0]}"'.encode(), patterns, None)]
    new_name = _mask_json_string(f'"{written[1]}"'.encode(), patterns, None)
    behind = b"" if new_name.secrets else f'"{written[1]}":'.encode()
    plain += [new_name, _mask_json_string(f'"{written[2]}"'.encode(), patterns, None, behind)]
    assert masked.secrets == sum(one.secrets for one in plain)
    assert texts["a"][1] == json.loads(plain[0].data)
    assert texts[json.loads(plain[1].data)] == json.loads(plain[2].data)
    assert mask_text(value) == _mask_plainly(value)


def _mask_plainly(text: str) -> MaskedText:
    """What `mask_text` returns without an automaton."""
    masked = _apply_patterns(text, _select_patterns(text), None)
    encoded = _mask_encoded(masked, None)
    return MaskedText(encoded.text, masked.secrets + encoded.secrets)


def test_plain_text_is_not_let_through():
    plain = 'def read(path): return open(path)\n"key": "value", C:\\temp größer\n' * 99
    coloured = f"\x1b[31m{plain}\x1b[0m http://example.com/\n"
    for text in (plain, coloured):
        assert AUTOMATON.find(text.encode()) == frozenset()
        data = msgspec.json.encode({"text": text, "n": 1})
        assert AUTOMATON.find_in_json(data) == frozenset()
        assert AUTOMATON.find_in_json(data.replace(b"/", b"\\/")) == frozenset()
        assert find_secrets(text) == []
