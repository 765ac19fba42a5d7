"""How the official OpenAI SDK is used, for both of its wires.

Its own way for requests it has no types for: the typed one walks the whole history every time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI

    from .connection import ClientLimits, EncodedRequest, Modules, Route


class OpenAISdk:
    """Makes clients and sends with them."""

    package, error = "openai", "OpenAIError"

    def create_client(self, modules: Modules, route: Route, limits: ClientLimits) -> AsyncOpenAI:
        """Return a client that tries nothing twice and takes nothing from the environment."""
        client: AsyncOpenAI = modules.sdk.AsyncOpenAI(
            api_key=route.key,
            base_url=route.endpoint,
            max_retries=0,
            timeout=limits.timeout,
            http_client=limits.open_client(modules.http),
        )
        # What the SDK took from the environment may be another provider's.
        client.organization = client.project = None
        client._custom_headers = route.preset.headers  # noqa: SLF001 (it has no other way)
        return client

    async def post_call(
        self, client: Any, modules: Modules, route: Route, call: EncodedRequest
    ) -> Response:
        """Return the response whatever its status."""
        try:
            response = await client.post(
                call.path,
                cast_to=modules.http.Response,
                content=call.body,
                options={"headers": {**_build_openai_credentials(modules, route), **call.headers}},
                stream=True,
                stream_cls=modules.sdk.AsyncStream[object],
            )
        except modules.sdk.APIStatusError as error:
            response = error.response
        return cast("Response", response)

    async def close(self, client: AsyncOpenAI) -> None:
        """Let go of its connections."""
        await client.close()


def _build_openai_credentials(modules: Modules, route: Route) -> dict[str, Any]:
    """Return the header that holds the key; given with each call, no variable changes it."""
    if route.preset.auth == "bearer":
        return {"Authorization": f"Bearer {route.key}"}
    return {route.preset.auth: route.key, "Authorization": modules.sdk.Omit()}
