"""Posts calls through a provider's own SDK, for presets with `transport = "sdk"`.

The SDK makes the request, with its own headers and way to the address; the HTTP client below it is
ours, so limits, proxies and redirects are the same. Only what the SDKs document is used. The body
goes through `post` as bytes, because the typed way walks the whole history each time.

A cloud has a class of its own in the SDK (`sdk_client`): it is given what the company behind the
model would be, and makes the cloud's address and body of that. The key is always ours to add, or
ours to sign with.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx2

from tape.formats.wire import decode_json

from .http_client import HttpClient, HttpError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..models import Preset
    from .http_client import EncodedRequest, HttpResponse, Route

_OURS = "gong.response"
"""Extension of an SDK's response: the one it was made from."""
_OF_THE_SDK = frozenset({
    "accept", "content-type", "user-agent", "authorization", "anthropic-version",
    "openai-organization", "openai-project",
})  # fmt: skip
_PREFIX_OF_THE_SDK = "x-stainless-"
"""What an SDK sends by itself; other headers of a new client come from the environment."""
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that say how a body was sent, not what it is."""


_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})
_PLAIN_CLIENTS = {"anthropic": "AsyncAnthropic", "openai": "AsyncOpenAI"}
_STAND_IN = "unused"
"""Given to an SDK as key: it is sent nowhere."""


def _list_arguments(name: str, preset: Preset) -> dict[str, Any]:
    """Return what a class of an SDK wants to be told of a cloud, and in place of a key."""
    match name:
        case "AsyncAnthropic":
            return {"auth_token": _STAND_IN}
        case "AsyncAnthropicVertex":
            where = {"region": preset.location, "project_id": preset.project}
            return {**where, "access_token": _STAND_IN}
        case "AsyncAnthropicBedrockMantle":
            return {"aws_region": preset.region, "skip_auth": True}
        case "AsyncAzureOpenAI":
            return {"api_key": _STAND_IN, "api_version": preset.query.get("api-version")}
        case "AsyncBedrockOpenAI":
            return {"api_key": _STAND_IN, "aws_region": preset.region}
        case _:
            return {"api_key": _STAND_IN}


class SdkClient:
    """Posts calls to one endpoint through `package`, the SDK of its API."""

    def __init__(self, route: Route, package: str) -> None:
        self._route, self._package = route, package
        self._http = HttpClient(route)
        self._sdk: Any = None
        self._client: Any = None

    async def prepare(self) -> None:
        """Load the SDK, in a thread because it takes up to two seconds."""
        await self._http.prepare()
        if self._client is not None:
            return
        self._sdk = await asyncio.to_thread(import_module, self._package)
        preset = self._route.preset
        # the key that the SDK is given stands for ours, which is added below it
        left_out = _KEY_HEADERS - {name.lower() for name in preset.headers}
        http = httpx2.AsyncClient(transport=_BelowSdk(self._http, left_out), trust_env=False)
        how = {"base_url": self._route.endpoint, "max_retries": 0, "http_client": http}
        name = preset.sdk_client or _PLAIN_CLIENTS[self._package]
        how |= {field: value or "none" for field, value in _list_arguments(name, preset).items()}
        if self._package == "anthropic":
            self._client = getattr(self._sdk, name)(open_telemetry=False, **how)
        else:
            self._client = getattr(self._sdk, name)(**how)
            # values that the SDK took from the environment may be another provider's
            self._client.organization = self._client.project = None

    async def post_call(self, call: EncodedRequest) -> HttpResponse:
        """Return the response of any status; raises as the client below does."""
        # headers that are not to be sent: another key, and the environment's
        names = {name.lower() for name in self._client.default_headers}
        theirs = {name for name in names if not name.startswith(_PREFIX_OF_THE_SDK)} - _OF_THE_SDK
        omissions = dict.fromkeys({*theirs, "authorization"}, self._sdk.Omit())
        try:
            response = await self._client.post(
                call.path,
                cast_to=httpx2.Response,
                **(
                    {"body": decode_json(call.body)}
                    if self._route.preset.sdk_client
                    else {"content": call.body}
                ),
                options={"headers": {**omissions, **self._route.build_headers(call)}},
                stream=True,
                stream_cls=self._sdk.AsyncStream[object],
            )
        except self._sdk.APIStatusError as error:
            response = error.response
        except self._sdk.APIConnectionError as error:
            cause = error.__cause__
            raise cause if isinstance(cause, HttpError) else HttpError(str(error)) from None
        source: HttpResponse = response.extensions[_OURS]
        return source

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()
        await self._http.close()


class _BelowSdk(httpx2.AsyncBaseTransport):
    """Sends what an SDK's client is given by our own, without its key."""

    def __init__(self, http: HttpClient, left_out: frozenset[str]) -> None:
        self._http = http
        self._left_out = left_out | {"host", "content-length", "transfer-encoding"}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {
            name: value for name, value in request.headers.items() if name not in self._left_out
        }
        reply = await self._http.post_body(str(request.url), headers, await request.aread())
        return httpx2.Response(
            reply.status,
            headers=[pair for pair in reply.headers.items() if pair[0] not in _OF_THE_WIRE],
            stream=_Body(reply),
            extensions={_OURS: reply},
        )


class _Body(httpx2.AsyncByteStream):
    """The body of a response, as an SDK reads it: all of a success, the beginning of others."""

    def __init__(self, response: HttpResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not self._response.is_success:
            yield self._response.beginning
            return
        async for piece in self._response.read_pieces():
            yield piece

    async def aclose(self) -> None:
        await self._response.close()
