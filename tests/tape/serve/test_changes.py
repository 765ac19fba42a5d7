"""What pages change with `--write`: as the commands do, for who may see it, and from here only."""

from __future__ import annotations

import json

import pytest

from tape.model.entries import Text, User
from tape.store.store import Beginning
from tests.e2e.conftest import Place
from tests.tape.serve.conftest import record, serving

JSON = {"Content_Type": "application/json"}
UNKNOWN = (
    "The remote team does not answer, so whether the session is held there is unknown: "
    "try again later."
)
PROMPT = '{"type":"user","data":{"content":[{"type":"text","text":"hello"}]}}\n'
TEAMS = '[core]\nrepositories = ["github.com/acme/*"]\n'


def change(server, tape, what, sent=None, **headers):
    """Send a change; return its status and what was said."""
    answer = server.ask(
        f"/session/{tape}/{what}", "POST", json.dumps(sent or {}), **{**JSON, **headers}
    )
    try:
        return answer.status, json.loads(answer.body)["said"]
    except ValueError:
        return answer.status, answer.text


def facts(server, tape, entry=""):
    return json.loads(server.ask(f"/session/{tape}/facts?entry={entry}").body)


@pytest.fixture(scope="module")
def server(library):
    with serving(library.store.path.parent, "--port", "0", "--write") as started:
        yield started


@pytest.fixture
def tape(library):
    return record(library, "Before", "one", "two")


def test_a_title_and_labels_are_those_of_the_commands(server, library, tape):
    """M213"""
    assert change(server, tape, "title", {"title": "  After <b>\u202e "}) == (
        200,
        "It is renamed to “After <b><U+202E>”.",
    )
    with library.store.open(tape) as opened:
        assert opened.refs().title == "After <b>\u202e"
        newest = opened.head().entry
        first = opened.find_ancestor(opened.head(), 3).head.entry
    assert change(server, tape, "label", {"name": "Größe gut"})[1] == (
        f"The label grosse-gut is at {newest[:8]} now."
    )
    assert change(server, tape, "label", {"name": "begin", "entry": first})[0] == 200
    shown = facts(server, tape, first)
    assert shown.pop("bytes") > 0
    assert shown == {
        "title": "After <b><U+202E>",
        "labels": [{"name": "begin", "entry": first}, {"name": "grosse-gut", "entry": newest}],
        "entry": first,
        "says": "user one",
        "branches": 1,
    }
    assert change(server, tape, "unlabel", {"name": "begin"})[1] == (
        f"The label begin is removed; it was at {first[:8]}."
    )
    with library.store.open(tape) as opened:
        assert opened.refs().labels == {"grosse-gut": newest}
    assert "After &lt;b&gt;" in server.get("/")


def test_a_session_goes_to_the_trash_and_comes_back(server, library, tape):
    assert change(server, tape, "trash") == (
        200,
        f"It is in the trash: `tape restore {tape[:8]}` brings it back.",
    )
    assert server.ask(f"/session/{tape}").status == 404
    assert tape not in server.get("/")
    assert change(server, tape, "title", {"title": "x"})[0] == 404
    library.store.restore(tape)
    assert server.ask(f"/session/{tape}").status == 200


@pytest.mark.parametrize(
    ("what", "sent", "status", "said"),
    [
        ("title", {"title": " "}, 409, "A title needs a word."),
        ("label", {"name": "!!"}, 409, "label '!!' is not allowed: "),
        ("label", {"name": "x", "entry": "0" * 40}, 409, "There is no such entry in this session."),
        ("unlabel", {"name": "none"}, 409, "There is no such label any more."),
        ("title", {"title": 1}, 400, "That is no change."),
        ("title", {"title": "x", "more": 1}, 400, "That is no change."),
        ("title", {"title": "x" * 20_000}, 400, "That is no change."),
    ],
)
def test_a_refusal_has_its_reason(server, library, tape, what, sent, status, said):
    answer = change(server, tape, what, sent)
    assert answer[0] == status
    assert answer[1].startswith(said)
    with library.store.open(tape) as opened:
        assert (opened.refs().title, opened.refs().labels) == ("Before", {})


def test_what_is_no_utf8_is_no_change(server, tape):
    sent = b'{"title": "\xff"}'
    answer = server.ask(f"/session/{tape}/title", "POST", sent, **JSON)
    assert (answer.status, json.loads(answer.body)) == (400, {"said": "That is no change."})


def test_while_a_program_writes_it_a_session_is_renamed_and_not_removed(server, library, tape):
    with library.store.open(tape) as opened, opened.writer() as writer:
        writer.append(User((Text("three"),)))
        writer.barrier()
        assert change(server, tape, "title", {"title": "During"})[0] == 200
        assert change(server, tape, "trash") == (
            409,
            "A program is writing the session: try again when it ended.",
        )
    assert facts(server, tape)["title"] == "During"
    assert change(server, tape, "trash")[0] == 200


def test_a_session_others_were_forked_from_stays_and_names_none_of_them(server, library, tape):
    with library.store.open(tape) as parent:
        origin = (parent, parent.head())
        library.store.create(Beginning("/src", "test/1", "A secret name"), origin).close()
    status, said = change(server, tape, "trash")
    assert (status, "secret" in said) == (409, False)
    assert said == "Other sessions were forked from this one: `tape detach` each of them first."


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": None}, 403),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": None, "Cookie": True}, 403),
        ({"Authorization": None, "Cookie": True, "Origin": True}, 200),
        ({"Authorization": None, "Cookie": True, "Origin": "http://127.0.0.1:1"}, 403),
        ({"Authorization": None, "Cookie": True, "Origin": "null"}, 403),
        ({"Authorization": None, "Cookie": True, "Origin": "https://evil.example"}, 403),
        ({"Authorization": None, "Origin": True}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Content_Type": "text/plain"}, 400),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 400),
    ],
)
def test_a_change_comes_from_a_page_of_this_server_or_a_program_with_the_token(
    server, tape, headers, status
):
    cookie = f"tape_{server.port}={server.token}"
    made = {"Cookie": cookie, "Origin": server.base}
    headers = {name: made[name] if value is True else value for name, value in headers.items()}
    if "Authorization" not in headers:
        headers["Authorization"] = f"Bearer {server.token}"
    assert change(server, tape, "title", {"title": "x"}, **headers)[0] == status
    expected = "x" if status == 200 else "Before"
    assert facts(server, tape)["title"] == expected
    assert server.ask(f"/session/{tape}/title").status == 405


def test_without_write_every_change_is_refused_and_nothing_offers_one(library, tape):
    with serving(library.store.path.parent, "--port", "0") as server:
        for what in ("title", "label", "unlabel", "trash"):
            status, said = change(server, tape, what, {"title": "x", "name": "x"})
            assert status == 405
            assert "started without --write" in said
        assert server.ask(f"/session/{tape}/facts").status == 404
        assert 'data-edits=""' in server.get(f"/session/{tape}")
        assert '"edits":false' in server.get(f"/session/{tape}")


def test_who_may_not_see_a_session_does_not_change_it_and_changes_are_recorded(
    library, tape, tmp_path
):
    """M213"""
    ours = record(library, "Ours", "one", repository="github.com/acme/one")
    teams = tmp_path / "teams.toml"
    teams.write_text(TEAMS)
    login = ("--login-header", "X-User", "--login-from", "127.0.0.1")
    words = ("--team-header", "X-Teams", "--teams", str(teams))
    with serving(library.store.path.parent, "--port", "0", "--write", *login, *words) as server:
        headers = {"X_User": "ada", "X_Teams": "core", "Authorization": None}
        headers["Origin"] = server.base
        sent = {"title": "New", "name": "seen"}
        for what, body in (
            ("title", {"title": "New"}),
            ("label", {"name": "seen"}),
            ("unlabel", {"name": "seen"}),
            ("trash", {}),
        ):
            assert change(server, tape, what, body, **headers)[0] == 404
            assert change(server, ours, what, body, **{**headers, "Origin": None})[0] == 403
            assert change(server, ours, what, body, **headers)[0] == 200, sent
    lines = (library.store.path / "audit.jsonl").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["person"] == "ada"]
    assert [(event["did"], event["tape"], event.get("why", "")) for event in events] == [
        ("rename", ours, ""),
        ("label", ours, "seen"),
        ("label", ours, "seen removed"),
        ("trash", ours, ""),
    ]


def test_a_change_that_cannot_be_recorded_is_not_made(library, tape, tmp_path):
    record_of_changes = library.store.path / "audit.jsonl"
    record_of_changes.unlink(missing_ok=True)
    record_of_changes.mkdir()
    words = ("--login-header", "X-User", "--login-from", "127.0.0.1")
    with serving(library.store.path.parent, "--port", "0", "--write", *words) as server:
        headers = {"X_User": "ada", "Authorization": None, "Origin": server.base}
        for what, body in (("title", {"title": "New"}), ("trash", {})):
            assert change(server, tape, what, body, **headers) == (
                409,
                "This cannot be written now.",
            )
    record_of_changes.rmdir()
    with library.store.open(tape) as opened:
        assert opened.refs().title == "Before"


def test_a_session_that_is_held_at_a_remote_stays(tmp_path):
    place = Place(tmp_path / "home")
    (tmp_path / "team").mkdir()
    url = (tmp_path / "team").as_uri()
    place.run("tape", "remote", "add", "team", url, "--mode", "barrier", "--raw")
    tape = place.run("tape", "new", "--title", "one").stdout.strip()
    place.run("tape", "append", tape, stdin=PROMPT)
    place.run("tape", "hold", tape, "--why", "an audit")
    with serving(place.home, "--port", "0", "--write") as server:
        assert change(server, tape, "trash") == (
            409,
            "It is held at team, an audit: `tape hold --release` ends that.",
        )
        assert change(server, tape, "title", {"title": "shared"})[0] == 200
        place.run("tape", "--store", tmp_path / "other", "clone", url)
        [row] = place.json("tape", "--store", tmp_path / "other", "ls", "--all", "--json")
        assert row["title"] == "shared"  # it was published at once, as by the command

        (tmp_path / "team").rename(tmp_path / "away")
        assert change(server, tape, "trash") == (
            409,
            UNKNOWN,
        )
        assert change(server, tape, "title", {"title": "alone"}) == (
            409,
            "It is changed here. The remote does not answer, and gets it with the next push.",
        )
        assert facts(server, tape)["title"] == "alone"
        (tmp_path / "away").rename(tmp_path / "team")
        place.run("tape", "hold", tape, "--release")
        assert change(server, tape, "trash")[0] == 200
    assert [row["folder"][-8:] for row in place.json("tape", "restore", "--json")] == [tape[:8]]
