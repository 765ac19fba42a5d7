import json

import pytest


def test_a_plugin_is_written_installed_listed_and_removed(gong, home):
    """`gong plugin new|add|list|remove`: what would run is shown, and a yes is needed."""
    gong("plugin", "new", "my.tools", "--description", "Ours", cwd=home)
    skill = home / "my.tools/skills/my-tools/SKILL.md"
    skill.write_text(skill.read_text() + "!`git status`\n")
    asked = gong("plugin", "add", "./my.tools", code=2, cwd=home)
    assert "skill my-tools: runs git status" in asked.stderr
    assert "pass --yes" in asked.stderr
    assert json.loads(gong("plugin", "list", "--json", cwd=home).stdout) == []
    assert "installed my.tools" in gong("plugin", "add", "./my.tools", "--yes", cwd=home).stdout
    (listed,) = json.loads(gong("plugin", "list", "--json", cwd=home).stdout)
    assert (listed["name"], listed["description"], listed["kind"]) == (
        "my.tools",
        "Ours",
        "standard",
    )
    found = json.loads(gong("skills", "list", "--json", cwd=home).stdout)
    assert ("my-tools", "plugin:my.tools") in [(one["name"], one["source"]) for one in found]
    gong("plugin", "remove", "my.tools", cwd=home)
    assert gong("plugin", "list", cwd=home).stdout == "no plugin is installed\n"


def test_oddities_of_a_plugin_are_reported_once(gong, home):
    """When it is installed; then its files are used without a word."""
    text = "---\nname: {0}\ndescription: Use it for: x\n---\nDo it.\n"
    for file, name in [("skills/one/SKILL.md", "one"), ("agents/critic.md", "critic")]:
        (home / "kit" / file).parent.mkdir(parents=True)
        (home / "kit" / file).write_text(text.format(name))
    told = gong("plugin", "add", "./kit", "--yes", cwd=home).stderr
    assert "gong: skills/one/SKILL.md: the front matter is not YAML: " in told
    assert "gong: agents/critic.md: the front matter is not YAML: " in told
    for command in ("skills", "agents"):
        listed = gong(command, "list", cwd=home)
        assert "Use it for: x" in listed.stdout
        assert listed.stderr == ""


@pytest.mark.parametrize(
    "command", ["skills show", "plugin remove", "mcp remove", "mcp test"], ids=str
)
def test_a_name_of_nothing_is_not_found(gong, home, command):
    failed = gong(*command.split(), "nosuch", code=3, cwd=home)
    assert "is called nosuch" in failed.stderr
