"""Tokens of a text: counted if the tokenizer is installed on this machine, else estimated.

Nothing is ever downloaded. The estimate adds up weighted pieces; its weights were fitted to
o200k_base, and `python bench/tokens.py` shows how far it is off.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from base64 import b64decode
from functools import cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from tempfile import gettempdir
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
_O200K = re.compile(r"gpt-(?:4o|4\.1|[5-9]|oss)|(?:^|/)o[134]|chatgpt|codex")
_CL100K = re.compile(r"gpt-(?:4|3\.5)")

_PIECE = re.compile(
    r"(?P<kana>[\u3041-\u30ff\u31f0-\u31ff]+)"
    r"|(?P<hangul>[\uac00-\ud7af\u1100-\u11ff]+)"
    r"|(?P<han>[\u2e80-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]+)"
    r"|(?P<word>[A-Z]?[a-z]+|[A-Z]+)"
    r"|(?P<digits>[0-9]+)"
    r"|(?P<blanks>[ \t]+)"
    r"|(?P<lines>[\r\n]+)"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_PER_CHARACTER = {"kana": 0.69, "hangul": 0.74, "han": 0.80, "other": 0.41}
"""Tokens for each character of a script."""
_WORD, _LETTER, _SHORT_WORD, _GLUED = 0.92, 0.117, 5, 0.14
_GROUP, _DIGITS = 1.86, 3
_BLANKS, _LINES = 0.69, 0.58
_MARK, _NEXT_MARK = 0.73, 0.15


def count_tokens(
    text: str, model: str = "", environ: Mapping[str, str] | None = None
) -> TokenCount:
    """Return the tokens of `text` for a model's id; exact if its tokenizer is installed.

    The first exact count loads it, which takes a third of a second.
    """
    tokenizer = "o200k_base" if _O200K.search(model) else "cl100k_base"
    if tokenizer == "cl100k_base" and not _CL100K.search(model):
        return TokenCount(estimate_tokens(text), exact=False)
    environ = environ or os.environ
    default = str(Path(gettempdir()) / "data-gym-cache")
    folders = (environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    folder = next((one for one in folders if one is not None), default)
    ranks = _load_encoding(tokenizer, folder)
    if not ranks:
        return TokenCount(estimate_tokens(text), exact=False)
    return TokenCount(len(ranks.encode(text, disallowed_special=())), exact=True)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, within 20 % for prose, code and JSON."""
    total, glued = 0.0, False
    for match in _PIECE.finditer(text):
        kind, size = match.lastgroup or "other", match.end() - match.start()
        if kind == "word":
            longer = max(0, size - _SHORT_WORD)
            total += _WORD + _LETTER * longer - (_GLUED if glued else 0)
        elif kind == "digits":
            total += _GROUP * ceil(size / _DIGITS)
        elif kind == "blanks":
            total += _BLANKS if size > 1 else 0
        elif kind == "lines":
            total += _LINES
        elif kind == "marks":
            total += _MARK + _NEXT_MARK * (size - 1)
        else:
            total += _PER_CHARACTER[kind] * size
        glued = kind in {"word", "digits"}
    return ceil(total)


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
    from tiktoken import Encoding  # noqa: PLC0415 (only for an exact count)

    pairs = (line.split() for line in data.split(b"\n") if line)
    return Encoding(
        name=name,
        pat_str=_PATTERNS[name],
        mergeable_ranks={b64decode(token): int(rank) for token, rank in pairs},
        special_tokens={},
    )


def _read_ranks(ranks: _RankFile, folder: str) -> bytes | None:
    """Return the ranks from the bpe-openai package, or from where tiktoken downloaded them to."""
    found = find_spec("bpe_openai")
    packages = (found and found.submodule_search_locations) or ()
    name = hashlib.sha1(ranks.url.encode(), usedforsecurity=False).hexdigest()
    files = [Path(package) / "data" / ranks.data for package in packages]
    for file in [*files, *([Path(folder) / name] if folder else [])]:
        if file.exists():
            data = file.read_bytes()
            data = gzip.decompress(data) if file.suffix == ".gz" else data
            if hashlib.sha256(data).hexdigest() == ranks.sha256:
                return data
    return None
