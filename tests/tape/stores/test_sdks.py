"""The adapters, judged by the suites and the runners of their SDKs where these are installed."""

from __future__ import annotations

import pytest

from tests.docs.pages import blocks
from tests.docs.test_links import ROOT

PAGES = ROOT / "docs" / "integrations"


async def test_the_claude_agent_sdk_finds_its_fourteen_contracts_kept(tmp_path_factory):
    testing = pytest.importorskip("claude_agent_sdk.testing")
    from tape.stores.claude_agent import SessionStore  # needs the extra

    await testing.run_session_store_conformance(
        lambda: SessionStore(tmp_path_factory.mktemp("store"))
    )


async def test_a_line_of_claude_code_with_a_known_uuid_is_not_recorded_again(tmp_path):
    pytest.importorskip("claude_agent_sdk")
    from tape.stores.claude_agent import SessionStore  # needs the extra

    key = {"project_key": "-src", "session_id": "s/1"}
    line = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Hi"}}
    await SessionStore(tmp_path).append(key, [line, line])
    store = SessionStore(tmp_path)
    await store.append(key, [line, {"type": "mode", "mode": "plan"}])
    await store.append(key, [{"type": "mode", "mode": "plan"}])
    modes = [{"type": "mode", "mode": "plan"}] * 2
    assert await store.load(key) == [line, *modes]
    assert [one["session_id"] for one in await store.list_sessions("-src")] == ["s/1"]
    await store.delete(key)
    await store.append(key, [line])
    assert await store.load(key) == [line]


async def test_langgraph_finds_its_checkpointer_whole(tmp_path_factory):
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")
    from tape.stores.langgraph import TapeSaver  # needs the extra

    @conformance.checkpointer_test(name="TapeSaver")
    async def make():
        yield TapeSaver(tmp_path_factory.mktemp("store"))

    report = await conformance.validate(make)
    assert {name: result.failures for name, result in report.results.items()} == {
        name: [] for name in report.results
    }
    assert report.passed_all()


async def test_a_session_of_openai_agents_limits_and_pops(tmp_path):
    pytest.importorskip("agents")
    from tape.stores.openai_agents import Session  # needs the extra

    session = Session("7", tmp_path, session_settings={"limit": 2})
    items = [{"role": "user", "content": text} for text in "abc"]
    await session.add_items(items)
    assert await session.get_items() == items[1:]
    assert await session.get_items(9) == items
    assert await session.get_items(0) == []
    assert await session.pop_item() == items[2]
    await session.clear_session()
    assert await session.pop_item() is None


@pytest.mark.parametrize(
    ("page", "package"),
    [
        ("claude-agent", "claude_agent_sdk"),
        ("langgraph", "langgraph"),
        ("openai-agents", "agents"),
        ("pydantic-ai", "pydantic_ai"),
    ],
)
def test_the_example_of_the_page_runs(page, package, tmp_path, monkeypatch):
    text = (PAGES / f"{page}.md").read_text("utf-8")
    (shown,) = [block for block in blocks(text) if block.info == "python"]
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(shown.text), page, "exec"), {"__name__": page})
    assert [path.name for path in tmp_path.iterdir()] == ["sessions"]
