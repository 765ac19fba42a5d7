"""Every command where its streams are closed, full, cut off, or of another kind than usual.

Each command runs in two ways, and with TEST_BUDGET above 1 in all.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import BIN, Place
from tests.e2e.hostile import fill
from tests.tape.making import crossed

COMMANDS = [
    *(
        "tape ls --all",
        "tape show ID",
        "tape log ID --graph",
        "tape cat ID --json",
        "tape replay ID",
    ),
    *("tape search zebra", "tape export ID", "tape export ID --to md", "tape verify ID"),
    *("tape --help", "tape --version", "gong cost ID --by call", "gong tool list"),
    *(
        "gong chat -p hello -m offline/rules",
        "gong --version",
        "gong context ID:b -m offline/rules",
    ),
]
"""One of each way to print; `verify` ends with 4, for the tape names a blob that is not there."""
WAYS = {
    "a reader that leaves": ("{} 2>err | head -c 1 >out; exit ${{PIPESTATUS[0]}}", {0, 4}),
    "no standard output": ("{} >&- 2>err", {0, 1, 4}),
    "no standard error": ("{} >out 2>&-", {0, 1, 4}),
    "no standard input": ("{} <&- >out 2>err", {0, 4}),
    "nothing at all": ("{} <&- >&- 2>&-", {0, 1, 4}),
    "a full disk": ("{} >/dev/full 2>err", {1}),
    "a full disk for errors": ("{} >out 2>/dev/full", {0, 1, 4}),
    "a terminal of bytes": ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {} >out 2>err", {0, 1, 4}),
}
"""How the streams stand, and the exit codes that may be."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("streams") / "home")
    place.tape = fill(place.home)
    (place.folder / "f.txt").write_text("one\n")
    return place


@pytest.mark.slow
@pytest.mark.parametrize(("command", "way"), crossed(COMMANDS, list(WAYS), each=2))
def test_a_command_ends_in_order_whichever_streams_are_closed(home, command, way):
    script, codes = WAYS[way]
    words = [BIN / command.split()[0], *command.replace("ID", home.tape).split()[1:]]
    for name in ("out", "err"):
        (home.folder / name).write_bytes(b"")
    done = subprocess.run(
        ["bash", "-c", script.format(shlex.join(map(str, words)))],
        cwd=home.folder,
        env=home.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    said = (home.folder / "err").read_bytes() + done.stderr
    assert b"Traceback" not in said + (home.folder / "out").read_bytes()
    assert b"Exception ignored" not in said
    assert done.returncode in codes, said
    if way == "a full disk":
        assert said.count(b"\n") <= 3
        assert b"No space left" in said


HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%s,'
    b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
)
SERVERS = {"gong acp": HELLO % b"1", "gong rpc": HELLO % b"1", "tape mcp": HELLO % b'"2025-06-18"'}
"""Programs that answer lines, with a request."""


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_whose_answers_cannot_be_written_says_why(home, server):
    program, verb = server.split()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [BIN / program, verb],
            input=SERVERS[server],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=home.folder,
            env=home.env,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (
        1,
        f"{program}: No space left on device\n".encode(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_without_a_reader_ends_in_order(home, server):
    program, verb = server.split()
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        done = subprocess.run(
            [BIN / program, verb],
            input=SERVERS[server],
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=home.folder,
            env=home.env,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, b"")
