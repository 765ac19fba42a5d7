"""The official SDKs as oracle: `transport = "sdk"` sends and reads what our own client does."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm.models import load_presets
from gong.llm.provider_factory import create_provider, create_wire_provider
from gong.llm.types import ToolChoice, ToolSpec
from tape.context.view import Message
from tape.model.entries import Text, ToolCall
from tests.wires.raw_server import RawServer, head
from tests.wires.server import Reply, WireServer, events_of, json_reply
from tests.wires.table import HELLO, KEY, WIRES, broken

WITH_SDK = WIRES[:3]
every_sdk = pytest.mark.parametrize("wire", WITH_SDK, ids=lambda wire: wire.preset)
TOOL = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{"path":{}}}'))
CALL = ToolCall(id="c_00000000_1", name="read", args=Raw(b'{"path":"a.txt"}'))
ROUND = (
    *HELLO.messages,
    Message("assistant", (Text("Let me look — \u2028🙂"), CALL)),
    Message("tool", (Text("line\r\n"),), CALL.id, "read"),
)
REQUESTS = {
    "hello": HELLO,
    "system": replace(HELLO, system="Be brief."),
    "tools": replace(HELLO, messages=ROUND, tools=(TOOL,), session="s"),
    "forced": replace(HELLO, tools=(TOOL,), tool_choice=ToolChoice("named", "read")),
    "thinking": replace(HELLO, tools=(TOOL,), reasoning_effort="high"),
    "sampling": replace(HELLO, temperature=0.5, max_tokens=7),
    "options": replace(HELLO, options=Raw(b'{"made_later":{"x":[1,null]}}')),
}
NOT_COMPARED = ("x-stainless-", "user-agent", "host", "connection", "accept-encoding")
"""Headers that tell of the client, or of the connection."""


def preset_of(wire, url, transport, **more):
    preset = load_presets({})[wire.preset]
    return replace(preset, base_url=url, transport=transport, **more)


async def exchanges(wire, reply, request=HELLO, **preset):
    """Return what each transport sends and what it makes of the answer: (seen, events) twice."""
    found = []
    for transport in ("http", "sdk"):
        async with WireServer(reply) as server:
            provider = create_wire_provider(
                preset_of(wire, server.url, transport, **preset), KEY, server.url
            )
            events = await events_of(provider, request)
            (seen,) = server.requests
        failure = getattr(events[-1], "error", None)
        told = (type(failure), str(failure).replace(server.url, "URL"))
        found.append((seen, [*events[:-1], told if failure else events[-1]]))
    return found


def compared(headers):
    return {name: text for name, text in headers.items() if not name.startswith(NOT_COMPARED)}


@every_sdk
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
async def test_the_request_is_the_one_that_the_sdk_sends(wire, request_):
    """Path, every byte of the body, and all headers that are not about the client."""
    (ours, our_events), (theirs, their_events) = await exchanges(
        wire, Reply(wire.said("x")), request_
    )
    assert (ours.path, ours.sent) == (theirs.path, theirs.sent)
    assert compared(ours.headers) == compared(theirs.headers)
    assert our_events == their_events
    assert not [name for name in ours.headers if "stainless" in name]
    assert ours.headers["user-agent"].startswith("gong/")


@every_sdk
@pytest.mark.parametrize("auth", ["bearer", "x-api-key"])
async def test_presets_headers_and_key_go_the_same_way(wire, auth, monkeypatch):
    """The environment's headers, keys and organizations may be another provider's."""
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-of-another-one")
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "X-Other: another\nAuthorization: another")
    monkeypatch.setenv("OPENAI_ORG_ID", "another")
    headers = {"X-Mine": "1", "anthropic-beta": "a,b", "Accept": "text/event-stream"}
    (ours, _), (theirs, _) = await exchanges(
        wire, Reply(wire.said("x")), auth=auth, headers=headers
    )
    assert compared(ours.headers) == compared(theirs.headers)
    assert "another" not in str(theirs.headers)
    keys = {name for name, text in ours.headers.items() if KEY in text}
    assert keys == {"authorization" if auth == "bearer" else auth}


@every_sdk
@pytest.mark.parametrize("case", [*broken(WIRES[0]), "400", "429", "500", "redirect", "coding"])
async def test_failures_are_the_same(wire, case):
    replies = {
        **broken(wire),
        **{
            status: json_reply(int(status), wire.refuse("No."), retry_after="7")
            for status in ("400", "429", "500")
        },
        "redirect": Reply(b"", 307, {"location": "http://127.0.0.1:1/else"}),
        "coding": Reply(b"x", 200, {"content-encoding": "br"}),
    }
    (ours, our_events), (theirs, their_events) = await exchanges(wire, replies[case])
    assert ours.sent == theirs.sent
    assert our_events == their_events


@every_sdk
async def test_a_refused_connection_and_a_long_error_are_the_same(wire):
    errors_of = []
    for transport in ("http", "sdk"):
        preset = preset_of(wire, "http://127.0.0.1:1", transport)
        (failed,) = await events_of(create_wire_provider(preset, KEY, preset.base_url), HELLO)
        with RawServer(lambda: [head(400), b"long " * 200_000]) as server:
            preset = preset_of(wire, server.url, transport)
            (long,) = await events_of(create_wire_provider(preset, KEY, server.url), HELLO)
        errors_of.append([(type(one.error), str(one.error)) for one in (failed, long)])
    assert errors_of[0] == errors_of[1]
    assert [kind for kind, _ in errors_of[0]] == [errors.NetworkError, errors.InvalidRequest]
    assert "(only 256 KiB of its error were read)" in errors_of[0][1][1]


@every_sdk
async def test_calls_through_an_sdk_share_a_connection(wire):
    async with WireServer(Reply(wire.said("x"))) as server:
        provider = create_wire_provider(preset_of(wire, server.url, "sdk"), KEY, server.url)
        for _ in range(3):
            assert [event async for event in provider.stream(HELLO)]
        await provider.close()
        assert (len(server.requests), server.connections) == (3, 1)


def test_an_api_without_an_sdk_says_so():
    row = {"google": {"transport": "sdk", "base_url": "http://127.0.0.1:1"}}
    with pytest.raises(errors.ConfigurationError, match=r"google-generate has no SDK"):
        create_provider(load_presets(row)["google"], {}, lambda *_: KEY)
