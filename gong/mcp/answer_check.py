"""Answers of a server that are odd in one place: the rest of them stays.

The SDK checks an answer as a whole, so one odd tool would take all tools away. What it gets is
corrected here before:

    answer                    odd                                  what is left
    ------------------------  -----------------------------------  ---------------------------------
    a page of a list          a tool, resource or prompt that is   the others; it is named in
                              not as the protocol says             `refused`
    the result of a call      a block that is not                  that block as JSON in a text
                              no `content` at all                  its `structuredContent`
                              a `structuredContent` that is not    that as JSON in a text
                              another key, such as `_meta`         the others

The schemas of results are kept here and not shown to the SDK, which would refuse a result that
does not fit its schema, and with it what the tool said.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Method → the key of the members in its answer."""
_HANDSHAKE_VERSION = "2025-11-25"
_MODERN_PAGE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What each page has, of the revisions that want it."""


class RefusedMember(NamedTuple):
    """A tool, resource or prompt that is left out."""

    name: str
    why: str


class AnswerCheck:
    """The answers of one connection, while they come in."""

    def __init__(self) -> None:
        self.version = _HANDSHAKE_VERSION
        """The revision of the protocol; to be set when it is agreed on."""
        self.refused: dict[str, list[RefusedMember]] = {}
        """What was left out of the newest list, by its method."""
        self.output_schemas: dict[str, dict[str, Any]] = {}
        """The schema of a tool's results, by the tool's name."""
        self._asked: dict[str | int, tuple[str, bool]] = {}
        """Requests without an answer yet: method, and whether it asks for a list's first page."""

    def note_request(self, request_id: str | int, method: str, params: Any) -> None:
        """Note what is asked."""
        has_cursor = isinstance(params, dict) and params.get("cursor") is not None
        self._asked[request_id] = (method, not has_cursor)

    def normalize_answer(self, request_id: str | int, result: dict[str, Any]) -> dict[str, Any]:
        """Return an answer as the SDK is to check it; one that nothing helps as it is."""
        method, is_first = self._asked.pop(request_id, ("", False))
        if method == "tools/call":
            return _normalize_result(result, self.version)
        if method not in _LISTS:
            return result
        if is_first:
            self.refused[method] = []
        result, refused = select_members(method, result, self.version)
        self.refused.setdefault(method, []).extend(refused)
        if method == "tools/list" and isinstance(tools := result.get("tools"), list):
            return {**result, "tools": [self._keep_output_schema(tool) for tool in tools]}
        return result

    def _keep_output_schema(self, tool: Any) -> Any:
        if not isinstance(tool, dict) or not isinstance(schema := tool.get("outputSchema"), dict):
            return tool
        self.output_schemas[str(tool.get("name"))] = schema
        return {key: value for key, value in tool.items() if key != "outputSchema"}


def select_members(
    method: str, page: dict[str, Any], version: str
) -> tuple[dict[str, Any], list[RefusedMember]]:
    """Return the page of a list without its odd members, and those."""
    key = _LISTS[method]
    members = page.get(key)
    if not isinstance(members, list):
        return page, []
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    rest = _MODERN_PAGE if is_modern else {}
    usable, refused = [], []
    for number, member in enumerate(members, 1):
        why = _find_fault(method, {**rest, key: [member]}, version, skip=2)
        if not why and key == "tools" and is_modern:
            why = find_invalid_x_mcp_header(member["inputSchema"]) or ""
        if why:
            name = member.get("name") if isinstance(member, dict) else None
            refused.append(RefusedMember(name if isinstance(name, str) else f"no. {number}", why))
        else:
            usable.append(member)
    return {**page, key: usable}, refused


def _normalize_result(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the result of a call with what of it is as the protocol says, the rest as texts."""
    if result.get("resultType") == "input_required" or not _is_odd(result, version):
        return result
    content = result.get("content")
    given = content if isinstance(content, list) else [] if content is None else [content]
    # What a result has to have in any case, whatever is wrong with it
    bare = {"content": [], **({"resultType": "complete"} if "resultType" in result else {})}
    blocks = [
        _write_text(block) if _is_odd({**bare, "content": [block]}, version) else block
        for block in given
    ]
    usable = {
        key: value
        for key, value in result.items()
        if key != "content" and not _is_odd({**bare, key: value}, version)
    }
    structured = result.get("structuredContent")
    if structured is not None and "structuredContent" not in usable:
        text = _write_text(structured)
        blocks += [] if text in blocks else [text]
    if "isError" in result and "isError" not in usable:
        usable["isError"] = bool(result["isError"])
    return {**bare, **usable, "content": blocks}


def _write_text(value: Any) -> dict[str, Any]:
    """Return a text block: a string as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return {"type": "text", "text": text}


def _is_odd(result: dict[str, Any], version: str) -> bool:
    """Return whether the result of a call is not as the protocol says."""
    return bool(_find_fault("tools/call", result, version))


def _find_fault(method: str, answer: Mapping[str, Any], version: str, skip: int = 0) -> str:
    """Return in one line why an answer is not as the protocol says; empty where it is.

    `skip` is the number of steps to a place that are not named.
    """
    try:
        methods.parse_server_result(method, version, answer)
    except ValidationError as error:
        return describe_fault(error, skip)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def describe_fault(error: ValidationError, skip: int = 0) -> str:
    """Return the first fault of a value in one line: its place, and what is wrong."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    steps = (str(step) for step in first["loc"][skip:])
    place = ".".join(step for step in steps if "[" not in step)  # a kind, as dict[str,any]
    return f"{place}: {first['msg']}" if place else first["msg"]
