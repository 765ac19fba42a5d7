import asyncio
import json

import pytest
from msgspec import Raw

from gong import errors
from gong.errors import ConfigurationError
from gong.llm.accumulate import StreamAccumulator
from gong.llm.scripted import ScriptedProvider
from gong.llm.types import Finish, Request, StreamFailure, StreamStart, TextDelta
from tape.context.view import Message
from tape.model.entries import Text, Thinking, ToolCall, Usage

REQUEST = Request(model="s.json", messages=(Message("user", (Text("one two"),)),), system="three")


@pytest.fixture
def script(tmp_path):
    def write(answers):
        path = tmp_path / "s.json"
        path.write_text(answers if isinstance(answers, str) else json.dumps(answers))
        return ScriptedProvider.from_file(str(path))

    return write


async def events_of(provider):
    return [event async for event in provider.stream(REQUEST)]


async def answer_of(provider):
    answer = StreamAccumulator("c_00000000")
    for event in await events_of(provider):
        answer.process(event)
    return answer.response()


async def test_answers_are_played_in_order_and_then_it_says_there_are_no_more(script):
    provider = script([{"text": "first"}, {"text": "second"}])
    assert [(await answer_of(provider)).text for _ in range(2)] == ["first", "second"]
    (failed,) = await events_of(provider)
    assert type(failed.error) is errors.ScriptEnded
    assert str(failed.error) == (f"script {provider.path} has 2 answers and was asked for one more")


async def test_an_answer_thinks_speaks_and_calls(script):
    provider = script(
        {
            "answers": [
                {
                    "tool_calls": [{"name": "read", "args": {"path": "a", "n": 1.0}}],
                    "text": "Let me see.",
                    "thinking": "Hm.",
                }
            ]
        }
    )
    answer = await answer_of(provider)
    assert answer.content == (
        Thinking("Hm."),
        Text("Let me see."),
        ToolCall(id="c_00000000_0", name="read", args=Raw(b'{"path":"a","n":1.0}')),
    )
    assert (answer.stop_reason, answer.usage) == ("tool_calls", Usage(3, 5, total=8))


async def test_blocks_come_in_any_order(script):
    provider = script(
        [
            {
                "blocks": [
                    {"type": "text", "text": "a"},
                    {"type": "tool_call", "name": "x", "args_text": '{"broken'},
                    {"type": "thinking", "text": "b"},
                    {"type": "text", "text": "c"},
                ],
                "stop_reason": "length",
                "usage": {"input": 5, "output": 6, "cache_read": 7},
            }
        ]
    )
    answer = await answer_of(provider)
    assert answer.content == (
        Text("a"),
        ToolCall(id="c_00000000_0", name="x", args_text='{"broken'),
        Thinking("b"),
        Text("c"),
    )
    assert (answer.stop_reason, answer.usage) == ("length", Usage(5, 6, None, 7, None, 18))


async def test_text_comes_in_chunks_of_the_chosen_size(script):
    events = await events_of(script([{"text": "abcde", "chunk": 2}]))
    assert [e.delta for e in events if isinstance(e, TextDelta)] == ["ab", "cd", "e"]


async def test_an_answer_may_wait_and_be_cancelled(script):
    provider = script([{"text": "late", "delay_ms": 60_000}, {"text": "next"}])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(events_of(provider), 0.05)
    assert (await answer_of(provider)).text == "next"


async def test_an_error_without_after_is_all_there_is(script):
    failure = {"class": "RateLimited", "message": "slow", "status": 429, "retry_after": 2}
    (failed,) = await events_of(script([{"text": "never", "error": failure}]))
    assert (type(failed.error), str(failed.error), failed.error.status) == (
        errors.RateLimited,
        "slow",
        429,
    )
    assert failed.error.retry_after == 2


async def test_an_error_may_come_after_some_characters(script):
    events = await events_of(
        script([{"text": "one two three", "error": {"class": "StreamError", "after": 6}}])
    )
    assert isinstance(events[0], StreamStart)
    assert "".join(e.delta for e in events if isinstance(e, TextDelta)) == "one tw"
    assert isinstance(events[-1], StreamFailure)
    assert not any(isinstance(event, Finish) for event in events)


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ("[{", "s.json"),
        ("7", "s.json"),
        ('[{"txt": "x"}]', "`txt`"),
        ('{"answer": []}', "`answer`"),
        ('[{"text": 1}]', "$[0].text"),
        ('[{"tool_calls": [{"args": {}}]}]', "`name`"),
        ('[{"chunk": 0}]', "chunk"),
        ('[{"usage": {"in": 1}}]', "`in`"),
        ('[{"blocks": [{"type": "x"}]}]', "type"),
        ('[{"text": "x", "blocks": [{"type": "text", "text": "y"}]}]', "`blocks`"),
        ('[{"text": "x"}, {"error": {"class": "Nope"}}]', "answer 1: `error.class`"),
    ],
)
def test_a_wrong_script_names_file_and_key(script, answers, named):
    with pytest.raises(ConfigurationError) as caught:
        script(answers)
    text = str(caught.value)
    assert "s.json: " in text
    assert named in text
    assert "\n" not in text


@pytest.mark.parametrize("path", ["nowhere/s.json", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_named(path):
    with pytest.raises(ConfigurationError, match="script "):
        ScriptedProvider.from_file(path)
