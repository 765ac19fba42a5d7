"""Front matter of Markdown files, as people write it."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong import front_matter
from gong.front_matter import FrontMatter, parse_front_matter, read_flag, read_names


def test_the_examples_of_the_module_are_true():
    assert doctest.testmod(front_matter).failed == 0


def test_fields_and_body_are_split():
    text = '---\nname: a\ntools: [Read, "Bash(git *)"]\nlicense: 2026-01-02\n---\n\n# Body\n---\n'
    assert parse_front_matter(text) == FrontMatter(
        {"name": "a", "tools": ["Read", "Bash(git *)"], "license": "2026-01-02"}, "# Body\n---"
    )


def test_line_ends_and_marks_of_other_systems_are_no_part_of_it():
    assert parse_front_matter("\ufeff---\r\nname: a\r\n---\r\nDo\r\nit") == FrontMatter(
        {"name": "a"}, "Do\nit"
    )


@pytest.mark.parametrize(
    ("yaml", "fields"),
    [
        ("a: [", {"a": "["}),
        ("a: b: c", {"a": "b: c"}),
        ("a: *b", {"a": "*b"}),
        ("a: @b\nc: [d, e]", {"a": "@b", "c": ["d", "e"]}),
        ("name:\ta\ntools:\n\t- b\nx: `y", {"name": "a", "tools": ["b"], "x": "`y"}),
        ("argument-hint: [x] [y]\nz: yes", {"argument-hint": "[x] [y]", "z": True}),
        ('a: "say "hi" there"', {"a": 'say "hi" there'}),
        ("a: one: two\n  three: four\n\n  five\nb: 1", {"a": "one: two three: four\nfive", "b": 1}),
        ("a: |\n not: yaml\nb, c\nd: {e: f}", {"a": "not: yaml b, c", "d": {"e": "f"}}),
        ("a: b: c\n# d: e\na: f", {"a": "b: c"}),
        (
            "a: Use it.\n\n<example>\nuser: go\nname: no\n</example>\nname: yes-this",
            {"a": "Use it.\n<example> user: go name: no </example>", "name": "yes-this"},
        ),
        ("\t- x", {}),
        ("!!python/name:os.x", {}),
        ("a: !!python/name:os.x", {"a": "!!python/name:os.x"}),
        ("{", {}),
    ],
)
def test_what_is_not_yaml_is_read_field_by_field(yaml, fields):
    found = parse_front_matter(f"---\n{yaml}\n---\nDo it.")
    assert (found.fields, found.body) == (fields, "Do it.")
    assert found.warning is not None
    assert found.warning.startswith("the front matter is not YAML: ")
    assert "\n" not in found.warning


@pytest.mark.parametrize("text", ["[Goal: x]", "{a: b}", "0x10", "yes", "2026-01-02"])
def test_a_name_and_a_description_are_texts(text):
    found = parse_front_matter(f"---\ndescription: {text}\nname: {text}\n---\n")
    assert found == FrontMatter({"description": text, "name": text}, "")


def test_front_matter_without_an_end_is_the_body():
    found = parse_front_matter("---\nname: a\nDo it.")
    assert found == FrontMatter(
        {}, "---\nname: a\nDo it.", "the front matter has no second line of ---"
    )


def test_front_matter_may_be_empty_or_no_mapping():
    assert parse_front_matter("---\n---\nDo it.") == FrontMatter({}, "Do it.")
    assert parse_front_matter("---\n- a\n---\nDo it.").fields == {}


def test_nesting_without_end_is_no_crash():
    assert parse_front_matter(f"---\na: {'[' * 20_000}\n---\nDo it.").body == "Do it."


@pytest.mark.parametrize("written", ["yes", "on", "1", "true", "True", '"yes"', "ON"])
def test_flags_are_read_in_every_way_to_write_them(written):
    assert read_flag(parse_front_matter(f"---\nx: {written}\n---\n").fields["x"]) is True


def test_other_flags():
    assert [read_flag(one) for one in ("no", False, 0, "off")] == [False] * 4
    assert read_flag("perhaps") is None
    assert read_flag(None) is None


def test_names_are_a_list_or_a_text():
    assert read_names("Bash(git log, git diff), Read,") == ("Bash(git log, git diff)", "Read")
    assert read_names(["a", " b "]) == ("a", "b")
    assert read_names(3) is None
    assert read_names([3]) is None


def test_a_field_may_be_named_on():
    assert parse_front_matter("---\non: x\n---\n").fields == {"on": "x"}


@given(st.text())
def test_no_text_is_an_error(text):
    found = parse_front_matter(f"---\n{text}\n---\nend")
    assert isinstance(found.fields, dict)
    assert found.body.endswith("end")
