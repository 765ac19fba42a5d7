"""A local server that sends any bytes, as fast or as slowly as it is told."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress


class RawServer:
    """Answers each connection's first request with what `answer` yields, while it is entered."""

    def __init__(self, answer):
        self._answer = answer
        self.requests: list[bytes] = []

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._over = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._socket.close()

    def _listen(self):
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, suppress(OSError):
            self.requests.append(_read_request(client))
            for piece in self._answer():
                if self._over.is_set():
                    return
                if piece is RESET:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                if isinstance(piece, float):
                    if self._over.wait(piece):
                        return
                else:
                    client.sendall(piece)


RESET = object()
"""In an answer: break the connection instead of closing it. A float is a pause in seconds."""


def head(status=200, content_type="text/event-stream", **headers):
    """Return the head of an answer that ends with its connection."""
    lines = [f"HTTP/1.1 {status} Whatever", f"content-type: {content_type}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _read_request(client):
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(client)
    before, _, body = data.partition(b"\r\n\r\n")
    lines = before.lower().split(b"\r\n")
    size = next((int(one.partition(b":")[2]) for one in lines if b"content-length" in one), 0)
    while len(body) < size:
        body += _more(client)
    return before + b"\r\n\r\n" + body


def _more(client):
    data = client.recv(65_536)
    if not data:
        raise ConnectionError
    return data
