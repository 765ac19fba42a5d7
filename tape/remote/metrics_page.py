"""A page with figures for Prometheus, on loopback: GET /metrics, and nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

from ..errors import UsageError
from .metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOOPBACK = "127.0.0.1"
_TIMEOUT = 10.0
"""Seconds that a client may take for its request."""


@contextmanager
def serve_metrics(port: int, render: Callable[[], str]) -> Iterator[str]:
    """Serve what `render` returns, and yield the address; 0 is any free port. Raises UsageError."""

    class MetricsRequest(BaseHTTPRequestHandler):
        """One request."""

        timeout = _TIMEOUT
        server_version, sys_version = "tape", ""

        def do_GET(self) -> None:
            """Answer with the figures."""
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = render().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep requests out of the log of pushes."""

    try:
        server = ThreadingHTTPServer((_LOOPBACK, port), MetricsRequest)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used for figures: {error.strerror}") from error
    server.daemon_threads = True
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{_LOOPBACK}:{server.server_port}/metrics"
        finally:
            server.shutdown()
