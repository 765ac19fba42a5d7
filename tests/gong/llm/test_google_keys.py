"""Tokens of a login at Google: google-auth reads a real file and asks a server on loopback."""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gong.errors import AuthenticationError
from gong.llm import Client
from gong.llm.google_keys import GoogleKeys
from gong.llm.models import load_presets
from tests.wires.server import Reply, WireServer, accumulated, events_of, json_reply
from tests.wires.table import HELLO, WIRES

REFRESH = "1//zq-refresh-token-of-google"
PRIVATE = (
    rsa.generate_private_key(public_exponent=65537, key_size=2048)
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)
GOOGLE = next(wire for wire in WIRES if wire.preset == "google")


class TokenServer(BaseHTTPRequestHandler):
    """Gives tokens that are numbered, or refuses."""

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.requests.append(asked)
        number = len(self.server.requests)
        body = {"access_token": f"ya29.token-{number}", "expires_in": 3600}
        if self.server.refuses:
            body = {"error": "invalid_grant", "error_description": f"expired: {REFRESH}"}
        sent = json.dumps(body).encode()
        self.send_response(400 if self.server.refuses else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


@pytest.fixture
def tokens():
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenServer)
    server.requests, server.refuses = [], False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def environ(tmp_path, tokens, monkeypatch):
    """Return an environment with the file of a login, whose tokens are the server's."""
    file = tmp_path / "adc.json"
    login = {"type": "service_account", "client_email": "me@p.example", "private_key": PRIVATE}
    address = f"http://127.0.0.1:{tokens.server_address[1]}/token"
    file.write_text(json.dumps({**login, "token_uri": address}))
    own = {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "NO_GCE_CHECK": "true"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **own}


async def test_a_token_is_got_once_and_replaced_when_it_is_refused(environ, tokens):
    source = GoogleKeys("vertex", environ)
    first, again = await source.get_key(), await source.get_key()
    assert (first.value, again.value) == ("ya29.token-1", "ya29.token-1")
    assert 3000 < first.expires - time.time() < 3700
    other = await source.replace_key(first)
    assert other.value == "ya29.token-2"
    assert len(tokens.requests) == 2


async def test_a_call_to_vertex_carries_the_token(environ, tokens):
    """M138."""
    refusal = json_reply(401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}})
    async with WireServer(refusal, Reply(GOOGLE.said("hi"))) as server:
        presets = load_presets({"vertex": {"base_urls": {"global": server.url}, "project": "p"}})
        provider, _ = Client.from_env(environ, presets=presets).resolve("vertex/gemini-3")
        events = await events_of(provider, HELLO)
    assert accumulated(events).text == "hi"
    sent = [seen.headers["authorization"] for seen in server.requests]
    assert sent == ["Bearer ya29.token-1", "Bearer ya29.token-2"]


async def test_a_login_that_is_over_says_how_to_log_in(environ, tokens):
    tokens.refuses = True
    with pytest.raises(AuthenticationError) as failed:
        await GoogleKeys("vertex", environ).get_key()
    text = str(failed.value)
    assert text.endswith("has expired or was revoked: run gcloud auth application-default login")
    assert REFRESH not in text


@pytest.mark.parametrize("data", ["{", '{"type": "authorized_user"}', '{"a": 1}', "\x00", "[]"])
async def test_a_damaged_or_foreign_file_is_one_line(environ, tmp_path, data):
    (tmp_path / "adc.json").write_text(data)
    with pytest.raises(AuthenticationError, match=r"adc\.json is of no use \(\w+\): run gcloud"):
        await GoogleKeys("vertex", environ).get_key()


async def test_without_a_login_all_ways_to_a_token_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    with pytest.raises(AuthenticationError) as failed:
        await GoogleKeys("vertex", {"HOME": str(tmp_path)}).get_key()
    assert str(failed.value) == (
        "no token for vertex: run gcloud auth application-default login, or set key_command in "
        '[providers.vertex] to "gcloud auth print-access-token"'
    )


def test_without_google_auth_the_error_says_what_to_install(tmp_path):
    code = (
        "import sys, asyncio; sys.modules['google'] = sys.modules['google.auth'] = None\n"
        "from gong.llm.google_keys import GoogleKeys\n"
        "asyncio.run(GoogleKeys('vertex', {'HOME': sys.argv[1]}).get_key())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False
    )
    assert "no token for vertex: pip install 'gong[vertex]' and run gcloud" in done.stderr
