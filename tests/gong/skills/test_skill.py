"""A skill is read from its file: fields of the standard, of Claude Code, and two more."""

import pytest

from gong.skills.skill import SkillArgument, parse_skill, split_tools

FULL = """\
---
name: deploy
description: Deploy the service
when_to_use: After a release
license: MIT
aliases: [ship, "/release"]
argument-hint: "[target] [--dry-run]"
arguments:
  - name: target
    type: string
    required: yes
    description: Where to
  - note
allowed-tools: Bash(git add:*) Read, Grep
disallowed-tools: [Write, "Bash(rm:*)"]
model: scripted/x
effort: high
context: fork
agent: Explore
paths: "src/**/*.py, *.md"
disable-model-invocation: on
user-invocable: 1
something: else
---

Deploy $target.
"""


def read(text, name="deploy"):
    return parse_skill(text, f"/s/{name}/SKILL.md", name, "project")


def test_every_field_is_read():
    """M181: name, description, aliases and arguments with types; and Claude's superset."""
    skill = read(FULL)
    assert (skill.name, skill.description, skill.when_to_use) == (
        "deploy",
        "Deploy the service",
        "After a release",
    )
    assert skill.body == "Deploy $target."
    assert skill.aliases == ("ship", "release")
    assert skill.arguments == (
        SkillArgument("target", "string", required=True, description="Where to"),
        SkillArgument("note"),
    )
    assert skill.hint == "[target] [--dry-run]"
    assert skill.allowed_tools == ("Bash(git add:*)", "Read", "Grep")
    assert skill.disallowed_tools == ("Write", "Bash(rm:*)")
    assert (skill.model, skill.effort, skill.forks, skill.agent) == (
        *("scripted/x", "high", True, "Explore"),
    )
    assert skill.paths == ("src/**/*.py", "*.md")
    assert (skill.for_model, skill.for_user) == (False, True)
    assert skill.warning is None
    assert skill.summary == "Deploy the service After a release"


def test_a_skill_without_fields_is_named_by_its_folder_and_first_line():
    skill = read("# Tidy up\n\nDo it.", name="tidy")
    assert (skill.name, skill.description) == ("tidy", "Tidy up")
    assert (skill.for_model, skill.for_user, skill.model) == (True, True, None)


def test_front_matter_that_is_not_yaml_keeps_its_fields():
    skill = read("---\ndescription: a: b\nallowed-tools: Read\n---\nDo it.", name="x")
    assert (skill.body, skill.description, skill.name) == ("Do it.", "a: b", "x")
    assert skill.allowed_tools == ("Read",)
    assert "not YAML" in skill.warning


def test_a_hint_is_made_from_named_arguments():
    skill = read("---\narguments: [{name: a, required: true}, b]\n---\n$a")
    assert skill.hint == "<a> [b]"


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: ../../etc\n---\nx",
        "---\nname: Upper\n---\nx",
        "---\nname: [a]\n---\nx",
        "---\narguments: 7\nallowed-tools: {a: b}\naliases: 3\npaths: {}\nmetadata: 1\n---\nx",
    ],
)
def test_fields_of_a_wrong_shape_count_as_left_out(text):
    skill = read(text, name="fine")
    assert (skill.name, skill.arguments, skill.allowed_tools) == ("fine", (), ())


def test_tools_are_split_at_blanks_and_commas_but_not_inside_of_parentheses():
    wanted = ("Bash(git add -p:*)", "Read", "mcp__x__y")
    assert split_tools("Bash(git add -p:*) Read mcp__x__y") == wanted
    assert split_tools("Bash(git add -p:*), Read, mcp__x__y") == wanted
    assert split_tools(["Bash(git add -p:*)", "Read", "mcp__x__y"]) == wanted
    assert split_tools(None) == ()
