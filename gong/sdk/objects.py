"""Objects that models answer: Python types and JSON Schemas, and answers checked by them; pure.

A shape is a Python type (Struct, dataclass or TypedDict) or a JSON Schema whose root is an object.
Schemas are those of draft 2020-12, or of the draft that `$schema` names; nothing is fetched.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from ..errors import ConfigurationError, NoObject
from ..llm.types import ResponseFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

JsonSchema = dict[str, Any]
"""A JSON Schema."""

_NAMED_PARTS = {"properties", "$defs"}
_LISTED_PARTS = {"anyOf", "oneOf", "prefixItems"}
_STRICT_WORDS = {
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum",
    "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems",
    "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
}  # fmt: skip
"""The words of a schema that providers take which hold an answer strictly to it."""
_STRICT_FORMATS = {
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
}  # fmt: skip
_VALUES = {"const", "default", "enum", "examples"}
"""Words whose value is no schema."""
_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)
_MAX_SHOWN = 500
"""Characters of a fault that a model is told."""


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


def parse_object_schema(text: str | bytes) -> JsonSchema:
    """Return the JSON Schema of an object that a text holds; raises ConfigurationError."""
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ConfigurationError(f"it is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigurationError("it is not a JSON object")
    schema = {"type": "object", **schema}
    check_object_schema(schema)
    return schema


def check_object_schema(schema: JsonSchema) -> None:
    """Raise ConfigurationError where it is not the schema of an object.

    References have to be to places in the schema.
    """
    from jsonschema_specifications import REGISTRY  # only for schemas of users
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ConfigurationError('it does not describe an object: its "type" must be "object"')
    _build_validator(schema)
    root = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = REGISTRY.resolver_with_root(root)
    for reference in _iter_references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable as error:
            why = f"it refers to {reference}, which is not in it"
            raise ConfigurationError(why) from error


def _iter_references(part: Any) -> Iterator[str]:
    """Yield the references of a schema, without those of parts with an address of their own."""
    if isinstance(part, dict):
        for word, value in part.items():
            if word == "$ref" and isinstance(value, str):
                yield value
            elif word not in _VALUES and not (isinstance(value, dict) and "$id" in value):
                yield from _iter_references(value)
    elif isinstance(part, list):
        for item in part:
            yield from _iter_references(item)


def _build_validator(schema: JsonSchema) -> Any:
    """Return what checks values by a schema; raises ConfigurationError for a wrong one."""
    # only here, because they take a tenth of a second
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from jsonschema_specifications import REGISTRY  # nothing else is looked up

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ConfigurationError(_describe_fault(error)) from error
    return kind(schema, registry=REGISTRY)


def _describe_fault(error: Any) -> str:
    """Return what a validator found, and where: `$.issues[0]: 'a' is not of type 'object'`."""
    return f"{error.json_path}: {error.message}"[:_MAX_SHOWN]


def build_response_format(kind: type | JsonSchema) -> ResponseFormat:
    """Return the format that holds an answer to `kind`, strict where its schema can be.

    A JSON Schema is sent as it is.
    """
    if isinstance(kind, dict):
        strict = "anyOf" not in kind and _is_strict(kind)
        return ResponseFormat("answer", Raw(msgspec.json.encode(kind)), strict)
    schema, strict = build_json_schema(kind), False
    with suppress(_OpenSchema):
        schema, strict = _close_schema(schema), True
    return ResponseFormat(kind.__name__, Raw(msgspec.json.encode(schema)), strict)


def parse_object(text: str, kind: type | JsonSchema) -> Any:
    """Return the value of `kind` in a JSON text; raises NoObject if it does not match."""
    name = "JSON object" if isinstance(kind, dict) else kind.__name__
    try:
        value: Any = msgspec.json.decode(text, type=dict if isinstance(kind, dict) else kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NoObject(f"the answer is not a {name}: {error}", text) from error
    if isinstance(kind, dict):
        try:
            faults = [*_build_validator(kind).iter_errors(value)]
        except RecursionError as error:
            raise NoObject("the answer cannot be checked: the schema has no end", text) from error
        if faults:
            from jsonschema.exceptions import best_match  # loaded by now

            why = _describe_fault(best_match(faults))
            raise NoObject(f"the answer does not fit the schema: {why}", text)
    return value


def remove_fence(text: str) -> str:
    """Return a text without space around it, and without a Markdown fence around all of it."""
    text = text.strip()
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def _is_strict(schema: JsonSchema) -> bool:
    """Return whether a provider can hold an answer strictly to a schema.

    Then each object names all of its fields, requires them and allows no others, and nothing
    is in the schema that providers refuse.
    """
    if not schema.keys() <= _STRICT_WORDS or ("$ref" in schema and len(schema) > 1):
        return False
    if schema.get("format", "uuid") not in _STRICT_FORMATS:
        return False
    fields = schema.get("properties", {})
    if "properties" in schema or schema.get("type") == "object":
        is_closed = schema.get("additionalProperties") is False
        if not is_closed or {*fields} != {*schema.get("required", ())}:
            return False
    named = (part for key in _NAMED_PARTS for part in schema.get(key, {}).values())
    parts = [*named, *schema.get("anyOf", ()), schema.get("items", {})]
    return all(isinstance(part, dict) and (not part or _is_strict(part)) for part in parts)


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
        return {name: _close_schema(part) for name, part in value.items()}
    if key in _LISTED_PARTS:
        return [_close_schema(part) for part in value]
    return _close_schema(value) if key == "items" and isinstance(value, dict) else value
