"""What was typed after the name of a skill, put into its text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.errors import ConfigurationError
from gong.skills.arguments import fill_placeholders, has_placeholders, read_arguments
from gong.skills.skill import parse_skill


def skill_of(body, front=""):
    return parse_skill(f"---\n{front}\n---\n{body}", "/s/x/SKILL.md", "x", "user")


def fill(body, typed, front="", **variables):
    skill = skill_of(body, front)
    return fill_placeholders(skill.body, read_arguments(skill, typed, variables))


CASES = [
    ("do $ARGUMENTS!", "-m 'a b'", "do -m 'a b'!"),
    ("[$ARGUMENTS[0]][$ARGUMENTS[1]][$ARGUMENTS[2]]", "a 'b c'", "[a][b c][]"),
    ("$1-$2-$3", "a 'b c'", "a-b c-"),
    ("$0-$1-$2", "a 'b c'", "a-b c-"),
    (r"\$1 costs $1", "5", "$1 costs 5"),
    ("$HOME ${HOME} $", "a", "$HOME ${HOME} $"),
    ("it's $1", "don't stop", "it's don't"),
    ("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS"),
    ("$12 $123", "a b c d e f g h i j k l", "l $123"),
]


@pytest.mark.parametrize(("body", "typed", "text"), CASES)
def test_words_take_the_place_of_their_placeholders(body, typed, text):
    """M181: `/commit -m "…"`, `/review-pr 123`."""
    assert fill(body, typed) == text


def test_named_arguments_are_given_by_name_or_in_order():
    """M181: arguments with name, type, required and description."""
    front = "arguments: [{name: target, required: true}, {name: count, type: integer}, note]"
    body = "$target/${count}/$note"
    assert fill(body, "prod 3 the rest of it", front) == "prod/3/the rest of it"
    assert fill(body, "--count 3 prod", front) == "prod/3/"
    assert fill(body, "count=3 --target=prod note='a b'", front) == "prod/3/a b"
    with pytest.raises(ConfigurationError, match=r"/x needs target: write /x <target>"):
        fill(body, "", front)
    with pytest.raises(ConfigurationError, match="count of /x is not of the type integer: 'many'"):
        fill(body, "prod many", front)


def test_a_flag_needs_no_value():
    front = "arguments: [{name: force, type: boolean}, {name: branch}]"
    assert fill("$force $branch", "--force main", front) == "true main"


def test_variables_in_braces_are_replaced():
    assert fill("${CLAUDE_SKILL_DIR}/a $CLAUDE_SKILL_DIR", "", CLAUDE_SKILL_DIR="/s") == (
        "/s/a $CLAUDE_SKILL_DIR"
    )


def test_a_text_says_whether_its_arguments_have_a_place():
    assert has_placeholders(skill_of("$1"))
    assert has_placeholders(skill_of("$name", "arguments: [name]"))
    assert not has_placeholders(skill_of(r"$name ${X} \$1"))


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_takes_any_arguments(body, typed):
    filled = fill(f"x{body}", typed)
    assert isinstance(filled, str)
    if "$" not in body and "\\" not in body:
        assert filled == skill_of(f"x{body}").body
