"""What each provider of the shipped presets is sent, row by row of llm.md §2, from one request."""

import json
import re
from typing import NamedTuple

import pytest
from msgspec import Raw

from gong.llm import Client
from gong.llm.types import Request, ToolSpec
from tape.context.view import Message
from tape.model.entries import Text, Thinking, ToolCall

LONG_ID = "call:with/odd|signs." * 5
SHORT = re.compile(r".{1,40}")
REQUEST = Request(
    model="",
    system="Be brief.",
    messages=(
        Message("user", (Text("Look."),)),
        Message("assistant", (Thinking("hm"), ToolCall(id=LONG_ID, name="ls", args=Raw(b"{}")))),
        Message("tool", (Text("a.txt"),), LONG_ID, "ls"),
        Message("user", (Text("And now?"),)),
    ),
    tools=(ToolSpec("ls", "List.", Raw(b'{"type":"object","properties":{}}')),),
    max_tokens=5000,
    reasoning_effort="medium",
    session="t_1",
)


class Row(NamedTuple):
    """What stands where: places are names from the body's top on."""

    model: str
    ids: re.Pattern
    system: tuple
    most: str
    thinking: dict
    absent: tuple = ()
    """Names that the host would refuse."""


EFFORT = {"reasoning_effort": "medium"}
FIRST = ("messages", 0, "content")
ONLY_OPENAIS = ("store", "prompt_cache_key", "max_completion_tokens")
ROWS = {
    "anthropic": Row(
        "claude-sonnet-5-5",
        re.compile(r"[A-Za-z0-9_-]{1,64}"),
        ("system", 0, "text"),
        "max_tokens",
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "medium"},
        },
        ("temperature",),
    ),
    "openai": Row(
        "gpt-6.1-sol",
        re.compile(r".{1,64}"),
        ("instructions",),
        "max_output_tokens",
        {
            "reasoning": {"effort": "medium", "summary": "auto"},
            "include": ["reasoning.encrypted_content"],
            "store": False,
        },
    ),
    "openai-chat": Row("gpt-6.1-sol", SHORT, FIRST, "max_completion_tokens", EFFORT),
    "google": Row(
        "gemini-3.8-flash",
        re.compile("none"),
        ("systemInstruction", "parts", 0, "text"),
        "maxOutputTokens",
        {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "MEDIUM"}},
    ),
    "mistral": Row(
        "mistral-medium-latest",
        re.compile(r"[A-Za-z0-9]{9}"),
        FIRST,
        "max_tokens",
        {},
        ("stream_options", "reasoning_effort"),
    ),
    "xai": Row("grok-4.7", SHORT, FIRST, "max_tokens", EFFORT),
    "groq": Row("openai/gpt-oss-120b", SHORT, FIRST, "max_tokens", EFFORT),
    "cerebras": Row("gpt-oss-120b", SHORT, FIRST, "max_tokens", EFFORT),
    "zai": Row(
        *("glm-5.3", SHORT, FIRST, "max_tokens", {"thinking": {"type": "enabled"}}),
        ("reasoning_effort",),
    ),
    "kimi": Row("kimi-k3.1-pro", SHORT, FIRST, "max_tokens", EFFORT),
    "deepseek": Row("deepseek-v4-pro", SHORT, FIRST, "max_tokens", EFFORT),
    "minimax": Row("MiniMax-M3", SHORT, FIRST, "max_tokens", {}, ("reasoning_effort",)),
    "openrouter": Row(
        "z-ai/glm-5",
        *(SHORT, FIRST, "max_tokens", {"reasoning": {"effort": "medium"}}),
        ("reasoning_effort",),
    ),
    "vercel": Row("xai/grok-4", SHORT, FIRST, "max_tokens", EFFORT),
    "ollama": Row("qwen3", SHORT, FIRST, "max_tokens", EFFORT),
    "lmstudio": Row("qwen3", SHORT, FIRST, "max_tokens", EFFORT),
    "llamacpp": Row("qwen3", SHORT, FIRST, "max_tokens", EFFORT),
    "vllm": Row(
        *("qwen3", SHORT, FIRST, "max_tokens", {"chat_template_kwargs": {"enable_thinking": True}})
    ),
}


def found(body, names):
    """Return every value under one of these names, at any depth, as a set of texts."""
    if isinstance(body, list):
        return {one for value in body for one in found(value, names)}
    if not isinstance(body, dict):
        return set()
    here = {value for name, value in body.items() if name in names and isinstance(value, str)}
    return here | {one for value in body.values() for one in found(value, names)}


@pytest.mark.parametrize("name", ROWS)
def test_each_provider_is_sent_what_its_row_says(name):
    """M138 M144 M145 M215: Groq, xAI, Ollama and Mistral among them."""
    row = ROWS[name]
    body = json.loads(Client.from_env({}).body(f"{name}/{row.model}", REQUEST))
    ids = found(body.get("messages", body.get("input")) or body["contents"], {"call_id"})
    ids |= found(body.get("messages", []), {"id", "tool_use_id", "tool_call_id"})
    assert all(map(row.ids.fullmatch, ids)), ids
    assert len(ids) == (0 if name == "google" else 1)
    place = body
    for step in row.system:
        place = place[step]
    settings = body.get("generationConfig", body)
    told = {key: settings.get(key) for key in row.thinking}
    assert (place, settings[row.most], told) == ("Be brief.", 5000, row.thinking)
    refused = () if name in {"openai", "openai-chat"} else ONLY_OPENAIS
    assert not {*row.absent, *refused} & body.keys()


@pytest.mark.parametrize(("name", "kept"), [("kimi", ""), ("deepseek", ""), ("groq", None)])
def test_an_answer_without_thinking_says_so_where_its_host_wants_that(name, kept):
    """An empty reasoning_content goes back, or calls are refused."""
    body = json.loads(Client.from_env({}).body(f"{name}/m", REQUEST))
    (answer,) = (one for one in body["messages"] if one["role"] == "assistant")
    assert answer.get("reasoning_content") == kept


def test_mistral_gets_an_answer_between_results_and_the_next_question():
    body = json.loads(Client.from_env({}).body("mistral/m", REQUEST))
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
