import re

import pytest

from gong.errors import AuthenticationError, ConfigurationError
from gong.llm.addresses import build_call_path, find_endpoint
from gong.llm.models import NO_KEY, Timeouts, load_presets
from gong.llm.provider_factory import create_provider, prepare_setup

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
    if preset.program:
        assert find_endpoint(preset, {}) == preset.name
        return
    if not preset.variables:
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


AT_WORK = [
    # model, environment, row of the user, address and path
    (
        "azure/gpt-4o",
        {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"},
        {"deployments": {"gpt-4o": "mine"}},
        "https://r.openai.azure.com/openai/v1/chat/completions",
    ),
    (
        "azure/gpt-5.2",
        {"AZURE_RESOURCE_NAME": "r"},
        {},
        "https://r.openai.azure.com/openai/v1/responses",
    ),
    (
        "azure/claude-opus-5",
        {"ANTHROPIC_FOUNDRY_RESOURCE": "r"},
        {},
        "https://r.services.ai.azure.com/anthropic/v1/messages",
    ),
    (
        "azure-classic/gpt-4o",
        {"OPENAI_API_VERSION": "2024-10-21"},
        {"resource": "r", "deployments": {"gpt-4o": "my own"}},
        (
            "https://r.openai.azure.com/openai/deployments/my%20own/chat/completions"
            "?api-version=2024-10-21"
        ),
    ),
    (
        "azure-classic/gpt-4o",
        {"OPENAI_API_VERSION": "2024-10-21"},
        {"resource": "r", "query": {"api-version": "2", "x": "a b"}},
        "https://r.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2&x=a+b",
    ),
    (
        "bedrock/anthropic.claude-opus-5",
        {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1"},
        {},
        "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
    ),
    (
        "bedrock/us.anthropic.claude-opus-5-v1:0",
        {"AWS_DEFAULT_REGION": "us-east-1"},
        {},
        "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1/messages",
    ),
    (
        "bedrock/qwen.qwen3-coder-480b",
        {"AWS_REGION": "eu-west-1"},
        {"region": "us-west-2"},
        "https://bedrock-mantle.us-west-2.api.aws/openai/v1/chat/completions",
    ),
    (
        "bedrock/eu.qwen.qwen3-coder-480b",
        {"AWS_REGION": "eu-west-1"},
        {},
        "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions",
    ),
    (
        "bedrock/us.amazon.nova-2-lite-v1:0",
        {"AWS_REGION": "us-east-1"},
        {},
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse-stream",
    ),
    (
        "bedrock/openai.gpt-5.4",
        {"AWS_REGION": "eu-west-1"},
        {},
        "https://bedrock-mantle.eu-west-1.api.aws/openai/v1/responses",
    ),
    (
        "vertex/gemini-3-pro",
        {"GOOGLE_CLOUD_PROJECT": "p-1"},
        {},
        (
            "https://aiplatform.googleapis.com/v1beta1/projects/p-1/locations/global/publishers/google"
            "/models/gemini-3-pro:streamGenerateContent?alt=sse"
        ),
    ),
    (
        "vertex/claude-opus-5@20260101",
        {"GOOGLE_CLOUD_PROJECT": "p-1", "CLOUD_ML_REGION": "europe-west1"},
        {},
        (
            "https://europe-west1-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west1"
            "/publishers/anthropic/models/claude-opus-5@20260101:streamRawPredict"
        ),
    ),
    (
        "vertex/claude-opus-5",
        {"GOOGLE_CLOUD_LOCATION": "asia-east1"},
        {"project": "example.com:p", "location": "us"},
        (
            "https://aiplatform.us.rep.googleapis.com/v1/projects/example.com:p/locations/us"
            "/publishers/anthropic/models/claude-opus-5:streamRawPredict"
        ),
    ),
    (
        "databricks/databricks-claude",
        {"DATABRICKS_HOST": "adb-1.2.azuredatabricks.net"},
        {},
        "https://adb-1.2.azuredatabricks.net/serving-endpoints/chat/completions",
    ),
    (
        "cloudflare/@cf/openai/gpt-oss-120b",
        {"CLOUDFLARE_ACCOUNT_ID": "a1"},
        {},
        "https://api.cloudflare.com/client/v4/accounts/a1/ai/v1/chat/completions",
    ),
    (
        "cloudflare-gateway/openai/gpt-4o",
        {"CLOUDFLARE_ACCOUNT_ID": "a1"},
        {"gateway": "g"},
        "https://gateway.ai.cloudflare.com/v1/a1/g/compat/chat/completions",
    ),
]
OWN_PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "google-generate": "",
    "bedrock-converse": "/model/x/converse-stream",
}


@pytest.mark.parametrize(("name", "environ", "row", "url"), AT_WORK)
def test_a_cloud_is_asked_at_the_address_of_its_place(name, environ, row, url):
    """M138: regions, projects, deployments and versions, from the row or the usual variables."""
    provider, _, model = name.partition("/")
    preset = load_presets({provider: row})[provider].choose_variant(model)
    setup = prepare_setup(preset, environ, lambda *_: "key-of-mine")
    path = build_call_path(setup.preset, OWN_PATHS[preset.api], model)
    assert setup.endpoint + path == url


@pytest.mark.parametrize(
    ("name", "environ", "row", "words"),
    [
        ("bedrock", {}, {}, "bedrock needs a region: set AWS_REGION or AWS_DEFAULT_REGION, or re"),
        ("vertex", {}, {}, "vertex needs a project: set GOOGLE_CLOUD_PROJECT or"),
        ("azure", {}, {"resource": "r.evil.example/"}, "'r.evil.example/' is no resource: set "),
        ("bedrock", {"AWS_REGION": "x.evil.example:"}, {}, "is no region: set AWS_REGION or"),
        ("azure-classic", {}, {"api_version": "1&x", "resource": "r"}, "'1&x' is no api version"),
    ],
)
def test_a_place_that_is_missing_or_none_is_named_with_what_says_it(name, environ, row, words):
    """A key goes to no host that a value slips into an address."""
    preset = load_presets({name: row})[name]
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        prepare_setup(preset, environ, lambda *_: "key-of-mine")


def test_a_users_row_goes_over_the_variants_too():
    row = {"base_url": "http://127.0.0.1:1", "quirks": {"images": False}}
    preset = load_presets({"bedrock": row})["bedrock"].choose_variant("anthropic.claude-x")
    assert find_endpoint(preset, {}) == "http://127.0.0.1:1/anthropic"
    assert (preset.api, preset.quirks.images) == ("anthropic-messages", False)
    assert preset.quirks.call_ids == "anthropic"


@pytest.mark.parametrize("variants", [[{}], [{"models": "("}], [{"models": "a", "colour": 1}]])
def test_a_wrong_variant_is_named(variants):
    with pytest.raises(ConfigurationError, match=r"providers\.bedrock: .*(variants|colour)"):
        load_presets({"bedrock": {"variants": variants}})
