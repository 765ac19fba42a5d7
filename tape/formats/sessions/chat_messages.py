"""Messages in the shape of OpenAI's Chat API, as several agents keep them, → entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...model.entries import Assistant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...model.entries import Payload, Thinking
    from ..parsing import ArrayReader
    from ..wire import WireObject


def read_chat_message(
    reader: ArrayReader,
    message: WireObject,
    *,
    provider: str,
    model: str,
    thinking: Sequence[Thinking] = (),
) -> Iterator[Payload]:
    """Yield what a message gives; an answer with its model, and thinking before its words."""
    for payload in reader.read_element(message):
        if not isinstance(payload, Assistant):
            yield payload
            continue
        content = (*thinking, *payload.content)
        yield replace(
            payload,
            content=content,
            provider=provider,
            model=model,
            stop_reason="tool_calls" if message.get("tool_calls") else "stop",
        )
