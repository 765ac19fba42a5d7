"""A small server of Kubernetes: one pod, and programs that kubectl starts in it.

It answers what kubectl asks before `exec`, and speaks `v5.channel.k8s.io`: every message begins
with the number of its stream (0 input, 1 output, 2 errors, 3 how it ended, 255 a stream's end). As
in a cluster, a client that goes away ends nothing but the program's input.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketDisconnect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from starlette.requests import HTTPConnection, Request
    from starlette.websockets import WebSocket

PROTOCOL = "v5.channel.k8s.io"
FIRST_MINOR = 31
"""The version of kubectl that speaks it without being asked."""
NAMESPACE, POD, CONTAINERS = "team-a", "web-0", ("app", "sidecar")
_ANSWERS = {
    f"/api/v1/namespaces/{NAMESPACE}": {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": NAMESPACE},
    },
    "/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod"}
            | {"verbs": ["get", "list"], "shortNames": ["po"]},
            {"name": "pods/exec", "singularName": "", "namespaced": True}
            | {"kind": "PodExecOptions", "verbs": ["create", "get"]},
        ],
    },
}


class PodServer:
    """Answers kubectl; `enter` are the words before a program that start it in a container."""

    def __init__(self, enter: Sequence[str]) -> None:
        self.enter = tuple(enter)
        self.containers: list[str | None] = []
        """In which container each program was started."""

    def build(self) -> Starlette:
        """Return the application."""
        pod = f"/api/v1/namespaces/{NAMESPACE}/pods/{{name}}"
        return Starlette(
            routes=[
                *(Route(path, self._answer) for path in _ANSWERS),
                Route(pod, self._describe),
                WebSocketRoute(f"{pod}/exec", self._start),
                Route(f"{pod}/exec", self._refuse, methods=["POST"]),
            ]
        )

    async def _answer(self, request: Request) -> JSONResponse:
        return JSONResponse(_ANSWERS[request.url.path])

    async def _describe(self, request: Request) -> JSONResponse:
        name = request.path_params["name"]
        if name != POD:
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
            why = {"message": f'pods "{name}" not found', "reason": "NotFound", "code": 404}
            return JSONResponse(status | why, status_code=404)
        return JSONResponse({
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": POD, "namespace": NAMESPACE},
            "spec": {"containers": [{"name": name, "image": "box"} for name in CONTAINERS]},
            "status": {"phase": "Running"},
        })  # fmt: skip

    async def _refuse(self, request: HTTPConnection) -> JSONResponse:
        """Answer that there is no such container; kubectl asks so with POST, too."""
        why = f"container {request.query_params.get('container')} is not valid for pod {POD}"
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        details = {"message": why, "reason": "BadRequest", "code": 400}
        return JSONResponse(status | details, status_code=400)

    async def _start(self, channel: WebSocket) -> None:
        assert PROTOCOL in channel.scope["subprotocols"]
        query = channel.query_params
        if query.get("container", CONTAINERS[0]) not in CONTAINERS:
            await channel.send_denial_response(await self._refuse(channel))
            return
        await channel.accept(subprotocol=PROTOCOL)
        self.containers.append(query.get("container"))
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(
            *self.enter, *query.getlist("command"), stdin=pipe, stdout=pipe, stderr=pipe
        )
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        feeding = asyncio.ensure_future(feed_program(channel, program.stdin))
        copying = [
            send_stream(channel, number, stream)
            for number, stream in ((1, program.stdout), (2, program.stderr))
        ]
        await asyncio.gather(*copying)
        code = await program.wait()
        with suppress(WebSocketDisconnect, RuntimeError):
            await channel.send_bytes(b"\x03" + json.dumps(describe_end(code)).encode())
            await channel.close()
        await feeding


async def feed_program(channel: WebSocket, stdin: asyncio.StreamWriter) -> None:
    """Write what comes from the client into the program until either ends."""
    with suppress(WebSocketDisconnect, ConnectionError, RuntimeError):
        while True:
            message = await channel.receive_bytes()
            if message[:1] == b"\xff":
                break
            if message[:1] == b"\0":
                stdin.write(message[1:])
                await stdin.drain()
    with suppress(ConnectionError):
        stdin.close()


async def send_stream(channel: WebSocket, number: int, stream: asyncio.StreamReader) -> None:
    """Send what a program prints; what nobody takes any more is read and lost."""
    is_open = True
    while data := await stream.read(32_768):
        if is_open:
            try:
                await channel.send_bytes(bytes([number]) + data)
            except (WebSocketDisconnect, RuntimeError):
                is_open = False


def describe_end(code: int) -> dict[str, object]:
    """Return how a program ended, as the kubelet says it."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    text = f"command terminated with non-zero exit code: exit status {code}"
    status = {"metadata": {}, "status": "Failure", "message": text, "reason": "NonZeroExitCode"}
    return {**status, "details": {"causes": causes}}


@contextmanager
def serve_pod(folder: Path, enter: Sequence[str]) -> Iterator[tuple[PodServer, list[str]]]:
    """Serve a pod on loopback; yield the server, and kubectl with the arguments that lead there."""
    told = subprocess.run(
        ("kubectl", "version", "--client", "-o", "json"), capture_output=True, check=True
    )
    minor = json.loads(told.stdout)["clientVersion"]["minor"].rstrip("+")
    if int(minor) < FIRST_MINOR:
        pytest.skip(f"kubectl 1.{minor} does not speak {PROTOCOL}")
    pods = PodServer(enter)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        pods.build(), log_level="error", ws="wsproto", ws_max_size=1 << 26, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    settings = folder / "kubeconfig"
    facts = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "lab", "context": {"cluster": "here", "user": "me"}}],
    }
    settings.write_text(json.dumps(facts))
    thread.start()
    try:
        cache = f"--cache-dir={folder}/kube-cache"
        yield pods, ["kubectl", f"--kubeconfig={settings}", cache]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
