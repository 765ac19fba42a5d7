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
    from .turns import Encoder
    from .wire import Load, Put, WireObject


class Format(NamedTuple):
    """One API's array."""

    api: str
    """Name of the wire, as `Assistant.api` and `Target.api` have it."""
    field: str
    """Name of the array in the API's request."""
    signs: tuple[str, ...]
    """Fields of which every element has one."""
    encoder: Callable[[Load | None], Encoder]
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


_ANTHROPIC = anthropic.Options(verbatim=True, system_in_place=True)


def _anthropic_system(messages: Sequence[Message]) -> WireObject:
    text = anthropic.system_text("", messages, _ANTHROPIC)
    return {"system": text} if text else {}


def _gemini_system(messages: Sequence[Message]) -> WireObject:
    instruction = gemini.system_instruction("", messages)
    return {"systemInstruction": instruction} if instruction else {}


FORMATS = {
    "anthropic": Format(
        anthropic.API,
        "messages",
        ("content",),
        lambda load: anthropic.encoder(_ANTHROPIC, load),
        _anthropic_system,
        parse_anthropic.parse,
        rules_anthropic.check,
    ),
    "openai-chat": Format(
        openai_chat.API,
        "messages",
        ("content", "tool_calls", "function_call"),
        lambda load: openai_chat.encoder(openai_chat.Options(verbatim=True), load),
        lambda _: {},
        parse_openai_chat.parse,
        rules_openai_chat.check,
    ),
    "openai-responses": Format(
        openai_responses.API,
        "input",
        ("content", "type"),
        lambda load: openai_responses.encoder(
            openai_responses.Options(verbatim=True, stored=True, system_role="system"), load
        ),
        lambda _: {},
        parse_openai_responses.parse,
        rules_openai_responses.check,
    ),
    "gemini": Format(
        gemini.API,
        "contents",
        ("parts",),
        lambda load: gemini.encoder(gemini.Options(verbatim=True, media_in_results=True), load),
        _gemini_system,
        parse_gemini.parse,
        rules_gemini.check,
        names_model=False,
    ),
}
"""Every format by the name people give it."""
