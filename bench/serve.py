"""Measure `tape serve`: its first page over many sessions, its memory, its start, a long session.

`serve_rows` gives the rows of `make bench`. Times are processor time, which a busy machine changes
less than the time on a clock. Rows of the browser are left out where Chromium or playwright is not.

Run it with the project's Python: `.venv/bin/python bench/serve.py [SESSIONS [ENTRIES]]`.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from many import BIN, make_place, run_tape
from measure import MIB, Row, Scale, table
from msgspec import Raw

from tape import Beginning, Text, User, open_store
from tape.index.facets import FACETS, TapeChoice, select_facet, select_sums, select_tapes_after
from tape.index.reader import query_index_file
from tape.model.entries import Assistant, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection

    from many import Place
    from playwright.sync_api import Browser, Page

    from tape.store.writer import Writer

ROUNDS = 9
SERVE = [str(BIN / "tape"), "serve", "--port", "0"]
MANY = 20_000
ROWS, VALUES = 51, 9
"""What the first page asks for: sessions, and values of each facet."""
BARE = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def show(request):
    return PlainTextResponse("hello")

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}/", flush=True)

application = Starlette(routes=[Route("/", show)])
Server(uvicorn.Config(application, port=0, log_level="warning", lifespan="off")).run()
"""
"""A server that does nothing, and says where it is."""

PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
WATCH = """
new MutationObserver(() => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { window.painted = Date.now(); };
  channel.port2.postMessage(0);
})).observe(document.getElementById("entries"), { childList: true })
"""
"""Notes when a frame with a new number of entries was painted."""


class Server:
    """A process that printed its address."""

    def __init__(self, command: list[str], home: Path) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        parts = urlsplit(self.address)
        assert parts.port, command
        self.port, self.token = parts.port, parts.query.removeprefix("token=")

    def get(self, path: str) -> bytes:
        """Return what it answers to a request."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body
            return body

    def spent(self) -> float:
        """Return the processor time of all of its threads, in seconds."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        return (
            sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
        )

    def peak(self) -> int:
        """Return its highest memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@contextmanager
def serving(command: list[str], home: Path) -> Iterator[Server]:
    """Start a server, and end it."""
    server = Server(command, home)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def ask(db: Connection) -> tuple[float]:
    """Ask what the first page asks; return the processor time that it took, in seconds."""
    began, choice = time.thread_time(), TapeChoice({})
    select_tapes_after(db, choice, ROWS)
    for facet in FACETS:
        select_facet(db, choice, facet, VALUES)
    select_sums(db, choice)
    return (time.thread_time() - began,)


def page_rows(place: Place, sessions: int) -> list[Row]:
    """Measure the first page by turns with its queries."""
    pages, queries, clocks = [], [], []
    with serving(SERVE, place.home) as server:
        server.get("/")
        for _ in range(ROUNDS):
            before, clock = server.spent(), time.perf_counter()
            server.get("/")
            clocks.append(time.perf_counter() - clock)
            pages.append(server.spent() - before)
            asked = query_index_file(str(place.store), ask)
            assert asked is not None
            queries.append(asked[0])
        for path in ("/?q=login", "/costs", "/search?q=login", "/running", "/?after=z"):
            server.get(path)
        high = server.peak()
    at = f"over {sessions:,} sessions"
    note = f"on the clock: least {min(clocks) * 1000:.0f} ms, median {median(clocks) * 1000:.0f}"
    ratio = median(pages) / median(queries)
    # What a page costs beside its queries is the same in a small store.
    target = 1.5 if sessions >= MANY else None
    return [
        Row(f"first page {at}", "its queries", ratio, "×", target, note=note),
        Row(f"first page {at}", "none", median(pages) * 1000, "ms", 200, note="processor time"),
        Row(f"memory of tape serve {at}", "none", high / MIB, "MiB", 120),
    ]


def start_rows(place: Place) -> list[Row]:
    """Measure the start by turns with that of a server that does nothing."""
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    commands = {"ours": SERVE, "bare": [sys.executable, "-c", BARE]}
    for _ in range(ROUNDS):
        for side, command in commands.items():
            with serving(command, place.home) as server:
                times[side].append(server.spent())
    ratio = median(times["ours"]) / median(times["bare"])
    return [Row("start of tape serve", "uvicorn alone", ratio, "×", 1.5)]


def write_turns(writer: Writer, turns: int, begins: int = 0) -> None:
    """Write prompts, each with a call and an answer: four entries a turn."""
    usage = Usage(100, 20, total=120)
    for n in range(begins, begins + turns):
        call = ToolCall(f"c{n}", "bash", Raw(b'{"command":"ls -la"}'))
        output = "\n".join(f"line {line}" for line in range(n % 40 + 1))
        writer.append(User((Text(f"prompt {n}: look at the file " + "and tell me " * (n % 30)),)))
        text = Text("I **look** at `it`.\n\n- one\n- two")
        writer.append(Assistant((text, call), "bench", model="m", usage=usage))
        writer.append(ToolResult(call.id, "bash", (Text(output),)))
        answer = Text(f"Answer {n}. " + "It is fine, and here are more words. " * (n % 12))
        writer.append(Assistant((answer,), "bench", model="m", usage=usage))
    writer.barrier()


def session_rows(path: Path, entries: int) -> list[Row]:
    """Measure the page of a long session in Chromium; no rows where that cannot run."""
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 (it may not be there)
    except ImportError:
        program = None
    if program is None:
        print("no Chromium or no playwright: rows of pages are left out", file=sys.stderr)
        return []
    home = path / "long"
    home.mkdir()
    with (
        open_store(home / ".tape") as (store, _),
        store.create(Beginning("/src", "bench/1")) as tape,
        tape.writer(durability="none") as writer,
        serving(SERVE, home) as server,
        sync_playwright() as playwright,
    ):
        write_turns(writer, entries // 4)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(server.address)
        paints = []
        for _ in range(ROUNDS):
            page.goto(f"{server.address.partition('?')[0]}session/{tape.id}")
            page.wait_for_selector("html[data-ready]")
            paints.append(page.evaluate(PAINT))
        page.wait_for_selector("#live.running")
        page.mouse.move(700, 400)
        scrolls = trace_tasks(browser, page, lambda: scroll(page))
        delays: list[float] = []
        grows = trace_tasks(browser, page, lambda: delays.extend(grow(page, writer)))
        browser.close()
    at, note = f"session page of {entries:,} entries", "processor time of one task"
    clock = f"on the clock: least of {ROUNDS}; median {median(paints):.0f} ms"
    return [
        Row(f"{at}: first paint", "none", min(paints), "ms", 300, note=clock),
        Row(f"{at}: longest task of scrolling", "none", scrolls, "ms", 50, note=note),
        Row(f"{at}: longest task of a new entry", "none", grows, "ms", 50, note=note),
        Row(f"{at}: barrier to paint", "none", median(delays), "ms", 200, note="on the clock"),
    ]


def scroll(page: Page) -> None:
    """Scroll on by 84,000 pixels."""
    for _ in range(120):
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(16)


def grow(page: Page, writer: Writer) -> list[float]:
    """Write new turns one by one; return how many ms after its barrier each was painted."""
    page.evaluate(WATCH)
    delays = []
    for number in range(ROUNDS):
        page.evaluate("window.painted = 0")
        write_turns(writer, 1, 100_000 + number)
        written = time.time() * 1000
        while not (painted := page.evaluate("window.painted")):
            page.wait_for_timeout(5)
        delays.append(painted - written)
    return delays


def trace_tasks(browser: Browser, page: Page, work: Callable[[], None]) -> float:
    """Do some work; return the most processor time of one task of the page meanwhile, in ms."""
    browser.start_tracing(page=page, categories=["toplevel"])
    work()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event.get("tdur", 0) / 1000
        for event in events
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in threads
    ]
    return max(tasks)


def serve_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a store of twenty thousand sessions, and one session of ten thousand entries."""
    return measure(path, scale.large // 5, scale.large // 10)


def measure(path: Path, sessions: int, entries: int) -> list[Row]:
    place = make_place(path / "served", sessions)
    run_tape(place, "ls")
    rows = [*page_rows(place, sessions), *start_rows(place)]
    return [*rows, *session_rows(path / "served", entries)]


def main() -> int:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    entries = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory(prefix="tape-serve-") as folder:
        rows = measure(Path(folder), sessions, entries)
    print("\n".join(table(rows)))
    print("\n".join(f"{row.measured}: {row.note}" for row in rows if row.note))
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
