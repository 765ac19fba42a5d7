"""PostgreSQL as a remote: addresses, errors, teams, tables, and how many transactions it takes."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from tape.errors import RemoteUnavailable, UsageError
from tape.remote.registry import open_remote
from tests.tape import making
from tests.tape.remote.machines import Machine

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")


@pytest.fixture
def database(postgres):
    """Return the address of a database without tables."""
    name, address = f"d{os.urandom(6).hex()}", f"postgresql://tape@127.0.0.1:{postgres}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{address}/{name}"


def ask(database, statement, **options):
    with psycopg.connect(database, autocommit=True, **options) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_eight_machines_make_the_tables_once(database):
    def create(number):
        with open_remote(database) as remote:
            return remote.create(f"a/{number}", b"x")

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(create, range(8)))
    assert ask(database, "SELECT count(*) FROM tape.objects") == [(8,)]


def test_teams_have_objects_of_their_own(database):
    with open_remote(f"{database}?team=a") as one, open_remote(f"{database}?team=b") as other:
        assert one.create("a", b"of a")
        assert other.create("a", b"of b")
        assert one.read("a") == b"of a"
        assert [item.key for item in other.list("")] == ["a"]


def test_a_role_sees_the_rows_of_the_team_that_it_names(database):
    """Rows of other teams are hidden by the server, whatever is asked."""
    for team in ("a", "b"):
        with open_remote(f"{database}?team={team}") as remote:
            remote.create("k", team.encode())
    role = f"r{os.urandom(6).hex()}"
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(f"GRANT USAGE ON SCHEMA tape TO {role}")
        owner.execute(f"GRANT SELECT, INSERT ON tape.objects TO {role}")
    count, mine = "SELECT count(*) FROM tape.objects", database.replace("//tape@", f"//{role}@")
    assert ask(mine, count) == [(0,)]
    assert ask(mine, count, options="-c tape.team=a") == [(1,)]
    with open_remote(f"{mine}?team=b") as remote:
        assert remote.read("k") == b"b"
        with pytest.raises(UsageError, match="permission denied"):
            remote.replace("k", b"")


def test_a_role_without_rights_gets_the_reason(database):
    role = f"r{os.urandom(6).hex()}"
    ask(database, f"CREATE ROLE {role} LOGIN")
    mine = database.replace("//tape@", f"//{role}@")
    with open_remote(mine) as remote, pytest.raises(UsageError, match="permission denied"):
        remote.create("a", b"")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("postgresql://me:secret@127.0.0.1/x", "PGPASSWORD"),
        ("postgresql://127.0.0.1/x?password=secret", "PGPASSWORD"),
        ("postgres://127.0.0.1/x?teem=a", "invalid URI query parameter"),
    ],
)
def test_a_wrong_address_is_explained(url, complaint):
    with pytest.raises(UsageError, match=complaint) as caught:
        open_remote(url)
    assert "secret" not in str(caught.value)


def test_a_server_or_database_that_is_away_is_unavailable(postgres):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = f"postgresql://tape@127.0.0.1:{free.getsockname()[1]}/x"
    none = f"postgresql://tape@127.0.0.1:{postgres}/none"
    for url, said in ((away, "refused"), (none, 'database "none" does not exist')):
        with open_remote(url) as remote, pytest.raises(RemoteUnavailable, match=said) as caught:
            remote.create("a", b"")
        assert "\n" not in str(caught.value)


def test_a_connection_that_the_server_ended_is_replaced(database):
    with open_remote(database) as remote:
        remote.create("a", b"x")
        ask(
            database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tape'"
            f" AND datname = '{database.rpartition('/')[2]}'",
        )
        with pytest.raises(RemoteUnavailable):
            remote.read("a")
        assert remote.read("a") == b"x"


def test_fifty_small_tapes_are_one_transaction(tmp_path, database):
    """Those of a push, without the one that a connection begins with."""
    with open_remote(database) as remote:
        remote.create("a", b"x")
        machine = Machine(tmp_path / "one", remote)
        for number in range(110):
            with machine.store.create(making.beginning(str(number))) as tape:
                making.write(tape, "hello")
        machine.push()
    ((lines,),) = ask(
        database, "SELECT count(DISTINCT xmin::text) FROM tape.objects WHERE key > 'b'"
    )
    assert lines == 4  # 50 + 50 + 10, and the line of the push log
    with open_remote(database) as remote:
        other = Machine(tmp_path / "other", remote)
        assert len(other.pull()) == 110
