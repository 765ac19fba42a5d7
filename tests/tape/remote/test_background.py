"""Tapes that were pushed once follow by themselves, in a process of their own."""

import shutil
import signal
import socket
import time

import pytest

from tape.remote.folder import FolderRemote
from tape.remote.objects import TAPES_PREFIX
from tests.e2e.conftest import Place
from tests.tape.remote.servers import KEYS


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "home")
    (tmp_path / "team").mkdir()
    place.run("tape", "remote", "add", "team", str(tmp_path / "team"))
    return place


def list_chunks(tmp_path):
    return [listed.key for listed in FolderRemote(tmp_path / "team").list(TAPES_PREFIX)]


def wait_for_chunks(tmp_path, count):
    while len(list_chunks(tmp_path)) < count:
        time.sleep(0.1)


def begin(place, title):
    return place.run("tape", "new", "--title", title).stdout.split()[0]


def test_what_is_written_to_a_pushed_tape_follows_by_itself(tmp_path, place):
    tape = begin(place, "one")
    place.run("tape", "push", tape, "--yes")
    place.run("tape", "append", tape, stdin='{"type":"note","data":{"text":"more"}}\n')
    wait_for_chunks(tmp_path, 2)
    place.run("tape", "rename", tape, "other")
    wait_for_chunks(tmp_path, 3)
    other = Place(tmp_path / "other")
    other.run("tape", "clone", str(tmp_path / "team"))
    assert [row["title"] for row in other.json("tape", "ls", "--all", "--json")] == ["other"]


def test_a_tape_that_was_never_pushed_stays(tmp_path, place):
    place.run("tape", "push", begin(place, "one"), "--yes")
    secret = begin(place, "two")
    place.run("tape", "append", secret, stdin='{"type":"note","data":{"text":"more"}}\n')
    place.run("tape", "push", secret, "--known")
    assert not [key for key in list_chunks(tmp_path) if secret[:8] in key]


def pushed_session(place):
    """Return a session of gong that was pushed once."""
    place.run("gong", "chat", "-m", "offline/rules", "-p", "hello")
    (row,) = place.json("tape", "ls", "--json")
    place.run("tape", "push", row["id"], "--yes")
    return row["id"]


def ask_again(place, **options):
    return place.run("gong", "chat", "-c", "-m", "offline/rules", "-p", "again", **options)


def test_an_answer_is_at_the_remote_when_the_command_ends(tmp_path, place):
    pushed_session(place)
    assert ask_again(place).stderr == ""
    assert len(list_chunks(tmp_path)) == 2
    assert place.json("tape", "remote", "--json")[0]["behind"] == 0


def test_a_remote_that_is_away_is_behind_until_the_next_push(tmp_path, place):
    tape = pushed_session(place)
    (tmp_path / "team").rename(tmp_path / "away")
    assert "team behind by 1 tape (" in ask_again(place).stderr
    (remote,) = place.json("tape", "remote", "--json")
    assert remote["behind"] == 1
    assert "team" in remote["complaint"]
    assert "team behind by 1 tape since" in place.run("tape", "remote").stderr
    (tmp_path / "away").rename(tmp_path / "team")
    assert "team behind by 1 tape" in place.run("tape", "remote", "status").stdout
    place.run("tape", "push", tape)
    (remote,) = place.json("tape", "remote", "--json")
    assert (remote["behind"], remote["complaint"]) == (0, None)
    assert ask_again(place).stderr == ""


def test_what_a_terminated_answer_wrote_is_at_the_remote_when_it_ends(tmp_path, place):
    script = tmp_path / "slow.json"
    script.write_text('{"answers": [{"delay_ms": 600000, "text": "never"}]}')
    pushed_session(place)
    with place.start("gong", "chat", "-c", "-m", f"scripted/{script}", "-p", "and now") as running:
        while "and now" not in place.run("tape", "cat").stdout:
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        assert running.wait() == 130
    shutil.rmtree(place.home / ".tape")
    place.run("tape", "clone", str(tmp_path / "team"))
    assert "and now" in place.run("tape", "cat").stdout


def test_a_watch_ends_within_five_seconds_of_silence(tmp_path, place):
    begin(place, "one")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"s3://tapes/x?endpoint=http://127.0.0.1:{deaf.getsockname()[1]}&region=us-east-1"
        registry = place.home / ".tape" / "remotes.json"
        registry.write_text(f'{{"remotes": {{"deaf": {{"url": "{url}"}}}}}}')
        words = ("push", "--all", "--watch", "--yes")
        with place.start("tape", *words, **KEYS) as running, deaf.accept()[0]:
            began = time.monotonic()
            running.send_signal(signal.SIGTERM)
            assert running.wait() == 75
            assert time.monotonic() - began < 5
