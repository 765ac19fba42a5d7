import pytest

from gong.errors import AuthenticationError, ConfigurationError
from gong.llm.models import NO_KEY, Timeouts, load_presets
from gong.llm.provider_factory import create_provider, find_endpoint, prepare_setup

EIGHTEEN = {
    *("anthropic", "openai-chat", "openai", "google", "bedrock", "azure", "copilot", "xai", "groq"),
    *("cerebras", "mistral", "openrouter", "zai", "ollama", "lmstudio", "huggingface", "kimi"),
    "vercel",
}


def no_key(provider, variables):
    return ""


def test_all_providers_asked_for_have_a_row():
    """The eighteen, and those of the wire table."""
    assert len(EIGHTEEN) == 18
    assert {*EIGHTEEN, "deepseek", "minimax", "llamacpp", "vllm", "vertex"} <= load_presets(
        {}
    ).keys()


@pytest.mark.parametrize("preset", load_presets({}).values(), ids=lambda preset: preset.name)
def test_every_row_can_be_used_or_says_why_not(preset):
    """An address and a key variable, or a word about later."""
    assert preset.label
    if preset.later:
        with pytest.raises(ConfigurationError, match="not served yet"):
            create_provider(preset, {}, no_key)
        return
    assert find_endpoint(preset, {}) == preset.base_url
    assert preset.local == preset.base_url.startswith("http://localhost")
    assert preset.keys
    assert all(name.isupper() for name in preset.keys)


@pytest.mark.parametrize(
    ("name", "environ", "endpoint"),
    [
        ("openai", {"OPENAI_BASE_URL": "http://h/v1/"}, "http://h/v1"),
        ("openai", {"OPENAI_CHAT_BASE_URL": "http://h/v1"}, "https://api.openai.com/v1"),
        ("openai-chat", {"OPENAI_CHAT_BASE_URL": " http://h/v1 "}, "http://h/v1"),
        ("openai-chat", {"OPENAI_BASE_URL": "http://h/v1"}, "https://api.openai.com/v1"),
        ("google", {"GEMINI_BASE_URL": "http://h/"}, "http://h"),
        ("google", {"GEMINI_BASE_URL": "http://h", "GOOGLE_BASE_URL": "http://g"}, "http://g"),
        ("ollama", {}, "http://localhost:11434/v1"),
        ("ollama", {"OLLAMA_HOST": "10.0.0.2:11434"}, "http://10.0.0.2:11434/v1"),
        ("ollama", {"OLLAMA_HOST": "https://gpu.example/"}, "https://gpu.example/v1"),
        ("ollama", {"OLLAMA_HOST": "x", "OLLAMA_BASE_URL": "http://y/v2"}, "http://y/v2"),
    ],
)
def test_a_variable_overrides_the_address(name, environ, endpoint):
    """M201: <PROVIDER>_BASE_URL, and OLLAMA_HOST."""
    assert find_endpoint(load_presets({})[name], environ) == endpoint


def test_the_chat_wire_takes_the_key_of_openai():
    preset = load_presets({})["openai-chat"]
    assert (preset.keys, preset.key_name) == (("OPENAI_API_KEY",), "openai")


def test_a_users_row_goes_over_the_shipped_one_field_by_field():
    presets = load_presets(
        {"groq": {"timeouts": {"idle": 5}}, "own": {"api": "openai-chat", "base_url": "x"}}
    )
    groq = presets["groq"]
    assert groq.timeouts == Timeouts(idle=5)
    assert groq.base_url == load_presets({})["groq"].base_url
    ollama = load_presets({"ollama": {"timeouts": {"idle": 5}, "quirks": {"images": False}}})[
        "ollama"
    ]
    assert ollama.timeouts == Timeouts(first_byte=600, idle=5)
    assert (ollama.quirks.call_ids, ollama.quirks.images) == ("any", False)
    assert list(presets)[-1] == "own"
    assert "own" not in load_presets({})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"own": {"api": "openai-chat"}}, "providers.own: .*base_url"),
        ({"own": {"api": "smtp", "base_url": "x"}}, r"providers.own: .*api"),
        ({"own": {"api": "openai-chat", "base_url": "x", "colour": 1}}, "providers.own: .*colour"),
        ({"groq": {"quirks": {"call_ids": "odd"}}}, "providers.groq: .*call_ids"),
        ({"a/b": {"api": "openai-chat", "base_url": "x"}}, "slash"),
        ({"groq": {"name": "other"}}, "heading"),
    ],
)
def test_a_wrong_row_is_named_with_what_is_wrong(rows, words):
    with pytest.raises(ConfigurationError, match=words):
        load_presets(rows)


def test_an_adapter_is_made_from_preset_key_and_address():
    presets = load_presets({})
    environ = {"OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": " "}
    ready = prepare_setup(presets["openai"], environ, lambda name, variables: f"key-of-{name}")
    assert (ready.key, ready.endpoint) == ("key-of-openai", "https://api.openai.com/v1")
    assert ready.preset.headers == {"OpenAI-Organization": "org"}
    assert "key-of" not in repr(ready)
    local = prepare_setup(presets["ollama"], {}, no_key)
    assert (local.key, local.endpoint) == (NO_KEY, "http://localhost:11434/v1")


def test_a_missing_key_says_every_way_to_one():
    """M150, M184."""
    with pytest.raises(AuthenticationError) as caught:
        create_provider(load_presets({})["kimi"], {}, no_key)
    assert str(caught.value) == (
        "no key for kimi: set KIMI_API_KEY or MOONSHOT_API_KEY, run gong auth login kimi, "
        "or use -m offline/rules"
    )
    assert caught.value.exit_code == 6
