"""The list of sessions says what `tape ls` does, of one store with everything that a list meets."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from urllib.parse import urlencode

import pytest

from tape.index.library import open_store
from tape.serve.templating import format_money, format_tokens
from tape.store.maintenance.archive import pack_tape
from tape.store.store import Beginning
from tape.text import show_controls, to_single_line
from tests import warm
from tests.tape.serve import sample_store
from tests.tape.serve.conftest import record, serving

FACETS = {"agent": "--agent", "repository": "--repository", "machine": "--machine"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A store with branches, damage, a fork, an archived, an untitled and a removed session."""
    home = tmp_path_factory.mktemp("agreement")
    sample = sample_store.fill(home)
    with open_store(home / ".tape") as library:
        with library.store.open(record(library, "in the trash", "gone")) as tape:
            library.store.remove(tape)
        with library.store.open(sample.basket) as tape:
            library.store.create(Beginning("/src", "test/1"), (tape, tape.head())).close()
        library.store.create(Beginning("/empty", "test/1")).close()
        kept = record(library, "kept in one file", "hello", cost=None)
        with library.store.open(kept) as tape:
            pack_tape(library.store, tape)
    return home


@pytest.fixture(scope="module")
def server(home):
    with serving(home) as started:
        yield started


def list_tapes(server, *words):
    command = [warm.find_commands() / "tape", "ls", "--all", "--json", *words]
    return json.loads(subprocess.check_output(command, env=server.env, stderr=subprocess.DEVNULL))


def read_rows(page):
    """Return of each row its id, title, cost, and the facts beside these."""
    rows = []
    for part in page.split('<a class="session" href="/session/')[1:]:
        row = part.partition("</a>")[0]
        facts = [
            re.sub("<.*?>", "", fact)
            for fact in re.findall(r'<span class="fact">(.*?)</span>', row)
        ]
        title = re.search(r'class="title"><bdi>(.*?)</bdi>', row)[1]
        cost = re.search(r'class="cost">(.*?)</span>', row)[1]
        updated = re.search(r'datetime="(.*?)"', row)[1]
        rows.append((row[:32], unescape(title), unescape(cost), updated, [*map(unescape, facts)]))
    return rows


def test_the_list_has_the_rows_of_ls(server):
    """M213"""
    rows, expected = read_rows(server.get("/")), list_tapes(server)
    assert len(expected) > 10
    assert [row[0] for row in rows] == [tape["id"] for tape in expected]
    for (_, title, cost, updated, facts), tape in zip(rows, expected, strict=True):
        assert title == show_controls(to_single_line(tape["title"] or "Without a title"))
        assert cost == format_money(tape["cost"])
        assert updated == tape["updated"]
        where = tape["repository"] or tape["project"] or tape["cwd"]
        said = [where, tape["agent"], tape["model"], (tape["person"] or "").partition(" <")[0]]
        assert facts[: -2 - (tape["branches"] > 1)] == [show_controls(s) for s in said if s]
        assert facts[-2 - (tape["branches"] > 1)].startswith(f"{tape['entries']} entr")


def test_the_sums_are_those_of_the_rows(server):
    expected = list_tapes(server)
    cost = sum(tape["cost"] or 0 for tape in expected)
    tokens = sum(tape["tokens"] for tape in expected)
    status = re.search(r'role="status">(.*?)</p>', server.get("/"))[1]
    assert re.findall("<span>(.*?)</span>", status) == [
        f"{len(expected)} sessions",
        f"{format_tokens(tokens)} tokens",
        format_money(cost),
    ]


@pytest.mark.parametrize("facet", FACETS)
def test_a_facet_chooses_what_the_option_of_ls_does(server, facet):
    page = server.get("/", all=facet)
    values = {tape[facet] for tape in list_tapes(server)} - {None, ""}
    assert values
    for value in values:
        assert f"{urlencode({facet: value})}" in unescape(page)
        chosen = [tape["id"] for tape in list_tapes(server, FACETS[facet], value)]
        assert [row[0] for row in read_rows(server.get("/", **{facet: value}))] == chosen
