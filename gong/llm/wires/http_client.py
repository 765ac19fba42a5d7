"""Posts bodies to one endpoint over HTTP: TLS, proxies, connection reuse, compression, redirects.

It uses httpcore2, the engine below httpx2 and both SDKs: the same pool, TLS and proxies at
half the cost to import. A response says what came; nothing is sent anywhere else:

| answer | read |
|---|---|
| 2xx | piece by piece, decompressed |
| a redirect or an error | its first `sizes.error` bytes; no redirect is followed |

The variables for proxies (HTTPS_PROXY, NO_PROXY, …) and certificates (SSL_CERT_FILE, SSL_CERT_DIR)
count. A connection is used for many calls.
"""

from __future__ import annotations

import os
import sys
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from tape.version import __version__  # both packages are one distribution

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from ..models import Preset
    from .access import Access

_CODINGS = ("gzip", "deflate")
"""Accepted compressions; both can be decompressed in pieces."""
_HEADERS = {
    "accept": "application/json",
    "accept-encoding": ", ".join(_CODINGS),
    "content-type": "application/json",
    "user-agent": f"gong/{__version__}",
}
"""What every call says, unless preset or call say something else."""
_PIECE = 1_048_576
"""Most bytes that are decompressed at once."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_IN_ADDRESSES = "!$%&'()*+,/:;=?@[]~"
"""Characters that stand in a path and its query as they are."""
_PORTS = {"http": 80, "https": 443}


class HttpError(Exception):
    """A connection could not be made, or broke; the text says why."""


class HttpConnectTimeout(HttpError):
    """There was no connection in time."""


class EncodedRequest(NamedTuple):
    """A call to send: path below the endpoint, JSON body, and headers of this call only."""

    path: str
    body: bytes
    headers: dict[str, str]
    """Names in small letters."""
    warnings: tuple[str, ...] = ()
    """Warnings for fields of the request that were left out."""


class Route(NamedTuple):
    """The target of a client; `endpoint` has no slash at its end."""

    preset: Preset
    access: Access
    endpoint: str

    def __repr__(self) -> str:
        return f"Route({self.preset.name!r}, {self.endpoint!r})"

    def build_headers(self, call: EncodedRequest) -> dict[str, str]:
        """Return the preset's headers with the call's over them, without those of the key.

        Their names are in small letters.
        """
        return {
            **{name.lower(): value for name, value in self.preset.headers.items()},
            **call.headers,
        }


class HttpResponse:
    """A response of any status; the body of a success has not arrived yet."""

    def __init__(self, raw: Any, url: str, errors: tuple[type[Exception], ...]) -> None:
        self._raw, self._errors = raw, errors
        self._pieces: AsyncGenerator[bytes, None] | None = None
        self.status: int = raw.status
        self.url = url
        self.headers = _join_headers(raw.headers)
        """Names in small letters."""
        self.beginning = b""
        """Of a body that is not read piece by piece."""
        self.is_cut = False
        """Whether there may be more of it than `beginning`."""
        self.received = 0
        """Number of bytes of the body so far, as they were sent."""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status // 100 == 2  # noqa: PLR2004 (HTTP)

    @property
    def location(self) -> str | None:
        """Where a redirect leads."""
        return self.headers.get("location") if self.status in _REDIRECTS else None

    @property
    def text(self) -> str:
        """The beginning of the body as text."""
        return self.beginning.decode("utf-8", "replace")

    @property
    def coding(self) -> str:
        """How the body is compressed; empty if it is not."""
        coding = self.headers.get("content-encoding", "").strip().lower()
        return "" if coding == "identity" else coding

    @property
    def unasked_coding(self) -> str | None:
        """How the body is compressed where that was not asked for."""
        return None if self.coding in {"", *_CODINGS} else self.coding

    def read_pieces(self) -> AsyncGenerator[bytes, None]:
        """Return the body in decompressed pieces, always the same generator; raises HttpError."""
        if self._pieces is None:
            self._pieces = self._decompress() if self.coding in _CODINGS else self._receive()
        return self._pieces

    async def read_beginning(self, limit: int) -> None:
        """Read `beginning`, as much as may and can be read, and close."""
        with suppress(HttpError):  # the status is enough
            async for piece in self.read_pieces():
                self.beginning += piece[: limit - len(self.beginning)]
                self.is_cut = len(self.beginning) >= limit
                if self.is_cut:
                    break
        await self.close()

    async def close(self) -> None:
        """Close the connection, unless the body was read to its end."""
        await self._raw.aclose()
        if self._pieces is not None:
            await self._pieces.aclose()

    async def _receive(self) -> AsyncGenerator[bytes, None]:
        try:
            async for piece in self._raw.aiter_stream():
                self.received += len(piece)
                yield piece
        except self._errors as error:
            raise translate_error(error) from None

    async def _decompress(self) -> AsyncGenerator[bytes, None]:
        unpack = _Unpacker(self.coding)
        async for piece in self._receive():
            try:
                for part in unpack.feed(piece):
                    yield part
            except zlib.error as error:
                raise HttpError(str(error)) from None


class _Unpacker:
    """Decompresses one body; the beginning shows whether deflate has the header it should have."""

    def __init__(self, coding: str) -> None:
        self._may_be_bare = coding == "deflate"
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | (0 if self._may_be_bare else 16))

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield pieces of limited size; raises zlib.error."""
        while data:
            try:
                piece = self._unpack.decompress(data, _PIECE)
            except zlib.error:
                if not self._may_be_bare:
                    raise
                self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)
                piece = self._unpack.decompress(data, _PIECE)
            self._may_be_bare = False
            data = self._unpack.unconsumed_tail
            if piece:
                yield piece


class HttpClient:
    """Posts calls to one endpoint."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._httpcore2: Any = None
        self._pool: Any = None
        self._errors: tuple[type[Exception], ...] = ()

    async def prepare(self) -> None:
        """Load the engine, once."""
        if self._httpcore2 is None:
            import httpcore2  # loaded when used

            self._httpcore2 = httpcore2
            self._errors = (
                *(httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError),
                *(httpcore2.ProxyError, httpcore2.UnsupportedProtocol),
            )

    async def post_call(self, call: EncodedRequest) -> HttpResponse:
        """Return the response of any status.

        Raises HttpError, and UnicodeError for a host or a header that cannot be sent.
        """
        separator = "" if call.path.startswith("/") else "/"
        url = f"{self._route.endpoint}{separator}{call.path}"
        headers = {**_HEADERS, **self._route.build_headers(call)}
        return await self.post_body(url, headers, call.body)

    async def post_body(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Post with all headers but the key's and those that HTTP needs; as `post_call`."""
        httpcore2 = self._httpcore2
        target = parse_target(httpcore2, url)
        limits = self._route.preset.connections
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=httpcore2.default_ssl_context() if target.scheme == b"https" else None,
                proxy=find_proxy(httpcore2, target),
                max_connections=limits.most or None,
                max_keepalive_connections=limits.idle,
                keepalive_expiry=limits.idle_seconds,
            )
        headers = {"host": name_host(target), **headers}
        # a signature is over the address as it is sent
        sent_url = f"{target.scheme.decode()}://{headers['host']}{target.target.decode()}"
        signed_headers = self._route.access.build_headers(sent_url, headers, body)
        sent = {**signed_headers, "content-length": str(len(body))}
        request = httpcore2.Request(
            "POST",
            target,
            headers=[(name.encode("ascii"), value.encode("ascii")) for name, value in sent.items()],
            content=body,
            extensions={"timeout": {"connect": self._route.preset.timeouts.connect}},
        )
        try:
            raw = await self._pool.handle_async_request(request)
        except (httpcore2.ConnectTimeout, httpcore2.PoolTimeout):
            limit = self._route.preset.timeouts.connect
            raise HttpConnectTimeout(f"no connection within {limit:g} s") from None
        except self._errors as error:
            raise translate_error(error) from None
        except ImportError as error:  # a proxy that needs one more package
            raise HttpError(str(error)) from None
        response = HttpResponse(raw, url, self._errors)
        if not response.is_success:
            await response.read_beginning(self._route.preset.sizes.error)
        return response

    async def close(self) -> None:
        """Close all connections."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()


def find_proxy(httpcore2: Any, target: Any) -> Any:
    """Return the proxy that environment or system name for an address; None for none."""
    has_variable = any(name.lower().endswith("_proxy") for name in os.environ)
    if not has_variable and sys.platform == "linux":
        return None
    from urllib.request import getproxies, proxy_bypass  # it loads http.client

    known = getproxies()
    proxy = known.get(target.scheme.decode()) or known.get("all")
    if not proxy or proxy_bypass(name_host(target)):
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username), unquote(parts.password or ""))
    host, default = parts.hostname or "", _PORTS.get(parts.scheme, 1080)
    url = httpcore2.URL(
        scheme=parts.scheme.encode(), host=host.encode(), port=parts.port or default, target=b"/"
    )
    tls = httpcore2.default_ssl_context() if parts.scheme == "https" else None
    return httpcore2.Proxy(url, auth=auth, ssl_context=tls)


def parse_target(httpcore2: Any, url: str) -> Any:
    """Return an http(s) address for the pool; raises UnicodeError for a host that is none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    return httpcore2.URL(
        scheme=parts.scheme.encode(),
        host=host.encode("ascii" if host.isascii() else "idna"),
        port=parts.port,
        target=quote(path, safe=_IN_ADDRESSES).encode(),
    )


def name_host(target: Any) -> str:
    """Return host and port as the Host header has them."""
    host = target.host.decode()
    shown_host = f"[{host}]" if ":" in host else host
    is_default = target.port in {None, _PORTS.get(target.scheme.decode())}
    return shown_host if is_default else f"{shown_host}:{target.port}"


def _join_headers(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "replace")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def translate_error(error: Exception) -> HttpError:
    """Return an error of the engine as one of ours."""
    return HttpError(str(error) or type(error).__name__)
