"""The sandbox on the command line: --sandbox, GONG_SANDBOX, settings, and what doctor says."""

import json

import pytest

from tests.gong.env.sandbox.world import needs_bubblewrap

SCRIPT = [
    {"tool_calls": [{"name": "bash", "args": {"command": "echo x > ../outside; echo y > inside"}}]},
    {"text": "done"},
]


def make_project(home):
    folder = home / "project"
    folder.mkdir()
    (folder / "s.json").write_text(json.dumps(SCRIPT))
    return folder


def list_made(home):
    return [name for name in ("outside", "project/inside") if (home / name).exists()]


@needs_bubblewrap
def test_the_option_lets_an_answer_work_inside_without_a_question(gong, home):
    """M179: and lets nothing leave."""
    folder = make_project(home)
    words = ("chat", "-m", "scripted/s.json", "-p", "go")
    gong(*words, code=7, cwd=folder)
    assert list_made(home) == []
    gong(*words, "--sandbox", "workspace-write", cwd=folder)
    assert list_made(home) == ["project/inside"]


@needs_bubblewrap
def test_the_variable_and_the_settings_turn_it_on(gong, home):
    folder = make_project(home)
    words = ("chat", "-m", "scripted/s.json", "-p", "go", "--yolo")
    gong(*words, cwd=folder, GONG_SANDBOX="read-only")
    assert list_made(home) == []
    file = home / ".config/gong/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('sandbox = "workspace-write"\n')
    gong(*words, cwd=folder)
    assert list_made(home) == ["project/inside"]
    gong(*words, "--sandbox", "off", cwd=folder)
    assert list_made(home) == ["outside", "project/inside"]


@needs_bubblewrap
@pytest.mark.parametrize("name", ["tool", "hooks", "mcp"])
def test_commands_that_start_what_a_project_brings_are_inside(gong, home, name):
    """M220: gong tool, gong hooks test and gong mcp test, where the settings turn it on."""
    folder = home / "project"
    (folder / ".gong").mkdir(parents=True)
    line = "touch inside; touch ../outside; exit 1"
    hook = {"hooks": [{"type": "command", "command": line}]}
    (folder / ".gong/hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    server = {"command": "sh", "args": ["-c", line], "sandbox": False}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"probe": server}}))
    gong("trust", "--yes", cwd=folder)
    code, *words = {
        "tool": (1, "tool", "bash", json.dumps({"command": line})),
        "hooks": (1, "hooks", "test", "PreToolUse"),
        "mcp": (1, "mcp", "test", "probe"),
    }[name]
    gong(*words, cwd=folder, GONG_SANDBOX="workspace-write", code=code)
    assert list_made(home) == ["project/inside"]


def test_wrong_settings_are_one_line(gong, home):
    folder = make_project(home)
    words = ("chat", "-m", "scripted/s.json", "-p", "go")
    error = gong(*words, cwd=folder, code=2, GONG_SANDBOX="all").stderr
    choices = "off, read-only, workspace-write"
    assert error == f"gong: GONG_SANDBOX is 'all': choose one of {choices}\n"
    file = home / ".config/gong/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[sandbox]\nmode = "read-only"\ndomains = ["https://a.org"]\n')
    error = gong(*words, cwd=folder, code=2).stderr
    wanted = "write example.org, *.example.org or *"
    assert error == f"gong: sandbox: 'https://a.org' is not a host: {wanted}\n"
    error = gong(*words, "--sandbox", "workspace-write", cwd=home, code=2).stderr
    assert error.startswith("gong: ")


def test_a_project_makes_the_sandbox_stricter_and_never_weaker(home):
    """M179: a project's settings take no part of the user's border away."""
    from gong.config import SandboxSettings, Settings, merge_settings

    def merge(ours, theirs):
        return merge_settings(Settings(sandbox=ours), home, theirs.encode()).border

    assert merge("workspace-write", 'sandbox = "off"').mode == "workspace-write"
    assert merge("workspace-write", 'sandbox = "read-only"').mode == "read-only"
    assert merge("off", 'sandbox = "workspace-write"').mode == "workspace-write"
    ours = SandboxSettings(mode="workspace-write", hide=("a",))
    theirs = '[sandbox]\nwrite = ["/"]\ndomains = ["*"]\nhide = ["b"]\nunix_sockets = true\n'
    assert merge(ours, theirs) == SandboxSettings(mode="workspace-write", hide=("a", "b"))


@needs_bubblewrap
def test_doctor_says_which_sandbox_works(gong, home):
    folder = make_project(home)
    rows = json.loads(gong("doctor", "--json", cwd=folder).stdout)
    states = {row["name"]: row for row in rows}
    assert states["bubblewrap"]["state"] == "ok"
    assert states["sandbox"]["about"].startswith("off; --sandbox would use bubblewrap; limits: ")
    rows = json.loads(gong("doctor", "--json", cwd=folder, GONG_SANDBOX="read-only").stdout)
    (row,) = [row for row in rows if row["name"] == "sandbox"]
    assert row["about"].startswith("read-only, bubblewrap; limits: ")
