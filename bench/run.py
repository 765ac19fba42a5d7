"""Run all benchmarks of the store and of model calls and print one table, missed targets first.

Run it with the project's Python: `.venv/bin/python bench/run.py [--quick] [--only WORD]`. Every
figure is a ratio of medians measured by turns in this run, or a count of bytes. What was measured
goes to results.json beside this file. The folder for the data has to be on a real disk: --dir.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

import catalogue
import files
import index
import judging
import llm
import lsp
import many
import masking
import msgspec
import places
import reading
import remotes
import resume
import rounds
import serve
import startup
import states
import store
import stream
import terminal
import tools
import web
from measure import Row, Scale, table

FULL = Scale(views=(100, 1_000, 10_000, 100_000), small=1_000, large=100_000, rounds=200)
QUICK = Scale(views=(100, 1_000), small=100, large=3_000, rounds=20)
RESULTS = Path(__file__).with_name("results.json")
GROUPS = {
    # The long tape is read before it is forked and written.
    "view": reading.view_rows,
    "verify": reading.verify_rows,
    "stream": reading.stream_rows,
    "typed": reading.typed_rows,
    "library": reading.resumed_rows,
    "show": reading.show_rows,
    "commands": startup.command_rows,
    "states": states.states_rows,
    "judging": judging.judging_rows,
    "terminal": terminal.terminal_rows,
    "disk": store.disk_rows,
    "fork": store.fork_rows,
    "group": store.group_rows,
    "entry": store.entry_rows,
    "blob": store.blob_rows,
    "barrier": store.barrier_rows,
    "index": index.index_rows,
    "many": many.many_rows,
    "serve": serve.serve_rows,
    "unindexed": many.unindexed_rows,
    "masking": masking.masking_rows,
    "llm": llm.llm_rows,
    "pieces": stream.stream_piece_rows,
    "echo": stream.echo_rows,
    "resume": resume.resume_rows,
    "rounds": rounds.rounds_rows,
    "tools": tools.tools_rows,
    "places": places.places_rows,
    "files": files.files_rows,
    "lsp": lsp.lsp_rows,
    "web": web.web_rows,
    "remotes": remotes.remotes_rows,
    "catalogue": catalogue.catalogue_rows,
}


class Results(msgspec.Struct):
    """What stands in results.json."""

    python: str
    machine: str
    cores: int | None
    sync_ms: float
    """Median of a write of 1 KB with its fdatasync."""
    quick: bool
    rows: list[Row]


def measured(path: Path, scale: Scale, only: str) -> list[Row]:
    rows = []
    words = only.split(",")
    for name, group in GROUPS.items():
        if any(word in name for word in words):
            print(f"measuring {name} …", file=sys.stderr)
            rows += group(path, scale)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, seconds instead of minutes"
    )
    parser.add_argument("--only", default="", metavar="WORDS", help=f"some of {','.join(GROUPS)}")
    parser.add_argument("--dir", metavar="PATH", help="where the data is made and removed again")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="results.json")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="tape-bench-", dir=options.dir) as folder:
        sync = store.sync_seconds(Path(folder), 50) * 1_000
        rows = measured(Path(folder), scale, options.only)
    results = Results(
        platform.python_version(), platform.platform(), os.cpu_count(), sync, options.quick, rows
    )
    options.out.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    print("\n".join(table(rows)))
    print(f"a write of 1 KB with its fdatasync: {sync:.2f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
