"""Whatever starts programs in a session does so inside its sandbox: each tries to write outside."""

from __future__ import annotations

import json
import sys

from msgspec.structs import replace

from gong.config import LanguageServerSettings, LspSettings
from gong.env.local import LocalEnvironment
from gong.env.sandbox.sandbox import SandboxRequest, open_sandbox
from tape.model.entries import Context, ToolResult, join_texts
from tests.gong.agent.conftest import call
from tests.gong.agent.test_sandbox import Played, base, trust_all
from tests.gong.env.sandbox.world import needs_bubblewrap

__all__ = ["base"]

pytestmark = [needs_bubblewrap]
REFUSED = "Read-only file system"


def list_left(played):
    """Return the names of files that something left outside."""
    return sorted(file.name for file in played.outside.iterdir())


async def test_commands_of_a_skill_are_inside(base):
    """M220: those in its text, which run when it is used."""
    played = Played(base)
    file = played.folder / ".claude/skills/ship/SKILL.md"
    file.parent.mkdir(parents=True)
    line = f"!`echo in > here; echo x 2>&1 > {played.outside}/a`"
    file.write_text(f"---\nname: ship\ndescription: Ships\n---\nSee {line}\n")
    trust_all(played)
    path = await played.run(asks=False, prompt="/ship")
    (text,) = [join_texts(one.content) for one in path if isinstance(one, Context)]
    assert REFUSED in text
    assert list_left(played) == []
    assert (played.folder / "here").exists()


async def test_commands_of_a_sub_agent_are_inside(base):
    """M220: in the folder of its parent, with the border of that."""
    script = base / "child.json"
    command = f"echo in > here; echo x > {base}/outside/a"
    steps = [{"tool_calls": [call("bash", command=command)]}, {"text": "done"}]
    script.write_text(json.dumps(steps))
    played = Played(base, call("Task", prompt="do it", model=f"scripted/{script}"))
    await played.run(asks=False, mode="bypass")
    assert (played.folder / "here").exists()
    assert list_left(played) == []


POINTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")


async def test_hooks_of_a_project_are_inside_from_the_first_to_the_last(base):
    """M220: at the beginning and the end of a session, too."""
    played = Played(base, call("bash", command="true"))
    hooks = {}
    for point in POINTS:
        command = f"touch ran-{point}; touch {base}/outside/{point}"
        hooks[point] = [{"hooks": [{"type": "command", "command": command}]}]
    (played.folder / ".gong").mkdir()
    (played.folder / ".gong/hooks.json").write_text(json.dumps({"hooks": hooks}))
    trust_all(played)
    await played.run(asks=False)
    assert {file.name for file in played.folder.glob("ran-*")} == {f"ran-{p}" for p in POINTS}
    assert list_left(played) == []


async def test_a_language_server_is_inside(base):
    """M220: it starts with the first question, or with a change of a file."""
    played = Played(
        base, call("write", path="a.x", content="x"), call("lsp", operation="outline", path="a.x")
    )
    line = f"touch here; touch {base}/outside/a; exit 1"
    server = LanguageServerSettings(("sh", "-c", line), {"*.x": "x"})
    played.settings = replace(played.settings, lsp=LspSettings(servers={"mine": server}))
    await played.run(asks=False, mode="bypass")
    assert (played.folder / "here").exists()
    assert list_left(played) == []


async def test_what_parses_a_file_for_its_outline_is_inside(base, monkeypatch):
    """M220: grammars are given what anybody wrote."""
    played = Played(
        base,
        call("write", path="a.py", content="def f():\n    pass\n"),
        call("lsp", operation="outline", path="a.py"),
    )
    python = base / "python"
    line = f"touch {played.folder}/here; touch {base}/outside/a"
    python.write_text(f'#!/bin/sh\n{line}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    played.settings = replace(played.settings, lsp=LspSettings(discover=True))
    path = await played.run(asks=False, mode="bypass")
    outline = [one.content for one in path if isinstance(one, ToolResult)][-1]
    assert "function f" in join_texts(outline)
    assert (played.folder / "here").exists()
    assert list_left(played) == []


async def test_programs_that_look_at_the_folder_are_inside(base):
    """M220: such as git, by which changes of files are recorded."""
    played = Played(base)
    environ = played.environ
    sandbox = open_sandbox(SandboxRequest(str(played.folder), environ, writes=True))
    env = LocalEnvironment(str(played.folder), environ, sandbox=sandbox)
    await env.initialize()
    words = ["sh", "-c", f"echo x > here; echo x > {base}/outside/a"]
    assert env.run_program(words, str(played.folder), accepted=(0, 1, 2)) == b""
    await env.cleanup()
    assert list_left(played) == []
    assert (played.folder / "here").exists()
