"""The lines between an editor and the agent: what the protocol's package does not route itself.

what comes                         what the package is given
---------------------------------  ---------------------------------------------------------
session/delete                     an extension method of that name
$/cancel_request of a prompt       session/cancel of its session: the prompt answers `cancelled`
$/cancel_request of anything else  nothing: it is answered soon
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acp import AgentSideConnection, stdio_streams
from acp._transport import NdjsonTransport
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.task import MessageSender, TaskSupervisor

if TYPE_CHECKING:
    from .agent import AcpAgent

_EXTENSIONS = ("session/delete",)


class EditorTransport:
    """Lines of JSON on two streams (`acp.connection.Transport`)."""

    def __init__(self, lines: NdjsonTransport) -> None:
        self._lines = lines
        self._prompts: dict[Any, str] = {}
        """Session of each prompt that is not answered yet, by the id of the request."""

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message for the package; None at the end of the input."""
        while (message := await self._lines.receive()) is not None:
            params = message.get("params")
            match message.get("method"):
                case "session/prompt" if isinstance(params, dict) and "id" in message:
                    self._prompts[message["id"]] = str(params.get("sessionId"))
                case "$/cancel_request":
                    wanted = params.get("requestId") if isinstance(params, dict) else None
                    session = self._prompts.get(wanted)
                    if session is None:
                        continue
                    return {
                        "jsonrpc": "2.0",
                        "method": "session/cancel",
                        "params": {"sessionId": session},
                    }
                case method if method in _EXTENSIONS:
                    return {**message, "method": f"_{method}"}
            return message
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        if "method" not in message:
            self._prompts.pop(message.get("id"), None)
        await self._lines.send(message)

    async def close(self) -> None:
        """Stop."""
        await self._lines.close()


async def serve_editor(agent: AcpAgent) -> None:
    """Serve the editor on standard input and output until the input ends."""
    reader, writer = await stdio_streams(limit=DEFAULT_STDIO_BUFFER_LIMIT_BYTES)
    sender = MessageSender(writer, TaskSupervisor(source="gong.acp"))
    transport = EditorTransport(NdjsonTransport(reader, sender))
    # session/close and session/resume are stable; the package still asks for this.
    connection = AgentSideConnection(agent, transport, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await connection.close()
