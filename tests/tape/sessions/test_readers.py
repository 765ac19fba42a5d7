"""Exported sessions before the tools' own readers, where those are installed; nothing is online.

TAPE_HARBOR      a Python that has `harbor`: its validator of trajectories
TAPE_CLAUDE_SDK  a Python that has `claude_agent_sdk`: list, read and fork a session
TAPE_CODEX       the program `codex`: `app-server` lists, reads and resumes a thread
TAPE_OPENCODE    the program `opencode`: import and export
TAPE_PI          the folder `node_modules` that has `@earendil-works/pi-coding-agent`
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import partial

import pytest
from msgspec import Raw

from tape.model.entries import (
    Anchor,
    Assistant,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from tape.sessions.export import choose_install_path, export_every_branch, export_session
from tape.store.store import Beginning
from tests.tape import making

PICTURE = bytes.fromhex("89504e470d0a1a0a") + b"not much of a picture"


def needs(variable):
    return pytest.mark.skipif(variable not in os.environ, reason=f"needs {variable}")


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def tape(tmp_path, home):
    """Words, thinking, calls, a failed call, a picture, a compaction, two branches."""
    store = making.store_in(tmp_path / "store")
    with store.create(Beginning(str(home), "test/1")) as tape:
        with tape.writer() as writer:
            picture = Image(blob=tape.blobs.put(PICTURE), mime="image/png")
            writer.append(User((Text("list the zebras"), picture)))
            ran = ToolCall(id="c_00000001_0", name="bash", args=Raw(b'{"command":"ls"}'))
            read = ToolCall(id="c_00000001_1", name="read", args=Raw(b'{"path":"a.py"}'))
            usage = Usage(input=10, output=5, cache_read=90, total=105)
            said = (Thinking("hm"), Text("Looking."), ran, read)
            writer.append(Assistant(said, model="m", stop_reason="tool_calls", usage=usage))
            writer.append(ToolResult(ran.id, "bash", (Text("zebra.py"),)))
            writer.append(ToolResult(read.id, "read", (Text("gone"),), is_error=True))
            writer.append(Assistant((Text("One."),), model="m"))
            writer.barrier()
        tape.fork(tape.head(), "side", why="fork")
        with tape.writer("side") as writer:
            writer.append(User((Text("left"),)))
            writer.append(Assistant((Text("Left."),), model="m"))
            writer.barrier()
        with tape.writer() as writer:
            writer.anchor(Anchor(kind="compaction", summary="It was about zebras."))
            writer.append(User((Text("right"),)))
            writer.append(Assistant((Text("Right."),), model="m"))
            writer.barrier()
        yield tape


def install(tape, name, home):
    made = export_session(tape, None, name, redact=False, skipped=pytest.fail)
    path = choose_install_path(name, made.outline, {"HOME": str(home)})
    path.parent.mkdir(parents=True)
    path.write_bytes(made.data)
    return path, made.outline.uuid


def run_script(command, home, **more):
    environ = {**os.environ, "HOME": str(home), **more}
    done = subprocess.run(
        command, env=environ, cwd=home, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode()


HARBOR = """
import json, sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for file in sys.argv[1:]:
    validator = TrajectoryValidator()
    assert validator.validate(file), validator.errors
"""


@needs("TAPE_HARBOR")
def test_harbor_finds_trajectories_valid(tape, home):
    files = []
    for branch, made in export_every_branch(tape, "atif", redact=False, skipped=pytest.fail):
        files.append(home / f"{branch}.json")
        files[-1].write_bytes(made.data)
    assert len(files) == 2
    run_script([os.environ["TAPE_HARBOR"], "-c", HARBOR, *map(str, files)], home)


CLAUDE = """
import json, sys
from claude_agent_sdk import fork_session, get_session_messages, list_sessions
folder, session = sys.argv[1:]
(listed,) = list_sessions(directory=folder)
assert listed.session_id == session, listed
messages = get_session_messages(session, directory=folder)
forked = fork_session(session, directory=folder)
assert len(get_session_messages(forked.session_id, directory=folder)) == len(messages)
print(json.dumps([[one.type, one.uuid] for one in messages]))
"""


@needs("TAPE_CLAUDE_SDK")
def test_claudes_sdk_lists_reads_and_forks_a_session(tape, home):
    path, uuid = install(tape, "claude", home)
    assert path.parent.name == re.sub(r"[^a-zA-Z0-9]", "-", str(home))
    command = [os.environ["TAPE_CLAUDE_SDK"], "-c", CLAUDE, str(home), uuid]
    read = json.loads(run_script(command, home, CLAUDE_CONFIG_DIR=str(home / ".claude")))
    lines = {
        line["uuid"]: line
        for line in map(json.loads, path.read_bytes().splitlines())
        if "uuid" in line
    }
    chain = [line for line in lines.values() if line["type"] in {"user", "assistant"}][-1:]
    while parent := chain[0]["parentUuid"]:
        chain.insert(0, lines[parent])
    wanted = [[line["type"], line["uuid"]] for line in chain if line["type"] != "system"]
    assert read == wanted


@needs("TAPE_CODEX")
def test_codex_lists_reads_and_resumes_a_thread(tape, home):
    _, uuid = install(tape, "codex", home)
    nowhere = 'openai_base_url = "http://127.0.0.1:9/v1"\n'
    (home / ".codex/config.toml").write_text(nowhere)
    environ = {**os.environ, "HOME": str(home), "CODEX_HOME": str(home / ".codex")}
    with subprocess.Popen(
        [os.environ["TAPE_CODEX"], "app-server"],
        env=environ,
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        ask = partial(ask_server, server)
        ask("initialize", clientInfo={"name": "test", "title": "test", "version": "1"})
        threads = ask("thread/list", limit=10, modelProviders=[])["data"]
        assert [thread["id"] for thread in threads] == [uuid]
        turns = ask("thread/read", threadId=uuid, includeTurns=True)["thread"]["turns"]
        assert ask("thread/resume", threadId=uuid)["thread"]["id"] == uuid
        server.kill()
    items = [item for turn in turns for item in turn["items"]]
    prompts = [item["content"][0]["text"] for item in items if item["type"] == "userMessage"]
    assert prompts == ["list the zebras", "right"]
    answers = [item["text"] for item in items if item["type"] == "agentMessage"]
    assert answers == ["Looking.", "One.", "Right."]
    (call,) = (item for item in items if item["type"] == "mcpToolCall")
    assert (call["tool"], call["arguments"]) == ("read", {"path": "a.py"})


def ask_server(server, method, **params):
    message = {"id": method, "method": method, "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == method:
            assert "error" not in answer, answer
            return answer["result"]
    raise AssertionError("the server has ended")


@needs("TAPE_OPENCODE")
def test_opencode_imports_a_session_and_exports_it_again(tape, home):
    made = export_session(tape, None, "opencode", redact=False, skipped=pytest.fail)
    (home / "session.json").write_bytes(made.data)
    wanted = json.loads(made.data)
    opencode = partial(
        run_script,
        home=home,
        XDG_DATA_HOME=str(home / "data"),
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
    )
    program = os.environ["TAPE_OPENCODE"]
    assert wanted["info"]["id"] in opencode([program, "import", "session.json"])
    found = json.loads(opencode([program, "export", wanted["info"]["id"]]))

    def list_parts(document):
        return [
            (message["info"]["role"], {k: v for k, v in part.items() if k != "metadata"})
            for message in document["messages"]
            for part in message["parts"]
        ]

    assert list_parts(found) == list_parts(wanted)


PI = """
import { SessionManager } from '@earendil-works/pi-coding-agent';
const manager = SessionManager.open(process.argv[2]);
let leaves = 0, nodes = 0;
const walk = (node) => {
  nodes += 1;
  leaves += node.children.length ? 0 : 1;
  node.children.forEach(walk);
};
manager.getTree().forEach(walk);
const context = manager.buildSessionContext().messages.map((one) => [one.role, one.content]);
console.log(JSON.stringify({ leaves, nodes, context }));
"""


@needs("TAPE_PI")
def test_pi_opens_every_branch(tape, home):
    path, _ = install(tape, "pi", home)
    (home / "node_modules").symlink_to(os.environ["TAPE_PI"])
    (home / "read.mjs").write_text(PI)
    found = json.loads(run_script(["node", "read.mjs", str(path)], home))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()][1:]
    parents = {line.get("parentId") for line in lines}
    assert found["nodes"] == len(lines)
    assert found["leaves"] == len([line for line in lines if line["id"] not in parents]) == 2
    assert [role for role, _ in found["context"]][-2:] == ["user", "assistant"]
