import json

import pytest
from msgspec import Raw

from gong.llm.accumulate import StreamAccumulator
from gong.llm.offline.provider import HELP, OfflineProvider
from gong.llm.types import Request, TextDelta, ToolCallDelta, ToolChoice, ToolSpec
from tape.context.view import Message
from tape.model.entries import Text, Thinking, Usage

ALL = ("read", "ls", "bash", "write", "edit")


def user(text):
    return Message("user", (Text(text),))


def request(*messages, tools=ALL, choice=ToolChoice()):
    specs = tuple(ToolSpec(name, "", Raw(b"{}")) for name in tools)
    return Request(model="rules", messages=messages, tools=specs, tool_choice=choice)


async def answer_to(asked):
    answer = StreamAccumulator("c_00000000")
    async for event in OfflineProvider().stream(asked):
        answer.process(event)
    return answer.response()


async def conversation(prompt, *results, tools=ALL):
    """Play a turn: each result, text or (text, True) for an error, answers the next call."""
    messages, calls, waiting = [user(prompt)], [], list(results)
    while True:
        answer = await answer_to(request(*messages, tools=tools))
        if not answer.tool_calls:
            assert not waiting
            return calls, answer.text
        (call,) = answer.tool_calls
        calls.append((call.name, json.loads(bytes(call.args))))
        text, is_error = waiting[0] if isinstance(waiting[0], tuple) else (waiting[0], False)
        waiting.pop(0)
        messages += [
            Message("assistant", answer.content),
            Message("tool", (Text(text),), call.id, call.name, is_error),
        ]


async def test_each_step_is_one_call_and_the_end_says_what_came_back():
    calls, said = await conversation(
        "read README.md then run wc -l README.md",
        "# Gong\n\nAn agent.\n",
        "3 README.md\n",
    )
    assert calls == [
        ("read", {"path": "README.md"}),
        ("bash", {"command": "wc -l README.md"}),
    ]
    assert said == (
        "README.md has 3 lines; it begins: # Gong\n`wc -l README.md` printed: 3 README.md"
    )


@pytest.mark.parametrize(
    ("prompt", "result", "call", "said"),
    [
        ("read a", "", ("read", {"path": "a"}), "a is empty."),
        ("read a", "(x)", ("read", {"path": "a"}), "a has 1 line; it begins: (x)"),
        (
            "list a",
            "b\n\n[1 entries limit reached, 9 more entries. Use limit=10 to see all.]",
            ("ls", {"path": "a"}),
            "a holds 10 entries: b and 9 more.",
        ),
        (
            "read a",
            "x\n\n[section]\n",
            ("read", {"path": "a"}),
            "a has 3 lines; it begins: x",
        ),
        ("list a", "(empty directory)", ("ls", {"path": "a"}), "a is empty."),
        (
            "read a",
            "x\n\n[Showing lines 1-1 of 5000. Use offset=2 to continue.]",
            ("read", {"path": "a"}),
            "a has 5000 lines; it begins: x",
        ),
        ("list", "b\na/\n", ("ls", {"path": "."}), "This folder holds 2 entries: b, a/."),
        (
            "list src",
            "\n".join("abcdefghij"),
            ("ls", {"path": "src"}),
            "src holds 10 entries: a, b, c, d, e, f, g, h and 2 more.",
        ),
        (
            "search for it's in src",
            "src/a:1:it's\nsrc/b:2:it's",
            ("bash", {"command": "grep -rnI -- 'it'\"'\"'s' src"}),
            "“it's” was found in 2 lines; the first: src/a:1:it's",
        ),
        (
            "search x",
            ("Command exited with code 1", True),
            ("bash", {"command": "grep -rnI -- x ."}),
            "“x” was not found in this folder.",
        ),
        (
            "search x in nowhere",
            ("grep: nowhere: No such file\n\nCommand exited with code 2", True),
            ("bash", {"command": "grep -rnI -- x nowhere"}),
            "bash failed: grep: nowhere: No such file Command exited with code 2",
        ),
        ("run true", "(no output)", ("bash", {"command": "true"}), "`true` printed nothing."),
        (
            "$ ls",
            "a\nb\nc",
            ("bash", {"command": "ls"}),
            "`ls` printed 3 lines; the first: a; the last: c",
        ),
        (
            "write a with hi",
            "Wrote 2 bytes",
            ("write", {"path": "a", "content": "hi"}),
            "a is written.",
        ),
        (
            "replace x with y in a",
            "ok",
            ("edit", {"path": "a", "oldText": "x", "newText": "y"}),
            "a is changed: “x” is now “y”.",
        ),
        (
            "read a",
            ("no such file: a", True),
            ("read", {"path": "a"}),
            "read failed: no such file: a",
        ),
    ],
)
async def test_a_step_calls_its_tool_and_is_described_in_a_sentence(prompt, result, call, said):
    assert await conversation(prompt, result) == ([call], said)


async def test_search_uses_the_grep_tool_where_there_is_one():
    calls, _ = await conversation("search x in src", "src/a:1:x", tools=(*ALL, "grep"))
    assert calls == [("grep", {"pattern": "x", "path": "src"})]


async def test_a_failed_step_does_not_stop_the_next():
    calls, said = await conversation("read a then list", ("gone", True), "b")
    assert [name for name, _ in calls] == ["read", "ls"]
    assert said == "read failed: gone\nThis folder holds 1 entry: b."


async def test_a_step_without_its_tool_is_reported_and_skipped():
    calls, said = await conversation("run ls then read a", "x", tools=("read",))
    assert [name for name, _ in calls] == ["read"]
    assert said == (
        "I could not call bash (ls): there is no such tool here.\na has 1 line; it begins: x"
    )


async def test_no_tool_is_called_where_none_may_be():
    answer = await answer_to(request(user("list"), choice=ToolChoice("none")))
    assert answer.tool_calls == ()
    assert "there is no such tool here" in answer.text


async def test_what_it_does_not_understand_gets_its_own_sentence_or_all_of_the_help():
    assert await conversation("tell me a joke") == ([], HELP)
    _, said = await conversation("tell me a joke\nread a", "x")
    assert said == "I did not understand “tell me a joke”.\na has 1 line; it begins: x"
    assert "ANTHROPIC_API_KEY" in HELP
    assert "gong chat -m anthropic/claude-sonnet-5-5" in HELP


async def test_thinking_streams_before_the_next_call():
    answer = await answer_to(request(user("think about bells then read a")))
    thought, call = answer.content
    assert isinstance(thought, Thinking)
    assert "bells" in thought.text
    assert (call.name, answer.stop_reason) == ("read", "tool_calls")


async def test_newer_words_are_the_new_request():
    answer = await answer_to(
        request(
            user("read a then read b"),
            Message("tool", (Text("x"),), "c_1", "read"),
            user("list src"),
        )
    )
    (call,) = answer.tool_calls
    assert (call.name, json.loads(bytes(call.args))) == ("ls", {"path": "src"})


async def test_it_streams_in_small_pieces_and_counts_words_alike_each_time():
    asked = request(user("list src/some/deep/folder/somewhere"))
    once = [event async for event in OfflineProvider().stream(asked)]
    again = [event async for event in OfflineProvider().stream(asked)]
    assert once == again
    assert max(len(e.delta) for e in once if isinstance(e, ToolCallDelta)) <= 16
    assert once[-1].usage == Usage(2, 1, total=3)
    helped = [event async for event in OfflineProvider().stream(request(user("?")))]
    assert sum(isinstance(event, TextDelta) for event in helped) > 20


@pytest.mark.parametrize("messages", [(), (Message("assistant", (Text("x"),)),), (user("  "),)])
async def test_no_request_at_all_gets_the_help(messages):
    assert (await answer_to(request(*messages))).text == HELP
