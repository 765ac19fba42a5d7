"""Full text without the tapes: texts and queries as FTS5 takes them, ranking, and excerpts.

The index splits text where letters and digits end, so `read_file` and `src/auth/login.py:42` are
runs of words, found as phrases. Chinese, Japanese and Korean are written without spaces: each
character there counts as a word, so that any two neighbours can be found.

    typed by people           as FTS5 takes it
    fix login                 ("fix") AND ("login")
    src/auth.py               ("src/auth.py")                     a phrase: src auth py
    "no such" OR err* -test   ("no such" OR "err" *) NOT ("test")
"""

from __future__ import annotations

import os
import re
import sqlite3
from bisect import bisect_right
from contextlib import closing
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, Unpack

from ..clock import parse_timestamp
from ..errors import UsageError
from ..text import replace_surrogates
from .reader import ORIGIN_PHASE
from .tape_filter import EVERY_TAPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from sqlite3 import Connection

    from .tape_filter import TapeFilter

Marks: TypeAlias = tuple[tuple[int, int], ...]
"""Start and end, in characters of an excerpt, of each match."""
Texts: TypeAlias = tuple[str, str, str]
"""What an entry says: said, called and answered."""


class SearchFilter(TypedDict, total=False):
    """What a search is narrowed to, as `build_filter` takes it; None and () are for all."""

    types: Sequence[str]
    project: str | None
    model: str | None
    since: str | None
    until: str | None
    tapes: TapeFilter


CJK_GAP = "\x1f"
"""Put around each character that is a word: it is no letter, and people do not type it."""

RESULT_CHARS = 1_000
"""How many characters of a tool's result are indexed."""
LARGE_RESULT_CHARS = 200_000
"""How many characters of a whole result are indexed, where it is kept beside its entry."""

BYTES_OF_CHARACTER = 4
"""Most bytes of a character in UTF-8."""


def decode_start(data: bytes, limit: int) -> str:
    """Return the first characters of a text whose bytes may be cut within one."""
    return data[: limit * BYTES_OF_CHARACTER].decode("utf-8", "ignore")[:limit]


CJK_RANGES = (
    "\u1100\u11ff\u2e80\u2fdf\u3005\u3007\u3021\u3029\u3038\u303b\u3040\u30ff\u3105\u312f"
    "\u3130\u318f\u31a0\u31bf\u31f0\u31ff\u3400\u4dbf\u4e00\u9fff\ua960\ua97f\uac00\ud7ff"
    "\uf900\ufaff\uff66\uffdc\U0001aff0\U0001b16f\U00020000\U0003ffff"
)
"""The first and the last character of each range."""
_CJK_CHARS = f"[{''.join(f'{a}-{b}' for a, b in zip(*[iter(CJK_RANGES)] * 2, strict=True))}]"
"""Compiled at its first use, because compiling takes as long as a search."""
QUERY_TERM = re.compile(
    r'(?P<sign>(?:-(?=[^\s-]))?)(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))(?P<star>\*?)'
)


def space_cjk(text: str) -> str:
    """Return text with a gap around each Han, kana and hangul character."""
    return text if text.isascii() else re.sub(_CJK_CHARS, rf"{CJK_GAP}\g<0>{CJK_GAP}", text)


class _CjkSpacing(dict[int, int | str]):
    """For `str.translate`: what each character becomes, found out at its first use."""

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        # an odd place is within a range, or behind its first character
        at = bisect_right(CJK_RANGES, character)
        is_wide = at % 2 == 1 or CJK_RANGES[at - 1 : at] == character
        self[code] = spaced = f"{CJK_GAP}{character}{CJK_GAP}" if is_wide else code
        return spaced


_SPACING = _CjkSpacing()


def translate_cjk(text: str) -> str:
    """Return `space_cjk(text)`; faster for the texts of one search, slower for many."""
    return text if text.isascii() else text.translate(_SPACING)


def unspace_cjk(text: str) -> str:
    """Return text that `space_cjk` changed as it was."""
    return text.replace(CJK_GAP, "")


def iter_argument_texts(value: object) -> Iterator[str]:
    """Yield the strings and numbers in an argument, without the keys of objects."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case list():
            for item in value:
                yield from iter_argument_texts(item)
        case dict():
            for item in (value.get("head"),) if "$blob" in value else value.values():
                yield from iter_argument_texts(item)


def build_match_expression(query: str) -> str:
    """Return the FTS5 expression of a query as people write it.

    All words must match; `"a phrase"` matches exactly, `-word` excludes, `word*` matches a prefix,
    `one OR two` matches either. Everything else is literal. Raises UsageError if there is nothing
    to search for.
    """
    groups: list[list[str]] = []
    unwanted: list[str] = []
    joined = False
    for sign, term in _iter_query_terms(query):
        if sign == "OR":
            joined = bool(groups)
        elif sign == "-":
            unwanted.append(term)
        else:
            if joined:
                groups[-1].append(term)
            else:
                groups.append([term])
            joined = False
    if not groups:
        raise UsageError(
            f"nothing to search for in {query!r}: give a word with a letter or a digit"
        )
    expression = " AND ".join(f"({' OR '.join(alternatives)})" for alternatives in groups)
    return f"({expression}) NOT ({' OR '.join(unwanted)})" if unwanted else expression


def _iter_query_terms(query: str) -> Iterator[tuple[str, str]]:
    """Yield the terms in order as (sign, FTS5 term); the sign is "", `-`, or `OR`.

    Terms without a letter or digit are left out.
    """
    for part in QUERY_TERM.finditer(replace_surrogates(query).replace("\0", " ")):
        sign, phrase, word = part["sign"], part["phrase"], part["word"]
        if word == "OR" and not sign:
            yield "OR", ""
            continue
        text = phrase if phrase is not None else word.rstrip("*")
        if any(map(str.isalnum, text)):
            is_prefix = bool(part["star"]) or (word or "").endswith("*")
            quoted = translate_cjk(text).replace('"', '""')
            yield sign, f'"{quoted}"' + (" *" if is_prefix else "")


EXCERPT_WIDTH = 160
"""Characters of an excerpt."""
_EXCERPT_LEAD = 40
"""Characters before the first match."""
_MARK_START, _MARK_END = "\x02", "\x03"
_NO_MARKS = str.maketrans(dict.fromkeys("\0\x02\x03", " "))


def build_excerpts(
    expression: str, texts: Sequence[Texts | None]
) -> Iterator[tuple[int, tuple[str, Marks]]]:
    """Yield the indexes of the texts that match an FTS5 expression, with their excerpts.

    Each text has three parts: said, called and answered. A small full-text index of these texts
    finds the matches.
    """

    def flatten(text: str) -> str:
        return translate_cjk(" ".join(text.translate(_NO_MARKS).split()))

    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE text USING fts5(said, called, answered)")
        db.executemany(
            "INSERT INTO text (rowid, said, called, answered) VALUES (?, ?, ?, ?)",
            [(at, *map(flatten, text)) for at, text in enumerate(texts) if text],
        )
        rows = db.execute(
            "SELECT rowid, highlight(text, 0, ?1, ?2), highlight(text, 1, ?1, ?2), "
            "highlight(text, 2, ?1, ?2) FROM text WHERE text MATCH ?3",
            (_MARK_START, _MARK_END, expression),
        )
        for at, *marked in rows:
            yield at, cut_excerpt(max(marked, key=lambda text: min(text.count(_MARK_START), 9)))


def cut_excerpt(marked: str) -> tuple[str, Marks]:
    """Return the part of a marked text with the most marks, and the places of the marks."""
    text, spans = _strip_marks(unspace_cjk(marked))
    first = _find_densest_mark(spans)
    begin = max(0, spans[first][0] - _EXCERPT_LEAD) if spans else 0
    if begin:
        begin = text.find(" ", begin - 1, spans[first][0]) + 1 or begin
    end = begin + EXCERPT_WIDTH
    if len(text) > end:
        end = max(text.rfind(" ", begin + EXCERPT_WIDTH // 2, end), begin) or end
        end = end if end > begin else begin + EXCERPT_WIDTH
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    shift = begin - len(before)
    marks = tuple((s - shift, min(e, end) - shift) for s, e in spans if begin <= s < end)
    return before + text[begin:end] + after, marks


def _find_densest_mark(spans: Sequence[tuple[int, int]]) -> int:
    """Return the index of the mark that begins the part with the most marks."""
    best = count = 0
    last = 0
    for at, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last][1] <= start + EXCERPT_WIDTH - _EXCERPT_LEAD:
            last += 1
        if last - at > count:
            best, count = at, last - at
    return best


def _strip_marks(marked: str) -> tuple[str, list[tuple[int, int]]]:
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    size = 0
    for part in marked.split(_MARK_START):
        inside, end, rest = part.partition(_MARK_END)
        if end:
            spans.append((size, size + len(inside)))
        parts += (inside, rest)
        size += len(inside) + len(rest)
    return "".join(parts), spans


_EXTRA_HITS = 300
"""Matches that are ranked beyond the wanted hits."""
_VERIFIED_AT_ONCE = 100
"""Entries read at least together, where those read first did not match."""
_MAX_KEY = (1 << 63) - 1
_RANKS = {
    "said": "bm25(x.said) - 1",
    "words": "CASE k.name WHEN 'tool.result' THEN -0.25 ELSE -0.5 END",
}
"""What orders the matches of each full-text table, the lowest first: their score, negated."""
_TERM = re.compile(r'"((?:[^"]|"")*)"((?: \*)?)')
_FIELDS = (
    "lower(hex(t.id)), t.title, CAST(t.folder AS BLOB), p.name, p.branch, "
    'e."offset", e.length, lower(hex(e.id)), e.n, e.time, k.name, '
    "t.cwd, t.repository, t.person, t.machine, t.agent"
)


class RankedEntry(NamedTuple):
    """An entry that may match: where its line is, and its score."""

    tape: str
    title: str | None
    folder: str
    phase: str
    branch: str | None
    offset: int
    length: int
    entry: str
    n: int
    time: int
    """Microseconds since 1970."""
    type: str
    cwd: str
    """Where its tape works; what follows is of the tape too."""
    repository: str | None
    person: str | None
    machine: str | None
    agent: str | None
    score: float


class FoundPrompt(NamedTuple):
    """The prompt that led to an entry: its id, 40 hex digits, and its text."""

    entry: str
    text: str


_PROMPT_SQL = (
    'SELECT lower(hex(u.id)), u."offset", u.length FROM phases p '
    "JOIN entries h ON h.phase = p.key AND substr(h.id, 1, 4) = substr(?1, 1, 4) AND h.id = ?1 "
    "JOIN entries u ON u.key BETWEEN h.key - 2000 AND h.key - 1 AND u.phase = p.key "
    "JOIN types k ON k.key = u.type WHERE p.tape = ?2 AND p.name = ?3 AND k.name = 'user' "
    "ORDER BY u.key DESC LIMIT 1"
)


def find_prompt_line(db: Connection, hit: RankedEntry) -> tuple[str, int, int] | None:
    """Return id, offset and length of the prompt that led to an entry, in the same phase.

    None for a prompt, and where none is among what was indexed shortly before.
    """
    if hit.type == "user":
        return None
    values = bytes.fromhex(hit.entry), bytes.fromhex(hit.tape), hit.phase
    prompt: tuple[str, int, int] | None = db.execute(_PROMPT_SQL, values).fetchone()
    return prompt


def build_search(
    query: str, **narrow: Unpack[SearchFilter]
) -> tuple[str, tuple[str, list[object]]]:
    """Return the FTS5 expression of a query, and its filter as `build_filter` gives it.

    The expression is "" for an empty query: then the newest entries are meant. Raises UsageError
    for a query with nothing to search for, and for an empty one without a filter.
    """
    where = build_filter(**narrow)
    return build_match_expression(query) if query or not where[0] else "", where


def build_filter(
    types: Sequence[str] = (),
    project: str | None = None,
    model: str | None = None,
    since: str | None = None,
    until: str | None = None,
    tapes: TapeFilter = EVERY_TAPE,
) -> tuple[str, list[object]]:
    """Return further conditions of a WHERE clause, and their values; empty arguments add none.

    `project` is an absolute folder: tapes whose cwd or project is in it or below.
    `model` is a part of `provider/model`: answers of such a model, and the rest of tapes that have
    some. `since` and `until` are tape times; `until` is excluded.
    `tapes` says what their tapes have to say of themselves.
    """
    where, values = "", list[object]()
    if types:
        where += f" AND k.name IN ({', '.join('?' * len(types))})"
        values += map(replace_surrogates, types)
    if project is not None:
        root = replace_surrogates(project).rstrip("/") + "/"
        where += " AND (substr(t.cwd || '/', 1, ?) = ? OR substr(t.project || '/', 1, ?) = ?)"
        values += (len(root), root) * 2
    if model is not None:
        fits = "instr(lower(u.provider || '/' || u.model), lower(?)) > 0"
        where += (
            " AND CASE k.name WHEN 'assistant' THEN EXISTS "
            f"(SELECT 1 FROM usage u WHERE u.entry = e.key AND {fits}) ELSE p.tape IN "
            "(SELECT q.tape FROM usage u JOIN entries f ON f.key = u.entry "
            f"JOIN phases q ON q.key = f.phase WHERE u.purpose = 'answer' AND {fits}) END"
        )
        values += (replace_surrogates(model),) * 2
    for time, sign in ((since, ">="), (until, "<")):
        if time is not None:
            where += f" AND e.time {sign} ?"
            values.append(parse_timestamp(time))
    condition, tape_values = tapes.build_condition()
    if condition:
        where += f" AND t.id IN (SELECT id FROM tapes WHERE {condition})"
        values += tape_values
    return where, values


def build_loose_expression(expression: str) -> str:
    """Return an expression for words without places: a phrase becomes all of its words.

    `expression` is of `build_match_expression`. What it matches is matched, and more: entries that
    have the words of a phrase elsewhere, or that have an excluded phrase.
    """
    terms, words = _split_terms(expression)
    loose = [
        "({}{})".format(" AND ".join([f'"{word}"' for word in matches]), star)
        if matches
        else f'"{text}"{star}'
        for (text, star), matches in zip(terms, words, strict=True)
    ]
    joined_terms, *more = _TERM.sub("\0", expression).partition(" NOT ")[0].split("\0")
    joined_terms += "".join(term + rest for term, rest in zip(loose, more, strict=False))
    excluded = [
        term
        for term, matching in zip(loose[len(more) :], words[len(more) :], strict=True)
        if len(matching) == 1
    ]
    return f"({joined_terms}) NOT ({' OR '.join(excluded)})" if excluded else joined_terms


@lru_cache(maxsize=1)
def _split_terms(expression: str) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Return the terms of an expression, as text and star, and the words FTS5 finds in each."""
    terms = _TERM.findall(expression)
    words: list[list[str]] = [[] for _ in terms]
    if all(text.isascii() and text.isalnum() for text, _ in terms):
        return terms, [[text.lower()] for text, _ in terms]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE terms USING fts5(text)")
        db.execute("CREATE VIRTUAL TABLE place USING fts5vocab(terms, instance)")
        texts = [(at, text.replace('""', '"')) for at, (text, _) in enumerate(terms)]
        db.executemany("INSERT INTO terms (rowid, text) VALUES (?, ?)", texts)
        for at, word in db.execute("SELECT doc, term FROM place ORDER BY doc, offset"):
            words[at].append(word)
    return terms, words


def build_line_filter(expression: str) -> Callable[[bytes], bool]:
    """Return what tells from its bytes whether a line may match an FTS5 expression.

    The line is one that has all wanted words. False is certain: no phrase of some group of phrases
    can be in its texts. The bytes alone do not say how a number is written as text, where the text
    of a result was cut, or what characters beyond ASCII become: then the answer is True.

        phrase     in a line                      may match
        no such    "text":"No such file"          yes
        no such    "text":"no file is such"       no
        no such    "a":"so no","b":"such"         yes: the texts of arguments are joined
        no such    "text":"nó such"               yes: without its accent it is a "no"
    """
    _, words = _split_terms(expression)
    rest = iter(words)
    groups = _TERM.sub("\0", expression).partition(" NOT ")[0].split(" AND ")
    required = [[next(rest) for _ in range(group.count("\0"))] for group in groups]
    phrases = [group for group in required if all(map(_can_be_told, group))]
    patterns = [re.compile(b"|".join(map(_build_phrase_pattern, group))) for group in phrases]
    has_number = any(word[0].isdigit() for group in phrases for phrase in group for word in phrase)

    def may_match(line: bytes) -> bool:
        text = line.lower().replace(b'"type":"text"', b'"type" text')
        if not text.isascii():
            text = re.sub(_SYMBOLS, b" ", text)
        if (
            not text.isascii()
            or (b"\\u" in text and re.search(_ESCAPED_CHARACTER, text))
            or (text.count(b'"text"') > 1 and b'"tool.result"' in text)
            or (has_number and re.search(_FRACTION, text))
        ):
            return True
        return all(pattern.search(text) for pattern in patterns)

    return may_match if patterns else lambda _: True


def _can_be_told(words: list[str]) -> bool:
    return len(words) > 1 and all(map(str.isascii, words))


def _build_phrase_pattern(words: list[str]) -> bytes:
    """Return a pattern for words beside each other, or for a text that ends within the phrase."""
    *before, last = [re.escape(word).encode() for word in words]
    pattern = last
    for word in reversed(before):
        pattern = word + rb"(?:%b+%b|%b*\"(?!\s*:))" % (_GAP, pattern, _GAP_IN_TEXT)
    return pattern


_GAP = rb"(?:[^0-9a-z]|\\[bfnrt]|\\u00[01][0-9a-f])"
"""Between two words in the bytes of a line in lower case."""
_GAP_IN_TEXT = rb'(?:[^0-9a-z"]|\\["bfnrt]|\\u00[01][0-9a-f])'
_ESCAPED_CHARACTER = rb"\\u(?!00[01])"
_FRACTION = rb"[\[:,]\s*-?[0-9]+[.e]"
"""A number that may be another text than in the line."""
_SYMBOLS = (
    rb"\xe2(?:\x80[\x90-\xa7]|\x86[\x90-\xbf]|[\x87-\x8e\x94-\x9b][\x80-\xbf]|\x8f[\x80-\xb3]"
    rb"|\x9c[\x81-\xbf]|\x9d[\x80-\xa7])"
)
"""In UTF-8: general punctuation, arrows, mathematics, box drawing, shapes, dingbats; no words."""


def find_hits(
    db: Connection,
    expression: str,
    narrow: tuple[str, Sequence[object]],
    limit: int,
    read: Callable[[RankedEntry, Callable[[bytes], bool]], Texts | None],
) -> list[tuple[RankedEntry, str, Marks]]:
    """Return the best matches of an FTS5 expression, each entry once, with excerpt and marks.

    First come entries that say it, the best first; then those that have it in the arguments of
    tools; then those in their results; newer first among equals. Of several copies of an entry the
    original counts. `read` gives the texts of an entry, None if it has none any more, or if the
    function it is given is False for its line; an entry whose texts do not match is left out.
    Without an expression the newest entries are the hits, each with its beginning.
    """
    if not expression:
        newest = ((hit, read(hit, bool)) for hit in _iter_newest(db, narrow))
        beginnings = ((hit, " ".join(" ".join(texts).split())) for hit, texts in newest if texts)
        return [
            (hit, text[:EXCERPT_WIDTH] + "…" * (len(text) > EXCERPT_WIDTH), ())
            for hit, text in islice(((hit, text) for hit, text in beginnings if text), limit)
        ]
    hits: list[tuple[RankedEntry, str, Marks]] = []
    candidates = _iter_candidates(db, expression, narrow, limit)
    may_match = build_line_filter(expression)
    size = limit
    while len(hits) < limit and (batch := list(islice(candidates, size))):
        excerpts = dict(build_excerpts(expression, [read(hit, may_match) for hit in batch]))
        hits += [(hit, *excerpts[at]) for at, hit in enumerate(batch) if at in excerpts]
        size = max(limit - len(hits), _VERIFIED_AT_ONCE)
    return hits[:limit]


def _iter_candidates(
    db: Connection, expression: str, narrow: tuple[str, Sequence[object]], limit: int
) -> Iterator[RankedEntry]:
    """Yield the entries that may match, the best first, by pages of those indexed last."""
    seen: set[bytes] = set()
    for table in ("said", "words"):
        match = expression if table == "said" else build_loose_expression(expression)
        last, size = _MAX_KEY, limit + _EXTRA_HITS
        while page := _select_page(db, table, (match, last), narrow, size):
            for rank, _, _, _, entry, _, tape, title, folder, *rest in sorted(page):
                if entry not in seen:
                    seen.add(entry)
                    yield RankedEntry._make((tape, title, os.fsdecode(folder), *rest, -rank))
            if len(page) < size:
                break
            last = min(row[5] for row in page) - 1


def _iter_newest(db: Connection, narrow: tuple[str, Sequence[object]]) -> Iterator[RankedEntry]:
    """Yield the entries with words, the newest first, each once."""
    where, values = narrow
    seen: set[bytes] = set()
    rows = db.execute(
        f"SELECT e.id, {_FIELDS} FROM entries e JOIN types k ON k.key = e.type "
        "JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape WHERE t.folder <> '' "
        f"AND k.name IN ('user', 'assistant', 'tool.result', 'context'){where} "
        "ORDER BY e.time DESC, p.name = ?, t.id, e.id",
        (*values, ORIGIN_PHASE),
    )
    for entry, tape, title, folder, *rest in rows:
        if entry not in seen:
            seen.add(entry)
            yield RankedEntry._make((tape, title, os.fsdecode(folder), *rest, 0.0))


def _select_page(
    db: Connection,
    table: str,
    match: tuple[str, int],
    narrow: tuple[str, Sequence[object]],
    size: int,
) -> list[tuple[Any, ...]]:
    """Return the newest matches up to a key: what orders them, id, key, and a RankedEntry's fields.

    The score is left out.
    """
    where, values = narrow
    return db.execute(
        f"SELECT {_RANKS[table]}, -e.time, p.name = ?, t.id, e.id, e.key, {_FIELDS} "
        f"FROM {table} x CROSS JOIN entries e ON e.key = x.rowid JOIN types k ON k.key = e.type "
        "JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape "
        f"WHERE x.{table} MATCH ? AND x.rowid <= ? AND t.folder <> ''{where} "
        "ORDER BY x.rowid DESC LIMIT ?",
        (ORIGIN_PHASE, *match, *values, size),
    ).fetchall()
