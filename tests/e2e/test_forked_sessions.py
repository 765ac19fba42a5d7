"""A fork of another agent's session, on the tape of its parent: its id is that of its branch."""

from __future__ import annotations

import pytest

from tests.tape.formats.sessions.lines import CodexFile

PARENT, FORK = (f"0199a000-0000-7000-8000-00000000000{number}" for number in (1, 2))


def write_turn(file, prompt, answer, tokens):
    file.add("turn_context", {"model": "gpt-5.5"})
    file.message("user", prompt)
    file.message("assistant", answer)
    file.tokens(tokens, 10, tokens + 10)


@pytest.fixture
def forked(place):
    """Import a session with one turn, and its fork with that turn and another one."""
    parent, fork = CodexFile(PARENT), CodexFile(FORK, forked_from_id=PARENT)
    write_turn(parent, "count otters", "Two otters.", 100)
    for line in parent.lines:
        fork.add(line["type"], line["payload"])
    write_turn(fork, "count zebras", "One zebra.", 200)
    for file, name in ((parent, PARENT), (fork, FORK)):
        path = place.home / f"{name}.jsonl"
        path.write_bytes(file.data)
        place.run("tape", "import", path)
    return place


def list_prompts(place, ref):
    log = place.json("tape", "log", ref, "--type", "user", "--json")
    return [entry["data"]["content"][0]["text"] for entry in log]


def test_the_id_of_a_fork_means_its_whole_path(forked):
    assert list_prompts(forked, f"codex:{FORK}") == ["count otters", "count zebras"]
    assert list_prompts(forked, f"codex:{PARENT}") == ["count otters"]
    assert list_prompts(forked, f"codex:{FORK}~2") == ["count otters"]
    said = forked.run("tape", "cat", f"codex:{FORK}").stdout
    assert said.index("Two otters.") < said.index("One zebra.")
    shown = forked.json("tape", "show", f"codex:{FORK}", "--json")
    assert [branch["current"] for branch in shown["branches"]] == [True, False]
    cost = forked.json("gong", "cost", f"codex:{FORK}", "--by", "call", "--json")
    assert [row["input"] for row in cost["rows"]] == [100, 200]


def test_a_fork_is_continued_on_its_own_branch(forked):
    forked.run(
        "gong", "chat", "-m", "offline/rules", "--session", f"codex:{FORK}", "-p", "count lions"
    )
    prompts = ["count otters", "count zebras", "count lions"]
    assert list_prompts(forked, f"codex:{FORK}") == prompts
    assert list_prompts(forked, f"codex:{PARENT}") == ["count otters"]
    forked.run("tape", "import", forked.home / f"{FORK}.jsonl")
    assert list_prompts(forked, f"codex:{FORK}") == prompts


def test_a_session_with_nothing_of_its_own_has_a_branch(place):
    """The parent is imported second: all that it says is on the tape of its fork."""
    parent, fork = CodexFile(PARENT), CodexFile(FORK, forked_from_id=PARENT)
    write_turn(parent, "count otters", "Two otters.", 100)
    for line in parent.lines:
        fork.add(line["type"], line["payload"])
    write_turn(fork, "count zebras", "One zebra.", 200)
    paths = [place.home / f"{name}.jsonl" for name in (PARENT, FORK)]
    for path, file in zip(paths, (parent, fork), strict=True):
        path.write_bytes(file.data)
    place.run("tape", "import", paths[1])
    place.run("tape", "import", paths[0])
    assert list_prompts(place, f"codex:{PARENT}") == ["count otters"]
    write_turn(parent, "count bears", "No bear.", 300)
    paths[0].write_bytes(parent.data)
    place.run("tape", "import", paths[0])
    assert list_prompts(place, f"codex:{PARENT}") == ["count otters", "count bears"]
    assert list_prompts(place, f"codex:{FORK}") == ["count otters", "count zebras"]
    assert len(place.json("tape", "branches", f"codex:{FORK}", "--json")) == 2


def test_removing_a_fork_never_removes_its_parent(forked):
    """The fork is a branch of its parent's tape, which is removed by its own name only."""
    done = forked.run("tape", "rm", "--yes", f"codex:{FORK}", code=2)
    assert f"'codex:{FORK}' names a part of tape" in done.stderr
    assert list_prompts(forked, f"codex:{PARENT}") == ["count otters"]
    forked.run("tape", "rm", "--yes", f"codex:{PARENT}")
    assert forked.tapes() == []
