import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.accumulate import StreamAccumulator
from gong.llm.partial_json import accumulate_json, parse_partial_arguments, parse_partial_json
from gong.llm.types import TextStart, ToolCallDelta, ToolCallStart

CORPUS = Path(__file__).parents[4] / "shared/corpus/partial_json"

DIALECTS = {"any", "keep_partial_strings"}
INVENTED = re.compile(r"[\[:,]\s*(?:t|tr|tru|f|fa|fal|fals|n|nu|nul)$")
"""Ends in a half literal, which other suites complete and we leave out."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "state", "value"),
    [
        ('{"a": 1}', "ok", {"a": 1}),  # PJSON-001
        ('{"file": "/src/ma', "partial", {"file": "/src/ma"}),  # PJSON-002
        ('{"a": 1, "b": 2', "partial", {"a": 1, "b": 2}),  # PJSON-003
        ('{"a": {"b": 1', "partial", {"a": {"b": 1}}),  # PJSON-004
        ('{"items": [1, 2, 3', "partial", {"items": [1, 2, 3]}),  # PJSON-005
        ("", "ok", {}),  # PJSON-006
        (" \n", "ok", {}),
        ('{"a": 1,', "partial", {"a": 1}),  # PJSON-008
        ('{"a": 1, "b', "partial", {"a": 1}),
        ('{"a": 1, "b":', "partial", {"a": 1}),
        ('{"a": tr', "partial", {}),
        ('{"a": "\\', "partial", {"a": ""}),
        ('{"a": "\\ud83d', "partial", {"a": ""}),
        ("nonsense", "error", {}),
        ('{"a": 1}}', "partial", {"a": 1}),
        ('{"a" 1}', "error", {}),
        ("[" * 100_000, "error", {}),
    ],
)
def test_what_of_a_text_is_already_there(text, state, value):
    """M055, M056: complete, open string, object, nested, array, empty, trailing comma."""
    assert parse_partial_json(text) == (state, value)


def test_three_chunks_grow_into_the_whole():
    """M055, M056 PJSON-007."""
    buffer, seen = "", []
    for chunk in ('{"path": "a.p', 'y", "lines": [1,', " 2]}"):
        buffer, value = accumulate_json(buffer, chunk)
        seen.append(value)
    assert seen == [
        {"path": "a.p"},
        {"path": "a.py", "lines": [1]},
        {"path": "a.py", "lines": [1, 2]},
    ]
    assert json.loads(buffer) == seen[-1]


def test_pjson_001_whole_json_is_read_as_it_is():
    assert parse_partial_json('{"a":1}') == ("ok", {"a": 1})


def test_pjson_002_an_open_string_is_closed():
    assert parse_partial_json('{"file":"/src/ma').value == {"file": "/src/ma"}


def test_pjson_003_an_open_object_is_closed():
    assert parse_partial_json('{"a":1,"b":2').value == {"a": 1, "b": 2}


def test_pjson_004_objects_in_each_other_are_closed():
    assert parse_partial_json('{"a":{"b":1').value == {"a": {"b": 1}}


def test_pjson_005_an_open_array_is_closed():
    assert parse_partial_json('{"items":[1,2,3').value == {"items": [1, 2, 3]}


def test_pjson_006_no_text_is_an_empty_object():
    assert parse_partial_json("") == ("ok", {})


def test_pjson_007_three_pieces_are_put_together():
    buffer, value = "", {}
    for piece in ('{"a":1,', '"b":[2,', "3]}"):
        buffer, value = accumulate_json(buffer, piece)
    assert (buffer, value) == ('{"a":1,"b":[2,3]}', {"a": 1, "b": [2, 3]})


def test_pjson_008_a_comma_at_the_end_is_dropped():
    assert parse_partial_json('{"a":1,').value == {"a": 1}


def test_arguments_are_always_an_object():
    assert [parse_partial_arguments(text) for text in ("[1, 2", '"a', "12", "null")] == [
        {},
        {},
        {},
        {},
    ]


def test_an_answer_on_its_way_tells_the_arguments_so_far():
    """M055: argument deltas carry the part read so far."""
    answer = StreamAccumulator("c_00000000")
    answer.process(TextStart(0))
    answer.process(ToolCallStart(1, "write", "p"))
    assert answer.arguments(1) == {}
    answer.process(ToolCallDelta(1, '{"content": "first li'))
    assert answer.arguments(1) == {"content": "first li"}
    assert answer.arguments(0) == answer.arguments(7) == {}


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4), st.booleans())
def test_no_prefix_raises_and_what_is_there_only_grows(value, ascii_only):
    """M055."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    for end in range(1, len(text)):
        found = parse_partial_json(text[:end])
        assert found.state == "partial"
        assert found.value.keys() <= value.keys()
    assert parse_partial_json(text) == ("ok", value)


@given(st.text())
def test_no_text_at_all_raises(text):
    assert parse_partial_json(text).state in {"ok", "partial", "error"}


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus here")
def test_prefixes_on_which_three_parsers_agree():
    """M056."""
    documents = json.loads((CORPUS / "prefix_docs.json").read_text("utf-8"))["docs"]
    wrong = []
    for line in (CORPUS / "prefixes.jsonl").read_text("utf-8").split("\n"):
        case = json.loads(line) if line else {}
        if case.get("all_agree"):
            text = documents[case["doc"]][: case["prefix_len"]]
            wanted = {} if case.get("no_value") else case["value"]
            if parse_partial_json(text).value != wanted:
                wrong.append(
                    (case["doc"], case["prefix_len"], parse_partial_json(text).value, wanted)
                )
    assert wrong == []


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus here")
def test_cases_of_other_suites():
    """M056: of containers; a half literal or number on its own has no value yet."""
    wrong = []
    for line in (CORPUS / "cases.jsonl").read_text("utf-8").split("\n"):
        case = json.loads(line) if line else {"dialect": ""}
        if case["dialect"] not in DIALECTS or INVENTED.search(case["input"]):
            continue
        if case["input"].lstrip()[:1] in {"{", "["}:
            found = parse_partial_json(case["input"])
            if found.value != case["expect"].get("value", {}):
                wrong.append((case["id"], case["input"], found, case["expect"]["value"]))
    assert wrong == []
