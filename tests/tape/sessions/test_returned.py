"""What was exported and continued by another agent is a branch of the tape that it came from."""

from __future__ import annotations

import json
from itertools import count

import pytest
from msgspec import Raw

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import (
    Anchor,
    Assistant,
    Context,
    CoveredRange,
    Model,
    Summary,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from tape.sessions.batch import ImportMemory, import_files
from tape.sessions.export import SESSION_WRITERS, export_session
from tape.sessions.sources import SessionFile
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import write_lines

HERE = Beginning("/src/app", "gong/1")
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
CONTINUED = tuple(name for name in SESSION_WRITERS if name != "otlp")
"""Formats that somebody can continue: spans only tell what was."""


@pytest.fixture
def store(tmp_path):
    ticks = count(1_780_000_000, 2)
    return Store(tmp_path / "store", durable=False, clock=lambda: next(ticks) * 1_000_000)


def answer(*content, stop="stop", identity=None):
    return Assistant(
        content,
        *("anthropic", "anthropic-messages", "claude-sonnet-5"),
        usage=Usage(input=10, output=3),
        stop_reason=stop,
        response_id=identity,
    )


def make_call(identity, **arguments):
    return ToolCall(identity, "read", Raw(json.dumps(arguments).encode()))


@pytest.fixture
def tape(store):
    """A session of ours: results in another order, a stop, the same prompt twice, a compaction."""
    tape = store.create(HERE)
    with tape.writer() as writer:
        writer.append(Model("anthropic", "claude-sonnet-5", effort="high"))
        writer.append(Context("user", "instructions", (Text("Be brief."),)))
        writer.append(User((Text(f"use {SECRET} to list the zebras"),)))
        calls = make_call("t1", path="a.py"), make_call("t2", path="b.py")
        writer.append(answer(Thinking("hm"), Text("I look."), *calls, stop="tool_calls"))
        writer.append(ToolResult("t2", "read", (Text("zebra of b"),)))
        writer.append(ToolResult("t1", "read", (Text("zebra of a"),)))
        writer.append(answer(Text("Two zebras.")))
        writer.append(User((Text("again"),)))
        writer.append(answer(stop="aborted"))
        writer.append(User((Text("again"),)))
        writer.append(answer(Text("Still two.")))
        writer.append(Model("openai", "gpt-5"))
        writer.append(User((Text("in short?"),)))
        writer.append(answer(Text("Zebras: 2."), identity="r9"))
    return tape


def move_on(tape):
    with tape.writer() as writer:
        writer.append(User((Text("ours goes on"),)))
        writer.append(answer(Text("Yes, ours.")))


def export(tape, name):
    return export_session(tape, None, name, redact=True, skipped=pytest.fail, with_content=True)


def go_on(name, data, words):
    """Return a file as its agent leaves it after one more turn: `words`, and "ok: words"."""
    lines = [json.loads(line) for line in data.splitlines()]
    time = f"2027-01-01T00:00:{len(words):02}.000Z"
    turn = ("user", words), ("assistant", f"ok: {words}")
    if name in {"claude", "codex", "pi"}:
        more = [{"timestamp": time, **line} for line in _LINES[name](lines, *turn)]
        return write_lines(*lines, *more)
    (document,) = lines
    for role, text in turn:
        _DOCUMENTS[name](document, role, text)
    return write_lines(document)


def _add_claude(lines, *turn):
    told = [one for one in lines if one.get("uuid")][-1]
    base = {key: told[key] for key in ("sessionId", "cwd", "version", "isSidechain")}
    parent = told["uuid"]
    for role, text in turn:
        identity = f"{len(text):08x}-0000-4000-8000-0000000000{role[:1].encode().hex()}"
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        if role == "assistant":
            message |= {"id": f"msg_{identity}", "model": "claude-opus-5"}
        yield base | {"type": role, "uuid": identity, "parentUuid": parent, "message": message}
        parent = identity


def _add_codex(_lines, prompt, answer):
    words, said = prompt[1], answer[1]
    turn = {"cwd": "/src/app", "model": "gpt-5.1", "approval_policy": "never"}
    for kind, payload in (
        ("event_msg", {"type": "task_started", "turn_id": words}),
        ("turn_context", turn),
        ("response_item", _tell("user", "input_text", words)),
        ("event_msg", {"type": "user_message", "message": words}),
        ("event_msg", {"type": "agent_message", "message": said}),
        ("response_item", _tell("assistant", "output_text", said)),
        ("event_msg", {"type": "task_complete", "turn_id": words}),
    ):
        yield {"type": kind, "payload": payload}


def _add_pi(lines, *turn):
    parent = lines[-1]["id"]
    for role, text in turn:
        identity = f"{role[0]}{len(text):07x}"
        told = {"role": role, "content": [{"type": "text", "text": text}]}
        yield {"type": "message", "id": identity, "parentId": parent, "message": told}
        parent = identity


_LINES = {"claude": _add_claude, "codex": _add_codex, "pi": _add_pi}


def _add_opencode(document, role, text):
    identity = f"msg_f{len(document['messages']):025}"
    part = {"type": "text", "text": text, "id": f"prt_{identity}"}
    info = {"id": identity, "role": role, "time": {"created": 1_800_000_000_000}}
    document["messages"].append({"info": info, "parts": [part]})


def _add_atif(document, role, text):
    number, source = len(document["steps"]) + 1, {"assistant": "agent"}.get(role, role)
    document["steps"].append({"step_id": number, "source": source, "message": text})


def _add_simple(document, role, text):
    content = [{"type": "text", "text": text}]
    document["messages"].append({"role": role, "content": content})


_DOCUMENTS = {"opencode": _add_opencode, "atif": _add_atif, "simple": _add_simple}


def _tell(role, kind, text):
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def bring(store, path, data):
    """Import a file as `tape import` does, and return what came of it."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    (done,) = import_files(store, [SessionFile(path)], HERE, ImportMemory(store))
    assert done.error is None
    return done.tapes


def list_words(tape, branch):
    return [
        (one.data.entry_type, join_texts(one.data.content))
        for one in tape.entries(tape.head(branch))
        if isinstance(one.data, User | Assistant | ToolResult)
    ]


def added_to(tape, branch, common):
    words = list_words(tape, branch)
    assert words[: len(common)] == common
    return words[len(common) :]


def turn(words):
    return [("user", words), ("assistant", f"ok: {words}")]


@pytest.mark.parametrize("name", CONTINUED)
def test_what_another_agent_continued_is_a_branch(store, tape, tmp_path, name):
    before, count = list_words(tape, "main"), len(store.folders())
    data = go_on(name, export(tape, name).data, "and giraffes?")
    (done, *_) = bring(store, tmp_path / "a" / "s.jsonl", data)
    assert (done.id, len(store.folders())) == (tape.id, count)
    assert list_words(tape, "main") == before
    (branch,) = set(tape.refs().branches) - {"main"}
    assert branch.startswith(f"{name}-")
    assert added_to(tape, branch, before) == turn("and giraffes?")
    # it goes on there, and a second look adds nothing
    (more, *_) = bring(store, tmp_path / "a" / "s.jsonl", go_on(name, data, "and lions, too?"))
    assert more.added > 0
    both = [*turn("and giraffes?"), *turn("and lions, too?")]
    assert added_to(tape, branch, before) == both
    (again, *_) = bring(store, tmp_path / "b" / "s.jsonl", go_on(name, data, "and lions, too?"))
    assert (again.added, len(tape.refs().branches)) == (0, 2)
    assert not [*verify(tape, Counts())]


@pytest.mark.parametrize("name", CONTINUED)
def test_new_turns_of_both_sides_are_branches(store, tape, tmp_path, name):
    before, data = list_words(tape, "main"), export(tape, name).data
    move_on(tape)
    ours = list_words(tape, "main")
    bring(store, tmp_path / "a" / "s.jsonl", go_on(name, data, "and giraffes?"))
    assert list_words(tape, "main") == ours
    (branch,) = set(tape.refs().branches) - {"main"}
    assert added_to(tape, branch, before) == turn("and giraffes?")


@pytest.mark.parametrize("name", CONTINUED)
def test_an_export_and_a_later_one_are_two_branches(store, tape, tmp_path, name):
    before, early = list_words(tape, "main"), export(tape, name).data
    move_on(tape)
    ours, late = list_words(tape, "main"), export(tape, name).data
    bring(store, tmp_path / "a" / "s.jsonl", go_on(name, early, "and giraffes?"))
    bring(store, tmp_path / "b" / "s.jsonl", go_on(name, late, "and lions, too?"))
    first, second = sorted(set(tape.refs().branches) - {"main"})
    assert added_to(tape, first, before) == turn("and giraffes?")
    assert added_to(tape, second, ours) == turn("and lions, too?")
    assert len(store.folders()) == 1


@pytest.mark.parametrize("name", SESSION_WRITERS)
def test_an_unchanged_export_adds_nothing(store, tape, tmp_path, name):
    refs = tape.refs()
    for done in bring(store, tmp_path / "a" / "s.jsonl", export(tape, name).data):
        assert (done.id, done.added) == (tape.id, 0)
    assert tape.refs() == refs
    assert len(store.folders()) == 1


@pytest.mark.parametrize("name", CONTINUED)
def test_a_tape_with_branches_and_a_summary_comes_back(store, tape, tmp_path, name):
    path = tape.entries(tape.head())
    kept = tape.newest(tape.head(), 2)
    tape.fork(tape.find_ancestor(tape.head(), 4).head, "side", why="test")
    with tape.writer("side") as writer:
        writer.append(User((Text("in short?"),)))
        writer.append(answer(Text("On the side: 2.")))
    with tape.writer("main") as writer:
        covers = CoveredRange(path[0].id, path[-1].id, len(path))
        writer.anchor(
            Anchor(kind="compaction", summary=Summary("Zebras."), kept=kept, covers=covers)
        )
        writer.append(User((Text("and now?"),)))
        writer.append(answer(Text("Done.")))
    before, side = list_words(tape, "main"), list_words(tape, "side")
    bring(store, tmp_path / "a" / "s.jsonl", go_on(name, export(tape, name).data, "more?"))
    (branch,) = set(tape.refs().branches) - {"main", "side"}
    assert added_to(tape, branch, before) == turn("more?")
    assert list_words(tape, "side") == side
    assert len(store.folders()) == 1


def test_a_file_of_a_tape_that_is_not_here_is_a_tape_of_its_own(store, tape, tmp_path):
    other = Store(tmp_path / "other", durable=False)
    data = go_on("claude", export(tape, "claude").data, "and giraffes?")
    (done,) = bring(other, tmp_path / "a" / "s.jsonl", data)
    assert done.id != tape.id
    assert done.added > 10
