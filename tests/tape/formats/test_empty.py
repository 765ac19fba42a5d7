"""Messages that say nothing: an import keeps each of them, and the same API gets them back."""

import pytest

from tape.context.view import Target
from tape.formats.registry import FORMATS
from tape.model.entries import Assistant, Context, Custom, User
from tests.tape.formats.histories import emitted, put, repaired
from tests.tape.formats.judge import faults

USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "yo"}
TURN = {"role": "user", "parts": [{"text": "hi"}]}
SPOKEN = {"role": "model", "parts": [{"text": "yo"}]}


def through(name, array, to=None):
    messages = repaired(FORMATS[name].parse(array, put), Target("", FORMATS[to or name].api, ""))
    return emitted(to or name, messages)


def placed(one, user, answer):
    """Return arrays with a message at the beginning, between others, and at the end."""
    return [
        [one, user, answer],
        [user, one, answer],
        [user, answer, one, user],
        [user, answer, one],
    ]


ROLES = ("assistant", "user", "system", "developer")
CASES = [
    *(
        (name, array)
        for name, texts in (
            ("openai-chat", ["", " ", "\n", [{"type": "text", "text": ""}]]),
            ("openai-responses", ["", " ", [], [{"type": "input_text", "text": ""}]]),
        )
        for content in texts
        for role in ROLES
        for array in placed({"role": role, "content": content}, USER, ANSWER)
        if not (name == "openai-chat" and content == [])
    ),
    *(
        ("openai-responses", array)
        for content in ([], [{"type": "output_text", "text": "", "annotations": []}])
        for array in placed(
            {
                "type": "message",
                "role": "assistant",
                "content": content,
                "id": "msg_1",
                "status": "completed",
            },
            USER,
            ANSWER,
        )
    ),
    *(
        ("gemini", array)
        for role in ("user", "model")
        for text in ("", " ")
        for array in placed({"role": role, "parts": [{"text": text}]}, TURN, SPOKEN)
        if array[0]["role"] == "user"
    ),
]


@pytest.mark.parametrize(("name", "array"), CASES, ids=repr)
def test_what_says_nothing_comes_out_as_it_came(name, array):
    """Where the API takes it."""
    assert faults(name, array) == []
    assert through(name, array) == array


@pytest.mark.parametrize(("name", "array"), CASES, ids=repr)
def test_another_api_gets_what_says_something(name, array):
    for to in FORMATS:
        if to != name:
            sent = through(name, array, to)
            assert FORMATS[to].check(sent) == []
            assert "$message" not in str(sent)


@pytest.mark.parametrize("content", ["", None, [], " "])
@pytest.mark.parametrize("name", FORMATS)
def test_every_message_is_an_entry(name, content):
    form = FORMATS[name]
    array = [
        {"role": role, "parts" if name == "gemini" else "content": content}
        for role in ("user", "model" if name == "gemini" else "assistant", "system")
    ]
    found = [type(one) for one in form.parse(array, put)]
    assert len(found) == len(array)
    assert set(found) <= {User, Assistant, Context, Custom}


STRANGE = [None, 1, "x", True, {}, [], [1], [None], [[]], [{}], {"type": 1}]


@pytest.mark.parametrize("value", STRANGE, ids=repr)
@pytest.mark.parametrize("field", ["summary", "content", "id", "type", "encrypted_content"])
def test_a_reasoning_item_of_wrong_types_is_kept(field, value):
    item = {"type": "reasoning", "id": "rs_1", "summary": [], field: value}
    found = FORMATS["openai-responses"].parse([USER, item], put)
    assert len(found) == 2
