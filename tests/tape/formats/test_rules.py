"""What each provider refuses, and the same made right."""

import pytest

from tape.formats.anthropic import rules as anthropic
from tape.formats.encoder import MISTRAL_IDS
from tape.formats.gemini import rules as gemini
from tape.formats.openai_chat import rules as openai_chat
from tape.formats.openai_responses import rules as openai_responses


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


TEXT = {"type": "text", "text": "go"}
USE = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "A"}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}
MARKED = {**TEXT, "cache_control": {"type": "ephemeral"}}


def use(**fields):
    return {**USE, **fields}


@pytest.mark.parametrize(
    ("array", "why"),
    [
        ([assistant(TEXT)], "messages[0]: the first message must be the user's"),
        ([3], "messages[0]: not an object"),
        ([user(TEXT), {"role": "tool", "content": "x"}], "messages[1]: role tool is none of user"),
        ([user()], "messages[0]: content must be a string or a list, and not empty"),
        ([user({**TEXT, "text": " "})], "messages[0].content[0]: text must not be empty"),
        (
            [user(TEXT), assistant({**TEXT, "text": "a "})],
            "messages[1]: the last answer cannot end with white space",
        ),
        ([user(TEXT), assistant(USE)], "messages[1]: tool_use a has no tool_result in the next"),
        (
            [user(TEXT), assistant(USE), user(TEXT), user(RESULT)],
            "messages[3]: a answers no call",
        ),
        (
            [user(TEXT), assistant(USE), user(TEXT, RESULT)],
            "messages[2]: tool_result blocks must stand first",
        ),
        (
            [user(TEXT), assistant(USE), user(RESULT, RESULT)],
            "messages[2]: a is answered twice",
        ),
        (
            [user(TEXT), assistant(USE), user(RESULT), assistant(USE), user(RESULT)],
            "messages[3]: tool_use id a stands twice",
        ),
        ([user(TEXT), assistant(use(id="a|b"))], "messages[1].content[0]: tool_use id 'a|b' must"),
        ([user(TEXT), assistant(use(id="a" * 65))], "messages[1].content[0]: tool_use id 'aaa"),
        ([user(TEXT), assistant(use(input="{}"))], "messages[1].content[0]: input must be an"),
        ([user(TEXT), assistant(use(name=""))], "messages[1].content[0]: '' is no tool's name"),
        (
            [user(TEXT), assistant({"type": "thinking", "thinking": "hm"}, TEXT)],
            "messages[1].content[0]: thinking without its signature",
        ),
        (
            [user(TEXT), assistant(TEXT, SIGNED)],
            "messages[1]: the last block of an assistant message cannot be thinking",
        ),
        ([user(*[MARKED] * 5)], "messages: 5 cache_control marks, at most 4 are allowed"),
        (
            [user({"type": "image", "source": {"data": "aGk=", "media_type": "image/bmp"}})],
            "messages[0].content[0]: image/bmp is no picture the API takes",
        ),
    ],
)
def test_the_messages_api_refuses(array, why):
    found = [str(violation) for violation in anthropic.check_array(array)]
    assert any(text.startswith(why) for text in found)


def test_the_messages_api_takes():
    array = [
        user(TEXT),
        assistant(SIGNED, TEXT, USE),
        user(RESULT, MARKED),
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "and?"},
        user(TEXT),
    ]
    assert anthropic.check_array(array) == []
    assert [str(one) for one in anthropic.check_array(array, strict=True)] == [
        "messages[5]: the same role twice in a row"
    ]


CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOOL = {"role": "tool", "tool_call_id": "a", "content": "A"}
SAID = {"role": "user", "content": "go"}


def asked(**fields):
    return {**ASKED, "tool_calls": [{**CALL, **fields}]}


@pytest.mark.parametrize(
    ("array", "why"),
    [
        ([SAID, ASKED], "messages[1]: call a has no tool message after it"),
        ([SAID, ASKED, SAID, TOOL], "messages[3]: tool message a answers no call before it"),
        ([SAID, ASKED, TOOL, TOOL], "messages[3]: tool message a answers no call before it"),
        ([SAID, TOOL], "messages[1]: tool message a answers no call before it"),
        ([{**ASKED, "tool_calls": [CALL, CALL]}], "messages[0]: call a stands twice"),
        ([{"role": "assistant", "content": None}], "messages[0]: an assistant message needs"),
        ([{**SAID, "content": None}], "messages[0]: content must be a string or a list"),
        ([{**ASKED, "tool_calls": []}], "messages[0]: tool_calls must not be empty"),
        ([asked(id="a" * 41)], "messages[0]: call id"),
        ([asked(id=None)], "messages[0]: call id '' must have 1 to 40 characters"),
        ([asked(function={"name": "read", "arguments": {}})], "messages[0]: the arguments of a"),
        ([{"role": "model", "content": "x"}], "messages[0]: unknown role model"),
        (
            [{"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]}],
            "messages[0].content[0]: a tool message takes text only",
        ),
    ],
)
def test_the_chat_api_refuses(array, why):
    assert any(str(violation).startswith(why) for violation in openai_chat.check_array(array))


def test_the_chat_api_takes():
    assert openai_chat.check_array([SAID, ASKED, TOOL, SAID], strict=True) == []
    (one,) = openai_chat.check_array([SAID, ASKED, TOOL], ids=MISTRAL_IDS)
    assert one.why == "call id 'a' must have 9 to 9 characters"


FUNCTION = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "A"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


@pytest.mark.parametrize(
    ("array", "why"),
    [
        ([SAID, FUNCTION], "input[1]: call a has no output"),
        ([SAID, OUTPUT], "input[1]: output a answers no call before it"),
        ([OUTPUT, FUNCTION], "input[0]: output a answers no call before it"),
        ([FUNCTION, OUTPUT, OUTPUT], "input[2]: call a is answered twice"),
        ([FUNCTION, OUTPUT, FUNCTION, OUTPUT], "input[2]: call_id a stands twice"),
        (
            [FUNCTION, {**OUTPUT, "type": "custom_tool_call_output"}],
            "input[1]: output a answers no call before it",
        ),
        ([SAID, REASONING], "input[1]: reasoning without the item it led to"),
        ([REASONING, SAID], "input[0]: reasoning without the item it led to"),
        ([{**FUNCTION, "id": "fc_"}, OUTPUT], "input[0]: id 'fc_' must have 1 to 64"),
        ([{**FUNCTION, "id": "f" * 65}, OUTPUT], "input[0]: id 'fff"),
        ([{**FUNCTION, "call_id": "f" * 65}], "input[0]: call_id 'fff"),
        ([user({"type": "output_text", "text": "x"})], "input[0].content[0]: a user message has"),
        ([assistant({"type": "input_text", "text": "x"})], "input[0].content[0]: a assistant"),
    ],
)
def test_the_responses_api_refuses(array, why):
    assert any(str(violation).startswith(why) for violation in openai_responses.check_array(array))


def test_the_responses_api_takes():
    array = [SAID, REASONING, FUNCTION, OUTPUT, {"role": "assistant", "content": "done"}]
    assert openai_responses.check_array(array, strict=True) == []
    late = [FUNCTION, SAID, OUTPUT]
    assert openai_responses.check_array(late) == []
    assert [str(one) for one in openai_responses.check_array(late, strict=True)] == [
        "input[1]: call a is not answered before this"
    ]


def turn(role, *parts):
    return {"role": role, "parts": list(parts)}


WORDS = {"text": "go"}
FUNCTION_CALL = {"functionCall": {"name": "read", "args": {}}}
RESPONSE = {"functionResponse": {"name": "read", "response": {"output": "A"}}}


@pytest.mark.parametrize(
    ("array", "why"),
    [
        ([turn("model", WORDS)], "contents[0]: the first turn must be the user's"),
        ([turn("user")], "contents[0]: parts must be a list of objects, and not empty"),
        (
            [turn("user", WORDS), turn("model", FUNCTION_CALL)],
            "contents[1]: 1 function calls, 0 function responses in the next turn",
        ),
        (
            [
                turn("user", WORDS),
                turn("model", FUNCTION_CALL, FUNCTION_CALL),
                turn("user", RESPONSE),
            ],
            "contents[1]: 2 function calls, 1 function responses in the next turn",
        ),
        (
            [turn("user", WORDS), turn("user", RESPONSE)],
            "contents[1]: a function response turn must come right after its calls",
        ),
        (
            [turn("user", WORDS), turn("model", WORDS), turn("model", FUNCTION_CALL)],
            "contents[2]: a function call turn must come right after a user turn",
        ),
        (
            [
                turn("user", WORDS),
                turn("model", FUNCTION_CALL),
                turn("user", {"functionResponse": {"name": "write", "response": {}}}),
            ],
            "contents[1]: function responses name other functions than the calls",
        ),
        (
            [turn("user", WORDS), turn("model", {**WORDS, "thoughtSignature": "no base64"})],
            "contents[1].parts[0]: thoughtSignature must be base64",
        ),
        ([turn("assistant", WORDS)], "contents[0]: role assistant is none of user, model"),
        ([turn("user", FUNCTION_CALL)], "contents[0].parts[0]: functionCall belongs to a model"),
    ],
)
def test_the_gemini_api_refuses(array, why):
    assert any(str(violation).startswith(why) for violation in gemini.check_array(array))


def test_the_gemini_api_takes():
    array = [
        turn("user", WORDS),
        turn("model", {**FUNCTION_CALL, "thoughtSignature": "c2ln"}, FUNCTION_CALL),
        turn("user", RESPONSE, RESPONSE),
        turn("user", WORDS),
    ]
    assert gemini.check_array(array, strict=True) == []
    assert gemini.check_array([turn("user", {"text": ""})]) == []  # recorded as accepted
    assert len(gemini.check_array([turn("user", {"text": ""})], strict=True)) == 1
    del array[1]["parts"][0]["thoughtSignature"]
    assert gemini.check_array(array) == []
    assert [str(one) for one in gemini.check_array(array, strict=True)] == [
        "contents[1]: the first function call has no thoughtSignature"
    ]
