"""Sessions whose commands run in a sandbox: what the model reads, and what a person is asked."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

import gong
from gong import trust
from gong.agent import events
from gong.config import PermissionSettings, SandboxSettings, Settings
from gong.env.sandbox.sandbox import SandboxRequest, open_sandbox
from gong.errors import ConfigurationError
from tape.model.entries import Approval, ToolResult, join_texts
from tests.gong.agent.conftest import call
from tests.gong.env.sandbox.world import needs_bubblewrap

pytestmark = [needs_bubblewrap]


@pytest.fixture
def base():
    """Return a folder that is not below one of which a sandbox has its own."""
    folder = tempfile.mkdtemp(prefix="gong-test-", dir="/var/tmp")
    yield Path(folder)
    shutil.rmtree(folder)


class Played:
    """What came of a scripted session in a sandbox."""

    def __init__(self, base, *calls, **settings):
        self.folder, self.outside = base / "home/project", base / "outside"
        self.folder.mkdir(parents=True)
        self.outside.mkdir()
        self.script = base / "script.json"
        steps = [{"tool_calls": [each]} for each in calls]
        self.script.write_text(json.dumps([*steps, {"text": "done"}]))
        self.environ = {"HOME": str(base / "home"), "PATH": os.environ["PATH"]}
        self.store = base / "tapes"
        border = SandboxSettings(**{"mode": "workspace-write", **settings})
        self.settings = Settings(sandbox=border)
        self.questions, self.results, self.approvals = [], [], []

    async def run(self, *answers, asks=True, mode="default", prompt="go"):
        """Play it; questions get these answers, one after the other. Return what the tape says."""
        waiting = list(answers)
        async with gong.open_session(
            self.folder,
            store=self.store,
            environ=self.environ,
            settings=self.settings,
            model=f"scripted/{self.script}",
        ) as session:
            session.use_permission(mode)
            if asks:
                session.ask_person()
            async for event in session.submit(prompt):
                if isinstance(event, events.ApprovalRequested):
                    self.questions.append(event.why)
                    session.answer_approval(event.call_id, waiting.pop(0))
            path = [entry.data for entry in session.recorder.path]
        self.results = [join_texts(one.content) for one in path if isinstance(one, ToolResult)]
        self.approvals = [(one.decision, one.by) for one in path if isinstance(one, Approval)]
        return path


async def test_a_refused_command_runs_outside_once_a_person_allows_it(base):
    """M179: one question names what was refused; nothing is tried again in silence."""
    played = Played(base, call("bash", command=f"echo inside; echo x > {base}/outside/a"))
    await played.run("once")
    what = f"writing {played.outside}/a"
    assert played.questions == [f"the sandbox refused {what}: run it again outside of the sandbox?"]
    assert (played.outside / "a").read_text() == "x\n"
    note = f"[The sandbox refused {what}; the user let it run again outside of it.]"
    assert played.results == [f"{note}\ninside\n"]
    assert played.approvals == [("allow", "sandbox"), ("allow", "user")]


async def test_a_refusal_of_the_person_leaves_the_command_inside(base):
    """M179: it has run once, inside."""
    played = Played(base, call("bash", command=f"echo r >> runs; echo x > {base}/outside/a"))
    await played.run("no")
    assert (played.folder / "runs").read_text() == "r\n"
    assert not (played.outside / "a").exists()
    assert "Read-only file system" in played.results[0]
    assert f"[The sandbox refused writing {played.outside}/a.]" in played.results[0]


async def test_all_that_was_refused_is_one_question(base):
    """M179: a call that failed in two ways is asked about once, and an answer is for that call."""
    both = f"echo x > {base}/outside/a; echo x > {base}/outside/b"
    played = Played(base, call("bash", command=both), call("bash", command=both))
    await played.run("always", "no")
    what = f"writing {played.outside}/a, writing {played.outside}/b"
    question = f"the sandbox refused {what}: run it again outside of the sandbox?"
    assert played.questions == [question, question]
    assert played.results[0].startswith(f"[The sandbox refused {what}; the user let it run")
    assert "[Not run outside of the sandbox" in played.results[1]
    assert not list(played.folder.glob(".gong/*"))


async def test_an_allowing_rule_lets_nothing_leave(base):
    """M179: rules say that a command may run, the border says what it may do."""
    played = Played(base, call("bash", command=f"echo r >> runs; echo x > {base}/outside/a"))
    played.settings = replace(played.settings, permissions=PermissionSettings(allow=("Bash",)))
    await played.run(asks=False)
    assert (played.folder / "runs").read_text() == "r\n"
    assert not (played.outside / "a").exists()


async def test_a_command_that_fails_for_another_reason_is_not_asked_about(base):
    played = Played(base, call("bash", command="echo failed >&2; exit 3"))
    await played.run()
    assert played.questions == []


async def test_a_sub_agent_asks_where_its_parent_asks(base):
    """M179: whether its command may leave, too."""
    script = base / "child.json"
    command = f"echo r >> runs; echo x > {base}/outside/a"
    steps = [{"tool_calls": [call("bash", command=command)]}, {"text": "done"}]
    script.write_text(json.dumps(steps))
    played = Played(base, call("Task", prompt="do it", model=f"scripted/{script}"))
    await played.run("no")
    what = f"writing {played.outside}/a"
    assert played.questions == [f"the sandbox refused {what}: run it again outside of the sandbox?"]
    assert (played.folder / "runs").read_text() == "r\n"
    assert not (played.outside / "a").exists()


@pytest.mark.parametrize("mode", ["default", "bypass", "dont_ask"])
async def test_nothing_leaves_the_sandbox_without_a_person(base, mode):
    """M179: a run without a person never leaves."""
    played = Played(base, call("bash", command=f"echo x > {base}/outside/a"))
    await played.run(asks=mode != "default", mode=mode)
    assert (played.questions, (played.outside / "a").exists()) == ([], False)
    assert f"[The sandbox refused writing {played.outside}/a.]" in played.results[0]


async def test_files_of_tools_and_of_commands_are_the_same(base):
    """M220: gong's own tools obey the border, and find what commands leave in /tmp."""
    played = Played(
        base,
        call("bash", command="echo from-a-command > /tmp/gong-note; seq 1 30000; exit 0"),
        call("read", path="/tmp/gong-note"),
        call("write", path="/tmp/gong-other", content="from-a-tool"),
        call("bash", command="cat /tmp/gong-other; ln -s ~/secret /tmp/gong-link"),
        call("read", path="/tmp/gong-link"),
        call("write", path=str(base / "outside/a"), content="x"),
        call("write", path="src/a.py", content="x"),
        call("bash", command="cat src/a.py; mkdir .vscode"),
    )
    (base / "home/secret").write_text("SECRET")
    await played.run(asks=False)
    assert played.results[1] == "from-a-command\n"
    assert played.results[3].startswith("from-a-tool")
    assert "SECRET" not in played.results[4]
    assert "the sandbox refused writing" in played.results[5]
    assert not (played.outside / "a").exists()
    assert played.results[7].startswith("x\n\n[New: ")
    assert not os.access("/tmp/gong-note", os.F_OK)
    assert (played.folder / "src/a.py").read_text() == "x"


async def test_commands_in_the_background_are_inside(base):
    command = f"echo x > {base}/outside/a; echo end"
    played = Played(
        base,
        call("bash", command=command, run_in_background=True),
        call("bash_output", shell_id="bg_1", wait=30),
    )
    await played.run(asks=False)
    assert f"[The sandbox refused writing {played.outside}/a.]" not in played.results[0]
    assert "Read-only file system" in played.results[1]
    assert not (played.outside / "a").exists()


async def test_programs_that_run_outside_are_none_that_a_command_made(base):
    made = (
        "for n in rg fd bash; do printf '#!/bin/sh\\ntouch %s' $OUT > bin/$n; chmod +x bin/$n; done"
    )
    played = Played(
        base,
        call("bash", command=f"mkdir bin; OUT={base}/outside/left; {made}"),
        call("grep", pattern="x"),
        call("find", pattern="*"),
        call("bash", command=f"echo x > {base}/outside/a"),
    )
    played.environ["PATH"] = f"{played.folder}/bin:{os.environ['PATH']}"
    await played.run("once")
    assert len(played.questions) == 1
    assert [file.name for file in played.outside.iterdir()] == ["a"]


async def test_a_session_stops_where_its_folder_cannot_be_in_a_sandbox(base):
    played = Played(base)
    played.folder = base / "home"
    with pytest.raises(ConfigurationError, match="holds your home folder"):
        await played.run()


async def test_what_a_killed_session_left_is_removed_by_the_next_one(base):
    environ = {"HOME": str(base), "PATH": os.environ["PATH"]}
    (base / "project").mkdir()
    program = (
        "import os, sys; from gong.env.sandbox.sandbox import SandboxRequest, open_sandbox\n"
        "request = SandboxRequest(sys.argv[1], {'HOME': sys.argv[2]}, writes=True)\n"
        "print(open_sandbox(request).temporary_directory, flush=True); os.kill(os.getpid(), 9)"
    )
    words = (sys.executable, "-c", program, str(base / "project"), str(base))
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: ASYNC221
    left = Path(done.stdout.strip()).parent
    running = open_sandbox(SandboxRequest(str(base / "project"), environ, writes=True))
    other = open_sandbox(SandboxRequest(str(base / "project"), environ, writes=True))
    assert done.returncode == -9
    assert not os.access(left, os.F_OK)
    assert os.access(running.temporary_directory, os.F_OK)
    for sandbox in (running, other):
        sandbox.close()
        assert not os.access(sandbox.temporary_directory, os.F_OK)


SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "probe", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if request.get("method") == "tools/list":
        result = {"tools": [{"name": "probe", "inputSchema": {"type": "object"}}]}
    if request.get("method") == "tools/call":
        try:
            open(sys.argv[1], "w").write("x")
            text = "left"
        except OSError as error:
            text = error.strerror
        result = {"content": [{"type": "text", "text": text}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def trust_all(played):
    project = trust.read_project(str(played.folder), played.environ)
    trust.trust_project(project, played.environ)


async def test_hooks_of_a_project_are_inside_and_those_of_the_user_are_not(base):
    """M220: what a project brings runs in the sandbox."""
    played = Played(base, call("bash", command="true"))
    theirs = {"command": f"echo x > {base}/outside/theirs; echo y > here"}
    ours = {"command": f"echo x > {base}/outside/ours"}
    for folder, hook in ((played.folder / ".gong", theirs), (base / "home/.config/gong", ours)):
        folder.mkdir(parents=True)
        hooks = {"PreToolUse": [{"hooks": [{"type": "command", **hook}]}]}
        (folder / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    trust_all(played)
    await played.run(asks=False)
    assert sorted(file.name for file in played.outside.iterdir()) == ["ours"]
    assert (played.folder / "here").exists()


@pytest.mark.parametrize(
    ("scope", "text"), [("project", "Read-only file system"), ("user", "left")]
)
async def test_a_server_is_inside_unless_the_user_says_otherwise(base, scope, text):
    """M220: servers of a project cannot leave, whatever their entry says."""
    pytest.importorskip("mcp")
    played = Played(base, call("probe__probe"))
    (played.folder / "server.py").write_text(SERVER)
    entry = {
        "command": sys.executable,
        "args": [str(played.folder / "server.py"), str(played.outside / "a")],
        "sandbox": False,
    }
    file = (
        played.folder / ".mcp.json" if scope == "project" else base / "home/.config/gong/mcp.json"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {"probe": entry}}))
    trust_all(played)
    await played.run(asks=False, mode="bypass")
    assert played.results == [text]
    assert (played.outside / "a").exists() == (scope == "user")
