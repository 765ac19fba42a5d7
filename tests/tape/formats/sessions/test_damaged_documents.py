"""Documents with values of any shape in any place: they are read, or what is odd is left out."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.formats.sessions.loading import detect_tool, load_reader
from tape.model.entries import BlobRef
from tape.model.line import encode_payload

CALL = {"type": "tool_call", "id": "t", "name": "ls", "arguments": {"path": "."}}
ATIF = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "go"}]},
        {"step_id": 2, "source": "system", "message": "so", "extra": {"anchor": "compaction"}},
        {
            "step_id": 3,
            "source": "agent",
            "timestamp": "2026-05-01T10:00:00Z",
            "message": "yes",
            "reasoning_content": "hm",
            "tool_calls": [{"tool_call_id": "t", "function_name": "ls", "arguments": {}}],
            "observation": {
                "results": [
                    {
                        "source_call_id": "t",
                        "content": "a.py",
                        "subagent_trajectory_ref": [{"trajectory_id": "b"}],
                        "extra": {"is_error": True},
                    }
                ]
            },
            "metrics": {"prompt_tokens": 3, "cached_tokens": 2, "cost_usd": 0.1},
            "extra": {"stop_reason": "stop"},
        },
    ],
    "subagent_trajectories": [{"trajectory_id": "b", "steps": [{"source": "user"}]}],
    "extra": {"cwd": "/src", "title": "T", "git_branch": "main"},
}
SIMPLE = {
    "id": "s",
    "cwd": "/src",
    "git_branch": "main",
    "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ls"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": []}]},
    ],
}


def attribute(key, **value):
    return {"key": key, "value": value}


def messages(*parts, role="user"):
    return json.dumps([{"role": role, "parts": parts}])


OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": [attribute("tape.title", stringValue="T")]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "startTimeUnixNano": "1795000000000000000",
                            "endTimeUnixNano": "1795000001000000000",
                            "status": {"code": 2, "message": "no"},
                            "attributes": [
                                attribute("gen_ai.operation.name", stringValue="chat"),
                                attribute("gen_ai.conversation.id", stringValue="s"),
                                attribute("gen_ai.usage.input_tokens", intValue="3"),
                                attribute(
                                    "gen_ai.response.finish_reasons",
                                    arrayValue={"values": [{"stringValue": "stop"}]},
                                ),
                                attribute(
                                    "gen_ai.input.messages",
                                    stringValue=messages({"type": "text", "content": "go"}),
                                ),
                                attribute(
                                    "gen_ai.output.messages",
                                    stringValue=messages(CALL, role="assistant"),
                                ),
                            ],
                        }
                    ]
                }
            ],
        }
    ]
}
OPENCODE = {
    "info": {"id": "ses_1", "directory": "/src", "time": {"created": 1795000000000}},
    "messages": [
        {"info": {"id": "msg_1", "role": "user"}, "parts": [{"type": "text", "text": "go"}]},
        {
            "info": {"id": "msg_2", "role": "assistant", "tokens": {"input": 3}, "finish": "stop"},
            "parts": [
                {"type": "reasoning", "text": "hm"},
                {
                    "type": "tool",
                    "callID": "t",
                    "tool": "bash",
                    "state": {"status": "completed", "input": {}, "output": "a.py"},
                },
            ],
        },
    ],
}
DOCUMENTS = {"atif": ATIF, "simple": SIMPLE, "otlp": OTLP, "opencode": OPENCODE}
QWEN = [
    {"uuid": "u1", "parentUuid": None, "sessionId": "s", "version": "1",
     "type": "user", "cwd": "/src", "message": {"role": "user", "parts": [{"text": "go"}]}},
    {"uuid": "u2", "parentUuid": "u1", "sessionId": "s", "version": "1", "type": "assistant",
     "message": {"role": "model", "parts": [{"functionCall": {"id": "t", "name": "ls"}}]},
     "usageMetadata": {"promptTokenCount": 3}, "timestamp": "2026-05-01T10:00:00Z"},
    {"uuid": "u3", "parentUuid": "u2", "sessionId": "s", "version": "1", "type": "system",
     "subtype": "chat_compression",
     "systemPayload": {"compressedHistory": [{"role": "user", "parts": [{"text": "so"}]}]}},
]  # fmt: skip
KIMI = [
    {"role": "_session", "id": "s", "work_dir": "/src", "title": "T"},
    {"role": "_system_prompt", "content": "x"},
    {"role": "_checkpoint", "id": 0},
    {"role": "user", "content": [{"type": "text", "text": "go"}]},
    {"role": "assistant", "content": [{"type": "think", "think": "hm", "encrypted": "e"}],
     "tool_calls": [{"id": "t", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "_system_prompt", "content": "x"},
    {"role": "user", "content": [
        {"type": "text", "text": "<system>Previous context has been compacted</system>"}]},
    {"role": "tool", "content": "a.py", "tool_call_id": "t"},
]  # fmt: skip
VIBE = [
    {"session_id": "s", "start_time": "2026-05-01", "environment": {"working_directory": "/src"},
     "git_branch": "main", "config": {"model_name": "m"}},
    {"role": "user", "content": "go", "message_id": "m",
     "images": [{"source": {"kind": "file", "path": "/x"}, "mime_type": "image/png"}]},
    {"role": "assistant", "content": "", "reasoning_content": "hm",
     "tool_calls": [{"id": "t", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "tool", "content": "a.py", "tool_call_id": "t", "tool_result": {"output": {}}},
]  # fmt: skip
LLM = [
    {"llm_session": "s", "name": "T", "model": "m"},
    {"llm_message": "a", "parent": None, "role": "user", "parts": [{"type": "text", "text": "go"}]},
    {"llm_message": "b", "parent": "a", "role": "assistant", "turn": {"input_tokens": 3},
     "parts": [{"type": "reasoning", "text": "hm"},
               {"type": "tool_call", "name": "ls", "arguments": {}, "tool_call_id": "t"},
               {"type": "attachment", "attachment": {"type": "image/png", "content": "AA=="}}]},
    {"llm_message": "c", "parent": "b", "role": "tool",
     "parts": [{"type": "tool_result", "name": "ls", "output": "a.py", "tool_call_id": "t"}]},
]  # fmt: skip
FILES = {"qwen": QWEN, "kimi": KIMI, "vibe": VIBE, "llm": LLM}
ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, 10**30, "", "x", "2026-13-45", [], {}, [None], [[]], {"a": 1}]
)


def list_places(value, place=()):
    yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from list_places(value[key], (*place, key))


def replace_at(value, place, odd):
    if not place:
        return odd
    copy = json.loads(json.dumps(value))
    holder = copy
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = odd
    return copy


def put(data):
    return BlobRef(sha256(data).hexdigest(), len(data))


def read_entries(tool, document):
    lines = document if isinstance(document, list) else [document]
    data = [json.dumps(one).encode() for one in lines]
    waiting, found = [load_reader(tool).read_session(lambda: data, "name")], []
    while waiting:
        session = waiting.pop()
        waiting += session.children
        found += [one for step in session.read_steps(put) for one in step.payloads]
    return [encode_payload(one) for one in found]


@pytest.mark.parametrize("tool", DOCUMENTS)
def test_a_document_is_recognized_and_read(tool):
    document = DOCUMENTS[tool]
    assert detect_tool(lambda: [json.dumps(document).encode()]) == tool
    assert detect_tool(lambda: json.dumps(document, indent=1).encode().split(b"\n")) == tool
    assert len(read_entries(tool, document)) > 1


@pytest.mark.parametrize("tool", FILES)
def test_a_file_of_lines_is_recognized_and_read(tool):
    lines = [json.dumps(one).encode() for one in FILES[tool]]
    assert detect_tool(lambda: lines) == tool
    assert len(read_entries(tool, FILES[tool])) > 1


@pytest.mark.parametrize("tool", [*DOCUMENTS, *FILES])
@given(st.data())
def test_an_odd_value_anywhere_is_no_crash(tool, data):
    document = (DOCUMENTS | FILES)[tool]
    for _ in range(data.draw(st.integers(1, 2))):
        places = [*list_places(document)]
        document = replace_at(document, data.draw(st.sampled_from(places)), data.draw(ODD))
    if isinstance(document, dict | list):
        read_entries(tool, document)
