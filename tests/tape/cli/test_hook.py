"""`tape hook`: configurations for agents, and what they call."""

from __future__ import annotations

import json
import plistlib
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from tape.sessions.batch import open_locked_session
from tape.sessions.sources import SessionFile
from tape.store.store import Store
from tests import warm
from tests.tape.cli.conftest import BIN

ID = "0b1c2d3e-0000-4000-8000-00000000000a"


def write_line(number, text):
    return json.dumps(
        {
            "type": "user",
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "isSidechain": False,
            "sessionId": ID,
            "cwd": "/src/app",
            "timestamp": f"2026-05-12T10:{number // 60:02}:{number % 60:02}Z",
            "message": {"role": "user", "content": text},
        }
    )


def event(path):
    told = {"session_id": ID, "hook_event_name": "Stop", "transcript_path": str(path)}
    return json.dumps(told).encode()


def test_a_hook_records_what_is_new_and_prints_nothing(tape):
    file = tape.work / f"{ID}.jsonl"
    for count in (1, 2, 2):
        file.write_text("".join(write_line(n, f"prompt {n}") + "\n" for n in range(count)))
        ran = tape("hook", "run", stdin=event(file))
        assert (ran.out, ran.err) == (b"", "")
    said = tape("log", f"claude:{ID}", "--type", "user", "--json").json
    assert sorted(entry["data"]["content"][0]["text"] for entry in said) == ["prompt 0", "prompt 1"]
    assert len(tape("branches", f"claude:{ID}", "--json").json) == 1


def test_a_hook_never_stops_the_agent(tape):
    odd = tape.work / "odd.jsonl"
    odd.write_text("not a session\n")
    assert tape("hook", "run", stdin=event(tape.work / "missing.jsonl")).err == ""
    assert tape("hook", "run", stdin=b'{"transcript_path":null}').err == ""
    for given in (b"no JSON", event(odd)):
        ran = tape("hook", "run", stdin=given, code=1)
        assert ran.out == b""
        assert ran.err.startswith("tape: ")


def test_hooks_at_the_same_time_make_no_second_branch(tape):
    file = tape.work / f"{ID}.jsonl"
    file.write_text("".join(write_line(n, "x" * 500) + "\n" for n in range(40)))

    def run(_):
        command = [BIN, "--store", tape.store, "hook", "run"]
        return warm.run(command, cwd=tape.work, env=tape.env, stdin=event(file)).returncode

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(run, range(4))] == [0] * 4
    assert len(tape("branches", f"claude:{ID}", "--json").json) == 1
    tape("verify", f"claude:{ID}")


def test_hooks_and_a_watch_on_one_growing_session_write_one_branch(tape):
    folder = tape.work / "projects"
    folder.mkdir()
    file = folder / f"{ID}.jsonl"
    file.write_text(write_line(0, "begin") + "\n")
    base = [BIN, "--store", tape.store]
    watch = subprocess.Popen(
        [*base, "import", str(folder), "--watch"],
        env=tape.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )

    def grow(_):
        done = warm.run([*base, "hook", "run"], cwd=tape.work, env=tape.env, stdin=event(file))
        return done.returncode

    try:
        with ThreadPoolExecutor(2) as pool:
            codes = []
            for first in range(1, 1201, 60):
                new = [write_line(n, f"{n} " + "x" * 300) for n in range(first, first + 60)]
                with file.open("a") as lines:
                    lines.write("".join(f"{line}\n" for line in new))
                codes.append(pool.submit(grow, first))
                time.sleep(0.1)
            assert {code.result() for code in codes} == {0}
    finally:
        watch.terminate()
        assert watch.communicate(timeout=120)[1] == b""
    assert len(tape("branches", f"claude:{ID}", "--json").json) == 1
    said = tape("log", f"claude:{ID}", "--type", "user", "--json").json
    assert len(said) == 1201
    tape("verify", f"claude:{ID}")


def test_an_import_waits_for_another_one_of_its_session(tape):
    """The one that waited reads the file again, and finds what the other one has written."""
    file = tape.work / f"{ID}.jsonl"
    file.write_text(write_line(0, "one") + "\n")
    store = Store(tape.store)
    with open_locked_session(store, SessionFile(file)):
        run = subprocess.Popen(
            [BIN, "--store", tape.store, "hook", "run"], stdin=subprocess.PIPE, env=tape.env
        )
        run.stdin.write(event(file))
        run.stdin.close()
        time.sleep(1)
        assert run.poll() is None
        file.write_text("".join(write_line(n, f"{n}") + "\n" for n in range(3)))
    assert run.wait(120) == 0
    assert len(tape("log", f"claude:{ID}", "--type", "user", "--json").json) == 3


def test_the_printed_configurations_call_the_command(tape):
    texts = tape("hook", "install", "--print", "--json").json
    claude = json.loads(texts["claude"]["text"])["hooks"]
    codex = json.loads(texts["codex"]["text"])["hooks"]
    assert "SessionEnd" in claude
    assert set(codex) <= set(claude)
    for hooks in (claude, codex):
        for (group,) in hooks.values():
            (command,) = group["hooks"]
            assert command["type"] == "command"
            assert command["command"].endswith("hook run")
    watch = plistlib.loads(texts["launchd"]["text"].encode())["ProgramArguments"]
    assert watch[-3:] == ["import", "auto", "--watch"]
    assert "WantedBy=default.target" in texts["systemd"]["text"]
    assert json.loads(tape("hook", "install", "--print", "--for", "codex").out)["hooks"] == codex
    assert tape("hook", "install", code=2).err.startswith("tape: this only prints")
    everything = tape("hook", "install", "--print").text
    assert everything.count("# ") >= 4
