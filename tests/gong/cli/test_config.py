"""`gong config`: settings with their sources, changed in place; and a project's settings."""

from __future__ import annotations

import json

import pytest

MINE = '# mine\neffort = "low" # hm\n\n[compaction]\nkeep = 5 # k\n'


@pytest.fixture
def file(home):
    file = home / ".config/gong/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(MINE)
    return file


def sources(gong, **env):
    listed = json.loads(gong("config", "list", "--json", **env).stdout)
    return {one["key"]: (one["value"], one["source"]) for one in listed}


def test_set_keeps_comments_and_order(gong, file):
    gong("config", "set", "max_turns", "7")
    gong("config", "set", "model", "offline/rules")
    gong("config", "set", "compaction.keep", "6")
    gong("config", "set", 'models."a/b".effort', "high")
    assert file.read_text() == (
        '# mine\neffort = "low" # hm\nmax_turns = 7\nmodel = "offline/rules"\n\n'
        '[compaction]\nkeep = 6 # k\n\n[models."a/b"]\neffort = "high"\n'
    )
    assert gong("config", "get", "compaction.keep").stdout == "6\n"
    assert gong("config", "path").stdout == f"{file}\n"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("compaction.kep", "3", "did you mean compaction.keep?"),
        ("max_turns", "abc", "Expected `int`, got `str` for max_turns"),
        ("permissions.mode", "acept", "config.toml:8: Invalid enum value 'acept'"),
    ],
)
def test_a_wrong_setting_is_refused_and_nothing_is_written(gong, file, key, value, said):
    assert said in gong("config", "set", key, value, code=2).stderr
    assert file.read_text() == MINE


def test_list_tells_where_a_value_comes_from(gong, file):
    """M201"""
    found = sources(gong, GONG_MODEL="offline/rules")
    assert found["model"] == ("offline/rules", "environment")
    assert found["effort"] == ("low", str(file))
    assert found["compaction.keep"] == (5, str(file))
    assert found["compaction.reserve"] == (16384, "default")


def test_list_tells_the_words_that_a_setting_may_have(gong):
    listed = json.loads(gong("config", "list", "--json").stdout)
    choices = {each["key"]: each["choices"] for each in listed}
    assert choices["durability"] == ["barrier", "entry", "none"]
    assert choices["sandbox"] == ["off", "read-only", "workspace-write"]
    assert choices["max_turns"] == []


def test_settings_of_a_project_count_once_they_are_trusted(gong, file, home):
    """M201"""
    file.write_text(MINE + '[permissions]\ndeny = ["Bash(rm:*)"]\n')
    (home / "work/.git").mkdir(parents=True)
    theirs = home / "work/.gong/config.toml"
    theirs.parent.mkdir()
    theirs.write_text('effort = "high"\n[permissions]\ndeny = ["Bash(curl:*)"]\n')

    def run(*argv, **more):
        return gong(*argv, cwd=home / "work", **more)

    assert run("config", "get", "effort").stdout == "low\n"
    run("trust", "--yes")
    assert run("config", "get", "effort").stdout == "high\n"
    assert json.loads(run("config", "get", "permissions.deny").stdout) == [
        "Bash(rm:*)",
        "Bash(curl:*)",
    ]
    assert sources(run)["effort"] == ("high", str(theirs))
    theirs.write_text('efort = "high"\n')
    run("trust", "--yes")
    assert f"{theirs}:1: unknown setting efort" in run("config", "get", "effort", code=2).stderr


@pytest.fixture
def project(home):
    (home / "work/.git").mkdir(parents=True)
    (home / "work/inner").mkdir()
    return home / "work"


def test_set_writes_a_project_s_settings_which_take_effect_immediately(gong, file, project):
    """From any folder of the project, with comments kept; the user's own file stays."""
    inner = project / "inner"
    gong("config", "set", "--project", "max_turns", "7", cwd=inner)
    theirs = project / ".gong/config.toml"
    theirs.write_text(f"# ours\n{theirs.read_text()}")
    assert (
        "is not trusted" in gong("config", "set", "--project", "x", "1", code=2, cwd=inner).stderr
    )
    gong("trust", "--yes", cwd=inner)
    gong("config", "set", "--project", "effort", "high", cwd=inner)
    assert theirs.read_text() == '# ours\nmax_turns = 7\neffort = "high"\n'
    assert gong("config", "get", "effort", cwd=inner).stdout == "high\n"
    assert gong("config", "get", "effort").stdout == "low\n"
    assert file.read_text() == MINE
    said = gong("config", "set", "--project", "efort", "high", code=2, cwd=inner).stderr
    assert "did you mean effort?" in said


def test_set_of_a_project_leaves_its_other_parts_as_they_were(gong, project):
    hooks = project / ".gong/hooks.json"
    hooks.parent.mkdir()
    hooks.write_text('{"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}')
    gong("config", "set", "--project", "max_turns", "7", cwd=project)
    parts = json.loads(gong("trust", "--json", cwd=project).stdout)["parts"]
    states = {one["path"]: one["state"] for one in parts}
    assert states == {".gong/config.toml": "trusted", ".gong/hooks.json": "new"}


def test_set_of_a_project_never_writes_elsewhere(gong, home, project):
    """A repository may hold links."""
    (home / "mine").write_text("")
    (project / ".gong").mkdir()
    (project / ".gong/config.toml").symlink_to("../../mine")
    done = gong("config", "set", "--project", "max_turns", "7", code=2, cwd=project)
    assert "leaves the project" in done.stderr
    assert (home / "mine").read_text() == ""
    assert "is not a project" in gong("config", "set", "--project", "max_turns", "7", code=2).stderr
