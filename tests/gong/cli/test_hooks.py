import json

import pytest

BLOCK = "echo no rm >&2; exit 2"


@pytest.fixture
def work(home):
    """A project with a hook before commands, not trusted yet."""
    folder = home / "work"
    (folder / ".claude").mkdir(parents=True)
    one = {"matcher": "Bash", "hooks": [{"type": "command", "command": BLOCK}]}
    (folder / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [one]}}))
    return folder


def write_script(home, *answers):
    (home / "answers.json").write_text(json.dumps(answers))
    return f"scripted/{home / 'answers.json'}"


CALL = {"tool_calls": [{"name": "bash", "args": {"command": "touch ran"}}]}


def test_hooks_are_listed_with_their_place_and_trust(gong, home, work):
    """M174: gong hooks list."""
    (home / ".config/gong/config.toml").write_text(
        '[[hooks]]\nevent = "Stop"\ncommand = "make"\nargs = ["lint"]\n'
    )
    listed = json.loads(gong("hooks", "list", "--json", cwd=work).stdout)
    assert [(one["event"], one["runs"], one["trust"], one["active"]) for one in listed] == [
        ("Stop", "make lint", "user", True),
        ("PreToolUse", BLOCK, "new", False),
    ]
    shown = gong("hooks", "list", cwd=work)
    assert shown.stdout.split("\n")[2].split()[:3] == ["new", "PreToolUse", "Bash"]
    assert "gong trust" in shown.stderr
    assert gong("hooks", "list", cwd=home / ".config/gong").stdout.count("\n") == 2


def test_hooks_are_tried_on_a_sample(gong, work):
    """M174: gong hooks test; what is not trusted does not run, and no tool runs."""
    assert "not trusted" in gong("hooks", "test", "PreToolUse", cwd=work).stdout
    gong("trust", "--yes", cwd=work)
    shown = gong("hooks", "test", "PreToolUse", "--args", '{"command": "touch ran"}', cwd=work)
    assert shown.stdout == (f"PreToolUse {BLOCK}: answered\n  decision  block\n  reason    no rm\n")
    assert not (work / "ran").exists()
    (told,) = json.loads(gong("hooks", "test", "PreToolUse", "--json", cwd=work).stdout)
    assert told == {
        "hook": f"PreToolUse {BLOCK}",
        "outcome": "answered",
        "decision": "block",
        "reason": "no rm",
    }
    other = gong("hooks", "test", "PreToolUse", "--tool", "read", "--args", "{}", cwd=work)
    assert "not asked" in other.stdout
    assert "did you mean PreToolUse" in gong("hooks", "test", "PreTol", code=2, cwd=work).stderr
    assert "no hook" in gong("hooks", "test", "Stop", cwd=work).stdout
    assert "JSON" in gong("hooks", "test", "Stop", "--args", "[]", code=2, cwd=work).stderr


@pytest.mark.parametrize(
    "event", ["UserPromptSubmit", "Stop", "PreCompact", "Notification", "Setup"]
)
def test_every_event_has_a_sample(gong, home, event):
    config = f'[[hooks]]\nevent = "{event}"\ncommand = "cat > given; exit 1"\n'
    (home / ".config/gong/config.toml").write_text(config)
    shown = gong("hooks", "test", event, code=1)
    assert "failed" in shown.stdout
    assert json.loads((home / "given").read_text())["hook_event_name"] == event


def test_a_run_without_a_person_continues_without_hooks_that_are_not_trusted(gong, home, work):
    """An untrusted headless run says "trust" on standard error."""
    model = write_script(home, CALL, {"text": "done"})
    done = gong("chat", "--yolo", "-p", "go", "-m", model, cwd=work)
    assert done.stdout == "done\n"
    assert done.stderr.count("trust shows") == 1
    assert "gong: not trusted, so without effect: .claude/settings.json (gong trust" in done.stderr
    assert (work / "ran").exists()
    (work / "ran").unlink()
    gong("trust", "--yes", cwd=work)
    document = json.loads(
        gong("chat", "-p", "go", "-m", model, "--output-format", "json", cwd=work).stdout
    )
    assert document["tool_calls"][0]["is_error"] is True
    assert not (work / "ran").exists()


def test_a_blocked_prompt_ends_with_exit_code_1(gong, home):
    config = '[[hooks]]\nevent = "UserPromptSubmit"\ncommand = "echo not today >&2; exit 2"\n'
    (home / ".config/gong/config.toml").write_text(config)
    done = gong("chat", "-p", "go", "-m", write_script(home), code=1)
    assert done.stderr == "gong: the prompt was blocked by a hook: not today\n"
    assert done.stdout == ""


def test_forking_and_switching_can_be_cancelled(gong, home):
    """M171: with -c, --session and --fork."""
    model = write_script(home, {"text": "done"})
    gong("chat", "-p", "go", "-m", model)
    config = '[[hooks]]\nevent = "before_session_op"\nmatcher = "fork"\ncommand = "exit 2"\n'
    (home / ".config/gong/config.toml").write_text(config)
    gong("chat", "-c", "-p", "go", "-m", model)
    told = gong("chat", "--fork", ":main", "-p", "go", "-m", model, code=1)
    assert "a hook cancelled the fork" in told.stderr
    (home / ".config/gong/config.toml").write_text(config.replace("fork", "switch"))
    told = gong("chat", "-c", "-p", "go", "-m", model, code=1)
    assert "a hook cancelled the switch" in told.stderr
