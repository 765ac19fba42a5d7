"""The skills that come with gong keep the rules of the standard, and can be used."""

import os
import subprocess
from pathlib import Path

import pytest

from gong.skills.check import STANDARD_FIELDS, check_skill
from gong.skills.places import SHIPPED_FOLDER, find_skills
from gong.skills.skill import parse_skill, read_skill

NAMES = ["commit", "init", "review-pr", "tape-recall"]
VALIDATOR = os.environ.get("SKILLS_REF", "")
"""The standard's own validator: the path of `agentskills` of skills-ref."""


def shipped(name):
    return read_skill(SHIPPED_FOLDER / name / "SKILL.md", name, "shipped")


def test_there_are_four():
    found = find_skills("/", {"HOME": "/nonexistent"})
    assert [(one.name, one.source) for one in found.skills] == [(n, "shipped") for n in NAMES]
    assert find_skills("/", {"HOME": "/nonexistent"}, shipped=False).skills == []


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_skill_keeps_the_rules_of_the_standard(name):
    """M181: name, description and fields of the standard only."""
    skill = shipped(name)
    assert check_skill(skill, Path(skill.path).parent) == []
    assert skill.metadata.keys() <= STANDARD_FIELDS
    assert skill.hint
    assert skill.allowed_tools
    assert "$ARGUMENTS" in skill.body
    assert len(skill.body.split("\n")) < 80


@pytest.mark.skipif(not VALIDATOR, reason="SKILLS_REF names no agentskills")
@pytest.mark.parametrize("name", NAMES)
def test_the_standards_own_validator_accepts_a_shipped_skill(name):
    command = [VALIDATOR, "validate", str(SHIPPED_FOLDER / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = [
    ("---\nname: Bad_Name\ndescription: d\n---\nx", "the name 'Bad_Name' is not of 64 small"),
    ("---\nname: bad--name\ndescription: d\n---\nx", "is not of 64 small letters"),
    (f"---\nname: {'a' * 65}\ndescription: d\n---\nx", "is not of 64 small letters"),
    ("---\nname: other\ndescription: d\n---\nx", "its name is other, its folder good"),
    ("---\ndescription: d\n---\nx", "it has no name"),
    ("---\nname: good\n---\nx", "it has no description"),
    (f"---\nname: good\ndescription: {'d' * 1025}\n---\nx", "1,025 characters, 1,024 are allowed"),
    ("---\nname: good\ndescription: d\ncompatibility: []\n---\nx", "compatibility is not a text"),
    ("---\nname: good\ndescription: d\nmetadata: {a: 1}\n---\nx", "metadata is not a mapping"),
    ("---\nname: good\ndescription: d\nallowed-tools: 'Bash( )'\n---\nx", "empty pattern"),
    ("---\nname: good\ndescription: d\n---\n", "it has no text"),
    ("---\nname: good\ndescription: d\narguments: [{name: a, type: date}]\n---\nx", "type"),
    ("---\nname: good\ndescription: d\narguments: [a, a]\n---\nx", "the same name"),
    ("---\na: b: c\n---\nx", "not YAML"),
]


@pytest.mark.parametrize(("text", "error"), WRONG)
def test_the_check_names_what_the_standard_forbids(text, error):
    skill = parse_skill(text, "/s/good/SKILL.md", "good", "user")
    (found,) = [one for one in check_skill(skill, Path("good")) if one.level == "error"]
    assert error in found.text


def test_unknown_fields_are_warned_of_by_the_check_only():
    text = "---\nname: good\ndescription: d\nmodle: x\nhooks: {}\nallowed-tools: [Read]\n---\nx"
    skill = parse_skill(text, "/s/good/SKILL.md", "good", "user")
    assert [one.text for one in check_skill(skill, Path("good"))] == [
        "allowed-tools is a list: the standard has one text with blanks",
        "the field modle is unknown and has no effect",
        "hooks of a skill are not run: put them into config.toml, or into a plugin",
    ]
    assert {one.level for one in check_skill(skill, Path("good"))} == {"warning"}
