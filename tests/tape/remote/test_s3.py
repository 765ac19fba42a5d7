"""A bucket as a remote: addresses, errors, and servers that ignore conditions."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tape.errors import RemoteUnavailable, UsageError
from tape.remote.registry import open_remote, probe_remote
from tests.tape.remote.servers import (
    KEYS,
    make_bucket,
    serving_rclone,
    serving_s3rver,
)

pytest.importorskip("obstore", reason="the extra `s3` is not installed")


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def endpoint(ministack):
    make_bucket(ministack, "tapes")
    return ministack


def refuse(url):
    """Probe a bucket that has to be refused, and return what is said."""
    with open_remote(url) as remote, pytest.raises(UsageError) as caught:
        probe_remote(remote)
    return str(caught.value)


FAULT = "created one object 2 times. It ignores conditional writes (If-None-Match)"


def test_rclone_ignores_conditions_and_is_refused(tmp_path):
    (tmp_path / "tapes").mkdir()
    with serving_rclone(tmp_path) as endpoint:
        assert FAULT in refuse(f"s3://tapes/team?endpoint={endpoint}&region=us-east-1")


def test_s3rver_ignores_conditions_and_is_refused(tmp_path, monkeypatch):
    for name in KEYS:
        monkeypatch.setenv(name, "S3RVER")  # the only keys that it knows
    with serving_s3rver(tmp_path) as endpoint:
        make_bucket(endpoint, "tapes")
        assert FAULT in refuse(f"s3://tapes/team?endpoint={endpoint}&region=us-east-1")


@pytest.mark.parametrize(
    "form",
    [
        "s3://tapes?endpoint={endpoint}&region=us-east-1",
        "s3://tapes/a/prefix/?endpoint={endpoint}&region=us-east-1&addressing=path",
        "s3+{endpoint}/tapes?region=us-east-1",
        "s3+{endpoint}/tapes/a/prefix?addressing=path",
        "s3+{endpoint}/tapes/odd%20-%20prefix",
    ],
)
def test_an_address_names_endpoint_bucket_and_prefix(endpoint, form):
    with open_remote(form.format(endpoint=endpoint)) as remote:
        probe_remote(remote)
        assert remote.create(f"probe/{os.urandom(4).hex()}", b"x")


def test_the_endpoint_may_come_from_the_environment(endpoint, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with open_remote("s3://tapes/by-variable") as remote:
        probe_remote(remote)


def test_a_virtual_host_has_the_name_of_the_bucket(monkeypatch):
    """Seen by a proxy, as no name of a test leads to loopback."""
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor(1) as thread:
        proxy.settimeout(10)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        asked = thread.submit(answer_once, proxy)
        url = "s3://tapes/x?endpoint=http://storage.example&addressing=virtual&region=r"
        with open_remote(url) as remote:
            assert remote.read("remote.json") == b"hello"
        assert asked.result() == "GET http://tapes.storage.example/x/remote.json HTTP/1.1"


def answer_once(server):
    """Answer one request, and return its first line."""
    asking, _ = server.accept()
    with asking:
        head = b""
        while b"\r\n\r\n" not in head:
            head += asking.recv(4096)
        stamp = 'Last-Modified: Sat, 28 Nov 2026 00:00:00 GMT\r\nETag: "x"\r\n'
        asking.sendall(f"HTTP/1.1 200 OK\r\n{stamp}Content-Length: 5\r\n\r\nhello".encode())
    return head.decode().partition("\r\n")[0]


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("s3://", "names a bucket"),
        ("s3://key:secret@tapes/x", "give keys as AWS_ACCESS_KEY_ID"),
        ("s3://tapes?endpoint=ftp://x", "endpoint is http:// or https://"),
        ("s3://tapes?adressing=path", "not 'adressing'"),
        ("s3://tapes?addressing=paht", "addressing is path or virtual"),
        ("s3+https://host", "names a bucket"),
    ],
)
def test_a_wrong_address_is_explained(url, complaint):
    with pytest.raises(UsageError, match=complaint):
        open_remote(url)


def test_a_bucket_that_is_not_there_is_named(endpoint):
    with open_remote(f"s3://none/x?endpoint={endpoint}&region=us-east-1") as remote:
        for call in (
            partial(remote.create, "a", b""),
            partial(remote.read, "a"),
            partial(remote.replace, "a", b""),
            remote.now,
            lambda: [*remote.list("")],
        ):
            with pytest.raises(RemoteUnavailable, match="there is no bucket 'none'"):
                call()


def test_a_server_that_is_away_is_unavailable():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"s3://tapes/x?endpoint=http://127.0.0.1:{free.getsockname()[1]}&region=us-east-1"
    with open_remote(url) as remote, pytest.raises(RemoteUnavailable) as caught:
        remote.create("a", b"")
    assert "\n" not in str(caught.value)
    assert "it does not answer: Connection refused" in str(caught.value)


class _Refusing(BaseHTTPRequestHandler):
    def handle_any(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = b"<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_GET = do_HEAD = handle_any  # noqa: N815

    def log_message(self, *_):
        pass


def test_a_bucket_says_which_keys_it_needs(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"s3://tapes/x?endpoint=http://127.0.0.1:{server.server_address[1]}&region=us-east-1"
        with open_remote(url) as remote, pytest.raises(RemoteUnavailable) as caught:
            remote.create("a", b"")
        assert "403 InvalidAccessKeyId (no such key); for other keys set AWS_ACCESS_KEY_ID" in str(
            caught.value
        )
        for name in KEYS:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        with open_remote(url) as remote, pytest.raises(RemoteUnavailable, match="there are no key"):
            remote.create("a", b"")
        server.shutdown()


OPENING = """
import sys
from tape.remote.registry import open_remote
open_remote(sys.argv[1])
print(sorted(name for name in sys.modules if "obstore" in name or "psycopg" in name))
"""


def run_code(code, url):
    return subprocess.run(
        [sys.executable, "-c", code, url], capture_output=True, text=True, check=False
    )


def test_only_a_bucket_needs_the_library():
    assert run_code(OPENING, "file:///").stdout == "[]\n"
    without = "import sys; sys.modules['obstore'] = None\n" + OPENING
    assert "pip install 'gong[s3]'" in run_code(without, "s3://tapes").stderr
