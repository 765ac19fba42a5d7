"""What the loop makes of the wires: pictures on a tape, pauses, refusals, too long prompts."""

import json
import os
from base64 import b64encode
from contextlib import aclosing

import pytest
from msgspec import Raw

from gong.agent import events
from gong.agent.front_end import FrontEnd
from gong.agent.recorder import Recorder
from gong.assembly.opening import open_session
from gong.config import PermissionSettings, Settings
from tape.index.library import Library
from tape.model.entries import (
    Assistant,
    Document,
    Error,
    Image,
    Opaque,
    Text,
    Thinking,
    User,
    join_texts,
)
from tape.store.store import Beginning, Store
from tests.wires import anthropic
from tests.wires import openai_chat as chat
from tests.wires import openai_responses as responses
from tests.wires.server import Reply, WireServer, json_reply, sse
from tests.wires.table import WIRES, every_wire

PNG = b"\x89PNG\r\n\x1a\n and what follows"
PDF = b"%PDF-1.7 and what follows"
ANTHROPIC, RESPONSES, CHAT, *_ = WIRES


class Stage:
    """A tape, and sessions on it that are answered by a server of ours."""

    def __init__(self, tmp_path):
        self.folder = tmp_path
        self.store = Store(tmp_path / "store")

    def recorder(self):
        beginning = Beginning(cwd=str(self.folder), program="test/1")
        return Recorder.open(self.store.create(beginning))

    async def seen(self, wire, server, prompt, recorder=None, steering=None, **settings):
        """Return the session and the events of one run; `steering` is said at its first turn."""
        variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), variable: server.url}
        allowed = PermissionSettings(mode="bypass")
        fixed = {"permissions": allowed, "context_window": 1_000_000}
        given = {"model": f"{wire.preset}/model-x", **fixed, **settings}
        settings = Settings(**given)
        library = Library(self.store, None)
        front = FrontEnd(library, settings, environ, str(self.folder), "test/1")
        host = await open_session(front, recorder)
        if steering:
            host.session.subscribe(
                lambda event: (
                    host.session.steer(steering)
                    if isinstance(event, events.TurnStart) and event.turn == 1
                    else None
                )
            )
        try:
            async with aclosing(host.session.submit(prompt)) as stream:
                return host.session, [event async for event in stream]
        finally:
            await host.close()


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def shown(recorder):
    """Record a prompt with a picture and a document."""
    picture = Image(blob=recorder.tape.blobs.put(PNG), mime="image/png")
    document = Document(blob=recorder.tape.blobs.put(PDF), mime="application/pdf", name="a.pdf")
    recorder.append(User((Text("Here they are."), picture, document)))
    recorder.barrier()
    return recorder


def told(session):
    return [entry.data for entry in session.recorder.path]


def warnings(seen):
    return [event.message for event in seen if isinstance(event, events.Warn)]


@every_wire
async def test_pictures_and_documents_on_a_tape_are_sent(stage, wire):
    async with WireServer(Reply(wire.said("A cat."))) as server:
        await stage.seen(wire, server, "what is it?", shown(stage.recorder()))
        sent = json.dumps(server.requests[0].body)
    assert [b64encode(data).decode() in sent for data in (PNG, PDF)] == [True, True]


async def test_a_fork_in_a_tape_of_its_own_sends_the_pictures_of_its_origin(stage):
    with shown(stage.recorder()) as old:
        beginning = Beginning(cwd=str(stage.folder), program="test/1")
        tape = stage.store.create(beginning, (old.tape, old.tape.head()))
        async with WireServer(Reply(ANTHROPIC.said("A cat."))) as server:
            await stage.seen(ANTHROPIC, server, "what is it?", Recorder.open(tape))
            sent = json.dumps(server.requests[0].body)
    assert b64encode(PNG).decode() in sent


@every_wire
async def test_a_model_without_vision_gets_a_picture_as_words(stage, wire):
    """M202 J11-2.2: the picture stays on the tape."""
    blind = {f"{wire.preset}/model-x": {"vision": False}}
    async with WireServer(Reply(wire.said("I cannot see it."))) as server:
        await stage.seen(wire, server, "what?", shown(stage.recorder()), models=blind)
        sent = json.dumps(server.requests[0].body)
    assert b64encode(PNG).decode() not in sent
    assert "(image omitted: model does not support images)" in sent


def thought_elsewhere(recorder):
    """Record an answer of another model, with thinking that only its provider signed."""
    recorder.append(User((Text("First."),)))
    secret = Raw(b'{"signature":"signed-elsewhere"}')
    thoughts = (Thinking("I weigh it.", wire=secret), Thinking("", redacted=True, wire=secret))
    answer = Assistant((*thoughts, Text("Yes.")), "other", "other-api", "https://other", "m")
    recorder.append(answer)
    recorder.barrier()
    return recorder


@every_wire
@pytest.mark.parametrize("choice", ["text", "drop"])
async def test_thinking_of_another_model_is_plain_text_or_nothing(stage, wire, choice):
    """M154: without tags, before the answer it led to, never signed."""
    async with WireServer(Reply(wire.said("Good."))) as server:
        past = thought_elsewhere(stage.recorder())
        await stage.seen(wire, server, "then?", past, foreign_thinking=choice)
        sent = json.dumps(server.requests[0].body)
    assert ("I weigh it." in sent) is (choice == "text")
    assert sent.find("I weigh it.") < sent.index("Yes.")
    assert "signed-elsewhere" not in sent
    assert "think>" not in sent


@every_wire
async def test_blocked_pictures_of_tools_are_not_sent(stage, wire):
    """M202 J11-2.1: block_images holds for pictures that are on the tape, whoever brought them."""
    async with WireServer(Reply(wire.said("I see none."))) as server:
        await stage.seen(wire, server, "what?", shown(stage.recorder()), block_images=True)
        sent = json.dumps(server.requests[0].body)
    assert b64encode(PNG).decode() not in sent
    assert "(image omitted: block_images is set)" in sent


SEARCHED = [
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
]


async def test_a_paused_answer_is_sent_back_unchanged_and_continues(stage):
    """No prompt of ours, and nobody's steering, comes between the two halves.

    M013: an answer on the tape has the id that its provider gave it.
    """
    (use, found) = (anthropic.block(place, one) for place, one in enumerate(SEARCHED))
    paused = sse(anthropic.start(), *use, *found, *anthropic.stop("pause_turn"))
    ended = ANTHROPIC.said("It is x.")
    async with WireServer(Reply(paused), Reply(ended)) as server:
        session, seen = await stage.seen(ANTHROPIC, server, "search", steering="be quick")
        first, second, third = (one.body["messages"] for one in server.requests)
    assert second[:-1] == first
    assert second[-1] == {"role": "assistant", "content": SEARCHED}
    assert [part["text"] for part in third[-1]["content"]] == ["be quick"]
    one, two, _ = (data for data in told(session) if isinstance(data, Assistant))
    assert [type(block) for block in one.content] == [Opaque, Opaque]
    assert (one.raw_stop, two.content) == ("pause_turn", (Text("It is x."),))
    assert one.response_id == "msg_1"
    assert seen[-1].stop_reason == "stop"


async def test_an_empty_pause_is_asked_again_once(stage):
    paused = sse(anthropic.start(), *anthropic.stop("pause_turn"))
    async with WireServer(Reply(paused), Reply(paused)) as server:
        await stage.seen(ANTHROPIC, server, "search")
        first, second = (one.body for one in server.requests)
    assert first == second


async def test_an_answer_whose_turn_has_not_ended_is_continued(stage):
    """Responses: `end_turn: false` means that the model has more to say."""
    begun = sse(responses.start(), *responses.message(0, "First."), responses.end(end_turn=False))
    async with WireServer(Reply(begun), Reply(RESPONSES.said("Second."))) as server:
        session, seen = await stage.seen(RESPONSES, server, "tell me")
        first, second = (one.body["input"] for one in server.requests)
    assert second[: len(first)] == first
    assert [item["role"] for item in second[len(first) :]] == ["assistant"]
    texts = [join_texts(data.content) for data in told(session) if isinstance(data, Assistant)]
    assert texts == ["First.", "Second."]
    assert seen[-1].stop_reason == "stop"


@every_wire
async def test_an_answer_without_words_is_asked_for_again_on_each_wire(stage, wire):
    empty = wire.write(*wire.begin, *wire.end)
    async with WireServer(Reply(empty), Reply(wire.said("There."))) as server:
        _, seen = await stage.seen(wire, server, "hi")
        assert len(server.requests) == 2
    assert [event.stop_reason for event in seen if isinstance(event, events.RunEnd)] == ["stop"]
    assert any("try 2" in said for said in warnings(seen))


async def test_a_refusal_is_reported_and_kept_with_its_reason(stage):
    refused = anthropic.stop("refusal")
    details = {"type": "refusal", "category": "cyber", "explanation": "No attacks."}
    refused[0]["delta"]["stop_details"] = details
    async with WireServer(Reply(sse(anthropic.start(), *refused))) as server:
        session, seen = await stage.seen(ANTHROPIC, server, "attack")
    *_, answer = told(session)
    assert (answer.stop_reason, answer.error.message) == ("content_filter", "cyber: No attacks.")
    assert warnings(seen) == ["anthropic stopped this answer: cyber: No attacks."]


async def test_a_prompt_that_was_cut_without_a_word_fails_the_call(stage):
    """M148: z.ai answers as if nothing had happened."""
    small = {"zai/model-x": {"context_window": 9}}
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    body = CHAT.write(*CHAT.begin, *CHAT.say("Hm?"), chat.chunk(finish="stop", usage=usage), "DONE")
    async with WireServer(Reply(body)) as server:
        session, seen = await stage.seen(CHAT._replace(preset="zai"), server, "hi", models=small)
        assert len(server.requests) == 1
    (failure,) = (event for event in seen if isinstance(event, events.RunFailure))
    assert failure.error_class == "ContextLengthExceeded"
    assert "did not fit zai/model-x, which takes 9 tokens" in failure.message
    answer, error = told(session)[-2:]
    assert (answer.stop_reason, answer.content) == ("error", (Text("Hm?"),))
    assert isinstance(error, Error)
    assert any("continue with one that takes more (-m)" in said for said in warnings(seen))


async def test_a_whole_answer_to_a_prompt_above_the_known_window_is_kept(stage):
    small = {"anthropic/model-x": {"context_window": 9}}
    async with WireServer(Reply(ANTHROPIC.said("Here."))) as server:
        session, seen = await stage.seen(ANTHROPIC, server, "hi", models=small)
    assert not [event for event in seen if isinstance(event, events.RunFailure)]
    *_, answer = told(session)
    assert (answer.stop_reason, answer.content) == ("stop", (Text("Here."),))


PATCH = "*** Begin Patch\n*** Add File: hello.txt\n+Hello\n*** End Patch\n"


def patch_of_free_text():
    """Return an answer that calls apply_patch with text, in pieces, as the Responses API does."""
    begun = {"type": "custom_tool_call", "id": "ctc_0", "call_id": "call_0", "name": "apply_patch"}
    pieces = responses.delta("custom_tool_call_input", PATCH[:20], PATCH[20:])
    item = responses.item(0, {**begun, "input": ""}, {**begun, "input": PATCH}, *pieces)
    return sse(responses.start(), *item, responses.end())


async def test_a_patch_written_as_free_text_is_applied_and_goes_back_as_such(stage):
    """The tool is told with its grammar; the call runs through the registry like any other."""
    answers = (Reply(patch_of_free_text()), Reply(RESPONSES.said("Done.")))
    async with WireServer(*answers) as server:
        session, seen = await stage.seen(
            RESPONSES, server, "hello", model="openai/gpt-6.1-sol", tools=("apply_patch",)
        )
        first, second = (one.body for one in server.requests)
    assert (stage.folder / "hello.txt").read_text() == "Hello\n"
    (tool,) = first["tools"]
    assert (tool["type"], tool["format"]["syntax"]) == ("custom", "lark")
    _, call, output = second["input"]
    assert (call["type"], call["input"], call["id"]) == ("custom_tool_call", PATCH, "ctc_0")
    assert (output["type"], output["call_id"]) == ("custom_tool_call_output", call["call_id"])
    assert "A hello.txt" in output["output"]
    (answer, _) = (data for data in told(session) if isinstance(data, Assistant))
    assert answer.content[0].args_text == PATCH
    assert seen[-1].stop_reason == "stop"


@every_wire
@pytest.mark.parametrize(
    ("message", "kind", "advice", "asked"),
    [
        (
            "maximum context length is 9 tokens",
            "ContextLengthExceeded",
            "too long for this model",
            1,
        ),
        (
            "tool_use ids were found without tool_result blocks",
            "MalformedHistory",
            "does not accept the conversation",
            2,
        ),
    ],
)
async def test_a_warning_repeated_with_each_prompt_names_a_way_out(
    stage, wire, message, kind, advice, asked
):
    """A refused history is sent once more, plainer; one prompt cannot be compacted."""
    async with WireServer(json_reply(400, wire.refuse(message))) as server:
        _, seen = await stage.seen(wire, server, "hi")
        assert len(server.requests) == asked
    (failure,) = (event for event in seen if isinstance(event, events.RunFailure))
    assert (failure.error_class, failure.message) == (
        kind,
        f"{wire.preset} API error (400): {message}",
    )
    assert advice in warnings(seen)[-1]
    assert "--fork" in warnings(seen)[-1]
