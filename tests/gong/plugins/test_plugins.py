"""Plugins: read strictly, copied whole, shown before they are installed, and in effect then."""

from __future__ import annotations

import json
import subprocess

import pytest

from gong.errors import ConfigurationError
from gong.hooks.sources import load_hooks
from gong.mcp.servers import load_servers
from gong.plugins.install import fetch_plugin, install_plugin, remove_plugin
from gong.plugins.installed import (
    list_agent_files,
    list_part_files,
    list_plugins,
    load_server_tables,
    open_plugin,
)
from gong.plugins.manifest import (
    SCHEMA,
    encode_manifest,
    parse_claude_manifest,
    parse_standard_manifest,
)
from gong.skills.places import find_skills
from gong.subagents.types import load_agent_types
from tape.errors import NotFound

GOOD = {"$schema": SCHEMA, "name": "release-tools"}


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}


def put(root, path, content):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def write_standard(root, **more):
    put(root, "plugin.json", {**GOOD, **more})
    put(root, "skills/notes/SKILL.md", "---\nname: notes\ndescription: d\n---\n!`git log`")
    put(root, "bin/server", "#!/bin/sh\n")
    server = {"type": "stdio", "command": "./bin/server", "args": ["${PLUGIN_ROOT}/x", "./bin"]}
    put(root, "mcp.json", {"$schema": "x", "mcpServers": {"notes": server}})
    return root


def write_claude(root):
    hook = {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/check.sh"}
    put(root, ".claude-plugin/plugin.json", {"name": "guard", "commands": "./extra", "odd": 1})
    put(root, "hooks/hooks.json", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
    put(root, "commands/check.md", "---\nallowed-tools: Bash(make:*)\n---\nCheck it")
    put(root, "extra/more.md", "More")
    put(root, "agents/critic.md", "---\nname: critic\ndescription: d\n---\nBe strict.")
    put(root, ".mcp.json", {"mcpServers": {"guard": {"command": "guard-server"}}})
    return root


WRONG = [
    ({"$schema": "https://example.org/other.json"}, "schema is not"),
    ({"name": "Upper"}, "name is not of"),
    ({"name": ".."}, "name is not of"),
    ({"name": "a/b"}, "name is not of"),
    ({"name": "a" * 65}, "name is not of"),
    ({"version": 1}, "version is not a text"),
    ({"author": "me"}, "author is not an object"),
    ({"author": {"email": 1}}, "a field of author"),
    ({"keywords": ["a", 1]}, "keywords is not"),
    ({"extensions": {"nodomain": {}}}, "extensions is not"),
    ({"extensions": {"org.example": []}}, "extensions is not"),
]


@pytest.mark.parametrize(("change", "why"), WRONG)
def test_a_violation_of_the_schema_refuses_the_plugin(change, why):
    with pytest.raises(ConfigurationError, match=why):
        parse_standard_manifest({**GOOD, **change}, "plugin.json")


def test_unknown_fields_are_reported_and_ignored():
    fields = {**GOOD, "hooks": "./x", "author": {"name": "me", "age": 1}}
    manifest = parse_standard_manifest(fields, "plugin.json")
    assert manifest.warnings == ("unknown field hooks", "unknown field author.age")
    assert parse_standard_manifest(json.loads(encode_manifest("a.b-c", "d")), "x").name == "a.b-c"
    with pytest.raises(ConfigurationError):
        encode_manifest("No", "")


def test_a_plugin_shows_what_it_would_run(tmp_path):
    standard = open_plugin(write_standard(tmp_path / "a"))
    assert [*standard.describe_runs()] == [
        f"MCP server notes: {tmp_path}/a/bin/server {tmp_path}/a/x {tmp_path}/a/bin",
        "skill notes: runs git log",
    ]
    claude = open_plugin(write_claude(tmp_path / "b"))
    assert [*claude.describe_runs()] == [
        f"hook: {tmp_path}/b/check.sh",
        "MCP server guard: guard-server",
        "skill check: allows Bash(make:*)",
    ]


def test_every_path_is_inside_the_root(tmp_path):
    put(tmp_path, "secret/SKILL.md", "x")
    linked = write_standard(tmp_path / "linked")
    (linked / "skills/evil").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigurationError, match="skills/evil leads out of the plugin"):
        open_plugin(linked)
    named = tmp_path / "named"
    put(named, ".claude-plugin/plugin.json", {"name": "named", "commands": "../secret"})
    with pytest.raises(ConfigurationError, match="leads out"):
        open_plugin(named).list_places("commands")
    server = write_standard(tmp_path / "server")
    bad = {"x": {"type": "stdio", "command": "./../secret/run"}}
    put(server, "mcp.json", {"mcpServers": bad})
    with pytest.raises(ConfigurationError, match="leads out"):
        open_plugin(server).read_servers()
    put(server, "mcp.json", {"mcpServers": {"x": {"command": "y"}}})
    with pytest.raises(ConfigurationError, match="has no type"):
        open_plugin(server).read_servers()


def test_an_installed_plugin_takes_effect_until_it_is_removed(tmp_path, environ):
    for write in (write_standard, write_claude):
        source = write(tmp_path / write.__name__)
        with fetch_plugin(str(source), environ) as found:
            install_plugin(found, environ)
    folder = str(tmp_path)
    skills = find_skills(folder, environ, shipped=False).skills
    assert [(one.name, one.source, one.is_active) for one in skills] == [
        ("check", "plugin:guard", True),
        ("more", "plugin:guard", True),
        ("notes", "plugin:release-tools", True),
    ]
    (hook,) = load_hooks(folder, environ, ()).configured
    place = tmp_path / "home/.config/gong/plugins"
    assert (hook.runs, hook.is_active) == (f"{place}/guard/check.sh", True)
    assert list_agent_files(environ) == [("guard", place / "guard/agents/critic.md")]
    assert load_agent_types(folder, environ).types["critic"].name == "critic"
    assert load_server_tables(environ) == {
        "plugin:guard": {"guard": {"command": "guard-server"}},
        "plugin:release-tools": {
            "notes": {
                "type": "stdio",
                "command": f"{place}/release-tools/bin/server",
                "args": [f"{place}/release-tools/x", f"{place}/release-tools/bin"],
            }
        },
    }
    servers = load_servers(folder, environ).servers
    assert [(one.name, one.source) for one in servers] == [
        ("guard", "plugin:guard"),
        ("notes", "plugin:release-tools"),
    ]
    assert sorted(one.name for one in place.iterdir()) == ["guard", "release-tools"]
    remove_plugin("guard", environ)
    with pytest.raises(NotFound, match="no plugin is called guard"):
        remove_plugin("guard", environ)
    with pytest.raises(NotFound):
        remove_plugin("../plugins", environ)
    assert [one.name for one in list_plugins(environ)[0]] == ["release-tools"]


def test_a_newer_copy_takes_the_place_of_the_older_one(tmp_path, environ):
    source = write_standard(tmp_path / "source", version="1")
    for version in ("1", "2"):
        put(source, "plugin.json", {**GOOD, "version": version})
        with fetch_plugin(str(source), environ) as found:
            install_plugin(found, environ)
    (plugin,) = list_plugins(environ)[0]
    assert plugin.manifest.version == "2"


def test_a_repository_is_cloned_and_a_marketplace_chosen_from(tmp_path, environ):
    market = tmp_path / "market"
    write_claude(market / "plugins/guard")
    rows = [{"name": "guard", "source": "./plugins/guard"}, {"name": "out", "source": "../.."}]
    put(market, ".claude-plugin/marketplace.json", {"name": "m", "plugins": rows})
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *words], cwd=market, check=True)
    with fetch_plugin(f"file://{market}#guard", environ) as found:
        assert found.name == "guard"
    with (
        pytest.raises(ConfigurationError, match="There are: guard, out"),
        fetch_plugin(str(market), environ),
    ):
        pass
    with (
        pytest.raises(ConfigurationError, match="not a folder in it"),
        fetch_plugin(f"{market}#out", environ),
    ):
        pass
    for wrong in (f"file://{tmp_path}/nothing", "--upload-pack=x", str(tmp_path / "home")):
        with pytest.raises(ConfigurationError), fetch_plugin(wrong, environ):
            pass


def test_a_plugin_that_was_broken_since_is_left_out_with_a_warning(tmp_path, environ):
    with fetch_plugin(str(write_standard(tmp_path / "source")), environ) as found:
        place = install_plugin(found, environ)
    (place / "plugin.json").write_text("[]")
    plugins, warnings = list_plugins(environ)
    assert plugins == []
    assert "plugin release-tools is not used" in warnings[0]


def test_files_that_a_manifest_names_count(tmp_path, environ):
    root = tmp_path / "source"
    put(
        root,
        ".claude-plugin/plugin.json",
        {
            "name": "named",
            "agents": ["./team/lead.md", "./agents/critic.md"],
            "commands": ["./team/go.md"],
            "skills": ["./one", "./more"],
            "hooks": ["./a.json", {"Stop": [{"hooks": [{"type": "command", "command": "b"}]}]}],
            "mcpServers": ["./servers.json", {"two": {"command": "two"}}],
        },
    )
    put(root, "team/lead.md", "# Leads\n\nYou lead.")
    put(root, "agents/critic.md", "---\ndescription: d\n---\nBe strict.")
    put(root, "agents/README.md", "# Agents")
    put(root, "team/go.md", "---\nallowed-tools: Bash(make:*)\n---\nGo")
    put(root, "one/SKILL.md", "---\nname: one\ndescription: d\n---\nOne")
    put(root, "more/two/SKILL.md", "---\nname: two\ndescription: d\n---\n!`git log`")
    put(root, "a.json", {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}})
    put(root, "servers.json", {"one": {"command": "one"}})
    with fetch_plugin(str(root), environ) as found:
        assert [*found.describe_runs()] == [
            "hook: a",
            "hook: b",
            "MCP server one: one",
            "MCP server two: two",
            "skill two: runs git log",
            "skill go: allows Bash(make:*)",
        ]
        install_plugin(found, environ)
    skills = find_skills(str(tmp_path), environ, shipped=False).skills
    assert sorted(one.name for one in skills) == ["go", "one", "two"]
    files = [file.stem for _, file in list_agent_files(environ)]
    assert sorted(files) == ["README", "critic", "lead"]
    types = load_agent_types(str(tmp_path), environ).types
    brought = sorted(one for one in types.values() if one.plugin)
    assert [(one.name, one.description, one.source) for one in brought] == [
        ("critic", "d", "plugin"),
        ("lead", "Leads", "plugin"),
    ]
    assert [one.runs for one in load_hooks(str(tmp_path), environ, ()).configured] == ["a", "b"]
    assert [one.name for one in load_servers(str(tmp_path), environ).servers] == ["one", "two"]


def test_a_plugin_may_be_one_skill(tmp_path):
    put(tmp_path, ".claude-plugin/plugin.json", {"name": "single"})
    put(tmp_path, "SKILL.md", "---\nname: single\ndescription: d\n---\nDo it")
    assert open_plugin(tmp_path).list_places("skills") == [tmp_path / "SKILL.md"]


def test_agents_of_one_name_are_all_there(tmp_path, environ):
    for plugin in ("a", "b"):
        root = tmp_path / plugin
        put(root, ".claude-plugin/plugin.json", {"name": plugin})
        put(root, "agents/critic.md", f"---\nname: critic\ndescription: of {plugin}\n---\nx")
        put(root, f"agents/{plugin}.md", f"---\nname: only-{plugin}\ndescription: d\n---\nx")
        with fetch_plugin(str(root), environ) as found:
            install_plugin(found, environ)
    types = load_agent_types(str(tmp_path), environ)
    for name, description in [("critic", "b"), ("A:Critic", "a"), ("b:critic", "b")]:
        assert types.find(name).description == f"of {description}"
    assert types.find("a:only-a").name == "only-a"
    with pytest.raises(ConfigurationError, match="no type of sub-agent 'b:only-a'"):
        types.find("b:only-a")
    put(tmp_path / "home", ".claude/agents/critic.md", "---\nname: critic\ndescription: o\n---\nx")
    types = load_agent_types(str(tmp_path), environ)
    assert types.find("critic").source == "user"
    assert types.find("b:critic").description == "of b"


def make_market(root, *entries, **more):
    put(root, ".claude-plugin/marketplace.json", {"name": "m", "plugins": entries, **more})
    return root


def make_repository(root):
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True)
    return done.stdout.decode().strip()


def install(source, environ):
    with fetch_plugin(str(source), environ) as found:
        install_plugin(found, environ)
    return next(one for one in list_plugins(environ)[0] if one.name == found.name)


def list_names(plugin, kind):
    return [name for one in plugin.list_places(kind) for _, name in list_part_files(one, kind)]


def test_an_entry_of_a_marketplace_is_a_manifest(tmp_path, environ):
    for name in ("one", "two", "three"):
        put(tmp_path / "m", f"skills/{name}/SKILL.md", f"---\ndescription: {name}\n---\nx")
    put(tmp_path / "m", "agents/critic.md", "You judge.")
    entry = {"name": "Docs Kit", "source": "./", "version": "2", "description": "d"}
    named = {**entry, "name": "some", "strict": False, "skills": ["./skills/one", "./skills/two"]}
    market = make_market(tmp_path / "m", entry, named)
    whole, some = install(f"{market}#Docs Kit", environ), install(f"{market}#some", environ)
    assert (whole.name, whole.manifest.version, whole.manifest.description) == (
        "docs-kit",
        "2",
        "d",
    )
    assert list_names(whole, "skills") == ["one", "three", "two"]
    assert list_names(some, "skills") == ["one", "two"]
    assert list_names(some, "agents") == ["critic"]
    assert [*(tmp_path / "m/.claude-plugin").iterdir()] == [
        tmp_path / "m/.claude-plugin/marketplace.json"
    ]


def test_an_entry_adds_to_the_manifest_of_the_plugin(tmp_path, environ):
    root = write_claude(tmp_path / "m/kits/guard")
    put(root, "more/lead.md", "You lead.")
    entry = {"name": "guard", "source": "guard", "agents": "./more", "version": "3"}
    market = make_market(tmp_path / "m", entry, metadata={"pluginRoot": "./kits"})
    plugin = install(market, environ)
    assert plugin.manifest.version == "3"
    assert list_names(plugin, "commands") == ["check", "more"]
    assert list_names(plugin, "agents") == ["critic", "lead"]
    put(root, ".claude-plugin/plugin.json", {"name": "guard", "agents": ["./agents"]})
    make_market(tmp_path / "m", {**entry, "strict": False}, metadata={"pluginRoot": "./kits"})
    assert list_names(install(market, environ), "agents") == ["critic", "lead"]


def test_an_entry_may_name_a_repository(tmp_path, environ):
    write_claude(tmp_path / "repository/deep/guard")
    first = make_repository(tmp_path / "repository")
    put(tmp_path / "repository", "deep/guard/commands/later.md", "Later")
    make_repository(tmp_path / "repository")
    url = f"file://{tmp_path}/repository"
    source = {"source": "git-subdir", "url": url, "path": "deep/guard"}
    market = tmp_path / "m"
    for more, names in [
        ({}, ["check", "later", "more"]),
        ({"sha": first}, ["check", "more"]),
        ({"ref": first, "sha": "-x"}, "is no commit of"),
        ({"ref": "nosuch"}, "cannot be cloned"),
        ({"path": "../.."}, "not a folder in it"),
        ({"source": "pip", "package": "x"}, "a plugin from pip cannot be fetched"),
        ({"url": "--upload-pack=x"}, "neither a folder nor a repository"),
    ]:
        make_market(market, {"name": "guard", "source": {**source, **more}})
        if isinstance(names, list):
            assert list_names(install(market, environ), "commands") == names
            continue
        with pytest.raises(ConfigurationError, match=names), fetch_plugin(str(market), environ):
            pass


def test_links_to_what_plugins_of_a_marketplace_share_are_copied(tmp_path, environ):
    market = make_market(tmp_path / "m", {"name": "a", "source": "./plugins/a"})
    put(market, "shared/x/SKILL.md", "---\ndescription: d\n---\nx")
    put(market, "plugins/a/agents/critic.md", "You judge.")
    (market / "plugins/a/skills").symlink_to("../../shared")
    assert list_names(install(market, environ), "skills") == ["x"]
    (market / "plugins/a/loop").symlink_to("../..")
    with (
        pytest.raises(ConfigurationError, match="loop leads out of the plugin"),
        fetch_plugin(str(market), environ),
    ):
        pass


def test_a_folder_without_a_manifest_is_a_plugin_if_it_brings_something(tmp_path, environ):
    put(tmp_path, "Some Kit/agents/critic.md", "You judge.")
    assert install(tmp_path / "Some Kit", environ).name == "some-kit"
    put(tmp_path, "none/README.md", "Nothing")
    put(tmp_path, "lsp/.claude-plugin/plugin.json", {"name": "lsp", "lspServers": {"x": {}}})
    for name in ("none", "lsp"):
        with (
            pytest.raises(ConfigurationError, match="brings nothing that is used here"),
            fetch_plugin(str(tmp_path / name), environ),
        ):
            pass


def test_a_plugin_json_of_another_program_hides_nothing(tmp_path, environ):
    root = write_claude(tmp_path / "guard")
    put(root, "plugin.json", {"name": "other", "lspServers": {}})
    put(root, ".claude-plugin/plugin.json", {"name": "guard", "outputStyles": "./x"})
    plugin = open_plugin(root)
    assert (plugin.name, plugin.manifest.warnings) == (
        "guard",
        ("outputStyles has no effect here",),
    )


def test_a_plugin_json_without_a_schema_is_read_as_any_other(tmp_path):
    put(tmp_path, "plugin.json", {"name": "kit", "version": "1", "keywords": "x"})
    put(tmp_path, "skills/one/SKILL.md", "---\ndescription: d\n---\nx")
    plugin = open_plugin(tmp_path)
    assert (plugin.name, plugin.manifest.kind, list_names(plugin, "skills")) == (
        *("kit", "claude", ["one"]),
    )


def test_a_path_of_a_manifest_that_does_not_exist_is_reported(tmp_path):
    named = {"agents": ["./agents/gone.md"], "commands": "./gone", "themes": "./x"}
    put(tmp_path, ".claude-plugin/plugin.json", {"name": "kit", **named})
    put(tmp_path, "agents/critic.md", "You judge.")
    assert [*open_plugin(tmp_path).list_warnings()] == [
        "themes has no effect here",
        "commands: ./gone is not there",
        "agents: ./agents/gone.md is not there",
    ]


def test_owner_and_name_are_a_repository_of_github(tmp_path, environ):
    write_claude(tmp_path / "github/me/guard.git")
    make_repository(tmp_path / "github/me/guard.git")
    put(
        tmp_path / "home",
        ".gitconfig",
        f'[url "file://{tmp_path}/github/"]\n  insteadOf = https://github.com/\n',
    )
    assert install("me/guard", environ).name == "guard"
    entry = {"name": "guard", "source": {"source": "github", "repo": "me/guard"}}
    assert install(make_market(tmp_path / "m", entry), environ).name == "guard"


def test_commands_that_a_manifest_writes_out_are_files_of_the_plugin(tmp_path, environ):
    about = {"source": "./README.md", "description": "About: this", "argumentHint": "[part]"}
    commands = {
        "about": about,
        "hi": {"content": "---\nmodel: small\n---\nSay hi", "allowedTools": ["Read", "Bash(ls:*)"]},
        "team:check": {"source": "./commands/check.md", "description": "c"},
        "check": {"source": "./commands/check.md", "description": "c"},
        "gone": {"source": "./nothing.md"},
        "empty": {"description": "d"},
        "a/b": {"content": "x"},
    }
    manifest = {"name": "kit", "commands": [commands, "./more"]}
    root = tmp_path / "kit"
    put(root, ".claude-plugin/plugin.json", manifest)
    put(root, "README.md", "---\nnote: 1\ndescription: d\n---\nRead me")
    put(root, "commands/check.md", "Check it")
    put(root, "more/later.md", "Later")
    plugin = install(root, environ)
    assert list_names(plugin, "commands") == ["check", "about", "hi", "team:check", "later"]
    written = {name: file.read_text() for file, name in plugin.list_files("commands")}
    assert written["about"] == (
        '---\nnote: 1\ndescription: "About: this"\nargument-hint: "[part]"\n---\nRead me\n'
    )
    assert written["hi"] == (
        '---\nmodel: "small"\nallowed-tools: ["Read","Bash(ls:*)"]\n---\nSay hi\n'
    )
    assert written["check"] == written["team:check"] == '---\ndescription: "c"\n---\nCheck it\n'
    assert (root / "commands/check.md").read_text() == "Check it"
    (warning,) = plugin.list_warnings()
    assert warning == "commands: no content, and no source that is there, for gone, empty, a/b"


@pytest.mark.parametrize("manifest", ["plugin.json", ".claude-plugin/plugin.json"])
def test_a_written_command_never_leads_out_of_the_plugin(tmp_path, environ, manifest):
    root = tmp_path / "kit"
    put(root, manifest, {"name": "kit", "commands": {"x": {"source": "../secret.md"}}})
    put(tmp_path, "secret.md", "secret")
    with pytest.raises(ConfigurationError, match="leads out of"), fetch_plugin(str(root), environ):
        pass
    put(root, manifest, {"name": "kit", "commands": {"x": {"content": "mine"}}})
    (root / ".claude-plugin").mkdir(exist_ok=True)
    (root / ".claude-plugin/commands").symlink_to(tmp_path)
    with pytest.raises(ConfigurationError, match="leads out of"), fetch_plugin(str(root), environ):
        pass
    assert not (tmp_path / "x.md").exists()


@pytest.mark.parametrize(
    ("written", "name"),
    [("@torka/claude-workflows", "torka-claude-workflows"), ("../Up & down", "up-down")],
)
def test_a_name_that_is_none_for_a_folder_is_read_as_one(written, name):
    """As published: a package's name with its owner."""
    manifest = parse_claude_manifest({"name": written}, "plugin.json")
    assert manifest.name == name
    assert manifest.warnings[0].endswith(f" is read as {name}")
    with pytest.raises(ConfigurationError, match="name is missing"):
        parse_claude_manifest({"name": "/.."}, "plugin.json")
