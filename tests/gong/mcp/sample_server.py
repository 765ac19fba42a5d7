"""A server on the SDK for the tests of the client: `python sample_server.py [http | sse]`.

Its tools do what one word says. A schema is as odd as JSON Schema allows.
"""

from __future__ import annotations

import os
import socket
import sys
import warnings

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

ODD = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"leaf": {"$anchor": "leaf", "type": ["string", "null"], "title": "A leaf"}},
    "properties": {"text": {"$ref": "#/$defs/leaf"}, "any": True},
    "dependentRequired": {"any": ["text"]},
    "unevaluatedProperties": False,
    "x-own": {"b": 1, "a": [None]},
}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "Ada"},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
        "age": {"type": "integer", "minimum": 1},
    },
    "required": ["age"],
}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlE"
    "QVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
NOTHING = {"type": "object", "properties": {}}
bus = InMemorySubscriptionBus()
names = ["zeta", "echo", "ask", "media", "numbers", "steps", "sleep", "die", "grow", "long", "env"]


def describe(name):
    schema = ODD if name == "echo" else NOTHING
    hints = types.ToolAnnotations(read_only_hint=True) if name == "echo" else None
    return types.Tool(
        name=name, description=f"Does {name}.", input_schema=schema, annotations=hints
    )


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=[describe(name) for name in names])


def say(text, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


async def ask(context, params):
    wanted = types.ElicitRequestFormParams(message="Who are you?", requested_schema=FORM)
    if context.protocol_version < "2026":
        answer = await context.session.elicit_form("Who are you?", FORM)
    elif params.input_responses is None:
        return types.InputRequiredResult(
            input_requests={"who": types.ElicitRequest(params=wanted)}, request_state="s1"
        )
    else:
        answer = params.input_responses["who"]
        assert params.request_state == "s1"
    return say(f"{answer.action} {answer.content}")


async def call_tool(context, params):  # noqa: C901, PLR0911 (one case for each tool)
    match params.name:
        case "echo":
            return say(str(params.arguments))
        case "ask":
            return await ask(context, params)
        case "media":
            return types.CallToolResult(
                content=[
                    types.ImageContent(type="image", data=PIXEL, mime_type="image/png"),
                    types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
                    types.ResourceLink(type="resource_link", uri="memo://1", name="memo"),
                    types.EmbeddedResource(
                        type="resource",
                        resource=types.TextResourceContents(uri="memo://2", text="inside"),
                    ),
                ]
            )
        case "numbers":
            return types.CallToolResult(content=[], structured_content={"n": [1, 2]})
        case "steps":
            await context.session.report_progress(1, 2, "half")
            await context.session.send_log_message("info", "a log line")
            return say("done")
        case "sleep":
            await anyio.sleep(60)
        case "die":
            os._exit(3)
        case "grow":
            names.append("grown")
            await bus.publish(ToolsListChanged())
            await context.session.send_tool_list_changed()
            return say("grew")
        case "long":
            return say("row\n" * 5000)
        case "env":
            return say(str(sorted(os.environ)))
    return say(f"no {params.name}", is_error=True)


async def list_resources(_context, _params):
    return types.ListResourcesResult(resources=[types.Resource(uri="memo://1", name="memo")])


async def read_resource(_context, params):
    text = types.TextResourceContents(uri=params.uri, text="a memo")
    return types.ReadResourceResult(contents=[text])


async def list_prompts(_context, _params):
    argument = types.PromptArgument(name="topic", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="explain", arguments=[argument])])


async def get_prompt(_context, params):
    words = types.TextContent(type="text", text=f"Explain {params.arguments['topic']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=words)])


server = Server(
    "sample",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_subscriptions_listen=ListenHandler(bus),
)


async def serve_stdio():
    print("the sample starts", file=sys.stderr, flush=True)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def build_sse_app():
    """Return the older transport of HTTP, at /sse."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def serve(request):
        streams = transport.connect_sse(request.scope, request.receive, request._send)
        async with streams as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        return Response()

    mount = Mount("/messages/", app=transport.handle_post_message)
    return Starlette(routes=[Route("/sse", endpoint=serve), mount])


def serve_http(app):
    """Serve on a free port of the loopback address, and print which it is."""
    import uvicorn  # a third of the time to import this

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


def main():
    match sys.argv[1:]:
        case ["http"]:
            serve_http(server.streamable_http_app(host="127.0.0.1"))
        case ["sse"]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated, and still in use
                serve_http(build_sse_app())
        case _:
            anyio.run(serve_stdio)


if __name__ == "__main__":
    main()
