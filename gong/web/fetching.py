"""One page by GET, with its redirects: within a size and a time, from public addresses only.

A name is resolved once for each request, all of its addresses are checked, and the connection goes
to one of those: what the name means a moment later changes nothing. Redirects on the same host are
followed; where another one begins, the caller gets its address, for whose sake it may have to ask.

With a proxy (HTTPS_PROXY) names are resolved there. What is a private address here is refused all
the same; a name that is unknown here is the proxy's affair.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from tape.version import __version__  # both packages are one distribution

from ..ip_addresses import is_public
from ..llm.wires.http_client import (
    HttpError,
    HttpResponse,
    find_proxy,
    name_host,
    parse_target,
    translate_error,
)
from .addresses import parse_address, parse_ip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..ip_addresses import IPAddress
    from .addresses import WebAddress

MAX_PAGE_BYTES = 10_000_000
MAX_SECONDS = 30.0
MAX_REDIRECTS = 5
_MAX_TRIED = 4
"""Addresses of one name that are connected to, one after the other."""
_CONNECT_SECONDS = 10.0
_WANTED = "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.5"
_HEADERS = {
    "accept": _WANTED,
    "accept-encoding": "gzip, deflate",
    "accept-language": "en, *;q=0.5",
    "user-agent": f"gong/{__version__} (web_fetch)",
}


class FetchError(Exception):
    """There is no page; the text says why, for a model and for people."""


class Resolver(Protocol):
    """Returns the IP addresses of a name."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return them as texts; raises OSError where there are none."""
        ...


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a name as this machine knows them; raises OSError."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in infos))


@dataclass(frozen=True, slots=True)
class WebAccess:
    """Which addresses may be connected to, and within which limits."""

    private_hosts: tuple[str, ...] = ()
    """Hosts that may be private, as `HOST` or `HOST:PORT`: their addresses are not checked."""
    resolve: Resolver = resolve_name
    is_allowed: Callable[[IPAddress], bool] = is_public
    max_bytes: int = MAX_PAGE_BYTES
    max_seconds: float = MAX_SECONDS

    def is_opened(self, address: WebAddress) -> bool:
        """Whether the user has named the host as one that may be private."""
        for text in self.private_hosts:
            opened, has_port = parse_address(f"http://{text}"), urlsplit(f"//{text}").port
            if opened.host == address.host and (not has_port or opened.port == address.port):
                return True
        return False


class FetchedPage(NamedTuple):
    """A page as it came."""

    url: str
    """Its address, after redirects."""
    media_type: str
    """In small letters; empty if it was not named."""
    charset: str
    """As it was named; empty if it was not."""
    body: bytes


class OtherHost(NamedTuple):
    """A redirect to another host or port, which was not asked."""

    url: str
    """Where it leads."""
    source: str
    """The address that leads there."""


async def fetch_page(address: WebAddress, access: WebAccess) -> FetchedPage | OtherHost:
    """Return the page of an address, or the other host that it leads to; raises FetchError."""
    try:
        async with asyncio.timeout(access.max_seconds):
            return await _follow_redirects(address, access)
    except TimeoutError:
        limit = f"{access.max_seconds:g} s"
        raise FetchError(f"{address.url} did not send all of it within {limit}") from None


async def _follow_redirects(address: WebAddress, access: WebAccess) -> FetchedPage | OtherHost:
    source = address.url
    for _ in range(MAX_REDIRECTS + 1):
        answer = await request_page(address, access)
        if isinstance(answer, FetchedPage):
            return answer
        if not _is_same_site(address, answer):
            return OtherHost(answer.url, address.url)
        address = answer
    raise FetchError(f"{source} leads from one address to the next, more than {MAX_REDIRECTS}")


def _is_same_site(before: WebAddress, after: WebAddress) -> bool:
    """Whether a redirect stays on its host, for which permission was asked; http may end there."""
    is_upgrade = (before.scheme, before.port) == ("http", 80) and after.port == 443  # noqa: PLR2004
    is_same = (before.scheme, before.port) == (after.scheme, after.port)
    return before.host == after.host and (is_same or (is_upgrade and after.scheme == "https"))


async def request_page(
    address: WebAddress,
    access: WebAccess,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> FetchedPage | WebAddress:
    """Return what one request brings: the page, or where a redirect leads; raises FetchError.

    `headers` go over those of a page, and a body is posted.
    """
    try:
        import httpcore2  # an extra, and slow to load
    except ImportError:
        raise FetchError("what fetches pages is missing: pip install 'gong[web]'") from None
    target = parse_target(httpcore2, address.url)
    proxy = find_proxy(httpcore2, target)
    addresses = await _find_addresses(address, access, is_proxied=proxy is not None)
    backend = None if proxy is not None else _PinnedBackend(httpcore2, addresses)
    sent = {"host": name_host(target), **_HEADERS, **(headers or {})}
    if body is not None:
        sent["content-length"] = str(len(body))
    request = httpcore2.Request(
        "GET" if body is None else "POST",
        target,
        headers=[(name.encode("ascii"), value.encode("ascii")) for name, value in sent.items()],
        content=body,
        extensions={"timeout": {"connect": _CONNECT_SECONDS}},
    )
    errors = (
        *(httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError),
        *(httpcore2.ProxyError, httpcore2.UnsupportedProtocol, ImportError),
    )
    tls = httpcore2.default_ssl_context() if address.scheme == "https" else None
    async with httpcore2.AsyncConnectionPool(
        ssl_context=tls,
        proxy=proxy,
        network_backend=backend,  # type: ignore[arg-type]  # all of one that is used
    ) as pool:
        try:
            raw = await pool.handle_async_request(request)
        except errors as error:
            raise FetchError(f"{address.url}: {translate_error(error)}") from None
        response = HttpResponse(raw, address.url, errors)
        try:
            return await _read_response(response, address, access.max_bytes)
        except HttpError as error:
            raise FetchError(f"{address.url} broke off: {error}") from None
        finally:
            await response.close()


async def _find_addresses(
    address: WebAddress, access: WebAccess, *, is_proxied: bool
) -> Sequence[str]:
    """Return the IP addresses that may be connected to; raises FetchError where one may not."""
    literal = parse_ip(address.host)
    if literal is not None:
        addresses: Sequence[str] = (address.host,)
    else:
        try:
            addresses = await access.resolve(address.host, address.port)
        except (OSError, UnicodeError) as error:
            if is_proxied:
                return ()
            reason = getattr(error, "strerror", None) or error
            raise FetchError(f"{address.host} was not found: {reason}") from None
    if not access.is_opened(address):
        for text in addresses:
            ip = parse_ip(text)
            if ip is None or not access.is_allowed(ip):
                raise FetchError(
                    f"{address.url} leads to {text}, which is not an address of the public"
                    " internet: such pages are fetched from hosts that the user has named in"
                    " private_hosts of [web] in config.toml"
                )
    if not addresses:
        raise FetchError(f"{address.host} has no address")
    return addresses[:_MAX_TRIED]


class _PinnedBackend:
    """Connects to the checked addresses, whatever the host is called; as httpcore2 wants it."""

    def __init__(self, httpcore2: Any, addresses: Sequence[str]) -> None:
        self._errors = (httpcore2.NetworkError, httpcore2.TimeoutException)
        self._backend = httpcore2.AnyIOBackend()
        self._addresses = addresses

    async def connect_tcp(self, host: str, port: int, **options: Any) -> Any:  # noqa: ARG002
        """Return a connection to the first of the addresses that takes one."""
        for address in self._addresses[:-1]:
            try:
                return await self._backend.connect_tcp(address, port, **options)
            except self._errors:
                continue
        return await self._backend.connect_tcp(self._addresses[-1], port, **options)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def _read_response(
    response: HttpResponse, address: WebAddress, limit: int
) -> FetchedPage | WebAddress:
    if response.location is not None:
        try:
            return parse_address(urljoin(address.url, response.location))
        except ValueError as error:
            raise FetchError(f"{address.url} leads nowhere: {error}") from None
    if not response.is_success:
        raise FetchError(f"{address.url} answered {describe_status(response.status)}")
    if response.unasked_coding:
        raise FetchError(f"{address.url} came as {response.unasked_coding}, which is not read")
    too_long = FetchError(f"{address.url} has more than {limit:,} bytes, the most that is fetched")
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_long
    body = bytearray()
    async for piece in response.read_pieces():
        body += piece
        if len(body) > limit:
            raise too_long
    media_type, _, parameters = response.headers.get("content-type", "").partition(";")
    return FetchedPage(
        address.url, media_type.strip().lower(), _find_charset(parameters), bytes(body)
    )


def describe_status(status: int) -> str:
    """Return a status as people know it: `404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _find_charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return ""
