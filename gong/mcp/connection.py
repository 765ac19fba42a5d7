"""One server: started in the background, asked, and started again where it died.

    state      what happened                              a call, or the next prompt
    ---------  -----------------------------------------  -------------------------------------
    stopped    nothing yet, or `stop`                      starts it
    starting   its process or address is being reached     a call waits; a prompt does not
    ready      its tools are known                         is answered
    failed     it did not start, or ended by itself        starts it again, once the pause is over

The pause after a failure is 1 s, then twice as long each time, up to a minute; after a server that
was ready before there is none the first time. A task of its own enters and leaves the connection,
as the SDK needs it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.caching import CacheConfig
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..errors import GongError
from .answer_check import AnswerCheck, RefusedMember, describe_fault
from .elicitation import answer_elicitation
from .results import build_outcome, describe_unfit_result
from .tool_schemas import TranslatedSchema, UnusableSchema, translate_schema
from .transports import open_transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    import httpx2
    from mcp.client.session import ClientRequestContext, IncomingMessage

    from ..env.sandbox.sandbox import Sandbox
    from ..tools.tool import ToolContext, ToolOutcome
    from .servers import ServerConfig

ServerState = Literal["stopped", "starting", "ready", "failed"]

_MAX_PAGES = 100
"""Pages of a list that are read; a server whose list never ends must not hang a session."""
_MAX_PAUSE = 60.0
_END_SECONDS = 8.0
"""How long a server is waited for at the end; the SDK ends its process before that."""
for _name in ("mcp", "client"):  # what the SDK logs would go to the screen of a session
    logging.getLogger(_name).addHandler(logging.NullHandler())


class ServerFailed(GongError):
    """A server could not be started, or ended; the text says why, and where its log is."""


class ServerConnection:
    """One server of a session. Use it from one event loop, and close it."""

    def __init__(
        self,
        server: ServerConfig,
        *,
        folder: str,
        variables: Mapping[str, str],
        log: Path,
        auth: httpx2.Auth | None = None,
        version: str = "",
        sandbox: Sandbox | None = None,
    ) -> None:
        self.server, self.log = server, log
        self.state: ServerState = "stopped"
        self.error = ""
        """Why it failed; empty otherwise."""
        self.tools: tuple[types.Tool, ...] = ()
        """Its tools as it told them, sorted by name; they stay while it is down."""
        self.schemas: dict[str, TranslatedSchema] = {}
        """The schemas of their arguments for models, by the tool's name."""
        self.left_out: tuple[RefusedMember, ...] = ()
        """The tools that it told and that cannot be used."""
        self.starts = 0
        """How often it was started."""
        self._folder, self._variables = folder, variables
        self._auth, self._version, self._sandbox = auth, version, sandbox
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        """Set when a start has succeeded or failed."""
        self._stop = asyncio.Event()
        self._failures = 0
        self._next_start = 0.0
        self._answers = AnswerCheck()
        self._is_stale = False
        """Whether the server has said that its tools changed."""
        self._expires: float | None = None
        """When the list of tools is to be asked for again; None if the server set no time."""
        self._contexts: list[ToolContext] = []
        """The calls that run now, the newest last."""
        self._asking = asyncio.Lock()

    @property
    def pause(self) -> float:
        """Seconds until it may be started again."""
        return max(0.0, self._next_start - monotonic())

    @property
    def client(self) -> Client:
        """The SDK's client of a server that is ready."""
        if self._client is None:
            raise ServerFailed(self._describe_failure())
        return self._client

    def begin(self) -> bool:
        """Start it in the background, where it does not run and may be; return whether it did."""
        if self.state in {"starting", "ready"} or self.pause > 0:
            return False
        self.state, self.error = "starting", ""
        self.starts += 1
        self._settled, self._stop = asyncio.Event(), asyncio.Event()
        self._owner = asyncio.create_task(self._serve(), name=f"mcp {self.server.name}")
        return True

    async def wait(self, seconds: float) -> bool:
        """Wait so long for the end of a start; return whether the server is ready."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        return self.state == "ready"

    async def ensure(self) -> Client:
        """Return the client of a server that is ready, started for that; raises ServerFailed."""
        if self._stop.is_set() and self._owner is not None:
            await asyncio.wait({self._owner})  # it has just ended, and its process is cleared away
        if self.state != "ready":
            if self.pause > 0:
                raise ServerFailed(
                    f"{self._describe_failure()}; it is tried again in {self.pause:.0f} s"
                )
            self.begin()
            await self.wait(self.server.startup_seconds + 1)
        return self.client

    async def restart(self) -> None:
        """End it and start it again at once."""
        await self.close()
        self._failures, self._next_start = 0, 0.0
        self.begin()

    async def close(self) -> None:
        """End the connection and its process; safe to call twice."""
        self._stop.set()
        owner, self._owner = self._owner, None
        if owner is not None and not owner.done():
            await asyncio.wait({owner}, timeout=_END_SECONDS)
            if not owner.done():
                owner.cancel()
                await asyncio.wait({owner}, timeout=_END_SECONDS)
        self.state = "stopped"

    async def _serve(self) -> None:
        """Hold the connection from its start to its end."""
        was_ready = False
        try:
            with anyio.fail_after(self.server.startup_seconds) as limit:
                async with self._build_client() as client:
                    self._answers.version = client.protocol_version
                    self.tools = await self._list_tools(client)
                    self._client, self.state, was_ready = client, "ready", True
                    self._failures, limit.deadline = 0, float("inf")
                    self._settled.set()
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._listen, client)
                        await self._stop.wait()
                        group.cancel_scope.cancel()
        except TimeoutError:
            self.error = f"it was not ready after {self.server.startup_seconds:g} s"
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - groups of whatever a transport raises
            self.error = _format_cause(error)
        finally:
            self._client = None
            if self.state != "stopped":
                self._note_end(was_ready=was_ready)
            self._settled.set()

    def _note_end(self, *, was_ready: bool) -> None:
        """Note that a server ended which was not told to, and how long to leave it alone."""
        self.state = "failed"
        self.error = self.error or "it ended by itself"
        pause = 0.0 if was_ready else min(2.0**self._failures, _MAX_PAUSE)
        self._failures += 1
        self._next_start = monotonic() + pause

    def _build_client(self) -> Client:
        self._answers = AnswerCheck()
        transport = open_transport(
            self.server,
            self._variables,
            self._folder,
            self.log,
            self._answers,
            auth=self._auth,
            on_end=self._stop.set,
            sandbox=self._sandbox,
        )
        return Client(
            transport,
            client_info=types.Implementation(name="gong", version=self._version),
            elicitation_callback=self._elicit,
            logging_callback=self._show_log,
            log_level="info",
            message_handler=self._take_message,
            cache=CacheConfig(),
        )

    async def _list_tools(self, client: Client) -> tuple[types.Tool, ...]:
        """Return all tools of a server, sorted by name: in the same order in every session."""
        if client.server_capabilities.tools is None and self._is_modern(client):
            return ()
        listed: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            listed += page.tools
            ttl = page.ttl_ms if self._is_modern(client) else None
            self._expires = monotonic() + ttl / 1000 if ttl else None
            cursor = page.next_cursor
            if not cursor:
                break
        self._is_stale = False
        return self._choose_usable(listed)

    def _choose_usable(self, listed: list[types.Tool]) -> tuple[types.Tool, ...]:
        """Return the tools that models can be offered, sorted by name; note the others."""
        left_out = [*self._answers.refused.get("tools/list", ())]
        usable: dict[str, types.Tool] = {}
        schemas: dict[str, TranslatedSchema] = {}
        for number, tool in enumerate(listed, 1):
            if not tool.name.strip():
                left_out.append(RefusedMember(f"no. {number}", "its name is empty"))
                continue
            if tool.name in usable:
                left_out.append(RefusedMember(tool.name, "another tool has its name"))
                continue
            try:
                schemas[tool.name] = translate_schema(tool.input_schema)
            except UnusableSchema as error:
                left_out.append(RefusedMember(tool.name, str(error)))
                continue
            if (schema := self._answers.output_schemas.get(tool.name)) is not None:
                tool = tool.model_copy(update={"output_schema": schema})  # noqa: PLW2901
            usable[tool.name] = tool
        self.schemas, self.left_out = schemas, tuple(left_out)
        return tuple(usable[name] for name in sorted(usable))

    @staticmethod
    def _is_modern(client: Client) -> bool:
        """Whether a connection is of the revision without sessions, 2026-07-28 or newer."""
        return client.session.discover_result is not None

    async def refresh(self) -> bool:
        """Ask for the tools again, where they changed or their time is over; True if they differ.

        Raises ServerFailed where the server does not answer.
        """
        is_over = self._expires is not None and monotonic() >= self._expires
        if self.state != "ready" or not (self._is_stale or is_over):
            return False
        before = self.tools
        with self._translate_errors():
            self.tools = await self._list_tools(self.client)
        return self.tools != before

    async def _listen(self, client: Client) -> None:
        """Hear of changed tools, of a server that sends such events only to who listens."""
        capability = client.server_capabilities.tools
        if not (self._is_modern(client) and capability is not None and capability.list_changed):
            return
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._is_stale = True

    async def _take_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._is_stale = True

    async def _show_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Show a log message as output of the newest call; without one it is dropped."""
        if self._contexts:
            data = params.data if isinstance(params.data, str) else str(params.data)
            self._contexts[-1].update(f"{params.level}: {data}\n")

    async def _elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002 (a callback of the SDK)
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the person at the session, one form at a time; without a call nobody is asked."""
        if not self._contexts:
            return types.ElicitResult(action="decline")
        asker = self._contexts[-1]
        async with self._asking:
            return await answer_elicitation(self.server.name, params, asker.dialogue, asker.call_id)

    async def call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Call a tool and return its result. Raises ServerFailed, and MCPError of the server."""
        client = await self.ensure()

        async def show_progress(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            context.update(f"{share} {message}\n" if message else f"{share}\n")

        with self._hold_context(context), self._translate_errors():
            result = await client.call_tool(
                tool, arguments, self.server.call_seconds, progress_callback=show_progress
            )
        remark = describe_unfit_result(result, self._answers.output_schemas.get(tool))
        return await build_outcome(self.server.name, tool, result, context, remark)

    @contextmanager
    def _hold_context(self, context: ToolContext) -> Iterator[None]:
        self._contexts.append(context)
        try:
            yield
        finally:
            self._contexts.remove(context)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Name a server that has gone; what it refuses is raised as it is."""
        try:
            yield
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED or self._stop.is_set():
                self._stop.set()
                raise ServerFailed(self._describe_failure()) from error
            if error.code == types.REQUEST_TIMEOUT:
                seconds = self.server.call_seconds
                raise ServerFailed(
                    f"{self.server.name} did not answer within {seconds:g} s"
                ) from error
            if "session terminated" in str(error).lower():
                self._stop.set()
            raise

    def _describe_failure(self) -> str:
        where = f" (its log: {self.log})" if self.server.kind == "stdio" else ""
        return f"the MCP server {self.server.name} is down: {self.error or 'it has ended'}{where}"

    def list_refused(self, kind: Literal["resources", "prompts"]) -> tuple[RefusedMember, ...]:
        """Return what of a list that was asked for is not as the protocol says."""
        return tuple(self._answers.refused.get(f"{kind}/list", ()))

    async def list_resources(self) -> tuple[types.Resource, ...]:
        """Return what can be read from a server; nothing where it offers nothing."""
        client = await self.ensure()
        if client.server_capabilities.resources is None:
            return ()
        return tuple(
            [
                resource
                async for page in _read_pages(client.list_resources)
                for resource in page.resources
            ]
        )

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """Return a resource. Raises ServerFailed, and MCPError where there is none."""
        client = await self.ensure()
        with self._translate_errors():
            return await client.read_resource(uri)

    async def list_prompts(self) -> tuple[types.Prompt, ...]:
        """Return the prompts of a server; nothing where it offers nothing."""
        client = await self.ensure()
        if client.server_capabilities.prompts is None:
            return ()
        return tuple(
            [prompt async for page in _read_pages(client.list_prompts) for prompt in page.prompts]
        )

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
        """Return a prompt with its arguments put in. Raises as `read_resource`."""
        client = await self.ensure()
        with self._translate_errors():
            return await client.get_prompt(name, arguments)


async def _read_pages(fetch: Callable[..., Awaitable[Any]]) -> AsyncGenerator[Any, None]:
    """Yield the pages of a list."""
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await fetch(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor:
            return


def _format_cause(error: BaseException) -> str:
    """Return the first cause in a group of errors, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        return f"its answer is not as the protocol says: {describe_fault(error)}"
    return " ".join(str(error).split()) or type(error).__name__
