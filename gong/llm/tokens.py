"""Tokens of a text: counted if the tokenizer is installed on this machine, else estimated.

Nothing is ever downloaded. The estimate adds up weighted pieces; its weights were fitted to
o200k_base, and `python bench/tokens.py` shows how far it is off.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tiktoken import Encoding


class TokenCount(NamedTuple):
    """A number of tokens, and how it was found."""

    tokens: int
    exact: bool


class _RankFile(NamedTuple):
    """A file of merge ranks: its address for tiktoken, and its expected hash."""

    url: str
    sha256: str
    data: str


_RANK_FILES = {
    "o200k_base": _RankFile(
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "o200k_base.tiktoken.gz",
    ),
    "cl100k_base": _RankFile(
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "cl100k_base.tiktoken.gz",
    ),
}
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS = {
    "o200k_base": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENGLISH}"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENGLISH}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}
"""How each tokenizer cuts a text before it merges; part of what it is, as its ranks are."""
_O200K = r"gpt-(?:4o|4\.1|[5-9]|oss)|(?:^|/)o[134]|chatgpt|codex"
_CL100K = r"gpt-(?:4|3\.5)"

_UPPER_LETTERS, _LOWER_LETTERS = ascii_uppercase.encode(), ascii_lowercase.encode()
_MARK_BYTES = punctuation.encode()


def _build_class_table(**classes: bytes) -> bytes:
    """Return a table for `bytes.translate`: a byte becomes its class's name, any other a blank."""
    table = bytearray(b" " * 256)
    for name, members in classes.items():
        for member in members:
            table[member] = ord(name)
    return bytes(table)


_CASES = _build_class_table(A=_UPPER_LETTERS, a=_LOWER_LETTERS)
_ALPHANUMERICS = _build_class_table(a=_UPPER_LETTERS + _LOWER_LETTERS, d=digits.encode())
_DIGITS = _build_class_table(d=digits.encode())
_MARKS = _build_class_table(m=_MARK_BYTES)
_LINE_ENDS = _build_class_table(n=b"\r\n")
_BLANKS = _build_class_table(b=b" \t")
_CLASSED = _UPPER_LETTERS + _LOWER_LETTERS + digits.encode() + _MARK_BYTES + b" \t\r\n"
_OTHERS = bytes(set(range(128)) - set(_CLASSED))
_NOT_ASCII = r"[^\x00-\x7f]+"
_SCRIPTS = {
    r"[\u3041-\u30ff\u31f0-\u31ff]+": 690,  # kana
    r"[\uac00-\ud7af\u1100-\u11ff]+": 740,  # hangul
    r"[\u2e80-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]+": 800,  # han
}
# Weights are in thousandths of a token, so that sums are exact.
_OTHER_CHARACTER = 410
_WORD, _LETTER, _SHORT_WORD, _GLUED = 920, 117, 5, 140
_DIGIT_GROUP, _BLANK_RUN, _LINE_END_RUN = 1860, 690, 580
_MARK, _NEXT_MARK = 730, 150
_WHOLE_CHARS = 100_000
"""Characters that are counted at once: the list of words takes thirty times their size."""


def count_tokens(
    text: str, model: str = "", environ: Mapping[str, str] | None = None
) -> TokenCount:
    """Return the tokens of `text` for a model's id; exact if its tokenizer is installed.

    The first exact count loads it, which takes a third of a second.
    """
    tokenizer = "o200k_base" if re.search(_O200K, model) else "cl100k_base"
    if tokenizer == "cl100k_base" and not re.search(_CL100K, model):
        return TokenCount(estimate_tokens(text), exact=False)
    from tempfile import gettempdir  # only for an exact count

    environ = environ or os.environ
    default = str(Path(gettempdir()) / "data-gym-cache")
    folders = (environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    folder = next((folder for folder in folders if folder is not None), default)
    ranks = _load_encoding(tokenizer, folder)
    if not ranks:
        return TokenCount(estimate_tokens(text), exact=False)
    return TokenCount(len(ranks.encode(text, disallowed_special=())), exact=True)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, within 20 % for prose, code and JSON.

    It is never more than the text's bytes in UTF-8: each token of a tokenizer has at least one.

    A word begins at a capital or behind something that is no letter; "HTTPServer2go" is HTTP,
    Server, 2, go. The text is translated once for each class of characters, and pieces are counted
    in the result: a Python loop over the pieces takes eight times as long.
    """
    if len(text) > _WHOLE_CHARS:
        starts = range(0, len(text), _WHOLE_CHARS)
        return sum(estimate_tokens(text[start : start + _WHOLE_CHARS]) for start in starts)
    data = text.encode("utf-8", "surrogatepass")
    return min(_estimate_thousandths(text, b" " + data) // -1000 * -1, len(data))


def _estimate_thousandths(text: str, data: bytes) -> int:
    """Return thousandths of a token; `data` is a blank and the text in UTF-8."""
    cases = data.translate(_CASES)
    words = cases.replace(b"AAa", b"AA a").replace(b"aA", b"a A").split()
    longer = Counter(map(len, words))
    extra_letters = sum(
        (size - _SHORT_WORD) * n for size, n in longer.items() if size > _SHORT_WORD
    )
    inner_words = len(words) - data.translate(_ALPHANUMERICS).count(b" a")
    # "12345" becomes "dd" behind one "3": as many groups as there are threes and runs of the rest.
    groups = data.translate(_DIGITS).replace(b"ddd", b"3")
    digit_groups = groups.count(b"3") + groups.count(b" d") + groups.count(b"3d")
    marks = data.translate(_MARKS)
    mark_runs = marks.count(b" m")
    others = len(data) - len(data.translate(None, _OTHERS))
    tokens = 0
    if not text.isascii():
        rest = "".join(re.findall(_NOT_ASCII, text))
        others += len(rest)
        for script, weight in _SCRIPTS.items():
            characters = len("".join(re.findall(script, rest)))
            others -= characters
            tokens += weight * characters
    return (
        tokens
        + _WORD * len(words)
        + _LETTER * extra_letters
        - _GLUED * inner_words
        + _DIGIT_GROUP * digit_groups
        + _BLANK_RUN * (b" " + data[1:].translate(_BLANKS)).count(b" bb")
        + _LINE_END_RUN * data.translate(_LINE_ENDS).count(b" n")
        + _MARK * mark_runs
        + _NEXT_MARK * (marks.count(b"m") - mark_runs)
        + _OTHER_CHARACTER * others
    )


def estimate_cjk_two(text: str) -> int:
    """Return the rough rule of two tokens for a CJK character and 1.3 for a word."""
    characters = len(re.findall(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]", text))
    words = len(re.findall(r"[^\s\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]+", text))
    return ceil(2 * characters + 1.3 * words)


@cache
def _load_encoding(name: str, folder: str) -> Encoding | None:
    """Return the tokenizer when the tiktoken package and its ranks are here; None otherwise."""
    if find_spec("tiktoken") is None:
        return None
    data = _read_ranks(_RANK_FILES[name], folder)
    if data is None:
        return None
    from base64 import b64decode  # only for an exact count

    from tiktoken import Encoding

    pairs = (line.split() for line in data.split(b"\n") if line)
    return Encoding(
        name=name,
        pat_str=_PATTERNS[name],
        mergeable_ranks={b64decode(token): int(rank) for token, rank in pairs},
        special_tokens={},
    )


def _read_ranks(ranks: _RankFile, folder: str) -> bytes | None:
    """Return the ranks from the bpe-openai package, or from where tiktoken downloaded them to."""
    import gzip  # only for an exact count
    import hashlib

    spec = find_spec("bpe_openai")
    packages = (spec and spec.submodule_search_locations) or ()
    name = hashlib.sha1(ranks.url.encode(), usedforsecurity=False).hexdigest()
    files = [Path(package) / "data" / ranks.data for package in packages]
    for file in [*files, *([Path(folder) / name] if folder else [])]:
        if file.exists():
            data = file.read_bytes()
            data = gzip.decompress(data) if file.suffix == ".gz" else data
            if hashlib.sha256(data).hexdigest() == ranks.sha256:
                return data
    return None
