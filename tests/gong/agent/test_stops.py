"""What the model is sent after a person stopped a run, at forty moments of it."""

from contextlib import aclosing
from dataclasses import replace

from gong.agent import events
from tape.model.entries import join_texts
from tests.gong.agent.conftest import Stage, call, seen

TURN = (
    {"thinking": "First I look around.", "text": "I look at the file.", "chunk": 5}
    | {"tool_calls": [call("read", path="a.txt"), call("bash", command="echo out; echo more")]},
    {"text": "Now I change it.", "chunk": 4}
    | {"tool_calls": [call("edit", path="a.txt", oldText="one", newText="two")]},
    {"text": "It says two now, and the rest is as it was.", "chunk": 3},
)
MOMENTS = 40


async def stop_run(folder, moment):
    """Stop the turn at its event `moment`; return the session, the events, and the next request."""
    folder.mkdir()
    stage = Stage(folder)
    (stage.folder / "a.txt").write_text("one\n")
    session = await stage.session(*TURN, *[{"text": "yes"}] * 4)
    found = []

    def watch(event):
        found.append(event)
        if len(found) == moment:
            session.abort()

    leave = session.subscribe(watch)
    await seen(session, "change the file")
    leave()
    requests, model = [], session.setup.model

    async def stream(request):
        requests.append(request)
        async with aclosing(model.stream(request)) as inner:
            async for event in inner:
                yield event

    session.use_model(replace(model, stream=stream))
    after = await seen(session, "and now this")
    for host in stage.hosts:
        await host.close()
    return found, after, requests


def read_words(found):
    """Return the text of the answer that was coming when the run was stopped."""
    text = ""
    for event in found:
        if isinstance(event, events.MessageStart | events.MessageEnd):
            text = ""
        elif isinstance(event, events.MessageUpdate) and event.part == "text":
            text += event.delta
    return text.strip()


async def test_after_a_stop_the_model_gets_what_the_person_has_read(tmp_path):
    """Partial text and a note are between the two prompts; nothing is called a repair."""
    found, _, _ = await stop_run(tmp_path / "whole", None)
    ends = [n for n, event in enumerate(found, 1) if isinstance(event, events.TurnEnd)]
    starts = next(n for n, event in enumerate(found, 1) if isinstance(event, events.RunStart))
    moments = {starts + (ends[-1] - 1 - starts) * n // (MOMENTS - 1) for n in range(MOMENTS)}
    assert len(moments) == MOMENTS
    for moment in sorted(moments):
        found, after, requests = await stop_run(tmp_path / str(moment), moment)
        where = f"stopped at event {moment}, {found[moment - 1].kind}"
        sent = [(one.role, join_texts(one.content)) for one in requests[0].messages]
        assert sent[-1] == ("user", "and now this"), where
        if found[-1].stop_reason == "stop":  # it was over already
            assert sent[-2][0] == "assistant", where
            continue
        role, note = sent[-2]
        assert role == "user", where
        assert note.startswith("[stopped by the user"), where
        assert note.partition("\n\n")[2] == read_words(found), where
        assert sent[0] == ("user", "change the file"), where
        assert not [one for one in after if isinstance(one, events.HistoryRepaired)], where


async def test_after_a_failure_two_prompts_do_not_become_one(stage):
    """A note is between them, with what had been read of the answer that failed."""
    failure = {"error": {"class": "InvalidRequest", "message": "no"}}
    broken = {"text": "I begin", "chunk": 3} | {"error": {**failure["error"], "after": 7}}
    session = await stage.session(failure, broken, {"text": "yes"}, {"text": "and yes"})
    for prompt in ("first", "second", "third", "fourth"):
        await seen(session, prompt)
    request = session.build_run_context().prepare_next_call().request
    sent = [(one.role, join_texts(one.content)) for one in request.messages]
    failed = "no answer came: the call of the model failed"
    assert sent == [
        ("user", "first"),
        ("user", f"[{failed}]"),
        ("user", "second"),
        ("user", f"[{failed}; this much of your answer had been read:]\n\nI begin"),
        ("user", "third"),
        ("assistant", "yes"),
        ("user", "fourth"),
        ("assistant", "and yes"),
    ]
