"""The four message arrays by name: what `import --from` and `export --to` choose from; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .anthropic import emit as anthropic
from .anthropic import parse as parse_anthropic
from .anthropic import rules as rules_anthropic
from .gemini import emit as gemini
from .gemini import parse as parse_gemini
from .gemini import rules as rules_gemini
from .openai_chat import emit as openai_chat
from .openai_chat import parse as parse_openai_chat
from .openai_chat import rules as rules_openai_chat
from .openai_responses import emit as openai_responses
from .openai_responses import parse as parse_openai_responses
from .openai_responses import rules as rules_openai_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..context.view import Message
    from ..model.entries import Payload
    from .encoder import ArrayEncoder
    from .violations import Violation
    from .wire import Load, Put, WireObject


class ArrayFormat(NamedTuple):
    """One API's array."""

    api: str
    """Name of the wire, as `Assistant.api` and `Target.api` have it."""
    field: str
    """Name of the array in the API's request."""
    signs: tuple[str, ...]
    """Fields; every element has one of them."""
    encoder: Callable[[Load | None], ArrayEncoder]
    """Creates an encoder that keeps the provider's own ids, where they are known."""
    system: Callable[[Sequence[Message]], WireObject]
    """Returns the request's field for system messages outside of the array, if any."""
    parse: Callable[[bytes | str | Sequence[Any], Put], list[Payload]]
    check: Callable[[Sequence[Any]], list[Violation]]
    names_model: bool = True
    """The request names the model; otherwise its address does."""

    def message(self, role: str, content: Any) -> WireObject:
        """Return a message as an element of the array."""
        if "parts" not in self.signs:
            return {"role": role, "content": content}
        return {"role": role, "parts": [content] if isinstance(content, str | dict) else content}


_ANTHROPIC_OPTIONS = anthropic.AnthropicOptions(verbatim=True, system_in_place=True)


def _build_field(name: str, value: WireObject | str | None) -> WireObject:
    return {name: value} if value else {}


FORMATS = {
    "anthropic": ArrayFormat(
        anthropic.API,
        "messages",
        ("content",),
        lambda load: anthropic.build_encoder(_ANTHROPIC_OPTIONS, load),
        lambda system: _build_field(
            "system", anthropic.build_system_text("", system, _ANTHROPIC_OPTIONS)
        ),
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
        lambda system: _build_field(
            "systemInstruction", gemini.build_system_instruction("", system)
        ),
        parse_gemini.parse_array,
        rules_gemini.check_array,
        names_model=False,
    ),
}
"""Every format by the name people give it."""
