"""Realistic sessions from a seed: payloads as Structs, and the same as entry lines.

A user asks in 200 B; an answer has 1 KB of words and most often a call with 300 B of arguments; a
result has a median of 2 KB with a log-normal tail up to 50 KB. One text in five has shell variables
in it, one in ten is not ASCII.
"""

from __future__ import annotations

import math
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import msgspec

from tape.clock import format_timestamp
from tape.model.entries import Assistant, Text, ToolCall, ToolResult, ToolStart, Usage, User
from tape.model.line import encode_line, encode_payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.model.entries import Payload

ASKED, ANSWERED, CALLED, RESULT, LONGEST = 200, 1_000, 300, 2_000, 50_000
SPREAD = 1.0
"""Standard deviation of the logarithm of a result's length: one in a thousand is over 40 KB."""
CALLS = 5
"""Calls of a turn on average, one after the other."""
ENDPOINT, API, MODEL = "https://api.example.com", "messages", "model-1"
SEED = 20_261_121
DAY = 1_795_000_000_000_000
"""Microseconds of a moment in November 2026."""

_WORDS = (
    *("the", "of", "file", "test", "line", "error", "value", "import", "return", "def", "class"),
    *("self", "name", "path", "data", "none", "open", "read", "write", "check", "with", "from"),
    *("for", "not", "this", "that", "when", "None", "True", "config", "store", "index", "args"),
    *("assert result == expected", "/src/app/main.py:214:", '"key": "value",', "\tif x > 0:\n"),
    *("\n", "\n\n", "    ", "C:\\\\temp", "{}", "[0]", "->", "# TODO", "0x7f3a", "12.50", "::"),
)
_SHELL = ("$HOME", "$1", "${name}", "$(git rev-parse HEAD)", "US$")
_FOREIGN = ("–", "✓", "→", "naïve", "größer", "日本語", "└── ", "“so”", "…")
_POOL = 400_000


class Words:
    """Texts of a wanted length, cut from long ones."""

    def __init__(self, random: Random) -> None:
        self._random = random
        more = ((), _SHELL, _FOREIGN)
        self._pools = [_pool(random, (*_WORDS * 3, *words)) for words in more]

    def text(self, length: int) -> str:
        (pool,) = self._random.choices(self._pools, (0.7, 0.2, 0.1))
        start = self._random.randrange(len(pool) - length)
        return pool[start : start + length]


def _pool(random: Random, words: tuple[str, ...]) -> str:
    return " ".join(random.choices(words, k=_POOL // 5))


def payloads(count: int, seed: int = SEED) -> list[Payload]:
    """Return what the first `count` entries after the start of a session hold."""
    return list(islice(session(Random(seed)), count))


def session(random: Random) -> Iterator[Payload]:
    """Yield the payloads of a session that has no end."""
    words = Words(random)
    number = 0
    while True:
        yield User((Text(text=words.text(_about(random, ASKED))),))
        while random.random() > 1 / (CALLS + 1):
            number += 1
            yield from _step(random, words, f"c_{number:08x}_0")
        yield _answer(random, words)


def _step(random: Random, words: Words, call: str) -> Iterator[Payload]:
    args = {"command": words.text(_about(random, CALLED)), "timeout": 120}
    raw = msgspec.Raw(msgspec.json.encode(args))
    yield _answer(random, words, ToolCall(id=call, name="bash", args=raw))
    yield ToolStart(call, "bash")
    length = min(round(RESULT * math.exp(random.gauss(0, SPREAD))), LONGEST)
    text = Text(text=words.text(length))
    yield ToolResult(call, "bash", (text,), duration_ms=random.randrange(9_000))


def _answer(random: Random, words: Words, *calls: ToolCall) -> Assistant:
    spent = random.randrange(100, 900)
    return Assistant(
        (Text(text=words.text(_about(random, ANSWERED))), *calls),
        provider="example",
        api=API,
        endpoint=ENDPOINT,
        model=MODEL,
        stop_reason="tool_calls" if calls else "stop",
        usage=Usage(input=9_000, output=spent, cache_read=8_000, total=9_000 + spent),
        duration_ms=random.randrange(20_000),
    )


def _about(random: Random, length: int) -> int:
    return random.randrange(length // 2, length * 3 // 2)


def lines(payloads: list[Payload], parent: str | None = None, n: int = 0) -> list[bytes]:
    """Return the entry lines of payloads, each with its newline, one after the other."""
    made = []
    for payload in payloads:
        data = encode_payload(payload)
        header, line = encode_line(payload.entry_type, parent, n, format_timestamp(DAY + n), data)
        parent, n = header.id, n + 1
        made.append(line)
    return made


def size(payloads: list[Payload]) -> int:
    """Return the bytes of payloads as JSON, each by itself: what any store has to keep."""
    return sum(len(encode_payload(payload)) for payload in payloads)
