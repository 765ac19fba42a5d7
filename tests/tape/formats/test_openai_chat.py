"""M145, M146: messages of the Chat Completions API and its hosts."""

from msgspec import Raw

from tape.context.view import Message
from tape.formats.encoder import MISTRAL_IDS
from tape.formats.openai_chat.emit import OpenAIChatOptions, build_encoder
from tape.model.entries import Audio, BlobRef, Document, Image, Text, Thinking, ToolCall
from tests.tape.formats.sending import encode_with

encode_messages = encode_with(build_encoder)

PICTURE = Image(blob=BlobRef("0" * 64, 2), mime="image/png")


def said(role, *texts):
    return Message(role, tuple(Text(text) for text in texts))


def answer(*blocks):
    return Message("assistant", blocks)


def call(call_id="c_1_0", args=b'{"path": "a"}', **more):
    return ToolCall(id=call_id, name="read", args=Raw(args), **more)


def result(*blocks, call_id="c_1_0"):
    return Message("tool", blocks, call_id, "read")


def load(_):
    return b"hi"


def test_a_turn_with_tools():
    history = [
        said("system", "Be kind."),
        said("user", "go"),
        answer(Text("Two."), call(), call("c_1_1", b"{}")),
        result(Text("A")),
        result(Text("B"), call_id="c_1_1"),
        answer(Text("Done.")),
    ]
    assert encode_messages(history) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "Two.",
            "tool_calls": [
                {
                    "id": "c_1_0",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a"}'},
                },
                {
                    "id": "c_1_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c_1_0", "content": "A"},
        {"role": "tool", "tool_call_id": "c_1_1", "content": "B"},
        {"role": "assistant", "content": "Done."},
    ]


def test_pictures_of_tools_follow_all_results_of_the_batch():
    history = [
        answer(call(), call("c_1_1")),
        result(PICTURE),
        result(Text("B"), call_id="c_1_1"),
        said("user", "and?"),
    ]
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert encode_messages(history, load=load)[1:] == [
        {"role": "tool", "tool_call_id": "c_1_0", "content": "(see the attachment)"},
        {"role": "tool", "tool_call_id": "c_1_1", "content": "B"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Attached image(s) from tool result:"}, url],
        },
        {"role": "user", "content": "and?"},
    ]


def test_files_and_sound():
    sound = Audio(blob=BlobRef("0" * 64, 2), mime="audio/wav")
    paper = Document(blob=BlobRef("0" * 64, 2), mime="application/pdf", name="a.pdf")
    strange = Audio(blob=BlobRef("0" * 64, 2), mime="audio/ogg")
    assert encode_messages([Message("user", (sound, paper, strange))], load=load)[0]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        },
        {"type": "text", "text": "(audio/ogg of 2 bytes: not sent)"},
    ]


def test_reasoning_goes_back_under_its_own_name_an_empty_one_too():
    named = Thinking("hm", wire=Raw(b'{"field":"reasoning"}'))
    empty = Thinking("", wire=Raw(b'{"field":"reasoning_content","details":[1]}'))
    history = [answer(named, Text("a")), answer(empty, Text("b")), answer(Thinking("x"), Text("c"))]
    assert encode_messages(history) == [
        {"role": "assistant", "content": "a", "reasoning": "hm"},
        {
            "role": "assistant",
            "content": "b",
            "reasoning_content": "",
            "reasoning_details": [1],
        },
        {"role": "assistant", "content": "c"},
    ]


def test_switches_of_hosts():
    history = [
        said("system", "Be kind."),
        said("user", "go", "on"),
        answer(Thinking("hm"), Text("a"), call()),
        result(Text("A")),
        said("user", "and?"),
    ]
    options = OpenAIChatOptions(
        ids=MISTRAL_IDS,
        system_role="developer",
        content="string",
        thinking_as_text=True,
        replay_reasoning=True,
        tool_result_name=True,
        filler_after_tools=True,
    )
    sent = encode_messages(history, options)
    name = sent[2]["tool_calls"][0]["id"]
    assert len(name) == 9
    assert name.isalnum()
    assert sent[0]["role"] == "developer"
    assert sent[1]["content"] == "go\n\non"
    assert sent[2]["content"] == "<thinking>\nhm\n</thinking>\na"
    assert sent[2]["reasoning_content"] == ""
    assert sent[3] == {"role": "tool", "tool_call_id": name, "content": "A", "name": "read"}
    assert [message["role"] for message in sent[4:]] == ["assistant", "user"]


def test_content_is_a_list_where_it_must_be():
    history = [said("user", "go"), answer(Text("a"))]
    assert encode_messages(history, OpenAIChatOptions(content="list")) == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": "a"},
    ]


def test_arguments_are_always_an_object_and_freeform_input_is_text():
    broken = ToolCall(id="c_1_0", name="read", args_text='{"path')
    patch = ToolCall(id="c_1_1", name="apply_patch", args_text="*** Begin")
    (sent,) = encode_messages(
        [answer(broken, patch)], OpenAIChatOptions(freeform=frozenset({"apply_patch"}))
    )
    assert [one[one["type"]] for one in sent["tool_calls"]] == [
        {"name": "read", "arguments": '{"input":"{\\"path"}'},
        {"name": "apply_patch", "input": "*** Begin"},
    ]


def test_verbatim_gives_back_only_what_this_host_wrote():
    own = ToolCall(
        id="c_1_0", name="read", args_text="{bad", wire=Raw(b'{"id":"functions.read:0"}')
    )
    foreign = ToolCall(id="c_1_1", name="read", args_text="{bad")
    (sent,) = encode_messages([answer(own, foreign)], OpenAIChatOptions(verbatim=True))
    assert [(one["id"], one["function"]["arguments"]) for one in sent["tool_calls"]] == [
        ("functions.read:0", "{bad"),
        ("c_1_1", '{"input":"{bad"}'),
    ]


def test_fields_of_a_host_go_back_with_their_call():
    wire = Raw(b'{"id":"call_7","extra_content":{"google":1},"details":[{"id":"call_7"}]}')
    (sent,) = encode_messages([answer(call(wire=wire))], OpenAIChatOptions(verbatim=True))
    assert sent["tool_calls"][0]["extra_content"] == {"google": 1}
    assert sent["tool_calls"][0]["id"] == "call_7"
    assert sent["reasoning_details"] == [{"id": "call_7"}]
