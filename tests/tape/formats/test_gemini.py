"""M145, M146: contents of the Gemini API."""

from msgspec import Raw

from tape.context.view import Message
from tape.formats.gemini.emit import (
    UNSIGNED,
    GeminiOptions,
    build_encoder,
    build_system_instruction,
)
from tape.model.entries import BlobRef, Image, Text, Thinking, ToolCall
from tests.tape.formats.sending import encode_with

encode_messages = encode_with(build_encoder)

PICTURE = Image(blob=BlobRef("0" * 64, 2), mime="image/png")
INLINE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


def user(text):
    return Message("user", (Text(text),))


def call(call_id, wire=b'{"id":"1","thoughtSignature":"c2ln"}'):
    return ToolCall(id=call_id, name="read", args=Raw(b'{"path":"a"}'), wire=Raw(wire))


def result(call_id, *blocks, is_error=False):
    return Message("tool", blocks, call_id, "read", is_error)


def load(_):
    return b"hi"


def test_all_responses_of_a_batch_are_one_turn_and_signatures_stay_on_their_parts():
    history = [
        user("go"),
        Message("assistant", (Text("Two."), call("a"), call("b", b""))),
        result("a", Text("A")),
        result("b", Text("bad"), is_error=True),
        user("and?"),
    ]
    function = {"name": "read", "args": {"path": "a"}}
    assert encode_messages(history) == [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Two."},
                {"functionCall": function, "thoughtSignature": "c2ln"},
                {"functionCall": function},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"name": "read", "response": {"error": "bad"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "and?"}]},
    ]


def test_ids_go_only_where_they_are_asked_for():
    history = [user("go"), Message("assistant", (call("a"),)), result("a", Text("A"))]
    sent = encode_messages(history, GeminiOptions(verbatim=True))
    assert sent[1]["parts"][0]["functionCall"]["id"] == "1"
    assert sent[2]["parts"][0]["functionResponse"]["id"] == "1"


def test_a_missing_signature_is_replaced_on_the_first_call_of_each_step():
    first, second = call("a", b""), call("b", b"")
    history = [user("go"), Message("assistant", (first, second)), result("a"), result("b")]
    history += [Message("assistant", (call("c", b""),)), result("c")]
    sent = encode_messages(history, GeminiOptions(signed_calls=True))
    assert [part.get("thoughtSignature") for part in sent[1]["parts"]] == [UNSIGNED, None]
    assert sent[3]["parts"][0]["thoughtSignature"] == UNSIGNED


def test_pictures_of_tools_are_in_a_turn_of_their_own_or_in_the_response():
    history = [
        user("go"),
        Message("assistant", (call("a"), call("b"))),
        result("a", PICTURE),
        result("b", Text("B")),
    ]
    sent = encode_messages(history, load=load)
    assert len(sent[2]["parts"]) == 2
    assert sent[3] == {"role": "user", "parts": [INLINE]}
    inside = encode_messages(history, GeminiOptions(media_in_results=True), load)
    assert inside[2]["parts"][0]["functionResponse"]["parts"] == [INLINE]
    assert len(inside) == 3


def test_thinking_goes_back_as_it_came_and_that_of_others_not():
    own = Thinking("hm", wire=Raw(b'{"thought":true}'))
    sent = encode_messages([user("go"), Message("assistant", (own, Thinking("x"), Text("a")))])
    assert sent[1]["parts"] == [{"text": "hm", "thought": True}, {"text": "a"}]


def test_answers_next_to_each_other_are_one_turn():
    history = [user("go"), *[Message("assistant", (Text(text),)) for text in "ab"]]
    assert encode_messages(history)[1] == {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]}


def test_system_messages_join_the_system_instruction():
    history = [Message("system", (Text("Later."),)), user("go")]
    assert build_system_instruction("First.", history) == {
        "parts": [{"text": "First."}, {"text": "Later."}]
    }
    assert build_system_instruction("", [user("go")]) is None
