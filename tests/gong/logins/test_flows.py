"""The two ways to log in, against an authority on loopback."""

import asyncio
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import msgspec
import pytest

from gong.errors import AuthenticationError, ConfigurationError, NetworkError
from gong.logins.browser import run_browser_login
from gong.logins.device import fetch_device_code, wait_for_tokens
from gong.logins.settings import LoginSettings

PENDING = (400, {"error": "authorization_pending"})
SLOW_DOWN = (400, {"error": "slow_down"})


def settings_of(authority, **changes):
    return msgspec.convert(authority.settings(**changes), LoginSettings)


def test_a_device_login_waits_as_long_as_it_is_asked_to(authority):
    """M184 M226: authorization_pending, slow_down, then tokens (RFC 8628)."""
    settings, pauses = settings_of(authority), []
    # an error with status 200, as GitHub sends it, is one too
    authority.answers["/token"] = [PENDING, SLOW_DOWN, (200, PENDING[1]), (503, b"<html>")]
    device = fetch_device_code("house", settings)
    assert (device.user_code, device.address) == ("ABCD-EFGH", f"{authority.address}/type")
    tokens = wait_for_tokens("house", settings, device, pauses.append)
    assert (tokens.access, tokens.refresh, tokens.seconds) == (
        *("access-token-1", "refresh-1", 3600.0),
    )
    assert pauses == [0, 0, 5, 5, 10]
    assert "secret" not in repr(device) + repr(tokens)
    assert authority.seen[0] == ("/device", {"client_id": "my-client", "scope": "models"})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((400, {"error": "expired_token"}), "the code has expired before it was typed"),
        ((400, {"error": "access_denied"}), "was refused there"),
        ((400, {"error": "invalid_client", "error_description": "who?"}), "invalid_client: who?"),
        ((400, {"error": {"code": "odd"}}), "odd"),
        ((403, b"<html>no</html>"), "refused with status 403"),
        ((200, {"access_token": "two words"}), "sent no bearer token"),
        ((200, {"access_token": "t", "token_type": "mac"}), "sent no bearer token"),
        ((200, {"access_token": 3}), "sent no bearer token"),
    ],
)
def test_a_device_login_that_fails_says_why(authority, answer, words):
    settings = settings_of(authority)
    device = fetch_device_code("house", settings)
    authority.answers["/token"] = [answer]
    with pytest.raises(AuthenticationError) as caught:
        wait_for_tokens("house", settings, device, lambda _: None)
    assert words in str(caught.value)


def test_a_code_that_is_never_typed_expires_here_too(authority):
    settings = settings_of(authority)
    device = fetch_device_code("house", settings)
    authority.answers["/token"] = [PENDING]
    late = type(device)(device.code, device.user_code, device.address, "", 0.0, 0.0)
    with pytest.raises(AuthenticationError, match="expired before it was typed"):
        wait_for_tokens("house", settings, late, lambda _: None)


@pytest.mark.parametrize("answer", [(200, {"device_code": "x"}), (200, {"user_code": "a\nb"})])
def test_an_authority_without_a_code_is_named(authority, answer):
    authority.answers["/device"] = [answer]
    with pytest.raises(AuthenticationError, match="sent no code and address"):
        fetch_device_code("house", settings_of(authority))


def test_an_answer_that_is_no_json_or_far_too_long_is_a_network_error(authority):
    authority.answers["/device"] = [(200, b"[1"), (200, b" " * (1 << 20) + b"{}")]
    for words in ("does not answer as an authority does", "longer than 1 MiB"):
        with pytest.raises(NetworkError, match=words):
            fetch_device_code("house", settings_of(authority))
    # a redirect is not followed
    authority.answers["/device"] = [(302, f"{authority.address}/token")]
    with pytest.raises(AuthenticationError, match="refused with status 302"):
        fetch_device_code("house", settings_of(authority))
    assert authority.count("/token") == 0


async def visit(address):
    def get():
        try:
            with urlopen(address, timeout=30) as page:
                return page.status, page.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(get)


def test_a_browser_login_proves_that_it_began_it(authority):
    """M226: the code flow with PKCE; a visit with another state changes nothing."""
    pages = []

    async def run():
        address = asyncio.get_running_loop().create_future()
        settings = settings_of(authority, parameters={"audience": "models"})
        login = asyncio.create_task(run_browser_login("house", settings, address.set_result))
        url = await address
        query = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
        assert query["audience"] == "models"
        assert query["redirect_uri"].startswith("http://127.0.0.1:")
        wrong = ("?code=stolen&state=guess", "?code=stolen", "/other")
        pages.extend([await visit(f"{query['redirect_uri']}{part}") for part in wrong])
        pages.append(await visit(url))
        return await login

    tokens = asyncio.run(run())
    assert (tokens.access, tokens.refresh) == ("access-token-1", "refresh-1")
    assert [status for status, _ in pages] == [400, 400, 400, 200]
    assert "not the login" in pages[0][1]
    sent = next(fields for path, fields in authority.seen if path == "/token")
    assert (sent["code"], sent["client_id"]) == ("code-1", "my-client")


def test_a_browser_login_that_is_refused_or_given_up_ends(authority):
    async def run(answer):
        address = asyncio.get_running_loop().create_future()
        settings = settings_of(authority)
        login = asyncio.create_task(run_browser_login("house", settings, address.set_result, 0.3))
        query = parse_qs(urlsplit(await address).query)
        if answer:
            state = query["state"][0]
            await visit(f"{query['redirect_uri'][0]}?{answer}&state={state}")
        await login

    with pytest.raises(AuthenticationError, match="refused: they said no"):
        asyncio.run(run("error=access_denied&error_description=they+said+no"))
    with pytest.raises(AuthenticationError, match="not completed within"):
        asyncio.run(run(""))


@pytest.mark.parametrize(
    ("changes", "flow", "words"),
    [
        ({"token_url": "http://far.example/token"}, None, "not an https address"),
        ({"token_url": "file:///etc/passwd"}, None, "not an https address"),
        ({"token_url": ""}, None, "login.token_url of providers.house is empty"),
        ({"client_id": ""}, None, "login.client_id of providers.house is empty"),
        ({"authorize_url": ""}, "browser", "has no login.authorize_url"),
        ({"device_url": ""}, "device", "has no login.device_url"),
    ],
)
def test_settings_that_cannot_work_are_named(authority, changes, flow, words):
    with pytest.raises(ConfigurationError, match=words):
        settings_of(authority, **changes).choose_flow(flow, "house")
    assert settings_of(authority, authorize_url="").choose_flow(None, "house") == "device"
