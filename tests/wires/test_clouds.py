"""The SDKs' clients for clouds as judges: forty calls to each preset are those that they make."""

from __future__ import annotations

import inspect
from itertools import product

import anthropic
import msgspec
import openai
import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong.llm import Client
from gong.llm.models import load_presets
from gong.llm.provider_factory import encode_request_body
from gong.llm.types import Request, ToolChoice, ToolSpec
from tape.context.view import Message
from tape.model.entries import Text, ToolCall
from tests.wires.server import Reply, WireServer
from tests.wires.table import WIRES

KEY = "key-of-a-cloud-0123456789"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjF9.c2lnbmVk"
TOOL = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{"path":{}}}'))
CALL = ToolCall(id="c_00000000_1", name="read", args=Raw(b'{"path":"a.txt"}'))
HISTORIES = [
    (Message("user", (Text("hello"),)),),
    (Message("user", (Text("größer — \u2028🙂"),)),),
    (
        Message("user", (Text("read it"),)),
        Message("assistant", (Text("Let me look"), CALL)),
        Message("tool", (Text("line\r\n"),), CALL.id, "read"),
    ),
    (
        Message("user", (Text("1"),)),
        Message("assistant", (Text("2"),)),
        Message("user", (Text("3"),)),
    ),
    (Message("user", (Text('{"a": "\\u0000 %2F"}'), Text("and"))),),
]
FIELDS = [
    {},
    {"system": "Be brief."},
    {"tools": (TOOL,), "session": "s"},
    {"tools": (TOOL,), "tool_choice": ToolChoice("named", "read")},
    {"tools": (TOOL,), "reasoning_effort": "high"},
    {"temperature": 0.5, "max_tokens": 7},
    {"max_tokens": 5000, "top_p": 0.5},
    {"options": Raw(b'{"metadata":{"user_id":"u"}}')},
]
AWS = {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "eu-west-1"}
GOOGLE = {"CLOUDSDK_AUTH_ACCESS_TOKEN": KEY, "GOOGLE_CLOUD_PROJECT": "p-1"}
HOW = {"max_retries": 0}
# preset/model, the user's row, the environment with URL for the server, the SDK's client
CASES = {
    "azure": (
        "azure/gpt-4o",
        {},
        {"AZURE_OPENAI_ENDPOINT": "URL", "AZURE_OPENAI_API_KEY": TOKEN},
        lambda url: openai.AsyncOpenAI(api_key=TOKEN, base_url=f"{url}/openai/v1", **HOW),
    ),
    "azure, responses": (
        "azure/gpt-5.2",
        {},
        {"AZURE_OPENAI_ENDPOINT": "URL/", "AZURE_OPENAI_AD_TOKEN": TOKEN},
        lambda url: openai.AsyncOpenAI(api_key=TOKEN, base_url=f"{url}/openai/v1/", **HOW),
    ),
    "azure-classic": (
        "azure-classic/gpt-4o 2@x",
        {},
        {
            "AZURE_OPENAI_ENDPOINT": "URL",
            "AZURE_OPENAI_API_KEY": KEY,
            "OPENAI_API_VERSION": "2024-10-21",
        },
        lambda url: openai.AsyncAzureOpenAI(
            api_key=KEY, azure_endpoint=url, api_version="2024-10-21", **HOW
        ),
    ),
    "azure-classic, token": (
        "azure-classic/gpt-4o",
        {"deployments": {"gpt-4o": "mine"}},
        {"AZURE_OPENAI_ENDPOINT": "URL", "AZURE_OPENAI_AD_TOKEN": TOKEN},
        lambda url: openai.AsyncAzureOpenAI(
            azure_ad_token=TOKEN, azure_endpoint=url, api_version="2025-04-01-preview", **HOW
        ),
    ),
    "azure, Claude": (
        "azure/claude-opus-4-5",
        {},
        {"ANTHROPIC_FOUNDRY_BASE_URL": "URL/anthropic/", "ANTHROPIC_FOUNDRY_API_KEY": KEY},
        lambda url: anthropic.AsyncAnthropicFoundry(
            api_key=KEY, base_url=f"{url}/anthropic/", **HOW
        ),
    ),
    "bedrock, Claude": (
        "bedrock/anthropic.claude-sonnet-4-5",
        {},
        {**AWS, "ANTHROPIC_BEDROCK_MANTLE_BASE_URL": "URL/anthropic"},
        lambda url: anthropic.AsyncAnthropicBedrockMantle(
            api_key=KEY, aws_region="eu-west-1", base_url=f"{url}/anthropic", **HOW
        ),
    ),
    "bedrock": (
        "bedrock/qwen.qwen3-coder-480b-a35b-v1:0",
        {},
        {**AWS, "AWS_BEDROCK_BASE_URL": "URL/openai/v1"},
        lambda url: openai.AsyncBedrockOpenAI(
            api_key=KEY, aws_region="eu-west-1", base_url=f"{url}/openai/v1", **HOW
        ),
    ),
    "bedrock, responses": (
        "bedrock/openai.gpt-5.4",
        {"base_url": "URL"},
        AWS,
        lambda url: openai.AsyncBedrockOpenAI(
            api_key=KEY, aws_region="eu-west-1", base_url=f"{url}/openai/v1", **HOW
        ),
    ),
    "vertex, Claude": (
        "vertex/claude-sonnet-4-5@20250929",
        {},
        {**GOOGLE, "ANTHROPIC_VERTEX_BASE_URL": "URL/v1", "CLOUD_ML_REGION": "europe-west1"},
        lambda url: anthropic.AsyncAnthropicVertex(
            access_token=KEY,
            project_id="p-1",
            region="europe-west1",
            base_url=f"{url}/v1",
            **HOW,
        ),
    ),
    "vertex, Claude, global": (
        "vertex/claude-opus-4-5",
        {"base_url": "URL", "base_urls": {"global": "URL"}},
        GOOGLE,
        lambda url: anthropic.AsyncAnthropicVertex(
            access_token=KEY, project_id="p-1", region="global", base_url=f"{url}/v1", **HOW
        ),
    ),
    "databricks": (
        "databricks/databricks-claude-sonnet-4-5",
        {},
        {"DATABRICKS_HOST": "URL/", "DATABRICKS_TOKEN": KEY},
        lambda url: openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/serving-endpoints", **HOW),
    ),
    "cloudflare": (
        "cloudflare/@cf/openai/gpt-oss-120b",
        {"base_url": "URL/client/v4/accounts/a1/ai/v1"},
        {"CLOUDFLARE_API_TOKEN": KEY},
        lambda url: openai.AsyncOpenAI(
            api_key=KEY, base_url=f"{url}/client/v4/accounts/a1/ai/v1", **HOW
        ),
    ),
}
SAID = {WIRES[number].preset: WIRES[number].said("x") for number in range(3)}
REPLIES = {
    "anthropic-messages": SAID["anthropic"],
    "openai-responses": SAID["openai"],
    "openai-chat": SAID["openai-chat"],
}
COMPARED = {
    *("authorization", "api-key", "x-api-key", "x-goog-api-key", "content-type"),
    *("anthropic-version", "anthropic-beta", "openai-organization", "openai-project"),
}


def fill(value, url):
    """Return a value with the server's address in the place of URL."""
    if isinstance(value, dict):
        return {name: fill(inner, url) for name, inner in value.items()}
    return value.replace("URL", url)


def requests_for(model):
    """Return forty requests: each history with each set of fields."""
    return [
        Request(model=model, messages=messages, **fields)
        for messages, fields in product(HISTORIES, FIELDS)
    ]


WITH_CLASS = {
    name: case
    for name, case in CASES.items()
    if not name.startswith(("azure, resp", "databricks", "cloudflare")) and name != "azure"
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", WITH_CLASS.values(), ids=WITH_CLASS)
async def test_the_clouds_class_of_an_sdk_sends_the_same(case, monkeypatch):
    """`transport = "sdk"`: the SDK makes address and body, and the key is ours."""
    monkeypatch.setenv("OPENAI_ORG_ID", "another")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: another")
    name, row, environ, _ = case
    provider, _, model = name.partition("/")
    seen, events = [], []
    for transport in ("http", "sdk"):
        async with WireServer() as server:
            presets = load_presets({provider: {**fill(row, server.url), "transport": transport}})
            preset = presets[provider].choose_variant(model)
            assert preset.sdk_client
            server.replies = [Reply(REPLIES[preset.api])]
            async with Client.from_env(fill(environ, server.url), presets=presets) as client:
                asked, _ = client.resolve(name)
                for request in requests_for(model):
                    told = client.stream(request, asked)
                    events.append([event async for event in told])
            seen.append(server.requests)
    assert len(seen[0]) == len(seen[1]) == 40
    for ours, theirs in zip(*seen, strict=True):
        assert compared(ours) == compared(theirs)
        assert "stainless" in str(theirs.headers)
        assert "another" not in str(theirs.headers)
    assert events[:40] == events[40:]


async def call_sdk(client, api, body):
    """Make the call that has this body, as the SDK does."""
    create = {
        "anthropic-messages": lambda: client.messages.create,
        "openai-chat": lambda: client.chat.completions.create,
        "openai-responses": lambda: client.responses.create,
    }[api]()
    known = inspect.signature(create).parameters
    extra = {name: value for name, value in body.items() if name not in known}
    fields = {name: value for name, value in body.items() if name in known}
    headers = {}
    if api == "anthropic-messages":
        # the version that our bodies are of, while the SDK names the newest
        if isinstance(client, anthropic.AsyncAnthropicVertex):
            extra["anthropic_version"] = "vertex-2023-10-16"
        elif isinstance(client, anthropic.AsyncAnthropicBedrock):
            extra["anthropic_version"] = "bedrock-2023-05-31"
        else:
            headers["anthropic-version"] = "2023-06-01"
    async for _ in await create(**fields, extra_body=extra, extra_headers=headers):
        pass


def compared(seen):
    headers = {name: text for name, text in seen.headers.items() if name in COMPARED}
    return seen.path, headers, seen.body


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_forty_calls_are_those_of_the_clouds_own_client(case, monkeypatch):
    """M138: address, the headers of key and version, and body."""
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    name, row, environ, make_client = case
    provider, _, model = name.partition("/")
    async with WireServer() as server:
        presets = load_presets({provider: fill(row, server.url)} if row else {})
        preset = presets[provider].choose_variant(model)
        server.replies = [Reply(REPLIES[preset.api])]
        plain = replace(preset, name="plain", model_in_path=False, body_version="")
        requests = requests_for(model)
        assert len(requests) == 40
        async with Client.from_env(fill(environ, server.url), presets=presets) as client:
            for request in requests:
                asked, _ = client.resolve(name)
                async for _ in client.stream(request, asked):
                    pass
        ours = server.requests[:]
        server.requests.clear()
        judge = make_client(server.url)
        for request in requests:
            body = msgspec.json.decode(encode_request_body(plain, request))
            await call_sdk(judge, preset.api, body)
        await judge.close()
    for mine, theirs in zip(ours, server.requests, strict=True):
        assert compared(mine) == compared(theirs)
