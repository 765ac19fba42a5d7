"""A served copy of a store that is elsewhere: new sessions and entries come while it is served."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import urlencode

import pytest

from tape.errors import RemoteUnavailable
from tape.remote.local_copy import open_local_copy
from tape.serve.pulling import Puller
from tape.store.store import Store
from tests.e2e.conftest import Place
from tests.tape.remote.conftest import address, ministack, remote, two
from tests.tape.remote.servers import KEYS
from tests.tape.serve.conftest import serving
from tests.tape.serve.test_live import Stream, position_of

__all__ = ["address", "ministack", "remote", "two"]
PROMPT = '{{"type":"user","data":{{"content":[{{"type":"text","text":"{}"}}]}}}}\n'
PULLED = r"Pulled \d{4}-\d\d-\d\d \d\d:\d\d UTC"


def test_a_pull_without_news_is_one_request_and_an_absent_remote_is_named(two, remote, tmp_path):
    """M213"""
    one, _ = two
    one.push()
    home = open_local_copy(remote.path.as_uri(), {"XDG_CACHE_HOME": str(tmp_path)}, pytest.fail)
    puller = Puller(home, 60, lambda _home: remote)
    puller.pull()
    assert re.fullmatch(PULLED, puller.note.text)
    remote.requests.clear()
    puller.pull()
    assert remote.requests == [("list", "log/")]

    remote.left = 0
    puller.pull()
    assert puller.note.is_wrong
    assert re.fullmatch(r"The remote does not answer: this is as of .* UTC", puller.note.text)
    remote.left = None
    puller.pull()
    assert re.fullmatch(PULLED, puller.note.text)
    assert not puller.note.is_wrong


def test_before_the_first_pull_an_absent_remote_is_named(two, remote, tmp_path):
    one, _ = two
    one.push()
    home = open_local_copy(remote.path.as_uri(), {"XDG_CACHE_HOME": str(tmp_path)}, pytest.fail)

    def refuse(_home):
        raise RemoteUnavailable("no route")

    puller = Puller(home, 60, refuse)
    puller.pull()
    assert puller.note == ("The remote does not answer: this is what was here before", True)


@pytest.mark.slow
@pytest.mark.parametrize("address", ["folder", "s3"], indirect=True)
def test_what_others_push_comes_to_pages_that_are_open(address, tmp_path):
    """M213"""
    place = Place(tmp_path / "other")
    place.env |= KEYS
    place.run("tape", "remote", "add", "team", address, "--mode", "manual")
    tape = place.run("tape", "new", "--title", "The first").stdout.strip()
    place.run("tape", "append", tape, stdin=PROMPT.format("hello"))
    place.run("tape", "push", "--all", "--yes")
    home = tmp_path / "home"
    home.mkdir()
    argv = ("--store", address, "--port", "0", "--pull-every", "1")
    with serving(home, *argv, **KEYS) as server:
        while "Pulled" not in server.get("/"):
            time.sleep(0.1)
        assert "The first" in server.get("/")
        page = server.get(f"/session/{tape}")
        assert re.search(rf'<p class="pulled" id="note">{PULLED}</p>', page)
        stream = Stream(server, f"/session/{tape}/events?after={position_of(page)}")
        place.run("tape", "append", tape, stdin=PROMPT.format("and more"))
        other = place.run("tape", "new", "--title", "The second").stdout.strip()
        place.run("tape", "append", other, stdin=PROMPT.format("hello again"))
        place.run("tape", "push", "--all", "--yes")
        _, ids, news = stream.growth()
        assert len(ids) == 1
        assert "and more" in news["lines"][0]
        while "The second" not in server.get("/"):
            time.sleep(0.1)
        stream.close()


@pytest.mark.slow
def test_what_a_page_changes_comes_to_the_others(tmp_path):
    (tmp_path / "team").mkdir()
    address = (tmp_path / "team").as_uri()
    place = Place(tmp_path / "other")
    place.run("tape", "remote", "add", "team", address, "--mode", "manual")
    tape = place.run("tape", "new", "--title", "The first").stdout.strip()
    place.run("tape", "push", "--all", "--yes")
    home = tmp_path / "home"
    home.mkdir()
    argv = ("--store", address, "--port", "0", "--pull-every", "1", "--write")
    with serving(home, *argv) as server:
        for what, sent in (("title", {"title": "Renamed"}), ("label", {"name": "good"})):
            answer = server.ask(
                f"/session/{tape}/{what}", "POST", json.dumps(sent), Content_Type="application/json"
            )
            assert answer.status == 200, answer.text
    place.run("tape", "pull")
    assert place.json("tape", "ls", "--all", "--json")[0]["title"] == "Renamed"
    assert [row["label"] for row in place.json("tape", "label", tape, "--json")] == ["good"]


@pytest.mark.slow
def test_a_page_says_that_the_remote_is_away_and_that_it_is_back(tmp_path):
    team, away = tmp_path / "team", tmp_path / "away"
    team.mkdir()
    place = Place(tmp_path / "other")
    place.run("tape", "remote", "add", "team", team.as_uri(), "--mode", "manual")
    tape = place.run("tape", "new", "--title", "The first").stdout.strip()
    place.run("tape", "push", "--all", "--yes")
    home = tmp_path / "home"
    home.mkdir()
    with serving(home, "--store", team.as_uri(), "--port", "0", "--pull-every", "1") as server:
        stream = Stream(server, f"/session/{tape}/events")
        while not re.fullmatch(PULLED, json.loads(stream.next("note")[1])["text"]):
            pass
        team.rename(away)
        said = json.loads(stream.next("note")[1])
        assert said["is_wrong"]
        assert said["text"].startswith("The remote does not answer: this is as of 20")
        page = server.get("/")
        assert 'role="alert" hx-get="/pulled?seen=' in page
        assert said["text"] in page
        assert "The first" in page  # what is here is shown
        assert server.ask(f"/pulled?{urlencode({'seen': said['text']})}").status == 204
        assert said["text"] in server.get("/pulled?seen=else")
        away.rename(team)
        assert not json.loads(stream.next("note")[1])["is_wrong"]
        stream.close()


def test_what_is_in_the_trash_here_stays_there_and_is_no_failure(two, remote, tmp_path):
    one, _ = two
    one.push()
    home = open_local_copy(remote.path.as_uri(), {"XDG_CACHE_HOME": str(tmp_path)}, pytest.fail)
    store = Store(home)
    with store.open("") as tape:
        store.remove(tape)
    one.write("more")
    one.push()
    puller = Puller(home, 60, lambda _home: remote)
    puller.pull()
    assert re.fullmatch(PULLED, puller.note.text)
    assert store.folders() == []
