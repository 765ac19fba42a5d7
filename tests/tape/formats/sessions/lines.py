"""Session files of other agents, written line by line."""

from __future__ import annotations

import json
from itertools import count

from tape.formats.sessions.loading import detect_tool, load_reader
from tape.model.entries import BlobRef, Start, join_texts
from tape.sessions.import_ import import_session
from tape.store.store import Beginning


def write_lines(*lines) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def read_lines(tool, data, name="name"):
    """Return the session in the lines of a file whose content tells the agent."""
    lines = data.splitlines()
    assert detect_tool(lambda: lines) == tool
    return load_reader(tool).read_session(lambda: lines, name)


def list_payloads(session):
    steps = session.read_steps(lambda data: BlobRef("0" * 64, len(data)))
    return [one for step in steps for one in step.payloads]


def store_session(store, session):
    (done,) = import_session(store, session, Beginning("/", "t"), "f", "0" * 64)
    return done


def describe_branches(store, identity):
    """Return the kinds and words of each branch of a tape, without its start."""
    with store.open(identity) as tape:
        return {
            branch: [
                (type(one.data).__name__, join_texts(getattr(one.data, "content", ())))
                for one in tape.entries(tape.head(branch))
                if not isinstance(one.data, Start)
            ]
            for branch in tape.refs().branches
        }


class ClaudeFile:
    """A transcript of Claude Code that grows; each method adds a line and returns its uuid."""

    def __init__(self, session="5c0375b4-57a5-4f26-b12d-d022ee4e51b7", cwd="/src/app"):
        self.session, self.cwd = session, cwd
        self.lines = []
        self._seconds = count()

    @property
    def data(self) -> bytes:
        return write_lines(*self.lines)

    def add(self, kind, identity, parent, **more):
        self.lines.append(
            {
                "type": kind,
                "uuid": identity,
                "parentUuid": parent,
                "isSidechain": False,
                "sessionId": self.session,
                "cwd": self.cwd,
                "gitBranch": "main",
                "version": "2.1.300",
                "timestamp": f"2026-05-01T10:00:{next(self._seconds):02}.000Z",
                **more,
            }
        )
        return identity

    def say(self, identity, parent, text, **more):
        return self.add("user", identity, parent, message={"role": "user", "content": text}, **more)

    def answer(self, identity, parent, *content, message=None, stop=None, usage=None, **more):
        whole = {
            "id": message or f"msg_{identity}",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [*content],
            "stop_reason": stop,
            "usage": usage or {"input_tokens": 3, "output_tokens": 5},
        }
        return self.add("assistant", identity, parent, message=whole, **more)

    def result(self, identity, parent, call, text, **more):
        piece = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.add(
            "user", identity, parent, message={"role": "user", "content": [piece]}, **more
        )


def text(words):
    return {"type": "text", "text": words}


def call(identity, name="Bash", **given):
    return {"type": "tool_use", "id": identity, "name": name, "input": given or {"command": "ls"}}


class CodexFile:
    """A rollout of Codex that grows."""

    def __init__(self, session="0199aaaa-0000-7000-8000-000000000001", **facts):
        self._seconds = count()
        self.lines = []
        self.add(
            "session_meta", {"id": session, "cwd": "/src/app", "model_provider": "openai"} | facts
        )

    @property
    def data(self) -> bytes:
        return write_lines(*self.lines)

    def add(self, kind, payload):
        time = f"2026-05-01T10:00:{next(self._seconds):02}.000Z"
        self.lines.append({"timestamp": time, "type": kind, "payload": payload})

    def item(self, **item):
        self.add("response_item", item)

    def event(self, kind, **event):
        self.add("event_msg", {"type": kind, **event})

    def message(self, role, words):
        kind = "input_text" if role == "user" else "output_text"
        self.item(type="message", role=role, content=[{"type": kind, "text": words}])

    def tokens(self, given, said, total, cached=0):
        last = {"input_tokens": given, "output_tokens": said, "cached_input_tokens": cached}
        self.event(
            "token_count",
            info={"last_token_usage": last, "total_token_usage": {"total_tokens": total}},
        )
