"""What the two OpenAI wires share: fields of requests, and what was counted; pure.

Usage has input without cached tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from tape.model.entries import Usage

from .json_values import parse_count, read_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..models import Quirks
    from ..types import Request
    from .json_values import WireObject


_TAKES_TEXT = re.compile(r"(?:.*[/:])?gpt-(?:[5-9]|[1-9]\d)(?!\S*-chat)")
"""Names of models that know tools of free text: GPT-5 and newer."""


def choose_effort(request: Request, quirks: Quirks) -> str | None:
    """Return the host's word for the effort that is wanted; None for a model that refuses one."""
    effort, models_with_effort = request.reasoning_effort, quirks.effort_models
    if models_with_effort and not any(name in request.model for name in models_with_effort):
        return None
    return None if effort is None else quirks.effort_names.get(effort, effort)


def list_freeform_tools(request: Request, quirks: Quirks) -> frozenset[str]:
    """Return the names of the tools that take free text, where host and model have such tools."""
    if not quirks.freeform or not _TAKES_TEXT.match(request.model):
        return frozenset()
    return frozenset(tool.name for tool in request.tools if tool.freeform is not None)


def encode_storage(request: Request, quirks: Quirks) -> WireObject:
    """Return the `store` field, for OpenAI's own hosts, which know it."""
    if not quirks.store:
        return {}
    key = {"prompt_cache_key": request.session} if request.session else {}
    return {"store": False, **key}


def encode_schema(request: Request) -> WireObject | None:
    """Return the schema that the answer has to follow; None if there is none."""
    schema = request.response_format
    if schema is None:
        return None
    return {"name": schema.name, "schema": schema.schema, "strict": schema.strict}


def encode_scalars(request: Request, max_tokens: str) -> WireObject:
    """Return the sampling fields; `max_tokens` is what the host calls the longest answer."""
    scalars = {
        max_tokens: request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    return {name: value for name, value in scalars.items() if value is not None}


def parse_chat_usage(counts: WireObject) -> Usage:
    """Return the usage of a Chat Completions answer.

    The completion holds the reasoning, except where a host's total shows that it stands beside it.
    """
    prompt = read_object(counts.get("prompt_tokens_details"))
    completion = read_object(counts.get("completion_tokens_details"))
    whole, output = (
        _get_count_or_zero(counts, "prompt_tokens"),
        _get_count_or_zero(counts, "completion_tokens"),
    )
    read = _get_count(prompt, "cached_tokens")
    for name in ("prompt_cache_hit_tokens", "cached_tokens"):
        read = _get_count(counts, name) if read is None else read
    reasoning = _get_count(completion, "reasoning_tokens")
    total = _get_count_or_zero(counts, "total_tokens") or whole + output
    if reasoning and total == whole + output + reasoning:
        output += reasoning
    write = _get_count(prompt, "cache_write_tokens")
    return Usage(_count_uncached(whole, read, write), output, reasoning, read, write, total)


_SEARCHES = {"web_search_call": "web_search", "file_search_call": "file_search"}
"""Items of a Responses answer that are paid for by their number."""


def count_searches(items: Iterable[str]) -> dict[str, int] | None:
    """Return how often each search ran, by the types of an answer's items; None without any."""
    counted = Counter(_SEARCHES[kind] for kind in items if kind in _SEARCHES)
    return dict(counted) or None


def parse_responses_usage(counts: WireObject) -> Usage:
    """Return the usage of a Responses answer."""
    read_in = read_object(counts.get("input_tokens_details"))
    written = read_object(counts.get("output_tokens_details"))
    whole, output = (
        _get_count_or_zero(counts, "input_tokens"),
        _get_count_or_zero(counts, "output_tokens"),
    )
    read, write = _get_count(read_in, "cached_tokens"), _get_count(read_in, "cache_write_tokens")
    reasoning = _get_count(written, "reasoning_tokens")
    total = _get_count_or_zero(counts, "total_tokens") or whole + output
    return Usage(_count_uncached(whole, read, write), output, reasoning, read, write, total)


def _count_uncached(whole: int, read: int | None, write: int | None) -> int:
    return max(0, whole - (read or 0) - (write or 0))


def _get_count_or_zero(counts: WireObject, name: str) -> int:
    return _get_count(counts, name) or 0


def _get_count(counts: WireObject, name: str) -> int | None:
    return parse_count(counts.get(name))
