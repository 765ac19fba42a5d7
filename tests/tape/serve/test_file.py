"""A file with the origin of its lines: as `tape blame` has it, and nothing outside a session."""

from __future__ import annotations

import json
import os
import re
import subprocess
from html import unescape
from urllib.parse import urlencode

import pytest
from msgspec import Raw

from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.store.store import Beginning
from tests import warm
from tests.tape.serve.conftest import serving

HOSTILE = "<script>alert(1)<\\script>\x1b[31m\u202eabc"
TEXT = f"def f():\n    return 1\n\n# {HOSTILE}\n"


def write_file(writer, number, path, text):
    writer.append(User((Text(f"write {path} <b>please</b>"),)))
    arguments = json.dumps({"path": str(path), "content": text}, separators=(",", ":")).encode()
    call = ToolCall(f"c{number}", "write", Raw(arguments))
    entry = writer.append(Assistant((call,), "p", model="m"))
    writer.append(ToolResult(call.id, "write", (Text("ok"),)))
    writer.barrier()
    return entry.id


@pytest.fixture(scope="module")
def work(library):
    """A project whose session wrote files in it and, by a link, outside: its folder, ids."""
    folder = library.store.path.parent / "work"
    folder.mkdir()
    outside = library.store.path.parent / "outside.txt"
    outside.write_text("secret\n")
    (folder / "link.txt").symlink_to(outside)
    (folder / "untold.py").write_text("nobody\n")
    (folder / "blob.bin").write_bytes(b"\0\1")
    names = ["a.py", "link.txt", "blob.bin", f"{HOSTILE}.py", str(outside)]
    with library.store.create(Beginning(str(folder), "test/1")) as tape, tape.writer() as writer:
        entries = [write_file(writer, n, name, TEXT) for n, name in enumerate(names)]
        writer.append(User((Text("bye"),)))
        writer.barrier()
    (folder / "a.py").write_text(TEXT + "mine = True\n")
    (folder / f"{HOSTILE}.py").write_text(TEXT)
    return folder, tape.id, entries


@pytest.fixture(scope="module")
def server(library, work):
    with serving(library.store.path.parent) as started:
        yield started


def test_each_line_leads_to_its_prompt_and_entry(server, work):
    """M213"""
    folder, tape, entries = work
    page = server.get("/file", session=tape, path="a.py")
    command = [warm.find_commands() / "tape", "blame", "--json", "a.py"]
    done = subprocess.run(
        command, cwd=folder, env=server.env, capture_output=True, text=True, check=True
    )
    ranges = [(line["first"], line["last"], line["entry"]) for line in json.loads(done.stdout)]
    assert ranges == [(1, 4, entries[0]), (5, 5, None)]
    parts = page.split('<div class="range">')[1:]
    lines = [[int(number) for number in re.findall(r'id="L(\d+)"', part)] for part in parts]
    assert [(part[0], part[-1]) for part in lines] == [(1, 4), (5, 5)]
    assert f'href="/session/{tape}#{entries[0]}"' in parts[0]
    assert "write a.py &lt;b&gt;please&lt;/b&gt;" in parts[0]
    assert "Outside of sessions" in parts[1]
    assert "<script>alert" not in page
    assert not {"\x1b", "\u202e"} & {*page}
    assert page == server.get("/file", session=tape, path=str(folder / "a.py")).replace(
        unescape(str(folder / "a.py")), "a.py"
    )


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "/", "a.py\0", "nothing.py", "untold.py", "link.txt"),
        *("../outside.txt", "{home}/outside.txt", "/etc/passwd", "../../../../etc/passwd"),
        *("./../work/../outside.txt", "%2e%2e/outside.txt", "..\\outside.txt", "x" * 5000),
    ],
)
def test_what_no_session_may_show_is_not_found(server, work, path):
    _, tape, _ = work
    query = urlencode({"session": tape, "path": path.replace("{home}", str(server.home))})
    answer = server.ask(f"/file?{query}")
    assert answer.status == 404
    assert "secret" not in answer.text
    assert str(server.home) not in answer.text.replace(path, "")


def test_a_file_of_another_session_is_not_found(server, library):
    with library.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("another"),)))
        writer.barrier()
    for session in (tape.id, "ffffffff", "../x", ""):
        assert server.ask(f"/file?session={session}&path=a.py").status == 404


def test_a_file_without_lines_is_refused_without_a_path(server, work):
    answer = server.ask(f"/file?session={work[1]}&path=blob.bin")
    assert answer.status == 400
    assert "This file is no text" in answer.text
    assert str(server.home) not in answer.text


def test_a_hostile_name_is_text(server, work):
    page = server.get("/file", session=work[1], path=f"{HOSTILE}.py")
    assert "<script>alert" not in page
    assert not {"\x1b", "\u202e"} & {*page}
    assert os.fspath(work[0]) not in page
