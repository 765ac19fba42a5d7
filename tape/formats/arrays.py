"""The four message arrays by name: what `import --from` and `export --to` choose from; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import anthropic, gemini, openai_chat, openai_responses
from .parse import anthropic as parse_anthropic
from .parse import gemini as parse_gemini
from .parse import openai_chat as parse_openai_chat
from .parse import openai_responses as parse_openai_responses
from .rules import anthropic as rules_anthropic
from .rules import gemini as rules_gemini
from .rules import openai_chat as rules_openai_chat
from .rules import openai_responses as rules_openai_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..entries import Payload
    from ..view import Message
    from .rules.violation import Violation
    from .turns import ArrayEncoder
    from .wire import Load, Put, WireObject


class ArrayFormat(NamedTuple):
    """One API's array."""

    api: str
    """Name of the wire, as `Assistant.api` and `Target.api` have it."""
    field: str
    """Name of the array in the API's request."""
    signs: tuple[str, ...]
    """Fields of which every element has one."""
    encoder: Callable[[Load | None], ArrayEncoder]
    """Makes an encoder that gives back ids as their provider wrote them, where they are known."""
    system: Callable[[Sequence[Message]], WireObject]
    """Returns the request's field for system messages that do not stand in the array, if any."""
    parse: Callable[[bytes | str | Sequence[Any], Put], list[Payload]]
    check: Callable[[Sequence[Any]], list[Violation]]
    names_model: bool = True
    """The request says which model is asked; otherwise its address does."""

    def message(self, role: str, content: Any) -> WireObject:
        """Return a message as the array may hold it."""
        if "parts" not in self.signs:
            return {"role": role, "content": content}
        return {"role": role, "parts": [content] if isinstance(content, str | dict) else content}


_ANTHROPIC_OPTIONS = anthropic.AnthropicOptions(verbatim=True, system_in_place=True)


def _build_anthropic_system(messages: Sequence[Message]) -> WireObject:
    text = anthropic.build_system_text("", messages, _ANTHROPIC_OPTIONS)
    return {"system": text} if text else {}


def _build_gemini_system(messages: Sequence[Message]) -> WireObject:
    instruction = gemini.build_system_instruction("", messages)
    return {"systemInstruction": instruction} if instruction else {}


FORMATS = {
    "anthropic": ArrayFormat(
        anthropic.API,
        "messages",
        ("content",),
        lambda load: anthropic.build_encoder(_ANTHROPIC_OPTIONS, load),
        _build_anthropic_system,
        parse_anthropic.parse_array,
        rules_anthropic.check_array,
    ),
    "openai-chat": ArrayFormat(
        openai_chat.API,
        "messages",
        ("content", "tool_calls", "function_call"),
        lambda load: openai_chat.build_encoder(openai_chat.OpenAIChatOptions(verbatim=True), load),
        lambda _: {},
        parse_openai_chat.parse_array,
        rules_openai_chat.check_array,
    ),
    "openai-responses": ArrayFormat(
        openai_responses.API,
        "input",
        ("content", "type"),
        lambda load: openai_responses.build_encoder(
            openai_responses.OpenAIResponsesOptions(
                verbatim=True, stored=True, system_role="system"
            ),
            load,
        ),
        lambda _: {},
        parse_openai_responses.parse_array,
        rules_openai_responses.check_array,
    ),
    "gemini": ArrayFormat(
        gemini.API,
        "contents",
        ("parts",),
        lambda load: gemini.build_encoder(
            gemini.GeminiOptions(verbatim=True, media_in_results=True), load
        ),
        _build_gemini_system,
        parse_gemini.parse_array,
        rules_gemini.check_array,
        names_model=False,
    ),
}
"""Every format by the name people give it."""
