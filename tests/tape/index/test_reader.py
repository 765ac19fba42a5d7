"""The index as it is, and the lines of hits, say what the tapes say."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tape.damage import DamageWarning
from tape.errors import UsageError
from tape.index import full_text, reader
from tape.index.contents import extract_contents
from tape.index.full_text import build_match_expression
from tape.index.library import open_store, search_entries
from tape.index.lookups import select_entries
from tape.index.search import extract_texts, search_caught_up
from tape.model.entries import Assistant, Redact, Text, ToolCall, ToolResult, User
from tape.model.line import encode_line, encode_payload, read_header
from tape.store import phase
from tape.store.store import Beginning

TIME = "2026-11-22T00:00:00.000001Z"
PARENT = "0" * 40
NUMBERS = st.one_of(
    st.integers(), st.floats(), st.sampled_from([10**18, 2**63, 2**64, 10**400, 1e308, -0.0])
)
TEXTS = st.one_of(st.text("aé登\ud800\0\n", max_size=5), st.just("x" * 1_100))
BLOB = st.fixed_dictionaries(
    {"$blob": st.one_of(st.just("0" * 64), NUMBERS), "bytes": NUMBERS}, optional={"head": TEXTS}
)
ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, BLOB),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "$blob"]), inner)
    ),
    max_leaves=5,
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_call", "opaque"])},
    optional={
        "text": st.one_of(TEXTS, BLOB, ANY),
        "id": st.one_of(TEXTS, ANY),
        "name": st.one_of(TEXTS, ANY),
        "args": ANY,
        "args_text": st.one_of(TEXTS, BLOB, ANY),
    },
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "content": st.one_of(st.lists(BLOCK, max_size=4), TEXTS, BLOB, ANY),
        "usage": ANY,
        "name": ANY,
    },
)
KINDS = st.sampled_from(["user", "context", "assistant", "tool.result"])


def hit_of(header):
    rest = dict.fromkeys(full_text.RankedEntry._fields)
    time = glance_time(header.time)
    known = {"entry": header.id, "n": header.n, "time": time, "type": header.type}
    return full_text.RankedEntry(**{**rest, **known})


def glance_time(text):
    return full_text.parse_timestamp(text)


@given(KINDS, DATA)
@example("user", {"content": [{"type": "text", "text": "\ud800"}]})
@example("assistant", {"content": [{"type": "tool_call", "args": {"a": [1, 2.5, True, "b"]}}]})
def test_the_words_of_a_line_are_those_of_the_index_or_none(kind, data):
    raw = json.dumps(data, separators=(",", ":")).encode()
    header, line = encode_line(kind, PARENT, 3, TIME, raw)
    line = line[:-1]
    try:
        told = extract_texts(line, hit_of(header))
    except ValueError:
        return
    words = extract_contents(read_header(line), line).words
    assert [part.split() for part in told] == [part.split() for part in words or ("", "", "")]


def test_an_ordinary_line_is_understood():
    blocks = [
        {"type": "thinking", "text": "hidden"},
        {"type": "text", "text": "said"},
        {"type": "text", "text": {"$blob": "0" * 64, "bytes": 70_000, "head": "long"}},
        {"type": "tool_call", "id": "c", "name": "read", "args": {"path": "a", "n": [7, None]}},
        {"type": "tool_call", "id": "d", "name": "x", "args_text": "{broken"},
    ]
    raw = json.dumps({"content": blocks}, separators=(",", ":")).encode()
    header, line = encode_line("assistant", PARENT, 3, TIME, raw)
    hit = hit_of(header)
    assert extract_texts(line[:-1], hit) == ("said\nlong", "read\na\n7\nx\n{broken", "")
    for other in ({"n": 4}, {"type": "user"}, {"entry": PARENT}, {"time": 1}):
        with pytest.raises(ValueError, match="not the line"):
            extract_texts(line[:-1], hit._replace(**other))
    _, deep = encode_line("assistant", PARENT, 3, TIME, b"[" * 100_000)
    with pytest.raises(ValueError, match="nested"):
        extract_texts(deep[:-1], hit)
    for changed in (
        line[:-1].replace(b"said", b"sAid"),
        line[:-1].replace(b'"n":3', b'"n":4'),
        b"",
    ):
        with pytest.raises(ValueError, match="hashes"):
            extract_texts(changed, hit)


WORD = st.sampled_from(
    ["no", "No", "such", "file", "fi", "n", "nno", "12", "5", "text", "a", "nó", "é"]
)
BETWEEN = st.sampled_from(
    [
        " ",
        "",
        "_",
        "\n",
        "\t",
        '"',
        "\\",
        "\\n",
        "/",
        ":",
        '":"',
        "–",
        "→",
        "└",
        "，",
        "ß",
        "日",
        "\x1b",
        "\x02",
        " . ",
    ]
)
SAID = st.lists(st.tuples(WORD, BETWEEN), max_size=6).map(
    lambda parts: "".join(word + gap for word, gap in parts)
)
CUT = st.builds("{:_<{}}{}".format, SAID, st.integers(990, 1_000), SAID)
ARGUMENT = st.one_of(SAID, st.sampled_from([12, 5, 12.5, -5, 1e22, 12.0, None, True, 2**70]))
ARGUMENTS = st.recursive(
    ARGUMENT,
    lambda one: st.one_of(st.lists(one, max_size=3), st.dictionaries(SAID, one, max_size=3)),
    max_leaves=5,
)
SPOKEN = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["text", "text", "thinking", "tool_call"]),
        "text": st.one_of(SAID, CUT),
        "name": WORD,
        "args": ARGUMENTS,
    },
    optional={"args_text": SAID},
)
PHRASE = st.lists(WORD, min_size=2, max_size=4).map(lambda words: f'"{" ".join(words)}"')


@pytest.mark.slow
@given(
    KINDS,
    st.lists(SPOKEN, min_size=1, max_size=3),
    st.lists(st.one_of(PHRASE, PHRASE, WORD, st.just("OR")), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=300)
@example("assistant", [{"type": "tool_call", "args": ["no", "such"]}], ['"no such"'], True)
@example("assistant", [{"type": "tool_call", "args": [12.0, 2**70]}], ['"12 0"'], True)
@example("tool.result", [{"type": "text", "text": "_" * 997 + " nothing"}], ['"no a"'], True)
@example("user", [{"type": "text", "text": "nó\nsuch"}], ['"no such"'], False)
def test_a_line_is_left_out_only_where_its_texts_do_not_match(kind, blocks, query, escapes):
    raw = json.dumps({"content": blocks}, separators=(",", ":"), ensure_ascii=escapes).encode()
    try:
        expression = build_match_expression(" ".join(query))
    except UsageError:
        return
    _, line = encode_line(kind, PARENT, 3, TIME, raw)
    words = extract_contents(read_header(line[:-1]), line[:-1]).words
    if words is not None and [*full_text.build_excerpts(expression, [words])]:
        assert full_text.build_line_filter(expression)(line[:-1])


def test_lines_without_the_phrase_are_left_out():
    may_match = full_text.build_line_filter(build_match_expression('"no such file"'))
    for text in ("no file is such", "such a file has no s", "→ no\n\tfile", "C:\\no\\new such"):
        answer = Assistant((Text(text), ToolCall("c", "read", b'{"n":12.5,"path":"such"}')), "p")
        assert not may_match(encode_line("assistant", PARENT, 3, TIME, encode_payload(answer))[1])


def test_symbols_that_are_taken_for_gaps_are_no_part_of_words():
    symbols = [
        chr(at) for at in range(0x2000, 0x3000) if re.match(full_text._SYMBOLS, chr(at).encode())
    ]
    assert len(symbols) > 1_000
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE terms USING fts5(text)")
        db.execute("CREATE VIRTUAL TABLE place USING fts5vocab(terms, row)")
        db.executemany("INSERT INTO terms VALUES (?)", [(f"a{symbol}b",) for symbol in symbols])
        assert db.execute("SELECT term FROM place").fetchall() == [("a",), ("b",)]


@pytest.fixture
def home(tmp_path):
    """A store whose index is caught up, with the ids of the entries that were said."""
    with open_store(tmp_path / "home") as library:
        library.store.durable = False
        with library.store.create(Beginning("/src", "t/1")) as tape, tape.writer() as writer:
            for n in range(30):
                writer.append(User((Text(f"needle number {n} 登录页面"),)))
            call = ToolCall(id="c", name="read", args=b'{"path":"needle.py"}')
            writer.append(Assistant((Text("I look"), call), "p", model="m"))
            writer.append(ToolResult("c", "read", (Text("a needle " * 300),)))
    settle(tmp_path / "home")
    return tmp_path / "home"


def settle(home):
    """Let the index trust the folder of tapes, as if nothing had come for a while."""
    os.utime(home / "tapes", (1, 1))
    with open_store(home) as (_, index):
        index.rows(None, 0)


def both(home, query, limit=20, **narrow):
    """Return what the index says as it is, None where it has to catch up, and what it then says."""
    as_it_is = search_caught_up(str(home), query, limit, **narrow)
    with open_store(home) as library:
        return as_it_is, search_entries(*library, query, limit=limit, **narrow)


@pytest.mark.parametrize("query", ["needle", "登录 -needle", "read OR 页面", '"number 7"', "nee*"])
def test_search_of_the_index_as_it_is_finds_the_same(home, query):
    for narrow in ({}, {"types": ["user"]}, {"project": "/src"}, {"model": "M"}, {"since": TIME}):
        as_it_is, hits = both(home, query, **narrow)
        assert as_it_is == hits
        assert both(home, query, limit=3, **narrow) == (hits[:3], hits[:3])


def test_index_catches_up_and_erases_before_a_search(home):
    assert both(home, "needle")[0] is not None
    with open_store(home) as library, library.store.open("") as tape, tape.writer() as writer:
        entry = writer.append(User((Text("a late needle"),))).id
        assert both(home, "late")[0] is None
        writer.append(Redact((entry,), "why"))
    settle(home)
    assert both(home, "late") == (None, [])  # this erases what the redaction leaves
    assert both(home, "late") == ([], [])


def test_line_that_changed_on_the_disk_is_left_out_and_named(home):
    (file,) = home.glob("tapes/*/phases/*/entries.jsonl")
    whole, about = file.read_bytes(), file.stat()

    def change(data):
        file.write_bytes(data)
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))  # nobody reads it again

    for other in (b"another!", b"Number 5", b"number \xff"):
        change(whole.replace(b"number 5", other))
        with pytest.warns(DamageWarning, match="its data does not match its hash"):
            assert both(home, '"number 5"') == ([], [])
    change(whole.replace(b'"type":"user"', b'"type":"uzer"'))
    with pytest.warns(DamageWarning, match="its id does not match its bytes"):
        assert both(home, '"number 5"') == ([], [])
    lines = whole.split(b"\n")
    change(b"\n".join([*lines[:2], *lines[3:6], lines[2], *lines[6:]]))
    with pytest.warns(DamageWarning, match="at byte [0-9]+ skipped: entry [0-9a-f]{12}: "):
        assert both(home, '"number 3"') == ([], [])
    file.write_bytes(whole.replace(b"number 5", b"Number 5"))
    with pytest.warns(DamageWarning, match="its data does not match its hash"):
        assert both(home, '"number 5"') == (None, [])  # its time says that it changed
    file.rename(file.with_name("away"))
    assert both(home, "needle") == (None, [])


def test_line_that_few_readers_take_is_found(tmp_path):
    """A number of more than 64 bits, which the index has as a text."""
    args = msgspec.Raw(b'{"n":12345678901234567890123,"p":"odd"}')
    answer = Assistant((ToolCall(id="c", name="read", args=args),), "p", model="m")
    with (
        open_store(tmp_path) as library,
        library.store.create(Beginning("/src", "t/1")) as tape,
        tape.writer() as writer,
    ):
        entry = writer.append(answer).id
    settle(tmp_path)
    as_it_is, hits = both(tmp_path, "odd")
    assert [hit.entry for hit in hits] == [entry]
    assert as_it_is == hits


def test_entries_whose_ids_begin_alike_are_distinguished(home):
    with sqlite3.connect(home / "index.db") as db:
        columns = 'phase, "offset", length, n, time, type'
        ((entry, key),) = db.execute("SELECT id, key FROM entries WHERE n = 3")
        like = entry[:4] + bytes(16)
        db.execute(
            f"INSERT INTO entries SELECT 1000, ?, {columns} FROM entries WHERE key = ?", (like, key)
        )
        for digits in (4, 7, 8):
            assert len(select_entries(db, entry.hex()[:digits])) >= 2
        assert [place.entry for place in select_entries(db, entry.hex())] == [entry.hex()]
        assert [place.entry for place in select_entries(db, entry.hex()[:12])] == [entry.hex()]
        (plan,) = db.execute(
            "EXPLAIN QUERY PLAN SELECT 1 FROM entries WHERE substr(id, 1, 4) = ?", "a"
        )
        assert "entries_id" in plan[3]


def test_names_in_two_places_are_the_same():
    assert reader.ORIGIN_PHASE == phase.ORIGIN
    assert reader.query_index_file("/nowhere", lambda _: 1) is None
