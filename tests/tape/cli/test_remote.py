"""`tape remote`, `push`, `pull` and `clone`: what a person sees of tapes that go elsewhere."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import pytest

from tape.remote.folder import FolderRemote
from tape.remote.leases import LeaseKeeper
from tape.remote.registry import open_remote
from tape.store.replica import Replica
from tests.tape.cli.conftest import BIN


@pytest.fixture
def team(tape, tmp_path):
    (tmp_path / "team").mkdir()
    tape("remote", "add", "team", tmp_path / "team", "--mode", "manual")
    return tmp_path / "team"


def objects(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.glob("[!p]*/**/*") if path.is_file()
    )


def test_a_first_push_says_what_leaves_and_asks(tape, talk, team):
    ran = tape("push", "--all", code=2)
    assert ran.text.startswith("1 tape would go to team: file:///")
    assert f"{talk[:8]}  First" in ran.text
    assert "pass --yes" in ran.err
    assert objects(team) == []
    assert tape("push", "--all", "--yes").text.splitlines()[-1].startswith("pushed 1 tape to team")
    assert objects(team) == ["log/000000000001", f"t/{talk}/00000001"]
    assert tape("push", "--all").text == "nothing new for team\n"


def test_a_dry_run_pushes_nothing(tape, talk, team):
    tape("push", "--all", "--dry-run")
    assert objects(team) == []


def test_a_clone_is_the_store_and_follows_it(tape, talk, team, tmp_path):
    tape("push", "--all", "--yes")
    there = ["--store", tmp_path / "there"]
    assert tape("clone", team, *there).text.startswith(f"{talk[:8]}: new, ")
    assert tape("cat", talk, *there).text == tape("cat", talk).text
    assert tape("verify", "--all", *there).code == 0
    tape("rename", talk, "A better title")
    tape("push", "--all")
    assert f"{talk[:8]}: 0 entries, 1 move" in tape("pull", *there).text
    assert tape("pull", *there).text == "nothing new at origin\n"
    (row,) = tape("ls", "--all", "--json", *there).json
    assert row["title"] == "A better title"


def test_status_counts_both_directions(tape, talk, team, tmp_path):
    there = ["--store", tmp_path / "there"]
    tape("clone", team, *there)
    status = {"name": "team", "url": team.as_uri(), "behind": 0, "complaint": None}
    status |= {"working": [], "away": None}
    assert tape("remote", "status", "--json").json == {
        **status, "push": 1, "pull": 0, "pushed": None
    }  # fmt: skip
    tape("push", "--all", "--yes")
    ran = tape("remote", "status", "--probe", "--json").json
    assert ran.pop("pushed") > "2026"
    assert ran == {**status, "push": 0, "pull": 0}
    assert tape("remote", "status", "--json", *there).json["pull"] == 1


def test_status_says_what_is_to_push_while_the_remote_is_away(tape, talk, team):
    tape("push", "--yes")
    tape("append", talk, stdin=b'{"type":"note","data":{"text":"more"}}\n')
    team.rename(team.with_name("away"))
    ran = tape("remote", "status", code=75)
    assert "1 tape to push, unknown how many to pull" in ran.text
    assert "is it mounted?" in ran.err
    state = tape("remote", "status", "--json", code=75).json
    assert (state["push"], state["pull"], "is it mounted?" in state["away"]) == (1, None, True)


def test_what_barriers_published_is_not_to_push(tape, talk, team):
    tape("push", "--all", "--yes")
    tape("remote", "rm", "team")
    tape("remote", "add", "team", team, "--mode", "barrier", "--raw")
    tape("pull")
    for number in range(2):
        note = {"type": "note", "data": {"text": f"more {number}"}}
        tape("append", talk, stdin=json.dumps(note).encode() + b"\n")
        for _ in range(2):
            ran = tape("remote", "status", "--json").json
            assert (ran["push"], ran["pull"]) == (0, 0)
    assert tape("push", "--all").text == "nothing new for team\n"


def test_a_damaged_chunk_is_made_again_by_who_has_what_it_held(tape, talk, team, tmp_path):
    """M213: its error says how; nobody else can, and the tape can still be taken away."""
    there = ["--store", tmp_path / "there"]
    tape("push", "--all", "--yes")
    tape("clone", team, *there)
    tape("rename", talk, "A better title")
    tape("push", "--all")
    chunk = team / "t" / talk / "00000002"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-9])
    said = tape("pull", *there, code=1).err + tape("pull", *there, code=1).text
    assert "`tape doctor --remote --repair` makes it again" in said
    assert "cannot be read" in tape("doctor", "--remote", *there, code=4).text
    assert "(repaired)" not in tape("doctor", "--remote", "--repair", *there, code=4).text
    assert "(--repair ends it)" in tape("doctor", "--remote", code=4).text
    assert "(repaired)" in tape("doctor", "--remote", "--repair").text
    assert "all good" in tape("doctor", "--remote").text
    tape("pull", *there)
    (row,) = tape("ls", "--all", "--json", *there).json
    assert row["title"] == "A better title"
    chunk.write_bytes(b"nothing of ours")
    tape("unpush", talk, "--yes")
    assert "is in the trash here" in tape("pull", *there, code=1).err


def test_who_works_on_a_branch_is_named_where_others_meet_it(tape, talk, team, tmp_path):
    there, note = ["--store", tmp_path / "there"], b'{"type":"note","data":{"text":"more"}}\n'
    tape("push", "--all", "--yes")
    tape("clone", team, *there)
    tape("remote", "rm", "origin", *there)
    tape("remote", "add", "origin", team, "--mode", "barrier", "--raw", *there)
    tape("pull", *there)
    LeaseKeeper(FolderRemote(team), Replica("1" * 8, "desk"), "Ada <ada@x.org>").keep(talk, "main")
    said = "Ada <ada@x.org> on desk works on main"
    (working,) = tape("remote", "status", "--json").json["working"]
    assert (working["branch"], working["person"]) == ("main", "Ada <ada@x.org>")
    assert f"{talk[:8]}: {said}\n" in tape("remote", "status").text
    tape("append", talk, stdin=note)
    assert f"{talk[:8]}: {said}: what was written here is main." in tape("push", "--all").text
    tape("pull", *there)
    ran = tape("append", talk, *there, stdin=note)
    assert f"{said}, so entries go to a new branch main." in ran.err
    ran = tape("append", f"{talk}:main", *there, stdin=note, code=5)
    assert f"{said}: `tape fork` makes a branch beside it" in ran.err


def test_a_secret_is_named_by_its_entry_and_kind(tape, talk, team):
    key = "sk-ant-api03-" + "A1b2C3d4" * 6
    entry = {"type": "user", "data": {"content": [{"type": "text", "text": key}]}}
    tape("append", talk, stdin=json.dumps(entry).encode())
    ran = tape("push", "--all", "--yes", code=1)
    assert "stays here, it holds secrets" in ran.err
    assert key not in ran.err
    assert objects(team) == []
    assert tape("push", "--all", "--yes", "--raw").code == 0


def test_a_fork_takes_its_origin_along(tape, talk, team):
    tape("fork", talk, "--new")
    child = next(row["id"] for row in tape("ls", "--all", "--json").json if row["id"] != talk)
    done = tape("push", child, "--yes", "--json").json
    assert [row["tape"] for row in done] == [talk, child]


def test_a_push_brings_the_past_of_a_tape_that_was_detached_since(tape, talk, team, tmp_path):
    child = tape("fork", "--new", talk, "--json").json["tape"]
    tape("push", "--all", "--yes")
    tape("detach", child, "--yes")
    assert tape("push", "--all").text.startswith("pushed 1 tape to team")
    assert tape("push", "--all").text == "nothing new for team\n"
    tape("unpush", talk, "--yes")
    there = ["--store", tmp_path / "there"]
    tape("clone", team, *there)
    assert [row["id"] for row in tape("ls", "--all", "--json", *there).json] == [child]
    assert tape("verify", "--all", *there).code == 0
    assert tape("cat", child, *there).text == tape("cat", child).text


def test_a_remote_that_creates_an_object_twice_is_refused(tape, tmp_path, monkeypatch):
    def create(self, key, data):
        self.replace(key, data)
        return True

    monkeypatch.setattr(FolderRemote, "create", create)
    (tmp_path / "liar").mkdir()
    ran = tape("remote", "add", "liar", tmp_path / "liar", code=2)
    assert "cannot be a remote: it created one object 2 times" in ran.err
    assert tape("remote", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["push"], 3, "`tape remote add NAME URL` adds one"),
        (["pull", "--from", "nowhere"], 3, "no remote 'nowhere'"),
        (["remote", "add", "x", "ftp://somewhere"], 2, "a remote is file://"),
        (["remote", "add", "x", ""], 2, "the address is empty"),
        (["remote", "add", "x", "git@host:me/x.git"], 2, "git+ssh://git@host/me/x.git"),
        (["remote", "add", "x", "ssh://host/x"], 2, "git+ssh://host/x"),
        (["remote", "add", "x", "file://one/two"], 2, "file:///one/two"),
        (["remote", "add", "x", "/no/such/folder"], 75, "is it mounted?"),
        (["remote", "add", "Big Name", "."], 2, "is not allowed"),
        (["remote", "rm", "nowhere"], 3, "no remote 'nowhere'"),
    ],
)
def test_a_wrong_name_or_address_is_explained(tape, arguments, code, complaint):
    assert complaint in tape(*arguments, code=code).err


def test_a_removed_remote_is_forgotten_and_keeps_what_it_has(tape, talk, team):
    tape("push", "--all", "--yes")
    before = objects(team)
    tape("remote", "rm", "team")
    assert tape("remote", "--json").json == []
    assert objects(team) == before
    assert "no remote" in tape("push", code=3).err


def test_an_address_opens_the_folder_that_it_names(tmp_path):
    folder = tmp_path / "with a blank"
    folder.mkdir()
    with open_remote(folder.as_uri()) as remote:
        assert remote.create("remote.json", b"{}")
    assert (folder / "remote.json").read_bytes() == b"{}"


def test_a_store_is_cloned_from_a_git_repository(tape, talk, tmp_path):
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "tapes.git"], check=True)
    address = f"git+{(tmp_path / 'tapes.git').as_uri()}"
    tape("remote", "add", "team", address, "--mode", "manual")
    tape("push", "--all", "--yes")
    there = ["--store", tmp_path / "there"]
    tape("clone", address, *there)
    tape("rename", talk, "A better title")
    tape("push", "--all")
    tape("pull", *there)
    (row,) = tape("ls", "--all", "--json", *there).json
    assert row["title"] == "A better title"
    tape("remote", "rm", "origin", *there)
    assert [*(tmp_path / "there" / "remotes").glob("*.cache")] == []


def test_a_remote_is_verified_and_its_chunks_are_merged(tape, talk, team):
    tape("push", "--all", "--yes")
    for number in range(3):
        tape("rename", talk, f"Title {number}")
        tape("push", "--all")
    assert re.fullmatch(
        r"team: 1 tape, 4 chunks, [0-9.]+ k?B: all good\n", tape("remote", "verify").text
    )
    assert tape("remote", "compact").text == "merged 0 chunks of 0 tapes into others\n"
    merged = tape("remote", "compact", "--min-chunks", "2", "--json").json
    assert merged == [{"tape": talk, "merged": 3, "error": None}]
    found = tape("remote", "verify", "--json").json
    assert (found["tapes"], found["chunks"], found["findings"]) == (1, 1, [])
    (team / "t" / talk / "00000004").write_bytes(b"no chunk")
    ran = tape("remote", "verify", code=4)
    assert f"  {talk[:8]}: t/{talk}/00000004 cannot be read" in ran.text


def test_a_pushed_tape_can_be_taken_back(tape, talk, team, tmp_path):
    there = ["--store", tmp_path / "there"]
    tape("push", "--all", "--yes")
    tape("clone", team, *there)
    assert "nothing was done" in tape("unpush", talk[:8], code=2).err
    tape("unpush", talk[:8], "--yes", "--why", "by mistake")
    assert "by mistake" in tape("pull", *there, code=1).err
    assert tape("ls", "--all", "--json", *there).json == []
    assert tape("restore", talk[:8], *there).code == 0
    assert tape("push", "--all").text == "nothing new for team\n"
    assert tape("cat", talk).code == 0
    assert "no tape 'feed'" in tape("unpush", "feed", code=3).err


def test_a_rule_of_retention_leaves_held_tapes(tape, talk, team):
    tape("fork", talk, "--new")
    other = next(row["id"] for row in tape("ls", "--all", "--json").json if row["id"] != talk)
    tape("push", "--all", "--yes")
    assert tape("unpush", "--before", "1d").text == "nothing to take from team\n"
    tape("hold", talk[:8], "--why", "an audit")
    (held,) = tape("hold", "--json").json
    assert (held["tape"], held["why"]) == (talk, "an audit")
    assert f"tape {talk[:8]} is held (an audit)" in tape("unpush", talk, "--yes", code=2).err
    later = ["--before", "2100-01-01", "--why", "kept for a while"]
    ran = tape("unpush", *later, "--yes", "--json")
    assert ran.json == [{"tape": other, "remote": "team", "done": True}]
    assert tape("unpush", *later, "--yes").text == "nothing to take from team\n"
    tape("hold", talk[:8], "--release")
    assert tape("hold", "--json").json == []
    assert tape("unpush", *later, "--dry-run").text.startswith(f"tape {talk[:8]} will leave file:")
    tape("unpush", *later, "--yes")
    assert [json.loads(path.read_bytes())["why"] for path in team.glob("gone/tape/*")] == [
        "kept for a while"
    ] * 2
    assert len([*team.glob(f"hold/{talk}/*")]) == 2
    assert "name a TAPE" in tape("unpush", "--yes", code=2).err


def test_a_watch_pushes_what_is_written_and_the_rest_at_its_end(tape, talk, team):
    tape("push", "--all", "--yes")
    running = subprocess.Popen(
        [BIN, "push", "--all", "--watch"],
        env={**tape.env, "TAPE_HOME": str(tape.store)},
        cwd=tape.work,
        stdout=subprocess.PIPE,
        text=True,
    )
    with running:
        assert running.stdout.readline() == "nothing new for team\n"
        assert running.stdout.readline() == "watching; Ctrl+C ends it\n"
        tape("rename", talk, "Another title")
        assert running.stdout.readline().startswith("pushed 1 tape to team")
        tape("rename", talk, "The last title")
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline().startswith("pushed 1 tape to team")
    assert running.returncode == 0
    assert tape("remote", "status", "--json").json["push"] == 0


def test_services_push_to_the_remote_of_this_store(tape, team):
    texts = tape("remote", "service", "--json").json
    command = f"--store {tape.store} push --all --watch --to team"
    assert command in texts["systemd"]["text"]
    assert "<string>--watch</string>" in texts["launchd"]["text"]
    assert tape("remote", "service", "--for", "systemd").text.splitlines()[1] == "[Unit]"
