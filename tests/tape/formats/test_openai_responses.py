"""M145, M146: input items of the Responses API."""

from msgspec import Raw, json

from tape.context.view import Message
from tape.formats.openai_responses.emit import OpenAIResponsesOptions, build_encoder
from tape.model.entries import BlobRef, Image, Opaque, Text, Thinking, ToolCall
from tests.tape.formats.sending import encode_with

encode_messages = encode_with(build_encoder)

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def raw(value):
    return Raw(json.encode(value))


def answer(*blocks):
    return Message("assistant", blocks)


def call(item=None):
    wire = {"wire": raw({"id": item, "status": "completed"})} if item else {}
    return ToolCall(id="c_1_0", name="read", args=Raw(b'{"path": "a"}'), **wire)


CALL = {
    "type": "function_call",
    "name": "read",
    "call_id": "c_1_0",
    "arguments": '{"path": "a"}',
}


def test_reasoning_goes_back_whole_right_before_its_call():
    history = [
        Message("system", (Text("Be kind."),)),
        Message("user", (Text("go"),)),
        answer(Thinking("hm", wire=raw(REASONING)), call("fc_1")),
        Message("tool", (Text("A"),), "c_1_0", "read"),
    ]
    assert encode_messages(history) == [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "go"},
        REASONING,
        {**CALL, "id": "fc_1", "status": "completed"},
        {"type": "function_call_output", "call_id": "c_1_0", "output": "A"},
    ]


def test_reasoning_that_leads_nowhere_stays_out():
    assert encode_messages([answer(Text("a"), Thinking("hm", wire=raw(REASONING)))]) == [
        {"role": "assistant", "content": "a"}
    ]


def test_without_its_reasoning_no_item_is_named():
    only_named = {**REASONING, "encrypted_content": None}
    history = [answer(Thinking("hm", wire=raw(only_named)), call("fc_1"))]
    assert encode_messages(history) == [{**CALL, "status": "completed"}]
    stored = encode_messages(history, OpenAIResponsesOptions(stored=True))
    assert stored == [only_named, {**CALL, "id": "fc_1", "status": "completed"}]


def test_an_id_that_is_refused_stays_out():
    for item in ("f" * 65, "fc_"):
        assert "id" not in encode_messages([answer(call(item))])[0]


def test_a_message_keeps_its_id_and_phase():
    wire = raw({"id": "msg_1", "phase": "commentary"})
    refused = raw({"id": "msg_1", "type": "refusal"})
    sent = encode_messages([answer(Text("a", wire=wire), Text("No.", wire=refused), Text("b"))])
    assert sent == [
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "a", "annotations": []},
                {"type": "refusal", "refusal": "No."},
            ],
        },
        {"role": "assistant", "content": "b"},
    ]


def test_a_freeform_call_and_its_output_are_of_one_type():
    patch = ToolCall(id="c_1_0", name="apply_patch", args_text="*** Begin")
    history = [answer(patch), Message("tool", (Text("A"),), "c_1_0", "apply_patch")]
    assert encode_messages(
        history, OpenAIResponsesOptions(freeform=frozenset({"apply_patch"}))
    ) == [
        {
            "type": "custom_tool_call",
            "name": "apply_patch",
            "call_id": "c_1_0",
            "input": "*** Begin",
        },
        {"type": "custom_tool_call_output", "call_id": "c_1_0", "output": "A"},
    ]


def test_a_result_may_hold_pictures():
    picture = Image(blob=BlobRef("0" * 64, 2), mime="image/png")
    history = [answer(call()), Message("tool", (Text("A"), picture), "c_1_0", "read")]
    assert encode_messages(history, load=lambda blob: b"hi")[1]["output"] == [
        {"type": "input_text", "text": "A"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
    ]


def test_items_of_its_own_go_back_in_their_place():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert encode_messages([answer(Opaque(raw=raw(search)), Text("a"))]) == [
        search,
        {"role": "assistant", "content": "a"},
    ]


def test_an_item_of_the_provider_goes_back_once_and_what_came_with_it_without_its_name():
    thought = Thinking("hm", wire=raw(REASONING))
    said = Text("again", wire=raw({"id": "msg_1"}))
    search = Opaque(raw=raw({"type": "web_search_call", "id": "ws_1"}))
    once = answer(thought, search, said)
    assert encode_messages([once, once]) == [
        REASONING,
        {"type": "web_search_call", "id": "ws_1"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "again", "annotations": []}],
            "id": "msg_1",
        },
        {"role": "assistant", "content": "again"},
    ]
