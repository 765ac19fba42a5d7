"""Which written secrets a review reports, and how bad: true ones, and what only looks like one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.review.diff import ReviewedFile
from gong.review.secrets import _find_any, find_written_secrets
from tests.tape.masking.test_secrets import CASES, hexes, made_up

WORDS = {"correcthorse", "hunter"}
"""Passwords without a digit: in code, a word of a text could be anything."""
DRAWN = made_up(24)


def judge(path, text):
    """Return how bad the worst secret in a file is."""
    lines = tuple(text.split("\n"))
    file = ReviewedFile(path, lines, frozenset(range(1, len(lines) + 1)))
    found = {one.severity for one in find_written_secrets(file)}
    return next((one for one in ("critical", "major", "minor") if one in found), None)


@pytest.mark.parametrize("case", CASES)
def test_a_true_secret_is_critical_in_settings_and_in_code(case):
    """M185: every secret that masking knows."""
    text, secret = CASES[case]
    for path in ("conf/prod.yaml", ".env", "deploy.sh"):
        assert judge(path, text) == "critical", path
    if secret not in WORDS:
        assert judge("src/app.py", f"x = {json.dumps(text)}") == "critical"
        assert judge("src/app.js", f"const x = {json.dumps(text)};") == "critical"


KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + made_up(64) + "\n-----END RSA PRIVATE KEY-----"
HASH = "$2b$12$" + made_up(53)
CODE = {
    'password = "hunter2"': "critical",
    f'SECRET_KEY = "{hexes(64)}"': "critical",
    f'    # API_KEY = "{DRAWN}"': "critical",
    f'headers = {{"Authorization": "Bearer {DRAWN}"}}': "critical",
    f'url = "https://ada:{DRAWN}@db.intern/x"': "critical",
    f'KEY = """{KEY}"""': "critical",
    'password = "letmein"': "minor",
    f'def sign(token):\n    """Send it.\n\n    oauth_token="{DRAWN}"\n    """': "minor",
    f"# Authorization: Bearer {DRAWN}": "minor",
    f'    # v1: "{HASH}"': "minor",
    f'TEST_HASH_2A = "{HASH}"': "minor",
    f'    _test_hash = ("word", "{HASH}")': "minor",
    f'    if test_crypt("test", b"{HASH}"):': "minor",
    f'ADMIN = "{HASH}"': "critical",
    f'latest = "{HASH}"': "critical",
    "private_key: Ed25519PrivateKey | Ed448PrivateKey": None,
    "password = get_password2(user1, token=token1)": None,
    "auth_token = tokens2[key3]": None,
    'api_key = os.environ["API_KEY_2"]': None,
    'api_key = f"{prefix}-{number2}"': None,
    'password = "%(password2)s"': None,
    'password = "changeme1"': None,
    'token = "your-token-123"': None,
    'key = "AKIAIOSFODNN7EXAMPLE"': None,
    'parser.add_argument("--token", help="token: 32characters, from the page")': None,
    'raise ValueError("password: too short")': None,
    'MARKS = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----")': None,
    'headers = {"Authorization": "Basic dXNlcm5hbWU6cGFzc3dvcmQ="}': None,
    'password = ":****"': None,
    'url = "postgresql://postgres:dbos2@localhost:5432/app"': None,
    'token = "ghp_' + "x" * 36 + '"': None,
    'token = "sk-1234567890abcdef1234567890abcdef"': None,
}


@pytest.mark.parametrize("text", CODE)
def test_code_is_distinguished_from_secrets(text):
    """M185: names, calls, types, templates, placeholders and help texts are none."""
    assert judge("src/app.py", text) == CODE[text]


def test_what_tests_and_documentation_hold_is_never_critical():
    for path in (
        "tests/test_a.py",
        "t/unit/a.py",
        "docs/config.rst",
        "README.md",
        "dummy/a.key",
        "a-1.dist-info/METADATA",
    ):
        assert judge(path, KEY) == "minor", path
        assert judge(path, f'SECRET_KEY = "{hexes(64)}"') == "minor", path
        assert judge(path, 'password = "hunter2"') is None, path
        assert judge(path, f'token = "ghp_{made_up(36)}"') == "major", path
    assert judge("src/contest/latest.py", 'password = "hunter2"') == "critical"


def test_a_version_and_a_password_of_this_machine_are_no_secrets_of_settings():
    assert judge("VERSIONS", "pwd: 3.0-") is None
    assert judge("conf/prod.yaml", "url: redis://:hunter2@127.0.0.1:6379") is None
    assert judge("conf/prod.yaml", f"url: redis://:{DRAWN}@localhost:6379") == "minor"
    assert judge("conf/prod.yaml", "url: redis://:hunter2@localhost.example.org") == "critical"


def test_a_secret_that_the_line_before_tells_is_found_in_its_line():
    lines = ("db_password: |", "  hunter2!", "other: |", "  x")
    (found,) = find_written_secrets(ReviewedFile("a.yaml", lines, frozenset({1, 2})))
    assert found.lines == (2, 2)


@pytest.mark.slow
def test_the_library_of_python_has_no_critical_secret():
    """Aim of the issue: at most one false critical in ten packages."""
    root = Path(json.__file__).parent.parent
    for part in ("*.py", "http/*.py", "email/*.py", "urllib/*.py", "asyncio/*.py"):
        for file in root.glob(part):
            path = str(file.relative_to(root))
            assert judge(path, file.read_text("utf-8", "replace")) != "critical", path


LETTERS = st.text("ab-]^\\", max_size=12)


@given(st.sets(LETTERS, min_size=1, max_size=6), LETTERS)
def test_a_line_that_holds_any_of_many_texts_is_found(texts, line):
    assert _find_any(texts)(line) == any(text in line for text in texts)
