"""Arrays of the four APIs, read into entries (M149, M153)."""

import pytest
from msgspec import Raw, json

from tape.context.view import Target
from tape.formats.anthropic import parse as anthropic
from tape.formats.gemini import parse as gemini
from tape.formats.openai_chat import parse as openai_chat
from tape.formats.openai_responses import parse as openai_responses
from tape.model.entries import (
    Assistant,
    Context,
    Custom,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    User,
    select_tool_calls,
)
from tests.tape.formats.histories import blob, emitted, put, repaired


def calls(read):
    return [
        call
        for one in read
        if isinstance(one, Assistant)
        for call in select_tool_calls(one.content)
    ]


def use(call_id):
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {"path": "a"}}


def answered(call_id, content="A", **fields):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def test_a_conversation_of_the_messages_api():
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web", "input": {}}
    read = anthropic.parse_array(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [signed, search, use("toolu_1")]},
            {"role": "user", "content": [answered("toolu_1", is_error=True), "and?"]},
        ],
        put,
    )
    (call,) = calls(read)
    string = Raw(b'{"$form":"string","$api":"anthropic-messages"}')
    assert read == [
        User((Text("go", wire=string),)),
        Assistant(
            (
                Thinking("hm", wire=Raw(b'{"signature":"s"}')),
                Opaque(raw=Raw(json.encode(search))),
                ToolCall(
                    id=call.id,
                    name="read",
                    args=Raw(b'{"path":"a"}'),
                    wire=Raw(b'{"id":"toolu_1"}'),
                ),
            ),
            api="anthropic-messages",
            stop_reason="tool_calls",
        ),
        ToolResult(call.id, "read", (Text("A", wire=string),), is_error=True),
        User((Text("and?"),)),
    ]


def test_call_ids_are_ours_and_always_the_same():
    array = [{"role": "assistant", "content": [use("x"), use("y")]}] * 2
    read = anthropic.parse_array(array, put)
    ids = [call.id for call in calls(read)]
    assert len(set(ids)) == 4
    assert all(one[:2] == "c_" and len(one) == 12 for one in ids)
    assert [one[-2:] for one in ids] == ["_0", "_1", "_0", "_1"]
    assert anthropic.parse_array(json.encode(array), put) == read


def test_results_find_their_calls_late_repeated_and_not_at_all():
    said = {"role": "user", "content": "?"}
    read = anthropic.parse_array(
        [
            {"role": "assistant", "content": [use("x")]},
            said,
            {"role": "user", "content": [answered("x", "late"), answered("z", "orphan")]},
            {"role": "assistant", "content": [use("x"), use("x")]},
            {"role": "user", "content": [answered("x"), answered("x"), answered("x")]},
        ],
        put,
    )
    first, second, third = [call.id for call in calls(read)]
    results = [one.call_id for one in read if isinstance(one, ToolResult)]
    assert results[0] == first
    assert results[1] not in {first, second, third}
    assert results[2:] == [second, third, third]


def test_pieces_in_the_wrong_place_are_kept_and_never_sent():
    read = anthropic.parse_array(
        [
            {"role": "user", "content": [use("x")]},
            {"role": "assistant", "content": [answered("x"), 3, {"type": "text"}]},
            {"role": "weird"},
            None,
        ],
        put,
    )
    assert read == [
        Custom("anthropic-messages", Raw(json.encode(use("x")))),
        Assistant(
            (Unknown(raw=Raw(b"3")), Unknown(raw=Raw(b'{"type":"text"}'))),
            api="anthropic-messages",
        ),
        Custom("anthropic-messages", Raw(json.encode(answered("x")))),
        Custom("anthropic-messages", Raw(b'{"role":"weird"}')),
        Custom("anthropic-messages", Raw(b"null")),
    ]


def test_pictures_become_blobs_and_addresses_stay_what_they_are():
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    url = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    (read,) = anthropic.parse_array(
        [{"role": "user", "content": [{"type": "image", "source": source}, url]}], put
    )
    assert read.content == (
        Image(blob=blob(b"hi"), mime="image/png"),
        Opaque(raw=Raw(json.encode(url)), wire=Raw(b'{"$api":"anthropic-messages"}')),
    )


def test_a_conversation_of_the_chat_api():
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{bad"}}
    read = openai_chat.parse_array(
        [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "go"}], "name": "bob"},
            {"role": "assistant", "content": None, "reasoning_content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "A"},
            {"role": "assistant", "content": None, "refusal": "No."},
        ],
        put,
    )
    (asked,) = calls(read)
    listed = Raw(b'{"$outer":{"name":"bob"},"$form":"list","$api":"openai-chat"}')
    assert read == [
        Context(
            "system",
            "system",
            (
                Text(
                    "Be kind.",
                    wire=Raw(b'{"$outer":{"role":"developer"},"$api":"openai-chat"}'),
                ),
            ),
        ),
        User((Text("go", wire=listed),)),
        Assistant(
            (
                Thinking("", wire=Raw(b'{"field":"reasoning_content"}')),
                ToolCall(id=asked.id, name="read", args_text="{bad", wire=Raw(b'{"id":"call_1"}')),
            ),
            api="openai-chat",
            stop_reason="tool_calls",
        ),
        ToolResult(asked.id, "read", (Text("A"),)),
        Assistant((Text("No.", wire=Raw(b'{"refusal":true}')),), api="openai-chat"),
    ]


def test_older_functions_and_missing_ids_of_the_chat_api():
    nameless = {"type": "function", "function": {"name": "read", "arguments": "{}"}}
    read = openai_chat.parse_array(
        [
            {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "function", "name": "old", "content": "A"},
            {"role": "assistant", "tool_calls": [nameless, nameless]},
            {"role": "tool", "content": "B"},
            {"role": "tool", "content": "C"},
        ],
        put,
    )
    results = [one.call_id for one in read if isinstance(one, ToolResult)]
    assert results == [call.id for call in calls(read)]


def test_items_of_the_model_next_to_each_other_are_one_answer():
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "hm"}]}
    search = {"type": "web_search_call", "id": "ws_1"}
    read = openai_responses.parse_array(
        [
            {"role": "user", "content": "go"},
            reasoning,
            search,
            {"type": "function_call", "id": "f", "call_id": "x", "name": "read", "arguments": ""},
            {"type": "custom_tool_call", "call_id": "y", "name": "patch", "input": "*** Begin"},
            {"type": "function_call_output", "call_id": "x", "output": "A"},
            {"type": "custom_tool_call_output", "call_id": "y", "output": "B"},
            {"role": "assistant", "content": "done"},
        ],
        put,
    )
    first, second = calls(read)
    assert read == [
        User((Text("go"),)),
        Assistant(
            (
                Thinking("hm", wire=Raw(json.encode(reasoning))),
                Opaque(raw=Raw(json.encode(search))),
                ToolCall(
                    id=first.id,
                    name="read",
                    args=Raw(b"{}"),
                    wire=Raw(b'{"id":"f","call_id":"x"}'),
                ),
                ToolCall(
                    id=second.id,
                    name="patch",
                    args_text="*** Begin",
                    wire=Raw(b'{"type":"custom_tool_call","call_id":"y"}'),
                ),
            ),
            api="openai-responses",
            stop_reason="tool_calls",
        ),
        ToolResult(first.id, "read", (Text("A"),)),
        ToolResult(second.id, "patch", (Text("B"),)),
        Assistant((Text("done"),), api="openai-responses"),
    ]


def test_contents_of_gemini_in_either_spelling():
    read = gemini.parse_array(
        [
            {"parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"function_call": {"name": "read", "args": {}}, "thought_signature": "c2ln"},
                    {"functionCall": {"name": "ls"}},
                    {"text": "", "thoughtSignature": "c2ln"},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "ls", "response": {"error": "no"}}},
                    {"functionResponse": {"name": "read", "response": {"n": 1}}},
                ],
            },
        ],
        put,
    )
    first, second = calls(read)
    kept = Raw(b'{"$outer":{"response":{"n":1}},"$api":"google-generate"}')
    assert read == [
        User((Text("go"),)),
        Assistant(
            (
                Thinking("hm", wire=Raw(b'{"thought":true}')),
                ToolCall(
                    id=first.id,
                    name="read",
                    args=Raw(b"{}"),
                    wire=Raw(b'{"thoughtSignature":"c2ln"}'),
                ),
                ToolCall(id=second.id, name="ls", args=Raw(b"{}"), wire=Raw(b'{"$form":"absent"}')),
                Opaque(raw=Raw(b'{"text":"","thoughtSignature":"c2ln"}')),
            ),
            api="google-generate",
            stop_reason="tool_calls",
        ),
        ToolResult(second.id, "ls", (Text("no"),), is_error=True),
        ToolResult(first.id, "read", (Text('{"n":1}', wire=kept),)),
    ]


def test_what_a_tape_could_not_hold_is_kept_as_text():
    piece = {"type": "strange", "$blob": "x"}
    (read,) = anthropic.parse_array([{"role": "assistant", "content": [piece]}], put)
    (kept,) = read.content
    assert json.decode(json.decode(kept.raw)["$json"]) == piece


def test_half_a_surrogate_pair_becomes_a_mark():
    (read,) = openai_chat.parse_array(b'[{"role":"user","content":"a\\ud800"}]', put)
    assert read == User((Text("a\ufffd"),))


def test_a_result_without_an_id_leaves_a_call_to_the_result_that_names_it():
    read = gemini.parse_array(
        [
            {"role": "model", "parts": [{"functionCall": {"id": "x", "name": "read"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "x", "name": "read", "response": {}}}],
            },
        ],
        put,
    )
    (call,) = calls(read)
    nameless, named = [one.call_id for one in read if isinstance(one, ToolResult)]
    assert named == call.id != nameless


@pytest.mark.parametrize("strange", [5, None, ["a"], {"x": 1}, True, ""])
def test_a_call_whose_id_is_no_word_is_still_answered(strange):
    asked = {"id": strange, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    read = openai_chat.parse_array(
        [
            {"role": "assistant", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": strange, "content": "A"},
        ],
        put,
    )
    (call,) = calls(read)
    assert read[1].call_id == call.id
    sent = emitted("openai-chat", repaired(read, Target("", "openai-chat", "")))
    assert sent[1] == {"role": "tool", "tool_call_id": call.id, "content": "A"}


def test_content_without_its_list_is_read_and_an_answer_of_any_shape_is_kept():
    (said,) = anthropic.parse_array(
        [{"role": "user", "content": {"type": "text", "text": "go"}}], put
    )
    assert said == User((Text("go"),))
    (said,) = gemini.parse_array([{"role": "user", "parts": {"text": "go"}}], put)
    assert said == User((Text("go"),))
    (result,) = openai_chat.parse_array([{"role": "tool", "content": {"n": 1}}], put)
    assert result.content == (Text('{"n":1}'),)
