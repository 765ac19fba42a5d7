"""Histories that real providers accepted or refused."""

import json
from pathlib import Path

import pytest

from tape.context.view import Target
from tape.formats.registry import FORMATS
from tests.tape.formats.histories import as_messages, emitted, put, repaired
from tests.tape.formats.judge import faults, pairs

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "repair"
NAMES = {
    "anthropic": "anthropic",
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
    "gemini": "gemini",
}
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project"),
]


def cases(file):
    lines = (CORPUS / file).read_bytes().split(b"\n") if CORPUS.is_dir() else []
    return [case(json.loads(line)) for line in lines if line]


def case(row):
    name = NAMES[row["api"]]
    return pytest.param(name, row[FORMATS[name].field], id=row["id"])


def texts(value):
    """Return what was said, without what calls and results hold."""
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    if not isinstance(value, dict):
        return []
    said = [value["text"]] if value.get("text") else []
    if value.get("role") in {"user", "assistant"} and isinstance(value.get("content"), str):
        said.append(value["content"])
    inside = (value.get(key) for key in ("content", "parts") if value.get("type") != "tool_result")
    return said + [text for part in inside for text in texts(part)]


@pytest.mark.parametrize(("name", "array"), cases("valid_histories.jsonl"))
def test_what_was_accepted_is_read_and_written_unchanged(name, array):
    form = FORMATS[name]
    assert form.check(array) == []
    read = form.parse(array, put)
    assert emitted(name, as_messages(read)) == array
    assert emitted(name, repaired(read, Target("", form.api, ""))) == array


@pytest.mark.parametrize(("name", "array"), cases("broken_histories.jsonl"))
def test_what_is_refused_can_be_sent_after_repair(name, array):
    form = FORMATS[name]
    assert form.check(array)
    sent = emitted(name, repaired(form.parse(array, put), Target("", form.api, "")))
    assert form.check(sent) == []
    assert faults(name, sent) == []
    after = pairs(name, sent)
    assert {one: after.get(one) for one in pairs(name, array)} == pairs(name, array)
    assert [text for text in texts(sent) if "conversation continues" not in text] == texts(array)


@pytest.mark.parametrize("other", FORMATS)
@pytest.mark.parametrize(("name", "array"), cases("broken_histories.jsonl"))
def test_what_one_provider_refused_another_can_go_on_with(name, array, other):
    read = FORMATS[name].parse(array, put)
    sent = emitted(other, repaired(read, Target("", FORMATS[other].api, "")))
    assert FORMATS[other].check(sent) == []


@pytest.mark.parametrize(("name", "array"), cases("accepted_unusual.jsonl"))
def test_an_unusual_array_that_is_accepted_keeps_all_its_text(name, array):
    form = FORMATS[name]
    sent = emitted(name, repaired(form.parse(array, put), Target("", form.api, "")))
    assert form.check(sent) == []
    assert faults(name, sent) == []
    assert texts(sent) == texts(array)
    assert pairs(name, sent) == pairs(name, array)
