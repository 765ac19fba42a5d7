"""Schemas of servers, as providers take them: each wire's request is held to its rules."""

from __future__ import annotations

import json
import re
from importlib import import_module

import jsonschema
import msgspec
import pytest
from msgspec import Raw

from gong.llm.models import load_presets
from gong.llm.types import Request, ToolSpec
from gong.mcp.tool_schemas import UnusableSchema, translate_schema
from tape.context.view import Message
from tape.model.entries import Text

OBJECT = {"type": "object"}


def field(schema):
    """Return the schema of a tool with one argument."""
    return {**OBJECT, "properties": {"a": schema}}


KEPT = [
    {**OBJECT, "properties": {}},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **field({"type": ["string", "null"], "default": None, "description": "d"}),
        "required": ["a"],
        "additionalProperties": False,
    },
    {**field({"$ref": "#/$defs/P"}), "$defs": {"P": {"type": "array", "items": {}}}},
    field({"type": "string", "pattern": r"^[\w.+-]+@\w+\.\w{2,}$"}),
    {**field({"$ref": "#/$defs/t"}), "$defs": {"t": {"properties": {"t": {"$ref": "#/$defs/t"}}}}},
    {**field({"anyOf": [{"const": None}, {"enum": ["x", None]}]}), "x-own": [None, True]},
]


@pytest.mark.parametrize("schema", KEPT)
def test_a_schema_that_all_take_stays_as_it_is(schema):
    adapted = translate_schema(schema)
    assert (json.dumps(adapted.schema), adapted.names) == (json.dumps(schema), {})


CHANGED = [
    ({**OBJECT, "properties": None, "required": None}, {**OBJECT, "properties": {}}),
    (OBJECT, {**OBJECT, "properties": {}}),
    (field(True), field({})),
    (field(False), field({"not": {}})),
    (field(None), field({})),
    (field({"type": "int"}), field({"type": "integer"})),
    (field({"type": ["STRING", "none"]}), field({"type": ["string", "null"]})),
    (field({"type": "weird", "title": 5}), field({})),
    (field({"type": "list"}), field({"type": "array", "items": {}})),
    (field({"type": "array", "items": None}), field({"type": "array", "items": {}})),
    (
        field({"type": "array", "items": [{"type": "str"}, True]}),
        field({"type": "array", "prefixItems": [{"type": "string"}, {}]}),
    ),
    (field({"type": "string", "required": True}), field({"type": "string"})),
    (field({"minLength": "x", "enum": [], "anyOf": None, "description": None}), field({})),
    (field({"minimum": 3, "exclusiveMinimum": True}), field({"exclusiveMinimum": 3})),
    (field({"$ref": "#/$defs/gone", "description": "d"}), field({"description": "d"})),
    (field({"$ref": "https://example.org/a.json"}), field({})),
    ({**OBJECT, "required": ["a", 1, "a"], **field({})}, {**field({}), "required": ["a"]}),
    (
        {**OBJECT, "anyOf": [field({"type": "string"}), field({"type": "integer"})]},
        field({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ),
    (
        {
            **field({}),
            "oneOf": [{"required": ["a", "b"]}, {"required": ["b"]}],
            "not": {"required": ["c"]},
        },
        {**field({}), "required": ["b"]},
    ),
    (
        {**OBJECT, "allOf": [{**field({}), "required": ["a"]}, {"required": ["b"]}]},
        {**field({}), "required": ["a", "b"]},
    ),
    ({**OBJECT, "$ref": "#"}, {**OBJECT, "properties": {}}),
    (field({"enum": {"x": 1}, "title": "t"}), field({"title": "t"})),
    (field({"enum": ["a", "a", 1, True, 1]}), field({"enum": ["a", 1, True]})),
    *(
        (field({"type": "string", "pattern": pattern}), field({"type": "string"}))
        for pattern in ("(", "[a-", "*a", "a{2,1}", "(?<n>a)", r"\p{L}", "\\", 5, None)
    ),
    (
        field({"patternProperties": {"(": {}, "^x-": {"type": "str"}}}),
        field({"patternProperties": {"^x-": {"type": "string"}}}),
    ),
    ({**field({"$ref": "#/properties/a", "title": "t"})}, field({"title": "t"})),
    (
        {**field({"$ref": "#/$defs/b"}), "$defs": {"b": {"$ref": "#/$defs/b"}}},
        {**field({}), "$defs": {"b": {}}},
    ),
    (
        {**field({"$ref": "#/$defs/b"}), "$defs": {"b": {"$ref": "#/$defs/gone"}}},
        {**field({}), "$defs": {"b": {}}},
    ),
    (field({"$dynamicRef": "#gone"}), field({})),
]


@pytest.mark.parametrize(("sent", "expected"), CHANGED)
def test_what_some_provider_refuses_is_changed(sent, expected):
    assert translate_schema(sent).schema == expected


def test_a_reference_at_the_root_is_followed():
    definitions = {"A": {**field({"$ref": "#/$defs/B"})}, "B": {"type": "str"}}
    adapted = translate_schema({**OBJECT, "$ref": "#/$defs/A", "$defs": definitions})
    assert adapted.schema["properties"] == {"a": {"$ref": "#/$defs/B"}}
    assert adapted.schema["$defs"]["B"] == {"type": "string"}


def test_names_that_providers_refuse_are_changed_and_no_two_are_one():
    sent = {**OBJECT, "properties": {"a b": {}, "a_b": {}, "$top": {}, "x" * 70: {}}}
    adapted = translate_schema({**sent, "required": ["a b", "a_b"]})
    own = [adapted.names.get(name, name) for name in adapted.schema["properties"]]
    assert own == [*sent["properties"]]
    assert len(adapted.schema["properties"]) == len(sent["properties"])
    assert [adapted.names.get(name, name) for name in adapted.schema["required"]] == ["a b", "a_b"]


def test_a_schema_without_an_end_is_refused_by_name():
    deep = {}
    for _ in range(5000):
        deep = field(deep)
    with pytest.raises(UnusableSchema, match="its schema is nested too deeply"):
        translate_schema(deep)


NAME = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
WIRES = {
    "anthropic": ("anthropic", "AnthropicRequestEncoder"),
    "openai": ("openai_responses", "OpenAIResponsesRequestEncoder"),
    "openai-chat": ("openai_chat", "OpenAIChatRequestEncoder"),
    "google": ("google", "GoogleRequestEncoder"),
}


def find_schemas(value):
    """Return all schemas in the request of a wire that belong to a tool."""
    keys = {"parameters", "input_schema", "parametersJsonSchema"}
    found = []
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if key in keys:
            found.append(one)
        elif isinstance(one, dict | list):
            found += find_schemas(one)
    return found


def list_nodes(schema):
    """Return a schema and the schemas in it."""
    nodes = [schema] if isinstance(schema, dict) else []
    for one in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(one, dict | list):
            nodes += list_nodes(one)
    return nodes


@pytest.mark.parametrize("wire", WIRES)
def test_requests_hold_the_rules_of_each_provider(wire):
    module, encoder = WIRES[wire]
    encode = getattr(import_module(f"gong.llm.wires.{module}.request"), encoder)
    sent = [*KEPT, *(one for one, _ in CHANGED), field({"$ref": "#/$defs/x", "title": "t"})]
    sent[-1]["$defs"] = {"x": {"type": "int"}}
    tools = tuple(
        ToolSpec(f"t{number}", "d", Raw(msgspec.json.encode(translate_schema(one).schema)))
        for number, one in enumerate(sent)
    )
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),), tools=tools)
    preset = load_presets({})["openai" if wire == "openai-chat" else wire]
    schemas = find_schemas(json.loads(encode(preset).encode_request(request).body))
    assert len(schemas) == len(sent)
    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)  # Anthropic
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} & {*schema}  # both
        assert all(NAME.match(name) for name in schema["properties"])  # Anthropic
        for node in list_nodes(schema):
            if node.get("type") == "array":  # OpenAI
                assert {"items", "prefixItems"} & {*node}
            if wire == "google" and "$ref" in node:
                assert all(key.startswith("$") for key in node)
