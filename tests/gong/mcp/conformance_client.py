"""The client that the conformance suite of MCP judges: gong's own connection, and nothing else.

    conformance client --command ".venv/bin/python tests/gong/mcp/conformance_client.py" \
        --requirements 2026-07-28 --expected-failures tests/gong/mcp/conformance_client.yml

The suite gives the address as the last argument, the scenario in a variable, and what a scenario
needs beside that as JSON in another. The browser of a login just follows redirects; questions of
the server are accepted, with the defaults of their fields.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import httpx2

from gong.logins.callback import serve_callback
from gong.mcp.connection import ServerConnection
from gong.mcp.elicitation import ACCEPT, SKIP
from gong.mcp.oauth import TokenStore, build_provider, receive_code
from gong.mcp.servers import OAuthClient, ServerConfig

SAMPLES = {"integer": 5, "number": 5, "boolean": True, "array": [], "object": {}, "string": "test"}


class AcceptingPerson:
    """Accepts every question, and leaves every field to its default."""

    has_person = True

    async def ask(self, _question_id, questions):
        return {one.question: (ACCEPT if "asks:" in one.question else SKIP,) for one in questions}


class CallContext:
    """A call without a session."""

    dialogue, call_id, storage = AcceptingPerson(), "c", None
    env = SimpleNamespace(temporary_directory=tempfile.gettempdir())

    @staticmethod
    def update(text):
        print(text, end="", file=sys.stderr)


def list_calls(tools, facts):
    """Return the calls to make: those the suite gives, else one of each tool with samples."""
    if given := facts.get("toolCalls"):
        return [(one["name"], one.get("arguments", {})) for one in given]
    return [(tool.name, sample_arguments(tool, tools)) for tool in tools]


def sample_arguments(tool, tools):
    """Return arguments of a tool; one that wants a schema gets that of another tool."""
    fields = tool.input_schema.get("properties", {})
    wanted = tool.input_schema.get("required", fields)
    found = {name: SAMPLES.get(fields.get(name, {}).get("type"), "test") for name in wanted}
    if found.get("schema") == {}:
        found["schema"] = next(one.input_schema for one in tools if one is not tool)
    return found


async def follow_redirects(address):
    """Be the browser: the authority redirects to the port that waits."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=10) as browser:
        await browser.get(address)


async def run(address, facts, home):
    oauth = OAuthClient(facts.get("client_id", ""), facts.get("client_secret", ""))
    server = ServerConfig("judge", "http", "-", url=address, oauth=oauth)
    store = TokenStore(server, {"HOME": home})
    async with serve_callback() as callback:
        receive = partial(receive_code, callback)
        auth = build_provider(server, store, callback.redirect, follow_redirects, receive)
        connection = ServerConnection(
            server, folder=home, variables={}, log=Path(home, "log"), auth=auth, version="1"
        )
        try:
            await connection.ensure()
            for name, arguments in list_calls(connection.tools, facts):
                try:
                    outcome = await connection.call(name, arguments, CallContext)
                except Exception as error:  # noqa: BLE001 (a session would go on, too)
                    print(name, "failed:", error)
                    continue
                print(name, [getattr(one, "text", one) for one in outcome.content])
        finally:
            await connection.close()


if __name__ == "__main__":
    facts = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(run(sys.argv[-1], facts, home))
