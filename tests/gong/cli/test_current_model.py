"""Which model answers on a branch: one rule, whichever command asks (docs/models.md)."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from threading import Thread
from typing import NamedTuple

import pytest

from tape.model.entries import Assistant, Text, User
from tape.store.store import Beginning, Store
from tests.gong.cli.inside import inside
from tests.wires.server import Reply, WireServer
from tests.wires.table import WIRES

CHAT = next(wire for wire in WIRES if wire.preset == "openai-chat")
SUMMARY = "## Goal\nCount the lines.\n\n## Progress\n### Done\n- counted\n"
HOUSE, DEFAULT = "house/last", "offline/rules"
UNSERVED, KEYLESS, NOBODY = "copilot/claude", "anthropic/claude-haiku-5-5", "nobody/x"


class Case(NamedTuple):
    """What names a model, and which one answers then."""

    last: str | None
    expected: str
    flag: str | None = None
    environment: str | None = None
    config: str | None = None


FLAG, ENV, CONFIG = "house/flag", "house/env", "house/config"
CASES = [
    Case(None, DEFAULT),
    Case(None, CONFIG, config=CONFIG),
    Case(None, ENV, environment=ENV),
    Case(None, ENV, environment=ENV, config=CONFIG),
    Case(None, FLAG, FLAG, ENV, CONFIG),
    Case(HOUSE, HOUSE),
    Case(HOUSE, HOUSE, config=CONFIG),
    Case(HOUSE, HOUSE, environment=ENV),
    Case(HOUSE, HOUSE, environment=ENV, config=CONFIG),
    Case(HOUSE, HOUSE, environment=NOBODY),
    Case(HOUSE, FLAG, FLAG),
    Case(HOUSE, FLAG, FLAG, ENV, CONFIG),
    Case(NOBODY, FLAG, FLAG, ENV, CONFIG),
    *(
        case
        for last in ("offline/rules", "scripted/gone.json", UNSERVED, KEYLESS, NOBODY)
        for case in (
            Case(last, DEFAULT),
            Case(last, ENV, environment=ENV, config=CONFIG),
        )
    ),
]
COMMANDS = {
    "chat": ("chat", "-c", "-p", "hello"),
    "context": ("context",),
    "compact": ("compact", "--hard"),
    "handoff": ("handoff", "--to", "house/other"),
}


@contextmanager
def serving(server):
    """Serve on a thread of its own, so that commands can run in this one."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()

    def await_(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    try:
        await_(server.__aenter__())
        yield server
        await_(server.__aexit__())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def house():
    with serving(WireServer(Reply(CHAT.said(SUMMARY)))) as server:
        yield server


def record_session(home, last):
    """Record a session that is long enough to be summed up, whose last answer is `last`'s."""
    beginning = Beginning(cwd=str(home), program="test/1")
    provider, _, model = (last or "").partition("/")
    with Store(home / ".tape").create(beginning) as tape, tape.writer() as writer:
        for turn in range(3):
            writer.append(User((Text(f"Count the lines of file {turn}. " * 200),)))
            answer = (Text(f"There are {turn} lines. " * 300),)
            writer.append(Assistant(answer, provider=provider, model=model))
        writer.barrier()


def write_config(home, server, model):
    lines = [f'model = "{model}"'] if model else []
    lines += ["[providers.house]", 'api = "openai-chat"', f'base_url = "{server.url}/v1"']
    (home / ".config/gong/config.toml").write_text("\n".join(lines) + "\n")


def who_answers(home, server, command, case):
    """Run a command and return the model it asks, or of which it shows what would be sent."""
    record_session(home, case.last)
    write_config(home, server, case.config)
    argv = [*COMMANDS[command], *(("-m", case.flag) if case.flag else ())]
    variables = {"GONG_MODEL": case.environment} if case.environment else {}
    server.requests.clear()
    ran = inside(home)(*argv, **variables)
    if command == "context":
        return ran.stdout.split("\n", 1)[0]
    asked = {f"house/{seen.body['model']}" for seen in server.requests} or {DEFAULT}
    (model,) = asked
    return model


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_every_command_asks_the_same_model(home, house, command, case):
    assert who_answers(home, house, command, case) == case.expected


@pytest.mark.parametrize("command", COMMANDS)
def test_a_last_model_that_cannot_be_asked_is_named_with_the_reason(home, house, command):
    record_session(home, KEYLESS)
    write_config(home, house, None)
    said = inside(home)(*COMMANDS[command]).stderr
    assert f"gong: the session's last model {KEYLESS} is not available: " in said
    assert "ANTHROPIC_API_KEY" in said


@pytest.mark.parametrize("command", ["context", "compact", "handoff"])
def test_a_model_that_is_set_needs_no_key_to_be_looked_at(home, house, command):
    record_session(home, HOUSE)
    write_config(home, house, None)
    assert inside(home)(*COMMANDS[command], "-m", KEYLESS).stdout


def test_a_chat_with_a_model_that_has_no_key_ends_with_6_and_says_so_once(home, house):
    record_session(home, KEYLESS)
    write_config(home, house, KEYLESS)
    said = inside(home)(*COMMANDS["chat"], code=6).stderr
    assert said.count("ANTHROPIC_API_KEY") == 1


def test_the_request_that_is_shown_is_the_one_that_is_sent(home, house):
    record_session(home, HOUSE)
    write_config(home, house, None)
    here = inside(home)
    shown = json.loads(here("context", "--json", GONG_MODEL=ENV).stdout)["request"]
    house.requests.clear()
    here("chat", "-c", "-p", "hello", GONG_MODEL=ENV)
    sent = house.requests[-1].body
    assert sent["model"] == shown["model"] == "last"
    assert sent["messages"][: len(shown["messages"])] == shown["messages"]
