import json
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm.models import Timeouts, load_presets
from gong.llm.provider_factory import create_wire_provider
from gong.llm.types import (
    OpaqueBlock,
    Request,
    ResponseFormat,
    StreamFailure,
    ToolChoice,
    ToolSpec,
)
from gong.llm.wires.google.request import GoogleRequestEncoder, build_path
from tape.context.view import Message
from tape.formats.gemini import rules
from tape.model.entries import BlobRef, Image, Opaque, Text, Thinking, ToolCall, Usage
from tests.tape.formats import histories
from tests.wires.google import (
    SIGNATURE,
    WHOLE,
    WHOLE_EVENTS,
    call,
    chunk,
    cut_up,
    stream,
    text,
    thought,
)
from tests.wires.server import (
    Reply,
    WireServer,
    accumulated,
    events_of,
    joined,
    json_reply,
)

KEY = "AIza-test-0123456789"
PRESET = load_presets({})["google"]
HELLO = Request(model="gemini-3.8-flash", messages=(Message("user", (Text("hello"),)),))
READ = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{}}'))


def provider_of(url, preset=PRESET, **limits):
    return create_wire_provider(replace(preset, timeouts=Timeouts(**limits)), KEY, url)


async def events_from(provider, request=HELLO):
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


async def events_for(reply, request=HELLO, **limits):
    async with WireServer(reply) as server:
        return await events_of(provider_of(server.url, **limits), request)


async def answer_for(*sent):
    return accumulated(await events_for(Reply(stream(*sent))))


async def error_for(reply, **limits):
    *_, last = await events_for(reply, **limits)
    assert isinstance(last, StreamFailure)
    return last.error


def body_of(request, preset=PRESET):
    return json.loads(GoogleRequestEncoder(preset).encode_request(request).body)


async def test_the_call_goes_to_the_models_address_with_the_key_in_its_header(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "of-the-environment")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    async with WireServer(Reply(stream(*WHOLE))) as server:
        provider = provider_of(server.url, replace(PRESET, headers={"X-Mine": "1"}))
        await events_from(provider)
        await provider.close()
    (seen,) = server.requests
    assert seen.path == "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert (seen.headers["x-goog-api-key"], seen.headers["x-mine"]) == (KEY, "1")
    assert seen.headers["content-type"] == "application/json"
    assert "of-the-environment" not in str(seen.headers)


def test_a_tuned_model_has_its_own_address():
    assert build_path("tunedModels/my own") == (
        "v1beta/tunedModels/my%20own:streamGenerateContent?alt=sse"
    )


async def test_a_tool_round_trip_sends_every_part_back_as_it_came():
    """M146: signatures stay on the parts they came with, and no id goes to the API."""
    first = await answer_for(
        chunk(thought("Hm.", thoughtSignature="dGg=")),
        chunk(text("Reading"), text(" now.", thoughtSignature="dHg=")),
        chunk(call("read", {"path": "a"}, id="f1", thoughtSignature=SIGNATURE)),
        chunk(call("read", {"path": "b"}, id="f2")),
        chunk(text("", thoughtSignature="ZW5k"), finish="STOP"),
    )
    results = [
        Message("tool", (Text("12 lines"),), "c_00000000_0", "read"),
        Message("tool", (Text("no such file"),), "c_00000000_1", "read", is_error=True),
    ]
    history = (*HELLO.messages, Message("assistant", first.content), *results)
    contents = body_of(replace(HELLO, messages=history))["contents"]
    assert contents == [
        {"role": "user", "parts": [{"text": "hello"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True, "thoughtSignature": "dGg="},
                {"text": "Reading"},
                {"text": " now.", "thoughtSignature": "dHg="},
                {
                    "functionCall": {"name": "read", "args": {"path": "a"}},
                    "thoughtSignature": SIGNATURE,
                },
                {"functionCall": {"name": "read", "args": {"path": "b"}}},
                {"text": "", "thoughtSignature": "ZW5k"},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "12 lines"}}},
                {"functionResponse": {"name": "read", "response": {"error": "no such file"}}},
            ],
        },
    ]
    assert rules.check_array(contents, strict=True) == []


async def test_what_an_answer_is_grounded_on_is_kept_and_not_sent_back():
    """M131: queries and pages, which the API sends beside the content."""
    found = {
        "webSearchQueries": ["the answer"],
        "groundingChunks": [{"web": {"uri": "https://a.example/", "title": "a.example"}}],
    }
    last = chunk(text("42."), finish="STOP")
    last["candidates"][0]["groundingMetadata"] = {**found, "searchEntryPoint": {"x": "<html>"}}
    answer = await answer_for(chunk(text("It is ")), last)
    words, sources = answer.content
    assert words.text == "It is 42."
    assert json.loads(bytes(sources.raw)) == {"groundingMetadata": found}
    assert answer.usage.server_tools == {"web_search": 1}
    history = (*HELLO.messages, Message("assistant", answer.content), *HELLO.messages)
    contents = body_of(replace(HELLO, messages=history))["contents"]
    assert contents[1] == {"role": "model", "parts": [{"text": "It is 42."}]}


async def test_parts_that_are_neither_words_nor_calls_are_kept_whole():
    code = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
    done = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    drawn = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    server_side = {"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "s1"}}
    events = await events_for(
        Reply(stream(chunk(text("a"), code, done), chunk(drawn, server_side, finish="STOP")))
    )
    kept = [json.loads(bytes(one.raw)) for one in events if isinstance(one, OpaqueBlock)]
    assert kept == [code, done, drawn, server_side]
    answer = accumulated(events)
    assert (answer.tool_calls, answer.stop_reason) == ((), "stop")
    sent = body_of(replace(HELLO, messages=(*HELLO.messages, Message("assistant", answer.content))))
    assert sent["contents"][1]["parts"] == [{"text": "a"}, *kept]


@pytest.mark.parametrize("ended", [True, False])
async def test_a_call_that_comes_in_pieces_is_put_together(ended):
    """M055: also where the last piece is missing."""
    path = "$.edits[0].text"
    answer = await answer_for(
        cut_up(name="edit"),
        cut_up(path, stringValue="Hel", willContinue=True),
        cut_up(path, stringValue="lo", willContinue=True),
        cut_up(path, stringValue=""),
        cut_up("$.edits[0]['line']", numberValue=3),
        cut_up("$.edits[1].text", stringValue="x"),
        cut_up("$.all", boolValue=False),
        cut_up("$.none", nullValue="NULL_VALUE", goes_on=not ended),
        chunk(finish="STOP"),
    )
    (made,) = answer.tool_calls
    assert (made.name, json.loads(bytes(made.args))) == (
        "edit",
        {"edits": [{"text": "Hello", "line": 3}, {"text": "x"}], "all": False, "none": None},
    )
    assert answer.stop_reason == "tool_calls"


async def test_an_answer_begins_with_the_chunk_that_says_whose_it_is():
    counted = {"usageMetadata": {"promptTokenCount": 3}, "candidates": []}
    answer = await answer_for(counted, chunk(text("x"), finish="STOP"))
    whose = (answer.model, answer.response_id)
    assert whose == (chunk()["modelVersion"], chunk()["responseId"])


async def test_nulls_and_empty_parts_do_nothing():
    answer = await answer_for(
        {"candidates": None, "usageMetadata": None, "promptFeedback": None, "modelVersion": None},
        {"candidates": [None]},
        chunk(None, {}, {"text": None}, {"text": ""}, text("x", thought=False, unheard=None)),
        {"candidates": [{"content": None, "finishReason": None}]},
        {"candidates": [{"content": {"role": "model"}, "index": 1, "finishReason": "SAFETY"}]},
        chunk(call("ls"), finish="STOP", usage={"promptTokenCount": 3, "trafficType": "X"}),
        {"usageMetadata": {"promptTokenCount": None, "candidatesTokenCount": 2}},
    )
    assert answer.content[0] == Text("x")
    assert [(one.name, one.args) for one in answer.tool_calls] == [("ls", Raw(b"{}"))]
    assert (answer.usage, answer.stop_reason) == (Usage(3, 2, total=5), "tool_calls")


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("A_REASON_MADE_LATER", "stop"),
    ],
)
async def test_stop_reasons_are_ours_and_keep_the_original(raw, ours):
    answer = await answer_for(chunk(text("x")), chunk(finish=raw))
    assert (answer.stop_reason, answer.raw_stop) == (ours, raw)


@pytest.mark.parametrize("raw", ["MAX_TOKENS", "SAFETY"])
async def test_an_answer_may_stop_before_it_says_anything(raw):
    answer = await answer_for(chunk(finish=raw))
    assert (answer.content, answer.raw_stop) == ((), raw)


@pytest.mark.parametrize(
    ("sent", "expected", "says"),
    [
        ([chunk(finish="MALFORMED_FUNCTION_CALL")], errors.StreamError, "MALFORMED_FUNCTION_CALL"),
        ([chunk(text(""), finish="STOP")], errors.StreamError, "empty answer"),
        ([chunk(finish="MISSING_THOUGHT_SIGNATURE")], errors.MalformedHistory, "signature"),
        ([{"promptFeedback": {"blockReason": "OTHER"}}], errors.ContentFiltered, "OTHER"),
        ([chunk(text("Hel"))], errors.StreamError, "in the middle"),
        (
            [chunk({"functionCall": {"partialArgs": []}})],
            errors.StreamError,
            "malformed",
        ),
        (
            [cut_up(name="w"), cut_up("$.a[7]", stringValue="x")],
            errors.StreamError,
            "malformed",
        ),
        ([chunk(text("x")), {"candidates": 5}], errors.StreamError, "malformed"),
        ([chunk({"functionCall": {"args": {}}})], errors.StreamError, "malformed"),
        ([], errors.StreamError, "no answer"),
        (
            [{"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}],
            errors.ServerError,
            "(503): overloaded",
        ),
    ],
)
async def test_an_answer_that_is_none_fails_and_says_why(sent, expected, says):
    error = await error_for(Reply(stream(*sent)))
    assert (type(error), error.provider) == (expected, "google")
    assert says in str(error)


def api_error(code, status, message, *details, **headers):
    error = {"code": code, "status": status, "message": message, "details": list(details)}
    return json_reply(code, {"error": error}, **headers)


QUOTA = "You exceeded your current quota, please check your plan and billing details."
WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13.5s"}
DAILY = {"@type": "x/QuotaFailure", "violations": [{"quotaId": "RequestsPerDayPerProject"}]}


@pytest.mark.parametrize(
    ("reply", "expected", "wait"),
    [
        (api_error(400, "INVALID_ARGUMENT", "contents is not specified"), "InvalidRequest", None),
        (
            api_error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "AuthenticationError",
            None,
        ),
        (
            api_error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            ),
            "ContextLengthExceeded",
            None,
        ),
        (
            api_error(
                400,
                "INVALID_ARGUMENT",
                "Function call is missing a thought_signature in functionCall parts.",
            ),
            "MalformedHistory",
            None,
        ),
        (api_error(403, "PERMISSION_DENIED", "not yours"), "AccessDenied", None),
        (api_error(404, "NOT_FOUND", "models/x is not found"), "ModelNotFound", None),
        (api_error(429, "RESOURCE_EXHAUSTED", QUOTA, WAIT), "RateLimited", 13.5),
        (api_error(429, "RESOURCE_EXHAUSTED", QUOTA, WAIT, DAILY), "QuotaExceeded", 13.5),
        (api_error(429, "RESOURCE_EXHAUSTED", QUOTA), "QuotaExceeded", None),
        (api_error(429, "RESOURCE_EXHAUSTED", "slow down", retry_after="7"), "RateLimited", 7.0),
        (api_error(500, "INTERNAL", "oops"), "ServerError", None),
        (api_error(503, "UNAVAILABLE", "The model is overloaded."), "ServerError", None),
        (json_reply(400, [{"error": {"message": "in a list"}}]), "InvalidRequest", None),
        (Reply(b"<html>Bad gateway</html>", 502, content_type="text/html"), "ServerError", None),
        (Reply(b"", 529), "ServerError", None),
    ],
)
async def test_http_errors_become_ours(reply, expected, wait):
    """M148, M150"""
    error = await error_for(reply)
    assert (type(error).__name__, error.status) == (expected, reply.status)
    assert error.retry_after == wait


async def test_an_answer_with_a_stop_reason_is_whole_however_its_connection_ends():
    whole = joined(WHOLE_EVENTS)
    assert joined(await events_for(Reply(stream(*WHOLE), cut=True))) == whole
    assert joined(await events_for(Reply(stream(*WHOLE), stall=True), idle=0.2)) == whole


def test_a_request_says_everything_in_the_apis_words():
    """M145: the system prompt is the system instruction."""
    request = Request(
        model="gemini-2.5-pro",
        messages=(Message("system", (Text("Later."),)), *HELLO.messages),
        system="Be brief.",
        tools=(READ,),
        tool_choice=ToolChoice("named", "read"),
        max_tokens=9,
        temperature=0.0,
        stop_sequences=("END",),
        reasoning_effort="low",
        options=Raw(b'{"safetySettings":[],"generationConfig":{"topK":3,"maxOutputTokens":7}}'),
    )
    assert body_of(request) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Later."}]},
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read",
                        "description": "Read a file.",
                        "parametersJsonSchema": {"type": "object", "properties": {}},
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
        "generationConfig": {
            "temperature": 0.0,
            "maxOutputTokens": 7,
            "stopSequences": ["END"],
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024},
            "topK": 3,
        },
        "safetySettings": [],
    }


@pytest.mark.parametrize(
    ("mode", "word"), [("auto", "AUTO"), ("none", "NONE"), ("required", "ANY")]
)
def test_tool_choices_are_the_apis(mode, word):
    body = body_of(replace(HELLO, tools=(READ,), tool_choice=ToolChoice(mode)))
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": word}}


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-3.8-flash", None, None),
        ("gemini-3.8-flash", "medium", {"thinkingLevel": "MEDIUM"}),
        ("gemini-3.8-flash", "xhigh", {"thinkingLevel": "HIGH"}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "HIGH"}),
        ("gemini-4-argon", "low", {"thinkingLevel": "LOW"}),
        ("gemini-flash-latest", "low", {"thinkingLevel": "LOW"}),
        ("models/gemini-2.5-flash", "high", {"thinkingBudget": 8192}),
        ("gemini-2.0-flash", "high", None),
        ("gemma-4-27b", "high", None),
    ],
)
def test_effort_is_sent_in_the_form_the_model_understands(model, effort, expected):
    settings = body_of(replace(HELLO, model=model, reasoning_effort=effort)).get("generationConfig")
    asked = {"includeThoughts": True, **expected} if expected else None
    assert (settings or {}).get("thinkingConfig") == asked


def test_an_object_is_asked_for_by_its_schema():
    shape = ResponseFormat("City", Raw(b'{"type":"object"}'))
    assert body_of(replace(HELLO, response_format=shape))["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
    }
    assert create_wire_provider(PRESET, KEY, "").native_objects


def test_options_that_are_no_object_are_refused():
    with pytest.raises(ValueError, match="object"):
        GoogleRequestEncoder(PRESET).encode_request(replace(HELLO, options=Raw(b"[1]")))


@pytest.mark.parametrize(
    ("model", "inside"), [("gemini-3.8-flash", True), ("gemini-2.5-pro", False)]
)
def test_pictures_go_inline_and_a_tools_picture_where_the_model_takes_it(model, inside):
    picture = Image(blob=BlobRef("0" * 64, 4), mime="image/png")
    messages = (
        Message("user", (Text("look"), picture)),
        Message("assistant", (ToolCall(id="c_1_0", name="read", args=Raw(b"{}")),)),
        Message("tool", (Text("here"), picture), "c_1_0", "read"),
    )
    request = Request(model=model, messages=messages, load=lambda _: b"\x89PNG")
    wire = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    asked, _, answered, *after = body_of(request)["contents"]
    assert asked["parts"] == [{"text": "look"}, wire]
    assert answered["parts"][0]["functionResponse"].get("parts") == ([wire] if inside else None)
    assert after == ([] if inside else [{"role": "user", "parts": [wire]}])


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(histories.histories("gemini"))
def test_histories_of_any_provider_make_a_body_the_rules_allow(payloads):
    messages = histories.repaired(payloads, histories.TARGETS["gemini"])
    assert (
        rules.check_array(body_of(replace(HELLO, messages=messages))["contents"], strict=True) == []
    )


BYTEWISE = pytest.param(1, False, marks=pytest.mark.slow)
CORPUS = Path(__file__).parents[3].parent / "shared/corpus/sse/gemini"


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("size", "crlf"), [(None, False), BYTEWISE, (7, True), (64, False)], ids=str
)
@pytest.mark.parametrize("recorded", sorted(CORPUS.glob("*.sse")), ids=lambda path: path.stem)
async def test_recorded_streams_give_the_recorded_answer(recorded, size, crlf):
    whole = json.loads(recorded.with_suffix(".expected.json").read_text())
    expected, data = whole["expected"], recorded.read_bytes()
    reply = Reply(data.replace(b"\n", b"\r\n") if crlf else data, chunk=size)
    answer = accumulated(await events_for(reply))
    thoughts = [block.text for block in answer.content if isinstance(block, Thinking)]
    calls = [(one.name, json.loads(bytes(one.args))) for one in answer.tool_calls]
    wires = [json.loads(bytes(one.wire) or b"{}") for one in answer.tool_calls]
    signed = [b for b in answer.content if b"thoughtSignature" in bytes(getattr(b, "raw", b.wire))]
    usage, used = expected["usage"], answer.usage
    assert answer.text == expected["text"]
    assert "".join(thoughts) == expected["thoughts"]
    if expected["raw_function_call_parts"] is None:  # those that came whole
        assert calls == [(one["name"], one["arguments"]) for one in expected["tool_calls"]]
        assert [one.get("id") for one in wires] == [one["id"] for one in expected["tool_calls"]]
    else:
        assert [name for name, _ in calls] == [expected["raw_function_call_parts"][0]["name"]]
    assert len(signed) == expected["thought_signature_parts"]
    assert sum(isinstance(block, Opaque) for block in answer.content) >= sum(
        expected["other_parts"].values()
    )
    assert (answer.raw_stop, answer.model, answer.response_id) == (
        *(expected["finish_reason"], expected["model"]),
        expected["id"],
    )
    assert (used.input + (used.cache_read or 0), used.reasoning, used.cache_read, used.total) == (
        *(usage["input_tokens"], usage["thoughts_tokens"]),
        *(usage["cached_tokens"], usage["total_tokens"]),
    )
    assert used.output == usage["candidates_tokens"] + (usage["thoughts_tokens"] or 0)
