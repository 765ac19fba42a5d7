"""The way to the network: which hosts and addresses are refused, the proxy, and programs inside."""

import asyncio
import os
import shutil
import sys
from contextlib import asynccontextmanager

import pytest

from gong.env.local import LocalEnvironment
from gong.env.sandbox.addresses import check_patterns, refuse_address, refuse_host
from gong.env.sandbox.proxy import DomainProxy, list_own_addresses, parse_request
from gong.env.sandbox.sandbox import SandboxRequest, open_sandbox
from gong.errors import ConfigurationError
from tests.gong.env.sandbox.world import needs_bubblewrap

REFUSED = [
    ("127.0.0.1", "this machine"),
    ("127.8.8.8", "this machine"),
    ("0.0.0.0", "this machine"),
    ("::1", "this machine"),
    ("::", "this machine"),
    ("::ffff:127.0.0.1", "this machine"),
    ("64:ff9b::7f00:1", "this machine"),
    ("2002:7f00:1::", "this machine"),
    ("203.0.113.9", "a private address"),
    ("10.1.2.3", "a private address"),
    ("172.20.0.1", "a private address"),
    ("192.168.1.1", "a private address"),
    ("100.64.3.4", "a private address"),
    ("fd12::1", "a private address"),
    ("169.254.1.1", "a link-local address"),
    ("fe80::1%eth0", "a link-local address"),
    ("169.254.169.254", "where a cloud keeps its metadata"),
    ("::ffff:169.254.169.254", "where a cloud keeps its metadata"),
    ("fd00:ec2::254", "where a cloud keeps its metadata"),
    ("100.100.100.200", "where a cloud keeps its metadata"),
    ("224.0.0.1", "a group of machines"),
]


@pytest.mark.parametrize(("address", "kind"), REFUSED)
def test_an_address_is_refused_by_its_kind(address, kind):
    """M179: loopback, link-local, metadata, private and own addresses are out of reach."""
    assert refuse_address(address) == f"it leads to {address}, {kind}"


def test_public_addresses_are_reached_but_for_those_of_this_machine():
    assert refuse_address("1.1.1.1") == refuse_address("2606:4700::1111") == ""
    assert refuse_address("1.1.1.1", ["1.1.1.1"]) == "it leads to 1.1.1.1, this machine"
    assert refuse_address("nonsense") == "nonsense is not an address"
    assert "127.0.0.1" in list_own_addresses() or sys.platform != "linux"


@pytest.mark.parametrize(
    ("host", "allowed", "denied", "answer"),
    [
        ("example.org", ["example.org"], [], ""),
        ("EXAMPLE.org.", ["example.org"], [], ""),
        ("a.example.org", ["example.org"], [], "it is not among the allowed domains"),
        ("a.example.org", ["*.example.org"], [], ""),
        ("example.org", ["*.example.org"], [], "it is not among the allowed domains"),
        ("badexample.org", ["*.example.org"], [], "it is not among the allowed domains"),
        ("example.org", ["*"], [], ""),
        ("a.example.org", ["*"], ["*.example.org"], "a rule denies it"),
        ("example.org", ["example.org"], ["example.org"], "a rule denies it"),
    ],
)
def test_a_host_is_judged_by_the_patterns(host, allowed, denied, answer):
    assert refuse_host(host, check_patterns(allowed), check_patterns(denied)) == answer


@pytest.mark.parametrize("pattern", ["", "http://a.org", "a.org/x", "*a.org", "a b", "a.org:80"])
def test_a_pattern_that_is_no_host_is_an_error(pattern):
    with pytest.raises(ConfigurationError, match="is not a host"):
        check_patterns([pattern])


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT example.org HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:99999 HTTP/1.1\r\n\r\n",
        b"GET https://example.org/ HTTP/1.1\r\n\r\n",
        b"GET http://example.org/ HTTP/9\r\n\r\n",
        b"\xff\r\n\r\n",
    ],
)
def test_what_is_no_request_for_a_proxy_is_an_error(head):
    try:
        target = parse_request(head)
    except ValueError:
        target = None
    assert target is None


def test_a_plain_request_goes_to_the_host_that_was_judged():
    head = (
        b"GET http://u:p@example.org:81/a?b HTTP/1.1\r\nHost: evil.org\r\n"
        b"Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\nX: y\r\n\r\n"
    )
    assert parse_request(head) == (
        "example.org",
        81,
        b"GET /a?b HTTP/1.1\r\nHost: example.org:81\r\nX: y\r\nConnection: close\r\n\r\n",
    )


@asynccontextmanager
async def serve_words(words):
    """Hold a server on loopback that answers HTTP with words; its port."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + words)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ask_proxy(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def resolve_here(_host, _port):
    return ("127.0.0.1",)


async def test_a_name_that_leads_to_this_machine_is_refused_and_named():
    """M179: a name is resolved once, and each refusal is named."""
    resolved = []

    async def resolve(host, _port):
        resolved.append(host)
        return ("1.1.1.1", "10.0.0.1")

    proxy = DomainProxy(("rebinding.test", "localhost"), resolve=resolve)
    port = await proxy.start(None)
    answer = await ask_proxy(port, b"CONNECT rebinding.test:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert answer.endswith(b"rebinding.test: it leads to 10.0.0.1, a private address\n")
    assert resolved == ["rebinding.test"]
    await ask_proxy(port, b"GET http://other.test/ HTTP/1.1\r\n\r\n")
    assert proxy.take_refusals() == (
        "reaching rebinding.test (it leads to 10.0.0.1, a private address)",
        "reaching other.test (it is not among the allowed domains)",
    )
    assert proxy.take_refusals() == ()
    assert (await ask_proxy(port, b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    proxy.close()


async def test_localhost_is_refused_even_where_all_hosts_are_allowed():
    async with serve_words(b"secret") as upstream:
        proxy = DomainProxy(("*",))
        port = await proxy.start(None)
        for host in ("localhost", "127.0.0.1", "0x7f.1", "[::1]"):
            request = f"GET http://{host}:{upstream}/ HTTP/1.1\r\n\r\n"
            answer = await ask_proxy(port, request.encode())
            assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 502 ")), host
        proxy.close()


@needs_bubblewrap
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_programs_inside_reach_allowed_hosts_only_by_the_proxy(tmp_path):
    """M220: a forwarder inside leads to the proxy, which no other program can do."""
    home = tmp_path / "home"
    folder = home / "project"
    folder.mkdir(parents=True)
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    request = SandboxRequest(str(folder), environ, writes=True, domains=("allowed.test",))
    env = LocalEnvironment(str(folder), environ, sandbox=open_sandbox(request))
    await env.initialize()
    proxy = env.sandbox.proxy
    proxy._resolve, proxy._refuse = resolve_here, lambda *_: ""
    try:
        async with serve_words(b"hello") as port:
            allowed = await env.exec_command(f"curl -s http://allowed.test:{port}/")
            tunnel = await env.exec_command(f"curl -s -p http://allowed.test:{port}/")
            other = await env.exec_command(f"curl -s -f http://other.test:{port}/")
            past = await env.exec_command(f"curl -s --noproxy '*' http://127.0.0.1:{port}/")
        probe = "import socket; socket.socket(socket.AF_UNIX)"
        opened = await env.exec_command(f"{sys.executable} -c '{probe}'")
        look = "ls -l /proc/[0-9]*/exe 2>&1 | grep -c 'Permission denied'; cat /proc/[0-9]*/comm"
        looked = await env.exec_command(look)
        left = await env.exec_command("ls -l /proc/self/fd")
    finally:
        await env.cleanup()
    assert (allowed.output, allowed.refused) == (b"hello", ())
    assert tunnel.output == b"hello"
    assert (other.exit_code != 0, other.refused) == (
        True,
        ("reaching other.test (it is not among the allowed domains)",),
    )
    assert past.exit_code != 0
    assert b"PermissionError" in opened.output
    assert b"gong-forwarder" in looked.output
    assert looked.output.split(b"\n")[0] == b"1"
    assert [line.split()[8] for line in left.output.decode().split("\n")[1:-1]] == [*"0123"]
