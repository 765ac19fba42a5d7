"""Workflows whose steps other programs carry out, from a queue in SQLite or PostgreSQL (M187)."""

from __future__ import annotations

import json
import os
import pwd
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.gong.workflow.conftest import bash

pytestmark = pytest.mark.slow

pytest.importorskip("dbos", reason="the extra `workflow` is not installed")

FIVE = ("a", "b", ("c", "a"), ("d", "a", "b"), ("e", "c", "d"))
KILLS = int(os.environ.get("GONG_WORKFLOW_KILLS", "4")) // 2


@contextmanager
def working(place, url, count=1):
    """Let so many workers run; they are told to end, and yielded as processes.

    Of several each carries out one step at once, so that tasks side by side need them all.
    """
    command = place.build_command("work", "--queue", url, "--at-once", "5" if count == 1 else "1")
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            one = subprocess.Popen(
                command, cwd=place.root, env=place.env, stdout=subprocess.PIPE, text=True
            )
            stack.callback(_end, one)
            made.append(one)
        for one in made:
            assert "Ctrl+C ends this" in one.stdout.readline()
        yield made


def _end(process):
    process.terminate()
    process.wait(60)
    process.stdout.close()


def read_workers(file):
    """Return the workers that have carried out steps, and how many steps there were."""
    with sqlite3.connect(file) as db:
        rows = db.execute("select executor_id, status from workflow_status").fetchall()
    return {worker for worker, _ in rows}, [status for _, status in rows]


def is_complete(place, names="abcde"):
    """Assert that each task was completed once, that agents are balanced and git is clean."""
    shown, tasks = place.show()
    assert {name: one["status"] for name, one in tasks.items()} == dict.fromkeys(names, "completed")
    assert (shown["status"], shown["score"]) == ("completed", 90)
    done = [
        one["task"]
        for one in place.read_events(shown["id"])
        if one["event"] == "task" and one["state"].get("status") == "completed"
    ]
    assert sorted(done) == sorted(names)
    assert len([*place.repo.glob("made-*.txt")]) == len(names)
    assert place.git("worktree", "list").count("\n") == 1
    assert place.git("branch").split() == ["*", "main"]
    log = place.read_log(shown["id"])
    started = [one["data"]["agent"] for one in log if one["type"] == "agent.start"]
    ended = [one["data"]["agent"] for one in log if one["type"] == "agent.end"]
    assert sorted(started) == sorted(ended)
    completed = [
        one["data"]["agent"]
        for one in log
        if one["type"] == "agent.end" and one["data"]["status"] == "completed"
    ]
    place.verify()
    return completed


def test_two_workers_share_the_steps_of_a_queue(place):
    place.play("executor", bash("sleep 0.5; echo made > made-$(basename $PWD).txt"), "made")
    file = place.root / "queue.sqlite"
    with working(place, f"sqlite:///{file}", 2):
        place.start(place.write_plan(*FIVE), "--queue", f"sqlite:///{file}", "--workers", "0")
    assert len(is_complete(place)) == 11
    workers, statuses = read_workers(file)
    assert (len(workers), {*statuses}, len(statuses)) == (2, {"SUCCESS"}, 11)


def test_own_workers_end_with_their_workflow(place):
    place.start(place.write_plan("a"), "--queue", "sqlite", "--workers", "2")
    is_complete(place, "a")
    shown, _ = place.show()
    assert shown["options"]["workers"] == 2
    for name in read_workers(shown["options"]["queue"].removeprefix("sqlite:///"))[0]:
        with pytest.raises(ProcessLookupError):
            os.kill(int(name.rpartition(":")[2]), 0)


def test_a_step_whose_worker_was_killed_is_done_by_another_one(place):
    place.play("executor", bash("echo made >> made-$(basename $PWD).txt; sleep 2"), "made")
    file = place.root / "queue.sqlite"
    with working(place, f"sqlite:///{file}") as (first,):
        command = place.build_command(
            *("--plan", place.write_plan("a"), "--yolo", *place.list_models()),
            *("--queue", f"sqlite:///{file}", "--workers", "0"),
        )
        with subprocess.Popen(command, cwd=place.repo, env=place.env) as one:
            while not [*place.home.rglob("worktrees/*/*/made-*.txt")]:
                time.sleep(0.05)
            first.kill()
            first.wait()
            with working(place, f"sqlite:///{file}"):
                assert one.wait(60) == 0
    is_complete(place, "a")
    _, tasks = place.show()
    assert tasks["a"]["tries"] == 1
    (made,) = place.repo.glob("made-*.txt")
    assert made.read_text() == "made\n"
    assert sorted(read_workers(file)[1]) == ["CANCELLED", *["SUCCESS"] * 3]


def test_steps_go_on_while_the_program_of_the_workflow_is_gone(place):
    """What a worker has done meanwhile is not done again."""
    place.play("executor", bash("sleep 2; echo made >> made-$(basename $PWD).txt"), "made")
    file = place.root / "queue.sqlite"
    with working(place, f"sqlite:///{file}"):
        command = place.build_command(
            *("--plan", place.write_plan("a"), "--yolo", *place.list_models()),
            *("--queue", f"sqlite:///{file}", "--workers", "0"),
        )
        with subprocess.Popen(command, cwd=place.repo, env=place.env) as one:
            while not (file.exists() and "PENDING" in _read_statuses(file)):
                time.sleep(0.05)
            time.sleep(0.5)
            one.send_signal(signal.SIGKILL)
        place.run("resume", place.json("list")[0]["id"])
    assert len(is_complete(place, "a")) == 3
    assert read_workers(file)[1] == ["SUCCESS"] * 3


def _read_statuses(file):
    try:
        return read_workers(file)[1]
    except sqlite3.Error:
        return []


def test_a_cancelled_workflow_stops_its_steps(place):
    place.play("executor", bash("sleep 60"), "made")
    file = place.root / "queue.sqlite"
    with working(place, f"sqlite:///{file}"):
        command = place.build_command(
            *("--plan", place.write_plan("a"), "--yolo", *place.list_models()),
            *("--queue", f"sqlite:///{file}", "--workers", "0"),
        )
        with subprocess.Popen(command, cwd=place.repo, env=place.env) as one:
            while "PENDING" not in _read_statuses(file):
                time.sleep(0.05)
            place.run("cancel", place.json("list")[0]["id"])
            assert one.wait(30) == 130
        began = time.monotonic()
    assert time.monotonic() - began < 30
    assert place.show()[0]["status"] == "cancelled"


@pytest.mark.parametrize("seed", range(KILLS))
def test_any_of_its_programs_can_be_killed(place, seed):
    """The same end as without: each task completed once, nothing left in git."""
    place.play("executor", bash("sleep 0.3; echo made > made-$(basename $PWD).txt"), "made")
    url = f"sqlite:///{place.root / 'queue.sqlite'}"
    options = ("--queue", url, "--workers", "0")
    command = place.build_command(
        *("--plan", place.write_plan(*FIVE), "--yolo", *place.list_models(), *options)
    )
    chance = random.Random(seed)
    with ExitStack() as stack:
        workers = stack.enter_context(working(place, url, 2))
        for attempt in range(4):
            last = attempt == 3
            with subprocess.Popen(
                command, cwd=place.repo, env=place.env, stdout=subprocess.DEVNULL
            ) as one:
                if not last:
                    time.sleep(1.2 + chance.random() * 2)
                    if chance.random() < 0.7:
                        killed = workers.pop(chance.randrange(len(workers)))
                        killed.kill()
                        killed.wait()
                        workers += stack.enter_context(working(place, url))
                    one.send_signal(signal.SIGKILL)
                assert one.wait(120) in ({0} if last else {0, -signal.SIGKILL})
            listed = place.json("list")
            if listed and listed[0]["tasks"]:
                command = place.build_command("resume", listed[0]["id"])
    is_complete(place)


@contextmanager
def serving_postgres(root):
    """Yield the URL of a PostgreSQL server of its own; skip where there is none."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin")]
    folder = next((one for one in found if (one / "initdb").exists()), None)
    initdb = shutil.which("initdb") or (folder and folder / "initdb")
    if initdb is None:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(initdb).resolve().parent
    user = None
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next((one.pw_name for one in pwd.getpwall() if one.pw_name == "postgres"), "nobody")
        for one in (root, *root.parents):
            if one.owner() == "root" and one.stat().st_mode & 0o005 != 0o005 and one != Path("/"):
                one.chmod(one.stat().st_mode | 0o055)
    place = root / "postgres"
    place.mkdir()
    if user is not None:
        shutil.chown(place, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = place / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "gong", "-A", "trust", "--no-sync"],
        check=True, capture_output=True, user=user, cwd=place,
    )  # fmt: skip
    words = ["-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", place, "-F"]
    with subprocess.Popen(
        [programs / "postgres", *words],
        *(-1, None, subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL),
        user=user,
        cwd=place,
    ) as server:
        try:
            for _ in range(100):
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"postgresql://gong:secret@127.0.0.1:{port}/gong_queue"
        finally:
            server.send_signal(signal.SIGINT)


def test_postgresql_with_two_workers(place):
    """M187: one URL; the password is on no tape."""
    place.play("executor", bash("sleep 0.5; echo made > made-$(basename $PWD).txt"), "made")
    with serving_postgres(place.root) as url:
        with working(place, url, 2):
            place.start(place.write_plan(*FIVE), "--queue", url, "--workers", "0")
        assert len(is_complete(place)) == 11
        import psycopg  # it comes with the extra

        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "select distinct executor_id from dbos.workflow_status"
            ).fetchall()
        assert len(rows) == 2
    shown, _ = place.show()
    assert "gong@127.0.0.1" in shown["options"]["queue"]
    found = [
        one for one in place.home.rglob("*") if one.is_file() and b"secret" in one.read_bytes()
    ]
    assert found == []


def test_it_says_that_no_worker_is_there(place):
    command = place.build_command(
        *("--plan", place.write_plan("a"), "--yolo", *place.list_models()),
        *("--queue", "sqlite", "--workers", "0"),
    )
    with subprocess.Popen(
        command, cwd=place.repo, env=place.env, stderr=subprocess.PIPE, text=True
    ) as one:
        assert "no worker takes the next step: start `gong workflow work`" in one.stderr.readline()
        one.send_signal(signal.SIGINT)
        assert one.wait(30) == 130


def test_a_queue_that_cannot_be_used_is_a_plain_error(place):
    plan = place.write_plan("a")
    said = place.start(plan, "--queue", "redis://x", code=2)
    assert "not 'redis://x'" in said
    said = place.start(plan, "--queue", "postgresql://u:secret@127.0.0.1:1/x", code=2)
    assert "no queue at postgresql://u@127.0.0.1:1/x" in said
    assert "secret" not in said
    without = "import sys; sys.modules['dbos'] = None; from gong.cli import main; main()"
    words = ["workflow", "--plan", plan, "--yes", "--queue", "sqlite"]
    done = subprocess.run(
        [sys.executable, "-c", without, *words],
        cwd=place.repo,
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'gong[workflow]'" in done.stderr
    assert json.loads(place.run("list", "--json")) == []
