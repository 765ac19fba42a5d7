from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from itertools import count, cycle
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tape.errors import NewerFormat, TapeError
from tape.index import tables
from tape.index.database import find_migrations
from tape.index.library import list_tapes, open_store, search_entries
from tape.index.library import query_index as asked
from tape.index.reader import APPLICATION_ID, SCHEMA_VERSION, TapeRow
from tape.index.rebuild import rebuild_index
from tape.index.writer_log import WriterLog
from tape.model.entries import (
    TODOS_KIND,
    Assistant,
    Cost,
    Custom,
    Git,
    Meta,
    Mode,
    SideUsage,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from tape.store.maintenance.upkeep import detach, redact
from tape.store.phase import ENTRIES
from tape.store.refs import Pin
from tape.store.store import Beginning, Store
from tests.tape.contents_of import contents_of
from tests.tape.making import BUDGET

START = 1_795_305_600_000_000  # 2026-11-22


class Ticking:
    """A clock that goes on by a second each time it is read."""

    def __init__(self):
        self.at = START

    def __call__(self):
        self.at += 1_000_000
        return self.at


class Counting:
    """Random digits that come in order."""

    def __init__(self):
        self.k = 0

    def __call__(self, size):
        self.k += 1
        return f"{self.k:08x}".ljust(size * 2, "0")


@pytest.fixture
def library(tmp_path):
    with open_store(tmp_path / "home", clock=Ticking(), random=Counting()) as library:
        yield library


@pytest.fixture
def home(library):
    return library.store.path


def listed(library, **wanted):
    """Return the rows, once it is sure that the files alone give the same."""
    found = list_tapes(*library, **wanted)
    assert found == list_tapes(library.store, None, **wanted)
    return found


def held(library):
    """Return all the index holds, once it is sure that one made anew holds the same."""
    found = asked(*library, contents_of)
    assert found == asked(library.store, None, contents_of)
    assert asked(*library, list_astray) == []
    return found


def list_astray(db):
    """Return the rows that no range of their phase has, and sums that are not those of calls."""
    return db.execute(
        "SELECT 'entry', e.key FROM entries e WHERE NOT EXISTS (SELECT 1 FROM ranges r "
        "WHERE r.phase = e.phase AND e.key BETWEEN r.first AND r.last) UNION ALL "
        "SELECT 'file', f.rowid FROM files f JOIN entries e ON e.key = f.entry WHERE NOT EXISTS ("
        "SELECT 1 FROM ranges r WHERE r.phase = e.phase "
        "AND f.rowid BETWEEN r.first_file AND r.last_file) UNION ALL "
        "SELECT 'range', phase FROM ranges WHERE phase NOT IN (SELECT key FROM phases) UNION ALL "
        "SELECT 'sum', phase FROM sums WHERE phase NOT IN (SELECT key FROM phases) UNION ALL "
        "SELECT 'calls', p.key FROM phases p WHERE p.name <> '0000-origin' AND (SELECT count(*) "
        "FROM model_calls m JOIN entries e ON e.key = m.entry WHERE e.phase = p.key) "
        "<> (SELECT coalesce(sum(calls), 0) FROM sums WHERE phase = p.key)"
    ).fetchall()


def call(path, content="x", name="write"):
    args = msgspec.Raw(msgspec.json.encode({"path": path, "content": content}))
    return Assistant((ToolCall(id="c_1", name=name, args=args),), provider="p", model="m")


def begin(library, cwd="/src", title=None, **more):
    return library.store.create(Beginning(cwd, "test/1", title, **more))


def say(text):
    return User((Text(text),))


def todos(text):
    return Custom(TODOS_KIND, msgspec.Raw(msgspec.json.encode([{"content": text}])))


def answer(model="m-1", amount=None):
    cost = None if amount is None else Cost("USD", amount)
    return Assistant((Text("yes"),), model=model, cost=cost)


def run(code, *arguments):
    """Start another process that runs `code`."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def settle(library):
    """Let the folder of tapes look as if nothing came or went for a while."""
    then = time.time_ns() - 10_000_000_000
    os.utime(library.store.tapes, ns=(then, then))


OPENED, COUNTING = [], []
"""Files opened while anything is in COUNTING; an audit hook cannot be taken away again."""
sys.addaudithook(lambda event, args: COUNTING and event == "open" and OPENED.append(args[0]))


def work_of_a_fork(library):
    """Return how many files a fork with a first append opens, and how many rows it changes."""
    with library.store.open_folder(library.store.folders()[0]) as tape:
        db = library.index._open_current()
        before, base = db.total_changes, tape.head("main")
        tape.refs()
        OPENED.clear()
        COUNTING.append(True)
        try:
            with tape.writer(tape.fork(base)) as writer:
                writer.append(say("and now?"))
        finally:
            COUNTING.clear()
        return len(OPENED), db.total_changes - before


def aside(home):
    """Return why index files were set aside."""
    names = [p.name for p in home.iterdir() if p.name.startswith("index.db.")]
    return sorted(name.split(".")[2].partition("-")[0] for name in names)


def writers(home):
    """Return how many writers the index knows of, those it has yet to read of in the log too."""
    with closing(sqlite3.connect(home / "index.db")) as db:
        rows = set(tables.select_writers(db))
        _, lines = WriterLog(home).read_lines(*tables.select_log_position(db))
    for line in lines:
        (rows.add if line.begins else rows.discard)(line.writer)
    return len(rows)


class TestRows:
    def test_a_row_says_what_the_tape_holds(self, library):
        git = Git("main", "c" * 40, dirty=False)
        with (
            begin(library, project="/src/.git", slug="Fix it", git=git) as tape,
            tape.writer() as writer,
        ):
            writer.append(say("  fix\n the\tlogin "))
            writer.append(answer("m-1", 0.25))
            writer.append(answer("m-2"))
            usage = Usage(input=5, output=4, total=9)
            writer.append(SideUsage("title", "p", "m-3", usage, Cost("USD", 0.5)))
            facts = {"repository": "example.org/a/b", "person": "Ada <a@b>", "machine": "desk"}
            writer.append(Meta(cwd="/moved", **facts))
            writer.append(todos("plan"))
            writer.append(Mode("plan", ()))
            writer.append(todos("test"))
            newest = writer.append(say("and again"))
            writer.barrier()
            tape.fork(tape.head())
            assert listed(library) == [
                TapeRow(
                    id=tape.id,
                    folder=f"2026-11-22-fix-it-{tape.id[:8]}",
                    title="fix the login",
                    cwd="/moved",
                    project=None,
                    created=tape.info.created,
                    updated=newest.time,
                    model="m-2",
                    entries=10,
                    branches=2,
                    cost=0.75,
                    provider=None,
                    tokens=9,
                    input_tokens=5,
                    output_tokens=4,
                    git_branch="main",
                    mode="plan",
                    todos='[{"content":"test"}]',
                    **facts,
                    agent="test",
                )
            ]

    def test_the_newest_head_comes_first_and_a_limit_holds(self, library):
        tapes = [begin(library, title=name) for name in "abc"]
        with tapes[0].writer() as writer:
            writer.append(say("later"))
        for tape in tapes:
            tape.close()
        assert [row.title for row in listed(library)] == ["a", "c", "b"]
        assert [row.title for row in listed(library, limit=2)] == ["a", "c"]

    def test_only_tapes_that_work_in_a_folder_now_are_asked_for(self, library):
        with begin(library, "/one", "one"), begin(library, "/two", "two") as two:
            assert [row.title for row in listed(library, cwd="/two")] == ["two"]
            with two.writer() as writer:
                writer.append(Meta(cwd="/one"))
            assert [row.title for row in listed(library, cwd="/one")] == ["two", "one"]
            assert listed(library, cwd="/two") == []

    def test_a_path_that_is_not_unicode_is_found_again(self, library):
        begin(library, "/w\udcff").close()
        assert [row.cwd for row in listed(library, cwd="/w\udcff")] == ["/w\ufffd"]

    @pytest.mark.parametrize(
        ("prompts", "title"),
        [
            (["x" * 100], "x" * 80),
            ([" \n", "second"], "second"),
            (["l" * 70_000, "second"], "l" * 80),
            (["a\u2028b \x00"], "a b \x00"),
            ([], None),
        ],
    )
    def test_a_tape_without_a_title_is_called_by_its_first_prompt(self, library, prompts, title):
        with begin(library) as tape, tape.writer() as writer:
            for prompt in prompts:
                writer.append(say(prompt))
        assert [row.title for row in listed(library)] == [title]
        if title:
            with library.store.open(tape.id) as tape:
                tape.rename("given")
            assert [row.title for row in listed(library)] == ["given"]

    def test_data_of_another_shape_says_nothing_and_hides_nothing(self, library):
        with begin(library) as tape, tape.writer() as writer:
            for data in (b'{"content":7}', b'{"content":"plain"}', b'{"content":[{"text":1}]}'):
                writer.append_data("user", data)
            for data in (b'{"model":3}', b'{"cost":{}}', b'{"model":"good"}', b"null"):
                writer.append_data("assistant", data)
        (row,) = listed(library)
        assert (row.title, row.model, row.cost, row.entries) == ("plain", "good", None, 8)

    def test_going_back_makes_an_older_head_the_newest(self, library):
        with begin(library) as tape:
            start = tape.head()
            with tape.writer() as writer:
                writer.append(say("undone"))
            with tape._open_moves() as moves:
                moves.branch("main", start.phase, Pin(start.offset, start.entry), "undo")
            (row,) = listed(library)
            assert (row.updated, row.entries) == (start.header.time, 2)

    def test_a_phase_no_ref_names_is_not_counted(self, library):
        with begin(library) as tape:
            name = tape.head().phase
            phases = library.store.tapes / tape.folder.name / "phases"
            shutil.copytree(phases / name, phases / "0002-main")
            tape.rename("looked at again")
        assert [row.entries for row in listed(library)] == [1]

    def test_damaged_and_newer_tapes_do_not_hide_the_others(self, library):
        for title in ("damaged", "newer", "headless", "good"):
            begin(library, title=title, slug=title).close()
        info = {path.name.split("-")[3]: path for path in library.store.tapes.iterdir()}
        (info["damaged"] / "tape.json").write_bytes(b"{")
        (info["newer"] / "tape.json").write_bytes(b'{"format":2}')
        (info["headless"] / "refs.jsonl").unlink()
        assert [row.title for row in listed(library)] == ["good"]
        assert [row.title for row in listed(library)] == ["good"]

    def test_a_later_store_is_refused_and_gets_no_index(self, library, home):
        with begin(library) as tape:
            (home / "store.json").write_bytes(b'{"format":2}')
            with tape.writer() as writer:
                writer.append(say("goes on"))
        for index in (library.index, None):
            with pytest.raises(NewerFormat):
                list_tapes(library.store, index)
        assert not (home / "index.db").exists()


class TestFiles:
    def test_reading_an_empty_home_makes_nothing(self, library, home):
        assert listed(library) == []
        assert not home.exists()
        home.mkdir()
        assert listed(library) == []
        assert list(home.iterdir()) == []

    def test_the_index_is_private_and_bears_our_mark(self, library, home):
        begin(library).close()
        listed(library)
        assert {p.stat().st_mode & 0o777 for p in home.glob("index.db*")} == {0o600}
        db = sqlite3.connect(home / "index.db")
        marks = [
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        ]
        assert marks == [APPLICATION_ID, SCHEMA_VERSION, "wal"]
        assert db.execute("SELECT count(*) FROM _sqlite_migrations").fetchone() == (SCHEMA_VERSION,)
        db.close()

    def test_an_index_that_is_not_ours_or_not_whole_is_renamed(self, library, home):
        """Nothing is overwritten: the bytes stand under another name, and the list is the same."""
        begin(library, title="kept").close()
        listed(library)
        path = home / "index.db"
        reasons = set()
        for spoil, why in SPOILED:
            library.index.close()
            spoil(path)
            was = path.read_bytes()
            assert [row.title for row in listed(library)] == ["kept"]
            reasons.add(why)
            assert set(aside(home)) == reasons
            assert was in [p.read_bytes() for p in home.glob(f"index.db.{why}-*")]

    def test_two_files_renamed_in_one_second_keep_their_names(self, tmp_path):
        with open_store(tmp_path / "home", clock=lambda: START) as library:
            begin(library).close()
            for text in (b"one", b"two", b"three"):
                library.index.close()
                (tmp_path / "home/index.db").write_bytes(text * 500)
                listed(library)
            assert sorted(p.name for p in (tmp_path / "home").glob("index.db.d*")) == [
                "index.db.damaged-2026-11-22T000000",
                "index.db.damaged-2026-11-22T000000.2",
                "index.db.damaged-2026-11-22T000000.3",
            ]

    def test_of_damaged_files_the_newest_three_are_kept(self, tmp_path):
        ticks = count(START, 1_000_000)
        home = tmp_path / "home"
        with open_store(home, clock=lambda: next(ticks)) as library:
            begin(library).close()
            (home / "index.db.foreign-2026-11-20T000000").write_bytes(b"somebody's")
            for text in (b"one", b"two", b"three", b"four", b"five"):
                library.index.close()
                (home / "index.db").write_bytes(text * 500)
                listed(library)
        kept = [path.read_bytes() for path in sorted(home.glob("index.db.damaged-*"))]
        assert kept == [b"three" * 500, b"four" * 500, b"five" * 500]
        assert "foreign" in aside(home)

    @pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
    def test_a_file_that_the_disk_does_not_give_back_is_not_called_damaged(self, tmp_path):
        home = tmp_path / "home"
        with open_store(home) as library:
            begin(library, title="kept").close()
            listed(library)
        index = home / "index.db"
        index.write_bytes(b"what is this" * 400)
        command = [Path(sys.executable).parent / "tape", "--store", home, "ls", "--json"]
        trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=read"]
        fails = [*trace, "-e", "inject=read:error=EIO", "-P", index]
        for traced, reasons in ((fails, []), ([], ["damaged"])):
            done = subprocess.run([*traced, *command], capture_output=True, check=True)
            assert [row["title"] for row in msgspec.json.decode(done.stdout)] == ["kept"]
            assert aside(home) == reasons

    def test_damage_that_shows_only_in_use_is_met_the_same_way(self, library, home):
        begin(library, title="kept").close()
        listed(library)
        library.index.close()
        with (home / "index.db").open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xa5" * (size - 4096))
        assert [row.title for row in listed(library)] == ["kept"]
        assert aside(home) == ["damaged"]

    def test_an_older_one_of_ours_is_brought_up_to_date_in_place(self, library, home):
        begin(library, title="kept").close()
        db = sqlite3.connect(home / "index.db")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("CREATE TABLE other (x)")
        db.close()
        assert [row.title for row in listed(library)] == ["kept"]
        assert aside(home) == []

    def test_where_no_index_can_be_the_files_answer_and_writers_write(self, library, home):
        begin(library, title="first").close()
        (home / "index.db").mkdir()
        with begin(library, title="second") as tape, tape.writer() as writer:
            writer.append(say("all the same"))
        assert [(row.title, row.entries) for row in listed(library)] == [
            ("second", 2),
            ("first", 1),
        ]

    def test_an_index_that_is_locked_for_long_is_rebuilt(self, library, home):
        begin(library, title="kept").close()
        listed(library)
        other = sqlite3.connect(home / "index.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        library.index._run_with_recovery(lambda db: db.execute("PRAGMA busy_timeout = 10"))
        with library.store.open("0000") as tape:
            tape.rename("renamed")
        assert [row.title for row in listed(library)] == ["renamed"]
        other.close()
        with library.store.open("0000") as tape:
            tape.rename("again")
        assert [row.title for row in listed(library)] == ["again"]
        assert writers(home) == 0

    def test_the_version_counts_the_steps(self):
        code = "import runpy, sys; print(len(runpy.run_path(sys.argv[1])['steps']._migrations))"
        out, _ = run(code, find_migrations() / "index.py").communicate()
        assert int(out) == SCHEMA_VERSION


def _with(*statements):
    def spoil(path):
        db = sqlite3.connect(path)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.execute("PRAGMA journal_mode = DELETE")
        db.close()

    return spoil


def _halve(path):
    os.truncate(path, path.stat().st_size // 2)


def _replace(path):
    path.unlink()
    _with("CREATE TABLE theirs (x)", "PRAGMA application_id = 7")(path)


def _damage_schema(path):
    """Let a word of the schema be no text: SQLite's message quotes it."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE INDEX tapes_", b"CREATE INDE\xf5 tapes_", 1))


SPOILED = [
    (_damage_schema, "damaged"),
    (lambda path: path.write_bytes(b"what is this" * 400), "damaged"),
    (_halve, "damaged"),
    (_with("DROP TABLE tapes"), "damaged"),
    (_with("PRAGMA user_version = 99"), "newer"),
    (_with("PRAGMA application_id = 99"), "foreign"),
    (_replace, "foreign"),
]


class TestFollowing:
    def test_a_list_that_is_caught_up_opens_no_tape_and_loads_no_toolkit(self, library, home):
        for k in range(3):
            begin(library, title=str(k)).close()
        settle(library)
        listed(library)
        library.index.close()
        out, _ = run(LIST_AUDITED, home).communicate()
        assert out.split() == ["3", "False"]

    def test_a_tape_that_is_being_written_elsewhere_is_up_to_date(self, library, home):
        with begin(library) as tape:
            settle(library)
            listed(library)
            writer = run(WRITE, home, tape.id, 40)
            assert writer.stdout.readline() == "written\n"
            assert [row.entries for row in listed(library)] == [41]
            writer.communicate("")
            assert [row.entries for row in listed(library)] == [41]
            assert writers(home) == 0

    def test_what_a_killed_writer_wrote_is_read_and_the_dead_are_taken_out(self, library, home):
        with begin(library) as tape:
            settle(library)
            listed(library)
            writer = run(WRITE, home, tape.id, 40)
            writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            assert writers(home) == 1
            assert [row.entries for row in listed(library)] == [41]
            assert writers(home) == 0

    def test_a_move_by_a_process_that_died_right_after_is_seen(self, library, home):
        begin(library, title="before").close()
        settle(library)
        listed(library)
        mover = run(RENAME_AND_DIE, home)
        mover.communicate()
        assert mover.returncode == 9
        assert [row.title for row in listed(library)] == ["after"]
        assert writers(home) == 0

    @pytest.mark.parametrize("own", [True, False], ids=["with", "without"])
    def test_moves_no_writer_makes_are_seen(self, library, own, home):
        """With an index of its own, or through the store of another program."""
        with begin(library, title="before") as tape:
            settle(library)
            listed(library)
            with open_store(home) as other, tape if own else other.store.open(tape.id) as mover:
                mover.rename("after")
                mover.fork(mover.head(), "side", switch=True)
            (row,) = listed(library)
            assert (row.title, row.branches) == ("after", 2)

    def test_two_writers_of_one_tape_leave_one_after_the_other(self, library, home):
        with begin(library) as tape:
            with tape.writer() as one:
                with tape.writer() as two:
                    two.append(say("beside"))
                assert writers(home) == 1
                one.append(say("here"))
                one.barrier()
                assert [row.entries for row in listed(library)] == [4]
            assert writers(home) == 0

    def test_an_index_deleted_under_a_writer_learns_of_it_again(self, library, home):
        with begin(library) as tape, tape.writer() as writer:
            writer.append(say("one"))
            writer.barrier()
            for path in home.glob("index.db*"):
                path.unlink()
            with open_store(home) as other:
                listed(other)
                settle(library)
                listed(other)
                writer.append(say("two"))
                writer.barrier()
                assert writers(home) == 1
                assert [row.entries for row in listed(other)] == [3]

    def test_a_renamed_folder_is_the_same_tape(self, library):
        with begin(library, title="kept"), begin(library, title="other"):
            settle(library)
            listed(library)
        folders = library.store.folders()
        (library.store.tapes / folders[0]).rename(library.store.tapes / "Мой \udcff tape")
        assert {row.folder for row in listed(library)} == {folders[1], "Мой \udcff tape"}
        with library.store.open("00000001" + "0" * 24) as tape:
            tape.rename("found under its new name")
        assert [row.title for row in listed(library)][-1] == "found under its new name"

    def test_folders_that_changed_places_are_distinguished(self, library):
        begin(library, title="a").close()
        begin(library, title="b").close()
        settle(library)
        listed(library)
        a, b = (library.store.tapes / name for name in library.store.folders())
        a.rename(library.store.tapes / "c")
        b.rename(a)
        (library.store.tapes / "c").rename(b)
        assert {row.folder for row in listed(library)} == {a.name, b.name}

    def test_a_copy_of_a_tape_is_listed_once(self, library):
        begin(library, title="a").close()
        (name,) = library.store.folders()
        for copy in ("zz", "00"):
            shutil.copytree(library.store.tapes / name, library.store.tapes / copy)
            settle(library)
            assert [row.folder for row in listed(library)] == [min(name, copy)]
        shutil.rmtree(library.store.tapes / "00")
        assert [row.folder for row in listed(library)] == [name]

    def test_a_phase_cut_short_or_replaced_is_read_again(self, library):
        with begin(library) as tape, tape.writer() as writer:
            for k in range(5):
                writer.append(answer("m", k / 10))
        path = library.store.tapes / library.store.folders()[0] / "phases/0001-main-start" / ENTRIES
        lines = path.read_bytes().split(b"\n")
        for kept in (b"\n".join(lines[:3]) + b"\n", b"\n".join(lines[:5]) + b"\nhalf"):
            path.write_bytes(kept)
            with library.store.open(tape.id) as tape, tape.notify_projection():
                pass
            assert [row.entries for row in listed(library)] == [kept.count(b"\n")]

    def test_a_fork_costs_the_same_beside_many_branches(self, library):
        with begin(library) as tape, tape.writer() as writer:
            writer.append(say("one"))
        opened, changed = work_of_a_fork(library)
        with library.store.open(tape.id) as tape:
            for _ in range(60):
                with tape.writer(tape.fork(tape.head("main"))) as writer:
                    writer.append(say("another way"))
        again, rows_changed = work_of_a_fork(library)
        assert again == opened
        assert rows_changed < 2 * changed  # full text merges its parts now and then
        assert held(library)

    def test_what_others_changed_meanwhile_is_seen_beside_a_move(self, library, home):
        with begin(library) as tape, open_store(home, clock=Ticking(), random=Counting()) as other:
            with other.store.open(tape.id) as same, same.writer() as writer:
                writer.append(answer("m-9", 0.2))
                tape.fork(tape.head("main"), "mine")
                writer.append(answer("m-8", 0.1))
                tape.label("here", tape.head("mine").entry)
            tape.rename("A title")
        assert [(row.title, row.branches, row.entries) for row in listed(library)] == [
            ("A title", 2, 3)
        ]
        assert held(library)

    def test_processes_that_start_together_make_one_index(self, library, home):
        for k in range(5):
            begin(library, title=str(k)).close()
        for _ in range(3):
            for path in home.glob("index.db*"):
                path.unlink()
            starters = [run(LIST_WHEN_TOLD, home) for _ in range(6)]
            for starter in starters:
                assert starter.stdout.readline() == "ready\n"
            for starter in starters:
                starter.stdin.write("go\n")
                starter.stdin.flush()
            assert [starter.communicate()[0] for starter in starters] == ["True 5\n"] * 6
            assert aside(home) == []
            listed(library)

    def test_processes_that_meet_a_damaged_index_rename_it_once(self, library, home):
        begin(library, title="kept").close()
        (home / "index.db").write_bytes(b"what is this" * 400)
        starters = [run(LIST_WHEN_TOLD, home) for _ in range(4)]
        for starter in starters:
            starter.stdin.write("go\n")
            starter.stdin.flush()
        assert [starter.communicate()[0] for starter in starters] == ["ready\nTrue 1\n"] * 4
        assert aside(home) == ["damaged"]

    def test_readers_beside_writers_never_see_a_tape_shrink(self, library, home):
        with begin(library) as one, begin(library) as two:
            starters = [run(WRITE, home, tape.id, 150) for tape in (one, two, one)]
            most: Counter[str] = Counter()
            while most.total() < 2 + 450 + 1:  # the third writer opens a branch of its own
                for row in list_tapes(*library):
                    assert row.entries >= most[row.id]
                    most[row.id] = row.entries
            for starter in starters:
                starter.communicate("")
            assert [row.entries for row in listed(library)] in ([302, 151], [151, 302])


LIST_AUDITED = """
import sys
from pathlib import Path
from tape.index.library import list_tapes, open_store

def hook(event, arguments):
    if event in {"open", "os.listdir", "os.scandir"} and "/tapes/" in str(arguments[0]):
        raise RuntimeError(f"{event} {arguments}")

with open_store(Path(sys.argv[1])) as library:
    sys.addaudithook(hook)
    print(len(library.index.rows(None, None)), "sqlite_utils" in sys.modules)
"""

WRITE = """
import sys
from pathlib import Path
from tape.model.entries import Text, ToolCall
from tape.model.entries import User
from tape.index.library import open_store

home, tape, count = sys.argv[1:]
with open_store(Path(home)) as library:
    with library.store.open(tape) as tape, tape.writer(durability="none") as writer:
        for k in range(int(count)):
            writer.append(User((Text(str(k)),)))
            writer.barrier()
        print("written", flush=True)
        sys.stdin.read()
"""

RENAME_AND_DIE = """
import os, sys
from pathlib import Path
from tape.index.library import open_store

library = open_store(Path(sys.argv[1]))
with library.store.open("0000") as tape, tape._open_moves() as moves:
    moves.title("after")
    os._exit(9)
"""

LIST_WHEN_TOLD = """
import sys
from pathlib import Path
from tape.index.library import list_tapes, open_store

with open_store(Path(sys.argv[1])) as library:
    print("ready", flush=True)
    sys.stdin.readline()
    found = library.index.rows(None, None)
    print(found == list_tapes(library.store, None), len(found))
"""


QUERIES = ("hi", "登录", "a.py", "wrote OR yes")
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where a hundred stores are made: SQLite waits for a disk."""


class Histories(RuleBasedStateMachine):
    """Whatever happens to tapes and to the index, it answers as the files do."""

    def __init__(self):
        super().__init__()
        self.stack = ExitStack()
        home = Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))) / "home"
        self.library = open_store(home, clock=Ticking(), random=Counting())
        self.library.store.durable = False
        self.stack.callback(self.library.close)
        store = self.library.store
        self.bare = Store(home, clock=store.clock, random=store.random, durable=False)
        """The same store for a program that does not know the index."""
        self.open = {}
        # Searching the files again is slow: one query after each step, all of them at the end.
        self.queries = cycle(QUERIES)

    @initialize()
    def begin(self):
        self.new("/w")

    @rule(cwd=st.sampled_from(["/w", "/x"]))
    def new(self, cwd):
        begin(self.library, cwd).close()

    def pick(self, data, kind="tape"):
        return data.draw(st.sampled_from(self.library.store.folders() or [None]), label=kind)

    def opened(self, data):
        folder = self.pick(data)
        store = self.library.store if data.draw(st.booleans(), label="indexed") else self.bare
        return ExitStack() if folder is None else store.open_folder(folder)

    @rule(data=st.data(), what=st.lists(st.integers(0, 9), min_size=1, max_size=4))
    def write(self, data, what):
        kinds = (
            *(say("hi 登录"), answer("m-1", 0.1), answer("m-2", 0.7), Meta(cwd="/x"), say(" ")),
            *(call("../a.py"), ToolResult("c_1", "write", (Text("wrote it"),))),
            *(Mode("plan", ()), todos("one"), todos("two")),
        )
        with suppress(TapeError), self.opened(data) as tape:  # what it stood on was cut off
            if not isinstance(tape, ExitStack):
                with tape.writer() as writer:
                    for k in what:
                        writer.append(kinds[k])

    @rule(data=st.data(), back=st.integers(0, 2), switch=st.booleans())
    def fork(self, data, back, switch):
        with suppress(TapeError), self.opened(data) as tape:  # or its origin removed, or copied
            if not isinstance(tape, ExitStack):
                head = tape.head()
                hit = tape.find_ancestor(head, min(back, head.header.n))
                tape.fork(hit.head if hit.tape is tape else head, switch=switch)

    @rule(data=st.data())
    def rename(self, data):
        with self.opened(data) as tape:
            if not isinstance(tape, ExitStack):
                tape.rename(f"title {self.library.store.clock()}")

    @rule(data=st.data(), name=st.sampled_from(["good", "bad"]), gone=st.booleans())
    def label(self, data, name, gone):
        with suppress(TapeError), self.opened(data) as tape:
            if not isinstance(tape, ExitStack):
                tape.label(name, None if gone else tape.head().entry)

    @rule(data=st.data())
    def redact(self, data):
        with suppress(TapeError), self.opened(data) as tape:  # the structure cannot be redacted
            if not isinstance(tape, ExitStack):
                redact(tape, [tape.head().entry], "a secret")

    @rule(data=st.data())
    def detach(self, data):
        with suppress(TapeError), self.opened(data) as tape:
            if not isinstance(tape, ExitStack):
                detach(tape)

    @rule(data=st.data())
    def fork_new(self, data):
        with suppress(TapeError), self.opened(data) as tape:
            if not isinstance(tape, ExitStack):
                beginning = Beginning("/w", "test/1")
                self.library.store.create(beginning, (tape, tape.head())).close()

    @rule(data=st.data(), name=st.sampled_from(["aa", "zz", "Z"]))
    def move(self, data, name):
        folder, tapes = self.pick(data), self.library.store.tapes
        if folder and not (tapes / name).exists():
            (tapes / folder).rename(tapes / name)

    @rule(data=st.data(), name=st.sampled_from(["bb", "yy"]))
    def copy(self, data, name):
        folder, tapes = self.pick(data), self.library.store.tapes
        if folder and not (tapes / name).exists():
            shutil.copytree(tapes / folder, tapes / name)

    @rule(data=st.data())
    def remove(self, data):
        folder = self.pick(data)
        if folder:
            shutil.rmtree(self.library.store.tapes / folder)

    @rule(data=st.data())
    def cut(self, data):
        """Cut the end of a phase, but not its first line, and let somebody come by."""
        folder = self.pick(data)
        if folder is None:
            return
        with self.library.store.open_folder(folder) as tape:
            phase = data.draw(st.sampled_from(tape.phases.names()))
            path = self.library.store.tapes / tape.folder.name / "phases" / phase / ENTRIES
            first = path.read_bytes().index(b"\n") + 1
            with tape.notify_projection():
                os.truncate(path, data.draw(st.integers(first, path.stat().st_size)))

    @rule()
    def time_passes(self):
        settle(self.library)

    @rule(close=st.booleans())
    def delete_index(self, close):
        if close:
            self.library.index.close()
        for path in self.library.store.path.glob("index.db*"):
            path.unlink()

    @rule(spoil=st.sampled_from([spoil for spoil, _ in SPOILED]))
    def spoil_index(self, spoil):
        path = self.library.store.path / "index.db"
        self.library.index.close()
        list_tapes(*self.library)
        self.library.index.close()
        if path.exists():
            spoil(path)

    @invariant()
    def the_index_answers_as_the_files_do(self):
        listed(self.library)
        listed(self.library, cwd="/x", limit=1)
        held(self.library)
        self.found(next(self.queries))

    def found(self, query):
        found = search_entries(*self.library, query)
        assert found == search_entries(self.library.store, None, query)
        assert len({match.entry for match in found}) == len(found)

    @rule()
    def rebuild(self):
        self.library.index.close()
        rebuild_index(self.library.store)

    def teardown(self):
        with self.stack:
            for query in QUERIES:
                self.found(query)


Histories.TestCase.settings = settings(
    max_examples=12 * BUDGET,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestHistories = pytest.mark.slow(Histories.TestCase)
