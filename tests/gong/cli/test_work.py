"""`gong work`: from a first line to the page that hands the work on."""

import json

import pytest

from tests.gong.cli.inside import inside


@pytest.fixture
def here(home):
    return inside(home)


def test_a_piece_of_work_from_its_beginning_to_its_handoff(gong, here, home):
    """M167, M168: gong work new|list|show|add|done|handoff."""
    script = home / "script.json"
    usage = {"input": 1000, "output": 100}
    write = {"name": "write", "args": {"path": "auth.py", "content": "x = 1\n"}}
    script.write_text(
        json.dumps([{"tool_calls": [write], "usage": usage}, {"text": "ok", "usage": usage}])
    )
    (home / ".config/gong/config.toml").write_text(
        f'[models."scripted/{script}"]\nprice = {{ input = 2, output = 10 }}\n'
    )
    gong("chat", "--yolo", "-p", "write auth.py, please", "-m", f"scripted/{script}")
    gong("chat", "-p", "list .", "-m", "offline/rules")
    tapes = json.loads(here("tape", "ls", "--json").stdout)

    identity = here("work", "new", "OAuth login", "--goal", "People log in").stdout.strip()
    both = [word for tape in tapes for word in ("--tape", tape["id"][:8])]
    here("work", "add", "oauth", "--todo", "Tests", "--todo", "Refresh tokens", *both)
    here("work", "add", identity, "--note", "24 hours", "--file", "a.py", "--decision", "JWT")
    assert here("work", "done", "oauth", "1").stdout == "done: Tests\n"
    assert "1. Refresh tokens" in here("work", "show", "login").stdout

    said = here("work", "handoff", "oauth", "-o", "handoff.md", "--to", "openai/gpt").stdout
    assert said == "handoff.md is written; give it to the model or person that continues\n"
    page = (home / "handoff.md").read_text()
    for line in (
        "People log in",
        "- [x] Tests",
        "- [ ] Refresh tokens",
        "- a.py",
        "- auth.py",
        "- JWT",
        "- 24 hours",
        "- write auth.py, please",
        "- scripted: 2,200 tokens ($0.006)",
        f"    gong chat --session {tapes[1]['id'][:8]} -m openai/gpt",
    ):
        assert line in page.split("\n"), (line, page)
    assert here("work", "handoff", "oauth", "--to", "openai/gpt").stdout == page

    (listed,) = json.loads(here("work", "list", "--json").stdout)
    assert listed == json.loads(here("work", "show", identity, "--json").stdout)
    assert listed["token_usage_by_provider"]["scripted"] == 2200
    assert listed["path"].endswith(f"/.config/gong/work/{identity}.json")
    assert listed["tapes"] == [tape["id"] for tape in tapes]


def test_mistakes_are_one_line_that_says_what_to_do(here):
    assert "gong work new" in here("work", "list").stderr
    assert json.loads(here("work", "list", "--json").stdout) == []
    for argv, code, hint in (
        (("new", " "), 2, "title"),
        (("show", "nothing"), 3, "gong work list"),
    ):
        failed = here("work", *argv, code=code).stderr
        assert hint in failed
        assert failed.count("\n") == 1
    one = here("work", "new", "Login page").stdout.strip()
    here("work", "new", "Login form")
    assert "ambiguous" in here("work", "show", "login", code=3).stderr
    assert "--todo" in here("work", "add", one, code=2).stderr
    assert "gong work show" in here("work", "done", one, "3", code=3).stderr
    assert "'ffff'" in here("work", "add", one, "--tape", "ffff", code=3).stderr
    wrong = here("work", "handoff", one, "-o", "no/such/folder.md", code=1).stderr
    assert "no/such/folder.md" in wrong


def test_a_tape_that_is_gone_hides_nothing_else(gong, here):
    """M168: bad input loses nothing."""
    gong("chat", "-p", "list .", "-m", "offline/rules")
    one = here("work", "new", "Login", "--goal", "People log in").stdout.strip()
    (tape,) = json.loads(here("tape", "ls", "--json").stdout)
    here("work", "add", one, "--tape", tape["id"])
    here("tape", "rm", tape["id"], "--yes")
    told = here("work", "handoff", one)
    assert "People log in" in told.stdout
    assert f"tape {tape['id'][:8]} is left out" in told.stderr
    made = json.loads(here("work", "handoff", one, "--json").stdout)
    assert made["goal"] == "People log in"
