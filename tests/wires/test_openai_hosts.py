import pytest
from msgspec.structs import replace

from gong import errors
from gong.llm.models import Quirks, load_presets
from gong.llm.provider_factory import create_wire_provider
from gong.llm.types import Request
from tape.context.view import Message
from tape.model.entries import Text
from tests.wires.openai_chat import HELLO, KEY, PLAIN, WHOLE, chunk
from tests.wires.server import Reply, WireServer, accumulated, chunks, events_of, json_reply


async def error_for(reply, preset=PLAIN):
    async with WireServer(reply) as server:
        *_, last = await events_of(create_wire_provider(preset, KEY, server.url), HELLO)
        return last.error


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("status", [400, 413])
async def test_an_error_without_a_word_means_the_request_was_too_large(status, api):
    """M148: Cerebras and Mistral."""
    error = await error_for(Reply(b"", status), replace(PLAIN, api=api))
    assert (type(error), str(error)) == (
        errors.ContextLengthExceeded,
        f"host API error ({status}): no reason given",
    )


@pytest.mark.parametrize(
    ("body", "expected", "said"),
    [
        ({"error": "model 'x' not found"}, errors.ModelNotFound, "model 'x' not found"),
        ({"detail": "Unauthorized"}, errors.AuthenticationError, "Unauthorized"),
        ({"code": "x", "error": "Incorrect API key"}, errors.AuthenticationError, "Incorrect"),
        (
            [{"error": {"code": 400, "message": "API key not valid"}}],
            errors.AuthenticationError,
            "",
        ),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": '{"message":"prompt is too long: 9 > 8"}'},
                }
            },
            errors.ContextLengthExceeded,
            "Provider returned error",
        ),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": {"error": {"message": "prompt is too long: 9 > 8"}}},
                }
            },
            errors.ContextLengthExceeded,
            "Provider returned error: prompt is too long",
        ),
        (
            {"error": {"code": "1261", "message": "Prompt exceeds max length"}},
            errors.ContextLengthExceeded,
            "Prompt exceeds",
        ),
        ({"error": {"code": 1113, "message": "Insufficient balance"}}, errors.QuotaExceeded, ""),
        (
            {"error": {"message": "?", "code": "context_length_exceeded"}},
            errors.ContextLengthExceeded,
            "?",
        ),
        ({"error": {"message": "?", "code": "insufficient_quota"}}, errors.QuotaExceeded, "?"),
        ({"error": {"message": None, "type": None}}, errors.ContextLengthExceeded, "no reason"),
        ("just words", errors.InvalidRequest, "just words"),
    ],
)
async def test_hosts_say_what_is_wrong_in_many_shapes(body, expected, said):
    error = await error_for(json_reply(400, body))
    assert type(error) is expected
    assert said in str(error)


async def test_nothing_is_taken_from_the_environment(monkeypatch):
    """The SDK's variables may be another provider's."""
    for name in ("API_KEY", "ORG_ID", "PROJECT_ID", "ADMIN_KEY"):
        monkeypatch.setenv(f"OPENAI_{name}", "sk-of-another-one")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: secret\nAuthorization: Bearer other")
    preset = replace(PLAIN, headers={"X-Ours": "yes"})
    async with WireServer(Reply(chunks(*WHOLE))) as server:
        accumulated(await events_of(create_wire_provider(preset, KEY, server.url), HELLO))
        (seen,) = server.requests
    assert (seen.headers["authorization"], seen.headers["x-ours"]) == (f"Bearer {KEY}", "yes")
    names = {"x-other", "openai-organization", "openai-project"}
    assert not names & seen.headers.keys()
    assert "another" not in str(seen.headers)


async def test_a_key_may_go_in_a_header_of_its_own():
    preset = replace(PLAIN, auth="x-api-key")
    async with WireServer(Reply(chunks(*WHOLE))) as server:
        accumulated(await events_of(create_wire_provider(preset, KEY, server.url), HELLO))
        (seen,) = server.requests
    assert seen.headers["x-api-key"] == KEY
    assert "authorization" not in seen.headers


async def test_sessions_take_turns_without_mixing_their_histories():
    """A provider is shared: what it remembers of one session is never sent for another."""
    async with WireServer(Reply(chunks(chunk({"content": "x"}, "stop")))) as server:
        provider = create_wire_provider(PLAIN, KEY, server.url)
        said = {f"t{number}": [] for number in range(10)}
        for number in range(30):
            session = f"t{number % 10}"
            said[session].append(f"{session}, {number}")
            messages = tuple(Message("user", (Text(text),)) for text in said[session])
            request = Request(model="m", messages=messages, session=session)
            accumulated([event async for event in provider.stream(request)])
            sent = [message["content"] for message in server.requests[-1].body["messages"]]
            assert sent == said[session]
        await provider.close()
        assert server.connections == 1


@pytest.mark.parametrize("name", ["ollama", "zai", "minimax"])
def test_hosts_that_leave_the_choice_of_a_tool_to_the_model_say_so(name):
    made = create_wire_provider(load_presets({})[name], KEY, "")
    modes = ("auto", "none", "required", "named")
    assert [mode for mode in modes if made.supports_tool_choice(mode)] == ["auto"]


def test_a_provider_says_whether_it_can_hold_an_answer_to_a_schema():
    without = replace(PLAIN, quirks=Quirks(json_schema=False))
    assert create_wire_provider(PLAIN, KEY, "").native_objects is True
    assert create_wire_provider(without, KEY, "").native_objects is False
    responses = replace(PLAIN, api="openai-responses")
    assert create_wire_provider(responses, KEY, "").native_objects is True
