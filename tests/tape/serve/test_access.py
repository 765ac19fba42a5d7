"""Who may look: the names of this machine, the token, and no other site in the same browser."""

from __future__ import annotations

import json

import pytest

from tests.tape.serve.conftest import Server, record, serving


@pytest.fixture(scope="module")
def server(library):
    record(library, "A title", "hello")
    with serving(library.store.path.parent) as started:
        yield started


def test_the_printed_address_lets_a_browser_in(server):
    """M213: the token leaves the address, and stays in a cookie of this port."""
    entered = server.ask(f"/?token={server.token}&q=x", Authorization=None)
    assert (entered.status, entered.headers["location"]) == (303, "/?q=x")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    pair = cookie.partition(";")[0]
    assert pair == f"tape_{server.port}={server.token}"
    assert server.ask("/", Authorization=None, Cookie=pair).status == 200
    assert server.ask("/", Authorization=None, Cookie=pair[:-1]).status == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Authorization": "Bearer \u00e9"}, 401),
        ({"Authorization": None, "Cookie": "tape=1; tape_1=2"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"X-Forwarded-For": "127.0.0.1", "Authorization": None}, 401),
        ({"X-Forwarded-Host": "evil.example"}, 200),
    ],
)
def test_who_is_refused(server, headers, status):
    answer = server.ask("/", **headers)
    assert answer.status == status
    if status != 200:
        assert "A title" not in answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "no-cors"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        (
            {
                "Sec_Fetch_Site": "cross-site",
                "Sec_Fetch_Mode": "navigate",
                "Sec_Fetch_Dest": "document",
            },
            200,
        ),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
    ],
)
def test_a_page_of_another_site_reads_nothing_with_the_cookie(server, headers, status):
    cookie = f"tape_{server.port}={server.token}"
    assert server.ask("/", Authorization=None, Cookie=cookie, **headers).status == status


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/static/x/..%2f..%2fserve.py",
        "/static/0/site.css",
        "/session/..%2f..%2fetc",
        "/session/%00",
        "/session/zzzz",
        "/session/" + "0" * 32,
        "//evil.example/",
        "/nothing",
    ],
)
def test_a_path_leads_nowhere_but_to_pages(server, path):
    answer = server.ask(path)
    assert answer.status == 404
    assert "/.tape" not in answer.text
    assert str(server.home) not in answer.text


def test_the_token_in_an_address_of_another_host_leads_back_here(server):
    entered = server.ask(f"//evil.example/?token={server.token}", Authorization=None)
    assert entered.headers["location"] == "/evil.example/"


def test_only_reading_is_possible(server):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert server.ask("/", method).status == 405


def test_a_server_that_starts_again_has_the_same_token_and_port(library):
    home = library.store.path.parent
    with serving(home) as first:
        first.get("/")  # it runs, so that a signal reaches it and not what started it
        assert first.stop() == (130, "", "")
    with serving(home, "--port", str(first.port)) as second:
        assert second.address == first.address
        (file,) = (home / ".local/state/tape/serve").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
    with serving(home, "--new-token", "--port", "0") as third:
        assert third.token != second.token
    file.write_text(json.dumps({"token": "guessed" * 9, "port": 0}))
    file.chmod(0o644)  # others could have written it
    with serving(home) as fourth:
        assert fourth.token not in {"guessed" * 9, third.token}


def test_a_port_that_is_in_use_is_named(server):
    with pytest.raises(AssertionError, match=f"127.0.0.1:{server.port} cannot be used"):
        Server(server.home, "--port", str(server.port))
