"""The catalogue of a remote in PostgreSQL: equal to the chunks, whoever writes it, and searched."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from zstandard import ZstdDecompressor

from tape.errors import UsageError
from tape.model.entries import Assistant, Text, Usage
from tape.remote.catalogue import PostgresCatalogue
from tape.remote.catalogue_search import CatalogueFilter, build_query, search_catalogue
from tape.remote.cursor import Cursor
from tape.remote.merging import merge_chunks
from tape.remote.objects import decode_chunk, make_log_key, parse_chunk_key
from tape.remote.publish import Publisher
from tape.remote.push import Pusher
from tape.remote.registry import open_remote
from tape.store.maintenance.upkeep import redact
from tape.store.store import Beginning
from tests.tape import making
from tests.tape.cli.conftest import BIN
from tests.tape.remote.machines import Machine

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")


@pytest.fixture
def remote(postgres):
    name, address = f"d{os.urandom(6).hex()}", f"postgresql://tape@127.0.0.1:{postgres}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with open_remote(f"{address}/{name}?team=ours") as opened:
        yield opened


@pytest.fixture
def machine(tmp_path, remote):
    machine = Machine(tmp_path / "one", remote)
    with machine.store.create(Beginning("/src/shop", "test/1", project="/src/shop")) as tape:
        making.write(tape, "fix the login page", "src/auth/login.py line 42")
    return machine


def search(remote, query, **narrow):
    return [match.head for match in search_catalogue(remote, query, 20, CatalogueFilter(**narrow))]


def ask(remote, statement):
    return remote.ask(statement)


def test_what_was_pushed_is_listed_and_found(remote, machine):
    """M213."""
    with machine.store.open("") as tape, tape.writer() as writer:
        usage = Usage(input=10, output=5, total=15)
        blocks = (Text("The cookie was too old."),)
        writer.append(Assistant(blocks, provider="p", model="m-1", usage=usage))
    machine.push()
    assert PostgresCatalogue(remote).update()
    columns = "title, project, model, entries, trashed, hold"
    assert ask(remote, f"SELECT {columns} FROM tape.tapes") == [
        ("fix the login page", "/src/shop", "m-1", 4, None, False)
    ]
    assert search(remote, "login") == ["src/auth/login.py line 42", "fix the login page"]
    assert search(remote, "auth/login.py") == ["src/auth/login.py line 42"]
    assert search(remote, '"login page" OR cookie') == [
        "The cookie was too old.",
        "fix the login page",
    ]
    assert search(remote, "login -page") == ["src/auth/login.py line 42"]
    assert search(remote, "cook*", types=["assistant"]) == ["The cookie was too old."]
    assert search(remote, "cook*", types=["user"]) == search(remote, "nowhere") == []
    assert search(remote, "login", project="/src") != []
    assert search(remote, "login", project="/elsewhere") == []


@pytest.mark.parametrize("query", ["", "-only", "*", "' ; --", '"'])
def test_a_query_without_a_word_is_refused(query):
    with pytest.raises(UsageError, match="nothing to search for"):
        build_query(query)


def test_odd_characters_are_searched_and_shown(remote, machine):
    machine.write("it's 100% \\ \0 'quoted' & (odd) | !bits 漢字 Größe", "x" * 5_000, "1e5 3f2a")
    machine.push()
    PostgresCatalogue(remote).update()
    for query in ("it's", "100%", "'quoted'", "&(odd)", "漢字", "GRÖSSE*", "größe", "\\ bits"):
        assert len(search(remote, query)) == (query != "GRÖSSE*")
    assert search(remote, "3f2a") == search(remote, "1e5") == ["1e5 3f2a"]
    assert [*PostgresCatalogue(remote).find_differences()] == []


def test_it_is_equal_to_the_chunks_however_they_are_cut(remote, machine):
    """M213."""
    catalogue = PostgresCatalogue(remote)
    for number in range(5):
        machine.write(f"again {number}")
        machine.push()
        if number % 2:
            catalogue.update()
    with machine.store.open("") as tape:
        merge_chunks(remote, tape.id)
    machine.write("after the merge")
    machine.push()
    assert catalogue.update()
    assert [*catalogue.find_differences()] == []
    assert catalogue.count_missing() == 0
    before = ask(remote, "SELECT * FROM tape.said ORDER BY entry")
    catalogue.rebuild()
    assert ask(remote, "SELECT * FROM tape.said ORDER BY entry") == before
    assert [*catalogue.find_differences()] == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE tape.tapes SET title = 'other', cost = 5", "something else of its title, cost"),
        ("DELETE FROM tape.tapes", "does not have it"),
        (
            "DELETE FROM tape.said WHERE head > 'f' AND head < 'g'",
            "other words of 1 of its entries",
        ),
        ("UPDATE tape.said SET words = ''", "other words of 2 of its entries"),
        ("UPDATE tape.tapes SET id = 'abc'", "the remote does not"),
    ],
)
def test_a_difference_is_named_and_a_rebuild_ends_it(remote, machine, damage, message):
    machine.push()
    catalogue = PostgresCatalogue(remote)
    catalogue.update()
    ask(remote, damage)
    assert any(message in text for _, text in catalogue.find_differences())
    catalogue.rebuild()
    assert [*catalogue.find_differences()] == []


def test_the_words_of_a_published_redaction_are_in_no_row(remote, machine):
    """Nobody pushes after a barrier: what erases the data takes the words of it away, too."""
    machine.push()
    PostgresCatalogue(remote).update()
    assert any("login" in row for row in read_rows(remote))
    machine.store.projection = Publisher(machine.store, "team", lambda: remote, None)
    with machine.store.open("") as tape:
        redact(tape, [e.id for e in making.entries(tape) if "login" in str(e)], "private")
    assert not any("login" in row for row in read_rows(remote))


def read_rows(remote):
    """Return every row of every table of the schema as text, with what chunks hold unpacked."""
    tables = ask(remote, "SELECT table_name FROM information_schema.tables "
                         "WHERE table_schema = 'tape' AND table_name <> 'objects'")  # fmt: skip
    rows = [
        text for (name,) in tables for (text,) in ask(remote, f"SELECT t::text FROM tape.{name} t")
    ]
    states = [bytes(state) for (state,) in ask(remote, "SELECT state FROM tape.tapes")]
    rows += [str(ZstdDecompressor().decompress(state)) for state in states]
    for listed in remote.list(""):
        data = remote.read(listed.key)
        is_chunk = parse_chunk_key(listed.key) is not None and data
        rows.append(str(decode_chunk(listed.key, data).data if is_chunk else data))
    return rows


def test_a_damaged_line_of_the_log_hides_nothing_from_it(remote, machine):
    machine.push()
    catalogue = PostgresCatalogue(remote)
    remote.create("log/readme.md", b"# hello")
    assert catalogue.update()
    machine.write("what nobody told")
    machine.push()
    remote.replace(make_log_key(2), b"[[")
    assert catalogue.update()
    assert search(remote, "nobody") == ["what nobody told"]
    assert catalogue.count_missing() == 0


def test_what_is_redacted_or_taken_away_is_found_no_more(remote, machine):
    catalogue = PostgresCatalogue(remote)
    machine.push()
    catalogue.update()
    with machine.store.open("") as tape:
        entry = next(e for e in making.entries(tape) if "login page" in str(e))
        redact(tape, [entry.id], "private")
        identity = tape.id
    machine.push()
    catalogue.update()
    assert search(remote, "page") == []
    assert search(remote, "login") == ["src/auth/login.py line 42"]
    ((title,),) = ask(remote, "SELECT title FROM tape.tapes")
    assert "page" not in (title or "")
    assert [*catalogue.find_differences()] == []
    with Cursor.open(machine.store.path, "team") as cursor:
        Pusher(machine.store, remote, cursor).unpush(identity, "over")
    catalogue.update()
    assert ask(remote, "SELECT count(*) FROM tape.said") == [(0,)]
    assert ask(remote, "SELECT count(*) FROM tape.tapes WHERE trashed IS NULL") == [(0,)]
    assert [*catalogue.find_differences()] == []


def test_each_entry_is_written_once_by_four_that_update_it(remote, machine):
    for number in range(20):
        with machine.store.create(making.beginning(f"n{number}")) as tape:
            making.write(tape, f"prompt {number}")
    machine.push()

    def update(_):
        with open_remote(remote.url) as other:
            return PostgresCatalogue(other).update()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(update, range(4)))
    assert ask(remote, "SELECT count(*), sum(entries)::int FROM tape.tapes") == [(21, 43)]
    assert [*PostgresCatalogue(remote).find_differences()] == []


def test_a_user_who_may_not_write_it_pushes_all_the_same(remote, machine):
    role = f"r{os.urandom(6).hex()}"
    remote.create("a", b"")  # the tables
    PostgresCatalogue(remote).update()
    for statement in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA tape TO {role}",
        f"GRANT SELECT, INSERT ON tape.objects TO {role}",
    ):
        ask(remote, statement)
    with open_remote(remote.url.replace("//tape@", f"//{role}@")) as theirs:
        machine.remote = theirs
        machine.push()
        assert not PostgresCatalogue(theirs).update()
        assert [*PostgresCatalogue(theirs).check()] == []
    assert PostgresCatalogue(remote).count_missing() == 1
    assert PostgresCatalogue(remote).update()
    assert search(remote, "page") == ["fix the login page"]


def test_another_team_finds_nothing(remote, machine):
    machine.push()
    PostgresCatalogue(remote).update()
    with open_remote(remote.url.replace("team=ours", "team=theirs")) as theirs:
        assert PostgresCatalogue(theirs).update()
        assert search(theirs, "login") == []
        assert [*PostgresCatalogue(theirs).find_differences()] == []


def test_the_commands_search_it_and_compare_it(remote, machine):
    def run(*words):
        command = [BIN, "--store", machine.store.path, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    assert run("remote", "add", "team", remote.url, "--mode", "manual").returncode == 0
    assert run("push", "--all", "--yes").returncode == 0
    ran = run("search", "--remote", "team", "page", "--json")
    (match,) = json.loads(ran.stdout)
    assert (match["head"], match["title"]) == ("fix the login page", "fix the login page")
    assert "    fix the login page" in run("search", "--remote", "team", "page").stdout
    assert run("search", "--remote", "team", "nowhere").returncode == 1
    assert run("doctor", "--remote").returncode == 0
    ask(remote, "UPDATE tape.said SET words = ''")
    told = run("doctor", "--remote", "team")
    assert told.returncode == 4
    assert "the catalogue has other words of 2 of its entries" in told.stdout
    assert run("doctor", "--remote", "team", "--rebuild").returncode == 0
