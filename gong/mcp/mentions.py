"""What a prompt names of MCP servers: the model gets it after the words of the prompt.

in a prompt                      for the model
-------------------------------  ------------------------------------------------------------
@github:repo://gong/README.md    that resource of the server: its text, or its picture
/github:review 12                the messages of the server's prompt `review`, with its
/github:review id=12 tone=dry    arguments in their order, or by name; the last takes the rest
@someone, /etc/hosts             nothing: no server is called so
"""

from __future__ import annotations

import base64
import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types
from mcp.shared.exceptions import MCPError

from ..errors import ConfigurationError, GongError
from ..llm.picture_sources import detect_picture_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .connection import ServerConnection

_MAX_CHARS = 200_000
"""Characters of one text; what is longer is cut, and says so."""
_RESOURCE = re.compile(r"(?:^|(?<=\s))@(?P<server>[^\s:@/]+):(?P<uri>\S+)")
_PROMPT = re.compile(r"/(?P<server>[^\s:/]+):(?P<name>[^\s/]+)\s*(?P<typed>.*)\Z", re.DOTALL)
_AFTER_WORD = ".,;:!?)]}'\""


class NamedPart(NamedTuple):
    """A resource or a prompt of a server, as a prompt names it."""

    server: str
    name: str
    """The address of a resource, or the name of a prompt."""
    typed: str | None = None
    """The words after a prompt's name; None for a resource."""


class ServerDocument(NamedTuple):
    """What the model gets."""

    text: str
    """What it reads; of a picture, what it is."""
    picture: bytes = b""
    mime: str = ""


def find_parts(prompt: str, servers: Sequence[str]) -> list[NamedPart]:
    """Return what a prompt names of these servers, each once; pure."""
    match = _PROMPT.match(prompt)
    parts = []
    if match is not None and match["server"] in servers:
        parts.append(NamedPart(match["server"], match["name"], match["typed"].strip()))
    named = (NamedPart(match["server"], match["uri"]) for match in _RESOURCE.finditer(prompt))
    parts += [part for part in named if part.server in servers]
    return list(dict.fromkeys(parts))


async def read_part(part: NamedPart, connection: ServerConnection) -> list[ServerDocument]:
    """Return what a server has for it. Raises GongError, which says what is wrong."""
    try:
        if part.typed is None:
            listed = {str(resource.uri): resource for resource in await connection.list_resources()}
            uri = part.name if part.name in listed else part.name.rstrip(_AFTER_WORD)
            resource = await connection.read_resource(uri)
            return [_build_document(part.server, content) for content in resource.contents]
        prompts = {prompt.name: prompt for prompt in await connection.list_prompts()}
        known = prompts.get(part.name)
        if known is None:
            there = ", ".join(prompts) or "none"
            raise ConfigurationError(f"{part.server} has no prompt {part.name}; it has: {there}")
        answer = await connection.get_prompt(part.name, _read_arguments(part, known, part.typed))
        return [_build_message(part, message.role, message.content) for message in answer.messages]
    except MCPError as error:
        raise GongError(f"{part.server}: {error}") from error


def _read_arguments(part: NamedPart, known: types.Prompt, typed: str) -> dict[str, str]:
    """Return the arguments of a prompt by name; raises ConfigurationError for missing ones."""
    arguments = known.arguments or []
    names = [argument.name for argument in arguments]
    try:
        words = shlex.split(typed)
    except ValueError:  # a quote without its end
        words = typed.split()
    values: dict[str, str] = {}
    rest: list[str] = []
    for word in words:
        name, is_named, value = word.partition("=")
        if is_named and name in names:
            values[name] = value
        else:
            rest.append(word)
    free = [name for name in names if name not in values]
    for name in free[:-1]:
        if rest:
            values[name] = rest.pop(0)
    if free and rest:
        values[free[-1]] = " ".join(rest)
    missing = [
        argument.name for argument in arguments if argument.required and argument.name not in values
    ]
    if missing:
        usage = " ".join(f"{argument.name.upper()}" for argument in arguments)
        raise ConfigurationError(
            f"/{part.server}:{part.name} needs {', '.join(missing)}: "
            f"/{part.server}:{part.name} {usage}"
        )
    return values


def _build_message(part: NamedPart, role: str, content: Any) -> ServerDocument:
    opening = f'<prompt server="{part.server}" name="{part.name}" role="{role}">'
    match content:
        case types.TextContent(text=text):
            return ServerDocument(f"{opening}\n{_cut_text(text)}\n</prompt>")
        case types.EmbeddedResource(resource=resource):
            return _build_document(part.server, resource)
        case types.ImageContent(data=data):
            return _build_picture(f"{part.server}:{part.name}", base64.b64decode(data))
    return ServerDocument(f"{opening}\n[a {content.type}, which is left out]\n</prompt>")


def _build_document(server: str, resource: Any) -> ServerDocument:
    name = f"{server}:{resource.uri}"
    if isinstance(resource, types.TextResourceContents):
        text = f'<resource name="{name}">\n{_cut_text(resource.text)}\n</resource>'
        return ServerDocument(text)
    return _build_picture(name, base64.b64decode(resource.blob))


def _build_picture(name: str, data: bytes) -> ServerDocument:
    """Return a picture that models can see; of other bytes what they are."""
    mime = detect_picture_type(data[:64])
    if mime is None:
        return ServerDocument(f'<resource name="{name}">[{len(data)} bytes, no text]</resource>')
    return ServerDocument(f"[the picture {name}]", data, mime)


def _cut_text(text: str) -> str:
    if len(text) <= _MAX_CHARS:
        return text
    return f"{text[:_MAX_CHARS]}\n… {len(text) - _MAX_CHARS} more characters were left out"
