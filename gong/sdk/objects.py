"""Python types as JSON Schemas for models, and answers validated against them: pure."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from ..errors import ConfigurationError, NoObject
from ..llm.types import ResponseFormat

JsonSchema = dict[str, Any]
"""A JSON Schema."""

_NAMED_PARTS = {"properties", "$defs"}
_LISTED_PARTS = {"anyOf", "oneOf", "prefixItems"}


def build_json_schema(kind: type) -> JsonSchema:
    """Return the schema of a Struct, dataclass or TypedDict, with an object at its root.

    Raises ConfigurationError for anything else.
    """
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise ConfigurationError(f"cannot make a JSON Schema of {kind!r}: {error}") from error
    definitions = schema.get("$defs", {})
    root = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if root.get("type") != "object":
        raise ConfigurationError(
            f"{kind!r} is not an object type: give a Struct, dataclass or TypedDict"
        )
    referred = "#/$defs/" in str(root)
    return {**root, "$defs": definitions} if referred else dict(root)


def build_response_format(kind: type) -> ResponseFormat:
    """Return the format that holds an answer to `kind`, strict where its schema can be."""
    schema, strict = build_json_schema(kind), False
    with suppress(_OpenSchema):
        schema, strict = _close_schema(schema), True
    return ResponseFormat(kind.__name__, Raw(msgspec.json.encode(schema)), strict)


def parse_object(text: str, kind: type) -> Any:
    """Return the value of `kind` in a JSON text; raises NoObject if it does not match."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NoObject(f"the answer is not a {kind.__name__}: {error}", text) from error


class _OpenSchema(Exception):
    """Part of a schema has fields that cannot be listed."""


def _close_schema(schema: JsonSchema) -> JsonSchema:
    """Return the schema with every field required and no others; raises _Open."""
    if schema.get("type") == "object" and "properties" not in schema:
        raise _OpenSchema
    closed = {
        key: _close_schema_part(key, value) for key, value in schema.items() if key != "default"
    }
    if "properties" in closed:
        closed |= {"required": list(closed["properties"]), "additionalProperties": False}
    return closed


def _close_schema_part(key: str, value: Any) -> Any:
    if key in _NAMED_PARTS:
        return {name: _close_schema(one) for name, one in value.items()}
    if key in _LISTED_PARTS:
        return [_close_schema(one) for one in value]
    return _close_schema(value) if key == "items" and isinstance(value, dict) else value
