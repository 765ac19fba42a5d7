"""A search that the provider runs: offered by a setting, shown with its sources, not for titles."""

import json

import pytest

from gong.agent.front_end import ModelFactory
from gong.config import Settings
from gong.context.system import Surroundings
from gong.llm.client import Client
from gong.llm.model_names import ModelNames
from gong.tool_settings import SearchSettings, WebSettings
from gong.tools.builtin import build_registry

WHERE = Surroundings("/work", "linux", "Linux 6", "2026-11-22")
MODELS = {
    "anthropic/claude-sonnet-4-5": "web_search_20250305",
    "openai/gpt-5": "web_search",
    "google/gemini-3.8-flash": "google_search",
}
OTHERS = ["google/gemini-2.5-pro", "deepseek/deepseek-v4-pro", "openai-chat/gpt-5"]


def describe(name, **search):
    settings = Settings(web=WebSettings(search=SearchSettings(**search)))
    names = ModelNames.from_settings(settings)
    client = Client.from_env({}, presets=names.presets)
    models = ModelFactory(names, client, WHERE, {"HOME": "/nobody"}, settings)
    return models.describe(name), settings


@pytest.mark.parametrize("name", MODELS)
def test_a_provider_searches_where_the_setting_says_so(name):
    """M131 M195: off without it; on, a tool of ours for it is not offered."""
    assert not bytes(describe(name)[0].options)
    model, settings = describe(name, native=True, url="https://s.example/{query}")
    assert MODELS[name] in json.dumps(json.loads(bytes(model.choose_options(has_tools=True))))
    assert not bytes(model.choose_options(has_tools=False))
    tools = model.equip(build_registry(settings.tuning), settings.tuning)
    assert {"web_search", "WebSearch"}.isdisjoint(tools.active)


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_that_cannot_search_gets_the_tool_where_one_is_set(name):
    model, settings = describe(name, native=True)
    assert not bytes(model.options)
    tools = model.equip(build_registry(settings.tuning), settings.tuning)
    assert "web_search" not in tools.active
    model, settings = describe(name, native=True, url="https://s.example/{query}")
    tools = model.equip(build_registry(settings.tuning), settings.tuning)
    assert "web_search" in tools.active
