"""Who took, held, redacted or exported what: kept by every kind of remote, and never changed."""

import json
import os

import pytest

from tape.remote.audit import read_events, record_event
from tape.remote.folder import FolderRemote
from tape.remote.objects import AuditEvent
from tape.remote.registry import open_remote
from tests.e2e.conftest import Place

DATES = ["2026-11-01T10:00:00.000000Z", "2026-11-02T10:00:00.000000Z"]


@pytest.fixture(params=["folder", "postgres"])
def url(request, tmp_path):
    if request.param == "folder":
        (tmp_path / "team").mkdir()
        return (tmp_path / "team").as_uri()
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    port = request.getfixturevalue("postgres")
    name, address = f"d{os.urandom(6).hex()}", f"postgresql://tape@127.0.0.1:{port}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{address}/{name}"


@pytest.fixture
def place(tmp_path, url):
    place = Place(tmp_path / "home")
    place.env["TAPE_PERSON"] = "Ada <ada@example.org>"
    place.run("tape", "remote", "add", "team", url, "--mode", "manual")
    return place


def audit(place, *words):
    rows = place.json("tape", "remote", "audit", "--json", *words)
    return [(row["did"], row["tape"], row["person"], row["why"]) for row in rows]


def test_what_was_done_with_a_tape_is_listed(place):
    """M213."""
    tape = place.run("tape", "new", "--title", "one").stdout.strip()
    secret = '{"type":"user","data":{"content":[{"type":"text","text":"the code is 4711"}]}}\n'
    place.run("tape", "append", tape, stdin=secret)
    place.run("tape", "export", tape, "-o", "before.jsonl")  # nobody has it but this store
    place.run("tape", "push", "--all", "--yes")
    assert audit(place) == []
    place.run("tape", "export", tape, "-o", "one.html", "--to", "html")
    place.run("tape", "export", tape, "-o", "two.jsonl", "--no-redact")
    place.run("tape", "push", "--all")
    head = json.loads(place.run("tape", "show", tape, "--raw").stdout)["id"]
    place.run("tape", "redact", f"{tape}@{head[:12]}", "--yes", "--why", "private")
    place.run("tape", "push", "--all")
    place.run("tape", "hold", tape, "--why", "a case")
    place.run("tape", "hold", tape, "--release")
    place.run("tape", "unpush", tape, "--yes", "--why", "over")
    ada = "Ada <ada@example.org>"
    assert audit(place) == [
        ("export", tape, ada, "html"),
        ("export", tape, ada, "jsonl, nothing masked"),
        ("redact", tape, ada, "1 entry"),
        ("hold", tape, ada, "a case"),
        ("release", tape, ada, ""),
        ("unpush", tape, ada, "over"),
    ]
    assert f"unpush   {tape[:8]}  {ada}" in place.run("tape", "remote", "audit").stdout
    assert audit(place, "--since", "2099-01-01") == []


def test_events_are_read_in_their_order_and_since_a_time(url):
    with open_remote(url) as remote:
        events = [AuditEvent("hold", "ab" * 16, date, "Ada", "laptop", "x") for date in DATES]
        for event in reversed(events):
            record_event(remote, event)
        assert read_events(remote) == events
        assert read_events(remote, DATES[0][:11] + "12:00:00.000000Z") == events[1:]


def test_a_role_may_add_to_the_audit_and_nothing_else(postgres, tmp_path):
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    name, role = f"d{os.urandom(6).hex()}", f"r{os.urandom(6).hex()}"
    address = f"postgresql://tape@127.0.0.1:{postgres}"
    event = AuditEvent("hold", "ab" * 16, DATES[0], "Ada", "laptop", "x")
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with open_remote(f"{address}/{name}") as remote:
        record_event(remote, event)
        for grant in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA tape TO {role}",
            f"GRANT SELECT, INSERT ON tape.objects TO {role}",
            f"GRANT INSERT ON tape.audit TO {role}",
        ):
            remote.ask(grant)
        theirs = f"{address}/{name}".replace("//tape@", f"//{role}@")
        with open_remote(theirs) as other:
            record_event(other, event)
            assert read_events(other) == []
        with psycopg.connect(theirs, autocommit=True) as connection:
            for statement in ("DELETE FROM tape.audit", "UPDATE tape.audit SET why = ''"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)
        remote.ask(f"REVOKE ALL ON tape.audit FROM {role}")
        with open_remote(theirs) as other:
            record_event(other, event)  # an object then
        assert read_events(remote) == [event] * 3


def test_retention_leaves_what_others_used_since_the_last_pull(tmp_path):
    (tmp_path / "team").mkdir()
    one, two = Place(tmp_path / "one"), Place(tmp_path / "two")
    for place in (one, two):
        place.run("tape", "remote", "add", "team", str(tmp_path / "team"), "--mode", "manual")
    tape = one.run("tape", "new", "--title", "one").stdout.strip()
    one.run("tape", "push", "--all", "--yes")
    two.run("tape", "pull")
    two.run("tape", "append", tape, stdin='{"type":"note","data":{"text":"more"}}\n')
    two.run("tape", "push", "--all", "--yes")
    ran = one.run("tape", "unpush", "--before", "2099-01-01", "--yes")
    assert "1 tape of team may have been used since" in ran.stderr
    assert FolderRemote(tmp_path / "team").read(f"t/{tape}/00000002")
    one.run("tape", "pull")
    one.run("tape", "unpush", "--before", "2099-01-01", "--yes")
    assert FolderRemote(tmp_path / "team").read(f"t/{tape}/00000002") == b""
