"""Edits that nobody asks about give no rights: gong's own files, and files that run later."""

from __future__ import annotations

import pytest

from gong.config import PermissionSettings
from gong.policy.commands.tables import load_tables
from gong.policy.permissions import build_policy

CONTENT = {"content": "x", "old_string": "a", "new_string": "b"}


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work"
    for name in ("src", "evil/.cargo", "plain"):
        (work / name).mkdir(parents=True)
    (work / "evil/.cargo/config.toml").write_text("x")
    (work / "plain/a.txt").write_text("x")
    (work / "settings").symlink_to(tmp_path / ".config/gong")
    (tmp_path / ".config/gong").mkdir(parents=True)
    return work


def build(folder, mode, **rules):
    environ = {"HOME": str(folder.parent), "TAPE_HOME": str(folder.parent / "tapes")}
    return build_policy(PermissionSettings(mode=mode, **rules), str(folder), environ)


def edit(folder, path, mode="default", tool="write", **rules):
    return build(folder, mode, **rules).judge(tool, {"path": path, **CONTENT})


def run(folder, command, mode="default", **rules):
    return build(folder, mode, **rules).judge("bash", {"command": command})


MODES = ["default", "accept_edits", "dont_ask", "bypass"]
OWN = [
    "~/.config/gong/config.toml",
    "~/.config/gong/credentials.json",
    "~/.config/gong/hooks.json",
    "~/.local/state/gong/trust.json",
    "~/tapes/tapes/2026-11-26-x/tape.json",
    "settings/config.toml",
]


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize("mode", MODES)
def test_gongs_own_files_ask_in_every_mode(folder, path, mode):
    """M175: settings, keys, trust and tapes, by tools and by what commands write."""
    assert edit(folder, path, mode).decision == "ask"
    assert edit(folder, path, mode, tool="edit").decision == "ask"
    for command in (
        f"echo x > {path}",
        f"echo x | tee -a {path}",
        f"cp src/a {path}",
        f"mv src/a {path}",
        f"sed -i s/a/b/ {path}",
        f"rm {path}",
        f"cd {path.rpartition('/')[0]} && echo x > {path.rpartition('/')[2]}",
    ):
        assert run(folder, command, mode).decision == "ask", command


@pytest.mark.parametrize(
    "command",
    [
        "cp -r evil/. ~/.config",
        "cp -rT evil ~/.config",
        "mkdir -p new/gong && cp -r new/. ~/.config",
        "mv plain/gong ~/.config",
        "rsync -a evil/ ~/",
        "rm -rf ~/.local/state",
        "tar xf a.tar -C ~/.config",
        "cd ~ && tar xf work/a.tar",
        "unzip -o a.zip -d ~",
        "find ~/.config/gong -delete",
        "find ~/.config -name config.toml -exec tee {} +",
        "ls ~/.config/gong/* | xargs rm",
        "ls ~/.config/gong | xargs -I{} tee ~/.config/gong/{}",
        "dd if=a of=$HOME/.config/gong/config.toml",
        "vim ~/.config/gong/config.toml",
        "yq -i .a=1 ~/.config/gong/config.toml",
        "chmod 777 ~/.config/gong/config.toml",
        "ln ~/.config/gong/config.toml hard",
        "iconv a -o ~/.config/gong/config.toml",
        "echo x > ~/.config/gong/con*",
        "echo x | tee ~/.config/g*/config.toml",
        "cp a sett*/config.toml",
        "env -C ~/.config/gong tee config.toml",
        "python3 -c \"open('{home}/.config/gong/config.toml', 'w')\"",
        "python3 - <<< \"open('{home}/.config/gong/x', 'w')\"",
        'gong tool write \'{{"path": "~/.config/gong/config.toml"}}\'',
        "tape --store ~/tapes append x",
        "python -m gong trust --yes",
        "uvx gong trust --yes",
        "gong chat -p x --yolo",
        "gong -p x --permission bypass",
        "GONG_PERMISSION=bypass gong chat -p x",
        "export GONG_PERMISSION=bypass; gong chat -p x",
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_every_change_of_them_asks_in_every_mode(folder, command, mode):
    """M175: folders above, archives, wildcards, editors, code that names them, another gong."""
    for name in ("evil/gong", "plain/gong"):
        (folder / name).mkdir()
        (folder / name / "config.toml").write_text("x")
    (folder.parent / ".config/gong/config.toml").write_text("x")
    line = command.replace("{home}", str(folder.parent)).replace("{{", "{").replace("}}", "}")
    assert run(folder, line, mode).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "ls ~/.config/gong",
        "cat ~/.config/gong/config.toml",
        "find ~/.config/gong -name '*.toml' -exec cat {} +",
        "ls ~/.config/gong/* | xargs head",
        "cp ~/.config/gong/config.toml copy",
        "cp plain/a.txt ~",
        "tar cf a.tar ~/.config",
        "mv plain/a.txt ~/.config",
        "rm -rf ~/.cache/x",
        "chmod +x plain/a.txt",
        "git commit -m 'say where ~/.config/gong is'",
        "tape --store ~/tapes log",
        "gong permissions check bash x",
        "TAPE_HOME=/tmp/x tape ls",
    ],
)
def test_what_only_reads_them_or_stays_beside_does_not(folder, command):
    for mode in ("dont_ask", "bypass"):
        assert run(folder, command, mode).decision == "allow"


def test_worktrees_of_sub_agents_are_no_own_files(folder):
    """They lie below gong's state, and are worked in like any other folder."""
    place = folder.parent / ".local/state/gong/worktrees/x-1/y"
    place.mkdir(parents=True)
    environ = {"HOME": str(folder.parent)}
    policy = build_policy(PermissionSettings(mode="accept_edits"), str(place), environ)
    assert policy.judge("write", {"path": "a.py", **CONTENT}).decision == "allow"
    assert policy.judge("bash", {"command": "echo x > a.py; mkdir b"}).decision == "allow"
    assert policy.judge("bash", {"command": "echo x > ../../../trust.json"}).decision == "ask"


@pytest.mark.parametrize("mode", ["plan", "locked"])
def test_a_plan_does_not_change_them(folder, mode):
    assert edit(folder, OWN[0], mode).decision == "deny"
    assert run(folder, f"echo x > {OWN[0]}", mode).decision == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "gong config set permissions.mode bypass",
        "gong trust --yes",
        "gong auth login openai",
        "gong permissions add 'Bash(*)'",
        "gong mcp add x -- ./evil",
        "gong plugin add ./evil",
        "tape rm 3f2a",
        "tape redact 3f2a@1",
        "cd src && gong trust --yes",
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_commands_of_gong_that_change_its_rights_ask_in_every_mode(folder, command, mode):
    assert run(folder, command, mode, allow=("Bash(gong:*)", "Bash(tape:*)")).decision == "ask"


def test_a_rule_allows_an_own_file_where_it_names_it(folder):
    named = f"Edit({folder.parent}/.config/gong/config.toml)"
    for rules in (("Edit",), ("Edit(/**)",), ("Bash(tee:*)", "Edit(~/**)")):
        assert edit(folder, OWN[0], "bypass", allow=rules).decision == "ask"
        assert run(folder, f"echo x | tee {OWN[0]}", "dont_ask", allow=rules).decision == "ask"
    assert edit(folder, OWN[0], "dont_ask", allow=(named,)).decision == "allow"
    assert edit(folder, OWN[0], "bypass", deny=("Edit(~/**)",)).decision == "deny"


def test_nothing_is_offered_that_would_allow_them_for_good(folder):
    assert edit(folder, OWN[0]).offered == ()
    assert run(folder, f"echo x > {OWN[0]}").offered == ()


LATER = [
    ".yarnrc",
    ".yarnrc.yml",
    ".npmrc",
    ".venv/lib/../bin/python",
    ".venv/bin/ruff",
    ".venv/lib/python3.11/site-packages/x.pth",
    "sitecustomize.py",
    "node_modules/.bin/tsc",
    ".pre-commit-config.yaml",
    ".githooks/pre-commit",
    ".husky/pre-commit",
    ".devcontainer/devcontainer.json",
    ".zed/tasks.json",
    ".idea/workspace.xml",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".cargo/config.toml",
    ".mise.toml",
    "rust-toolchain.toml",
    "src/../.git/hooks/post-checkout",
    ".github/workflows/ci.yml",
    ".gong/config.toml",
    ".GIT/hooks/post-checkout",
    ".VSCode/tasks.json",
]


@pytest.mark.parametrize("path", LATER)
def test_files_that_run_later_are_asked_about_with_the_reason(folder, path):
    """M175: in accept_edits, too."""
    for tool in ("write", "edit"):
        ruling = edit(folder, path, "accept_edits", tool)
        assert ruling.decision == "ask"
        assert any(ruling.why.endswith(one) for one in load_tables().later), ruling.why
    for command in (f"echo x > {path}", f"cp src/a {path}", f"echo x | tee {path}"):
        assert run(folder, command, "accept_edits").decision == "ask"


@pytest.mark.parametrize("path", ["src/a.py", "conftest.py", "Makefile", "docs/path.md", "pip.py"])
def test_other_files_are_edited_unasked_in_accept_edits(folder, path):
    assert edit(folder, path, "accept_edits").decision == "allow"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("cp -r evil/. .", "ask"),
        ("cp -r evil/.cargo .", "ask"),
        ("mv evil/.cargo .", "ask"),
        ("cp evil/.cargo/config.toml .cargo", "ask"),
        ("cp -r plain/. src", "allow"),
        ("cp -r plain src", "allow"),
        ("mv plain/a.txt src", "allow"),
    ],
)
def test_copies_of_folders_are_judged_by_what_they_bring(folder, command, decision):
    assert run(folder, command, "accept_edits").decision == decision


def test_shared_memory_is_a_folder_like_any_other(folder, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/tmp")  # files of tests may be in shared memory
    assert run(folder, "echo y > /dev/shm/x").decision == "ask"
    assert run(folder, "cat < /dev/shm/x").decision == "ask"
    assert run(folder, "echo y > /dev/null").decision == "allow"
