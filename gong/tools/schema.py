"""Shape of a tool's arguments: a flat JSON Schema for models, and values bent to it (pure)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec

JsonSchema = dict[str, Any]
"""A JSON Schema."""

_NULL = {"type": "null"}
_CONTAINERS: dict[str, type] = {"object": dict, "array": list}


@cache
def build_schema(arguments: type[msgspec.Struct]) -> JsonSchema:
    """Return a schema with an object at its root and no references.

    Null is not named as a choice: a model leaves an optional field out. (`coerced` takes nulls.)
    It is made once for each Struct and not to be changed.
    """
    schema = msgspec.json.schema(arguments)
    flat = _flatten_schema(schema, schema["$defs"])
    flat.pop("description", None)
    return {"type": "object", "properties": {}, **flat}


def coerce_value(value: Any, schema: JsonSchema) -> Any:
    """Return `value` with JSON in strings opened and nulls of optional fields left out."""
    value = _parse_container(value, _CONTAINERS.get(schema.get("type", "")))
    if isinstance(value, dict) and "properties" in schema:
        return _coerce_fields(value, schema)
    if isinstance(value, list) and "items" in schema:
        return [coerce_value(item, schema["items"]) for item in value]
    return value


def describe_fields(schema: JsonSchema) -> str:
    """Return the fields of an object in words: "path (string), limit (integer, optional)"."""
    required = schema.get("required", ())
    return ", ".join(
        f"{name} ({field.get('type', 'any')}{'' if name in required else ', optional'})"
        for name, field in schema["properties"].items()
    )


def _flatten_schema(node: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    if "$ref" in node:
        return _flatten_schema(definitions[node["$ref"].rpartition("/")[2]], definitions)
    flat = {key: value for key, value in node.items() if key != "title"}
    if flat.get("default", ...) is None:
        del flat["default"]
    if "properties" in flat:
        fields = flat["properties"].items()
        flat["properties"] = {name: _flatten_schema(field, definitions) for name, field in fields}
    for key in ("items", "additionalProperties"):
        if isinstance(flat.get(key), dict):
            flat[key] = _flatten_schema(flat[key], definitions)
    return _drop_null_choice(flat, definitions)


def _drop_null_choice(node: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    choices = [_flatten_schema(one, definitions) for one in node.get("anyOf", ()) if one != _NULL]
    if not choices:
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**choices[0], **rest} if len(choices) == 1 else {**rest, "anyOf": choices}


def _parse_container(value: Any, wanted: type | None) -> Any:
    """Return what the JSON in a string holds where a container is wanted, else the value."""
    if wanted is None or not isinstance(value, str):
        return value
    try:
        inner = json.loads(value, strict=False)
    except ValueError:
        # Not JSON: validation names the string as what is wrong.
        return value
    return inner if isinstance(inner, wanted) else value


def _coerce_fields(value: dict[str, Any], schema: JsonSchema) -> dict[str, Any]:
    fields, required = schema["properties"], schema.get("required", ())
    return {
        name: coerce_value(item, fields.get(name, {}))
        for name, item in value.items()
        if item is not None or name in required
    }
