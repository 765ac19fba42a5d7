"""Whatever a host sends, a decoder answers with events or one error of ours (M149)."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gong.errors import ModelError
from gong.llm.accumulate import StreamAccumulator
from gong.llm.types import Finish, StreamFailure
from tests.tape.making import BUDGET
from tests.wires.decoders import FAILURES, PRESET, WIRES, places, put

SEARCH = settings(
    max_examples=150 * BUDGET, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
STRANGE = st.sampled_from(
    [
        *(None, "", "x", 0, 1, 2, 7, -1, 1.5, True, [], {}, [None], {"a": None}, "\ud83d"),
        *("message", "reasoning", "function_call", "custom_tool_call", "web_search_call"),
        *("content_block_start", "input_json_delta", "STOP", "text", "tool_use"),
        *("response.output_text.delta", "response.output_item.done", "tool_calls", "error"),
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
@SEARCH
@given(st.data())
def test_nothing_but_events_and_errors_of_ours_comes_out(wire, data):
    new_decoder, whole = WIRES[wire]
    order = st.permutations(whole) if data.draw(st.booleans()) else st.just(whole)
    events = copy.deepcopy(data.draw(order))
    paths = [*places(events)]
    for path in data.draw(st.lists(st.sampled_from(paths), max_size=3)):
        try:
            put(events, path, copy.deepcopy(data.draw(STRANGE)))
        except (LookupError, TypeError):
            continue  # the place is gone by now
    decoder, answer = new_decoder(FAILURES, PRESET), StreamAccumulator("c_00000000")
    last = None
    try:
        for event in events:
            for last in decoder.feed(json.dumps(event).encode()):
                answer.process(last)
        ends = (
            decoder.finish()
            if decoder.finished
            else decoder.finish_with_error(FAILURES.build_stopped_error())
        )
    except ModelError as error:
        ends = decoder.finish_with_error(error)
    for last in ends:
        answer.process(last)
    assert isinstance(last, Finish | StreamFailure)
    answer.partial()
