"""Proxies that cut, delay or repeat a request on its way to a server, and count all of them."""

from __future__ import annotations

import http.client
import socket
import struct
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

CUTS = ("before", "within", "after")
"""The connection ends before the server has the request, while it reads, or while it answers."""


class Faults:
    """What happens to which request: `number`, from 0, is cut, delayed or repeated; others pass."""

    def __init__(self):
        self.requests, self._lock = [], Lock()
        self.reset()

    def reset(self, number=None, how=""):
        self.number, self.how = number, how
        self.requests.clear()

    def take(self, request):
        """Count a request, and return what happens to it."""
        with self._lock:
            self.requests.append(request)
            return self.how if len(self.requests) - 1 == self.number else ""


@contextmanager
def proxying_http(endpoint):  # noqa: C901 (a handler of requests)
    """Yield the endpoint of a proxy before an HTTP server, and its faults."""
    faults, port = Faults(), int(endpoint.rpartition(":")[2])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            how = faults.take((self.command, self.path))
            if how == "before":
                return self.cut()
            if how == "within":
                head = f"{self.command} {self.path} HTTP/1.1\r\n{self.headers}"
                with socket.create_connection(("127.0.0.1", port)) as server:
                    whole = head.encode() + body
                    server.sendall(whole[: len(whole) // 2 if not body else -len(body) // 2])
                return self.cut()
            if how == "delay":
                time.sleep(0.5)
            if how == "double":
                self.ask(body)
            status, headers, data = self.ask(body)
            if how == "after":
                return self.cut()
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            if self.command == "HEAD":
                self.send_header("Content-Length", dict(headers).get("Content-Length", "0"))
            else:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return None

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815

        def ask(self, body):
            server = http.client.HTTPConnection("127.0.0.1", port)
            try:
                server.putrequest(
                    self.command, self.path, skip_host=True, skip_accept_encoding=True
                )
                for name, value in self.headers.items():
                    server.putheader(name, value)
                server.endheaders(body)
                answer = server.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                server.close()

        def cut(self):
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_):
            pass  # a client that went away

    with Server(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", faults
        finally:
            server.shutdown()


@contextmanager
def proxying_postgres(port):
    """Yield the port of a proxy before PostgreSQL, and its faults; a request ends with a Sync."""
    faults = Faults()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        Thread(target=_accept_all, args=(listening, port, faults), daemon=True).start()
        yield listening.getsockname()[1], faults
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def _accept_all(listening, port, faults):
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            Thread(target=_relay, args=(client, port, faults), daemon=True).start()


def _relay(client, port, faults):
    """Pass requests of one connection on, and their answers back, one after the other."""
    with client, socket.create_connection(("127.0.0.1", port)) as server, suppress(OSError):
        request = _read_start(client)
        while request:
            how = faults.take(request)
            if how == "before":
                return
            if how == "within":
                server.sendall(request[: len(request) // 2])
                return
            if how == "delay":
                time.sleep(0.5)
            server.sendall(request)
            answer = _read_until(server, b"Z")
            if how == "after":
                return
            client.sendall(answer)
            request = _read_until(client, b"SQX")


def _read_start(client):
    size = _read_exactly(client, 4)
    return size and size + _read_exactly(client, struct.unpack("!I", size)[0] - 4)


def _read_until(source, last):
    """Return whole messages up to one whose type is among `last`, or until the end."""
    messages = b""
    while True:
        head = _read_exactly(source, 5)
        if not head:
            return messages
        messages += head + _read_exactly(source, struct.unpack("!I", head[1:])[0] - 4)
        if head[:1] in last:
            return messages


def _read_exactly(source, count):
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            return b""
        data += part
    return data
