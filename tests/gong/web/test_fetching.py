"""One page over loopback: limits, redirects, and names that change what they mean."""

import asyncio
import gzip
import zlib
from ipaddress import ip_address

import pytest

from gong.ip_addresses import is_public
from gong.web.addresses import parse_address
from gong.web.fetching import (
    FetchedPage,
    FetchError,
    OtherHost,
    WebAccess,
    _is_same_site,
    fetch_page,
)
from tests.gong.web.loopback import moved, response, serve

OTHER = "127.0.0.2"
"""A second address of this machine, which these tests take for a public one."""


async def fetch(url, **options):
    access = WebAccess(**{"private_hosts": ("127.0.0.1",), **options})
    return await fetch_page(parse_address(url), access)


async def test_a_page_comes_with_its_type_and_charset():
    async with serve(lambda _: response(b"h\xe9", 'text/HTML; Charset="latin-1"')) as (port, asked):
        page = await fetch(f"http://127.0.0.1:{port}/a%20b?q=1#part")
    assert page == FetchedPage(
        f"http://127.0.0.1:{port}/a%20b?q=1", "text/html", "latin-1", b"h\xe9"
    )
    ((path, head),) = asked
    assert path == "/a%20b?q=1"
    assert head.startswith(b"GET ")
    assert f"\r\nhost: 127.0.0.1:{port}\r\n".encode() in head


async def test_loopback_is_refused_where_it_is_not_opened():
    async with serve(lambda _: response()) as (port, asked):
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f.1"):
            with pytest.raises(FetchError, match="not an address of the public internet"):
                await fetch(f"http://{host}:{port}/", private_hosts=())
        with pytest.raises(FetchError, match="not an address of the public"):
            await fetch(f"http://127.0.0.1:{port}/", private_hosts=(f"127.0.0.1:{port + 1}",))
        await fetch(f"http://127.0.0.1:{port}/", private_hosts=(f"127.0.0.1:{port}",))
    assert len(asked) == 1


REBINDING = [
    (later, spelled)
    for later in (
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "::1", "fd00::1"),
        *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
    )
    for spelled in ("second", "beside", "first", "redirect")
]


@pytest.mark.parametrize(("later", "spelled"), REBINDING)
async def test_a_name_is_asked_once_and_what_it_means_later_does_not_count(later, spelled):
    """M195: forty cases of a name that leads to a private address now, or a moment later."""
    questions = []

    def is_allowed(ip):
        return ip == ip_address(OTHER) or is_public(ip)

    async with (
        serve(lambda _: response(b"secret")) as (port, secret),
        serve(lambda path: moved("/end") if path == "/go" else response(b"good"), OTHER) as good,
    ):

        async def resolve(host, asked_port):
            questions.append(host)
            answers = {
                "second": [[OTHER], [later]],
                "beside": [[OTHER, later]],
                "first": [[later], [OTHER]],
                "redirect": [[OTHER], [later]],
            }[spelled]
            return answers[min(len(questions), len(answers)) - 1]

        used = port if spelled == "first" else good[0]
        path = "/go" if spelled == "redirect" else "/"
        url = f"http://rebind.example:{used}{path}"
        options = {"private_hosts": (), "resolve": resolve, "is_allowed": is_allowed}
        if spelled == "second":
            assert (await fetch(url, **options)).body == b"good"
            assert questions == ["rebind.example"]
        else:
            with pytest.raises(FetchError, match="not an address of the public internet"):
                await fetch(url, **options)
        assert secret == []


async def test_redirects_on_one_host_are_followed_at_most_five_times():
    def answer(path):
        number = int(path.strip("/"))
        return moved(f"/{number - 1}", "308 Permanent Redirect") if number else response(b"end")

    async with serve(answer) as (port, asked):
        page = await fetch(f"http://127.0.0.1:{port}/5")
        assert (page.body, page.url) == (b"end", f"http://127.0.0.1:{port}/0")
        asked.clear()
        with pytest.raises(FetchError, match="from one address to the next, more than 5"):
            await fetch(f"http://127.0.0.1:{port}/6")
        assert len(asked) == 6


async def test_a_loop_of_redirects_ends():
    async with serve(lambda _: moved("/again")) as (port, asked):
        with pytest.raises(FetchError, match="more than 5"):
            await fetch(f"http://127.0.0.1:{port}/again")
    assert len(asked) == 6


@pytest.mark.parametrize(
    "where",
    [
        *("http://other.example/x", "http://127.0.0.1:1/x", "//10.0.0.1/x", "http://localhost/"),
        *("https://127.0.0.1/x", "http://www.127.0.0.1.example/", "http://[::1]/"),
    ],
)
async def test_another_origin_is_named_and_not_asked(where):
    async with serve(lambda _: moved(where)) as (port, _):
        source = f"http://127.0.0.1:{port}/a"
        answer = await fetch(source)
    assert isinstance(answer, OtherHost)
    assert answer.source == source
    assert answer.url == parse_address(where if ":/" in where else f"http:{where}").url


@pytest.mark.parametrize(
    ("before", "after", "is_followed"),
    [
        ("http://x.org/", "https://x.org/a", True),
        ("https://x.org/", "https://x.org:443/a", True),
        ("https://x.org/", "http://x.org/a", False),
        ("http://x.org/", "https://x.org:8443/a", False),
        ("http://x.org:8080/", "https://x.org/a", False),
        ("https://x.org/", "https://www.x.org/", False),
    ],
)
def test_https_of_the_same_host_is_the_same_site(before, after, is_followed):
    assert _is_same_site(parse_address(before), parse_address(after)) == is_followed


@pytest.mark.parametrize(
    "where", ["file:///etc/passwd", "http://a@b/", "http://a..b/", "http://[a/", "data:,"]
)
async def test_a_redirect_to_no_address_is_an_error(where):
    async with serve(lambda _: moved(where)) as (port, _):
        with pytest.raises(FetchError, match="leads nowhere"):
            await fetch(f"http://127.0.0.1:{port}/a")


async def test_a_status_is_named():
    async with serve(lambda _: response(status="404 No")) as (port, _):
        with pytest.raises(FetchError, match=r"answered 404 Not Found$"):
            await fetch(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "deflate-bare", "identity"])
async def test_compressed_pages_are_unpacked(coding):
    text = b"text " * 5000
    bare = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "deflate-bare": bare.compress(text) + bare.flush(),
        "identity": text,
    }[coding]
    name = coding.partition("-")[0]
    async with serve(lambda _: response(packed, Content_Encoding=name)) as (port, _):
        assert (await fetch(f"http://127.0.0.1:{port}/")).body == text


async def test_a_bomb_is_refused_when_it_grows_too_large():
    packed = gzip.compress(bytes(200_000_000), 9)
    async with serve(lambda _: response(packed, Content_Encoding="gzip")) as (port, _):
        with pytest.raises(FetchError, match="more than 10,000,000 bytes"):
            await fetch(f"http://127.0.0.1:{port}/")


async def test_a_length_beyond_the_limit_is_refused_before_it_comes():
    async def stall(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000001\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with serve(lambda _: stall) as (port, _):
        with pytest.raises(FetchError, match="more than 10,000,000 bytes"):
            await fetch(f"http://127.0.0.1:{port}/")


async def test_an_endless_page_ends_with_the_size_or_with_the_time():
    async def flood(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 1000)
            await writer.drain()

    async def drip(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nx")
        await writer.drain()
        await asyncio.Event().wait()

    async with serve(lambda path: flood if path == "/flood" else drip) as (port, _):
        with pytest.raises(FetchError, match="more than 10,000"):
            await fetch(f"http://127.0.0.1:{port}/flood", max_bytes=10_000)
        with pytest.raises(FetchError, match=r"did not send all of it within 0\.2 s"):
            await fetch(f"http://127.0.0.1:{port}/drip", max_seconds=0.2)


async def test_a_page_that_breaks_off_is_an_error():
    async def cut(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    async with serve(lambda path: cut if path == "/cut" else b"nonsense\r\n\r\n") as (port, _):
        with pytest.raises(FetchError, match="broke off"):
            await fetch(f"http://127.0.0.1:{port}/cut")
        with pytest.raises(FetchError, match=f"127.0.0.1:{port}/: "):
            await fetch(f"http://127.0.0.1:{port}/")


async def test_an_unknown_name_is_an_error():
    async def resolve(host, port):
        raise OSError(-2, "Name or service not known")

    with pytest.raises(FetchError, match=r"^x\.example was not found: Name or service not known"):
        await fetch("http://x.example/", resolve=resolve)


async def test_the_next_address_of_a_name_is_tried():
    async def resolve(host, port):
        return ["127.0.0.3", "127.0.0.1"]

    async with serve(lambda _: response()) as (port, _):
        opened = (f"two.example:{port}",)
        page = await fetch(f"http://two.example:{port}/", resolve=resolve, private_hosts=opened)
    assert page.body == b"hello"


async def test_a_proxy_is_used_and_private_addresses_are_refused_all_the_same(monkeypatch):
    async with serve(lambda path: response(path.encode())) as (port, asked):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")

        async def resolve(host, asked_port):
            if host == "inside.example":
                return ["10.0.0.1"]
            raise OSError(-2, "unknown")

        page = await fetch("http://far.example/a", resolve=resolve)
        assert page.body == b"http://far.example/a"
        for host in ("inside.example", "127.0.0.2"):
            with pytest.raises(FetchError, match="not an address of the public internet"):
                await fetch(f"http://{host}/", resolve=resolve)
        assert len(asked) == 1
