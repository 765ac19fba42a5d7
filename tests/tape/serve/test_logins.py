"""People whom a proxy lets in: by its header and address only; what they see; who saw what."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing, contextmanager

import pytest
from starlette.datastructures import Headers

from tape.errors import NotFound, UsageError
from tape.index.scope import TapeScope, hide_others
from tape.index.stats import StatsFilter, select_statistics
from tape.model.entries import Text, User
from tape.serve.store_view import StoreView
from tape.serve.viewers import Viewer, current_viewer, make_proxy_login
from tests.tape.serve.conftest import Server, record, serving

LOGIN = ("--login-header", "X-User", "--login-from", "127.0.0.1")
TEAMS = """
[core]
repositories = ["github.com/acme/*"]
[data]
people = ["bob@example.org"]
"""


@pytest.fixture(scope="module")
def ids(library):
    ada, bob = "Ada <ada@example.org>", "Bob <Bob@example.org>"
    return {
        "acme": record(library, "acme one", "zebra", repository="github.com/acme/one", person=ada),
        "other": record(library, "other two", "zebra", repository="github.com/other/x", person=bob),
        "mine": record(library, "mine three", "zebra", person="Eve <eve@example.org>"),
    }


@pytest.fixture(scope="module")
def server(library, ids, tmp_path_factory):
    teams = tmp_path_factory.mktemp("teams") / "teams.toml"
    teams.write_text(TEAMS)
    words = ("--team-header", "X-Teams", "--teams", str(teams), "--name", "tapes.example.org")
    with serving(library.store.path.parent, "--port", "0", *LOGIN, *words) as started:
        yield started


def ask(server, path, user="x@example.org", teams=None, **headers):
    headers = {"X_User": user, "X_Teams": teams, "Authorization": None} | headers
    return server.ask(path, **headers)


@pytest.mark.parametrize(
    ("user", "teams", "seen"),
    [
        ("x@example.org", None, []),
        ("x@example.org", "core", ["acme"]),
        ("x@example.org", " data , core", ["acme", "other"]),
        ("x@example.org", "nothing, *", []),
        ("*@example.org", "*", []),
        ("eve@example.org", "core", ["acme", "mine"]),
        ("EVE@example.org", "", ["mine"]),
    ],
)
def test_somebody_sees_their_own_sessions_and_those_of_their_teams(server, ids, user, teams, seen):
    """M213"""
    page = ask(server, "/", user, teams).text
    assert sorted(re.findall(r'href="/session/(\w+)"', page)) == sorted(ids[name] for name in seen)
    assert f"<span>{len(seen)} session{'' if len(seen) == 1 else 's'}</span>" in page
    hits = ask(server, "/search?q=zebra", user, teams).text
    assert set(re.findall(r'<h2><a href="/session/(\w+)"', hits)) == {ids[name] for name in seen}
    costs = ask(server, "/costs", user, teams).text
    calls = re.search(r"<span>(\d+) model calls?</span>", costs)[1]
    assert int(calls) == len(seen)
    for name, tape in ids.items():
        assert ask(server, f"/session/{tape}", user, teams).status == (200 if name in seen else 404)
        assert (tape[:8] in page + hits + costs) is (name in seen)
        compared = ask(server, f"/compare?a={tape}&b={tape}", user, teams)
        assert compared.status == (200 if name in seen else 404)
        if name not in seen:
            for path in (f"/session/{tape}/events", f"/file?session={tape}&path=a.py"):
                assert ask(server, path, user, teams).status == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"X_User": None}, 401),
        ({"X_User": ""}, 401),
        ({"X_User": "a\tb"}, 401),
        ({"X_User": "x" * 300}, 401),
        ({"Host": "tapes.example.org"}, 200),
        ({"Host": "tapes.example.org", "Origin": "https://tapes.example.org"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Authorization": "Bearer x"}, 403),
    ],
)
def test_who_is_let_in_by_the_header(server, headers, status):
    assert ask(server, "/", **headers).status == status


def test_a_token_is_refused_with_logins(server, library):
    kept = next((library.store.path.parent / ".local/state/tape/serve").iterdir())
    token = json.loads(kept.read_text())["token"]
    assert "token" not in server.address
    for path, headers in (("/", {"Authorization": f"Bearer {token}"}), (f"/?token={token}", {})):
        assert ask(server, path, user=None, **headers).status == 401


def test_a_header_from_another_address_is_never_believed(library, ids):
    words = ("--login-header", "X-User", "--login-from", "10.0.0.0/8")
    with serving(library.store.path.parent, "--port", "0", *words) as server:
        for headers in ({}, {"X_Forwarded_For": "10.0.0.1"}, {"Forwarded": "for=10.0.0.1"}):
            answer = ask(server, "/", **headers)
            assert answer.status == 403
            assert "acme" not in answer.text


@pytest.mark.parametrize(
    ("peer", "values", "found"),
    [
        ("10.1.2.3", ["ada"], "ada"),
        ("::ffff:10.1.2.3", ["ada"], "ada"),
        ("2001:db8::7", ["ada"], "ada"),
        ("11.1.2.3", ["ada"], 403),
        ("127.0.0.1", ["ada"], 403),
        ("", ["ada"], 403),
        ("10.1.2.3", ["ada", "root"], 401),
        ("10.1.2.3", [], 401),
    ],
)
def test_whose_header_counts(peer, values, found):
    login = make_proxy_login("X-User", ["10.0.0.0/8", "2001:db8::/32"], None, None)
    headers = Headers(raw=[(b"x-user", value.encode()) for value in values])
    viewer = login.find_viewer(peer, headers)
    assert (viewer.name if isinstance(viewer, Viewer) else viewer.status) == found


def test_half_of_the_options_is_refused(tmp_path, library):
    for words in (
        ("X-User", [], None, None),
        (None, ["10.0.0.1"], None, None),
        ("X-User", ["everywhere"], None, None),
        ("X-User", ["10.0.0.1"], "X-Team", None),
        ("X-User", ["10.0.0.1"], "X-Team", tmp_path / "none.toml"),
    ):
        with pytest.raises(UsageError):
            make_proxy_login(*words)
    for words in (("--host", "0.0.0.0"), ("--name", "tapes.example.org")):
        with pytest.raises(AssertionError, match="let in by a proxy only"):
            Server(library.store.path.parent, *words)


def test_who_looked_at_which_session_is_recorded(server, library, ids):
    """M213: a refused look is none, and looking again within a minute is the same look."""
    for _ in range(2):
        ask(server, f"/session/{ids['acme']}", "audited@example.org", "core")
    ask(server, f"/session/{ids['other']}", "audited@example.org", "core")
    lines = (library.store.path / "audit.jsonl").read_text().splitlines()
    looks = [event for event in map(json.loads, lines) if event["person"].startswith("audited")]
    assert [(look["did"], look["tape"]) for look in looks] == [("view", ids["acme"])]


def test_a_look_that_cannot_be_recorded_shows_nothing(library, ids, tmp_path_factory):
    home = tmp_path_factory.mktemp("sealed")
    (home / ".tape").symlink_to(library.store.path)
    record_of_looks = library.store.path / "audit.jsonl"
    record_of_looks.unlink(missing_ok=True)
    record_of_looks.mkdir()
    with serving(home, "--port", "0", *LOGIN) as server:
        answer = ask(server, f"/session/{ids['acme']}")
    record_of_looks.rmdir()
    assert answer.status == 503
    assert "zebra" not in answer.text


def test_a_scope_hides_rows_of_others_in_every_table(library, ids):
    scope = TapeScope(people=("it's [odd] * ?", "eve@example.org"))

    def question(db):
        with hide_others(db, scope):
            counts = [
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("tapes", "phases", "branches", "sums", "entries")
            ]
            return counts, select_statistics(db, "all", StatsFilter())[0].spent.calls

    counts, calls = library.index.answer(question)
    assert counts[:3] == [1, 1, 1]
    assert calls == counts[3] == 1
    assert library.index.answer(lambda db: db.execute("SELECT count(*) FROM tapes").fetchone()) == (
        3,
    )


@contextmanager
def looking(view, scope):
    token = current_viewer.set(Viewer("somebody", scope))
    try:
        yield view
    finally:
        current_viewer.reset(token)


def test_what_runs_is_kept_for_each_scope_by_itself(library, ids):
    everything, ada, nobody = None, TapeScope(people=("ada@example.org",)), TapeScope()
    view = StoreView(str(library.store.path), lambda *_look: None)
    with closing(view), library.store.open(ids["acme"]) as tape, tape.writer() as writer:
        writer.append(User((Text("still here"),)))
        writer.barrier()
        with looking(view, everything):
            while not view.find_running():
                time.sleep(0.1)
        for scope, seen in ((everything, ["acme"]), (nobody, []), (ada, ["acme"])) * 2:
            with looking(view, scope):
                assert [row.id for row in view.find_running()] == [ids[name] for name in seen]


def test_lines_of_files_come_from_anybody_and_are_for_who_sees_all(library, ids, tmp_path):
    file = tmp_path / "a.py"
    file.write_text("text\n")
    with closing(StoreView(str(library.store.path), lambda *_look: None)) as view:
        with (
            looking(view, None),
            pytest.raises(NotFound, match=r"no tape of .* has a change of it"),
        ):
            view.blame_file(file)
        with (
            looking(view, TapeScope(people=("ada@example.org",))),
            pytest.raises(NotFound, match="files are for those who may see all"),
        ):
            view.blame_file(file)
