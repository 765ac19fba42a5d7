"""What stops an answer on its way: time as a whole, time of a step, and the caller's signal."""

import asyncio
from contextlib import aclosing

import pytest

from gong.errors import ModelError, RequestTimeout
from gong.llm import Aborted, Client, StepFinish, Tool, generate, stream_text
from gong.llm.types import TextDelta
from tape.model.entries import Text
from tests.wires.server import Reply, WireServer
from tests.wires.table import every_wire

NOTHING = {"type": "object"}


def client_of(wire, server):
    return Client.from_env({f"{wire.preset.upper().replace('-', '_')}_BASE_URL": server.url})


def half(wire):
    """Return an answer that says a word and then nothing more."""
    return Reply(wire.write(*wire.begin, *wire.say("Hel")[:2]), stall=True)


@every_wire
async def test_an_abort_closes_the_connection_and_keeps_the_text(wire):
    """M152: AbortError semantics."""
    abort = asyncio.Event()
    async with WireServer(half(wire)) as server, client_of(wire, server) as client:
        stream = stream_text(f"{wire.preset}/m", prompt="x", client=client, abort_signal=abort)

        async def read():
            async for event in stream:
                if isinstance(event, TextDelta):
                    asyncio.get_running_loop().call_later(0.01, abort.set)

        with pytest.raises(Aborted, match=f"the answer of {wire.preset}/m was stopped") as caught:
            await read()
        await asyncio.wait_for(server.hung_up.wait(), 120)
    assert isinstance(caught.value, ModelError)
    assert not caught.value.retryable
    assert stream.partial == (Text("Hel"),)


async def test_a_signal_that_is_set_before_sends_no_request():
    abort = asyncio.Event()
    abort.set()
    with pytest.raises(Aborted):
        await generate("offline/rules", prompt="hi", client=Client.from_env({}), abort_signal=abort)


@every_wire
async def test_a_step_that_takes_too_long_closes_its_connection(wire):
    """M152: a limit for each step beside the one for all."""
    how = {"model": f"{wire.preset}/m", "prompt": "x"}
    replies = (Reply(wire.said("x")), half(wire))
    async with WireServer(*replies) as server, client_of(wire, server) as client:
        await generate(client=client, **how)  # by now everything is loaded
        with pytest.raises(RequestTimeout, match=r"/m was not done with a step within 1 s"):
            await generate(client=client, step_timeout=1, **how)
        await asyncio.wait_for(server.hung_up.wait(), 120)
        assert len(server.requests) == 2


class Slow:
    """Another model, which begins each answer after `wait` seconds."""

    name = api = endpoint = "slow"

    def __init__(self, wait, model="offline/rules"):
        self.wait = wait
        self.inner, _ = Client.from_env({}).resolve(model)

    async def stream(self, request):
        await asyncio.sleep(self.wait)
        async with aclosing(self.inner.stream(request)) as events:
            async for event in events:
                yield event

    async def close(self):
        pass


async def test_each_step_has_its_own_time(tmp_path):
    """Two steps that together take longer than one may."""
    path = tmp_path / "s.json"
    path.write_text('[{"tool_calls":[{"name":"ls","args":{}}]},{"text":"x"}]')
    how = {"prompt": "x", "tools": [Tool("ls", "List.", NOTHING, lambda _: "a.py")]}
    client = Client({"slow": Slow(1.5, f"scripted/{path}")})
    stream = stream_text("slow/m", step_timeout=2.8, client=client, **how)
    steps = [event async for event in stream if isinstance(event, StepFinish)]
    assert [step.step.text for step in steps] == ["", "x"]
    client = Client({"slow": Slow(1.5, f"scripted/{path}")})
    with pytest.raises(RequestTimeout, match=r"slow/m was not done within 2 s"):
        await generate("slow/m", timeout=2, step_timeout=50, client=client, **how)


async def test_the_readers_own_time_does_not_count_until_more_is_asked_for():
    """What is there already is read; only waiting is cut off."""
    client = Client({"slow": Slow(0)})
    stream = stream_text("slow/m", prompt="hi", client=client, timeout=0.05)

    async def read():
        async for _ in stream:
            await asyncio.sleep(0.1)

    with pytest.raises(RequestTimeout):
        await read()


async def test_a_tool_is_stopped_with_its_step_and_may_ask_for_the_signal(tmp_path):
    stopped, seen = [], []

    async def forever(_, abort_signal, tool_call_id):
        seen.append((abort_signal, tool_call_id[:2]))
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(True)

    path = tmp_path / "s.json"
    path.write_text('[{"tool_calls":[{"name":"wait","args":{}}]},{"text":"x"}]')
    abort = asyncio.Event()
    asked = generate(
        f"scripted/{path}",
        prompt="x",
        client=Client.from_env({}),
        tools=[Tool("wait", "Wait.", NOTHING, forever)],
        step_timeout=1,
        abort_signal=abort,
    )
    with pytest.raises(RequestTimeout, match="with a step"):
        await asyncio.wait_for(asked, 120)
    assert (stopped, seen) == ([True], [(abort, "c_")])


async def test_cancelling_is_no_limit_of_ours():
    """A cancelled reader sees its own cancelling, whatever limits there are."""
    client = Client({"slow": Slow(60)})
    asked = generate("slow/m", prompt="x", client=client, timeout=50, step_timeout=50)
    task = asyncio.ensure_future(asked)
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
