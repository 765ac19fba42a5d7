import re

import pytest
from msgspec.structs import replace

from gong.config import Settings
from gong.errors import ConfigurationError, UnknownModel
from gong.llm.model_names import ModelNames
from gong.llm.models import (
    CATALOGUE_DATE,
    Catalogue,
    ModelInfo,
    _load_shipped_limits,
    cost,
    find_limits,
    fit_effort,
    load_presets,
    normalize_model_id,
)
from gong.llm.prices import LongPrice, Price
from tape.model.entries import Cost, Usage

CATALOGUE = Catalogue.from_rows({})
NAMES = ModelNames.from_settings(Settings())


def test_the_catalogue_knows_more_than_twenty_priced_models():
    """M183: 20+ models, every one with its provider, window and price."""
    models = CATALOGUE.list_models()
    assert len(models) > 20
    assert all(
        model.provider in load_presets({}) and model.price and model.name for model in models
    )
    assert all(model.context_window for model in models)
    words = [word for model in models for word in model.aliases]
    assert len(words) == len(set(words))


def test_default_models_are_in_the_catalogue():
    for preset in load_presets({}).values():
        if preset.default_model:
            assert f"{preset.name}/{preset.default_model}" in CATALOGUE.models


@pytest.mark.parametrize(
    ("typed", "full"),
    [
        ("anthropic/claude-unheard-of", "anthropic/claude-unheard-of"),
        ("openrouter/anthropic/claude-x", "openrouter/anthropic/claude-x"),
        ("offline/rules", "offline/rules"),
        ("scripted/a/b.json", "scripted/a/b.json"),
        ("sonnet", "anthropic/claude-sonnet-5-5"),
        ("Sonnet", "anthropic/claude-sonnet-5-5"),
        ("SONNET", "anthropic/claude-sonnet-5-5"),
        ("Claude-Haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("mixtral", "ollama/mixtral"),
        ("claudecli", "claudecli/default"),
        ("codexcli/gpt-5", "codexcli/gpt-5"),
        ("r1", "deepseek/deepseek-reasoner"),
        ("R1", "deepseek/deepseek-reasoner"),
        ("gpt4o", "openai/gpt-4o"),
        ("o1", "openai/o1"),
        ("deepseek", "deepseek/deepseek-v4-pro"),
        ("gemini-pro", "google/gemini-3.1-pro-preview"),
        ("claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("gpt-oss-120b", "cerebras/gpt-oss-120b"),
        ("claude-opus-99", "anthropic/claude-opus-99"),
        ("chatgpt-latest", "openai/chatgpt-latest"),
        ("o3-next", "openai/o3-next"),
        ("gemini-9", "google/gemini-9"),
        ("GLM-7", "zai/GLM-7"),
        ("llama3.2", "ollama/llama3.2"),
        ("qwen2.5:7b", "ollama/qwen2.5:7b"),
        ("gemma3", "ollama/gemma3"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5-20250929"),
    ],
)
def test_a_typed_name_means_exact_alias_catalogue_family_in_this_order(typed, full):
    """M143 M226: aliases and family words; C44 gives the order."""
    assert NAMES.resolve_name(typed) == full


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("sonet", "did you mean sonnet?"),
        ("gorq/llama", "groq/llama"),
        ("openai", "did you mean openai/gpt-6.1-sol?"),
        ("ollama", "did you mean ollama/MODEL?"),
        ("llamacpp", "did you mean llamacpp/MODEL?"),
        ("openai-chat", "did you mean openai-chat/MODEL?"),
        ("zzzzzz", "known are"),
        ("nobody/knows", "known are"),
        ("", "known are"),
        ("anthropic/", "did you mean anthropic/claude-sonnet-5-5?"),
    ],
)
def test_an_unknown_name_gets_the_nearest_known_ones(typed, near):
    """M143."""
    with pytest.raises(UnknownModel, match="unknown model") as caught:
        NAMES.resolve_name(typed)
    assert near in str(caught.value)


UNSERVED = ["copilot"]


@pytest.mark.parametrize("name", UNSERVED)
@pytest.mark.parametrize("model", ["", "/", "/gpt-5"])
def test_a_provider_that_is_not_served_is_no_family_word(name, model):
    with pytest.raises(ConfigurationError) as caught:
        NAMES.resolve_name(name + model)
    assert str(caught.value) == NAMES.presets[name].unserved
    assert str(caught.value).startswith(f"{name} is not served yet: ")


def test_an_address_makes_azure_a_provider_like_any_other():
    url = "https://mine.openai.azure.com/openai/v1"
    names = ModelNames.from_settings(Settings(providers={"azure": {"base_url": url}}))
    assert names.resolve_name("azure/gpt-4o") == "azure/gpt-4o"
    assert names.get_context_window("azure", "gpt-4o") == 128_000
    assert names.compute_cost("azure", "gpt-4o", Usage(10, 10, total=20)) == Cost("USD", 0.000125)


@pytest.mark.parametrize(
    ("name", "window", "is_priced"),
    [
        ("anthropic/claude-sonnet-4-5", 200_000, True),
        ("anthropic/claude-sonnet-4-5-20250929", 200_000, True),
        ("anthropic/claude-sonnet-4-5-latest", 200_000, True),
        ("openai-chat/gpt-4o", 128_000, True),
        ("openai/gpt-4o-2024-08-06", 128_000, True),
        ("openrouter/anthropic/claude-sonnet-4.5", 200_000, False),
        ("openrouter/openai/gpt-5-mini", 400_000, False),
        ("openrouter/openai/gpt-5-mini:free", None, False),
        ("vercel/google/gemini-2.5-pro", 1_048_576, False),
        ("groq/gpt-oss-120b", 131_072, True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, False),
        ("bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, False),
        ("vertex/claude-opus-4-5@20251101", 200_000, False),
        ("openai/gpt-4o-mini", 128_000, False),
        ("openai/gpt-5-mini-later", None, False),
        ("anthropic/claude-sonnet", None, False),
    ],
)
def test_a_model_is_known_by_all_of_its_names_and_priced_where_it_is_billed(
    name, window, is_priced
):
    """M183: a host that charges its own is claimed no price for."""
    info = NAMES.find_info(name)
    assert (info.context_window if info else None) == window
    assert bool(info and info.price) == is_priced
    assert info is None or info.id == name


def test_the_users_aliases_and_models_go_first():
    """M183: user overrides."""
    names = ModelNames.from_settings(
        Settings(
            aliases={"sonnet": "groq/fast", "mine": "opus"},
            models={
                "groq/fast": {"price": {"input": 1, "output": 2}, "context_window": 5},
                "anthropic/claude-opus-5-5": {"max_output": 7},
            },
        )
    )
    assert names.resolve_name("sonnet") == "groq/fast"
    assert names.resolve_name("mine") == "anthropic/claude-opus-5-5"
    assert names.find_info("groq/fast") == ModelInfo(
        id="groq/fast", price=Price(input=1, output=2), context_window=5
    )
    opus = CATALOGUE.models["anthropic/claude-opus-5-5"]
    changed = names.find_info("anthropic/claude-opus-5-5")
    assert changed == replace(opus, max_output=7)
    cheaper = Catalogue.from_rows({opus.id: {"price": {"input": 1}}}).models[opus.id]
    assert opus.price
    assert cheaper.price == replace(opus.price, input=1)


@pytest.mark.parametrize(
    ("row", "words"),
    [({"x": {}}, "provider/model"), ({"a/b": {"window": 1}}, "models.'a/b': .*window")],
)
def test_a_wrong_row_is_named(row, words):
    with pytest.raises(ConfigurationError, match=words):
        Catalogue.from_rows(row)


MODEL = ModelInfo(
    id="p/m",
    price=Price(input=2, output=10, cache_read=0.2, cache_write=2.5),
    long=LongPrice(above=1000, input=4, output=20, cache_read=0.4, cache_write=5),
)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(500, 100, total=600), (500 * 2 + 100 * 10) / 1e6),
        (Usage(100, 10, cache_read=800, cache_write=100, total=1010), 710 / 1e6),
        (Usage(100, 0, cache_write=100, cache_write_hour=60, total=200), 540 / 1e6),
        (Usage(101, 10, cache_read=800, cache_write=100, total=1011), 1424 / 1e6),
        (Usage(10, 10, reasoning=8, total=20), 120 / 1e6),
    ],
)
def test_cost_counts_cached_tokens_apart_and_long_prompts_dearer(usage, dollars):
    """M183: exact prices, cache reads and writes, and the dearer tier."""
    found = cost(usage, MODEL)
    assert found is not None
    assert found.currency == "USD"
    assert found.amount == pytest.approx(dollars, rel=1e-12)


def test_cached_tokens_without_a_price_of_their_own_cost_as_input():
    plain = ModelInfo(id="p/m", price=Price(input=1, output=1))
    assert cost(Usage(0, 0, cache_read=1_000_000, total=1_000_000), plain) == Cost("USD", 1.0)


def test_unknown_is_none_and_local_is_nothing():
    """M183: free local models; an unknown price is never shown as 0."""
    usage = Usage(10, 10, total=20)
    assert NAMES.compute_cost("anthropic", "claude-unheard-of", usage) is None
    assert NAMES.compute_cost("nobody", "x", usage) is None
    assert NAMES.compute_cost("anthropic", "claude-sonnet-5-5", Usage()) is None
    assert NAMES.compute_cost("ollama", "anything", usage) == Cost("USD", 0.0)
    assert NAMES.compute_cost("offline", "rules", usage) == Cost("USD", 0.0)


def test_the_latest_of_a_provider_with_an_ability():
    """M152: info, list and latest."""
    latest = CATALOGUE.find_latest("deepseek", "vision")
    assert latest is not None
    assert latest.id == "deepseek/deepseek-flash"
    assert CATALOGUE.find_latest("nobody") is None
    assert CATALOGUE.find_info("o1") == CATALOGUE.models["openai/o1"]
    assert {model.provider for model in CATALOGUE.list_models("xai")} == {"xai"}


@pytest.mark.parametrize(
    ("provider", "model", "sees", "window"),
    [
        ("anthropic", "claude-sonnet-5-5", True, 1_000_000),
        ("anthropic", "claude-unheard-of", True, None),
        ("groq", "words-only", False, 8_192),
        ("blind", "anything", False, None),
        ("offline", "rules", True, None),
    ],
)
def test_what_a_model_takes(provider, model, sees, window):
    """A picture goes to every model but those that are known not to see."""
    names = ModelNames.from_settings(
        Settings(
            providers={
                "blind": {"api": "openai-chat", "base_url": "http://h", "quirks": {"images": False}}
            },
            models={"groq/words-only": {"vision": False, "context_window": 8_192}},
        )
    )
    assert (names.sees_images(provider, model), names.get_context_window(provider, model)) == (
        sees,
        window,
    )


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic"),
        ("anthropic/new-thing", "anthropic"),
        ("openrouter/anthropic/claude-opus-5", "anthropic"),
        ("openai/gpt-5", "openai"),
        ("openai-chat/o3", "openai"),
        ("groq/openai/gpt-oss-120b", "openai"),
        ("google/gemini-2.5-pro", "gemini"),
        ("openrouter/google/gemini-3.8-flash", "gemini"),
        ("deepseek/deepseek-v4-pro", "default"),
        ("openrouter/x-ai/grok-4.7", "default"),
        ("ollama/qwen3", "default"),
        ("scripted/claude.json", "default"),
        ("offline/rules", "default"),
        ("house/a", "gemini"),
        ("house/b", "openai"),
    ],
)
def test_the_profile_of_a_model(name, profile):
    """M128: by its row, its family, its provider."""
    settings = Settings(
        providers={"house": {"api": "openai-chat", "base_url": "http://x", "profile": "gemini"}},
        models={"house/b": {"profile": "openai"}},
    )
    assert ModelNames.from_settings(settings).choose_profile(name) == profile


@pytest.mark.parametrize(
    ("name", "window", "output"),
    [
        ("anthropic/claude-3-5-haiku-20241022", 200_000, 8_192),
        ("openrouter/anthropic/claude-opus-4.1", 200_000, 32_000),
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("mistral/devstral-2512", 262_144, None),
        ("xai/grok-4-fast-reasoning", 2_000_000, None),
        ("house/never-heard-of", None, None),
    ],
)
def test_the_limits_of_models_that_people_use(name, window, output):
    """M183: also of those without a row, under all of their names."""
    assert find_limits(name) == (window, output)
    info = NAMES.find_info(name)
    assert (info and info.context_window) == window


def test_every_listed_limit_is_found_by_its_own_name():
    windows, outputs = _load_shipped_limits()
    assert len(windows) > 300
    assert all(normalize_model_id(f"x/{one}") == one for one in (*windows, *outputs))


@pytest.mark.parametrize(
    ("wanted", "efforts", "reasons", "sent", "remark"),
    [
        (None, (), None, None, None),
        ("none", (), True, None, None),
        ("high", (), None, "high", None),
        ("xhigh", ("low", "medium", "high"), True, "high", "has no effort xhigh: high is used"),
        ("low", ("medium", "high"), True, "medium", "medium is used"),
        ("high", (), False, None, "takes no effort: high is left out"),
    ],
)
def test_an_effort_is_fitted_to_the_model(wanted, efforts, reasons, sent, remark):
    """M017 M146"""
    fitted = fit_effort(wanted, "a/b", efforts=efforts, reasons=reasons)
    assert fitted.effort == sent
    assert (fitted.remark or "").endswith(remark or "")
    assert bool(fitted.remark) == bool(remark)


def test_a_cutoff_is_a_month_before_the_date_of_the_data():
    """M134: the environment block names it, and says so where it is not known."""
    found = {one.id: one.cutoff for one in CATALOGUE.models.values() if one.cutoff is not None}
    assert found["anthropic/claude-opus-5-5"] == "2026-06"
    assert found["openai/gpt-5"] == "2024-09"
    assert all(re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", one) for one in found.values())
    assert max(found.values()) < CATALOGUE_DATE
