from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape.damage import DamageWarning
from tape.errors import UsageError
from tape.index.contents import list_touched_files, resolve_path
from tape.index.full_text import (
    CJK_RANGES,
    EXCERPT_WIDTH,
    build_loose_expression,
    build_match_expression,
    cut_excerpt,
    space_cjk,
    translate_cjk,
    unspace_cjk,
)
from tape.index.library import open_store, query_index, search_entries
from tape.index.reader import APPLICATION_ID
from tape.index.rebuild import rebuild_index
from tape.model.entries import (
    Assistant,
    ChangedFile,
    Context,
    Meta,
    Redact,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from tape.store.maintenance.upkeep import detach, redact
from tape.store.store import Beginning, Store
from tests.tape.contents_of import contents_of
from tests.tape.making import DAY, numbered

SECOND = 1_000_000


@pytest.fixture
def library(tmp_path):
    ticks = iter(range(DAY, 1 << 62, SECOND))
    with open_store(tmp_path / "home", clock=lambda: next(ticks), random=numbered()) as library:
        library.store.durable = False
        yield library


def begin(library, cwd="/src", **more):
    return library.store.create(Beginning(cwd, "test/1", **more))


def recorded(library, *payloads, **more):
    """Make a tape of these entries and return its id and theirs."""
    with begin(library, **more) as tape, tape.writer() as writer:
        return tape.id, [writer.append(payload).id for payload in payloads]


def say(text):
    return User((Text(text),))


def result(text, call="c_1"):
    return ToolResult(call, "read", (Text(text),))


def call(name, **args):
    return ToolCall(id="c_1", name=name, args=msgspec.Raw(msgspec.json.encode(args)))


def found(library, query, **narrow):
    """Return the hits, once it is sure that the files alone give the same."""
    hits = search_entries(*library, query, **narrow)
    assert hits == search_entries(library.store, None, query, **narrow)
    for hit in hits:
        assert all(hit.snippet[start:end].strip() for start, end in hit.marks)
    return hits


def marked(hit):
    return [hit.snippet[start:end] for start, end in hit.marks]


TEXTS = {
    "path": "fails in src/auth/login.py:42, see there",
    "name": "call read_file(path) and getUserName",
    "arrow": "then foo->bar breaks at C:\\temp\\x.txt",
    "phrase": "the connection was refused by the server",
    "words": "refused: connection to 127.0.0.1:8080",
    "chinese": "请写一个登录页面。谢谢",
    "japanese": "ログインのページを直す",
    "korean": "로그인 페이지",
    "accent": "größer als naïve Ärger",
    "plain": "nothing of it",
}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("src/auth/login.py:42", ["path"]),
        ("login.py", ["path"]),
        ("auth/login", ["path"]),
        ("read_file", ["name"]),
        ("getusername", ["name"]),
        ("foo->bar", ["arrow"]),
        ("C:\\temp\\x.txt", ["arrow"]),
        ("127.0.0.1:8080", ["words"]),
        ('"connection was refused"', ["phrase"]),
        ('"was connection"', []),
        ("connection refused", ["phrase", "words"]),
        ("connection -server", ["words"]),
        ('connection -"was refused"', ["words"]),
        ("connect*", ["phrase", "words"]),
        ("connect", []),
        ('"the connect*"', []),
        ('"the connect"*', ["phrase"]),
        ("server OR 8080", ["phrase", "words"]),
        ("connection server OR 8080", ["phrase", "words"]),
        ("登录", ["chinese"]),
        ("录页", ["chinese"]),
        ("录登", []),
        ("写 页面", ["chinese"]),
        ("イン", ["japanese"]),
        ("그인", ["korean"]),
        ("grosser OR größer", ["accent"]),
        ("naive arger", ["accent"]),
        ("nothing --of", ["plain"]),
        ("nothing -> it", ["plain"]),
        ("AND", ["name"]),
        ("NOT nothing", []),
    ],
)
def test_what_people_type_finds_what_they_mean(library, query, names):
    _, entries = recorded(library, *map(say, TEXTS.values()))
    by_entry = dict(zip(entries, TEXTS, strict=True))
    assert sorted(by_entry[hit.entry] for hit in found(library, query)) == sorted(names)


@pytest.mark.parametrize(
    "query", ["", " ", "{", "->", "-a", "OR", '""', "*", "-OR", "。", '"', "\0"]
)
def test_a_query_with_nothing_to_look_for_is_a_usage_error(library, query):
    with pytest.raises(UsageError, match="nothing to search for"):
        search_entries(*library, query)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with open_store(tmp_path_factory.mktemp("small") / "home") as library:
        recorded(library, *map(say, TEXTS.values()))
        search_entries(*library, "x")
        yield library


QUERY = st.text(st.one_of(st.sampled_from('"*-() :^+{}ORANDNEAR登录a_\0\ud800'), st.characters()))


@given(QUERY)
def test_no_query_is_a_syntax_error(small, query):
    try:
        hits = search_entries(*small, query)
    except UsageError:
        return
    assert hits == search_entries(*small, query)
    assert [p.name for p in small.store.path.glob("index.db.*")] == []


def test_a_query_of_very_many_words_is_answered(small):
    for many in ("zzz " * 5_000, "zzz OR " * 5_000 + "zz", "zzz" + " -b" * 5_000):
        assert search_entries(*small, many) == []


WIDE = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=2, max_size=30)


@settings(max_examples=25, deadline=None)
@given(WIDE, st.data())
def test_any_two_adjacent_characters_are_found(small, text, data):
    at = data.draw(st.integers(0, len(text) - 2))
    _, (entry,) = recorded(small, say(f"abc{text}def"))
    hits = {hit.entry: hit for hit in search_entries(*small, text[at : at + 2], limit=1_000)}
    assert any(text[at : at + 2] in found for found in marked(hits[entry]))
    assert hits[entry].snippet == f"abc{text}def"


@given(st.text())
def test_gaps_go_without_a_trace(text):
    assert unspace_cjk(space_cjk(text)) == unspace_cjk(text)


NEAR_THE_EDGES = st.sampled_from(
    [chr(ord(edge) + step) for edge in CJK_RANGES for step in (-1, 0, 1)]
)


@given(st.text(st.characters() | NEAR_THE_EDGES))
def test_both_ways_to_put_gaps_agree(text):
    assert translate_cjk(text) == space_cjk(text)


def test_a_hit_says_where_it_is(library):
    tape, (_, entry) = recorded(library, say("one"), say("two needle"), title="A title")
    with library.store.open(tape) as opened:
        head = opened.head()
        folder = opened.folder.name
    (hit,) = found(library, "needle")
    assert hit._asdict() | {"score": 0, "machine": "this"} == {
        "tape": tape,
        "title": "A title",
        "folder": folder,
        "phase": "0001-main-start",
        "offset": head.offset,
        "entry": entry,
        "n": 2,
        "time": head.header.time,
        "type": "user",
        "branch": "main",
        "snippet": "two needle",
        "marks": ((4, 10),),
        "score": 0,
        "prompt": None,
        "cwd": "/src",
        "repository": None,
        "person": None,
        "machine": "this",
        "agent": "test",
    }


def test_prompts_answers_contexts_calls_and_results_are_searched_but_not_thinking(library):
    _, entries = recorded(
        library,
        say("needle"),
        Assistant((Text("a needle"), Thinking("hidden thought"))),
        Assistant((call("needle_tool", a=["deep", {"b": "inner\nneedle", "n": 12345}]),)),
        Assistant((ToolCall(id="c_2", name="x", args_text="not json needle"),)),
        result("needle"),
        Context("user", "hook", (Text("needle"),)),
        result("x" * 1_200 + " beyond"),
    )
    assert {hit.entry for hit in found(library, "needle")} == set(entries[:6])
    assert [hit.entry for hit in found(library, "inner 12345")] == [entries[2]]
    assert found(library, "thought") == found(library, "beyond") == []


def test_long_texts_are_found_by_their_beginning(library):
    recorded(library, say("begin " + "x" * 70_000 + " end"), result("first\n" + "y" * 70_000))
    assert [hit.snippet[:6] for hit in found(library, "begin")] == ["begin "]
    assert [hit.snippet[:6] for hit in found(library, "first")] == ["first "]


LONG = "x " * 40_000


def keep_beside(text):
    """Return a result whose model got the beginning of a text."""
    return ToolResult("c_1", "bash", (Text(text[:200]),), full=text)


@pytest.mark.parametrize(
    "make",
    [result, keep_beside, lambda text: keep_beside(text[-60_000:])],
    ids=["in a blob", "in a blob beside it", "in the line"],
)
def test_large_results_are_found_by_their_words_up_to_a_bound(library, make):
    """Of a result that is kept beside its entry 200,000 characters are indexed."""
    tape, entries = recorded(library, say("go"), make(f"{LONG} the first needle"))
    assert [hit.entry for hit in found(library, "needle")] == [entries[1]]
    assert [marked(hit) for hit in found(library, '"first needle"')] == [["first needle"]]
    rebuild_index(library.store)
    assert [hit.entry for hit in found(library, "needle")] == [entries[1]]
    with library.store.open(tape) as one, one.writer() as writer:
        more = writer.append(make(f"{'y ' * 80_000} the seconds needle")).id
    assert [hit.entry for hit in found(library, "seconds needle")] == [more]
    recorded(library, result(f"{'z ' * 100_000} beyond"))
    assert found(library, "beyond") == []
    library.store.remove(library.store.open(tape))
    assert found(library, "needle") == []


def test_a_large_result_whose_blob_is_gone_is_found_by_its_beginning(library):
    tape, entries = recorded(library, result(f"first {LONG} needle"))
    with library.store.open(tape) as opened:
        folder = library.store.tapes / opened.folder.name
    for blob in (folder / "blobs").glob("*/*"):
        blob.unlink()
    assert [hit.entry for hit in found(library, "first")] == entries
    assert found(library, "needle") == []


def test_messages_come_first_then_arguments_then_results(library):
    _, entries = recorded(
        library, result("needle x y"), Assistant((call("t", a="needle x"),)), say("needle x y")
    )
    assert [hit.entry for hit in found(library, "needle")] == entries[::-1]


def test_newer_ones_come_first_among_equals_and_the_limit_holds(library):
    _, entries = recorded(library, *[say("needle here")] * 5)
    assert [hit.entry for hit in found(library, "needle")] == entries[::-1]
    assert [hit.entry for hit in found(library, "needle", limit=2)] == entries[:2:-1]


def test_words_of_nearly_all_entries_are_ranked_to_the_last_where_that_matters(library):
    """Among more equals than are looked at first, and behind a filter that few of them pass."""
    _, entries = recorded(library, *[say("needle")] * 1_200, result("needle"))
    assert [hit.entry for hit in found(library, "needle", limit=3)] == entries[-2:-5:-1]
    assert [hit.entry for hit in found(library, "needle", types=["tool.result"])] == entries[-1:]
    assert len(found(library, "needle", limit=5_000)) == 1_201


def test_filters_narrow(library):
    one = Assistant((Text("needle"),), provider="p", model="big-model")
    two = Assistant((Text("needle"),), provider="q", model="small")
    _, (asked, first, second) = recorded(library, say("needle"), one, two, cwd="/src/app")
    _, (other,) = recorded(library, say("needle"), cwd="/srcs", project="/work/p/.git")
    _, (moved, _) = recorded(library, say("needle"), Meta(cwd="/src"))

    def entries(**narrow):
        return {hit.entry for hit in found(library, "needle", **narrow)}

    assert entries() == {asked, first, second, other, moved}
    assert entries(types=["assistant"]) == {first, second}
    assert entries(types=["assistant", "user"]) == entries()
    assert entries(types=["none"]) == set()
    assert entries(project="/src") == {asked, first, second, moved}
    assert entries(project="/src/app/") == {asked, first, second}
    assert entries(project="/work/p") == {other}
    assert entries(project="/w\udcff") == set()
    assert entries(model="BIG") == {asked, first}
    assert entries(model="q/small") == {asked, second}
    times = {hit.entry: hit.time for hit in found(library, "needle")}
    assert entries(since=times[other]) == {other, moved}
    assert entries(until=times[other]) == {asked, first, second}
    assert entries(since=times[other], until=times[moved]) == {other}


def test_entries_of_all_branches_are_found_once(library):
    with begin(library) as tape:
        with tape.writer() as writer:
            shared = writer.append(say("needle")).id
        tape.fork(tape.head(), "side")
        with tape.writer("side") as writer:
            side = writer.append(say("needle")).id
    hits = found(library, "needle")
    assert [(hit.entry, hit.branch) for hit in hits] == [(side, "side"), (shared, "main")]


def test_a_copied_past_is_shown_where_it_was_written_and_alone_when_that_went(library):
    parent, (entry,) = recorded(library, say("needle"))
    with library.store.open(parent) as tape:
        child = library.store.create(Beginning("/", "test/1"), (tape, tape.head()))
    with child:
        detach(child)
        child.rename("alone")
    assert [(hit.entry, hit.tape) for hit in found(library, "needle")] == [(entry, parent)]
    with library.store.open(parent) as tape:
        library.store.remove(tape)
    assert [(hit.entry, hit.tape) for hit in found(library, "needle")] == [(entry, child.id)]
    (hit,) = found(library, "needle")
    assert hit.phase == "0000-origin"


def test_a_phase_that_no_ref_names_is_not_searched(library):
    tape, _ = recorded(library, say("needle"))
    with library.store.open(tape) as opened:
        phases = library.store.tapes / opened.folder.name / "phases"
        shutil.copytree(phases / "0001-main-start", phases / "0002-main")
        opened.rename("looked at again")
    assert len(found(library, "needle")) == 1


def test_what_is_written_now_is_found_and_what_was_removed_is_not(library):
    with begin(library) as tape, tape.writer() as writer:
        for k in range(3):
            writer.append(say(f"needle{k}"))
            assert len(found(library, f"needle{k}")) == 1
        with open_store(library.store.path) as other:
            assert len(search_entries(*other, "needle1")) == 1
    library.store.remove(library.store.open(tape.id))
    assert found(library, "needle*") == []


def test_only_the_lines_of_the_hits_are_read(library):
    tape, _ = recorded(library, *[say(f"other {k}") for k in range(50)], say("needle"))
    other, _ = recorded(library, say("gone"))
    hits = search_entries(*library, "needle")
    with library.store.open(other) as opened:
        lines = library.store.tapes / opened.folder.name / "phases/0001-main-start/entries.jsonl"
    about = lines.stat()
    lines.write_bytes(b"?" * about.st_size)
    os.utime(lines, ns=(about.st_atime_ns, about.st_mtime_ns))  # so that nobody reads it again
    assert search_entries(*library, "needle") == hits
    with library.store.open(tape) as opened:
        path = library.store.tapes / opened.folder.name / "phases/0001-main-start/entries.jsonl"
    data = path.read_bytes()
    path.write_bytes(b"#" * data.rindex(b'{"id"') + data[data.rindex(b'{"id"') :])
    assert search_entries(*library, "needle") == hits


class TestRedaction:
    SECRET = "swordfish"

    def bytes_of(self, library):
        return b"".join(p.read_bytes() for p in library.store.path.glob("index.db*"))

    def test_it_leaves_nothing_behind(self, library):
        """Neither in the tables nor in free pages, deleted segments or the log."""
        tape, entries = recorded(
            library,
            say(f"{self.SECRET}1 words"),
            Assistant((call("write", path=f"/{self.SECRET}2", content=f"{self.SECRET}3"),)),
            result(f"{self.SECRET}4 and more"),
            *[say(f"word{k} between") for k in range(300)],
        )
        for k in range(20):
            recorded(library, *[say(f"text{k} {i}") for i in range(20)])
        assert len(found(library, f"{self.SECRET}*")) == 3
        assert self.SECRET.encode() in self.bytes_of(library)
        with library.store.open(tape) as opened:
            redact(opened, entries[:3], "secret")
        assert self.SECRET.encode() not in self.bytes_of(library)
        assert found(library, f"{self.SECRET}*") == []
        assert len(found(library, "between", limit=1000)) == 300
        assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)

    def test_one_that_another_program_made_is_followed(self, library):
        tape, entries = recorded(library, say(f"{self.SECRET} words"), say("other"))
        assert len(found(library, self.SECRET)) == 1
        with Store(library.store.path).open(tape) as opened:
            redact(opened, entries[:1], "secret")
        with library.store.open(tape) as opened, opened.writer() as writer:
            writer.append(say("more"))
        assert found(library, self.SECRET) == []
        assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)

    def test_one_that_was_cut_short_counts_already(self, library):
        """The entry that names the target is there, the data still is."""
        tape, entries = recorded(library, say(f"{self.SECRET} words"), say("other"))
        assert len(found(library, self.SECRET)) == 1
        with library.store.open(tape) as opened, opened.writer() as writer:
            writer.append(Redact((entries[0],), "secret"))
        assert found(library, self.SECRET) == []
        assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)


class TestWithoutAnIndex:
    def test_the_files_answer_where_no_index_can_be(self, library):
        recorded(library, say("needle"))
        for path in library.store.path.glob("index.db*"):
            path.unlink()
        (library.store.path / "index.db").mkdir()
        assert len(found(library, "needle")) == 1

    def test_a_store_that_is_not_there_is_not_made(self, tmp_path):
        with open_store(tmp_path / "home") as library:
            assert found(library, "needle") == []
        assert list(tmp_path.iterdir()) == []

    def test_one_of_the_first_version_is_migrated_in_place(self, library):
        tape, _ = recorded(library, say("needle"))
        hits = found(library, "needle")
        library.index.close()
        path = library.store.path / "index.db"
        for beside in library.store.path.glob("index.db*"):
            beside.unlink()
        subprocess.run([sys.executable, "-c", FIRST, str(path), tape], check=True)
        assert found(library, "needle") == hits
        assert [p.name for p in library.store.path.glob("index.db.*")] == []


FIRST = f"""
import runpy, sqlite3, sys
from pathlib import Path
from sqlite_utils import Database
from tape.index.database import find_migrations

steps = runpy.run_path(str(find_migrations() / "index.py"))["steps"]
db = sqlite3.connect(sys.argv[1])
steps.apply(Database(db), stop_before="m002_entries")
db.execute("PRAGMA application_id = {APPLICATION_ID}")
db.execute("PRAGMA user_version = 1")
db.execute("INSERT INTO tapes (id, folder, inode, cwd, created, updated, entries, branches) "
           "VALUES (?, 'x', 1, '', '', '', 0, 0)", (bytes.fromhex(sys.argv[2]),))
db.execute("INSERT INTO meta VALUES ('tapes_mtime_ns', 1)")
db.commit()
"""

SEARCH = """
import sys
from pathlib import Path
from tape.index.library import open_store, search_entries

with open_store(Path(sys.argv[1])) as library:
    print("ready", flush=True)
    sys.stdin.readline()
    print(len(search_entries(*library, "needle", limit=1000)))
"""

WRITE = """
import sys
from pathlib import Path
from tape.model.entries import Text
from tape.model.entries import User
from tape.index.library import open_store
from tape.store.store import Beginning

with open_store(Path(sys.argv[1])) as library:
    library.store.durable = False
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(20):
        with library.store.create(Beginning("/", "test/1")) as tape, tape.writer() as writer:
            for _ in range(5):
                writer.append(User((Text("needle"),)))
            writer.barrier()
            writer.append(User((Text("needle"),)))
"""


def run(code, *arguments):
    started = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout.readline() == "ready\n"
    return started


class TestAtOnce:
    def test_processes_that_start_together_find_the_same(self, library):
        for _ in range(5):
            recorded(library, *[say("needle")] * 20)
        for path in library.store.path.glob("index.db*"):
            path.unlink()
        starters = [run(SEARCH, library.store.path) for _ in range(4)]
        for starter in starters:
            starter.stdin.write("go\n")
            starter.stdin.flush()
        assert [starter.communicate()[0] for starter in starters] == ["100\n"] * 4
        assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)

    def test_an_index_rebuilt_under_writers_and_readers_misses_nothing(self, library):
        recorded(library, *[say("needle")] * 20)
        writer = run(WRITE, library.store.path)
        with library.store.open("") as tape, tape.writer() as own:
            writer.stdin.write("go\n")
            writer.stdin.flush()
            seen = 0
            while writer.poll() is None:
                rebuild_index(library.store)
                own.append(say("needle"))
                own.barrier()
                hits = len(search_entries(*library, "needle", limit=1000))
                assert hits > seen
                seen = hits
            writer.communicate()
            assert writer.returncode == 0
            rebuild_index(library.store)
            assert query_index(*library, contents_of) == query_index(
                library.store, None, contents_of
            )
        assert len(found(library, "needle", limit=1000)) >= 20 + 120
        left = {p.name for p in library.store.path.iterdir()}
        index = {"index.db", "index.db-wal", "index.db-shm", "index.writers", "index.checked"}
        assert left <= {"store.json", "machine.json", "tapes", *index}


def test_rebuilding_tells_how_far_it_is(library):
    for _ in range(3):
        recorded(library, say("needle"))
    told = []
    assert rebuild_index(library.store, lambda done, total: told.append((done, total))) == 3
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("where", ["index", "instead"])
def test_reading_tapes_that_came_tells_how_far_it_is(library, where):
    """The first build of an index, and what is made where none can be."""
    for _ in range(3):
        recorded(library, say("needle"))
    for path in library.store.path.glob("index.db*"):
        path.unlink()
    if where == "instead":
        (library.store.path / "index.db").mkdir()
    told = []

    @contextmanager
    def telling():
        told.append("begins")
        yield lambda done, total: told.append((done, total))
        told.append("ends")

    with open_store(library.store.path, telling=telling) as other:
        assert len(search_entries(*other, "needle")) == 3
    assert told == ["begins", (0, 3), (1, 3), (2, 3), (3, 3), "ends"]


def test_a_snippet_shows_where_most_was_found():
    text = "\x02a\x03 " + "x " * 200 + "\x02b\x03 \x02c\x03 " + "y " * 200
    shown, marks = cut_excerpt(text)
    assert [shown[start:end] for start, end in marks] == ["b", "c"]
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= EXCERPT_WIDTH + 2


@given(st.lists(st.tuples(st.text("ab "), st.text("cd", min_size=1)), max_size=40), st.text("ab "))
def test_a_snippet_is_a_part_of_the_text_with_its_marks(parts, end):
    marked_text = "".join(f"{plain}\x02{hit}\x03" for plain, hit in parts) + end
    text = "".join(f"{plain}{hit}" for plain, hit in parts) + end
    shown, marks = cut_excerpt(marked_text)
    assert shown.strip("…") in text
    assert len(shown) <= EXCERPT_WIDTH + 2
    assert bool(marks) == bool(parts)
    for start, stop in marks:
        assert 0 <= start < stop <= len(shown)
        assert set(shown[start:stop]) <= set("cd")


@pytest.mark.parametrize(
    ("name", "args", "files"),
    [
        ("read", {"path": "a.py"}, [("a.py", "read")]),
        ("Write", {"file_path": "/x/b", "content": "b"}, [("/x/b", "write")]),
        (
            "write",
            {"path": "b", "content": {"$blob": "0" * 64, "bytes": 70_000, "head": "b"}},
            [("b", "write")],
        ),
        ("mcp__fs__edit_file", {"path": "c", "old": "1", "new": "2"}, [("c", "edit")]),
        ("str_replace_based_edit_tool", {"command": "view", "path": "d"}, [("d", "read")]),
        (
            "str_replace_based_edit_tool",
            {"command": "str_replace", "path": "d", "old_str": "1", "new_str": "2"},
            [("d", "edit")],
        ),
        ("str_replace_based_edit_tool", {"command": "fly", "path": "d"}, []),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: e.py\n*** Move to: f.py\n@@\n+x\n"},
            [("f.py", "patch"), ("e.py", "patch")],
        ),
        (
            "apply_patch",
            "*** Begin Patch\n*** Add File: g \n+x\n*** Delete File: h\n*** End Patch",
            [("g", "patch"), ("h", "patch")],
        ),
        (
            "bash",
            {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: i\n*** End Patch\nE"},
            [("i", "patch")],
        ),
        ("bash", {"path": "a"}, []),
        ("read", {"path": 7}, []),
        ("read", ["path"], []),
    ],
)
def test_calls_name_the_files_they_touch(name, args, files):
    assert [(one.path, one.op) for one in list_touched_files("c", name, args)] == files


def test_paths_are_taken_from_where_the_tape_worked_at_that_entry(library):
    """Across forks from before and after a move, and phases begun by them."""

    def wrote(tape, path, branch=None):
        with tape.writer(branch) as writer:
            writer.append(Assistant((call("write", path=path, content=""),)))

    with begin(library, cwd="/one") as tape:
        wrote(tape, "a")
        early = tape.head()
        with tape.writer() as writer:
            writer.append(Meta(cwd="/two"))
        wrote(tape, "../b")
        wrote(tape, "/abs/./c")
        tape.fork(early, "early")
        tape.fork(tape.head("main"), "late")
        wrote(tape, "d", "early")
        wrote(tape, "e", "late")
        wrote(tape, "~/f", "late")
    paths = query_index(
        *library,
        lambda db: [path for (path,) in db.execute("SELECT path FROM files ORDER BY entry")],
    )
    assert paths == ["/one/a", "/b", "/abs/c", "/one/d", "/two/e", "~/f"]
    assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)


def test_results_name_the_files_that_were_changed(library):
    with begin(library, cwd="/one") as tape, tape.writer() as writer:
        files = ChangedFile("b", "renamed", "a"), ChangedFile("/abs/c", "created")
        writer.append(ToolResult("c_1", "bash", (), is_error=True, files=files))
        writer.append_data("tool.result", b'{"call_id":"c_2","files":[{"path":7},{"path":"d"}]}')
    rows = query_index(
        *library, lambda db: db.execute("SELECT path, op, call FROM files ORDER BY 1").fetchall()
    )
    assert rows == [
        ("/abs/c", "created", "c_1"),
        ("/one/a", "moved", "c_1"),
        ("/one/b", "renamed", "c_1"),
    ]
    assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)


def test_absolute_paths_are_resolved_by_their_letters():
    assert resolve_path("a", None) == "a"
    assert resolve_path("//a//b/../c", "/x") == "/a/c"
    assert resolve_path("../../a", "/x") == "/a"


def test_the_views_for_people_speak_hex_and_time(library):
    tape, (asked, _, _) = recorded(
        library,
        say("hello"),
        Assistant((call("write", path="a", content="a"),), "p", model="m"),
        result("ok"),
    )
    views = ("sessions", "messages", "costs", "tool_calls", "file_changes")
    rows = {
        view: query_index(
            *library, lambda db, view=view: db.execute(f"SELECT * FROM {view}").fetchall()
        )
        for view in views
    }
    assert {view: len(found) for view, found in rows.items()} == {
        "sessions": 1,
        "messages": 4,
        "costs": 1,
        "tool_calls": 1,
        "file_changes": 1,
    }
    message = next(row for row in rows["messages"] if row[4] == asked)
    with library.store.open(tape) as opened:
        hit = opened.find_entry(asked)[0]
    assert message[:8] == (
        tape,
        "hello",
        "main",
        "0001-main-start",
        asked,
        1,
        hit.head.header.time,
        "user",
    )


def test_words_of_every_letter_can_be_taken_out_again(library):
    """What the full-text index holds, put together again, is what it was given."""
    letters = [chr(c) for c in range(0x20, 0x3100) if not 0xD800 <= c < 0xE000]
    texts = ["".join(f"a{c}b {c} " for c in letters[at : at + 200]) for at in range(0, 12_000, 200)]
    tape, _ = recorded(library, *map(say, texts), say("kept"))
    search_entries(*library, "kept")
    library.store.remove(library.store.open(tape))
    other, _ = recorded(library, say("kept"))
    assert [hit.tape for hit in found(library, "kept")] == [other]
    assert query_index(*library, contents_of) == query_index(library.store, None, contents_of)


def test_the_expression_of_a_query():
    assert build_match_expression("a b") == '("a") AND ("b")'
    assert build_match_expression('a OR "b c" -d*') == '(("a" OR "b c")) NOT ("d" *)'
    assert build_match_expression("登a") == '("\x1f登\x1fa")'


def test_an_error_in_a_question_is_not_taken_for_damage(library):
    recorded(library, say("needle"))
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        query_index(*library, lambda db: db.execute("SELEC"))
    assert [p.name for p in library.store.path.glob("index.db.*")] == []


@pytest.mark.parametrize("how", ["rebuild", "without"])
def test_unreadable_entries_are_reported_when_the_index_is_built(library, how):
    _, entries = recorded(library, say("needle one"), say("needle two"), say("needle three"))
    (file,) = library.store.path.glob("tapes/*/phases/*/entries.jsonl")
    file.write_bytes(file.read_bytes().replace(b"needle two", b"needle 2wo"))
    library.close()
    for one in library.store.path.glob("index.db*"):
        one.unlink()
    match = f"line at byte [0-9]+ skipped: entry {entries[1][:12]}: its data does not match"
    index = None if how == "without" else library.index
    with pytest.warns(DamageWarning, match=match) as said:
        hits = remade_and_found(library.store, index, how)
    assert {hit.entry for hit in hits} == {entries[0], entries[2]}
    assert len(said) == 1


def remade_and_found(store, index, how):
    if how == "rebuild":
        assert rebuild_index(store) == 1
    return search_entries(store, index, "needle")


@pytest.mark.parametrize(
    ("expression", "loose"),
    [
        ('("login")', '(("login"))'),
        (
            '("src/auth.py") AND ("a" OR "b-c" *)',
            '(("src" AND "auth" AND "py")) AND (("a") OR ("b" AND "c" *))',
        ),
        ('("a") NOT ("b" OR "c d" OR "e" *)', '((("a"))) NOT (("b") OR ("e" *))'),
        ('("say ""hi""") NOT ("c d")', '(("say" AND "hi"))'),
        ('("\x1f\u767b\x1f\x1f\u5f55\x1f")', '(("\u767b" AND "\u5f55"))'),
    ],
)
def test_words_without_places_are_asked_for_all_words_of_a_phrase(expression, loose):
    assert build_loose_expression(expression) == loose


def test_phrases_are_found_in_arguments_and_results_and_only_whole(library):
    """Places are kept of what was said; elsewhere the lines of entries with all words are read."""
    _, entries = recorded(
        library,
        Assistant((call("read", path="src/auth.py"),)),
        result("src/auth.py is here"),
        say("auth of py in src"),
        Assistant((call("read", path="auth/src.py"),)),
    )
    assert [hit.entry for hit in found(library, "src/auth.py")] == entries[:2]
    assert [hit.entry for hit in found(library, "src -auth/src.py")] == [
        entries[2],
        *entries[:2],
    ]


def test_a_message_is_not_found_where_an_excluded_word_is_in_a_call(library):
    _, entries = recorded(
        library,
        Assistant((Text("needle"), call("bash", command="rm other"))),
        *[say("needle")] * 30,
        Assistant((Text("needle"), call("bash", command="more words"))),
    )
    hits = [hit.entry for hit in found(library, "needle -other", limit=40)]
    assert set(hits) == set(entries[1:])
    assert entries[0] in {hit.entry for hit in found(library, "needle other")}
