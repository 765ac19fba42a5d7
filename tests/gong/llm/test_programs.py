"""The programs claude, codex and gemini as providers of answers.

Their lines are those of claude 2.1.197, codex 0.171.0 and gemini 0.61.0 at a provider on loopback.
`TAPE_PROGRAMS` names a folder with the programs themselves, which then answer, too.
"""

import asyncio
import json
import os
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from gong.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidRequest,
    ModelError,
    RequestTimeout,
)
from gong.llm import Client, Request, Usage
from gong.llm.models import load_presets
from gong.llm.types import StreamFailure, StreamStart, TextDelta, ToolSpec
from tape.context.view import Message
from tape.model.entries import Text, Thinking

PROGRAMS = {"claudecli": "claude", "codexcli": "codex", "geminicli": "gemini"}


def event(**fields):
    return {"type": "stream_event", "event": fields, "session_id": "s"}


def piece(text):
    return event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})


COUNTS = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 4}
CLAUDE = [
    {"type": "system", "subtype": "init", "model": "claude-sonnet-5-5", "tools": []},
    {"type": "system", "subtype": "status", "status": "requesting"},
    event(
        type="message_start",
        message={"id": "msg_1", "model": "claude-sonnet-5-5", "content": [], "usage": COUNTS},
    ),
    event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
    *map(piece, ("Hello", " from", " the loop", "back.")),
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "content": [{"type": "text", "text": "Hello from the loopback."}],
        },
    },
    event(type="content_block_stop", index=0),
    event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 7}),
    event(type="message_stop"),
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "stop_reason": "end_turn",
        "usage": {**COUNTS, "output_tokens": 7},
    },
]
CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"id": "0", "type": "error", "message": "No metadata."}},
    {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 2/5"},
    {"type": "item.completed", "item": {"id": "1", "type": "reasoning", "text": "Thinking of it."}},
    {
        "type": "item.completed",
        "item": {"id": "2", "type": "agent_message", "text": "Hello from the loopback."},
    },
    {
        "type": "turn.completed",
        "usage": {
            "input_tokens": 14,
            "cached_input_tokens": 4,
            "cache_write_input_tokens": 0,
            "output_tokens": 7,
            "reasoning_output_tokens": 2,
        },
    },
]
GEMINI = [
    {"type": "init", "session_id": "s", "model": "gemini-2.5-flash"},
    {"type": "message", "role": "user", "content": "Say hello\n"},
    *(
        {"type": "message", "role": "assistant", "content": text, "delta": True}
        for text in ("Hello", " from the", " loopback.")
    ),
    {
        "type": "result",
        "status": "success",
        "stats": {"total_tokens": 21, "input_tokens": 14, "output_tokens": 5, "cached": 4},
    },
]
LINES = {"claudecli": CLAUDE, "codexcli": CODEX, "geminicli": GEMINI}
STAND_IN = """#!{python}
import json, os, sys, time
from pathlib import Path
files = {{word: Path(word).read_text() for word in sys.argv if word.endswith((".md", ".toml"))}}
system = os.environ.get("GEMINI_SYSTEM_MD")
seen = {{
    "argv": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.getcwd(), "files": files,
    "system": Path(system).read_text() if system else "",
}}
Path({seen!r}).write_text(json.dumps(seen))
{body}
"""


class StandIn:
    """A program on the PATH that says what it is told to, and what it was given."""

    def __init__(self, folder):
        self.folder, self.seen_file = folder, folder / "seen.json"
        self.environ = {"PATH": str(folder), "HOME": str(folder / "home")}

    def write(self, name, lines=None, body=""):
        text = "".join(f"{json.dumps(line)}\n" for line in lines or ())
        self.folder.mkdir(exist_ok=True)
        (self.folder / "lines").write_text(text)
        show = f"print(Path({str(self.folder / 'lines')!r}).read_text(), end='', flush=True)"
        file = self.folder / PROGRAMS[name]
        file.write_text(
            STAND_IN.format(python=sys.executable, seen=str(self.seen_file), body=f"{show}\n{body}")
        )
        file.chmod(0o700)

    @property
    def seen(self):
        return json.loads(self.seen_file.read_text())


@pytest.fixture
def stand_in(tmp_path):
    return StandIn(tmp_path / "bin")


def ask(environ, name, model="default", rows=None, **fields):
    """Return the whole answer to "Say hello", or raise its error."""

    async def run():
        presets = load_presets(rows or {}, environ)
        fields.setdefault("messages", (Message("user", (Text("Say hello"),)),))
        async with Client.from_env(environ, presets=presets) as client:
            request = Request(model=model, provider=name, **fields)
            return await asyncio.wait_for(client.complete(request), 60)

    return asyncio.run(run())


def stream(environ, name):
    """Return the events of an answer to "Hi"."""

    async def run():
        request = Request(
            model="default", provider=name, messages=(Message("user", (Text("Hi"),)),)
        )
        async with Client.from_env(environ) as client:
            return [event async for event in client.stream(request)]

    return asyncio.run(run())


THREE_AND_TWO = {"input_tokens": 3, "output_tokens": 2}


def text_block(text):
    return {"type": "text", "text": text}


USAGES = {
    "claudecli": Usage(10, 7, cache_read=4, total=21),
    "codexcli": Usage(10, 7, 2, cache_read=4, total=21),
    "geminicli": Usage(10, 7, 2, cache_read=4, total=21),
}


@pytest.mark.parametrize("name", LINES)
def test_a_program_answers_in_its_own_lines(stand_in, name):
    """M139 M226: claude's events, codex' items, gemini's pieces; no tools, no session of theirs."""
    stand_in.write(name, LINES[name])
    answer = ask(stand_in.environ, name, system="Be terse.", reasoning_effort="high")
    thoughts = [block.text for block in answer.content if isinstance(block, Thinking)]
    assert answer.text == "Hello from the loopback."
    assert thoughts == (["Thinking of it."] if name == "codexcli" else [])
    assert answer.usage == msgspec.structs.replace(
        USAGES[name], cache_write=answer.usage.cache_write
    )
    assert answer.stop_reason == "stop"
    seen = stand_in.seen
    assert seen["stdin"] == "Say hello"
    # an empty folder of gong's own: nothing of the working folder is read
    assert seen["cwd"] == str(stand_in.folder / f"home/.local/state/gong/programs/{PROGRAMS[name]}")
    words = " ".join(seen["argv"])
    match name:
        case "claudecli":
            assert "--tools  --setting-sources  --strict-mcp-config" in words
            assert "--no-session-persistence" in words
            assert "--effort high" in words
            assert list(seen["files"].values()) == ["Be terse."]
        case "codexcli":
            assert "--ephemeral" in words
            assert "--disable shell_tool" in words
            assert 'model_reasoning_effort="high"' in words
            assert answer.warnings == ("codexcli: No metadata.", "codexcli: Reconnecting... 2/5")
        case _:
            assert 'toolName = "*"\ndecision = "deny"' in next(iter(seen["files"].values()))
            assert seen["system"] == "Be terse."
    assert "-m x" not in words
    ask(stand_in.environ, name, "x")
    assert [
        seen for word, seen in pairwise(stand_in.seen["argv"]) if word in ("-m", "--model")
    ] == ["x"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "claudecli",
            [
                {"type": "assistant", "message": {"id": "1", "content": [text_block(text)]}}
                for text in ("Hel", "Hello, ", "Hello, you.")
            ]
            + [{"type": "result", "subtype": "success", "usage": THREE_AND_TWO}],
        ),
        (
            "codexcli",
            [
                {"type": kind, "item": {"id": "1", "type": "agent_message", "text": text}}
                for kind, text in (
                    ("item.updated", "Hel"),
                    ("item.updated", "Hello, "),
                    ("item.completed", "Hello, you."),
                )
            ]
            + [{"type": "turn.completed", "usage": THREE_AND_TWO}],
        ),
        (
            "geminicli",
            [
                {"type": "message", "role": "assistant", "content": text}
                for text in ("Hel", "Hello, ", "Hello, you.")
            ]
            + [{**GEMINI[-1], "stats": {**THREE_AND_TWO, "total_tokens": 5}}],
        ),
    ],
)  # fmt: skip
def test_cumulative_text_becomes_what_is_new_of_it(stand_in, name, lines):
    """M139: delta = current − last."""
    stand_in.write(name, lines)

    async def run():
        client = Client.from_env(stand_in.environ)
        request = Request(
            model="default", provider=name, messages=(Message("user", (Text("Hi"),)),)
        )
        return [
            event.delta async for event in client.stream(request) if isinstance(event, TextDelta)
        ]

    assert "".join(asyncio.run(run())) == "Hello, you."
    assert len(asyncio.run(run())) > 1
    assert ask(stand_in.environ, name).usage == Usage(3, 2, total=5)


def test_what_came_before_is_written_out(stand_in):
    stand_in.write("claudecli", CLAUDE)
    messages = (
        Message("user", (Text("Who?"),)),
        Message("assistant", (Text("Me."),)),
        Message("user", (Text("Why?"),)),
    )
    tool = ToolSpec("read", "Reads.", msgspec.Raw(b"{}"))
    answer = ask(stand_in.environ, "claudecli", messages=messages, tools=(tool,))
    assert stand_in.seen["stdin"] == (
        "The conversation so far:\n\nUser: Who?\n\nAssistant: Me.\n\n"
        "Answer what comes next:\n\nWhy?"
    )
    assert answer.warnings == ("claudecli answers without the tools of gong",)


REFUSED = {"error": {"message": "prompt refused here", "code": 400}}


def claude_error(status, text):
    message = {"id": "1", "model": "<synthetic>", "content": [text_block(text)]}
    facts = {"type": "result", "subtype": "success", "is_error": True}
    return [
        {"type": "assistant", "message": message},
        {**facts, "api_error_status": status, "result": text},
    ]


def codex_error(text):
    return [{"type": "turn.failed", "error": text and {"message": text}}]


def gemini_error(text):
    return [["no line"], {"type": "result", "status": "error", "error": {"message": text}}]


@pytest.mark.parametrize(
    ("name", "lines", "kind", "words"),
    [
        (
            "claudecli",
            claude_error(400, "API Error: prompt refused here"),
            InvalidRequest,
            "refused",
        ),
        ("claudecli", claude_error(401, "Please run /login"), AuthenticationError, "run /login"),
        ("codexcli", codex_error(json.dumps(REFUSED)), InvalidRequest, "prompt refused here"),
        ("codexcli", codex_error(None), ModelError, "no reason given"),
        (
            "geminicli",
            gemini_error(f"[API Error: {json.dumps(REFUSED)}]"),
            InvalidRequest,
            "refused",
        ),
        ("geminicli", gemini_error(None), ModelError, "no reason given"),
    ],
)
def test_an_error_of_a_program_is_one_of_its_provider(stand_in, name, lines, kind, words):
    stand_in.write(name, lines)
    with pytest.raises(kind, match=words):
        ask(stand_in.environ, name)
    (failure,) = (event for event in stream(stand_in.environ, name) if not is_start(event))
    assert isinstance(failure, StreamFailure)  # no word of it is an answer


def is_start(event):
    return isinstance(event, StreamStart)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('no JSON'); print('Bad key sk-secret-123456789', file=sys.stderr); sys.exit(3)",
         "codex ended with exit code 3: Bad key …"),
        ("", "codex ended with exit code 0: without a word"),
        ("print('x' * 3000)", "sent a line of more than 1 KiB"),
    ],
)  # fmt: skip
def test_a_program_that_ends_or_talks_too_much_is_named(stand_in, body, words):
    stand_in.write("codexcli", CODEX[:1], body)
    with pytest.raises(ModelError, match=words):
        ask(stand_in.environ, "codexcli", rows={"codexcli": {"sizes": {"event": 1024}}})


def test_a_program_that_hangs_is_ended_with_what_it_started(stand_in):
    child = stand_in.folder / "child"
    stand_in.write(
        "claudecli",
        CLAUDE[:4],
        f"import subprocess; p = subprocess.Popen(['/bin/sleep', '600']); "
        f"Path({str(child)!r}).write_text(str(p.pid)); time.sleep(600)",
    )
    with pytest.raises(RequestTimeout, match="did not continue its answer"):
        ask(stand_in.environ, "claudecli", rows={"claudecli": {"timeouts": {"idle": 2.0}}})
    pid = int(child.read_text())
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_program_that_is_not_there_says_how_to_get_it(tmp_path):
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(ConfigurationError, match="there is no program 'codex': install it"):
        ask(environ, "codexcli")


def test_the_file_of_a_session_of_gemini_is_removed_and_no_other(stand_in):
    chats = stand_in.folder / "home/.gemini/tmp/p/chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-11-28T20-30-aaaaaaaa.jsonl").write_text("{}")
    stand_in.write(
        "geminicli",
        GEMINI,
        f"id = sys.argv[sys.argv.index('--session-id') + 1]\n"
        f"Path({str(chats)!r}, f'session-2026-11-28T20-31-{{id[:8]}}.jsonl').write_text(id)",
    )
    ask(stand_in.environ, "geminicli")
    assert [file.name for file in chats.iterdir()] == ["session-2026-11-28T20-30-aaaaaaaa.jsonl"]


@contextmanager
def serve_models():
    """Serve the three APIs on loopback: each answers "Hello from the loopback." in pieces."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            path = self.path.partition("?")[0]
            if path.endswith("/messages"):
                events = [line["event"] for line in CLAUDE if line["type"] == "stream_event"]
            elif path.endswith("/responses"):
                text = {
                    "type": "output_text",
                    "text": "Hello from the loopback.",
                    "annotations": [],
                }
                item = {"id": "m", "type": "message", "role": "assistant", "content": [text]}
                usage = {"input_tokens": 14, "output_tokens": 7, "total_tokens": 21}
                answer = {"id": "r", "output": [item], "usage": usage}
                events = [
                    {"type": "response.created", "response": {"id": "r"}},
                    {"type": "response.output_item.done", "output_index": 0, "item": item},
                    {"type": "response.completed", "response": answer},
                ]
            elif "generateContent" in path.lower() or "GenerateContent" in path:
                part = {"role": "model", "parts": [{"text": "Hello from the loopback."}]}
                counts = {"promptTokenCount": 14, "candidatesTokenCount": 7, "totalTokenCount": 21}
                candidate = {"content": part, "index": 0, "finishReason": "STOP"}
                events = [{"candidates": [candidate], "usageMetadata": counts}]
            else:
                self.send_error(404)
                return
            del body
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for value in events:
                name = f"event: {value['type']}\n" if "type" in value else ""
                self.wfile.write(f"{name}data: {json.dumps(value)}\n\n".encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TAPE_PROGRAMS"), reason="TAPE_PROGRAMS is not set")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_itself_answers(tmp_path, name):
    """M139: the real programs, at a provider on loopback, leave no session."""
    path = f"{os.environ['TAPE_PROGRAMS']}:{os.environ['PATH']}"
    with serve_models() as url:
        environ = {
            "PATH": path,
            "HOME": str(tmp_path),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-an-example",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "GEMINI_API_KEY": "an-example",
            "GOOGLE_GEMINI_BASE_URL": url,
            "CODEX_API_KEY": "sk-an-example",
        }
        (tmp_path / ".codex").mkdir()
        (tmp_path / ".codex/config.toml").write_text(
            f'model_provider = "near"\n[model_providers.near]\nname = "near"\n'
            f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n'
        )
        (tmp_path / ".gemini").mkdir()
        (tmp_path / ".gemini/settings.json").write_text(
            '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
        )
        model = {"claudecli": "claude-sonnet-5-5", "codexcli": "gpt-5"}.get(
            name, "gemini-2.5-flash"
        )
        answer = ask(environ, name, model, system="Be terse.")
    assert answer.text == "Hello from the loopback."
    assert answer.usage.output == 7
    sessions = [
        *tmp_path.glob(".claude/projects/**/*.jsonl"),
        *tmp_path.glob(".codex/sessions/**/*.jsonl"),
        *tmp_path.glob(".gemini/tmp/*/chats/*"),
    ]
    assert sessions == []
