"""`gong -p --json-schema`: the answer is an object that fits, from scripts and over the wires."""

from __future__ import annotations

import json

import pytest

from tests.wires.server import Reply, WireServer

from . import test_anthropic as anthropic
from .terminal import Terminal
from .test_openai import called_in_responses, chat, said_in_chat, said_in_responses
from .test_print import call, entries

SCHEMA = {
    "type": "object",
    "properties": {"issues": {"type": "array", "items": {"type": "string"}}},
    "required": ["issues"],
    "additionalProperties": False,
}
SHAPE = json.dumps(SCHEMA)
RIGHT, WRONG = {"issues": ["a"]}, {"issues": "a"}


def answered(value):
    return call("structured_output", **value)


def ask(place, *answers, output="json", code=0, argv=()):
    model = place.script(*answers)
    how = ("--json-schema", SHAPE, "--output-format", output)
    return place.run("gong", "chat", "-p", "review", "-m", model, *how, *argv, code=code)


@pytest.mark.parametrize(
    ("answers", "turns"),
    [
        ([answered(RIGHT)], 1),
        ([call("ls", path="."), answered(RIGHT)], 2),
        ([answered(WRONG), answered(RIGHT)], 2),
        ([{"text": "There is one issue."}, answered(RIGHT)], 2),
        ([{"text": "One."}, answered(WRONG), answered(RIGHT)], 3),
        ([{"text": '```json\n{"issues": ["a"]}\n```'}], 1),
    ],
)
def test_the_answer_is_an_object_that_fits(place, answers, turns):
    document = json.loads(ask(place, *answers).stdout)
    assert document["structured_output"] == RIGHT
    assert json.loads(document["result"]) == RIGHT
    assert (document["turns"], document["stop_reason"]) == (turns, "stop")
    assert (document["is_error"], document["error"]) == (False, None)


def test_as_text_the_object_is_all_there_is(place):
    done = ask(place, answered(RIGHT), output="text")
    assert (done.stdout, done.stderr) == ('{"issues":["a"]}\n', "")


def test_a_stream_ends_with_it(place):
    lines = ask(place, answered(RIGHT), output="stream-json").stdout.splitlines()
    assert json.loads(lines[-1])["structured_output"] == RIGHT
    assert "structured_output" in json.loads(lines[0])["tools"]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([answered(WRONG), answered(WRONG)], "$.issues: 'a' is not of type 'array'"),
        ([{"text": "One."}, {"text": "One, I said."}], "the answer is not a JSON object"),
    ],
)
def test_an_answer_that_never_fits_is_exit_1_and_says_why(place, answers, why):
    done = ask(place, *answers, code=1)
    document = json.loads(done.stdout)
    assert "structured_output" not in document
    assert (document["is_error"], document["error"]["class"]) == (True, "NoObject")
    assert why in document["error"]["message"]
    assert why in done.stderr
    assert ask(place, *answers, output="text", code=1).stdout == ""


def test_the_model_learns_what_is_wrong_and_what_is_missing(place):
    ask(place, {"text": "One."}, answered(WRONG), answered(RIGHT))
    said = [one["data"] for one in entries(place) if one["type"] in {"context", "tool.result"}]
    reminder, wrong, taken = (one["content"][0]["text"] for one in said)
    assert "call structured_output now" in reminder
    assert "$.issues: 'a' is not of type 'array'. Call structured_output again." in wrong
    assert taken == "The answer is taken."


def test_calls_that_were_all_denied_are_still_exit_7(place):
    """The answer is no call that was allowed."""
    script = [call("bash", command="touch a"), answered(RIGHT)]
    done = ask(place, *script, code=7, argv=("--permission", "default"))
    assert json.loads(done.stdout)["structured_output"] == RIGHT


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"type": "array"}', "does not describe an object"),
        ('{"type": 1}', "does not describe an object"),
        ('{"properties": 1}', "$.properties: 1 is not of type 'object'"),
        ("{", "it is not JSON"),
        ("missing.json", "missing.json cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_schema_is_a_usage_error_before_anything_is_sent(place, given, why):
    done = place.run("gong", "-p", "x", "--json-schema", given, code=2)
    assert why in done.stderr
    assert place.tapes() == []


def test_a_conversation_has_no_form(place):
    argv = [str(place.bin / "gong"), "--json-schema", SHAPE]
    with Terminal(argv, cwd=place.folder, env=place.env) as terminal:
        terminal.wait_for("--json-schema needs -p")


def test_a_schema_may_be_in_a_file(place):
    (place.folder / "shape.json").write_text(SHAPE)
    model = place.script(answered(RIGHT))
    done = place.run("gong", "-p", "x", "-m", model, "--json-schema", "shape.json")
    assert json.loads(done.stdout) == RIGHT


async def test_the_responses_api_holds_the_answer_itself_beside_tools(place):
    replies = [
        Reply(called_in_responses("ls", path=".")),
        Reply(said_in_responses("One.")),
        Reply(said_in_responses(json.dumps(RIGHT))),
    ]
    async with WireServer(*replies) as server:
        how = ("-p", "x", "--json-schema", SHAPE)
        out, _ = await chat(place, server, "openai/gpt-6.1-sol", *how)
        bodies = [seen.body for seen in server.requests]
    assert json.loads(out) == RIGHT
    shape = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
    assert [body["text"]["format"] for body in bodies] == [shape] * 3
    assert all("structured_output" not in json.dumps(body["tools"]) for body in bodies)
    assert "the answer is not a JSON object" in json.dumps(bodies[2]["input"][-1])


async def test_a_host_without_schemas_gets_a_tool_and_has_to_call_it(place):
    replies = [
        Reply(anthropic.saying("One.")),
        Reply(anthropic.calling("structured_output", **WRONG)),
        Reply(anthropic.calling("structured_output", **RIGHT)),
    ]
    async with WireServer(*replies) as server:
        out, _ = await anthropic.chat(place, server, "-p", "x", "--json-schema", SHAPE)
        bodies = [seen.body for seen in server.requests]
    assert json.loads(out) == RIGHT
    assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
    assert bodies[0]["tools"][-1]["input_schema"] == SCHEMA
    forced = {"type": "tool", "name": "structured_output"}
    assert [body["tool_choice"] for body in bodies] == [{"type": "auto"}, forced, {"type": "auto"}]


async def test_chat_completions_holds_it_where_there_are_no_tools(place):
    async with WireServer(Reply(said_in_chat(json.dumps(RIGHT)))) as server:
        how = ("-p", "x", "--no-tools", "--json-schema", SHAPE)
        out, _ = await chat(place, server, "openai-chat/gpt-6.1-sol", *how)
        (body,) = (seen.body for seen in server.requests)
    assert json.loads(out) == RIGHT
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "tools" not in body
