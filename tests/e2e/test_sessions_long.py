"""Long sessions: five compactions with facts asked for late, and one session over four APIs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import pairwise

import pytest

from gong.agent.front_end import FrontEnd
from gong.assembly.opening import find_session, open_session, resume_branch
from gong.config import Settings
from tape.index.library import open_store
from tests.tape import reader
from tests.wires import anthropic, google
from tests.wires import openai_chat as chat
from tests.wires import openai_responses as responses
from tests.wires.server import Reply, WireServer
from tests.wires.voices import VOICES

pytestmark = pytest.mark.slow

FACTS = [
    ("remember that the staging port is 8143", "which port is staging on?", "8143"),
    ("Our database is called orchid_prod.", "what is our database called?", "orchid_prod"),
    ("我们决定使用 PostgreSQL 16，不要使用 MySQL。", "我们决定使用什么数据库？", "PostgreSQL 16"),
    ("read notes.txt", "what is the rollback key?", "QX-7719"),
    ("run echo the release tag is v4.18-rc3", "what is the release tag?", "v4.18-rc3"),
    ("The retries take 3 - 5 minutes. The port is 9250.", "how long do the retries take?", "3 - 5"),
    ("Marta Oyelaran owns the billing module.", "who owns the billing module?", "Marta"),
]


def talk(place, *prompts):
    """Say prompts to the offline model in this process, which is faster, and return its answers."""
    return asyncio.run(_talk(place, prompts))


async def _talk(place, prompts):
    answers = []
    async with session(place, "offline/rules") as one:
        for prompt in prompts:
            async with aclosing(one.submit(prompt)) as stream:
                said = [event.delta async for event in stream if hasattr(event, "delta")]
            answers.append("".join(map(str, said)))
    return answers


@asynccontextmanager
async def session(place, model, **environ):
    """Hold the newest session of the folder, or a new one, as the command would."""
    environ = {**place.env, **environ}
    with open_store(place.home / ".tape") as library:
        front = FrontEnd(library, Settings(), environ, str(place.folder), "test/1", model)
        recorder = None
        if place.tapes():
            recorder = resume_branch(front, find_session(front, ""), "")
        host = await open_session(front, recorder)
        try:
            yield host.session
        finally:
            await host.close()


def sent(place):
    return place.run("gong", "context", "--json").stdout


def test_early_facts_are_known_after_five_compactions(place):
    """M155 M157 M160: each request is at most 40 % of the one before; each undo is exact."""
    lines = "".join(f"step {n} of the build took a while\n" for n in range(700))
    (place.folder / "big.txt").write_text(lines)
    (place.folder / "notes.txt").write_text(f"Notes.\nThe rollback key is QX-7719 here.\n{lines}")
    talk(place, *(fact for fact, _, _ in FACTS))
    for turn in range(5):
        talk(place, *(f"read big.txt then run echo {turn} {n}" for n in range(3)))
        before = sent(place)
        if turn in {0, 4}:
            seen = place.run("tape", "context", "--json").stdout
            place.run("gong", "compact")
            place.run("gong", "compact", "--undo")
            assert sent(place) == before
            assert place.run("tape", "context", "--json").stdout == seen
        place.run("gong", "compact")
        after = sent(place)
        assert len(after) <= 0.4 * len(before)
        assert json.loads(after)["tokens"] <= 0.4 * json.loads(before)["tokens"]
    for (_, _, fact), answer in zip(FACTS, talk(place, *(ask for _, ask, _ in FACTS)), strict=True):
        assert fact in answer
    assert reader.faults(place.tapes()[0]) == []


# one session over four APIs

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c"
    "6360606060000000050001a5f645400000000049454e44ae426082"
)
CALLS = (("bash", {"command": "echo one"}), ("read", {"path": "dot.png"}))


def _calls(number):
    """Return what each API's host says that thinks and calls two tools at once."""
    texts = [(name, json.dumps(args)) for name, args in CALLS]
    return {
        "anthropic": [
            anthropic.start(),
            *anthropic.THINKING,
            *(
                one
                for n, (name, text) in enumerate(texts, 1)
                for one in anthropic.tool_block(n, f"toolu_{number}{n}", name, text)
            ),
            *anthropic.stop("tool_use"),
        ],
        "openai": [
            responses.start(),
            *json.loads(json.dumps(responses.THINKING).replace("rs_0", f"rs_{number}")),
            *(
                one
                for n, (name, text) in enumerate(texts, 1)
                for one in responses.function(n, f"call_{number}{n}", name, text)
            ),
            responses.end(),
        ],
        "openai-chat": [
            chat.chunk({"reasoning_content": "Let me look."}),
            chat.calls(
                *(
                    chat.call(n, text, f"call_{number}{n}", name)
                    for n, (name, text) in enumerate(texts)
                )
            ),
            chat.chunk(finish="tool_calls"),
            "DONE",
        ],
        "google": [
            google.chunk(google.thought("Let me look.")),
            google.chunk(
                *(google.call(name, args, thoughtSignature="c2lnbmVk") for name, args in CALLS)
            ),
            google.chunk(finish="STOP"),
        ],
    }


def anthropic_faults(body):
    found, messages = [], body["messages"]
    blocks = [
        one["content"] if isinstance(one["content"], list) else [{"type": "text"}]
        for one in messages
    ]
    calls = [[b["id"] for b in each if b["type"] == "tool_use"] for each in blocks]
    results = [[b["tool_use_id"] for b in each if b["type"] == "tool_result"] for each in blocks]
    for asked, told in pairwise(zip(calls, results, strict=True)):
        found += [] if sorted(asked[0]) == sorted(told[1]) else [(asked, told)]
    roles = [one["role"] for one in messages]
    found += [roles] if roles[0] != "user" or any(a == b for a, b in pairwise(roles)) else []
    every = [one for each in calls for one in each]
    return [*found, *results[0], *calls[-1], *([every] if len({*every}) < len(every) else [])]


def responses_faults(body):
    items, found = body["input"], []
    calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
    outputs = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
    found += [] if sorted(calls) == sorted(outputs) and len({*calls}) == len(calls) else [calls]
    for one, following in pairwise([*items, {}]):
        if one.get("type") == "reasoning" and (
            following.get("type") != "function_call" and following.get("role") != "assistant"
        ):
            found.append(one)
    return found


def chat_faults(body):
    found, waiting = [], []
    for one in body["messages"]:
        if one["role"] == "tool":
            if one["tool_call_id"] not in waiting:
                found.append(one)
            else:
                waiting.remove(one["tool_call_id"])
            continue
        found += waiting
        waiting = [call["id"] for call in one.get("tool_calls") or ()]
    return [*found, *waiting]


def google_faults(body):
    found, contents = [], body["contents"]
    for before, one in pairwise([{"role": "none", "parts": []}, *contents, {"parts": []}]):
        asked = [part for part in before["parts"] if "functionCall" in part]
        told = [part for part in one["parts"] if "functionResponse" in part]
        found += [] if len(asked) == len(told) else [(before, one)]
        if any("functionCall" in part for part in one["parts"]) and before["role"] != "user":
            found.append(one)
    return found


FAULTS = {
    "anthropic": anthropic_faults,
    "openai": responses_faults,
    "openai-chat": chat_faults,
    "google": google_faults,
}
STANDS_IN = "skip_thought_signature_validator"
"""What Google takes for the signature of a call that another model made."""
SIGNED = {
    "anthropic": lambda body: [
        part
        for one in body["messages"]
        if isinstance(one["content"], list)
        for part in one["content"]
        if part["type"] == "thinking"
    ],
    "openai": lambda body: [one for one in body["input"] if one.get("type") == "reasoning"],
    "openai-chat": lambda body: [
        one["reasoning_content"] for one in body["messages"] if one.get("reasoning_content")
    ],
    "google": lambda body: [
        part
        for one in body["contents"]
        for part in one["parts"]
        if part.get("thoughtSignature", STANDS_IN) != STANDS_IN
    ],
}


def answering(place, preset, server):
    """Return the session with a model of a preset that a local server answers for."""
    model = "gemini-3-pro-preview" if preset == "google" else "model-x"
    variable = f"{preset.upper().replace('-', '_')}_BASE_URL"
    return session(place, f"{preset}/{model}", **{variable: server.url})


@pytest.mark.parametrize("first", range(4))
async def test_a_session_with_tools_thoughts_and_pictures_over_all_apis(place, first):
    """Each API's rules hold, A's thoughts come back byte for byte, all words stay."""
    (place.folder / "dot.png").write_bytes(PNG)
    order = [*VOICES[first:], *VOICES[:first], VOICES[first]]
    own = []
    async with AsyncExitStack() as stack:
        servers = {
            voice: await stack.enter_async_context(WireServer()) for voice in range(len(VOICES))
        }
        for number, voice in enumerate(order):
            preset, server = voice.wire.preset, servers[VOICES.index(voice)]
            said = voice.replies(_calls(number)[preset], f"answer {number}")
            server.replies, server.requests = said, []
            async with (
                answering(place, preset, server) as one,
                aclosing(one.submit(f"question {number}")) as stream,
            ):
                told = [event async for event in stream]
            assert told[-1].stop_reason == "stop", told
            for seen in server.requests:
                assert FAULTS[preset](seen.body) == []
                assert all(f"question {n}" in json.dumps(seen.body) for n in range(number + 1))
            signed = SIGNED[preset](server.requests[-1].body)
            own = own or signed
            if number == 1:
                await _stopped(place, preset, server)
    assert own
    assert signed[: len(own)] == own
    assert len(signed) == 2 * len(own)
    place.run("tape", "verify")


async def _stopped(place, preset, server):
    """Ask something, and stop what answers while its host is silent."""
    server.replies, server.requests = [Reply(stall=True)], []

    async def stopping(one):
        while await asyncio.sleep(0.01, not server.requests):
            pass
        one.abort()

    async with answering(place, preset, server) as one:
        stopper = asyncio.create_task(stopping(one))
        async with aclosing(one.submit("question stopped")) as stream:
            told = [event async for event in stream]
        await stopper
    assert told[-1].stop_reason == "aborted"


_RUN_AND_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A process of its own, because a child counts what its parent had when it was started."""
_MAX_BYTES_AN_ENTRY = 1_250
"""What a handoff may take of memory for each entry: 250 MB for 200 000."""


def test_the_memory_of_a_handoff_grows_little_with_the_session(place):
    """J9: measured as the growth from a session of 4 000 entries to one of 24 000."""
    peaks = []
    for turns in (1_000, 6_000):
        rows, parent = [], None
        for number in range(turns):
            for line in build_turn(number):
                uuid = f"u{turns}-{len(rows)}"
                when = f"2026-01-01T{len(rows) // 3600 % 24:02}:00:00.{len(rows) % 1000:03}Z"
                own = {"uuid": uuid, "parentUuid": parent, "sessionId": f"s{turns}"}
                rows.append({**line, **own, "cwd": str(place.folder), "timestamp": when})
                parent = uuid
        file = place.home / f"{turns}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        store = ("--store", str(place.home / f"store-{turns}"))
        place.run("tape", "import", str(file), *store)
        tape = json.loads(place.run("tape", "ls", "--all", "--json", *store).stdout)[0]["id"]
        peaks.append(measure_peak(place, tape, store))
    growth = (peaks[1] - peaks[0]) / 20_000
    assert growth < _MAX_BYTES_AN_ENTRY


def build_turn(number):
    """A prompt, a call, its result and an answer, as lines of Claude Code."""
    answer = {"role": "assistant", "model": "m", "usage": {"input_tokens": 9, "output_tokens": 5}}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": "a.py"}}
    said = {"type": "text", "text": f"Done: the parser of table {number} reads the index now."}
    output = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"line {number}"}
    prompt = f"Please fix the parser of table {number}, which loses a line."
    return (
        {"type": "user", "message": {"role": "user", "content": prompt}},
        {"type": "assistant", "message": {"id": f"a{number}", "content": [call], **answer}},
        {"type": "user", "message": {"role": "user", "content": [output]}},
        {"type": "assistant", "message": {"id": f"b{number}", "content": [said], **answer}},
    )


def measure_peak(place, tape, store):
    """Hand a session over in a process of its own, and return its peak of resident bytes."""
    command = [
        *(sys.executable, "-c", _RUN_AND_MEASURE, sys.executable, "-m", "gong", "handoff", tape),
        *("--to", "anthropic/claude-sonnet-4-5", "-m", "offline/rules"),
        *("-o", str(place.home / f"{tape}.md"), *store),
    ]
    run = {"cwd": place.folder, "env": place.env, "capture_output": True}
    return int(subprocess.run(command, check=True, **run).stdout) * 1024
