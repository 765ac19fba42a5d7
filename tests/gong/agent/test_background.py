"""Commands in the background: started, read, told of, ended. M095, C1"""

from __future__ import annotations

import asyncio
import time

import pytest

from gong.tools.background import MAX_RUNNING
from tape.model.entries import join_texts

from .conftest import call, seen


def start(command, **args):
    return {"tool_calls": [call("bash", command=command, run_in_background=True, **args)]}


def wait_for(name):
    """Return the command that waits until a file has something in it."""
    return f"until [ -s {name} ]; do sleep 0.02; done"


WAIT_FOR_END = "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done"
"""Waits until the session knows that the command has ended whose number is in the file pid."""


def texts(found):
    return [join_texts(event.content) for event in found if event.kind == "tool_end"]


def told(found):
    return [e.text for e in found if e.kind == "steering_injected" and e.origin == "background"]


async def test_a_command_starts_is_read_and_its_end_is_reported_m095(stage):
    session = await stage.session(
        start(f"echo one; echo $$ >pid; {wait_for('go')}; echo two"),
        {"tool_calls": [call("bash", command=wait_for("pid"))]},
        {"tool_calls": [call("bash_output", shell_id="bg_1")]},
        {"tool_calls": [call("bash", command=f"echo 1 >go; {WAIT_FOR_END}")]},
        {"tool_calls": [call("bash_output", shell_id="bg_1")]},
        {"text": "done"},
    )
    found = await seen(session, "go")
    started, _, first, _, second = texts(found)
    assert started.startswith("Started in the background as bg_1.")
    assert first.startswith("one\n\n[running for ")
    assert second.startswith("two\n\n[completed, exit code 0, after ")
    [note] = told(found)
    assert note.startswith("The background command bg_1 (echo one; echo $$ >pid; until [ -s go ]")


async def test_waiting_for_the_end_returns_it_and_it_is_not_reported_again(stage):
    session = await stage.session(
        start("sleep 0.3; echo late; exit 3"),
        {"tool_calls": [call("bash_output", shell_id="bg_1", wait=30)]},
        {"text": "done"},
    )
    found = await seen(session, "go")
    assert texts(found)[1].startswith("late\n\n[failed, exit code 3, after ")
    assert told(found) == []


async def test_kill_shell_ends_all_its_processes_m095(stage):
    pids = stage.folder / "pids"
    session = await stage.session(
        start(f"sleep 300 & echo $! > {pids}; wait"),
        {"tool_calls": [call("bash", command=f"until [ -s {pids} ]; do sleep 0.05; done")]},
        {"tool_calls": [call("kill_shell", shell_id="bg_1")]},
        {"tool_calls": [call("bash", command=f"kill -0 $(cat {pids}) && echo alive || echo dead")]},
        {"text": "done"},
    )
    found = await seen(session, "go")
    assert texts(found)[2] == "bg_1 is ended."
    assert "dead" in texts(found)[3]


async def test_the_end_of_the_session_ends_them(stage):
    pids = stage.folder / "pids"
    session = await stage.session(
        start(f"echo $$ > {pids}; exec sleep 300"),
        {"tool_calls": [call("bash", command=f"until [ -s {pids} ]; do sleep 0.05; done")]},
        {"text": "done"},
    )
    await seen(session, "go")
    [command] = session.run_state.background.running
    await session.close()
    assert command.status == "killed"
    check = await asyncio.create_subprocess_shell(f"kill -0 $(cat {pids}) 2>/dev/null")
    assert await check.wait() != 0


async def test_there_is_a_limit_and_an_unknown_id_is_an_error(stage):
    calls = [
        call("bash", command="sleep 60", run_in_background=True) for _ in range(MAX_RUNNING + 1)
    ]
    session = await stage.session(
        {"tool_calls": calls},
        {"tool_calls": [call("kill_shell", shell_id="bg_9")]},
        {"text": "done"},
    )
    found = await seen(session, "go")
    assert "4 commands run in the background already" in texts(found)[MAX_RUNNING]
    assert texts(found)[-1].startswith("No background command bg_9 in this session; running: bg_1")


async def test_one_that_ends_between_prompts_is_reported_with_the_next(stage):
    session = await stage.session(start("sleep 0.2"), {"text": "ok"}, {"text": "I see"})
    assert told(await seen(session, "go")) == []
    await asyncio.sleep(1)
    assert len(told(await seen(session, "and now?"))) == 1


async def test_of_much_output_the_end_is_shown_with_the_path_of_the_whole(stage):
    session = await stage.session(
        start("seq 1 60000"),
        {"tool_calls": [call("bash_output", shell_id="bg_1", wait=30)]},
        {"text": "done"},
    )
    text = texts(await seen(session, "go"))[1]
    assert text.startswith("[")
    assert "earlier characters are not shown. Full output: " in text
    assert "60000" in text
    assert len(text) < 60_000


@pytest.mark.parametrize("how", ["setting", "during the run"])
async def test_every_command_has_a_time_limit_that_the_session_can_set_c1(stage, how):
    settings = {"default_command_timeout_ms": 300} if how == "setting" else {}
    session = await stage.session(
        {"tool_calls": [call("ls", path=".")]},
        {"tool_calls": [call("bash", command="tail -f /dev/null")]},
        {"text": "done"},
        **settings,
    )
    if how != "setting":
        session.subscribe(
            lambda event: (
                event.kind == "tool_end" and session.configure(default_command_timeout_ms=300)
            )
        )
    begun = time.monotonic()
    found = await seen(session, "go")
    assert "Command timed out after 0.3 seconds" in texts(found)[1]
    assert time.monotonic() - begun < 10
