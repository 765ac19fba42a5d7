"""Sub-agents of real commands: what is printed, listed and summed."""

from __future__ import annotations

import json

import pytest

from tests.e2e.terminal import Terminal


def call(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


def script(place, name, *answers):
    file = place.home / f"{name}.json"
    file.write_text(json.dumps(answers))
    return f"scripted/{file}"


def run_task(place, *more):
    child = script(place, "child", call("ls"), {"text": "it is empty"})
    model = script(place, "parent", call("Task", prompt="look", model=child), {"text": "empty"})
    return place.run("gong", "-p", "what is here?", "-m", model, *more)


def test_a_stream_has_the_events_of_sub_agents_with_their_id(place):
    done = run_task(place, "--output-format", "stream-json", "--tools", "Task,TaskOutput")
    lines = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert lines[0]["tools"] == ["Task", "TaskOutput"]
    theirs = [line for line in lines if line.get("agent")]
    assert {line["agent"] for line in theirs} == {"agent-1"}
    kinds = [line["kind"] for line in theirs]
    assert (kinds[0], kinds[-1]) == ("subagent_start", "subagent_end")
    assert [line["delta"] for line in theirs if line.get("part") == "text"] == [
        *("it ", "is ", "empty")
    ] or "".join(line["delta"] for line in theirs if line.get("part") == "text") == "it is empty"
    [result] = [line for line in lines if line["type"] == "result"]
    assert (result["result"], result["turns"]) == ("empty", 2)
    mine = [line["usage"]["total"] for line in lines if line["kind"] == "message_end"]
    assert len(mine) == 4
    assert result["usage"]["total"] == sum(mine)


def test_the_text_and_the_document_are_those_of_the_session(place):
    assert run_task(place).stdout == "empty\n"
    document = json.loads(run_task(place, "--output-format", "json").stdout)
    assert (document["result"], document["turns"], document["stop_reason"]) == ("empty", 2, "stop")
    assert [one["name"] for one in document["tool_calls"]] == ["Task"]


def test_the_cost_of_sub_agents_is_that_of_the_session_in_every_sum(place):
    run_task(place)
    sums = [
        json.loads(place.run("gong", "cost", *words, "--json").stdout)["total"]
        for words in ((), ("--by", "turn"), ("--by", "call"), ("--by", "branch"), (":main",))
    ]
    assert [one["calls"] for one in sums] == [4] * 5
    assert len({one["total"] for one in sums}) == 1


def test_a_session_that_is_continued_is_that_of_the_person(place):
    run_task(place)
    model = script(place, "again", {"text": "still empty"})
    assert place.run("gong", "-c", "-p", "and now?", "-m", model).stdout == "still empty\n"
    listed = json.loads(place.run("tape", "ls", "--json").stdout)
    assert len(listed) == 1
    drawn = place.run("tape", "log", "--graph").stdout
    assert "agent-1" in drawn
    assert "agent-1 (general-purpose) on agent-1: look" in place.run("tape", "log").stdout


def test_types_are_listed(place):
    listed = json.loads(place.run("gong", "agents", "list", "--json").stdout)
    assert [one["name"] for one in listed][:2] == ["general-purpose", "Explore"]
    assert set(listed[0]) == {"name", "description", "source", "path", "model", "tools"}
    folder = place.folder / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "x.md").write_text("---\nname: x\ndescription: does it\n---\nYou do it.\n")
    done = place.run("gong", "agents", "list")
    assert ".claude/agents is not trusted, so without effect" in done.stderr
    place.run("gong", "trust", "--yes")
    assert "x                project   does it" in place.run("gong", "agents", "list").stdout


@pytest.fixture
def talk(place):
    """Say something in a terminal whose model gives a task away."""
    opened = []

    def talk(*answers, parent=(), **env):
        child = script(place, "child", *answers)
        first = call("Task", prompt="look", description="look around", model=child, **dict(parent))
        model = script(place, "parent", first, {"text": "all done"}, {"text": "and more"})
        command = [str(place.bin / "gong"), "chat", "-m", model]
        terminal = Terminal(
            command, cwd=place.folder, env={**place.env, **env}, columns=100, rows=30
        )
        opened.append(terminal)
        terminal.wait_for("ready")
        terminal.wait_for_keys()
        terminal.say("begin")
        return terminal

    yield talk
    for terminal in opened:
        terminal.__exit__()


def test_a_running_sub_agent_has_a_line(talk, place):
    """M039: what it does is shown in its card, and gone at its end."""
    wait = call("bash", command="until [ -e go ]; do sleep 0.1; done")
    terminal = talk(wait, {"text": "seen"})
    terminal.wait_for("agent-1 general-purpose: look around · bash · ", on_screen=True)
    (place.folder / "go").touch()
    terminal.wait_for("all done")
    terminal.wait_until_gone("look around · bash")


def test_a_question_of_a_sub_agent_names_it(talk, place):
    terminal = talk(call("bash", command="touch made"), {"text": "ok"}, GONG_PERMISSION="default")
    terminal.wait_for("agent-1 asks:")
    terminal.wait_for("waits for your answer", on_screen=True)
    terminal.type("1")
    terminal.wait_for("all done")
    assert (place.folder / "made").exists()


def test_a_sub_agent_in_the_background_asks_between_two_runs(talk, place):
    start = call("bash", command="until [ -e go ]; do sleep 0.1; done; touch made")
    terminal = talk(
        *(start, {"text": "ok"}),
        parent={"run_in_background": True},
        GONG_PERMISSION="default",
    )
    terminal.wait_for("agent-1 asks:")
    terminal.wait_for("all done")
    (place.folder / "go").touch()
    terminal.wait_for("waits for your answer", on_screen=True)
    terminal.type("1")
    terminal.wait_for("agent-1 (general-purpose) completed: 2 model calls")
    assert (place.folder / "made").exists()
