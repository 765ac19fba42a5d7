"""Continuing a long session with another model: from exec to the first request that the host has.

The session was answered by one model and goes on with another, whose window holds all of it: the
whole past is checked, folded, bounded and encoded anew. The floor is `gong -p` in a new session.
"""

from __future__ import annotations

import shutil
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from llm import WIRES, Arrivals, start
from measure import Row, Scale
from store import built

from tape.index.library import list_tapes, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

STARTS = 7
"""How often each process is started."""
MOST = 2.3
"""0.8 × the 873 ms of pi for as many entries, on a machine where a new session takes 300 ms."""
WINDOW = '[models."{wire}/bench-1"]\ncontext_window = 2000000000\n'


def resume_rows(path: Path, scale: Scale) -> list[Row]:
    """Start `gong -p` in a session of a tenth of the longest length, and in none, by turns."""
    host = ThreadingHTTPServer(("127.0.0.1", 0), Arrivals)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    try:
        return [*_resume_rows(path, scale, f"127.0.0.1:{host.server_port}")]
    finally:
        host.shutdown()
        host.server_close()


def _resume_rows(path: Path, scale: Scale, address: str) -> Iterator[Row]:
    entries = scale.large // 10
    store, folder = built(path, entries)
    with store.open_folder(folder) as tape:
        session = tape.id
    with open_store(store.path) as library:
        list_tapes(*library)  # a store that is used has its index
    gong, home = str(Path(sys.executable).with_name("gong")), path / "resume-home"
    for wire in WIRES:
        config = home / wire / ".config" / "gong"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(WINDOW.format(wire=wire))

        def run(*chosen: str, wire: str = wire) -> float:
            tapes = home / wire / "store"
            shutil.rmtree(tapes, ignore_errors=True)
            shutil.copytree(store.path, tapes)
            command = [gong, "--store", str(tapes), "-m", f"{wire}/bench-1", *chosen, "-p", "go on"]
            variable = f"{wire.upper().replace('-', '_')}_BASE_URL"
            given = {variable: f"http://{address}/{wire}"}
            return start(command, str(home / wire), **given).seconds

        works = {"long": ("--session", session), "new": ()}
        times: dict[str, list[float]] = {name: [] for name in works}
        run(*works["long"])  # warm: byte code is compiled
        for _ in range(STARTS):
            for name, chosen in works.items():
                times[name].append(run(*chosen))
        long, new = median(times["long"]), median(times["new"])
        name = f"{wire}: continued with another model, at {entries:,}: start to first request"
        yield Row(name, "a new session", long / new, "×", MOST, note="a process")
        yield Row(name, "none", long * 1_000, "ms", None, note="a process")
