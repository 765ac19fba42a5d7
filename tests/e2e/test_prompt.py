"""The prompt and the tools of each profile in the real commands."""

from __future__ import annotations

import pytest

MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai/gpt-5",
    "gemini": "google/gemini-2.5-pro",
    "default": "deepseek/deepseek-v4-pro",
}


def begin(place, *argv):
    return place.run("gong", "chat", "-m", place.script({"text": "one"}), "-p", "go", *argv)


def system_of(request):
    if "system" in request:
        return request["system"][0]["text"]
    if "instructions" in request:
        return request["instructions"]
    if "systemInstruction" in request:
        return request["systemInstruction"]["parts"][0]["text"]
    return request["messages"][0]["content"]


def tools_of(request):
    tools = request.get("tools", [])
    if tools and "functionDeclarations" in tools[0]:
        tools = tools[0]["functionDeclarations"]
    return [tool.get("function", tool)["name"] for tool in tools]


def next_request(place, *argv):
    return place.json("gong", "context", *argv, "--json")["request"]


@pytest.mark.parametrize("profile", MODELS)
def test_each_family_gets_its_tools_and_its_file(place, profile):
    """M128 M129 M130 M131 M136"""
    own = {"anthropic": "CLAUDE.md", "gemini": "GEMINI.md", "openai": ".codex/instructions.md"}
    (place.folder / ".codex").mkdir()
    for name in ("AGENTS.md", *own.values()):
        (place.folder / name).write_text(f"text of {name}\n")
    begin(place)
    request = next_request(place, "-m", MODELS[profile])
    tools, system = tools_of(request), system_of(request)
    editor = {"openai": "apply_patch", "default": "edit"}.get(profile, "edit_file")
    assert editor in tools
    assert all(f"- `{name}`: " in system for name in tools)
    assert "text of AGENTS.md" in system
    assert [one for one in own.values() if f"text of {one}" in system] == [
        own[one] for one in own if one == profile
    ]
    plain = next_request(place, "-m", MODELS[profile], "--tools", "default")
    assert tools_of(plain)[:4] == ["read", "write", "edit", "bash"]
    forced = next_request(place, "-m", MODELS[profile], "--tools", "gemini")
    assert "list_dir" in tools_of(forced)


def test_named_tools_are_the_only_ones(place):
    begin(place)
    request = next_request(place, "-m", MODELS["anthropic"], "--tools", "read,grep")
    assert tools_of(request) == ["read", "grep"]
    assert "edit_file" not in system_of(request)


def test_the_options_of_the_prompt(place):
    """M133"""
    begin(place)
    (place.folder / "p.md").write_text("Be a poet.\n")
    text = system_of(
        next_request(
            place,
            *("-m", MODELS["anthropic"], "--system-prompt-file", "p.md"),
            *("--append-system-prompt", "In Latin."),
        )
    )
    assert text.startswith("Be a poet.\n\n<environment>")
    assert text.endswith("\n\nIn Latin.")
    for argv, words in (
        (("--system-prompt", "a", "--system-prompt-file", "p.md"), "cannot be combined"),
        (("--system-prompt-file", "gone.md"), "gone.md cannot be read"),
        (("--no-tools", "--tools", "read"), "cannot be combined"),
    ):
        assert words in place.run("gong", "chat", "-p", "x", *argv, code=2).stderr


def test_no_tools_offers_none(place):
    script = place.script({"tool_calls": [{"name": "ls", "args": {}}]}, {"text": "done"})
    argv = ("-m", script, "-p", "go", "--no-tools", "--output-format", "stream-json")
    assert "Unknown tool: ls: the tools there are: none" in place.run("gong", *argv).stdout


@pytest.mark.parametrize("profile", MODELS)
def test_rules_of_another_family_reach_every_model(place, profile):
    """M136 M137: without AGENTS.md, and nobody is told to rename anything."""
    (place.folder / "CLAUDE.md").write_text("text of the project\n")
    assert begin(place).stderr == begin(place, "-c").stderr == ""
    assert "text of the project" in system_of(next_request(place, "-m", MODELS[profile]))


def test_unread_input_is_reported(place):
    (place.folder / "AGENTS.md").symlink_to("/etc/hostname")
    assert "AGENTS.md is not read: it leads out of the project" in begin(place).stderr
    assert "is not read" in place.run("gong", "context").stdout


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("openai/gpt-5", "high", {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("openai/gpt-5", "xhigh", {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("openai/gpt-4o", "high", {"reasoning": None}),
        ("openai-chat/gpt-5", "low", {"reasoning_effort": "low"}),
        ("openai-chat/gpt-4o", "low", {"reasoning_effort": None}),
        (
            "anthropic/claude-sonnet-4-5",
            "medium",
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 64_000},
        ),
        (
            "anthropic/claude-sonnet-5-5",
            "medium",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "medium"},
            },
        ),
        ("anthropic/claude-sonnet-4-5", "none", {"thinking": None, "max_tokens": 64_000}),
        (
            "google/gemini-2.5-pro",
            "medium",
            {
                "generationConfig": {
                    "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}
                }
            },
        ),
        (
            "google/gemini-3.8-flash",
            "low",
            {
                "generationConfig": {
                    "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}
                }
            },
        ),
    ],
)
def test_an_effort_as_each_api_takes_it(place, model, effort, expected):
    """M017 M146"""
    begin(place)
    request = next_request(place, "-m", model, "-e", effort)
    assert {name: request.get(name) for name in expected} == expected


def test_the_effort_of_the_settings(place):
    """M017: at the top, and in a model's own row."""
    begin(place)
    folder = place.home / ".config" / "gong"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        'effort = "low"\n[models."openai/gpt-5"]\neffort = "high"\n'
    )
    assert next_request(place, "-m", "openai/gpt-5")["reasoning"]["effort"] == "high"
    assert next_request(place, "-m", "openai/gpt-6.1-sol")["reasoning"]["effort"] == "low"
    assert "reasoning" not in next_request(place, "-m", "openai/gpt-5", "-e", "none")
    (folder / "config.toml").write_text('effort = "hihg"\n')
    assert "config.toml:1" in place.run("gong", "context", code=2).stderr
