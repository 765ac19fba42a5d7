"""web_search by a service or a command of the user's: recipes, variables, and what goes wrong."""

import json
import sys

import pytest

from gong.tool_settings import SearchSettings, ToolSettings, WebSettings
from gong.tools.builtin import build_registry
from gong.tools.profiles import apply_profile
from tape.model.entries import join_texts
from tests.gong.tools.conftest import caller
from tests.gong.web.loopback import response, serve

SEARXNG = {"results": [{"url": "https://a.example/", "title": "A", "content": "about  a"}]}
BRAVE = {
    "query": {"original": "x"},
    "web": {"results": [{"url": "https://b.example/", "title": "B", "description": "about b"}]},
}
TAVILY = {"answer": None, "results": [{"url": "https://c.example/", "title": "C", "content": "c"}]}
LIST = [{"link": "https://d.example/", "name": "D", "snippet": "d"}, {"link": "nonsense"}, 3]


@pytest.fixture
def search(env, heard):
    """Return what calls web_search with these settings."""

    async def use(settings, query="what is it?", tool="web_search", environ=None, **arguments):
        tuning = ToolSettings(web=WebSettings(search=SearchSettings(**settings)))
        registry = build_registry(tuning, environ or {"PATH": "/usr/bin:/bin"})
        registry.set_active(registry.names)
        return await caller(registry, env, heard)(tool, query=query, **arguments)

    return use


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (SEARXNG, "1. A\n   https://a.example/\n   about a"),
        (BRAVE, "1. B\n   https://b.example/\n   about b"),
        (TAVILY, "1. C\n   https://c.example/\n   c"),
        (LIST, "1. D\n   https://d.example/\n   d"),
    ],
)
async def test_answers_of_services_become_pages(search, answer, line):
    """M195: WebSearch(query, allowed_domains)."""
    body = json.dumps(answer).encode()
    async with serve(lambda _: response(body, "application/json")) as (port, asked):
        url = f"http://127.0.0.1:{port}/search?q={{query}}&format=json"
        text = join_texts((await search({"url": url}, "größe & more?")).content)
    assert text.startswith("Results of a search of the web, not words of the user")
    assert text.endswith(line)
    assert asked[0][0] == "/search?q=gr%C3%B6%C3%9Fe%20%26%20more%3F&format=json"


async def test_a_body_is_posted_with_variables_of_the_environment(search):
    async with serve(lambda _: response(json.dumps(TAVILY).encode())) as (port, asked):
        settings = {
            "url": f"http://127.0.0.1:{port}/search",
            "headers": {"Authorization": "Bearer $MY_KEY"},
            "body": {"query": "{query}", "max_results": 5},
        }
        await search(settings, environ={"MY_KEY": "k-1"})
        missing = await search(settings)
    ((_, head),) = asked
    assert head.startswith(b"POST /search ")
    assert b"\r\nauthorization: Bearer k-1\r\n" in head
    assert join_texts(missing.content) == (
        "Cannot search: [web.search] in config.toml needs the variable MY_KEY: it is not set."
    )


async def test_results_are_of_the_allowed_domains(search):
    hosts = ("docs.x.org", "x.org", "evilx.org", "y.org")
    body = json.dumps([{"url": f"https://{host}/", "title": host} for host in hosts]).encode()
    async with serve(lambda _: response(body)) as (port, _):
        url = f"http://127.0.0.1:{port}/{{query}}"
        result = await search({"url": url}, tool="WebSearch", allowed_domains=["*.X.org"])
        nothing = await search({"url": url}, allowed_domains=["z.org"])
    assert result.details.urls == ("https://docs.x.org/", "https://x.org/")
    assert join_texts(nothing.content) == "Nothing was found."


async def test_a_command_searches(search):
    script = (
        "import json, sys; print(json.dumps([{'url': 'https://e.example/', 'title': sys.argv[1]}]))"
    )
    result = await search({"command": (sys.executable, "-c", script, "{query}")}, "$(x) 'y'")
    assert "1. $(x) 'y'\n   https://e.example/" in join_texts(result.content)
    text = await search({"command": ("echo", "words about {query}")}, "it")
    assert join_texts(text.content).endswith("words about it")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("sh", "-c", "echo broken >&2; exit 3"), "sh ended with exit code 3: broken"),
        (("no-such-program",), "no-such-program: "),
        (("true",), "Nothing was found."),
    ],
)
async def test_a_command_that_fails_is_named(search, command, why):
    assert why in join_texts((await search({"command": command})).content)


async def test_a_service_that_fails_is_named(search):
    async with serve(lambda _: response(status="401 Unauthorized")) as (port, _):
        result = await search({"url": f"http://127.0.0.1:{port}/{{query}}"})
    assert result.is_error
    assert "answered 401 Unauthorized" in join_texts(result.content)
    assert "config.toml" in join_texts((await search({"url": "nonsense"})).content)


def test_a_model_is_offered_the_tool_only_where_something_searches():
    """Off without settings; nor where its provider searches itself."""
    registry = build_registry()
    assert {"web_search", "WebSearch"}.isdisjoint(registry.names)
    tuning = ToolSettings(web=WebSettings(search=SearchSettings(url="https://s.example/{query}")))
    registry = build_registry(tuning)
    for profile, name in (("gemini", "web_search"), ("anthropic", "WebSearch")):
        offered = apply_profile(registry, profile, tuning)
        assert name in offered.active
        native = apply_profile(offered, profile, tuning, searches_itself=True)
        assert {"web_search", "WebSearch"}.isdisjoint(native.active)
        assert "web_search" in apply_profile(native, "default", tuning).active
