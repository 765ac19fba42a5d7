"""An entry that changed on the disk never reaches a model, and people and programs are told."""

import json

import pytest

WHY = "its data does not match its hash; `tape fsck` explains it"


@pytest.fixture
def damaged(place):
    """A session with a prompt that was changed behind the store's back."""
    model = place.script({"text": "yes"}, {"text": "yes"}, {"text": "yes"})
    place.run("gong", "chat", "-p", "remember the word plover", "-m", model)
    (folder,) = place.tapes()
    (path,) = folder.glob("phases/*/entries.jsonl")
    path.write_bytes(path.read_bytes().replace(b"word plover", b"word magpie"))
    return model


def test_the_next_request_is_built_without_it(place, damaged):
    shown = place.run("gong", "context", "--json")
    assert "magpie" not in shown.stdout
    assert [WHY in line for line in shown.stderr.splitlines()].count(True) == 1


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_prompt_reports_the_damage_and_continues(place, damaged, form):
    """M204"""
    done = place.run("gong", "chat", "-c", "-p", "go on", "-m", damaged, "--output-format", form)
    assert [WHY in line for line in done.stderr.splitlines()].count(True) == 1
    assert "magpie" not in done.stdout
    if form == "stream-json":
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert [WHY in one["message"] for one in told if one["type"] == "warning"] == [True]


@pytest.mark.parametrize("command", ["log", "cat", "tail", "context"])
def test_the_store_s_own_commands_say_so_once(place, damaged, command):
    done = place.run("tape", command)
    assert "magpie" not in done.stdout
    assert [WHY in line for line in done.stderr.splitlines()] == [True]
