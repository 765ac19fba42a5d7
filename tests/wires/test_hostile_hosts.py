"""What a broken or hostile host may send, on every wire: one error of ours or a good answer.

Each row runs on one wire, and with TEST_BUDGET above 1 on all four.
"""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from gong.errors import ModelError
from gong.llm.accumulate import StreamAccumulator
from gong.llm.models import Timeouts, load_presets
from gong.llm.provider_factory import create_provider
from gong.llm.types import Finish, Request, StreamFailure
from tape.context.view import Message
from tape.model.entries import Text
from tests.tape.making import crossed
from tests.wires.hostile import (
    KEY,
    ROWS,
)
from tests.wires.pieces import WIRES
from tests.wires.raw_server import RawServer
from tests.wires.server import events_of

HELLO = Request(model="m", messages=(Message("user", (Text("hello"),)),))


RUNS = [pytest.param(name, wire, id=f"{wire.preset}-{name}") for name, wire in crossed(ROWS, WIRES)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wire"), RUNS)
async def test_one_error_of_ours_or_a_good_answer_comes_out(wire, name):
    """M149, M150: in time, with counts a tape can hold, and without the key."""
    with RawServer(lambda: ROWS[name](wire)) as server:
        limits = Timeouts(first_byte=2, idle=2, quiet=4, whole=8)
        preset = replace(load_presets({})[wire.preset], base_url=server.url, timeouts=limits)
        async with asyncio.timeout(30):
            events = await events_of(create_provider(preset, {}, lambda *_: KEY), HELLO)
    answer = StreamAccumulator("c_00000000")
    for event in events:
        answer.process(event)
    last = events[-1]
    assert isinstance(last, Finish | StreamFailure)
    counts = (last.usage.input, last.usage.output, last.usage.total)
    assert all(0 <= count < 2**53 for count in counts), counts
    if isinstance(last, StreamFailure):
        assert isinstance(last.error, ModelError)
        assert type(last.error) is not ModelError
        assert KEY not in str(last.error)
        assert str(last.error).isprintable()
    answer.partial()
