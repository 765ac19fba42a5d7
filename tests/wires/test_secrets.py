"""M150: a key is in no error, no traceback, no repr and no file, whatever a host does with it."""

import asyncio
import json
import os
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from gong import errors
from gong.llm import Client
from gong.llm.models import load_presets
from gong.llm.provider_factory import create_provider, prepare_setup
from tests.wires.server import Reply, WireServer, accumulated, events_of, json_reply
from tests.wires.table import HELLO, WIRES, every_wire

KEY = "zq/odd+key-9f8e7d6c5b4a"
"""Looks like no provider's key, so nothing but itself gives it away."""
FORMS = (KEY, quote(KEY, safe=""), KEY.replace("/", r"\/"), "9f8e7d6c5b4a")


def provider(wire, url):
    return create_provider(replace(load_presets({})[wire.preset], base_url=url), {}, lambda *_: KEY)


def malformed(wire):
    """Return an answer whose words are an object that holds the key."""
    said = json.dumps(wire.say("words"))
    return wire.write(*wire.begin, *json.loads(said.replace('"words"', json.dumps({"k": KEY}))))


ECHOES = {
    "message": lambda wire: json_reply(401, wire.refuse(f"bad key {KEY}")),
    "code": lambda _: json_reply(400, {"error": {"code": KEY, "message": KEY, "type": KEY}}),
    "address": lambda _: Reply(f"no such page: /v1?key={quote(KEY, safe='')}".encode(), 404),
    "JSON in JSON": lambda wire: json_reply(400, wire.refuse(f'{{"k": "{FORMS[2]}"}}')),
    "page": lambda _: Reply(f"<html>{KEY}</html>".encode(), 502, content_type="text/html"),
    "no stream": lambda _: Reply(f"hello {KEY}".encode()),
    "long": lambda wire: json_reply(429, wire.refuse("x" * 490 + KEY)),
    "in the stream": lambda wire: Reply(
        wire.write(*wire.begin, {"type": "error", **wire.refuse(KEY)})
    ),
    "malformed event": lambda wire: Reply(malformed(wire)),
    "no JSON": lambda _: Reply(f"data: {{{KEY}\n\n".encode()),
}


def shown(error):
    """Return all that anybody may print of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


@every_wire
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
async def test_a_key_that_a_host_sends_back_is_cut_out_of_error_and_traceback(wire, echo):
    async with WireServer(echo(wire)) as server:
        events = await events_of(provider(wire, server.url), HELLO)
        (seen,) = server.requests
    with pytest.raises(errors.ModelError) as failed:
        accumulated(events)
    found = shown(failed.value)
    assert not [form for form in FORMS if form in found], found
    assert KEY not in seen.path
    assert quote(KEY, safe="") not in seen.path


@every_wire
async def test_no_repr_of_what_holds_a_key_shows_it(wire):
    preset = replace(load_presets({})[wire.preset], base_url="http://127.0.0.1:1")
    ready = prepare_setup(preset, {}, lambda *_: KEY)
    made = create_provider(preset, {}, lambda *_: KEY)
    client = Client({"one": made})
    inside = [*vars(made).values()]
    assert KEY not in repr([ready, made, client, made._connection._route, *inside])


@pytest.mark.parametrize(
    "url", [f"http://user:{quote(KEY, safe='')}@host", f"http://host/v1?key={KEY}", "http://h/#x"]
)
def test_an_address_with_a_secret_in_it_is_refused_without_being_shown(url):
    """Addresses are shown in errors and kept on tapes."""
    with pytest.raises(
        errors.ConfigurationError, match="GEMINI_BASE_URL contains more than"
    ) as found:
        create_provider(load_presets({})["google"], {"GEMINI_BASE_URL": url}, lambda *_: KEY)
    assert not [form for form in FORMS if form in shown(found.value)]


def test_a_key_in_the_place_of_an_address_is_not_shown():
    number = f"{123456789:012}"
    with pytest.raises(errors.ConfigurationError) as found:
        create_provider(
            load_presets({})["openai"], {"OPENAI_BASE_URL": f"sk-{number}"}, lambda *_: KEY
        )
    assert number not in shown(found.value)


async def test_a_run_that_fails_leaves_the_key_nowhere(tmp_path):
    """With --debug as well: not on the screen, on no tape, in no file."""
    (wire,) = (one for one in WIRES if one.preset == "openai-chat")
    environ = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        **{name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")},
        "OPENAI_API_KEY": KEY,
    }
    async with WireServer(json_reply(401, wire.refuse(f"bad key {KEY}"))) as server:
        run = await asyncio.create_subprocess_exec(
            *(
                Path(sys.executable).with_name("gong"),
                "--debug",
                "-m",
                "openai-chat/x",
                "-p",
                "hello",
            ),
            cwd=tmp_path,
            env={**environ, "OPENAI_CHAT_BASE_URL": server.url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await run.communicate()
        assert len(server.requests) == 1, out
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert run.returncode == errors.AuthenticationError.exit_code, out
    assert b"bad key" in out
    assert any(b"bad key" in data for data in files)
    assert not [data for data in (out, *files) for form in FORMS if form.encode() in data]
