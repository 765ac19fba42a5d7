"""The HTTP client under every wire: it follows no redirect, and reads only the beginning of errors.

An SDK would follow a redirect with the key and the prompt, and read an error's body to its end,
however long that is. So both are settled below it, where a response first appears.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response

IS_CUT = "gong.is_cut"
"""Extension of a response of which only the beginning was read."""
_CODINGS = ("gzip", "deflate")
"""What a host may compress with: both are unpacked piece by piece."""
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that say how a body was sent, not what it is."""


def open_client(http: Any, error_bytes: int, **options: Any) -> AsyncClient:
    """Return a client of the module `http` that sends what it is given nowhere else.

    A response whose status is no success holds at most `error_bytes` of its body.
    """

    async def send(self: AsyncClient, request: Request, **how: Any) -> Response:
        how |= {"stream": True, "follow_redirects": False}
        response: Response = await http.AsyncClient.send(self, request, **how)
        if response.is_success:
            return response
        return await _read_beginning(http, response, error_bytes)

    # A subclass made here, as the module is loaded late: SDKs take nothing but a client.
    made = type("KeepingClient", (http.AsyncClient,), {"send": send})
    headers = {"Accept-Encoding": ", ".join(_CODINGS), **options.pop("headers", {})}
    return cast("AsyncClient", made(follow_redirects=False, headers=headers, **options))


def find_unasked_coding(response: Response) -> str | None:
    """Return how a body is compressed where that was not asked for; None where all is well."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    return None if coding in {"", "identity", *_CODINGS} else coding


async def _read_beginning(http: Any, response: Response, most: int) -> Response:
    """Return the response with as much of its body as may and can be read."""
    body, is_cut = b"", False
    async with aclosing(response):
        with suppress(http.HTTPError, http.StreamError):  # its status says enough
            async with aclosing(response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    body += piece[: most - len(body)]
                    is_cut = len(body) >= most
                    if is_cut:
                        break
    headers = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_WIRE]
    return cast(
        "Response",
        http.Response(
            response.status_code,
            headers=headers,
            content=body,
            request=response.request,
            extensions={IS_CUT: is_cut},
        ),
    )
