"""A store in a `tape serve` process of its own, and requests to it."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from tape.index.library import open_store
from tape.model.entries import Assistant, Cost, Text, Usage, User
from tape.store.store import Beginning
from tests import warm


class Answer(NamedTuple):
    """What a server sent."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Server:
    """A `tape serve` process."""

    def __init__(self, home, *argv, **env):
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        self.env |= env
        command = [warm.find_commands() / "tape", "serve", *(argv or ("--port", "0"))]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, text=True
        )
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise AssertionError(self.process.communicate()[1])
        parts = urlsplit(self.address)
        self.port, self.token = parts.port, parts.query.removeprefix("token=")

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, method="GET", body=None, **headers) -> Answer:
        """Send a request with the token, unless its header is given."""
        named = {"Authorization": f"Bearer {self.token}"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {k: v for k, v in named.items() if v is not None})
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        connection.close()
        return answer

    def get(self, path, /, **query) -> str:
        """Return a page."""
        answer = self.ask(f"{path}?{urlencode(query)}" if query else path)
        assert answer.status == 200, answer.text
        return answer.text

    def stop(self):
        """End it as Ctrl+C does; return its exit code, and what it printed meanwhile."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def serving(home, *argv, **env):
    server = Server(home, *argv, **env)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def record(library, title, *words, model="claude-x", cost=0.5, **beginning):
    """Write a session of prompts and answers, and return its id."""
    made = library.store.create(Beginning(beginning.pop("cwd", "/src"), "test/1", **beginning))
    with made as tape, tape.writer() as writer:
        for text in words:
            writer.append(User((Text(text),)))
            answer = Assistant(
                (Text(f"answer to {text}"),),
                "anthropic",
                model=model,
                usage=Usage(100, 20, total=120),
                cost=Cost("USD", cost) if cost is not None else None,
            )
            writer.append(answer)
        writer.barrier()
        tape.rename(title)
        return tape.id


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The store of the tests of a module, below a home of its own."""
    with open_store(tmp_path_factory.mktemp("home") / ".tape") as opened:
        yield opened
