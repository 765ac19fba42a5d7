"""A question about a page: a small model answers it, and the page is kept beside the answer."""

from __future__ import annotations

import json

from gong.llm.models import load_presets
from gong.tool_settings import WebSettings
from tape.model.entries import SideUsage, ToolResult, join_texts
from tests.gong.agent.conftest import call, seen, types
from tests.gong.web.loopback import response, serve


async def run_question(stage, small, prompt="What is it?"):
    """Run a call of web_fetch with a question, and return its result and the session."""
    script = stage.folder.parent / "small.json"
    script.write_text(json.dumps([small]))
    async with serve(lambda _: response(b"The answer is 42.")) as (port, _):
        fetch = call("web_fetch", url=f"http://127.0.0.1:{port}/", prompt=prompt)
        session = await stage.session(
            {"tool_calls": [fetch]},
            {"text": "done"},
            web=WebSettings(private_hosts=("127.0.0.1",), model=f"scripted/{script}"),
        )
        await seen(session, "look it up")
    (result,) = (e.data for e in session.recorder.path if isinstance(e.data, ToolResult))
    return result, session


async def test_a_small_model_answers_and_its_usage_is_recorded(stage):
    """M195: WebFetch(url, prompt); the page itself is on the tape, beside the answer."""
    result, session = await run_question(stage, {"text": "It is 42."})
    assert "It is 42.\n</web_page>" in join_texts(result.content)
    assert "The answer is" not in join_texts(result.content)
    assert result.full == "The answer is 42."
    assert types(session) == [
        *("start", "user", "assistant", "approval", "tool.start", "usage", "tool.result"),
        "assistant",
    ]
    (usage,) = (e.data for e in session.recorder.path if isinstance(e.data, SideUsage))
    assert usage.purpose == "web_fetch"


async def test_a_small_model_that_fails_leaves_the_page(stage):
    result, _ = await run_question(stage, {"error": {"class": "ServerError", "message": "busy"}})
    assert "did not answer" in join_texts(result.content)
    assert "The answer is 42." in join_texts(result.content)


async def test_the_small_model_of_the_provider_answers_only_at_its_own_address(stage):
    host = await stage.host({"text": "one"})
    presets = load_presets({})
    small = presets["anthropic"].small_model
    models, model = host.models, host.session.setup.model
    assert small
    assert models.choose_page_reader(model) is None
    from dataclasses import replace

    theirs = replace(model, provider="anthropic", endpoint=presets["anthropic"].base_url)
    assert models.choose_page_reader(theirs).name == f"anthropic/{small}"
    assert models.choose_page_reader(replace(theirs, endpoint="https://gateway.example")) is None
