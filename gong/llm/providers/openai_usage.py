"""What the two OpenAI wires count, as our usage: pure. Input is always without cached tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.entries import Usage

from .values import wire_object

if TYPE_CHECKING:
    from .values import WireObject


def chat_usage(counts: WireObject) -> Usage:
    """Return the usage of a Chat Completions answer.

    The completion holds the reasoning, except where a host's total shows that it stands beside it.
    """
    prompt = wire_object(counts.get("prompt_tokens_details"))
    completion = wire_object(counts.get("completion_tokens_details"))
    whole, output = _number(counts, "prompt_tokens"), _number(counts, "completion_tokens")
    read = _known(prompt, "cached_tokens")
    for name in ("prompt_cache_hit_tokens", "cached_tokens"):
        read = _known(counts, name) if read is None else read
    reasoning = _known(completion, "reasoning_tokens")
    total = _number(counts, "total_tokens") or whole + output
    if reasoning and total == whole + output + reasoning:
        output += reasoning
    write = _known(prompt, "cache_write_tokens")
    return Usage(_fresh(whole, read, write), output, reasoning, read, write, total)


def responses_usage(counts: WireObject) -> Usage:
    """Return the usage of a Responses answer."""
    read_in = wire_object(counts.get("input_tokens_details"))
    written = wire_object(counts.get("output_tokens_details"))
    whole, output = _number(counts, "input_tokens"), _number(counts, "output_tokens")
    read, write = _known(read_in, "cached_tokens"), _known(read_in, "cache_write_tokens")
    reasoning = _known(written, "reasoning_tokens")
    total = _number(counts, "total_tokens") or whole + output
    return Usage(_fresh(whole, read, write), output, reasoning, read, write, total)


def _fresh(whole: int, read: int | None, write: int | None) -> int:
    return max(0, whole - (read or 0) - (write or 0))


def _number(counts: WireObject, name: str) -> int:
    return _known(counts, name) or 0


def _known(counts: WireObject, name: str) -> int | None:
    number = counts.get(name)
    return number if isinstance(number, int) else None
