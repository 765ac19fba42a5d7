"""What a person is told when a provider refuses or fails, with a real server on loopback."""

from __future__ import annotations

import json
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests import warm
from tests.e2e.terminal import ENTER, Terminal

KEY = "sk-ant-secret-part-1234"


class Failing(BaseHTTPRequestHandler):
    """Answers each request with the status and header of the server."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"error": {"message": "no"}}).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(body)))
        if self.server.wait:
            self.send_header("retry-after", self.server.wait)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def failing():
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        server.address = f"http://127.0.0.1:{server.server_address[1]}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


MODEL = "claude-sonnet-5-5"
REFUSED = f"; the key from ANTHROPIC_API_KEY was refused for {MODEL} at {{address}}: check it"
ASKED = f"; asked for {MODEL} at {{address}} with the key from ANTHROPIC_API_KEY"
SWITCH = "; try again, or switch to another provider or model (-m, /model)"
DOWN = "; it is down or overloaded: try again in 600 s"


@pytest.mark.parametrize(
    ("status", "wait", "code", "advice"),
    [
        (401, "", 6, REFUSED),
        (403, "", 6, ASKED),
        (404, "", 3, ASKED.replace("}", "}/v1/messages")),
        (429, "600", 75, f"; wait 600 s, then try again{ASKED}"),
        (500, "600", 75, f"{SWITCH}{ASKED}"),
        (503, "600", 75, f"{DOWN}{ASKED}"),
    ],
)
def test_each_status_says_what_a_person_can_do(gong, failing, status, wait, code, advice):
    """M229: and what was asked, on stderr, in the events of stream-json and in that of json."""
    failing.status, failing.wait = status, wait
    env = {"ANTHROPIC_BASE_URL": failing.address, "ANTHROPIC_API_KEY": KEY}
    words = f"anthropic API error ({status}): no{advice.format(address=failing.address)}"
    ran = gong("chat", "-p", "x", "-m", "sonnet", code=code, **env)
    assert words in ran.stderr
    form = ("--output-format", "stream-json")
    ran = gong("chat", "-p", "x", "-m", "sonnet", *form, code=code, **env)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    (error,) = [event for event in events if event["type"] == "error"]
    assert error["message"].startswith(words)
    ran = gong("chat", "-p", "x", "-m", "sonnet", "--output-format", "json", code=code, **env)
    assert words in ran.stdout + ran.stderr


NO_RETRIES = "max_retries = 0\n"
"""A setting without which a person waits for minutes."""


def read_line_that(server, wanted):
    """Return the first line of a server of JSON that is wanted."""
    return next(line for line in map(json.loads, server.stdout) if wanted(line))


def ask_server(home, env, verb, *requests, wanted):
    """Return the wanted line of `gong rpc` or `gong acp`, whose session goes in for SESSION."""
    command = [warm.find_commands() / "gong", verb, "-m", "sonnet"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=home, env=env, **pipes) as server:
        session = ""
        for number, (method, params) in enumerate(requests):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            line = json.dumps(request).replace("SESSION", session)
            server.stdin.write(line.encode() + b"\n")
            server.stdin.flush()
            if number < len(requests) - 1:
                answer = read_line_that(
                    server, lambda line, number=number: line.get("id") == number
                )
                session = answer["result"].get("session") or answer["result"].get("sessionId", "")
        line = read_line_that(server, wanted)
        server.stdin.close()
    return line


@pytest.fixture
def served(home, env, failing):
    """Return the variables of a front end whose provider fails at once."""
    (home / ".config/gong/config.toml").write_text(NO_RETRIES)
    return {**env, "ANTHROPIC_BASE_URL": failing.address, "ANTHROPIC_API_KEY": KEY}


@pytest.mark.parametrize(("status", "advice"), [(401, REFUSED), (503, f"{DOWN}{ASKED}")])
def test_every_front_end_says_what_a_person_can_do(home, served, failing, status, advice):
    """M229"""
    failing.status, failing.wait = status, "600"
    words = f"anthropic API error ({status}): no{advice.format(address=failing.address)}"
    line = ask_server(
        *(home, served, "rpc"),
        ("session/new", {"cwd": str(home)}),
        ("prompt", {"session": "SESSION", "text": "x"}),
        wanted=lambda line: line.get("type") == "error",
    )
    assert line["message"].startswith(words)
    line = ask_server(
        *(home, served, "acp"),
        ("initialize", {"protocolVersion": 1}),
        ("session/new", {"cwd": str(home), "mcpServers": []}),
        ("session/prompt", {"sessionId": "SESSION", "prompt": [{"type": "text", "text": "x"}]}),
        wanted=lambda line: line.get("id") == 2,
    )
    assert words in json.dumps(line)
    command = [str(warm.find_commands() / "gong"), "chat", "-m", "sonnet"]
    with Terminal(command, cwd=home, env=served, columns=400) as terminal:
        terminal.wait_for("sonnet")
        terminal.wait_for_keys()
        terminal.type(f"x{ENTER}")
        terminal.wait_for(words)
