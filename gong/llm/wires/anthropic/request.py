"""Encodes a request for Anthropic Messages; pure except for its cache of encoded messages.

At most four prompt-cache marks: the last tool, the system prompt, and the last block of the two
newest user messages, so that the newest call finds what the one before it has stored.

Some of the request's options are no part of the body: `auto_cache`, false for no marks, and
`beta_headers`, or `betas`, a list of words for the anthropic-beta header.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec.structs import replace

from tape.formats.anthropic import emit

from ...models import find_limits
from ..http_client import EncodedRequest
from ..json_values import (
    encode_with_array,
    list_unsent_fields,
    parse_options,
    take_server_tools,
)
from ..message_encoding import EncoderCache, HistorySelection, is_system_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.context.view import Message
    from tape.formats.encoder import ArrayEncoder

    from ...models import Preset
    from ...types import Request, ToolChoice
    from ..json_values import WireObject

_PATH = "/v1/messages"
_MAX_TOKENS = 16_000
"""The length of an answer, of a model whose own limit is not known."""
_CACHE = {"cache_control": {"type": "ephemeral"}}
_HAS_MARK = b'"cache_control":'
_MARKED_MESSAGES = 2
_USER = b'{"role":"user"'
_BUDGETS = {"low": 1024, "medium": 2048, "high": 8192, "xhigh": 16_384}
_MIN_BUDGET = 1024
_CLAUDE = re.compile(r"(?:.*/)?claude-")
_THINKS_BY_BUDGET = re.compile(
    r"(?:.*/)?claude-(?:[23]|instant|(?:opus|sonnet|haiku)-4(?:[-.@][015](?!\d)|[-@]20|$))"
)
_DOES_NOT_THINK = re.compile(r"(?:.*/)?claude-(?:2|instant|3-(?!7))")
_KNOWS_NO_XHIGH = re.compile(r"(?:.*/)?claude-(?:opus|sonnet)-4[-.]6")
_TAKES_NO_TEMPERATURE = re.compile(r"(?:.*/)?claude-(?:opus-(?:4[-.][7-9]|[5-9])|fable|mythos)")
_INTERLEAVED = "interleaved-thinking-2025-05-14"
_BETA, _VERSION = "anthropic-beta", "anthropic-version"
_SPOKEN_VERSION = "2023-06-01"
_OWN_HOST = "anthropic"
_USER_ID = "user_id"
_FIXED = "with thinking, and for the newest models, it is fixed"


class _Unmarked:
    """Encodes a history without the marks of other programs, which imported blocks may carry.

    Only so few marks are allowed. Each element is searched once.
    """

    def __init__(self, encoder: ArrayEncoder) -> None:
        self._encoder = encoder
        self._given: list[bytes] = []
        self._clean: list[bytes] = []

    def elements(self, messages: Sequence[Message]) -> list[bytes]:
        """Return each element of the array as JSON."""
        elements = self._encoder.elements(messages)
        known = len(self._given) - 1  # the last one may have grown
        if known < 0 or elements[:known] != self._given[:known]:
            known = 0
        new = [
            _remove_mark(element) if _HAS_MARK in element else element
            for element in elements[known:]
        ]
        self._given, self._clean = elements, [*self._clean[:known], *new]
        return [*self._clean]


class AnthropicRequestEncoder:
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._form = emit.AnthropicOptions(thinking_as_text=preset.quirks.thinking_as_text)
        self._cache = EncoderCache(
            emit.build_encoder,
            lambda url, _mime: {"type": "image", "source": {"type": "url", "url": url}},
            wrap=_Unmarked,
        )
        self._system = HistorySelection(is_system_message)

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call; its options have the last word. Raises MsgspecError for bad options."""
        own = parse_options(request)
        cached = own.pop("auto_cache", True)
        betas = [*own.pop("betas", []), *own.pop("beta_headers", [])]
        server_tools = take_server_tools(own)
        system = self._system.follow(request.messages)
        wire = build_envelope(replace(request, messages=system), self.preset)
        if server_tools:  # before ours, of which the last one has the mark
            wire["tools"] = [*server_tools, *wire.get("tools", ())]
        messages = self._cache.encode_messages(request, self._form)
        if cached:
            places = (n for n in reversed(range(len(messages))) if messages[n].startswith(_USER))
            for place in islice(places, _MARKED_MESSAGES):
                turn = msgspec.json.decode(messages[place])
                turn["content"][-1] |= _CACHE
                messages[place] = msgspec.json.encode(turn)
        else:
            for block in (*wire.get("tools", ()), *wire.get("system", ())):
                block.pop("cache_control", None)
        headers = self._build_headers(wire, betas)
        if self.preset.quirks.aws_frames:
            del wire["stream"]
            if words := headers.pop(_BETA, ""):
                wire["anthropic_beta"] = words.split(",")
        body = encode_with_array({**wire, **self.preset.body, **own}, b"messages", messages)
        warnings = _list_warnings(request, self.preset, wire)
        return EncodedRequest(_PATH, body, headers, warnings)

    def _build_headers(self, wire: WireObject, betas: Sequence[str]) -> dict[str, str]:
        """Return version and beta: what the preset, the call and the way of thinking ask for."""
        headers = {name.lower(): value for name, value in self.preset.headers.items()}
        version = {_VERSION: headers.get(_VERSION, _SPOKEN_VERSION)}
        if self.preset.body_version:
            version = {}
        beta_names = [*filter(None, [headers.get(_BETA)]), *betas]
        by_budget = "budget_tokens" in wire.get("thinking", {})
        if by_budget and wire.get("tools") and self.preset.name == _OWN_HOST:
            beta_names.append(_INTERLEAVED)
        beta_header = ",".join(dict.fromkeys(beta_names))
        return {**version, _BETA: beta_header} if beta_header else version


def build_envelope(request: Request, preset: Preset) -> WireObject:
    """Return the body without its messages and options."""
    text = emit.build_system_text(request.system, request.messages)
    user = (request.metadata or {}).get(_USER_ID)
    version = preset.body_version
    return {
        **({} if preset.model_in_path else {"model": preset.get_deployment(request.model)}),
        **({"anthropic_version": version} if version else {}),
        "max_tokens": _choose_max_tokens(request, preset),
        "stream": True,
        **_encode_tools(request, preset),
        **({"system": [{"type": "text", "text": text, **_CACHE}]} if text else {}),
        **_encode_thinking(request, preset),
        **_encode_sampling(request, preset),
        **({} if user is None else {"metadata": {_USER_ID: user}}),
    }


def _choose_max_tokens(request: Request, preset: Preset) -> int:
    """Return the length of an answer, which must be named: as asked for, else the model's own."""
    if request.max_tokens:
        return request.max_tokens
    return find_limits(f"{preset.name}/{request.model}").output or _MAX_TOKENS


def _encode_tools(request: Request, preset: Preset) -> WireObject:
    if not request.tools:
        return {}
    # others refuse fields they do not know
    own = {"eager_input_streaming": True} if preset.name == _OWN_HOST else {}
    tools: list[WireObject] = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
            **own,
        }
        for tool in request.tools
    ]
    tools[-1] |= _CACHE
    return {"tools": tools, "tool_choice": _encode_choice(request.tool_choice)}


def _encode_choice(choice: ToolChoice) -> WireObject:
    match choice.mode:
        case "auto" | "none":
            return {"type": choice.mode}
        case "required":
            return {"type": "any"}
        case "named":
            return {"type": "tool", "name": choice.name}
    assert_never(choice.mode)


def _remove_mark(element: bytes) -> bytes:
    turn = msgspec.json.decode(element)
    for block in turn["content"]:
        block.pop("cache_control", None)
        inner = block.get("content")
        for part in inner if isinstance(inner, list) else ():
            part.pop("cache_control", None)
    return msgspec.json.encode(turn)


def _encode_thinking(request: Request, preset: Preset) -> WireObject:
    """Return what the effort means to the model; a forced tool call excludes thinking."""
    effort = request.reasoning_effort
    forced = request.tool_choice.mode in {"required", "named"}
    if effort is None or forced or preset.quirks.thinking == "none":
        return {}
    if _DOES_NOT_THINK.match(request.model):
        return {}
    # every newer Claude decides itself how much it thinks
    if _CLAUDE.match(request.model) and not _THINKS_BY_BUDGET.match(request.model):
        word = "high" if effort == "xhigh" and _KNOWS_NO_XHIGH.match(request.model) else effort
        effort_name = preset.quirks.effort_names.get(effort, word)
        thinking = {"type": "adaptive", "display": "summarized"}
        return {"thinking": thinking, "output_config": {"effort": effort_name}}
    budget = min(_BUDGETS[effort], _choose_max_tokens(request, preset) - 1)
    if budget < _MIN_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _encode_sampling(request: Request, preset: Preset) -> WireObject:
    sampling: WireObject = {}
    if request.stop_sequences:
        sampling["stop_sequences"] = list(request.stop_sequences)
    fixed = _TAKES_NO_TEMPERATURE.match(request.model) or _encode_thinking(request, preset)
    if request.temperature is not None and not fixed:
        sampling["temperature"] = request.temperature
    both = "temperature" in sampling and _CLAUDE.match(request.model)
    if request.top_p is not None and not fixed and not both:
        sampling["top_p"] = request.top_p
    return sampling


def _list_warnings(request: Request, preset: Preset, wire: WireObject) -> tuple[str, ...]:
    forced = request.tool_choice.mode in {"required", "named"}
    only_user_id = {*(request.metadata or ())} <= {_USER_ID}
    return list_unsent_fields(
        preset,
        request,
        temperature=("temperature" in wire, _FIXED),
        top_p=(
            "top_p" in wire,
            "it goes beside temperature on older models only" if "temperature" in wire else _FIXED,
        ),
        metadata=(only_user_id, "it takes nothing but a user_id"),
        reasoning_effort=(
            "thinking" in wire,
            "a tool call that is forced excludes thinking" if forced else "there is no room for it",
        ),
    )
