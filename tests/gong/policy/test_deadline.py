"""A judgement ends in its time, whatever it is given, and the event loop goes through meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gong.config import PermissionSettings
from gong.policy.deadline import LIMIT_SECONDS, JudgementTooLong, judge_in_time
from gong.policy.permissions import build_policy
from tests.tape.making import BUDGET


def spin():
    while True:
        pass


async def test_a_judgement_that_never_ends_is_answered_and_the_loop_stays_free():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    assert await judge_in_time(spin, "late") == "late"
    ticking.cancel()
    assert ticks > 1


async def test_what_is_in_time_is_returned_and_what_is_raised_is_raised():
    assert await judge_in_time(lambda: "soon", "late") == "soon"
    with pytest.raises(ValueError, match="mine"):
        await judge_in_time(lambda: int("mine"), 0)


async def test_waiting_takes_no_time_of_it():
    """On a busy machine a judgement waits for its turn: that is not what it takes."""
    released = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait():
        done = asyncio.run_coroutine_threadsafe(released.wait(), loop)
        return done.result()

    judging = asyncio.create_task(judge_in_time(wait, None))
    loop.call_later(3 * LIMIT_SECONDS, released.set)
    assert await judging is True


async def test_a_stopped_judgement_may_clean_up():
    cleaned = asyncio.Event()
    loop = asyncio.get_running_loop()

    def judge():
        try:
            spin()
        except JudgementTooLong:
            loop.call_soon_threadsafe(cleaned.set)
            raise

    assert await judge_in_time(judge, "late") == "late"
    await cleaned.wait()


@pytest.mark.parametrize(
    ("mode", "decision"),
    [("default", "ask"), ("accept_edits", "ask"), ("plan", "deny"), ("dont_ask", "deny")],
)
async def test_a_call_that_could_not_be_judged_is_refused(mode, decision, tmp_path):
    policy = build_policy(PermissionSettings(mode=mode), str(tmp_path), {"HOME": "/home/ada"})
    policy.find_git_programs = spin
    ruling = await policy.judge_in_time("bash", {"command": "git status"})
    assert (ruling.decision, ruling.by, ruling.offered) == (decision, "danger", ())
    assert ruling.why == "bash: it takes too long to judge"


WORDS = ["docker exec web", "podman run x", "curl", "ssh", "kubectl get", "cat", "rm -rf", "cd"]
WORDS += [
    "git -C",
    "bash -c",
    "xargs",
    "find",
    "env A=1",
    "rg -L",
    "python -c",
    "tar xf",
    ";",
    "&&",
]
ODD = ["http://localhost/", "//", "/..//../", "http://[::1]:80//x/", "~", "$HOME", "*", "{a,b}/*"]
ODD += [
    "file:///etc//",
    "//host//share",
    "./././.",
    "a" * 300,
    "\\\\",
    "$(ls)",
    "<(x)",
    "@x",
    "--=",
    ":",
]
texts = st.lists(st.sampled_from([*WORDS, *ODD]), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=int(150 * BUDGET), deadline=None)
@given(texts)
def test_no_command_takes_longer(text):
    """Programs × addresses × odd paths: each judgement is far below its limit, or is stopped."""
    policy = build_policy(PermissionSettings(), "/home/ada/work", {"HOME": "/home/ada"})
    begun = time.thread_time()
    policy.judge("bash", {"command": text})
    assert time.thread_time() - begun < 10 * LIMIT_SECONDS


async def test_each_danger_of_a_command_is_named():
    policy = build_policy(PermissionSettings(), "/home/ada/work", {"HOME": "/home/ada"})
    ruling = await policy.judge_in_time("bash", {"command": "rm -rf ~ && mkfs.ext4 /dev/sda1"})
    assert ruling.why.split("; ") == [
        "rm -rf ~: removes a system, home or workspace folder",
        "mkfs.ext4 /dev/sda1: makes a new file system over the old one",
    ]
    assert all(one in ruling.text for one in ruling.why.split("; "))


def test_the_first_judgement_of_a_program_is_not_late(tmp_path):
    """Modules and tables are loaded before its time begins."""
    code = """
import asyncio, sys
from gong.policy.permissions import PermissionPolicy
policy = PermissionPolicy(sys.argv[1], "/home/ada")
ruling = asyncio.run(policy.judge_in_time("bash", {"command": "ls"}))
print(ruling.decision, ruling.why)
"""
    argv = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "allow \n"


THREADS = """
import sys
from threading import Barrier, Thread
from gong.policy.commands.tables import load_tables

sys.setswitchinterval(1e-6)
together, tables = Barrier(8), []

def load():
    together.wait()
    tables.append(load_tables())

threads = [Thread(target=load) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(tables), len({id(table) for table in tables}))
"""


def test_judgements_that_begin_side_by_side_share_the_tables():
    """Two sessions of a process, such as sub-agents, may judge their first calls at one time."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "8 1\n"
