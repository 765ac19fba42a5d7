import json
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm.models import Quirks, load_presets
from gong.llm.provider_factory import create_wire_provider
from gong.llm.types import (
    ReasoningDelta,
    Request,
    ResponseFormat,
    StreamFailure,
    TextDelta,
    ToolChoice,
    ToolSpec,
)
from tape.context.view import Message
from tape.model.entries import Opaque, Text, Thinking, ToolCall, Usage
from tests.wires.openai_chat import HELLO, KEY, PLAIN, TOKENS, WHOLE, call, calls, chunk, events_for
from tests.wires.server import Reply, WireServer, accumulated, chunks, events_of

READ = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{}}'))


async def answer_for(*events, **reply):
    return accumulated(await events_for(Reply(chunks(*events), **reply)))


async def sent_for(request=HELLO, preset=PLAIN):
    async with WireServer(Reply(chunks(chunk({"content": "x"}, "stop")))) as server:
        await events_of(create_wire_provider(preset, KEY, server.url), request)
        return server.requests[0].body


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
async def test_thinking_goes_back_under_the_name_it_came_with(name):
    """M146"""
    answer = await answer_for(chunk({name: "hm"}), chunk({"content": "x"}), chunk(finish="stop"))
    assert answer.content == (
        Thinking("hm", wire=Raw(json.dumps({"field": name}, separators=(",", ":")).encode())),
        Text("x"),
    )
    again = (*HELLO.messages, Message("assistant", answer.content), *HELLO.messages)
    sent = await sent_for(replace(HELLO, messages=again))
    assert sent["messages"][1] == {"role": "assistant", "content": "x", name: "hm"}


async def test_empty_thinking_is_kept_and_goes_back():
    answer = await answer_for(
        chunk({"role": "assistant", "content": "", "reasoning_content": ""}),
        chunk({"content": "x", "reasoning_content": ""}),
        chunk(finish="stop"),
    )
    assert answer.content == (
        Thinking("", wire=Raw(b'{"field":"reasoning_content"}')),
        Text("x"),
    )


async def test_the_same_thinking_under_two_names_counts_once():
    answer = await answer_for(chunk({"reasoning": "hm", "reasoning_content": "hm"}, "stop"))
    assert [block.text for block in answer.content] == ["hm"]


async def test_reasoning_details_are_put_together_and_kept_with_their_call():
    """Text grows, a signature joins it, and what is encrypted for a call stays with that call."""
    encrypted = {"type": "reasoning.encrypted", "data": "d", "id": "call_1"}
    answer = await answer_for(
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "h", "index": 0}]}),
        chunk(
            {
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "m", "index": 0, "signature": "s"}
                ]
            }
        ),
        chunk({"reasoning": "hm"}),
        calls(call(0, "{}", "call_1", "ls")),
        chunk(
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "id": "call_1"}]}
        ),
        chunk(finish="tool_calls"),
    )
    thinking, called = answer.content
    assert json.loads(bytes(thinking.wire)) == {
        "field": "reasoning",
        "details": [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"}],
    }
    assert json.loads(bytes(called.wire)) == {
        "id": "call_1",
        "details": [encrypted],
    }


async def test_only_encrypted_thinking_is_redacted():
    detail = {"type": "reasoning.encrypted", "data": "d"}
    answer = await answer_for(chunk({"reasoning_details": [detail]}, "stop"))
    (thinking,) = answer.content
    assert (thinking.redacted, json.loads(bytes(thinking.wire))) == (True, {"details": [detail]})


@pytest.mark.parametrize(
    "pieces",
    [
        [call(0, "", "a", "read"), call(0, '{"n":'), call(0, "1}"), call(1, "{}", "b", "ls")],
        [call(0, '{"n":', "a", "read"), call(0, "1}", "a", "read"), call(1, "{}", "b", "ls")],
        [call(0, '{"n":', "a", "read"), call(0, "1}", ""), call(1, "{}", "b", "ls")],
        [call(None, '{"n":', "a", "read"), call(None, "1}"), call(None, "{}", "b", "ls")],
        [call(None, '{"n":', "a", "read"), call(None, "1}", "a"), call(None, "{}", "b", "ls")],
        [call(0, '{"n":1}', "a", "read"), call(0, "{}", "b", "ls")],
        [call(0, '{"n":', "a"), call(0, "1}", None, "read"), call(1, "{}", "b", "ls")],
        [call(0, {"n": 1}, "a", "read"), call(1, "{}", "b", "ls")],
        [call(0, '{"n":1}', "a", "read"), call(1, None, "b", "ls")],
        [call(0, "", "a", "read"), call(1, '{"n":'), call(1, "1}"), call(2, "{}", "b", "ls")],
    ],
    ids=[
        *("as OpenAI does", "resent ids", "empty ids", "no index", "no index, resent ids"),
        *("always index 0", "late name", "object", "no arguments", "arguments apart"),
    ],
)
async def test_calls_are_distinguished_however_their_host_marks_the_pieces(pieces):
    answer = await answer_for(*map(calls, pieces), chunk(finish="tool_calls"))
    assert [(one.name, json.loads(bytes(one.args))) for one in answer.tool_calls] == [
        ("read", {"n": 1}),
        ("ls", {}),
    ]
    assert [json.loads(bytes(one.wire))["id"] for one in answer.tool_calls] == ["a", "b"]


async def test_calls_that_nothing_tells_apart_but_their_arguments_are_two():
    """Each whole at once, without ids, under the same index; a name said again is no call."""
    answer = await answer_for(
        calls(call(0, '{"n":', "", "read"), call(0, "1}", "", "read")),
        calls(call(0, '{"n":2}', "", "read"), call(0, "", "", "read")),
        chunk(finish="tool_calls"),
    )
    assert [json.loads(bytes(one.args)) for one in answer.tool_calls] == [{"n": 1}, {"n": 2}]


async def test_thinking_in_details_alone_is_read():
    detail = {"type": "reasoning.text", "index": 0}
    answer = await answer_for(
        chunk({"reasoning_details": [{**detail, "text": "h"}]}),
        chunk({"reasoning_details": [{**detail, "text": "m"}]}),
        chunk({"content": "4"}, "stop"),
    )
    thinking, words = answer.content
    assert (thinking.text, thinking.redacted, words) == ("hm", False, Text("4"))
    assert json.loads(bytes(thinking.wire)) == {"details": [{**detail, "text": "hm"}]}


async def test_spoken_words_are_text_and_pictures_are_kept():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    answer = await answer_for(
        chunk({"audio": {"id": "audio_1", "transcript": "Hel"}}),
        chunk({"audio": {"transcript": "lo", "data": "UklG"}}),
        chunk({"images": [picture]}, "stop"),
    )
    words, kept = answer.content
    assert (words, json.loads(bytes(kept.raw))) == (Text("Hello"), picture)


@pytest.mark.parametrize(
    ("model", "sent"),
    [("grok-4.7", "high"), ("grok-3-mini-fast", "high"), ("grok-4", None), ("grok-code-1", None)],
)
async def test_only_models_that_take_an_effort_are_sent_one(model, sent):
    """M146: xAI refuses calls that tell the others."""
    request = replace(HELLO, model=model, reasoning_effort="high")
    assert (await sent_for(request, load_presets({})["xai"])).get("reasoning_effort") == sent


async def test_a_call_keeps_what_its_host_wants_back():
    extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    answer = await answer_for(calls(call(0, "{}", "a", "ls", **extra), finish="tool_calls"))
    assert json.loads(bytes(answer.tool_calls[0].wire)) == {"id": "a", **extra}


async def test_the_older_form_of_a_call_is_a_call():
    answer = await answer_for(
        chunk({"function_call": {"name": "ls", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}, "function_call"),
    )
    assert [(one.name, one.args) for one in answer.tool_calls] == [("ls", Raw(b"{}"))]
    assert (answer.stop_reason, answer.raw_stop) == ("tool_calls", "function_call")


async def test_a_freeform_call_keeps_its_text():
    piece = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}
    answer = await answer_for(calls(piece, finish="tool_calls"))
    assert answer.tool_calls == (
        ToolCall(
            id="c_00000000_0",
            name="sql",
            args_text="SELECT",
            wire=Raw(b'{"id":"a","type":"custom"}'),
        ),
    )


async def test_content_may_come_in_parts():
    answer = await answer_for(
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        chunk({"content": [{"type": "text", "text": "a"}, "b", {"type": "later", "x": 1}]}),
        chunk({"content": "c"}, "stop"),
    )
    assert answer.content == (
        Thinking("hm"),
        Text("ab"),
        Opaque(raw=Raw(b'{"type":"later","x":1}')),
        Text("c"),
    )


async def test_an_answer_that_comes_whole_counts_where_nothing_came_before():
    """Some hosts send no stream; others give all that was said with each piece."""
    whole = {"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    assert (await answer_for({"id": "a", "model": "m", "choices": [whole]})).text == "Hello"
    pieces = [
        {"choices": [{"delta": {"content": one}, "message": {"content": said}}]}
        for one, said in (("Hel", "Hel"), ("lo", "Hello"))
    ]
    last = {"choices": [{"delta": {}, **whole}]}
    assert (await answer_for(*pieces, last)).text == "Hello"


async def test_a_refusal_is_text_that_goes_back_as_one():
    answer = await answer_for(chunk({"refusal": "No"}), chunk({"refusal": "."}, "stop"))
    assert answer.content == (Text("No.", wire=Raw(b'{"refusal":true}')),)


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        ("stop", "stop"),
        ("end", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("a_reason_made_later", "stop"),
    ],
)
async def test_stop_reasons_are_ours_and_keep_the_original(raw, ours):
    answer = await answer_for(chunk({"content": "x"}, raw))
    assert (answer.stop_reason, answer.raw_stop) == (ours, raw)


async def test_calls_stop_an_answer_with_any_finish_reason():
    answer = await answer_for(calls(call(0, "{}", "a", "ls"), finish="stop"))
    assert (answer.stop_reason, answer.raw_stop) == ("tool_calls", "stop")


async def test_an_answer_without_a_reason_ends_with_its_stream():
    answer = await answer_for(chunk({"content": "4"}, id=""))
    assert (answer.text, answer.stop_reason, answer.raw_stop, answer.response_id) == (
        *("4", "stop", None),
        None,
    )


@pytest.mark.parametrize(
    ("last", "usage"),
    [
        ([chunk(finish="stop", usage=TOKENS)], Usage(10, 5, total=15)),
        ([chunk(finish="stop"), {"choices": [], "usage": TOKENS}], Usage(10, 5, total=15)),
        ([chunk(finish="stop"), {"choices": None, "usage": TOKENS}], Usage(10, 5, total=15)),
        ([chunk(finish="stop"), {"usage": TOKENS}], Usage(10, 5, total=15)),
        ([chunk(finish="stop", x_groq={"usage": TOKENS})], Usage(10, 5, total=15)),
        ([chunk(finish="stop", usage=None)], Usage()),
        (
            [{"choices": [{"delta": {}, "finish_reason": "stop", "usage": TOKENS}]}],
            Usage(10, 5, total=15),
        ),
        (
            [chunk(finish="stop", usage={**TOKENS, "prompt_cache_hit_tokens": 4})],
            Usage(6, 5, None, 4, None, 15),
        ),
        (
            [
                chunk(
                    finish="stop",
                    usage={
                        **TOKENS,
                        "total_tokens": 35,
                        "completion_tokens_details": {"reasoning_tokens": 20},
                    },
                )
            ],
            Usage(10, 25, 20, total=35),
        ),
    ],
    ids=[
        *("last chunk", "alone", "null choices", "no choices", "groq", "null", "choice"),
        *("deepseek", "reasoning beside"),
    ],
)
async def test_usage_is_found_where_hosts_put_it(last, usage):
    """M147 C42."""
    assert (await answer_for(chunk({"content": "x"}), *last)).usage == usage


async def test_a_tool_round_trip_sends_the_result_under_our_id():
    async with WireServer(
        Reply(chunks(*WHOLE)), Reply(chunks(chunk({"content": "Done."}, "stop")))
    ) as server:
        provider = create_wire_provider(PLAIN, KEY, server.url)
        first = accumulated([event async for event in provider.stream(HELLO)])
        results = (
            Message("tool", (Text("12 lines"),), "c_00000000_0", "read"),
            Message("tool", (), "c_00000000_1", "ls"),
        )
        history = (*HELLO.messages, Message("assistant", first.content), *results)
        request = Request(model="m", messages=history, system="Be brief.", tools=(READ,))
        second = accumulated(await events_of(provider, request))
        assert (second.text, server.connections) == ("Done.", 1)
        assert server.requests[1].path == "/chat/completions"
        assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[1].body == {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "read",
                        "description": "Read a file.",
                        "parameters": {"type": "object", "properties": {}},
                    },
                }
            ],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hello"},
                {
                    "role": "assistant",
                    "content": "I read it —  \u2028🙂",
                    "reasoning_content": "Let me look.",
                    "tool_calls": [
                        {
                            "id": "c_00000000_0",
                            "type": "function",
                            "function": {"name": "read", "arguments": '{"path": "a.txt"}'},
                        },
                        {
                            "id": "c_00000000_1",
                            "type": "function",
                            "function": {"name": "ls", "arguments": "{}"},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "c_00000000_0", "content": "12 lines"},
                {"role": "tool", "tool_call_id": "c_00000000_1", "content": "(no output)"},
            ],
        }


CHOSEN = Request(
    model="m",
    messages=HELLO.messages,
    system="Be brief.",
    tools=(READ,),
    tool_choice=ToolChoice("named", "read"),
    max_tokens=9,
    temperature=0.5,
    stop_sequences=("END",),
    reasoning_effort="xhigh",
    session="t1",
    options=Raw(b'{"seed":1,"temperature":0.25}'),
    response_format=ResponseFormat("Answer", Raw(b'{"type":"object"}'), strict=True),
)


@pytest.mark.parametrize(
    ("quirks", "expected"),
    [
        (
            Quirks(),
            {
                "max_tokens": 9,
                "reasoning_effort": "xhigh",
                "stop": ["END"],
                "seed": 1,
                "temperature": 0.25,
                "user": "preset",
                "tool_choice": {"type": "function", "function": {"name": "read"}},
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "Answer",
                        "schema": {"type": "object"},
                        "strict": True,
                    },
                },
            },
        ),
        (Quirks(max_tokens_field="max_completion_tokens"), {"max_completion_tokens": 9}),
        (Quirks(store=True), {"store": False, "prompt_cache_key": "t1"}),
        (Quirks(usage_in_stream=False), {"stream_options": None}),
        (Quirks(reasoning_effort=False), {"reasoning_effort": None}),
        (Quirks(effort_names={"xhigh": "max"}), {"reasoning_effort": "max"}),
        (
            Quirks(thinking="openrouter"),
            {"reasoning": {"effort": "xhigh"}, "reasoning_effort": None},
        ),
        (Quirks(thinking="zai"), {"thinking": {"type": "enabled"}}),
        (Quirks(thinking="qwen"), {"enable_thinking": True}),
        (Quirks(thinking="template"), {"chat_template_kwargs": {"enable_thinking": True}}),
        (Quirks(thinking="none"), {"reasoning_effort": None}),
    ],
)
async def test_a_host_is_sent_what_it_knows(quirks, expected):
    preset = replace(PLAIN, quirks=quirks, body={"user": "preset", "seed": 7})
    sent = await sent_for(CHOSEN, preset)
    assert {name: sent.get(name) for name in expected} == expected


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_the_prompt_is_the_first_message(role):
    """M145."""
    preset = replace(PLAIN, quirks=Quirks(system_role=role, strict_tools=True))
    sent = await sent_for(CHOSEN, preset)
    assert sent["messages"][0] == {"role": role, "content": "Be brief."}
    assert sent["tools"][0]["function"]["strict"] is False


async def test_an_empty_list_of_tools_is_sent_where_the_history_has_calls():
    called = Message("assistant", (ToolCall(id="a", name="ls", args=Raw(b"{}")),))
    history = (*HELLO.messages, called, Message("tool", (), "a", "ls"))
    preset = replace(PLAIN, quirks=Quirks(empty_tools=True))
    assert (await sent_for(replace(HELLO, messages=history), preset))["tools"] == []
    assert "tools" not in await sent_for(HELLO, preset)
    assert "tools" not in await sent_for(replace(HELLO, messages=history))


async def test_mistral_gets_its_ids_names_and_fillers():
    """M144: exactly nine letters and digits, tagged thinking, no user right after tools."""
    called = ToolCall(id="c_1", name="ls", args=Raw(b"{}"))
    history = (
        *HELLO.messages,
        Message("assistant", (Thinking("hm"), called)),
        Message("tool", (Text("x"),), "c_1", "ls"),
        *HELLO.messages,
    )
    sent = await sent_for(replace(HELLO, messages=history), load_presets({})["mistral"])
    _, answer, result, filler, user = sent["messages"]
    call_id = answer["tool_calls"][0]["id"]
    assert (len(call_id), call_id.isalnum()) == (9, True)
    assert answer["content"] == "<thinking>\nhm\n</thinking>\n"
    assert (result["tool_call_id"], result["name"]) == (call_id, "ls")
    assert (filler["role"], user["role"]) == ("assistant", "user")


async def test_claude_behind_a_router_gets_cache_marks():
    history = (*HELLO.messages, Message("assistant", (Text("yes"),)), *HELLO.messages)
    request = replace(CHOSEN, model="anthropic/claude-sonnet-5-5", messages=history)
    marked = await sent_for(request, load_presets({})["openrouter"])
    mark = {"type": "ephemeral"}
    assert [
        isinstance(message["content"], list) and message["content"][-1]["cache_control"] == mark
        for message in marked["messages"]
    ] == [True, False, True, True]
    plain = await sent_for(replace(request, model="openai/gpt-6"), load_presets({})["openrouter"])
    assert [message["content"] for message in plain["messages"]] == [
        *("Be brief.", "hello", "yes", "hello")
    ]


async def test_the_body_satisfies_the_sdks_own_types():
    chat = import_module("openai.types.chat")
    pydantic = import_module("pydantic")
    sent = await sent_for(CHOSEN)
    adapter = pydantic.TypeAdapter(chat.completion_create_params.CompletionCreateParamsStreaming)
    assert adapter.validate_python(sent)["model"] == "m"


async def test_an_error_in_a_chunk_ends_the_stream_with_what_was_counted():
    told = {"error": {"code": 502, "message": "Provider returned error"}, "usage": TOKENS}
    events = await events_for(Reply(chunks(chunk({"content": "Hel"}), told)))
    assert TextDelta(0, "Hel") in events
    assert (type(events[-1].error), events[-1].usage) == (
        errors.ServerError,
        Usage(10, 5, total=15),
    )


async def test_an_error_after_the_reason_does_not_undo_the_answer():
    told = {"error": {"code": 400, "message": "Token limit reached"}, "usage": TOKENS}
    answer = await answer_for(chunk({"content": "x"}, "length"), told)
    assert (answer.stop_reason, answer.usage) == ("length", Usage(10, 5, total=15))
    assert answer.warnings == ("host API error (400): Token limit reached",)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"object": "error", "message": "too many tokens", "code": 400}, "ContextLengthExceeded"),
        (
            {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
            "QuotaExceeded",
        ),
        ({"error": "upstream is overloaded"}, "ServerError"),
    ],
    ids=["vLLM", "MiniMax", "words"],
)
async def test_an_error_is_found_where_hosts_put_it(told, expected):
    events = await events_for(Reply(chunks(chunk({"content": "Hel"}), {**told, "choices": None})))
    assert type(events[-1].error).__name__ == expected


async def test_an_error_beside_a_good_finish_reason_is_ignored():
    fine = {"base_resp": {"status_code": 0, "status_msg": ""}}
    assert (await answer_for(chunk({"content": "4"}, "stop", **fine))).text == "4"


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource"])
async def test_a_host_that_gave_up_fails_the_call(reason):
    events = await events_for(Reply(chunks(chunk({"content": "Hel"}, reason))))
    assert isinstance(events[-1], StreamFailure)
    assert (type(events[-1].error), str(events[-1].error)) == (
        errors.ServerError,
        f"host stopped its answer: {reason}",
    )


CORPUS = Path(__file__).parents[3].parent / "shared/corpus/sse/openai_chat"


def recorded_output(usage):
    """Return the tokens a model wrote: some hosts count its thinking beside them (C42)."""
    parts = (usage.get(f"{name}_tokens") or 0 for name in ("input", "output", "reasoning"))
    prompt, output, reasoning = parts
    is_beside = usage.get("total_tokens") == prompt + output + reasoning
    return output + reasoning if is_beside else output


@pytest.mark.corpus
@pytest.mark.parametrize(("size", "crlf"), [(None, False), (7, True)], ids=["whole", "7 bytes"])
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.sse")), ids=lambda path: path.stem)
async def test_recorded_streams_give_the_recorded_answer(path, size, crlf):
    expected = json.loads(path.with_suffix(".expected.json").read_text())["expected"]
    recorded = path.read_bytes()
    stream = recorded.replace(b"\n", b"\r\n") if crlf else recorded
    events = await events_for(Reply(stream, chunk=size))
    if not expected["complete"]:
        assert expected["error"]["message"][:60] in str(events[-1].error)
        joined = "".join(event.delta for event in events if isinstance(event, ReasoningDelta))
        assert joined == expected["reasoning"]
        return
    answer = accumulated(events)
    thoughts = (block.text for block in answer.content if isinstance(block, Thinking))
    usage = expected["usage"]
    read = answer.usage.cache_read
    assert answer.text == expected["text"] + expected["refusal"]
    assert "".join(thoughts) == expected["reasoning"]
    assert [
        (json.loads(bytes(one.wire))["id"], one.name, json.loads(bytes(one.args)))
        for one in answer.tool_calls
    ] == [(one["id"], one["name"], one["arguments"]) for one in expected["tool_calls"]]
    assert (answer.raw_stop, answer.model, answer.response_id) == (
        expected["finish_reason"],
        expected["model"],
        expected["id"],
    )
    assert (answer.usage.input + (read or 0), answer.usage.output, answer.usage.total, read) == (
        usage["input_tokens"],
        recorded_output(usage),
        usage["total_tokens"],
        usage["cached_tokens"],
    )
    assert answer.usage.reasoning == usage["reasoning_tokens"]
