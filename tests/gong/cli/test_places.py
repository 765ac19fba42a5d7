"""`gong -p --env`: a session whose tools act in another place than its folder."""

import json
import os
import random
import shutil
import subprocess
import time
from contextlib import suppress

import pytest

from tests import warm
from tests.gong.cli.conftest import GONG, environment

CALLS = [
    {"tool_calls": [{"name": "read", "args": {"path": "calc.py"}}]},
    {
        "tool_calls": [
            {"name": "edit", "args": {"path": "calc.py", "oldText": "a - b", "newText": "a + b"}},
            {"name": "write", "args": {"path": "sub/new.txt", "content": "new\n"}},
            {"name": "bash", "args": {"command": "pwd; cat calc.py; echo $HOME_TOKEN"}},
        ]
    },
    {"text": "done"},
]


KILLS = int(os.environ.get("TEST_KILLS", "9"))
"""How many kills at random moments; a third of them are of the client."""


@pytest.fixture
def far(home):
    """The folder of a place that a program leads to: a shell that begins somewhere else."""
    folder = home / "far/app"
    folder.mkdir(parents=True)
    (folder / "calc.py").write_text("a - b\n")
    (folder / "AGENTS.md").write_text("Speak of the far place.\n")
    program = home / "lead"
    program.write_text(f'#!/bin/sh\nfor text; do :; done\ncd {folder}\nexec sh -c "$text"\n')
    program.chmod(0o755)
    (home / ".config/gong/config.toml").write_text(
        f'[env.box]\nplace = "ssh://far"\nprogram = ["{program}"]\n'
    )
    return folder


@pytest.fixture
def here(home):
    """The folder of the session on this machine, with a file of the same name."""
    folder = home / "here"
    folder.mkdir()
    (folder / "calc.py").write_text("a - b\n")
    (folder / "AGENTS.md").write_text("Speak of this machine.\n")
    return folder


def play(gong, here, answers, *argv, code=0, prompt="go", **variables):
    (here.parent / "script.json").write_text(json.dumps(answers))
    model = ("-m", f"scripted/{here.parent}/script.json")
    return gong("-p", prompt, *model, *argv, code=code, cwd=here, **variables)


def test_tools_act_in_the_place_and_nothing_changes_here(gong, far, here):
    done = play(gong, here, CALLS, "--env", "box", "--yolo", HOME_TOKEN="secret-7")
    assert done.stdout == "done\n"
    assert (far / "calc.py").read_text() == "a + b\n"
    assert (far / "sub/new.txt").read_text() == "new\n"
    assert (here / "calc.py").read_text() == "a - b\n"
    assert sorted(path.name for path in here.iterdir()) == ["AGENTS.md", "calc.py"]
    entries = read_entries(here)
    places = {
        (entry["data"]["environment"]["name"], entry["data"]["environment"]["folder"])
        for entry in entries
        if entry["type"] == "tool.start"
    }
    assert places == {(f"ssh://far{far}", str(far))}
    results = [json.dumps(entry["data"]) for entry in entries if entry["type"] == "tool.result"]
    assert str(far) in results[-1]
    assert "secret-7" not in results[-1]


def test_a_tape_shows_where_its_calls_acted(gong, far, here):
    """M125: `tape show`, `tape cat`, and exports in Markdown."""
    play(gong, here, CALLS, "--env", "box", "--yolo")
    play(gong, here, [CALLS[0], {"text": "here"}], "-c", "--yolo")
    tape = GONG.with_name("tape")

    def run(*words):
        done = warm.run_text([tape, *words], cwd=here, env=environment(here.parent))
        assert done.returncode == 0, done.stderr
        return done.stdout

    conversation = run("cat")
    assert conversation.count(f"in ssh://far{far}:\n") == 1
    assert conversation.count("on the machine of the session:\n") == 1
    assert "*in ssh://far/" in run("cat", "--md")
    starts = [entry["id"] for entry in read_entries(here) if entry["type"] == "tool.start"]
    assert f"in ssh://far{far}: read" in run("show", starts[0])
    page = here.parent / "page.md"
    run("export", "--to", "md", "-o", str(page))
    assert "*in ssh://far/" in page.read_text()


def read_entries(here):
    tape = GONG.with_name("tape")
    done = warm.run_text([tape, "log", "--json"], cwd=here, env=environment(here.parent))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_that_a_prompt_names_are_those_of_the_place(gong, far, here):
    """M126."""
    (here / "only here.txt").write_text("secret of here\n")
    (far / "docs").mkdir()
    (far / "docs/x.md").write_text("one\ntwo\n")
    (far / "to-x").symlink_to("docs/x.md")
    prompt = f'see @calc.py @docs/ @to-x:2 @"only here.txt" @{here}/calc.py @~/none @nobody'
    (here / "calc.py").write_text("of here\n")
    play(gong, here, [{"text": "done"}], "--env", "box", prompt=prompt)
    told = json.dumps(read_entries(here))
    for document in (
        '<file path="calc.py">\na - b\n</file>',
        '<folder path="docs/">\nx.md\n</folder>',
        '<file path="to-x" lines="2-2" of="2">\ntwo\n</file>',
    ):
        assert json.dumps(document)[1:-1] in told
    assert "secret of here" not in told


def test_files_of_a_place_that_a_rule_denies_to_read_are_not_given_to_the_model(gong, far, here):
    """Nor through a link over there; what a link of this machine means is nothing there."""
    (far / ".env").write_text("KEY=hidden-over-there\n")
    (far / "link.txt").symlink_to(".env")
    (far / "open.txt").write_text("may be read\n")
    (here / "open.txt").symlink_to(".env")
    options = ("--env", "box", "--deny", "Read(.env)")
    prompt = "see @.env, @./x/../.env, @link.txt and @open.txt"
    done = play(gong, here, [{"text": "done"}], *options, prompt=prompt)
    for name in (".env", "link.txt"):
        assert f"@{name} is not attached: the rule Read(.env) denies to read it" in done.stderr
    told = json.dumps(read_entries(here))
    assert "may be read" in told
    assert "hidden-over-there" not in told


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nowhere", "is no place"),
        ("docker:a b", "no container has such a name"),
        ("ssh://-x", "is no place"),
        ("broken", "broken:"),
    ],
)
def test_a_place_that_is_none_ends_before_a_session_is_made(gong, home, far, here, place, words):
    with (home / ".config/gong/config.toml").open("a") as file:
        file.write('[env.broken]\nplace = "ssh://broken"\nprogram = ["false"]\n')
    done = play(gong, here, CALLS, "--env", place, code=2)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not [*home.glob(".tape/tapes/*")]


def test_undo_and_redo_change_the_place_where_the_work_was(gong, far, here):
    """What was changed in the place goes back there, on this machine nothing does."""
    (here / "calc.py").write_text("a + b\n")  # what the place ends with
    (here / "sub").mkdir()
    (here / "sub/new.txt").write_text("new\n")
    (far / "calc.py").chmod(0o640)
    play(gong, here, CALLS, "--env", "box", "--yolo")
    refused = gong("undo", "--yes", code=1, cwd=here)
    assert "not on this machine" in refused.stderr
    assert (far / "calc.py").read_text() == "a + b\n"
    gong("undo", "--yes", "--env", "box", cwd=here)
    assert (far / "calc.py").read_text() == "a - b\n"
    assert (far / "calc.py").stat().st_mode & 0o777 == 0o640
    assert not (far / "sub").exists()
    gong("redo", "--yes", "--env", "box", cwd=here)
    assert (far / "calc.py").read_text() == "a + b\n"
    assert (far / "sub/new.txt").read_text() == "new\n"
    assert (here / "calc.py").read_text() == "a + b\n"
    assert (here / "sub/new.txt").read_text() == "new\n"
    (far / "calc.py").write_text("by hand\n")
    gong("undo", "--yes", "--files", "--env", "box", cwd=here)
    assert (far / "calc.py").read_text() == "by hand\n"
    assert not (far / "sub/new.txt").exists()


def test_a_session_that_continues_here_says_where_it_worked(gong, far, here):
    play(gong, here, CALLS, "--env", "box", "--yolo")
    done = play(gong, here, [{"text": "here"}], "-c")
    assert f"this session worked in ssh://far{far}; it continues on this machine" in done.stderr
    again = play(gong, here, [{"text": "there"}], "-c", "--env", "box")
    assert "continues on this machine" not in again.stderr


def test_the_places_of_the_settings_are_listed(gong, far, here):
    done = gong("env", "list", "--json", cwd=here)
    assert [row["place"] for row in json.loads(done.stdout)] == ["ssh://far"]
    assert "no places" in gong("env", "list", cwd=here, HOME=str(here)).stdout


@pytest.mark.slow
def test_gong_env_check_names_what_fails(gong, far, here):
    done = gong("env", "check", "box", "--json", cwd=here)
    report = json.loads(done.stdout)
    assert (report["place"], report["failed"]) == (f"ssh://far{far}", [])
    assert report["cases"] >= 150


def has_sleeper(seconds):
    argv = ("pgrep", "-f", f"sleep {seconds}($|[^0-9])")
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(600 + KILLS * 30)
def test_a_killed_session_leaves_its_place_and_its_tape_whole(home, gong, far, here):
    """M126: kills of the client at random moments."""
    chance = random.Random(KILLS)
    tape = GONG.with_name("tape")
    for number in range(KILLS // 3):
        seconds = f"7000{number}"
        (far / "calc.py").write_text("a - b\n")
        shutil.rmtree(far / "sub", ignore_errors=True)
        sleeps = {"name": "bash", "args": {"command": f"sleep {seconds} & sleep {seconds}"}}
        script = home / "killed.json"
        script.write_text(json.dumps([*CALLS[:2], {"tool_calls": [sleeps]}, {"text": "never"}]))
        argv = (GONG, "-p", "go", "-m", f"scripted/{script}", "--env", "box", "--yolo")
        process = subprocess.Popen(
            argv, cwd=here, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=chance.random() * 5)
        process.kill()
        process.communicate()
        while has_sleeper(seconds):
            time.sleep(0.05)
        assert (far / "calc.py").read_text() in {"a - b\n", "a + b\n"}
        new = far / "sub/new.txt"
        while [*far.rglob(".gong-*")]:
            time.sleep(0.05)
        assert not new.exists() or new.read_text() == "new\n"
        after = play(gong, here, [{"text": "again"}], "--env", "box", "--yolo")
        assert after.stdout == "again\n"
        done = warm.run_text([tape, "doctor"], cwd=here, env=environment(home))
        assert done.returncode == 0, done.stdout + done.stderr
