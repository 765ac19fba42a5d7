"""What a provider's own tools did, and which service it gave, in the usage of every wire."""

import json

import pytest

from gong.llm.types import Finish
from tests.wires.decoders import FAILURES, PRESET, WIRES


def read_usage(wire, events):
    decoder = WIRES[wire][0](FAILURES, PRESET)
    made = [event for data in events for event in decoder.feed(json.dumps(data).encode())]
    made += decoder.finish()
    return next(event.usage for event in made if isinstance(event, Finish))


def anthropic_events(start, end):
    message = {"id": "1", "model": "m", "content": [], "usage": {"input_tokens": 5, **start}}
    return [
        {"type": "message_start", "message": message},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end},
        {"type": "message_stop"},
    ]


def responses_events(*items, **fields):
    return [{"type": "response.completed", "response": {"id": "1", "output": items, **fields}}]


def search(**fields):
    return {"type": "web_search_call", "id": str(len(fields)), "status": "completed", **fields}


WEB_SEARCH = search(action={"type": "search"})
FILE_SEARCH = {"type": "file_search_call", "id": "f"}
SEARCHED = {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1}}


@pytest.mark.parametrize(
    ("wire", "events", "tools", "service"),
    [
        ("anthropic", anthropic_events({}, SEARCHED), {"web_search": 2, "web_fetch": 1}, None),
        ("anthropic", anthropic_events(SEARCHED, {"output_tokens": 1}),
         {"web_search": 2, "web_fetch": 1}, None),
        ("anthropic", anthropic_events({"service_tier": "standard"}, {}), None, None),
        ("anthropic", anthropic_events({"service_tier": "priority"}, {}), None, "priority"),
        ("anthropic", anthropic_events({"speed": "fast", "service_tier": "standard"}, {}), None,
         "fast"),
        ("anthropic", anthropic_events({"server_tool_use": {"web_search_requests": "many"}}, {}),
         None, None),
        ("responses", responses_events(search(), WEB_SEARCH, service_tier="flex"),
         {"web_search": 2}, "flex"),
        ("responses", responses_events(search(action={"type": "open_page"})), None, None),
        ("responses", responses_events(FILE_SEARCH, service_tier="default"),
         {"file_search": 1}, None),
        ("chat", [{"id": "1", "service_tier": "priority",
                   "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}],
         None, "priority"),
        ("chat", [{"id": "1", "service_tier": "<script>",
                   "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}], None, None),
        ("google", [{"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP",
                                     "groundingMetadata": {"webSearchQueries": ["a", "b"]}}]}],
         {"web_search": 2}, None),
    ],
)  # fmt: skip
def test_searches_and_the_service_are_in_the_usage(wire, events, tools, service):
    usage = read_usage(wire, events)
    assert (usage.server_tools, usage.service) == (tools, service)
