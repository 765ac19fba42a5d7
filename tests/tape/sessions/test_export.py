"""Tapes as sessions of other agents: what comes back is what went out."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from msgspec import Raw

from tape.errors import UsageError
from tape.formats.sessions.write_otlp import CONVENTIONS
from tape.model.entries import (
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from tape.sessions.export import (
    SESSION_WRITERS,
    choose_install_path,
    export_every_branch,
    export_session,
)
from tape.sessions.import_ import import_session
from tape.sessions.sources import SessionFile, open_session_file
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import ClaudeFile, call, text

HERE = Beginning("/src/app", "test/1")
PICTURE = b"\x89PNG\r\n\x1a\n picture"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", durable=False)


def bring(store, path, data):
    path.write_bytes(data)
    session, digest = open_session_file(SessionFile(path))
    done, *_ = import_session(store, session, HERE, str(path), digest)
    return store.open(done.id)


@pytest.fixture
def tape(store, tmp_path):
    """A session of Claude Code: thinking, calls, a branch, a compaction."""
    file = ClaudeFile()
    file.say("u1", None, "list the zebras")
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    file.answer("a1", "u1", thought, text("Looking."), call("t1"), call("t2"), stop="tool_use")
    file.result("r1", "a1", "t1", "zebra.py")
    file.result("r2", "r1", "t2", "none")
    file.answer("a2", "r2", text("One."), stop="end_turn")
    file.say("u2", "a2", "left")
    file.say("u3", "a2", "right")
    file.add(
        *("system", "c1", None),
        subtype="compact_boundary",
        logicalParentUuid="u3",
        compactMetadata={"preTokens": 900},
    )
    file.say("s1", "c1", "It was about zebras.", isCompactSummary=True)
    file.say("u4", "s1", "and now?")
    return bring(store, tmp_path / f"{file.session}.jsonl", file.data)


def export(tape, name, head=None, *, redact=False):
    return export_session(tape, head, name, redact=redact, skipped=pytest.fail, with_content=True)


def list_facts(tape):
    """Return what is said on each branch, whatever the format made of it."""
    branches = []
    for branch in tape.refs().branches:
        said = []
        for entry in tape.entries(tape.head(branch)):
            match entry.data:
                case User(content=content):
                    said.append(("user", join_texts(content)))
                case Assistant(content=content, usage=usage):
                    said += [list_block(block) for block in content]
                    said.append((usage.input, usage.output))
                case ToolResult() as result:
                    said.append(("result", join_texts(result.content), result.is_error))
                case Anchor(summary=summary):
                    said.append(("anchor", summary))
        branches.append(said)
    return sorted(branches, key=repr)


def list_block(block):
    match block:
        case ToolCall():
            return block.name, json.loads(bytes(block.args))
        case Text() | Thinking():
            return type(block).__name__, block.text
    return type(block).__name__


@pytest.mark.parametrize("name", ["claude", "pi"])
def test_every_branch_comes_back(tape, tmp_path, name):
    made = export(tape, name)
    again = bring(Store(tmp_path / "other", durable=False), tmp_path / "out.jsonl", made.data)
    assert made.left_out == ()
    assert list_facts(again) == list_facts(tape)
    assert again.title() == tape.title()


def test_codex_holds_one_branch_and_names_the_others(tape, tmp_path):
    made = export(tape, "codex")
    again = bring(Store(tmp_path / "other", durable=False), tmp_path / "out.jsonl", made.data)
    current = tape.refs().current
    assert made.left_out == tuple({*tape.refs().branches} - {current})
    (said,) = list_facts(again)
    assert ("user", "right") in said
    assert ("user", "left") not in said
    kinds = [json.loads(line)["payload"].get("type") for line in made.data.splitlines()]
    assert {"user_message", "agent_message", "agent_reasoning", "exec_command_end"} <= {*kinds}
    assert kinds.count("task_started") == kinds.count("task_complete") > 1


def test_codex_shows_each_call_within_its_turn(store):
    with store.create(HERE) as tape, tape.writer() as writer:
        writer.append(User((Text("go"),)))
        ran = ToolCall(id="c_1", name="bash", args=Raw(b'{"command":"ls"}'))
        read = ToolCall(id="c_2", name="read", args=Raw(b'{"path":"a.py"}'))
        writer.append(Assistant((ran, read), model="m"))
        writer.append(ToolResult("c_1", "bash", (Text("a.py"),)))
        writer.append(ToolResult("c_2", "read", (Text("gone"),), is_error=True))
        writer.barrier()
        lines = map(json.loads, export(tape, "codex").data.splitlines())
    events = [line["payload"] for line in lines if line["type"] == "event_msg"]
    turns = {event["turn_id"] for event in events if "turn_id" in event}
    assert len(turns) == 1
    command, other = (one for one in events if one["type"].endswith("_end"))
    assert (command["type"], command["command"]) == ("exec_command_end", ["bash", "-lc", "ls"])
    assert other["invocation"] == {"server": "test", "tool": "read", "arguments": {"path": "a.py"}}
    assert other["result"]["Ok"]["isError"] is True


def test_codex_shows_calls_without_a_result_in_the_turn_they_were_made_in(store):
    with store.create(HERE) as tape, tape.writer() as writer:
        for name in ("one", "two"):
            writer.append(User((Text(name),)))
            killed = ToolCall(id=f"c_{name}", name="bash", args=Raw(b'{"command":"sleep 9"}'))
            other = ToolCall(id=f"d_{name}", name="read", args=Raw(b'{"path":"a"}'))
            writer.append(Assistant((killed, other), model="m"))
        writer.append(ToolResult("c_one", "bash", (Text("late"),)))
        writer.barrier()
        lines = map(json.loads, export(tape, "codex").data.splitlines())
    events = [line["payload"] for line in lines if line["type"] == "event_msg"]
    first, second = [one["turn_id"] for one in events if one["type"] == "task_started"]
    shown = {}  # Codex keeps the last event of a call
    for one in events:
        if one["type"].endswith("_end"):
            shown[one["call_id"]] = one
    ended = {one: (event["turn_id"], event.get("exit_code")) for one, event in shown.items()}
    assert ended == {
        "c_one": (first, 0),
        "d_one": (first, None),
        "c_two": (second, -1),
        "d_two": (second, None),
    }
    assert shown["c_two"]["status"] == "failed"
    assert shown["d_two"]["result"] == {"Err": "aborted"}


def test_the_same_tape_gives_the_same_bytes(tape):
    for name in SESSION_WRITERS:
        assert export(tape, name).data == export(tape, name).data


@pytest.mark.parametrize("api", ["openai-responses", "anthropic-messages"])
def test_thinking_without_a_signature_is_no_part_of_the_answer_for_claude(store, api):
    with store.create(HERE) as tape, tape.writer() as writer:
        writer.append(User((Text("go"),)))
        writer.append(Assistant((Thinking("aha"),), api=api))
        writer.append(User((Text("well?"),)))
        writer.append(Assistant((Thinking("aha"), Text("Yes.")), api=api))
        writer.barrier()
        lines = [json.loads(line) for line in export(tape, "claude").data.splitlines()]
    prompt, again, answer = (one for one in lines if one["type"] in {"user", "assistant"})
    assert answer["message"]["content"] == [{"type": "text", "text": "Yes."}]
    assert again["parentUuid"] == prompt["uuid"]
    assert answer["parentUuid"] == again["uuid"]


def test_answers_with_one_id_stay_two_for_claude(store, tmp_path):
    with store.create(HERE) as tape, tape.writer() as writer:
        for word in ("One.", "Two."):
            writer.append(User((Text("go"),)))
            writer.append(Assistant((Text(word),), model="m", response_id="r", raw_stop="STOP"))
        writer.barrier()
        made = export(tape, "claude")
    messages = [json.loads(line)["message"] for line in made.data.splitlines()]
    answers = [one for one in messages if one["role"] == "assistant"]
    assert len({one["id"] for one in answers}) == len(answers)
    assert {one["stop_reason"] for one in answers} == {"end_turn"}
    again = bring(Store(tmp_path / "other", durable=False), tmp_path / "out.jsonl", made.data)
    (facts,) = list_facts(again)
    assert [one[1] for one in facts if one[0] == "Text"] == ["One.", "Two."]


def test_pictures_go_along(store, tmp_path):
    with store.create(HERE) as tape, tape.writer() as writer:
        picture = Image(blob=tape.blobs.put(PICTURE), mime="image/png")
        writer.append(User((Text("look"), picture)))
        writer.append(Assistant((Text("A zebra."),), api="anthropic-messages", model="m"))
        writer.barrier()
        for name in ("claude", "codex", "pi"):
            made = export(tape, name)
            other = Store(tmp_path / name, durable=False)
            again = bring(other, tmp_path / f"{name}.jsonl", made.data)
            blocks = [
                block
                for entry in again.entries(again.head())
                if isinstance(entry.data, User)
                for block in entry.data.content
            ]
            (image,) = [block for block in blocks if isinstance(block, Image)]
            assert image.blob.hash == sha256(PICTURE).hexdigest(), name


def test_atif_counts_cached_tokens_and_pairs_calls_with_results(store):
    with store.create(HERE) as tape, tape.writer() as writer:
        writer.append(User((Text("go"),)))
        usage = Usage(input=10, output=5, cache_read=90, total=105)
        called = ToolCall(id="c_1", name="bash", args=Raw(b'{"command":"ls"}'))
        writer.append(Assistant((Text("Yes."), called), model="m", usage=usage))
        writer.append(ToolResult("c_1", "bash", (Text("a.py"),)))
        writer.barrier()
        made = json.loads(export(tape, "atif").data)
    assert made["schema_version"] == "ATIF-v1.8"
    user, agent = made["steps"]
    assert (user["step_id"], user["source"], agent["source"]) == (1, "user", "agent")
    assert agent["metrics"]["prompt_tokens"] == made["final_metrics"]["total_prompt_tokens"] == 100
    (one,) = agent["tool_calls"]
    assert one["arguments"] == {"command": "ls"}
    (seen,) = agent["observation"]["results"]
    assert (seen["source_call_id"], seen["content"]) == (one["tool_call_id"], "a.py")
    assert made["extra"]["tape"] == tape.id
    assert agent["extra"]["parent"] == user["extra"]["entry"]


@pytest.mark.parametrize("name", ["atif", "simple", "opencode", "otlp"])
def test_a_document_of_a_branch_comes_back(tape, tmp_path, name):
    made = export(tape, name)
    again = bring(Store(tmp_path / "other", durable=False), tmp_path / "out.json", made.data)
    (found,) = list_facts(again)
    assert again.title() == tape.title()
    wanted = next(one for one in list_facts(tape) if ("user", "right") in one)
    if name in {"simple", "otlp"}:  # a summary is a prompt
        wanted = [("user", one[1]) if one[0] == "anchor" else one for one in wanted]
    if name == "simple":  # no usage
        wanted = [(0, 0) if isinstance(one[0], int) else one for one in wanted]
    assert found == wanted


def test_a_document_holds_pictures(store, tmp_path):
    with store.create(HERE) as tape, tape.writer() as writer:
        writer.append(User((Text("look"), Image(blob=tape.blobs.put(PICTURE), mime="image/png"))))
        writer.append(Assistant((Text("A zebra."),), model="m"))
        writer.barrier()
        for name in ("atif", "simple", "opencode", "otlp"):
            other = Store(tmp_path / name, durable=False)
            again = bring(other, tmp_path / f"{name}.json", export(tape, name).data)
            prompt = next(e.data for e in again.entries(again.head()) if isinstance(e.data, User))
            assert [type(block) for block in prompt.content] == [Text, Image], name
            assert prompt.content[1].blob.hash == sha256(PICTURE).hexdigest()


def test_sub_agents_are_inside_a_trajectory_and_tapes_again(store, tmp_path):
    with store.create(HERE) as child, child.writer() as writer:
        writer.append(User((Text("count the zebras"),)))
        writer.append(Assistant((Text("Two."),), model="small"))
        writer.barrier()
    with store.create(HERE) as tape, tape.writer() as writer:
        writer.append(User((Text("go"),)))
        called = ToolCall(id="c_1", name="Task", args=Raw(b'{"prompt":"count"}'))
        writer.append(Assistant((called,), model="large"))
        writer.append(AgentStart("a1", "Explore", "count the zebras", tape=child.id))
        writer.append(ToolResult("c_1", "Task", (Text("Two."),)))
        writer.append(AgentEnd("a1", "Two.", "completed"))
        writer.barrier()
        made = export(tape, "atif")
    document = json.loads(made.data)
    (inner,) = document["subagent_trajectories"]
    (seen,) = document["steps"][1]["observation"]["results"]
    assert seen["subagent_trajectory_ref"] == [{"trajectory_id": inner["trajectory_id"]}]
    assert [step["message"] for step in inner["steps"]] == ["count the zebras", "Two."]
    (tmp_path / "out.json").write_bytes(made.data)
    session, digest = open_session_file(SessionFile(tmp_path / "out.json"))
    other = Store(tmp_path / "other", durable=False)
    main, agent = import_session(other, session, HERE, "out.json", digest)
    again = other.open(main.id)
    starts = [e.data for e in again.entries(again.head()) if isinstance(e.data, AgentStart)]
    assert [start.tape for start in starts] == [agent.id]


def test_spans_have_words_only_if_they_are_asked_for(tape):
    secretive = export_session(tape, None, "otlp", redact=False, skipped=pytest.fail)
    assert b"zebras" not in secretive.data.replace(b'"list the zebras"', b"")
    (resource,) = json.loads(secretive.data)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert scope["scope"]["attributes"] == [
        {"key": "tape.conventions", "value": {"stringValue": CONVENTIONS}}
    ]
    names = [span["name"].split()[0] for span in scope["spans"]]
    assert {*names} == {"invoke_agent", "chat", "execute_tool"}
    assert len({span["spanId"] for span in scope["spans"]}) == len(names)
    turns = {span["spanId"]: span for span in scope["spans"] if "parentSpanId" not in span}
    for span in scope["spans"]:
        turn = turns[span.get("parentSpanId", span["spanId"])]
        assert span["traceId"] == turn["traceId"]
        assert int(turn["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(turn["endTimeUnixNano"])
    assert b"zebra.py" in export(tape, "otlp").data


def test_each_branch_is_a_trajectory_that_names_its_fork(tape):
    made = dict(export_every_branch(tape, "atif", redact=False, skipped=pytest.fail))
    assert {*made} == {*tape.refs().branches}
    forks = [json.loads(one.data)["extra"].get("fork_point") for one in made.values()]
    steps = [
        step["extra"]["entry"] for one in made.values() for step in json.loads(one.data)["steps"]
    ]
    assert {*filter(None, forks)} <= {*steps}
    assert any(forks)


def test_secrets_are_masked_on_request(store):
    secret = "sk-ant-api03-" + "a1B2" * 20
    with store.create(HERE) as tape, tape.writer() as writer:
        writer.append(User((Text(f"use {secret}"),)))
        writer.barrier()
        masked, exact = export(tape, "claude", redact=True), export(tape, "claude")
    assert masked.secrets == 1
    assert secret.encode() not in masked.data
    assert secret.encode() in exact.data


def test_a_tape_without_words_is_refused(store):
    with store.create(HERE) as tape, pytest.raises(UsageError, match="nothing to export"):
        export(tape, "claude")


def test_each_agent_looks_in_its_own_place(tape):
    outline = export(tape, "claude").outline
    environ = {"HOME": "/home/me"}
    uuid = outline.uuid
    assert [str(choose_install_path(name, outline, environ)) for name in ("claude", "codex")] == [
        f"/home/me/.claude/projects/-src-app/{uuid}.jsonl",
        f"/home/me/.codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-{uuid}.jsonl",
    ]
    assert "/home/me/.pi/agent/sessions/--src-app--/" in str(
        choose_install_path("pi", outline, environ)
    )
