"""Saved logins: used while they hold, refreshed once for all processes, named when they end."""

import json
import subprocess
import sys

import msgspec
import pytest

from gong.credentials import Credentials, SavedLogin
from gong.errors import AuthenticationError, NetworkError
from gong.logins.refresh import get_token
from gong.logins.settings import LoginSettings
from tape.clock import format_timestamp, read_clock


@pytest.fixture
def environ(tmp_path):
    return {"HOME": str(tmp_path)}


@pytest.fixture
def settings(authority):
    return msgspec.convert(authority.settings(), LoginSettings)


def save(environ, seconds, refresh="refresh-0", token="access-token-0"):
    now = read_clock()
    expires = format_timestamp(now + seconds * 1_000_000)
    login = SavedLogin(token, refresh, expires)
    Credentials.from_environ(environ).save_login("house", login, format_timestamp(now))


def test_a_token_is_used_until_shortly_before_its_end(environ, settings, authority):
    """M184: type, tokens and expiry are kept; a token holds until it expires or is refused."""
    save(environ, 3600)
    assert get_token("house", settings, environ).oauth_token == "access-token-0"
    assert authority.seen == []
    assert get_token("house", settings, environ, refused="access-token-0").oauth_token == (
        "access-token-1"
    )
    save(environ, 30, "refresh-1")
    assert get_token("house", settings, environ).oauth_token == "access-token-2"
    sent = authority.seen[-1][1]
    assert sent == {
        "client_id": "my-client",
        "grant_type": "refresh_token",
        "refresh_token": "refresh-1",
    }
    (record,) = json.loads(Credentials.from_environ(environ).file.read_bytes())
    assert (record["type"], record["oauth_token"]) == ("oauth", "access-token-2")
    assert record["refresh_token"] == "refresh-2"


_ASK = """
import json, os, sys
import msgspec
from gong.logins.refresh import get_token
from gong.logins.settings import LoginSettings
settings = msgspec.json.decode(sys.argv[1], type=LoginSettings)
sys.stdin.readline()
print(get_token("house", settings, {"HOME": os.environ["HOME"]}).oauth_token)
"""


@pytest.mark.slow
def test_ten_processes_refresh_once(environ, authority):
    """M184: ten processes, one refresh; the authority takes each refresh token only once."""
    save(environ, 10)
    argument = json.dumps(authority.settings())
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", _ASK, argument],
            env={**environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(10)
    ]
    for process in asking:  # all begin together
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [process.communicate()[0].strip() for process in asking]
    assert printed == ["access-token-1"] * 10
    assert authority.count("/token") == 1


def test_an_authority_that_gives_no_new_refresh_token_keeps_the_old_one(
    environ, settings, authority
):
    save(environ, 10)
    authority.answers["/token"] = [(200, {"access_token": "access-token-9", "expires_in": "60"})]
    login = get_token("house", settings, environ)
    assert (login.oauth_token, login.refresh_token) == ("access-token-9", "refresh-0")


@pytest.mark.parametrize(
    ("refresh", "words"),
    [
        ("refresh-used", r"cannot be refreshed \(.*invalid_grant: refresh token was used\)"),
        ("", "has expired"),
    ],
)
def test_a_login_that_has_ended_says_what_to_run(environ, settings, refresh, words):
    save(environ, 10, refresh)
    with pytest.raises(AuthenticationError, match=f"{words}: gong auth login house"):
        get_token("house", settings, environ)


def test_a_token_without_settings_holds_until_its_end(environ):
    save(environ, 3600)
    assert get_token("house", None, environ).oauth_token == "access-token-0"
    save(environ, -5)
    with pytest.raises(AuthenticationError, match="has expired: gong auth login house"):
        get_token("house", None, environ)


def test_no_secret_is_in_the_words_of_a_refusal(environ, settings, authority):
    save(environ, 10, "refresh-secret-1234")
    said = {"error": "invalid_grant", "error_description": "unknown refresh-secret-1234\x1b[2J"}
    authority.answers["/token"] = [(400, said)]
    with pytest.raises(AuthenticationError) as caught:
        get_token("house", settings, environ)
    assert "refresh-secret" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_token_is_used_to_its_end_without_an_authority(environ, authority, settings):
    authority.answers["/token"] = [(500, b"down"), (500, b"down")]
    save(environ, 30)
    assert get_token("house", settings, environ).oauth_token == "access-token-0"
    save(environ, -1)
    with pytest.raises(NetworkError, match="does not answer as an authority"):
        get_token("house", settings, environ)


@pytest.mark.parametrize("record", [{"type": "oauth"}, {"type": "oauth", "refresh_token": "r"}])
def test_a_half_written_record_is_named_and_loses_no_other(environ, settings, record):
    credentials = Credentials.from_environ(environ)
    credentials.save("other", "sk-other-12345678", "2026-11-22T01:00:00.000000Z")
    rows = json.loads(credentials.file.read_bytes())
    credentials.file.write_text(json.dumps([*rows, {"provider": "house", **record}]))
    with pytest.raises(AuthenticationError, match="is not complete: gong auth login house"):
        get_token("house", settings, environ)
    assert credentials.find("house", ()) is None
    save(environ, 3600)
    assert credentials.key("other", ()) == "sk-other-12345678"
    assert credentials.find_login("house").oauth_token == "access-token-0"
