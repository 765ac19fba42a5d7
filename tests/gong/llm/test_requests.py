"""What a request says, on every wire: sampling, metadata, pictures, tools of free text, choices."""

import json
from base64 import b64encode

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong.errors import ConfigurationError, InvalidRequest
from gong.llm import (
    Client,
    Grammar,
    Pictures,
    Request,
    ToolChoice,
    ToolSpec,
    UnsupportedToolChoice,
    generate,
)
from gong.llm.models import load_presets
from tape.context.view import Message
from tape.errors import NotFound
from tape.model.entries import BlobRef, Image, Text, ToolCall
from tests.wires.server import Reply, WireServer
from tests.wires.table import WIRES, every_wire

MODELS = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-6.1-sol",
    "openai-chat": "gpt-6.1-sol",
    "google": "gemini-3.8-flash",
    "bedrock-converse": "us.amazon.nova-2-lite-v1:0",
}
HELLO = Request(model="", messages=(Message("user", (Text("hello"),)),))
PNG = b"\x89PNG\r\n\x1a\n and what follows"
OBJECT = Raw(b'{"type":"object","properties":{"input":{"type":"string"}}}')
LARK = Grammar("lark", 'start: "a"+')
PATCH = ToolSpec("patch", "Patch files.", OBJECT, LARK)
PRESETS = load_presets({})


def sent(name, request=HELLO, model=None, **fields):
    """Return the body that a request to a provider has."""
    asked = replace(request, **fields)
    body = Client.from_env({}).body(f"{name}/{model or MODELS[name]}", asked)
    return json.loads(body)


async def answered(wire, model=None, presets=None, **fields):
    """Return the answer to a request, and the body it had."""
    async with WireServer(Reply(wire.said("x"))) as server:
        variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
        async with Client.from_env({variable: server.url}, presets=presets) as client:
            name = model or MODELS[wire.preset]
            asked = replace(HELLO, model=name, provider=wire.preset, **fields)
            answer = await client.complete(asked)
        return answer, server.requests[0].body


@every_wire
async def test_top_p_reaches_the_body(wire):
    """M152."""
    answer, body = await answered(wire, top_p=0.5)
    settings = {"google": "generationConfig", "bedrock-converse": "inferenceConfig"}
    name = settings.get(wire.preset)
    given = body[name]["topP"] if name else body["top_p"]
    assert (given, answer.warnings) == (0.5, ())


@pytest.mark.parametrize(
    ("wire", "options", "kept", "warns"),
    [
        (WIRES[0], b"{}", {"user_id": "u"}, "anthropic was not sent metadata: it takes nothing"),
        (WIRES[1], b"{}", {"user_id": "u", "run": "7"}, None),
        (WIRES[2], b"{}", None, 'openai-chat was not sent metadata: it goes with the option "s'),
        (WIRES[2], b'{"store":true}', {"user_id": "u", "run": "7"}, None),
        (WIRES[3], b"{}", None, "google was not sent metadata: its API has no place for it"),
    ],
)
async def test_metadata_goes_where_the_api_has_it_and_elsewhere_warns(wire, options, kept, warns):
    """M152: a field that is left out is told of, and the call goes on."""
    metadata = {"user_id": "u", "run": "7"}
    answer, body = await answered(wire, metadata=metadata, options=Raw(options))
    assert (answer.text, body.get("metadata")) == ("x", kept)
    assert [one.startswith(warns or "?") for one in answer.warnings] == [True] * bool(warns)


async def test_a_users_id_alone_is_all_anthropic_wants():
    answer, body = await answered(WIRES[0], metadata={"user_id": "u"})
    assert (body["metadata"], answer.warnings) == ({"user_id": "u"}, ())


@every_wire
async def test_a_request_that_is_sent_whole_warns_of_nothing(wire):
    fields = {"temperature": 0.5, "max_tokens": 9, "reasoning_effort": None, "system": "Be brief."}
    answer, _ = await answered(wire, **fields)
    assert answer.warnings == ()


@pytest.mark.parametrize(
    ("wire", "model", "fields", "warns"),
    [
        (WIRES[0], "claude-opus-5", {"temperature": 0.5}, "temperature: with thinking, and"),
        (WIRES[0], "claude-opus-5", {"top_p": 0.5}, "top_p: with thinking, and"),
        (WIRES[0], None, {"temperature": 0.5, "top_p": 0.5}, "top_p: it goes beside temperature"),
        (
            WIRES[0],
            "claude-opus-5",
            {"reasoning_effort": "low", "tools": (PATCH,), "tool_choice": ToolChoice("required")},
            "reasoning_effort: a tool call that is forced excludes thinking",
        ),
        (WIRES[3], "gemini-2.0-flash", {"reasoning_effort": "low"}, "reasoning_effort: gemini-2."),
    ],
)
async def test_what_a_model_does_not_take_is_left_out_with_a_warning(wire, model, fields, warns):
    answer, body = await answered(wire, model, **fields)
    (warning,) = answer.warnings
    assert warning.startswith(f"{wire.preset} was not sent {warns}")
    assert warns.partition(":")[0] not in body


CHOICES = {
    "anthropic": [{"type": "any"}, {"type": "tool", "name": "patch"}],
    "openai": ["required", {"type": "custom", "name": "patch"}],
    "openai-chat": ["required", {"type": "custom", "custom": {"name": "patch"}}],
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_forced_call_is_sent_in_the_apis_words_and_excludes_thinking_on_anthropic(name):
    """M152: tool choice required and named."""
    for choice, expected in zip(("required", "named"), CHOICES[name], strict=True):
        wanted = ToolChoice(choice, "patch" if choice == "named" else None)
        model = {"anthropic": "claude-opus-5"}.get(name)
        fields = {"tools": (PATCH,), "tool_choice": wanted, "reasoning_effort": "low"}
        body = sent(name, model=model, **fields)
        assert body["tool_choice"] == expected
        assert ("thinking" in body, "output_config" in body) == (False, False)


async def test_a_choice_the_provider_does_not_support_is_refused_before_the_call():
    """M152: supports_tool_choice, UnsupportedToolChoice."""
    presets = {**PRESETS, "openai-chat": replace(PRESETS["openai-chat"])}
    quirks = replace(PRESETS["openai-chat"].quirks, tool_choices=("auto", "none"))
    presets["openai-chat"] = replace(PRESETS["openai-chat"], quirks=quirks)
    client = Client.from_env({"OPENAI_API_KEY": "k"}, presets=presets)
    provider, _ = client.resolve("openai-chat/m")
    modes = ("auto", "none", "required", "named")
    assert [provider.supports_tool_choice(mode) for mode in modes] == [True, True, False, False]
    asked = replace(HELLO, model="m", tools=(PATCH,), tool_choice=ToolChoice("required"))
    with pytest.raises(UnsupportedToolChoice, match='takes no tool choice "required"') as caught:
        await client.complete(asked, provider)
    assert isinstance(caught.value, InvalidRequest)
    answer, _ = await answered(WIRES[2], presets=presets, tools=(PATCH,))
    assert answer.text == "x"


def test_every_adapter_takes_every_choice_by_default():
    client = Client.from_env(dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), "k"))
    for name in ("anthropic", "openai", "openai-chat"):
        provider, _ = client.resolve(f"{name}/m")
        assert all(map(provider.supports_tool_choice, ("auto", "none", "required", "named")))


BY_ADDRESS = {
    "anthropic": {"type": "image", "source": {"type": "url", "url": "https://x.example/a.jpg"}},
    "openai": {
        "type": "input_image",
        "detail": "low",
        "image_url": "https://x.example/a.jpg",
    },
    "openai-chat": {
        "type": "image_url",
        "image_url": {"url": "https://x.example/a.jpg", "detail": "low"},
    },
    "google": {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x.example/a.jpg"}},
}


def said_of(name, body):
    """Return the parts of the first message."""
    (message,) = body[{"openai": "input", "google": "contents"}.get(name, "messages")]
    return message["parts" if name == "google" else "content"]


@pytest.mark.parametrize("name", BY_ADDRESS)
def test_a_picture_by_address_goes_as_its_address(name):
    """M152: images by url."""
    picture = Pictures().image("https://x.example/a.jpg", detail="low")
    body = sent(name, messages=(Message("user", (Text("what?"), picture)),))
    part = dict(said_of(name, body)[1])
    part.pop("cache_control", None)
    assert part == BY_ADDRESS[name]
    assert "$url" not in json.dumps(body)


@pytest.mark.parametrize("name", BY_ADDRESS)
def test_a_picture_of_a_file_or_bytes_goes_as_base64(name, tmp_path, monkeypatch):
    """M152: images by path and by data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.png").write_bytes(PNG)
    data = b64encode(PNG).decode()
    sources = (
        *(str(tmp_path / "a.png"), "./a.png", "~/a.png"),
        *(tmp_path / "a.png", PNG, f"data:image/png;base64,{data}"),
    )
    for source in sources:
        pictures = Pictures()
        picture = pictures.image(source, detail="high")
        message = Message("user", (Text("what?"), picture))
        body = sent(name, messages=(message,), load=pictures.load)
        assert data in json.dumps(said_of(name, body)[1]), source
        assert "image/png" in json.dumps(said_of(name, body)[1])
        assert ("high" in json.dumps(body)) == name.startswith("openai")


@pytest.mark.parametrize(
    ("name", "data", "mime"),
    [
        ("a.png", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("a", b"GIF89a..", "image/gif"),
        ("a", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ("a.JPG", b"?", "image/jpeg"),
        ("a", b"?", "image/png"),
    ],
)
def test_the_kind_of_a_picture_is_read_from_its_bytes_then_its_name(tmp_path, name, data, mime):
    (tmp_path / name).write_bytes(data)
    pictures = Pictures()
    assert pictures.image(tmp_path / name).mime == mime
    assert pictures.image(tmp_path / name, "image/x").mime == "image/x"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("a.png", "'a.png' is not a picture: give an http(s) address, or a file as ./a.png"),
        ("./none.png", "cannot read the picture ./none.png: No such file"),
        ("ftp://x/a.png", "is not a picture"),
        ("data:image/png;base64,?", "is base64"),
    ],
)
def test_an_invalid_picture_is_reported_before_the_call(source, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        Pictures().image(source)
    assert says in str(caught.value)


def test_pictures_of_somebody_else_are_not_found():
    with pytest.raises(NotFound):
        Pictures().load(BlobRef("0" * 64, 3))


@every_wire
async def test_a_prompt_takes_pictures_along(wire):
    async with WireServer(Reply(wire.said("A cat."))) as server:
        variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
        client = Client.from_env({variable: server.url})
        pictures = [PNG, "https://x.example/a.jpg"]
        model = f"{wire.preset}/m"
        result = await generate(model, prompt="what?", pictures=pictures, client=client)
        await client.close()
        body = json.dumps(server.requests[0].body)
    assert result.text == "A cat."
    assert [b64encode(PNG).decode() in body, "https://x.example/a.jpg" in body] == [True, True]
    with pytest.raises(ConfigurationError, match="pictures go with a prompt"):
        await generate("offline/rules", messages=HELLO.messages, pictures=[PNG])


def patched(*content, call_id="c_1_0"):
    """Return a history in which the tool was used."""
    call = ToolCall(id=call_id, name="patch", **dict(content))
    return (
        *HELLO.messages,
        Message("assistant", (call,)),
        Message("tool", (Text("done"),), call_id, "patch"),
    )


def test_a_tool_of_free_text_is_sent_with_its_grammar_on_both_openai_wires():
    told = {"name": "patch", "description": "Patch files."}
    grammar = {"syntax": "lark", "definition": 'start: "a"+'}
    assert sent("openai", tools=(PATCH,))["tools"] == [
        {"type": "custom", **told, "format": {"type": "grammar", **grammar}}
    ]
    assert sent("openai-chat", tools=(PATCH,))["tools"] == [
        {"type": "custom", "custom": {**told, "format": {"type": "grammar", "grammar": grammar}}}
    ]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *(("openai", "gpt-4o"), ("openai", "o3"), ("openai", "gpt-5-chat-latest")),
        *(("openai-chat", "gpt-4.1"), ("groq", "openai/gpt-oss-120b"), ("deepseek", "m")),
        *(("anthropic", "claude-opus-5"), ("google", "gemini-3.8-flash")),
    ],
)
def test_others_get_the_same_tool_in_json(name, model):
    said = json.dumps(sent(name, model=model, tools=(PATCH,))["tools"])
    assert "grammar" not in said
    assert '"input"' in said


@pytest.mark.parametrize(
    "content",
    [
        {"args_text": "*** Begin"},
        {"args": Raw(b'{"input": "*** Begin"}')},
        {"args": Raw(b'{"patch": "*** Begin"}')},
    ],
)
def test_earlier_calls_of_it_go_back_as_text_with_outputs_of_their_kind(content):
    """Also calls that another model made in JSON."""
    history = patched(*content.items())
    call, output = sent("openai", messages=history, tools=(PATCH,))["input"][1:]
    assert (call["type"], call["input"]) == ("custom_tool_call", "*** Begin")
    assert (output["type"], output["call_id"]) == ("custom_tool_call_output", call["call_id"])
    answer = sent("openai-chat", messages=history, tools=(PATCH,))["messages"][1]
    (call,) = answer["tool_calls"]
    assert (call["type"], call["custom"]) == ("custom", {"name": "patch", "input": "*** Begin"})


def test_a_free_text_that_happens_to_be_json_goes_back_as_it_came():
    own = {"args": Raw(b'{"a": "b"}'), "wire": Raw(b'{"type":"custom_tool_call","id":"ctc_1"}')}
    call = sent("openai", messages=patched(*own.items()), tools=(PATCH,))["input"][1]
    assert call["input"] == '{"a": "b"}'


def test_a_tool_without_a_grammar_looks_as_it_did():
    body = json.loads(Client.from_env({}).body("offline/rules", replace(HELLO, tools=(PATCH,))))
    assert body["tools"][0]["freeform"] == {"syntax": "lark", "definition": 'start: "a"+'}
    plain = replace(PATCH, freeform=None)
    body = json.loads(Client.from_env({}).body("offline/rules", replace(HELLO, tools=(plain,))))
    assert body["tools"][0].keys() == {"name", "description", "parameters"}


def test_a_picture_block_says_nothing_new_on_a_tape():
    """The durable words stay: an Image with notes in `wire`."""
    picture = Pictures().image("https://x.example/p", "image/webp")
    assert type(picture) is Image
    assert (picture.mime, bytes(picture.wire)) == (
        "image/webp",
        b'{"$url":"https://x.example/p"}',
    )


OPTIONS = {
    "anthropic": ({"service_tier": "auto", "made_later": {"x": [1]}}, "messages"),
    "openai": ({"text": {"verbosity": "low"}}, "input"),
    "openai-chat": ({"seed": 1}, "max_completion_tokens"),
    "google": ({"safetySettings": [{"category": "X"}]}, "toolConfig"),
    "bedrock-converse": ({"serviceTier": {"type": "flex"}}, "inferenceConfig"),
}


@every_wire
async def test_options_of_the_provider_reach_the_body_and_those_of_others_do_not(wire):
    """M131 M152: provider_options."""
    own, _ = OPTIONS[wire.preset]
    async with WireServer(Reply(wire.said("x"))) as server:
        variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
        async with Client.from_env({variable: server.url}) as client:
            model = f"{wire.preset}/{MODELS[wire.preset]}"
            given = {wire.preset: own, "other": {"never": 1}}
            await generate(model, prompt="x", client=client, provider_options=given)
        (body,) = (one.body for one in server.requests)
    assert {name: body.get(name) for name in own} == own
    assert "never" not in body


@every_wire
async def test_what_gong_sets_itself_is_refused_by_name(wire):
    _, reserved = OPTIONS[wire.preset]
    variable = f"{wire.preset.upper().replace('-', '_')}_BASE_URL"
    async with Client.from_env({variable: "http://127.0.0.1:9"}) as client:
        given = {wire.preset: {"made_later": 1, reserved: []}}
        with pytest.raises(ConfigurationError, match=f"may not set {reserved}: gong does"):
            await generate(f"{wire.preset}/m", prompt="x", client=client, provider_options=given)


async def test_beta_headers_of_anthropic_are_no_part_of_the_body():
    """M130."""
    async with WireServer(Reply(WIRES[0].said("x"))) as server:
        async with Client.from_env({"ANTHROPIC_BASE_URL": server.url}) as client:
            given = {"anthropic": {"beta_headers": ["one"], "auto_cache": False}}
            name = "anthropic/claude-haiku-4-5"
            await generate(name, prompt="x", client=client, provider_options=given)
        (seen,) = server.requests
    assert seen.headers["anthropic-beta"] == "one"
    assert not {"beta_headers", "auto_cache"} & seen.body.keys()
    assert "cache_control" not in json.dumps(seen.body)


SEARCHES = {
    "anthropic": {"type": "web_search_20250305", "name": "web_search"},
    "openai": {"type": "web_search"},
    "google": {"google_search": {}},
}


@pytest.mark.parametrize("name", SEARCHES)
def test_tools_that_the_provider_runs_go_beside_ours(name):
    """M195: they are named in provider_options."""
    options = Raw(json.dumps({"tools": [SEARCHES[name]], "made_later": 1}).encode())
    ours = sent(name, tools=(PATCH,))
    both = sent(name, tools=(PATCH,), options=options)
    assert both["made_later"] == 1
    assert SEARCHES[name] in both["tools"]
    assert [tool for tool in both["tools"] if tool != SEARCHES[name]] == ours["tools"]
    assert sent(name, options=options)["tools"] == [SEARCHES[name]]
    config = both.get("toolConfig", {})
    assert config.get("includeServerSideToolInvocations") == (True if name == "google" else None)


@pytest.mark.parametrize("tools", [3, {}, [{}], ["x"], [{"type": "function", "name": "f"}]])
async def test_functions_of_a_caller_are_no_tools_of_the_provider(tools):
    async with Client.from_env({"OPENAI_BASE_URL": "http://127.0.0.1:9"}) as client:
        given = {"openai": {"tools": tools}}
        with pytest.raises(ConfigurationError, match=r"provider_options\.tools lists what"):
            await generate("openai/m", prompt="x", client=client, provider_options=given)
