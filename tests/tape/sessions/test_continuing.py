"""The commands that continue a session, by the row of each agent that takes one."""

from __future__ import annotations

import json
import shlex

import pytest

from tape.formats.sessions.registry import SESSION_FORMATS
from tape.model.entries import Assistant, Text, User
from tape.sessions.continuing import list_continue_commands
from tape.sessions.export import INSTALLABLE, choose_install_path, export_session
from tape.store.store import Beginning
from tests.tape import making


@pytest.fixture
def tape(tmp_path):
    store = making.store_in(tmp_path / "store")
    with store.create(Beginning("/src/it's a shop", "test/1")) as tape:
        with tape.writer() as writer:
            writer.append(User((Text("hello"),)))
            writer.append(Assistant((Text("hi"),), "p", model="m"))
            writer.barrier()
        yield tape


def test_every_agent_that_takes_a_session_and_continues_it_has_a_command(tape):
    """M213: the id in it is the one that the exported session has."""
    ours, *others = list_continue_commands(tape)
    assert ours == ("gong", f"gong --session {tape.id[:8]}")
    rows = {row.title: row for row in SESSION_FORMATS.values()}
    assert {rows[agent].tool for agent, _ in others} == {*INSTALLABLE, "opencode"}
    for agent, command in others:
        tool = rows[agent].tool
        cd, folder, *rest = shlex.split(command)
        steps = " ".join(rest[1:]).split(" && ")
        assert (cd, folder) == ("cd", "/src/it's a shop")
        assert steps[0].startswith(f"tape export {tape.id[:8]} --to {tool} ")
        identity = steps[-1].split()[-1]
        exported = export_session(tape, None, tool, redact=True, skipped=pytest.fail)
        if tool in INSTALLABLE:
            assert identity in choose_install_path(tool, exported.outline, {"HOME": "/h"}).name
        else:
            assert json.loads(exported.data)["info"]["id"] == identity


@pytest.mark.parametrize("folder", ["/src\n/x; y", "/src\x1b[31m", "/src/\u202eabc"])
def test_a_folder_that_would_do_something_in_a_terminal_is_left_out(tmp_path, folder):
    with making.store_in(tmp_path / "store").create(Beginning(folder, "test/1")) as tape:
        for _, command in list_continue_commands(tape):
            assert "/src" not in command
            assert command.isprintable()
