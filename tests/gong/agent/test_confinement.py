"""Files outside of the folders, and commands that wait for a person: through a whole session."""

from __future__ import annotations

import time

import pytest

from gong.config import PermissionSettings
from tape.model.entries import Approval, ToolResult, join_texts
from tests.gong.agent.conftest import call, seen

DONE = {"text": "done"}
OUTSIDE = "/srv/outside-of-the-folders/x"


def results(session):
    entries = (one.data for one in session.recorder.path)
    return [
        (one.is_error, join_texts(one.content)) for one in entries if isinstance(one, ToolResult)
    ]


@pytest.mark.parametrize("mode", ["default", "accept_edits", "bypass"])
async def test_a_path_that_climbs_out_is_changed_in_no_mode_m044(stage, mode):
    """M044 C22: edit and write refuse `..` that leaves the folder, whatever the mode allows."""
    outside = stage.folder.parent / "outside.txt"
    outside.write_text("root\n")
    session = await stage.session(
        {"tool_calls": [call("edit", path="../../etc/passwd", oldText="root", newText="x")]},
        {"tool_calls": [call("write", path="../../etc/crontab", content="x")]},
        {"tool_calls": [call("write", path="../outside.txt", content="x")]},
        DONE,
        permissions=PermissionSettings(mode=mode),
    )
    await seen(session, "go")
    assert [is_error for is_error, _ in results(session)] == [True, True, True]
    assert outside.read_text() == "root\n"


async def test_a_path_elsewhere_is_asked_about_and_denied_without_a_person_m044(stage):
    """M044 C22: an absolute path outside of the folders, also in accept_edits; ~ likewise."""
    session = await stage.session(
        {"tool_calls": [call("write", path=OUTSIDE, content="x")]},
        {"tool_calls": [call("read", path=OUTSIDE)]},
        {"tool_calls": [call("read", path="/etc/hostname")]},
        DONE,
        permissions=PermissionSettings(mode="accept_edits"),
    )
    await seen(session, "go")
    decided = [one.data for one in session.recorder.path if isinstance(one.data, Approval)]
    assert [(one.decision, one.by) for one in decided] == [("deny", "headless")] * 3
    assert all(is_error for is_error, _ in results(session))


async def test_commands_that_wait_for_a_person_end_m090(stage):
    """M090 J2-5.2: standard input is closed, so they end; what still waits, at its time limit."""
    author = "git -c user.name=a -c user.email=a@b.example"
    commit = f"git init -q && touch a && git add a && {author} commit"
    commands = ("read -r line; echo got=$line", "cat", commit, "sleep 60")
    session = await stage.session(
        *({"tool_calls": [call("bash", command=one, timeout=5)]} for one in commands), DONE
    )
    begun = time.monotonic()
    await seen(session, "go")
    assert time.monotonic() - begun < 50
    reading, copying, committing, sleeping = results(session)
    assert "got=" in reading[1]
    assert not copying[0]
    assert committing[0]
    assert sleeping[0]
    assert "timed out" in sleeping[1].lower()
    branches = (stage.folder / ".git/refs/heads").iterdir()
    assert [*branches] == [], "nothing was committed"
