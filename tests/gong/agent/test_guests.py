"""Tools, policies, providers and sources of other programs end their own call only."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from msgspec import Struct

from gong.agent import events
from gong.env.wrappers import EnvironmentWrapper
from gong.llm.types import Finish, TextDelta, TextEnd, TextStart
from gong.policy.decision import Verdict
from gong.tools.tool import AgentTool, ToolOutcome
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import Assistant, Image, Text, ToolResult, Usage, join_texts
from tests.gong.agent.conftest import call, seen


class Nothing(Struct, frozen=True):
    pass


class Odd(Struct, frozen=True):
    value: object = None


def raising(error):
    def body():
        raise error

    return body


def deep():
    return deep()


ANSWERS = {
    "a text": (lambda: "plain words", "plain words", False),
    "a text with half a pair": (lambda: "a\ud800b", "a\ufffdb", False),
    "a result with half a pair": (lambda: ToolOutcome.from_text("a\udc80"), "a\ufffd", False),
    "content that is text": (lambda: ToolOutcome("words"), "words", False),
    "None": (lambda: None, "Tool error (mine): it returned NoneType, not ToolOutcome", True),
    "bytes": (lambda: b"x", "Tool error (mine): it returned bytes, not ToolOutcome", True),
    "a number": (lambda: 7, "Tool error (mine): it returned int, not ToolOutcome", True),
    "odd content": (
        lambda: ToolOutcome(("x",)),
        "Tool error (mine): its content holds str, not blocks",
        True,
    ),
    "no content": (
        lambda: ToolOutcome(None),
        "Tool error (mine): its content is NoneType, not blocks",
        True,
    ),
    "odd details": (
        lambda: ToolOutcome((Text("x"),), Odd(object())),
        "Tool error (mine): its details cannot be written as JSON",
        True,
    ),
    "odd output": (
        lambda: ToolOutcome((Text("x"),), full=7),
        "Tool error (mine): its full output is int, not text",
        True,
    ),
    "sys.exit": (lambda: sys.exit(3), "Tool error (mine): 3", True),
    "SystemExit": (raising(SystemExit()), "Tool error (mine): SystemExit", True),
    "GeneratorExit": (raising(GeneratorExit()), "Tool error (mine): GeneratorExit", True),
    "ValueError": (raising(ValueError("no")), "Tool error (mine): no", True),
    "half a pair raised": (raising(ValueError("\ud800")), "Tool error (mine): \ufffd", True),
    "RecursionError": (deep, "Tool error (mine): maximum recursion depth exceeded", True),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_tool_ends_only_its_own_call(stage, case):
    answer, text, failed = ANSWERS[case]

    async def body(arguments, context):
        return answer()

    session = await stage.session(
        {"tool_calls": [call("mine"), call("ls", path=".")]}, {"text": "went on"}, {"text": "again"}
    )
    session.setup.tools.register(AgentTool("mine", "Mine.", Nothing, body))
    session.setup.tools.activate(("mine",))
    await seen(session, "go")
    mine, ls = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
    assert join_texts(mine.content).startswith(text)
    assert (mine.is_error, ls.is_error) == (failed, False)
    await seen(session, "and now")
    assert join_texts(session.recorder.path[-1].data.content) == "again"
    assert list(verify(session.recorder.tape, Counts())) == []


async def test_pictures_of_a_tool_stay(stage):
    async def body(arguments, context):
        blob = session.recorder.tape.blobs.put(b"\x89PNG")
        return ToolOutcome((Text("seen"), Image(blob=blob, mime="image/png")))

    session = await stage.session({"tool_calls": [call("mine")]}, {"text": "done"})
    session.setup.tools.register(AgentTool("mine", "Mine.", Nothing, body))
    session.setup.tools.activate(("mine",))
    await seen(session, "go")
    (mine,) = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
    assert [type(block) for block in mine.content] == [Text, Image]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: None,
        lambda: True,
        lambda: sys.exit(1),
        deep,
        lambda: Verdict(False, b"no"),
        lambda: Verdict(True, approval="allow"),
        lambda: Verdict(True, arguments=[1]),
        lambda: Verdict(False, failure="no"),
    ],
)
async def test_a_policy_that_fails_refuses_its_call(stage, answer):
    async def policy(prepared):
        return answer() if prepared.tool.name == "bash" else Verdict(allowed=True)

    session = await stage.session(
        {"tool_calls": [call("bash", command="touch made"), call("ls", path=".")]}, {"text": "on"}
    )
    session.setup = replace(session.setup, policy=policy)
    await seen(session, "go")
    bash, ls = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
    assert join_texts(bash.content).startswith(
        "Not run: the policy that decides about calls failed"
    )
    assert (bash.is_error, ls.is_error) == (True, False)
    assert not (stage.folder / "made").exists()


async def test_words_of_a_policy_are_the_same_for_the_model_and_on_the_screen(stage):
    async def policy(prepared):
        return Verdict(False, "no \ud800")

    session = await stage.session({"tool_calls": [call("ls")]}, {"text": "on"})
    session.setup = replace(session.setup, policy=policy)
    told = await seen(session, "go")
    (ended,) = (event for event in told if isinstance(event, events.ToolExecutionEnd))
    assert join_texts(ended.content) == "no \ufffd"


def finish():
    return Finish("stop", Usage())


async def _words(*pieces):
    yield TextStart(0)
    for piece in pieces:
        yield TextDelta(0, piece)
    yield TextEnd(0)
    yield finish()


async def _wrong(request):
    yield TextStart(0)
    yield TextDelta(0, "half")
    yield {"type": "text"}


async def _exits(request):
    yield TextStart(0)
    sys.exit(2)


async def _recurses(request):
    deep()
    yield finish()


def _no_stream(request):
    return [finish()]


PROVIDERS = {
    "a wrong event": (_wrong, "it sent dict, not a stream event"),
    "sys.exit": (_exits, "SystemExit: 2"),
    "RecursionError": (_recurses, "RecursionError: maximum recursion depth exceeded"),
    "no stream at all": (_no_stream, "AttributeError"),
}


@pytest.mark.parametrize("case", PROVIDERS)
async def test_a_provider_that_fails_ends_one_run_with_its_name(stage, case):
    stream, what = PROVIDERS[case]
    session = await stage.session({"text": "back again"})
    model = session.setup.model
    session.setup = replace(session.setup, model=replace(model, stream=stream))
    told = await seen(session, "go")
    (failure,) = (event for event in told if isinstance(event, events.RunFailure))
    assert failure.message.startswith(f"the provider of {model.name} failed: {what}")
    session.setup = replace(session.setup, model=model)
    await seen(session, "again")
    assert join_texts(session.recorder.path[-1].data.content) == "back again"
    assert list(verify(session.recorder.tape, Counts())) == []


async def test_half_a_pair_in_an_answer_becomes_a_replacement_character(stage):
    session = await stage.session({"text": "unused"})
    model = session.setup.model
    model = replace(model, stream=lambda request: _words("a\ud800", "b"))
    session.setup = replace(session.setup, model=model)
    await seen(session, "go")
    (answer,) = (e.data for e in session.recorder.path if isinstance(e.data, Assistant))
    assert join_texts(answer.content) == "a\ufffdb"


class Source:
    def __init__(self, answer):
        self._answer = answer

    async def offer(self, tools, *, has_person):
        return self._answer()

    async def read_mentions(self, prompt):
        return self._answer()

    async def close(self): ...


@pytest.mark.parametrize("answer", [lambda: sys.exit(1), deep, raising(ValueError("no"))])
async def test_a_source_of_tools_that_fails_is_named(stage, answer):
    session = await stage.session({"text": "went on"})
    session.setup = replace(session.setup, sources=(Source(answer),))
    told = await seen(session, "go")
    warned = [event.message for event in told if isinstance(event, events.Warn)]
    assert any(one.startswith("the source of tools Source failed: ") for one in warned)
    assert join_texts(session.recorder.path[-1].data.content) == "went on"


async def fail_to_find(arguments, env):
    raise RuntimeError("who knows")


async def find_nothing_known(arguments, env):
    return "a path"


class Fussy(Struct):
    def __post_init__(self):
        raise RuntimeError("too fussy")


def build_mine(**parts):
    async def body(arguments, context):
        return "ran"

    return AgentTool("mine", "Mine.", parts.pop("arguments", Nothing), body, **parts)


PARTS = {
    "divert raises": ({"divert": lambda _: 1 / 0}, "its divert failed: division by zero"),
    "divert exits": ({"divert": lambda _: sys.exit(3)}, "its divert failed: 3"),
    "divert recurses": ({"divert": lambda _: deep()}, "its divert failed: maximum recursion"),
    "divert answers a number": ({"divert": lambda _: 5}, "it returned int, not ToolOutcome"),
    "find_targets raises": ({"find_targets": fail_to_find}, "its find_targets failed: who knows"),
    "find_targets is not async": (
        {"find_targets": lambda arguments, env: []},
        "its find_targets failed: object list can't be used",
    ),
    "find_targets answers a text": (
        {"find_targets": find_nothing_known},
        "its find_targets returned no list of paths",
    ),
    "arguments raise": ({"arguments": Fussy}, "too fussy"),
}


@pytest.mark.parametrize("case", PARTS)
async def test_every_part_of_a_tool_that_fails_ends_its_own_call(stage, case):
    parts, what = PARTS[case]
    session = await stage.session(
        {"tool_calls": [call("mine"), call("ls", path=".")]}, {"text": "went on"}
    )
    session.setup.tools.register(build_mine(**parts))
    session.setup.tools.activate(("mine",))
    await seen(session, "go")
    mine, ls = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
    assert join_texts(mine.content).startswith(f"Tool error (mine): {what}")
    assert (mine.is_error, ls.is_error) == (True, False)
    assert join_texts(session.recorder.path[-1].data.content) == "went on"


async def test_a_truncation_that_fails_ends_one_call(stage):
    async def cut(result, context):
        return deep()

    session = await stage.session({"tool_calls": [call("mine")]}, {"text": "went on"})
    session.setup.tools.register(build_mine())
    session.setup.tools.activate(("mine",))
    session.setup.tools.truncation = cut
    await seen(session, "go")
    (mine,) = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
    assert join_texts(mine.content).startswith("Tool error (mine): its result could not be cut: ")
    assert join_texts(session.recorder.path[-1].data.content) == "went on"


class Closing(Source):
    async def offer(self, tools, *, has_person):
        return ()

    async def read_mentions(self, prompt):
        return None

    async def close(self):
        return self._answer()


async def test_a_source_that_fails_to_close_keeps_nothing_open(stage):
    closed = []
    session = await stage.session({"text": "done"})
    sources = (Closing(lambda: sys.exit(1)), Closing(lambda: closed.append("second")))
    session.setup = replace(session.setup, sources=sources)
    await seen(session, "go")
    told = []
    session.subscribe(told.append)
    await session.close()
    assert closed == ["second"]
    assert [one.kind for one in told] == ["warning", "session_end"]
    assert told[0].message.startswith("the source of tools Closing failed: SystemExit")
    assert stage.reopened().writer.instead_of is None


async def test_an_environment_that_fails_to_close_keeps_nothing_open(stage):
    session = await stage.session({"text": "done"})
    await seen(session, "go")
    told = []
    session.subscribe(told.append)

    class Broken(EnvironmentWrapper):
        async def cleanup(self):
            raise RuntimeError("it is gone")

    session.use_environment(Broken(session.setup.env))
    with pytest.raises(RuntimeError, match="it is gone"):
        await session.close()
    assert [one.kind for one in told] == ["session_end"]
    await session.close()
