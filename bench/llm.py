"""Calling models: the first request of a process, calls as a history grows, a streamed piece.

The host is a process of its own on this machine (`model_server.py`). The floor of a start is a
Python that loads asyncio and TLS and posts with the standard library; that of calls is a common
HTTP client, httpx2, with nothing of ours: it joins JSON that is ready and splits what comes at
blank lines.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import aclosing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import httpx2
import model_server
from measure import MIB, Pair, Row, Scale, by_turns
from msgspec import Raw
from msgspec.structs import replace

from gong.llm.models import load_presets
from gong.llm.provider_factory import create_provider
from gong.llm.types import Request, TextDelta, ToolSpec
from tape.context.view import Message
from tape.formats.registry import FORMATS
from tape.model.entries import Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gong.llm.types import Provider

ROUNDS = (50, 200)
PIECES = 2_000
WARM = 5
"""Calls before the first one that is timed."""
MORE_ROUNDS = 10
"""By so many a session grows while it is timed, so that its size is what the row says."""
MAX_CALLS = 60


class Wire(NamedTuple):
    """How one wire is spoken without an adapter."""

    form: str
    """Name of its array."""
    path: str
    per_round: int
    """Elements of the array for one round."""


WIRES = {
    "openai-chat": Wire("openai-chat", "chat/completions", 2),
    "openai": Wire("openai-responses", "responses", 3),
    "anthropic": Wire("anthropic", "v1/messages", 2),
    "google": Wire("gemini", "v1beta/models/bench-1:streamGenerateContent?alt=sse", 2),
}
"""By preset."""
RESULT = "  12  def read(path: str) -> str:  # \u2013 one line of many\n" * 20
TOOL = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{"path":{}}}'))


def round_of(number: int) -> list[Message]:
    """Return one round: a call with a few words, and its result of 1 KB."""
    call = ToolCall(id=f"c_1a2b3c4d_{number}", name="read", args=Raw(b'{"path":"src/app.py"}'))
    said = Text(f"Let me look at file {number}.")
    return [
        Message("assistant", (said, call)),
        Message("tool", (Text(f"{number}\n{RESULT}"),), call.id, "read"),
    ]


def history(rounds: int) -> tuple[Message, ...]:
    first = Message("user", (Text("Look at every file."),))
    return (first, *(message for number in range(rounds) for message in round_of(number)))


@contextmanager
def served() -> Iterator[int]:
    """Run the host; give its port."""
    script = Path(__file__).with_name("model_server.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as host:
        try:
            yield int(host.stdout.readline())
        finally:
            host.kill()


class Ours:
    """An adapter, called as a session calls it."""

    def __init__(self, wire: str, url: str) -> None:
        preset = replace(load_presets({})[wire], base_url=url)
        self.provider: Provider = create_provider(preset, {}, lambda *_: "sk-bench")

    async def seconds(self, messages: Sequence[Message]) -> float:
        """Return how long it takes from a request to the first event of its answer."""
        request = Request(
            model="bench-1", messages=tuple(messages), system="Be brief.", tools=(TOOL,)
        )
        began = time.perf_counter()
        async with aclosing(self.provider.stream(request)) as events:
            await anext(events)
            taken = time.perf_counter() - began
            async for _ in events:
                pass
        return taken

    async def seconds_of_answer(self) -> float:
        """Return how long it takes to read a whole answer."""
        began, pieces = time.perf_counter(), 0
        async with aclosing(
            self.provider.stream(Request(model="bench-1", messages=history(0)))
        ) as events:
            async for event in events:
                pieces += isinstance(event, TextDelta)
        assert pieces >= PIECES, pieces
        return time.perf_counter() - began


class Floor:
    """The bare HTTP client."""

    def __init__(self, wire: str, url: str) -> None:
        self.client = httpx2.AsyncClient()
        self.url = f"{url}/{WIRES[wire].path}"
        encoder = FORMATS[WIRES[wire].form].encoder(None)
        self.ready = encoder.elements(history(max(ROUNDS) * 2))
        self.per_round = WIRES[wire].per_round

    async def seconds(self, rounds: int) -> float:
        began = time.perf_counter()
        elements = self.ready[: 1 + rounds * self.per_round]
        body = b'{"model":"bench-1","stream":true,"messages":[%b]}' % b",".join(elements)
        async with self.client.stream("POST", self.url, content=body) as response:
            chunks = response.aiter_bytes()
            await anext(chunks)
            taken = time.perf_counter() - began
            async for _ in chunks:
                pass
        return taken

    async def seconds_of_answer(self) -> float:
        began, rest, pieces = time.perf_counter(), b"", 0
        async with self.client.stream("POST", self.url, content=b"{}") as response:
            async for chunk in response.aiter_bytes():
                *events, rest = (rest + chunk).split(b"\n\n")
                pieces += len([event.partition(b"data: ")[2] for event in events])
        assert pieces > PIECES, pieces
        return time.perf_counter() - began


POST = """
import asyncio, http.client, ssl, sys
client = http.client.HTTPConnection(sys.argv[1])
client.request("POST", "/v1/messages", b"{}")
client.getresponse().read()
"""
"""The least a Python program does that can talk to a model."""
STARTS = 11
"""How often each process is started."""


class Arrivals(BaseHTTPRequestHandler):
    """Answers POST /WIRE/… at once; notes when the first request of a process arrived."""

    protocol_version = "HTTP/1.1"
    first: float | None = None

    def do_POST(self) -> None:
        Arrivals.first = Arrivals.first or time.perf_counter()
        self.rfile.read(int(self.headers["content-length"]))
        wire = self.path.split("/")[1]
        self.wfile.write(model_server.answer(wire if wire in WIRES else "anthropic", 3))

    def log_message(self, *_: object) -> None:
        pass


class Start(NamedTuple):
    """One process from its start: seconds to its first request, and its highest memory in MiB."""

    seconds: float
    memory: float


def start(command: list[str], home: str, **env: str) -> Start:
    Arrivals.first = None
    env |= {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8"}
    quiet, began = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}, time.perf_counter()
    process = subprocess.Popen(command, cwd=home, env=env, **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    assert Arrivals.first is not None, command
    unit = 1 if sys.platform == "darwin" else 1024
    return Start(Arrivals.first - began, used.ru_maxrss * unit / MIB)


def start_rows() -> list[Row]:
    """Start `gong -p` on each wire, and the floor, by turns."""
    host = ThreadingHTTPServer(("127.0.0.1", 0), Arrivals)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{host.server_port}"
    gong = str(Path(sys.executable).with_name("gong"))
    with tempfile.TemporaryDirectory() as home:
        works = {"floor": lambda: start([sys.executable, "-c", POST, address], home)}
        for wire in WIRES:
            variable = f"{wire.upper().replace('-', '_')}_BASE_URL"
            given = {variable: f"http://{address}/{wire}"}
            command = [gong, "-m", f"{wire}/bench-1", "-p", "hi"]
            works[wire] = lambda command=command, given=given: start(command, home, **given)
        for work in works.values():
            work()  # warm: byte code is compiled, the store is there
        found: dict[str, list[Start]] = {name: [] for name in works}
        for _ in range(STARTS):
            for name, work in works.items():
                found[name].append(work())
    host.shutdown()
    host.server_close()
    floor = median(one.seconds for one in found["floor"])
    rows = []
    for wire in WIRES:
        seconds = median(one.seconds for one in found[wire])
        memory = max(one.memory for one in found[wire])
        bare = "python: asyncio, TLS, one POST"
        rows += [
            Row(f"{wire}: start to first request", bare, seconds / floor, "×", 2.2),
            Row(f"{wire}: highest memory of one answer", "–", memory, "MiB", 60.0),
        ]
    return rows


def llm_rows(path: Path, scale: Scale) -> list[Row]:  # noqa: ARG001 (no data is made)
    starts = start_rows()
    with served() as port, asyncio.Runner() as runner:
        return [*starts, *(row for wire in WIRES for row in _rows(wire, port, scale, runner))]


def _rows(wire: str, port: int, scale: Scale, runner: asyncio.Runner) -> list[Row]:
    url = f"http://127.0.0.1:{port}/{wire}"
    sessions = [Session(wire, f"{url}/1", rounds, runner) for rounds in ROUNDS]
    works = [work for one in sessions for work in (one.ours, one.floor)]
    short, bare_short, long, bare_long = in_turns(min(scale.rounds, MAX_CALLS), works)
    calls, note = [short / bare_short, long / bare_long], "all four by turns in one run"
    pieces = _pieces(wire, f"{url}/{PIECES}", max(5, scale.rounds // 10), runner)
    bare, split = "bare HTTP client, ready JSON", "bare HTTP client, split"
    grows, before = f"call after {ROUNDS[1]} rounds", f"after {ROUNDS[0]}"
    return [
        *(
            Row(f"{wire}: call after {rounds} rounds", bare, ratio, "×", 3.0, note=note)
            for rounds, ratio in zip(ROUNDS, calls, strict=True)
        ),
        Row(f"{wire}: {grows}", before, long / short, "×", 1.5, note=note),
        Row(f"{wire}: {grows}, bare client", before, bare_long / bare_short, "×", None, note=note),
        Row(f"{wire}: streamed piece, {PIECES:,}", split, pieces.ratio, "×", 2.0),
        Row(f"{wire}: connections in 200 rounds", "–", _connections(wire, port, runner), "", 1.0),
    ]


def in_turns(times: int, works: Sequence[Callable[[], float]]) -> list[float]:
    """Return the median seconds of each work; they take turns, and turns at being first."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(times):
        for step in range(len(works)):
            place = (turn + step) % len(works)
            taken[place].append(works[place]())
    return [median(seconds) for seconds in taken]


class Session:
    """Some rounds, and one more with each call that is timed: a few, then it begins again."""

    def __init__(self, wire: str, url: str, rounds: int, runner: asyncio.Runner) -> None:
        self._ours, self._floor = Ours(wire, url), Floor(wire, url)
        self._rounds, self._run = rounds, runner.run
        self._messages = history(rounds + MORE_ROUNDS)
        self._done = 0
        for _ in range(WARM):
            self._begin()
            self.floor()

    def ours(self) -> float:
        if self._done == self._rounds + MORE_ROUNDS:
            self._begin()
        self._done += 1
        return self._call()

    def floor(self) -> float:
        return self._run(self._floor.seconds(self._done))

    def _begin(self) -> None:
        """Make a connection, and encode what such a session has encoded by then."""
        self._done = self._rounds
        self._call()

    def _call(self) -> float:
        return self._run(self._ours.seconds(self._messages[: 1 + 2 * self._done]))


def _pieces(wire: str, url: str, times: int, runner: asyncio.Runner) -> Pair:
    ours, floor = Ours(wire, url), Floor(wire, url)
    return by_turns(
        times,
        lambda: runner.run(ours.seconds_of_answer()),
        lambda: runner.run(floor.seconds_of_answer()),
    )


def _connections(wire: str, port: int, runner: asyncio.Runner) -> float:
    """Return how many connections a session of 200 rounds makes."""
    before = _count(port)
    ours, messages = Ours(wire, f"http://127.0.0.1:{port}/{wire}/1"), history(max(ROUNDS))
    for rounds in range(max(ROUNDS)):
        runner.run(ours.seconds(messages[: 1 + 2 * rounds]))
    runner.run(ours.provider.close())
    return _count(port) - before


def _count(port: int) -> int:
    return int(httpx2.get(f"http://127.0.0.1:{port}/").text)
