"""`automaton`: whatever a pattern matches, the automaton lets through, in text and in JSON."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.masking.automaton import build_automaton
from tape.masking.patterns import PATTERNS
from tape.masking.secrets import _ENCODED, find_secrets
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


def _is_matched(text: str) -> bool:
    return any(pattern.expression.search(text) for pattern in PATTERNS) or bool(
        _ENCODED.search(text)
    )


@pytest.mark.parametrize("text", SECRETS)
def test_every_known_secret_is_let_through(text):
    assert AUTOMATON.may_match(text.encode()) >= _is_matched(text)
    assert AUTOMATON.may_match_json(msgspec.json.encode([text])) >= _is_matched(text)


@given(TEXTS)
def test_a_text_that_a_pattern_matches_is_let_through(text):
    assert AUTOMATON.may_match(text.encode()) >= _is_matched(text)


@given(st.sampled_from(NAMES), TEXTS, TEXTS)
def test_a_member_that_a_pattern_matches_is_let_through(name, value, other):
    data = msgspec.json.encode({"a": [":", other], name: value, "z": ":"})
    matched = any(map(_is_matched, (value, other, name, f'{name}:"{value}"')))
    assert AUTOMATON.may_match_json(data) >= matched


def test_plain_text_is_not_let_through():
    plain = 'def read(path): return open(path)\n"key": "value", C:\\temp größer\n' * 99
    assert not AUTOMATON.may_match(plain.encode())
    assert not AUTOMATON.may_match_json(msgspec.json.encode({"text": plain, "n": 1}))
    assert find_secrets(plain) == []
