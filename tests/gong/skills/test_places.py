"""Where skills are found, and which one of a name is used."""

import json

import pytest

from gong import trust
from gong.project import has_skills
from gong.skills.places import SkillPlace, find_skills, read_places


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def environ(home):
    return {"HOME": str(home)}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "project/.git").mkdir(parents=True)
    return tmp_path / "project"


def put(folder, name, text="---\ndescription: d\n---\nbody"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def found(folder, environ, **more):
    return find_skills(str(folder), environ, shipped=False, **more)


def test_skills_are_found_from_the_folder_to_the_root_and_at_home(root, home, environ):
    """M181: of the project or the home folder, in the standard places."""
    sub = root / "a/b"
    paths = [
        put(sub, ".gong/skills/one/SKILL.md"),
        put(root / "a", ".agents/skills/two/SKILL.md"),
        put(root, ".gong/skills/three/SKILL.md"),
        put(root, ".agents/skills/four/SKILL.md"),
        put(root, ".claude/skills/five/SKILL.md"),
        put(root, ".claude/commands/git/fix.md", "Fix $1"),
        put(home, ".config/gong/skills/six/SKILL.md"),
        put(home, ".agents/skills/seven/SKILL.md"),
        put(home, ".claude/skills/eight/SKILL.md"),
        put(home, ".claude/commands/nine.md", "Nine"),
    ]
    put(root, ".claude/skills/no-skill/README.md")
    put(root, ".claude/skills/SKILL.md")
    put(root, "a/c/.claude/skills/elsewhere/SKILL.md")
    skills = found(sub, environ).skills
    assert [one.path for one in skills] == paths
    assert [one.name for one in skills[5:7]] == ["git:fix", "six"]
    assert [one.source for one in skills] == ["project"] * 6 + ["user"] * 4
    assert [one.is_active for one in skills] == [False] * 6 + [True] * 4


def test_the_nearest_of_a_name_wins_and_the_others_are_reported(root, home, environ):
    near = put(root / "sub", ".claude/skills/x/SKILL.md")
    far = put(root, ".claude/skills/x/SKILL.md")
    own = put(home, ".claude/skills/x/SKILL.md")
    skills = found(root / "sub", environ)
    assert [one.path for one in skills.skills] == [near]
    assert [one.path for one in skills.shadowed] == [far, own]
    assert skills.warnings == [f"{one} is shadowed: /x is {near}" for one in (far, own)]


def test_skills_of_a_project_wait_for_trust(root, environ):
    """M181, and the trust of nearer folders is their own."""
    put(root, ".claude/skills/x/SKILL.md")
    put(root, "sub/.claude/commands/y.md", "---\nallowed-tools: Bash(make:*)\n---\n!`make all`")
    assert not any(one.is_active for one in found(root / "sub", environ).skills)
    project = trust.read_project(str(root / "sub"), environ)
    assert [(part.kind, part.path, part.runs) for part in project.parts] == [
        ("skills", ".claude/skills", ("x",)),
        ("commands", "sub/.claude/commands", ("y: runs make all; allows Bash(make:*)",)),
    ]
    trust.trust_project(trust.read_project(str(root), environ), environ)
    states = {one.name: one.is_active for one in found(root / "sub", environ).skills}
    assert states == {"x": True, "y": False}
    trust.trust_project(project, environ)
    assert all(one.is_active for one in found(root / "sub", environ).skills)
    put(root, "sub/.claude/commands/y.md", "other")
    states = {one.name: one.is_active for one in found(root / "sub", environ).skills}
    assert states == {"x": True, "y": False}


def test_the_home_folder_is_no_project(home, environ):
    put(home, ".claude/skills/x/SKILL.md")
    (home / ".git").mkdir()
    assert [one.source for one in found(home, environ).skills] == ["user"]


def test_a_plugin_is_named_before_its_skill(tmp_path, root, home, environ):
    own = put(root, ".claude/skills/notes/SKILL.md")
    plugin = home / ".config/gong/plugins/tools"
    put(plugin, ".claude-plugin/plugin.json", '{"name": "tools"}')
    theirs = put(plugin, "skills/notes/SKILL.md")
    skills = found(root, environ)
    assert skills.find("notes").path == own
    assert skills.find("tools:notes").path == theirs
    assert skills.find("/skill:notes").path == own
    assert skills.find("nothing") is None


def test_skills_of_one_name_in_two_plugins_are_both_found_with_a_warning(root, home, environ):
    paths = {}
    for name in ("one", "two"):
        plugin = home / f".config/gong/plugins/{name}"
        put(plugin, ".claude-plugin/plugin.json", json.dumps({"name": name}))
        paths[name] = put(plugin, "skills/notes/SKILL.md")
    skills = found(root, environ)
    assert skills.find("notes").path == paths["one"]
    assert {name: skills.find(f"{name}:notes").path for name in paths} == paths
    assert skills.warnings == [
        (
            "the plugins one and two both have the skills notes:"
            " /notes is one:notes, the other one is /two:notes"
        )
    ]


def test_a_command_beside_a_skill_of_its_name_in_a_plugin_is_left_out(root, home, environ):
    plugin = home / ".config/gong/plugins/one"
    put(plugin, ".claude-plugin/plugin.json", json.dumps({"name": "one"}))
    skill = put(plugin, "skills/notes/SKILL.md")
    put(plugin, "commands/notes.md", "Other")
    skills = found(root, environ)
    assert skills.find("one:notes").path == skill
    assert skills.warnings == []  # many plugins have both, for older versions


def test_a_file_that_links_lead_to_twice_is_one_skill(tmp_path, home, environ):
    put(home, ".agents/skills/x/SKILL.md")
    (home / ".claude").mkdir()
    (home / ".claude/skills").symlink_to(home / ".agents/skills")
    (home / ".agents/skills/loop").mkdir()
    (home / ".agents/skills/loop/SKILL.md").symlink_to("SKILL.md")
    skills = found(tmp_path, environ)
    assert [one.name for one in skills.skills] == ["x"]
    assert (skills.shadowed, skills.warnings) == ([], [])


def test_what_cannot_be_read_is_left_out_with_a_warning(tmp_path):
    put(tmp_path, "s/broken/SKILL.md", "---\na: b: c\n---\nbody")
    skills = read_places([SkillPlace(tmp_path / "s", "user"), SkillPlace(tmp_path / "no", "user")])
    assert [one.name for one in skills.skills] == ["broken"]
    assert len(skills.warnings) == 1
    assert "not YAML" in skills.warnings[0]


def test_folders_tell_whether_there_may_be_skills(root, home, environ):
    config = str(home / ".config/gong")
    assert not has_skills(str(root), environ, config)
    (root / ".claude/skills").mkdir(parents=True)
    assert not has_skills(str(root), environ, config)
    put(root, ".claude/skills/x/SKILL.md")
    assert has_skills(str(root), environ, config)
    (root / "sub").mkdir()
    assert has_skills(str(root / "sub"), environ, config)
    assert not has_skills(str(home), environ, config)
    put(home, ".config/gong/plugins/p/plugin.json", json.dumps({}))
    assert has_skills(str(home), environ, config)
