"""Secrets that are written down in a file: what masking would hide, weighed by what it looks like.

Masking hides rather too much; a finding has to be true. So a value counts by what it is, and by
where it stands:

what                                              in code and settings  in tests and documentation
------------------------------------------------  --------------------  --------------------------
a key with the mark of its provider               critical              major; minor if repetitive
a private key, a JSON web token, a password hash  critical              minor
a hash or web token that is a sample by its line  minor                 minor
a value that looks drawn at random                critical              minor
another value with digits: `hunter2`              critical              not reported
words alone: `letmein`                            minor in code         not reported
a name, a call, a type, a template, `changeme`    not reported          not reported
"""

from __future__ import annotations

import ast
import re
from base64 import b64decode
from collections import Counter
from math import log2
from pathlib import PurePath
from typing import TYPE_CHECKING

from tape.masking.secrets import find_secrets

from .findings import SEVERITIES, ReviewFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tape.masking.secrets import FoundSecret

    from .diff import ReviewedFile
    from .findings import Severity

_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{40}")
_KEY_LINES = 12
"""Behind the first line of a private key, with its head, and its body if it has one."""
_CONTEXT_KINDS = frozenset(
    {"assignment", "authorization", "base64", "bearer", "cookie", "docker", "flag", "netrc"}
    | {"pgpass", "url-password", "wordpress"}
)
"""Kinds that only what stands around them tells."""
_SAMPLE_KINDS = frozenset({"jwe", "jwt", "password-hash", "private-key"})
"""Kinds that tests and manuals make for themselves."""
_SAMPLE_NAME = re.compile(r"(?:\b|_)(?:tests?|samples?|examples?|dummy|fake|mock)", re.IGNORECASE)
"""Before a hash or web token: the code checks itself with it."""
_SAMPLE_PART = re.compile(
    r"(?:^|[._-])(?:tests?|testing|testdata|fixtures?|examples?|samples?|demos?|docs?"
    r"|documentation|unit|integration|functional|mocks?|fakes?|stubs?|specs?|cassettes?|tutorials?|conftest)(?:$|[._\d-])"
    r"|^t$|^dummy|^(?:readme|changelog|changes|history|news|pkg-info)(?:\.|$)|\.(?:dist|egg)-info$"
    r"|\.(?:md|rst|adoc|mdx)$",
    re.IGNORECASE,
)
"""In a part of a path: what it holds is for a test or a reader."""
_CODE = (
    ".py", ".pyi", ".pyw", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte",
    ".go", ".java", ".kt", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php",
    ".swift", ".scala", ".dart", ".lua", ".ex", ".exs",
)  # fmt: skip
"""Languages in which a text stands in quotes."""
_COMMENT = re.compile(r"\s*(?:#|//|/?\*+(?:[\s/]|$)|--|;)")
_PROSE = re.compile(r"[,.;]?\s+[a-z]+,?\s+[a-z]+")
"""Behind a word of a sentence, such as a help text."""
_TEMPLATE = re.compile(r"\{[\w.!:\[\]]*\}|%[sdr](?!\w)|%\(\w+\)|\$[{(]|<[\w -]+>|\.\.\.|…")
_PLACEHOLDER = re.compile(
    r"example|sample|dummy|placeholder|change.?me|replace.?me|insecure|redacted|passw(?:or)?d"
    r"|secret|token|credential|x{4}"
    r"|(?<![a-z])(?:tests?|foo|bar|baz|keys?|fake|mock|demo|user|pass|your|my|value|string|none)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_MADE_UP_KEY = re.compile(r"example|dummy|placeholder|redacted|fake|x{5}", re.IGNORECASE)
_NO_LETTERS = re.compile(r"\W*|\d+(?:\.\d+)+-?")
"""Stars in place of a secret, or a version."""
_LOCAL = re.compile(r"@(?:localhost|127\.0\.0\.1|\[::1\])(?![\w.])")
_SEQUENCE = re.compile(r"0?1234567[0-9]*|abcdef[g-z]*", re.IGNORECASE)
_MIN_RANDOM = 12
"""Characters; a shorter value is a password, which somebody may have thought of."""
_MIN_BITS = 3.0
"""Shannon entropy of a character of what was drawn at random."""
_MIN_KEY_BITS = 3.5
_FIX = "read it from the environment, and replace it where it is in use"


def is_sample_path(path: str) -> bool:
    """Return whether a file is for tests or readers, by its path."""
    return any(_SAMPLE_PART.search(part) for part in PurePath(path).parts)


def find_written_secrets(file: ReviewedFile) -> Iterator[ReviewFinding]:
    """Yield the secrets in a file, one a line."""
    in_text = find_secrets(file.text)
    if not in_text:
        return
    has_start = _find_any({secret.value.partition("\n")[0] for secret in in_text})
    by_line = {
        number: find_secrets(line) for number, line in enumerate(file.lines, 1) if has_start(line)
    }
    # What only the line before it tells: a value of YAML, or of a netrc file
    on_lines = {secret.value for those in by_line.values() for secret in those}
    for secret in in_text:
        if secret.value not in on_lines and secret.kind in _CONTEXT_KINDS:
            at = file.text.find(secret.value)
            by_line[file.text.count("\n", 0, at) + 1].append(secret)
    place = _FilePlace(file)
    for number, those in by_line.items():
        severity = place.judge_line(number, file.get_line(number), those)
        if severity is not None:
            text = "a secret is written here: whoever reads the repository has it"
            if severity == "minor":
                text = "this looks like a secret: it must not be one that is in use"
            yield ReviewFinding(file.path, (number, number), severity, "secret", text, _FIX)


_MAX_BEGINNING = 8
"""Characters of a text that are looked for at first."""


def _find_any(texts: set[str]) -> Callable[[str], bool]:
    """Return what says whether a line holds one of many texts, without trying each of them."""
    size = min(_MAX_BEGINNING, *map(len, texts))
    by_beginning: dict[str, list[str]] = {}
    for text in texts:
        by_beginning.setdefault(text[:size], []).append(text)
    # one set of characters for each place: far fewer places are left to be looked at
    sets = (re.escape("".join({*characters})) for characters in zip(*by_beginning, strict=True))
    find_places = re.compile(f"(?={''.join(f'[{characters}]' for characters in sets)})").finditer

    def find(line: str) -> bool:
        return any(
            line.startswith(text, at)
            for at in (place.start() for place in find_places(line))
            for text in by_beginning.get(line[at : at + size], ())
        )

    return find


class _FilePlace:
    """A file, and what its lines are."""

    def __init__(self, file: ReviewedFile) -> None:
        self._lines = file.lines
        path = PurePath(file.path)
        self._is_sample = is_sample_path(file.path)
        self._is_code = path.suffix.lower() in _CODE
        is_python = path.suffix.lower() in {".py", ".pyi", ".pyw"}
        self._docs, self._texts = _find_long_texts(file.text) if is_python else (set(), set())

    def judge_line(self, number: int, line: str, those: list[FoundSecret]) -> Severity | None:
        """Return how bad the worst secret in a line is; None where there is none."""
        severities = {self._judge_secret(secret, number, line) for secret in those}
        return next((severity for severity in SEVERITIES if severity in severities), None)

    def _is_sample_line(self, number: int) -> bool:
        return self._is_sample or number in self._docs

    def _judge_secret(self, secret: FoundSecret, number: int, line: str) -> Severity | None:
        is_sample = self._is_sample_line(number)
        if secret.kind in _SAMPLE_KINDS:
            if secret.kind == "private-key":
                return _weigh_sample(is_sample=is_sample) if self._has_key_body(number) else None
            before = line.partition(secret.value)[0]
            is_named = _SAMPLE_NAME.search(before) is not None
            return _weigh_sample(
                is_sample=is_sample or is_named or _COMMENT.match(line) is not None
            )
        if secret.kind not in _CONTEXT_KINDS:
            return _judge_key(secret.value, is_sample=is_sample)
        value = _decode_basic(secret.value) if secret.kind == "authorization" else secret.value
        is_made_up = _is_made_up(value)
        is_local = _LOCAL.match(line.partition(secret.value)[2]) is not None
        is_comment = secret.kind != "assignment" and _COMMENT.match(line) is not None
        if is_made_up or is_sample or is_comment or is_local:
            return "minor" if not is_made_up and _is_random(value) else None
        if self._is_code:
            return self._judge_in_code(secret, number, line)
        return "critical"

    def _has_key_body(self, number: int) -> bool:
        """Return whether a line and those after it hold a private key, not its marks alone."""
        text = "\n".join(self._lines[number - 1 : number + _KEY_LINES])
        return _KEY_BODY.search(text.partition("-----END")[0]) is not None

    def _judge_in_code(self, secret: FoundSecret, number: int, line: str) -> Severity | None:
        """Return how bad a value in code is: names, calls and types are not in quotes."""
        value = secret.value
        if value.replace("-", "").replace("_", "").isalpha():
            whole = re.search(rf"[\"'`]{re.escape(value)}[\"'`]", line)
            return None if whole is None else "minor"
        before, _, after = line.partition(value)
        if secret.kind == "assignment" and before.endswith(": ") and _PROSE.match(after):
            return None
        return "critical" if number in self._texts or _is_quoted(before) else None


def _weigh_sample(*, is_sample: bool) -> Severity:
    return "minor" if is_sample else "critical"


def _judge_key(value: str, *, is_sample: bool) -> Severity | None:
    """Return how bad a key with the mark of its provider is."""
    if _MADE_UP_KEY.search(value) or _is_sequence(value):
        return None
    if not is_sample:
        return "critical"
    return "minor" if _count_bits(value) < _MIN_KEY_BITS else "major"


def _is_made_up(value: str) -> bool:
    """Return whether a value is a placeholder for a secret."""
    if _TEMPLATE.search(value) or _PLACEHOLDER.search(value):
        return True
    return _NO_LETTERS.fullmatch(value) is not None or _is_sequence(value)


def _is_sequence(value: str) -> bool:
    """Return whether little is left of a value without `1234567890` and `abcdef`."""
    rest = _SEQUENCE.sub("", value)
    return rest != value and len(rest) < _MIN_RANDOM


def _find_long_texts(text: str) -> tuple[set[int], set[int]]:
    """Return the lines of docstrings, and those of texts of several lines, in Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set(), set()
    docs, texts = set[int](), set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as value):
                docs.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
            case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
                last = node.end_lineno or node.lineno
                texts.update(range(node.lineno + 1, last + 1))
    return docs, texts


def _is_quoted(before: str) -> bool:
    """Return whether a quote is open at the end of a line's beginning."""
    bare = before.replace('\\"', "").replace("\\'", "")
    return any(bare.count(quote) % 2 for quote in "\"'`")


def _decode_basic(value: str) -> str:
    """Return the password in the words of basic authentication; else what was given."""
    try:
        user, colon, password = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return value
    is_same = password.casefold() in {"", user.casefold()}
    return ("example" if is_same else password) if colon else value


def _is_random(value: str) -> bool:
    """Return whether a value looks drawn by a machine: long, mixed, without words."""
    has_both = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return len(value) >= _MIN_RANDOM and has_both and _count_bits(value) >= _MIN_BITS


def _count_bits(value: str) -> float:
    """Return the Shannon entropy of a character."""
    size = len(value)
    return -sum(count / size * log2(count / size) for count in Counter(value).values())
