"""What a person is told when a provider refuses or fails, with a real server on loopback."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

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


@pytest.mark.parametrize(
    ("status", "wait", "code", "advice"),
    [
        (401, "", 6, "; the key from ANTHROPIC_API_KEY was refused by {address}: check it"),
        (403, "", 6, "; asked at {address}"),
        (404, "", 3, "; asked at {address}"),
        (429, "600", 75, "; wait 600 s, then try again"),
        (500, "600", 75, "; try again, or switch to another provider or model (-m, /model)"),
        (503, "600", 75, "; it is down or overloaded: try again in 600 s"),
    ],
)
def test_each_status_says_what_a_person_can_do(gong, failing, status, wait, code, advice):
    """M229: on stderr, in the events of stream-json and in the document of json."""
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
