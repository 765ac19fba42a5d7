from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from gong.tools.registry import build_schema, coerce_value, describe_fields


class Item(Struct):
    """One of many."""

    count: int


class Arguments(Struct):
    """Not told to models."""

    path: Annotated[str, Meta(description="Where")]
    old_text: str = field(name="oldText")
    limit: Annotated[int, Meta(ge=1, description="How many")] | None = None
    title: bool = False
    items: tuple[Item, ...] = ()
    one: Item | None = None


SCHEMA = build_schema(Arguments)


def test_a_schema_is_a_flat_object_without_noise():
    """M046"""
    item = {
        "type": "object",
        "description": "One of many.",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }
    assert {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "oldText": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many"},
            "title": {"type": "boolean", "default": False},
            "items": {"type": "array", "items": item, "default": ()},
            "one": item,
        },
        "required": ["path", "oldText"],
    } == SCHEMA


def test_a_tool_without_arguments_has_an_object_at_its_root():
    class Nothing(Struct):
        pass

    assert build_schema(Nothing) == {"type": "object", "properties": {}, "required": []}


def test_fields_are_described_in_words():
    assert describe_fields(SCHEMA).startswith(
        "path (string), oldText (string), limit (integer, optional)"
    )


def test_json_in_strings_is_opened_where_a_container_is_expected():
    value = {"path": "[1]", "oldText": "{}", "items": '[{"count": "3"}, {"count": 4}]'}
    made = msgspec.convert(coerce_value(value, SCHEMA), Arguments, strict=False)
    assert made == Arguments("[1]", "{}", items=(Item(3), Item(4)))


def test_a_whole_object_in_a_string_is_opened():
    assert coerce_value('{"path": "a"}', SCHEMA) == {"path": "a"}


def test_what_is_no_json_stays_for_validation_to_name():
    assert coerce_value({"items": "nonsense", "one": "3"}, SCHEMA) == {
        "items": "nonsense",
        "one": "3",
    }


def test_nulls_of_optional_fields_are_left_out_and_of_others_stay():
    value = {"path": None, "limit": None, "title": None, "one": '{"count": null}'}
    assert coerce_value(value, SCHEMA) == {"path": None, "one": {"count": None}}
