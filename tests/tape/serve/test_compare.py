"""Two branches side by side: the report of `tape diff`, with links, and nothing for odd names."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape

import pytest
from msgspec import Raw

from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.store.store import Beginning
from tests import warm
from tests.tape.serve.conftest import serving

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202eabc"


def change(writer, number, path):
    arguments = json.dumps({"path": path, "content": "x"}, separators=(",", ":")).encode()
    call = ToolCall(f"c{number}", "write", Raw(arguments))
    writer.append(Assistant((Text(f"I write {path}"), call), "p", model="m"))
    writer.append(ToolResult(call.id, "write", (Text("ok"),)))


@pytest.fixture(scope="module")
def parted(library):
    """A tape whose branches main and b part after its first prompt: its id and that prompt's."""
    with library.store.create(Beginning("/src", "test/1")) as tape:
        with tape.writer() as writer:
            first = writer.append(User((Text("the first prompt"),)))
            writer.barrier()
        tape.fork(tape.head(), "b")
        with tape.writer("b") as writer:
            writer.append(User((Text(HOSTILE),)))
            change(writer, 1, "a.py")
            change(writer, 2, f"{HOSTILE}.py")
            writer.barrier()
        with tape.writer("main") as writer:
            change(writer, 3, "/src/a.py")
            writer.barrier()
        return tape.id, first.id


@pytest.fixture(scope="module")
def server(library, parted):
    with serving(library.store.path.parent) as started:
        yield started


def files_of(page):
    rows = re.findall(
        r'<th scope="row">.*?<bdi>(.*?)</bdi>.*?<td[^>]*>(.*?)</td><td[^>]*>(.*?)<', page
    )
    return [tuple(map(unescape, row)) for row in rows]


def test_the_page_has_the_report_of_the_command(server, parted):
    """M213"""
    tape, first = parted
    page = server.get("/compare", a=f"{tape}:b", b=f"{tape}:main")
    command = [warm.find_commands() / "tape", "diff", "--json", f"{tape}:b", f"{tape}:main"]
    done = subprocess.run(command, env=server.env, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["base"]["entry"] == first
    assert f'href="/session/{tape}#{first}"' in page
    for side in ("a", "b"):
        assert f'<span class="fact">{report[side]["since"]["entries"]} entries</span>' in page
        for exchange in report[side]["since"]["exchanges"]:
            for part in filter(None, (exchange["prompt"], exchange["answer"])):
                assert f'href="/session/{tape}#{part["entry"]}"' in page
    changed = {file["path"] for side in "ab" for file in report[side]["since"]["files"]}
    assert len(files_of(page)) == len(changed) == 2
    assert ("/src/a.py", "1 write", "1 write") in files_of(page)
    assert "<script>alert" not in page
    assert not {"\x1b", "\u202e"} & {*page}


def test_a_branch_is_chosen_on_each_side(server, parted):
    tape, first = parted
    page = server.get("/compare", a=tape, b=f"{tape}@{first[:12]}")
    assert "Nothing since they part." in page
    addresses = [unescape(text) for text in re.findall(r'class="chip[^"]*" href="([^"]*)"', page)]
    assert f"/compare?a={tape}%3Ab&b={tape}%40{first[:12]}" in addresses


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("ffffffffffff", "ffffffffffff"),
        ("../../etc", "x"),
        ("{tape}:nothing", "{tape}"),
        ("{tape}@ffffffffffff", "{tape}"),
        ("{tape}:../b", "{tape}"),
        (HOSTILE, HOSTILE),
    ],
)
def test_what_names_nothing_is_not_found(server, parted, a, b):
    from urllib.parse import urlencode

    query = {"a": a.replace("{tape}", parted[0]), "b": b.replace("{tape}", parted[0])}
    answer = server.ask(f"/compare?{urlencode(query)}")
    assert answer.status == 404
    assert str(server.home) not in answer.text


def test_two_sessions_without_a_shared_past(server, parted, library):
    with library.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("another"),)))
        writer.barrier()
        page = server.get("/compare", a=parted[0], b=tape.id)
    assert "They share no entry." in page
    assert "Two branches of a session" in server.get("/compare")
