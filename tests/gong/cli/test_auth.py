import json
import stat
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pexpect
import pytest

from tests.gong.logins.authority import serve_authority

KEY = "sk-ant-secret-part-1234"
GONG = str(Path(sys.executable).parent / "gong")


def test_login_status_logout(gong, home):
    """M184: auth login|status|logout; 0600, source and last four characters only."""
    told = gong("auth", "login", "anthropic", stdin=f"{KEY}\n")
    file = home / ".config/gong/credentials.json"
    assert told.stdout == f"the key for anthropic is saved in {file}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    status = gong("auth", "status")
    assert status.stdout.split("\n")[1].split() == ["anthropic", "…1234", "credentials.json"]
    assert json.loads(gong("auth", "status", "--json").stdout) == [
        {"provider": "anthropic", "source": "credentials.json", "ending": "…1234"}
    ]
    assert "secret" not in told.stdout + told.stderr + status.stdout
    gong("auth", "logout", "anthropic")
    assert "no keys" in gong("auth", "status").stdout
    assert "no key for anthropic" in gong("auth", "logout", "anthropic", code=3).stderr
    assert "name a provider" in gong("auth", "logout", "", code=2).stderr


def test_a_variable_goes_before_a_kept_key_and_login_says_so(gong):
    """M184: env overrides."""
    env = {"OPENAI_API_KEY": "sk-from-the-env-5678"}
    told = gong("auth", "login", "openai", stdin=f"{KEY}\n", **env)
    assert "OPENAI_API_KEY is set and takes precedence" in told.stderr
    rows = [line.split() for line in gong("auth", "status", **env).stdout.strip().split("\n")[1:]]
    assert ["openai", "…5678", "OPENAI_API_KEY"] in rows
    rows = [line.split() for line in gong("auth", "status").stdout.strip().split("\n")[1:]]
    assert rows == [
        ["openai", "…1234", "credentials.json"],
        ["openai-chat", "…1234", "credentials.json"],
    ]


@pytest.mark.parametrize(
    ("name", "stdin", "code", "words"),
    [
        ("nobody", KEY, 3, "no provider 'nobody'"),
        ("copilot", KEY, 2, "not served yet"),
        ("anthropic", "", 2, "not a key"),
        ("anthropic", "two words secret\n", 2, "not a key"),
    ],
)
def test_what_cannot_be_kept_is_one_line(gong, home, name, stdin, code, words):
    told = gong("auth", "login", name, stdin=stdin, code=code).stderr
    assert words in told
    assert "secret" not in told
    assert not (home / ".config/gong/credentials.json").exists()


def test_a_typed_key_is_not_seen(env):
    """M184: prompts hidden; a key is never an argument."""
    child = pexpect.spawn(GONG, ["auth", "login", "xai"], env=env, encoding="utf-8", timeout=120)
    child.expect("Key for xAI: ")
    child.sendline(KEY)
    child.expect(pexpect.EOF)
    assert "the key for xai is saved" in child.before
    assert "secret" not in child.before
    child.wait()
    assert child.exitstatus == 0


@pytest.fixture
def authority(home):
    """An authority, and a provider that has its login."""
    with serve_authority() as authority:
        rows = "\n".join(
            f"{name} = {json.dumps(value)}" for name, value in authority.settings().items()
        )
        (home / ".config/gong/config.toml").write_text(
            f"""
[providers.house]
api = "openai-chat"
base_url = "{authority.address}/v1"
auth = "x-api-key"

[providers.house.login]
{rows}
"""
        )
        yield authority


def test_a_device_login_is_kept_shown_and_withdrawn(gong, home, authority):
    """M184 M226: `auth login` by a code, `auth list|status` with the time left, `auth logout`."""
    login = gong("auth", "login", "house", "--device")
    file = home / ".config/gong/credentials.json"
    assert (
        f"open this address on any device, and type ABCD-EFGH there: {authority.address}/type"
        in (login.stderr)
    )
    assert login.stdout == (
        f"logged in at house: saved in {file}; it expires in 59m and is refreshed\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    status = gong("auth", "status")
    assert [line.split() for line in status.stdout.split("\n")[:2]] == [
        ["PROVIDER", "KEY", "FROM", "EXPIRES"],
        ["house", "…en-1", "credentials.json", "in", "59m"],
    ]
    (row,) = json.loads(gong("auth", "status", "--json").stdout)
    assert (row["provider"], row["type"], row["ending"]) == ("house", "oauth", "…en-1")
    listed = gong("auth", "list").stdout.split("\n")
    assert listed[1].split()[:2] == ["house", "login"]
    assert json.loads(gong("auth", "list", "--json").stdout)[0]["expires_at"] == row["expires_at"]
    assert "token-1" not in login.stdout + login.stderr + status.stdout
    out = gong("auth", "logout", "house")
    assert out.stdout == "the login at house is withdrawn and forgotten\n"
    assert authority.seen[-1] == (
        "/revoke",
        {"client_id": "my-client", "token": "refresh-1", "token_type_hint": "refresh_token"},
    )
    assert "nothing is saved" in gong("auth", "list").stdout


def test_a_browser_login_shows_its_address_and_waits(env, authority):
    """M226."""
    child = pexpect.spawn(GONG, ["auth", "login", "house"], env=env, encoding="utf-8", timeout=120)
    child.setwinsize(24, 1000)
    child.expect(r"open this address in a browser of this machine: (http\S+)")
    with urlopen(child.match[1], timeout=60) as page:
        assert b"You can close this page" in page.read()
    child.expect("logged in at house: saved in .*; it expires in 59m and is refreshed")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_a_call_has_the_token_of_the_login_and_a_new_one_after_a_refusal(gong, authority):
    """M184: the token is sent as a bearer's, refreshed when it ends or its host refuses it."""
    gong("auth", "login", "house", "--device")
    answer = gong("-p", "hello", "-m", "house/m")
    assert answer.stdout == "Here I am.\n"
    authority.number += 1  # the host takes another token now
    authority.refresh = "refresh-1"
    assert gong("-p", "hello", "-m", "house/m").stdout == "Here I am.\n"
    calls = [seen for path, seen in authority.seen if path == "call"]
    assert calls[-2:] == ["Bearer access-token-1", "Bearer access-token-3"]
    authority.number += 1
    authority.refresh = "another"
    told = gong("-p", "hello", "-m", "house/m", code=6).stderr
    assert "the login at house cannot be refreshed" in told
    assert "gong auth login house" in told
    assert "token-3" not in told


def test_a_login_that_cannot_be_withdrawn_is_forgotten_all_the_same(gong, authority):
    """M184."""
    gong("auth", "login", "house", "--device")
    authority.answers["/revoke"] = [(503, b"later")]
    told = gong("auth", "logout", "house").stderr
    assert "the login at house is forgotten here and not withdrawn: " in told
    assert "no key for house" in gong("auth", "logout", "house", code=3).stderr


def test_a_login_that_is_refused_keeps_what_was_saved(gong, authority):
    gong("auth", "login", "house", "--key", stdin="sk-a-key-of-house\n")
    authority.answers["/token"] = [(400, {"error": "access_denied"})]
    told = gong("auth", "login", "house", "--device", code=6).stderr
    assert "the login at house was refused there" in told
    assert "…ouse" in gong("auth", "status").stdout
    told = gong("auth", "login", "xai", "--browser", code=2).stderr
    assert "xai has no login: set client_id and addresses in [providers.xai.login]" in told


class Echo(BaseHTTPRequestHandler):
    """Refuses every key and says which one it was."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        sent = self.headers["x-api-key"] or self.headers["api-key"]
        said = f"no such key: {sent}"
        error = {"type": "authentication_error", "message": said}
        body = json.dumps({"type": "error", "error": error}).encode()
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.keys.append(sent)

    def log_message(self, *_):
        pass


@pytest.fixture
def echo():
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.keys = []
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_kept_key_is_used_and_gets_into_no_error_and_no_tape(gong, home, echo):
    """M150, M184: a refused key is told once, without the key, and never recorded."""
    gong("auth", "login", "anthropic", stdin=f"{KEY}\n")
    env = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{echo.server_address[1]}",
        "TAPE_HOME": str(home / "tapes"),
    }
    told = gong("chat", "-p", "x", "-m", "sonnet", code=6, **env)
    assert echo.keys == [KEY]
    assert "anthropic API error (401): no such key: …" in told.stderr
    assert "; the key from credentials.json was refused for claude-sonnet-" in told.stderr
    assert f" at {env['ANTHROPIC_BASE_URL']}: check it" in told.stderr
    files = [file for file in (home / "tapes").rglob("*") if file.is_file()]
    tape = b"".join(file.read_bytes() for file in files)
    assert b"AuthenticationError" in tape
    assert b"secret" not in tape + told.stderr.encode() + told.stdout.encode()


def test_a_refused_key_is_reported_with_its_variable(gong, echo):
    """What to do about a 401, without the key."""
    address = f"http://127.0.0.1:{echo.server_address[1]}/v1"
    env = {"AZURE_BASE_URL": address, "AZURE_OPENAI_API_KEY": "sk-other-secret-1234"}
    told = gong("chat", "-p", "x", "-m", "azure/m", code=6, **env)
    assert (
        f"; the key from AZURE_OPENAI_API_KEY was refused for m at {address}: a key belongs to one "
        f"resource: see whether {address} is its own"
    ) in told.stderr
    assert "secret" not in told.stderr


def test_azure_without_a_resource_says_what_names_it(gong):
    told = gong("chat", "-p", "x", "-m", "azure/m", code=2, AZURE_OPENAI_API_KEY="sk-x-1234567")
    assert told.stderr == (
        "gong: azure needs a resource: set AZURE_OPENAI_RESOURCE_NAME or AZURE_RESOURCE_NAME, or "
        "resource in [providers.azure] of config.toml\n"
    )


def test_a_session_says_what_it_cost(gong, home):
    """M183: in the document of -p and in the entry; free for what runs here."""
    told = json.loads(gong("chat", "-p", "hello", "--output-format", "json").stdout)
    assert told["cost"] == {"currency": "USD", "amount": 0.0}
