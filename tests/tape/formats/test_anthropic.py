from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tape.context.view import Message
from tape.formats.anthropic.emit import AnthropicOptions, build_encoder, build_system_text
from tape.model.entries import BlobRef, Document, Image, Opaque, Text, Thinking, ToolCall, Unknown
from tests.tape.formats.sending import encode_with

encode_messages = encode_with(build_encoder)


def user(*texts):
    return Message("user", tuple(Text(text) for text in texts))


def assistant(*blocks):
    return Message("assistant", blocks)


def result(call_id, *texts, is_error=False):
    return Message("tool", tuple(Text(text) for text in texts), call_id, "read", is_error)


def call(call_id, args=b'{"path":"a"}', wire=b'{"id":"toolu_1"}'):
    return ToolCall(id=call_id, name="read", args=Raw(args), wire=Raw(wire))


def text(words):
    return {"type": "text", "text": words}


def tool_use(call_id, given):
    return {"type": "tool_use", "id": call_id, "name": "read", "input": given}


def test_a_batchs_results_are_first_in_the_one_message_after_it():
    history = [
        user("go"),
        assistant(Text("Two."), call("c_1_0"), call("c_1_1", b"{}")),
        result("c_1_0", "A"),
        result("c_1_1", "bad", is_error=True),
        user("also this"),
        user("and that"),
    ]
    assert encode_messages(history) == [
        {"role": "user", "content": [text("go")]},
        {
            "role": "assistant",
            "content": [text("Two."), tool_use("c_1_0", {"path": "a"}), tool_use("c_1_1", {})],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c_1_0", "content": [text("A")]},
                {
                    "type": "tool_result",
                    "tool_use_id": "c_1_1",
                    "content": [text("bad")],
                    "is_error": True,
                },
                text("also this"),
                text("and that"),
            ],
        },
    ]


def test_thinking_goes_back_with_its_signature_and_not_without():
    history = [
        user("go"),
        assistant(
            Thinking("a", wire=Raw(b'{"signature":"s"}')),
            Thinking("unsigned"),
            Thinking("", redacted=True, wire=Raw(b'{"data":"d"}')),
            Thinking("", redacted=True),
            Text("x"),
        ),
        user("on"),
    ]
    assert encode_messages(history)[1]["content"] == [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        text("x"),
    ]


def test_blocks_of_its_own_go_back_as_they_came_and_unknown_ones_never():
    history = [
        user("go"),
        assistant(
            Opaque(raw=Raw(b'{"type":"server_tool_use","id":"srv_1"}')),
            Unknown(raw=Raw(b'{"type":"?"}')),
            Text("A.", wire=Raw(b'{"citations":[1]}')),
            call("c_1_0", wire=b'{"id":"toolu_1","caller":{"type":"direct"}}'),
        ),
        result("c_1_0"),
    ]
    assert encode_messages(history)[1]["content"] == [
        {"type": "server_tool_use", "id": "srv_1"},
        {"type": "text", "text": "A.", "citations": [1]},
        {"caller": {"type": "direct"}, **tool_use("c_1_0", {"path": "a"})},
    ]
    assert encode_messages(history)[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c_1_0"}
    ]


def test_empty_text_and_empty_messages_are_left_out_and_neighbours_merged():
    history = [
        user("one", " \n"),
        assistant(Thinking("unsigned")),
        user("two"),
        assistant(Text("a")),
        assistant(Text("b  \n")),
    ]
    merged = encode_messages(history)
    assert merged == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("a"), text("b")]},
    ]


@pytest.mark.parametrize(
    ("args_text", "given"),
    [
        ('{"path": "a', {"input": '{"path": "a'}),
        ("[1]", {"input": "[1]"}),
        ('{"$blob": "x"}', {"$blob": "x"}),
    ],
)
def test_arguments_are_always_an_object(args_text, given):
    history = [user("go"), assistant(ToolCall(id="c_1_0", name="read", args_text=args_text))]
    assert encode_messages(history)[1]["content"] == [tool_use("c_1_0", given)]


def test_a_picture_is_mentioned():
    picture = Image(blob=BlobRef("0" * 64, 12), mime="image/png")
    assert encode_messages([Message("user", (picture,))]) == [
        {"role": "user", "content": [text("(image/png of 12 bytes: not sent)")]}
    ]


def test_pictures_and_files_go_with_their_bytes_and_results_may_hold_them():
    picture = Image(blob=BlobRef("0" * 64, 2), mime="image/png")
    paper = Document(blob=BlobRef("1" * 64, 2), mime="application/pdf", name="a.pdf")
    words = Document(blob=BlobRef("2" * 64, 2), mime="text/markdown")
    history = [
        Message("user", (paper, words)),
        assistant(call("c_1_0")),
        Message("tool", (picture,), "c_1_0", "read"),
    ]
    sent = encode_messages(history, load=lambda blob: b"hi")
    base64 = {"type": "base64", "data": "aGk="}
    assert sent[0]["content"] == [
        {
            "type": "document",
            "source": {**base64, "media_type": "application/pdf"},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
        },
    ]
    (answered,) = sent[2]["content"]
    assert answered["content"] == [
        {"type": "image", "source": {**base64, "media_type": "image/png"}}
    ]


def test_thinking_never_ends_an_answer():
    signed = Thinking("a", wire=Raw(b'{"signature":"s"}'))
    history = [user("go"), assistant(Text("x"), signed), user("on"), assistant(signed)]
    assert encode_messages(history) == [
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": [text("x")]},
        {"role": "user", "content": [text("on")]},
    ]


def test_thinking_of_others_can_go_as_text():
    history = [user("go"), assistant(Thinking("hm"), Text("x"))]
    sent = encode_messages(history, AnthropicOptions(thinking_as_text=True))
    assert sent[1]["content"] == [text("hm"), text("x")]


def test_verbatim_gives_back_the_providers_id_to_call_and_result():
    sent = encode_messages(
        [user("go"), assistant(call("c_1_0")), result("c_1_0")], AnthropicOptions(verbatim=True)
    )
    assert sent[1]["content"] == [tool_use("toolu_1", {"path": "a"})]
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1"}]


def test_a_call_of_a_tool_that_cannot_be_is_named_so_that_it_can():
    history = [user("go"), assistant(ToolCall(id="c_1_0", name="read file"))]
    assert encode_messages(history)[1]["content"][0]["name"] == "read_file"


def test_an_answer_at_the_beginning_has_a_user_before_it():
    assert [message["role"] for message in encode_messages([assistant(Text("a"))])] == [
        "user",
        "assistant",
    ]


def test_system_messages_join_the_system_prompt():
    history = [Message("system", (Text("Later."),)), user("go")]
    assert encode_messages(history) == [{"role": "user", "content": [text("go")]}]
    assert build_system_text("First.", history) == "First.\n\nLater."
    assert build_system_text("", [user("go")]) == ""


@given(st.lists(st.sampled_from([user("u"), assistant(Text("a ")), user(" "), assistant()])))
def test_roles_always_alternate_and_nothing_is_empty(history):
    sent = encode_messages(history)
    assert all(one["role"] != other["role"] for one, other in pairwise(sent))
    assert all(message["content"] for message in sent)
