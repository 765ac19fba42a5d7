"""What the HTTP client does below all wires: proxies, certificates, compression."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
import zlib
from base64 import b64encode

import pytest
from msgspec.structs import replace

from gong import errors
from gong.llm.models import load_presets
from gong.llm.provider_factory import create_wire_provider
from tests.wires.raw_server import RawServer, head
from tests.wires.server import accumulated, events_of
from tests.wires.table import HELLO, KEY, WIRES

WIRE = WIRES[0]
SAID = WIRE.said("Hi.")


async def ask(url):
    preset = replace(load_presets({})[WIRE.preset], base_url=url)
    return await events_of(create_wire_provider(preset, KEY, url), HELLO)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_calls_go_through_the_proxy_of_the_environment(monkeypatch, variable):
    if variable == "HTTP_PROXY":
        monkeypatch.delenv("REQUEST_METHOD", raising=False)  # of a CGI script it is a header
    with RawServer(lambda: [head(), SAID]) as proxy:
        monkeypatch.setenv(variable, proxy.url.replace("//", "//me:se%40cret@"))
        assert accumulated(await ask("http://api.house.example/base")).text == "Hi."
    (sent,) = proxy.requests
    assert sent.startswith(b"POST http://api.house.example/base/v1/messages HTTP/1.1\r\n")
    assert b"host: api.house.example\r\n" in sent.lower()
    credentials = b64encode(b"me:se@cret")
    assert b"proxy-authorization: basic " + credentials.lower() in sent.lower()


async def test_hosts_without_proxy_are_asked_directly(monkeypatch):
    with RawServer(list) as proxy, RawServer(lambda: [head(), SAID]) as host:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "house.example,127.0.0.1")
        assert accumulated(await ask(host.url)).text == "Hi."
    assert (len(host.requests), proxy.requests) == (1, [])


def compress_bare(data):
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


@pytest.mark.parametrize(
    ("coding", "compress"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", compress_bare)],
)
async def test_compressed_answers_are_read_piece_by_piece(coding, compress):
    body = compress(SAID)
    pieces = [body[:7], 0.05, body[7:40], 0.05, body[40:]]
    with RawServer(lambda: [head(content_encoding=coding), *pieces]) as server:
        assert accumulated(await ask(server.url)).text == "Hi."


def make_certificate(folder):
    """Return the file of a certificate for localhost, and what serves it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_certificates_are_checked(monkeypatch, tmp_path):
    """A certificate nobody vouches for is refused; SSL_CERT_FILE vouches for it."""
    certificate, context = make_certificate(tmp_path)
    asked = []

    async def serve(reader, writer):
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(head() + SAID)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    async with server:
        (refused,) = await ask(url)
        assert type(refused.error) is errors.NetworkError
        assert "certificate verify failed" in str(refused.error).lower().replace("_", " ")
        assert asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert accumulated(await ask(url)).text == "Hi."
    assert len(asked) == 1
