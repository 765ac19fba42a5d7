"""Message arrays of four APIs on their way through a store: what import makes of them, and back."""

import json

import pytest

from tape.errors import UsageError
from tape.formats.registry import FORMATS
from tape.model.entries import Assistant, Context, Custom, Start, ToolResult, User
from tape.sessions.arrays import export_array, import_array
from tests.tape import making
from tests.tape.moving import HERE, names, whole

PICTURE = "iVBORw0KGgo="
SECRET = "ghp_" + "a1" * 18
ASKED = {"name": "read", "arguments": '{"path": "a"}'}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read a."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": ASKED}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": ""},
    {"role": "assistant", "content": "It is empty."},
]
CALLED = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


@pytest.fixture
def store(tmp_path):
    return making.store_in(tmp_path / "store")


def taken_in(store, name, value):
    return import_array(store, json.dumps(value).encode(), name, HERE)


def given_out(store, identity, name, **options):
    with store.open(identity) as tape:
        return export_array(tape, tape.head(), name, skipped=pytest.fail, **options)


def array(store, identity, name):
    return json.loads(given_out(store, identity, name).array)


def payloads(store, identity):
    with store.open(identity) as tape:
        return [entry.data for entry in making.entries(tape)]


def test_an_array_becomes_a_tape_and_the_same_array_again(store):
    done = taken_in(store, "openai-chat", CHAT)
    assert (done.added, done.entries, done.lost, done.unsent) == (6, 6, 0, 0)
    whole(store, done.id)
    start, system, user, call, result, answer = payloads(store, done.id)
    assert isinstance(start, Start)
    assert start.program == "test/2 (import from openai-chat)"
    kinds = [type(one) for one in (system, user, call, result, answer)]
    assert kinds == [Context, User, Assistant, ToolResult, Assistant]
    assert {one.api for one in (call, answer)} == {"openai-chat"}
    assert array(store, done.id, "openai-chat") == CHAT
    assert given_out(store, done.id, "openai-chat").repair is None


def test_the_same_array_is_the_same_tape_and_another_api_another(store):
    done = taken_in(store, "openai-chat", CHAT[:2])
    again = taken_in(store, "openai-chat", CHAT[:2])
    assert (again.id, again.path, again.added) == (done.id, done.path, 0)
    assert taken_in(store, "anthropic", CHAT[:2]).id != done.id


def test_a_broken_array_is_recorded_and_export_repairs_it(store):
    """M153: orphans and duplicates are kept; what is sent has one result for each call."""
    orphan = {"role": "tool", "tool_call_id": "call_9", "content": "nobody asked"}
    broken = [*CHAT[:3], CHAT[3], CHAT[3], orphan, {"role": "stranger"}, CHAT[2]]
    done = taken_in(store, "openai-chat", broken)
    assert done.unsent == 1
    kinds = [type(one) for one in payloads(store, done.id)[1:]]
    results = [ToolResult] * 3
    assert kinds == [Context, User, Assistant, *results, Custom, Assistant]
    made = given_out(store, done.id, "openai-chat")
    (injected,) = made.repair.injected
    assert len(made.repair.dropped) == 2
    *sent, call, last = json.loads(made.array)
    assert sent == CHAT[:4]
    assert call["tool_calls"][0]["function"] == ASKED
    assert last == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": injected.text,
    }


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "anthropic",
            {
                "model": "claude",
                "system": [{"type": "text", "text": "Be brief."}],
                "messages": [
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": [THOUGHT, CALLED]},
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}],
                    },
                ],
            },
        ),
        ("openai-chat", {"model": "gpt", "messages": CHAT}),
        ("openai-responses", {"model": "gpt", "instructions": "Be brief.", "input": "go"}),
        (
            "gemini",
            {
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "go"}]},
                    {"role": "model", "parts": [{"text": "gone"}]},
                ],
            },
        ),
    ],
)
def test_a_request_comes_back_with_its_model_and_its_system_prompt(store, name, body):
    done = taken_in(store, name, {**body, "temperature": 0.5})
    request, system, *said = payloads(store, done.id)[1:]
    assert request.kind == f"{FORMATS[name].api}.request"
    assert json.loads(bytes(request.data))["temperature"] == 0.5
    assert isinstance(system, Context)
    models = {one.model for one in said if isinstance(one, Assistant)}
    assert models <= {body.get("model", "")}
    sent = json.loads(given_out(store, done.id, name).request)
    field = FORMATS[name].field
    if name == "openai-responses":
        told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]
        assert sent == {"input": told}
    else:
        assert sent[field] == body[field]
        assert "Be brief." in json.dumps(sent)
        assert sent.get("model") == body.get("model")
    again = import_array(store, json.dumps(sent).encode(), name, HERE)
    assert json.loads(given_out(store, again.id, name).request) == sent


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("anthropic", '{"messages"', "this is not JSON"),
        ("anthropic", "", "this is not JSON"),
        ("anthropic", "\udcff", "this is not JSON"),
        ("anthropic", "[" * 100_000, "it is nested too deep"),
        ("openai-chat", '"hello"', "this is not a conversation of openai-chat"),
        ("openai-chat", '{"contents":[]}', "give a JSON array of messages, or a request"),
        ("openai-chat", '{"messages":null}', "this is not a conversation of openai-chat"),
        ("gemini", '[{"role":"user","content":"x"}]', "none of its elements has parts"),
        ("openai-responses", "[1,2]", "none of its elements has content or type"),
    ],
)
def test_what_is_no_conversation_is_refused_and_nothing_is_made(store, name, text, why):
    with pytest.raises(UsageError, match="nothing was imported") as refused:
        import_array(store, text.encode(errors="surrogateescape"), name, HERE)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not store.tapes.exists() or names(store.tapes) == []


def test_pictures_go_into_blobs_and_come_back(store):
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    said = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    done = taken_in(store, "anthropic", said)
    whole(store, done.id)
    assert array(store, done.id, "anthropic") == said
    (url,) = array(store, done.id, "openai-chat")[0]["content"]
    assert url["image_url"] == {"url": f"data:image/png;base64,{PICTURE}"}
    with store.open(done.id) as tape:
        fork = store.create(making.beginning("fork"), (tape, tape.head()))
    with fork:
        assert (
            json.loads(export_array(fork, fork.head(), "anthropic", skipped=pytest.fail).array)
            == said
        )


def test_what_only_its_provider_understands_goes_back_to_it_alone(store):
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [THOUGHT, CALLED]}]
    said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]})
    done = taken_in(store, "anthropic", said)
    assert array(store, done.id, "anthropic") == said
    with store.open(done.id) as tape, tape.writer() as writer:
        writer.append(Assistant((making.Text("Mine."),), api="anthropic-messages", model="other"))
    assert array(store, done.id, "anthropic")[1]["content"][0]["type"] == "tool_use"
    for other in ("openai-chat", "openai-responses", "gemini"):
        assert "c2ln" not in json.dumps(array(store, done.id, other))


def test_secrets_are_masked_and_what_a_provider_checks_is_not(store):
    thought = {**THOUGHT, "signature": SECRET}
    said = [
        {"role": "user", "content": f"with {SECRET}"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "done"}]},
    ]
    done = taken_in(store, "anthropic", said)
    made = given_out(store, done.id, "anthropic")
    masked = [{"role": "user", "content": "with [redacted:github]"}, said[1]]
    assert (json.loads(made.array), made.secrets) == (masked, 1)
    exact = given_out(store, done.id, "anthropic", redact=False)
    assert (json.loads(exact.array), exact.secrets) == (said, 0)
