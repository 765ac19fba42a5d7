"""The window in the real commands: what is sent, compaction and its undo, handoff, kills."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from contextlib import aclosing

import pytest

from gong.agent.front_end import FrontEnd
from gong.assembly.opening import open_session
from gong.config import Settings
from tape.formats.registry import FORMATS
from tape.index.library import open_store
from tests.tape import reader
from tests.wires.server import WireServer
from tests.wires.voices import VOICES

NAMES = {
    "anthropic": "anthropic",
    "openai": "openai-responses",
    "openai-chat": "openai-chat",
    "google": "gemini",
}
MODELS = {name: "gemini-3-pro-preview" if name == "google" else "model-x" for name in NAMES}


def talk(place, turns=6):
    """Begin a session of some length with the offline model, in this process: that is faster."""
    (place.folder / "big.txt").write_text("".join(f"line {n}\n" for n in range(900)))
    prompts = [f"read big.txt then run echo {turn}" for turn in range(turns)]
    asyncio.run(_talk(place, ["remember that the staging port is 8143", *prompts]))


async def _talk(place, prompts):
    settings = Settings(model="offline/rules")
    with open_store(place.home / ".tape") as library:
        front = FrontEnd(library, settings, place.env, str(place.folder), "test/1")
        host = await open_session(front)
        for prompt in prompts:
            async with aclosing(host.session.submit(prompt)) as stream:
                async for _ in stream:
                    pass
        await host.close()


def wordy(place):
    """Return the name of a model whose summaries are long."""
    words = " ".join(f"word{n}" for n in range(900))
    answer = {"text": f"## Goal\nSay hello.\n\n## Progress\n### Done\n- {words}\n"}
    return place.script(answer, name="wordy.json")


def sent(place, *argv):
    return place.run("gong", "context", *argv, "--json").stdout


def test_a_compaction_and_its_undo_give_the_same_request_byte_for_byte(place):
    """M160: ten entries and more are covered, and come back with one line of the journal."""
    talk(place)
    before = sent(place)
    seen = place.run("tape", "context", "--json").stdout
    done = place.json("gong", "compact", "--json")
    after = sent(place)
    assert done["covered"] >= 10
    assert len(after) <= 0.4 * len(before)
    assert "8143" in after
    assert done["tokens"]["after"] <= 0.4 * done["tokens"]["before"]
    journal = place.tapes()[0] / "refs.jsonl"
    lines = journal.read_bytes().count(b"\n")
    place.run("gong", "compact", "--undo")
    assert journal.read_bytes().count(b"\n") == lines + 1
    assert sent(place) == before
    assert place.run("tape", "context", "--json").stdout == seen
    assert reader.faults(place.tapes()[0]) == []
    place.run("tape", "verify")


def test_a_compacted_session_continues_and_can_read_what_was_covered(place):
    """The option --compact sums up before it goes on."""
    talk(place, 3)
    ask = ("-p", "which port is staging on?")
    said = place.run("gong", "chat", "-c", "--compact", *ask).stdout
    assert "8143" in said
    assert "echo 0" in place.run("tape", "cat").stdout
    assert "anchor" in place.run("tape", "log", "--oneline").stdout
    refused = place.run("gong", "compact", "--undo", code=1)
    assert "2 messages were added since this compaction: --leave" in refused.stderr
    place.run("gong", "compact", "--undo", "--leave")


def test_the_request_is_shown_without_a_key_for_every_api(place):
    talk(place, 2)
    for provider, kind in NAMES.items():
        told = json.loads(sent(place, "-m", f"{provider}/{MODELS[provider]}"))
        assert set(told) == {"request", "tokens", "repairs"}
        assert told["repairs"] == []
        assert told["tokens"] > 1_000
        array = told["request"][FORMATS[kind].field]
        assert FORMATS[kind].check(array) == []


def test_a_repair_is_reported_and_not_recorded(place):
    """What the next call would mend is shown; showing it changes nothing."""
    tape = place.json("tape", "new", "--json")["id"]
    lines = [
        {"type": "user", "data": {"content": [{"type": "text", "text": "hi"}]}},
        {
            "type": "assistant",
            "data": {
                "content": [{"type": "tool_call", "id": "c_1", "name": "bash", "args": {}}],
                "provider": "x", "api": "x", "endpoint": "x", "model": "x",
                "stop_reason": "tool_calls", "usage": {"input": 1, "output": 1, "total": 2},
                "duration_ms": 1,
            },
        },
    ]  # fmt: skip
    place.run("tape", "append", tape, stdin="".join(json.dumps(line) + "\n" for line in lines))
    before = (place.tapes()[0] / "phases").glob("*/entries.jsonl")
    bytes_before = [file.read_bytes() for file in before]
    told = json.loads(sent(place, tape, "-m", "anthropic/model-x"))
    assert [one["kind"] for one in told["repairs"]] == ["injected"]
    assert told["repairs"][0]["call_id"] == "c_1"
    after = (place.tapes()[0] / "phases").glob("*/entries.jsonl")
    assert [file.read_bytes() for file in after] == bytes_before


def test_the_window_is_shown_by_who_uses_it(place):
    """System, tools, each turn, and the whole."""
    talk(place, 2)
    text = place.run("gong", "context").stdout
    assert text.startswith("offline/rules\nsystem prompt")
    assert "18 tools" in text
    assert "remember that the staging port" in text
    assert text.rstrip().endswith("tokens")


def test_a_kill_inside_a_compaction_loses_nothing(place):
    """The tape verifies, the request is as it was, and the next compaction works."""
    talk(place, 3)
    before = json.loads(sent(place))["request"]["messages"]
    slow = place.script({"text": "## Goal\nx", "delay_ms": 60_000})
    process = place.start("gong", "compact", "-m", slow)
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    place.run("tape", "verify")
    assert reader.faults(place.tapes()[0]) == []
    assert json.loads(sent(place, "-m", "offline/rules"))["request"]["messages"] == before
    place.run("gong", "compact", "-m", "offline/rules")


def test_bad_requests_are_one_line_each(place):
    assert "no session in this folder" in place.run("gong", "chat", "-c", "-p", "x", code=3).stderr
    assert place.run("gong", "compact", code=3).stderr.startswith("gong: ")
    talk(place, 2)
    place.run("gong", "compact", "--hard")
    assert "nothing to compact" in place.run("gong", "compact", code=1).stderr
    place.run("gong", "compact", "--undo")
    assert "nothing to undo" in place.run("gong", "compact", "--undo", code=1).stderr
    assert place.run("gong", "compact", "--undo", "--hard", code=2).stderr
    assert place.run("gong", "context", "-m", "nobody/x", code=2).stderr
    assert place.run("gong", "handoff", "--to", "nobody/x", code=2).stderr


def test_a_handoff_is_an_anchor_and_a_page_and_another_model_continues(place):
    """M168: structured state for the model, Markdown for people, and it is said which."""
    talk(place, 3)
    other = place.script({"text": "I go on."})
    page = place.run("gong", "handoff", "--to", "anthropic/claude-sonnet-5-5").stdout
    assert page.startswith("# Handoff: ")
    assert "remember that the staging port is 8143" in page
    assert "anthropic/claude-sonnet-5-5" in page
    (anchor,) = place.json("tape", "log", "--type", "anchor", "--json")
    nowhere = ("--to", "openai/gpt-5", "-o", "/nowhere/x")
    assert "there is no folder /nowhere" in place.run("gong", "handoff", *nowhere, code=1).stderr
    assert anchor["data"]["kind"] == "handoff"
    assert anchor["data"]["state"]["model"] == "anthropic/claude-sonnet-5-5"
    again = place.run("gong", "handoff", "--to", "openai/gpt-5", "-o", "HANDOFF.md")
    assert "it is reused for the handoff" in again.stderr
    assert (place.folder / "HANDOFF.md").read_text().startswith("# Handoff: ")
    newest = place.json("tape", "log", "--type", "anchor", "--json")[-1]
    assert newest["data"]["state"]["model"] == "openai/gpt-5"
    done = place.run("gong", "chat", "-c", "-m", other, "-p", "go on")
    assert done.stdout == "I go on.\n"
    assert "continues from the handoff" in done.stderr


def test_the_page_of_a_handoff_is_enough_for_another_agent(place):
    """M235: pasted as a prompt into a session that knows nothing else."""
    talk(place, 3)
    page = place.run("gong", "handoff", "--to", "offline/rules").stdout
    apart = {"TAPE_HOME": str(place.home / "elsewhere")}
    first = ("gong", "chat", "-p", page, "-m", "offline/rules")
    place.run(*first, **apart)
    asked = place.run("gong", "chat", "-c", "-p", "which port is staging on?", **apart)
    assert "8143" in asked.stdout
    assert "gong chat --session" in page


def test_a_compaction_that_saves_nothing_is_not_made(place):
    """M160: the branch stays as it is; only what the summary took is recorded."""
    place.run("gong", "chat", "-p", "hello", "-m", "offline/rules")
    before, head = sent(place), place.json("tape", "log", "--json")
    done = place.run("gong", "compact", "--hard", "-m", wordy(place), code=1)
    assert re.fullmatch(
        r"gong: a summary would not make the next request smaller:"
        r" [\d,]+ tokens would become [\d,]+\n",
        done.stderr,
    )
    now = place.json("tape", "log", "--json")
    assert now[: len(head)] == head
    assert [entry["type"] for entry in now[len(head) :]] == ["usage"]
    assert sent(place) == before


def test_a_handoff_that_saves_nothing_hands_over_the_whole_history(place):
    """The page is there, the branch has no anchor, and the other model gets all of it."""
    place.run("gong", "chat", "-p", "hello", "-m", "offline/rules")
    other = place.script({"text": "yes"})
    done = place.run("gong", "handoff", "--to", other, "-m", wordy(place), "-o", "page.md")
    assert done.stderr.endswith(f"So {other} continues from the full history.\n")
    assert (place.folder / "page.md").read_text().startswith("# Handoff: hello\n")
    assert place.json("tape", "log", "--type", "anchor", "--json") == []
    asked = place.json("gong", "handoff", "--to", other, "-m", wordy(place), "--json")
    assert (asked["to"], asked["entry"]) == (other, None)
    went_on = place.run("gong", "chat", "-c", "-m", other, "-p", "go on")
    assert "continues from the full history" in went_on.stderr


def test_another_model_continues_with_the_whole_history_where_that_fits(place):
    talk(place, 1)
    other = place.script({"text": "yes"})
    done = place.run("gong", "chat", "-c", "-m", other, "-p", "go on")
    assert "switched from offline/rules to " in done.stderr
    assert "continues from the full history" in done.stderr


def test_a_history_that_does_not_fit_continues_from_a_handoff(place):
    talk(place, 6)
    other = place.script({"text": "## Goal\nread big.txt\n## Next Steps\n- more"}, {"text": "yes"})
    config = place.home / ".config" / "gong"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[models."{other}"]\ncontext_window = 9000\n')
    done = place.run("gong", "chat", "-c", "-m", other, "-p", "go on")
    assert done.stdout == "yes\n"
    assert "tokens do not fit" in done.stderr
    assert "continues from a handoff" in done.stderr
    back = place.run("gong", "compact", "--undo", "--leave")
    assert "before its handoff" in back.stdout


def test_a_branch_gets_a_summary_of_the_one_left_for_it(place):
    """A summary of it stands in the anchor of the next."""
    place.run("gong", "chat", "-p", "run echo one")
    base = place.json("tape", "log", "--json")[-1]["id"]
    place.run("gong", "chat", "-c", "-p", "remember that the left port is 99")
    place.run("gong", "chat", "--fork", f"@{base}", "--carry", "-p", "run echo two")
    (anchor,) = place.json("tape", "log", "--type", "anchor", "--json")
    assert anchor["data"]["kind"] == "merge"
    assert anchor["data"]["other"]["branch"] == "main"
    request = sent(place)
    assert "left port is 99" in request
    assert "echo one" in request
    assert "echo two" in request
    place.run("tape", "verify")


def test_a_branch_comes_back_as_a_summary_by_the_model(place):
    """The model writes what the merge says of the branch; the view of main stays, picks follow."""
    place.run("gong", "chat", "-p", "run echo one")
    place.run("tape", "fork", "--name", "try")
    place.run("gong", "chat", "--session", ":try", "-p", "remember that the port is 99")
    place.run("gong", "chat", "--session", ":main", "-p", "run echo two")
    before = place.json("tape", "context", "--json")["messages"]
    model = place.script({"text": "## Goal\nFind the port.\n## Progress\n### Done\n- It is 99.\n"})
    merged = place.json("gong", "merge", "try", "--pick", "try", "-m", model, "--json")
    assert list(merged) == ["tape", "branch", "entry"]
    (anchor,) = place.json("tape", "log", "--type", "anchor", "--json")
    assert anchor["id"] == merged["entry"]
    assert anchor["data"]["by"]["provider"] == "scripted"
    assert anchor["data"]["other"]["reason"] == "merge"
    done = anchor["data"]["summary"]["done"]
    assert done[0].startswith("Merged 'try' (3 entries, 1 prompt), up to ")
    assert done[1] == "on branch try: It is 99."
    assert "on branch try: remember that the port is 99" in anchor["data"]["summary"]["requests"]
    summary, *rest = place.json("tape", "context", "--json")["messages"]
    assert (summary["role"], rest[:-1]) == ("user", before)
    assert rest[-1]["role"] == "assistant"
    assert "already there" in place.run("gong", "merge", "try", "-m", model).stdout
    place.run("gong", "chat", "-c", "-p", "run echo three")
    place.run("gong", "compact", "--hard")
    place.run("tape", "replay", "--check")
    place.run("tape", "verify")


def test_a_limit_of_money_stops_a_run_softly(place):
    """M183: between two calls, exit code 8, and what was said stands on the tape."""
    call = {"name": "bash", "args": {"command": "echo hi"}}
    dear = place.script(
        {"tool_calls": [call], "usage": {"input": 600, "output": 500}}, {"text": "never"}
    )
    config = place.home / ".config" / "gong"
    config.mkdir(parents=True)
    price = "price = { input = 1000.0, output = 1000.0 }"
    (config / "config.toml").write_text(f'[models."{dear}"]\n{price}\n')
    argv = ("-m", dear, "-p", "go", "--max-cost", "1", "--output-format", "json")
    done = place.run("gong", "chat", *argv, code=8)
    assert "stopped at the max cost of $1.00: $1.10 spent" in done.stderr
    told = json.loads(done.stdout)
    assert (told["turns"], told["cost"]["amount"]) == (1, pytest.approx(1.1))
    assert place.json("gong", "cost", "--json")


async def _chat(place, wire, server, *argv):
    variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
    process = await asyncio.create_subprocess_exec(
        str(place.bin / "gong"),
        *("chat", "-m", f"{wire.preset}/{MODELS[wire.preset]}", *argv),
        cwd=place.folder,
        env={**place.env, variable: server.url},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, (out, err)
    return server.requests[-1].body


async def test_a_session_continues_over_all_four_apis_and_back(place):
    """Every request keeps its provider's rules, and every word goes along."""
    order = [*VOICES, VOICES[0]]
    for number, voice in enumerate(order):
        argv = ("-p", f"question {number}") if number == 0 else ("-c", "-p", f"question {number}")
        async with WireServer(*voice.replies(voice.calls("Paris"), f"answer {number}")) as server:
            body = await _chat(place, voice.wire, server, *argv)
        form = FORMATS[NAMES[voice.wire.preset]]
        assert form.check(body[form.field]) == []
        text = json.dumps(body)
        for earlier in range(number):
            assert f"question {earlier}" in text
            assert f"answer {earlier}" in text
    place.run("tape", "verify")


def test_a_file_that_is_there_is_replaced_only_with_force(place):
    """Whatever a person names as output: an export, the page of a handoff or of a work."""
    talk(place, 2)
    place.run("gong", "work", "new", "Notes", "--goal", "Keep notes")
    for command in (
        ("tape", "export"),
        ("tape", "export", "--to", "md"),
        ("tape", "export", "--to", "anthropic"),
        ("gong", "handoff", "--to", "openai/gpt-5"),
        ("gong", "work", "handoff", "notes"),
    ):
        file = place.folder / "mine.txt"
        file.write_text("mine")
        before = sent(place)
        done = place.run(*command, "-o", "mine.txt", code=1)
        assert "mine.txt already exists: --force replaces it\n" in done.stderr
        assert (file.read_text(), sent(place)) == ("mine", before)
        place.run(*command, "-o", "mine.txt", "--force")
        assert file.read_text() != "mine"
        file.unlink()
        place.run(*command, "-o", "mine.txt")
        file.unlink()
        file.symlink_to("gone")
        place.run(*command, "-o", "mine.txt", code=1)
        file.unlink()
