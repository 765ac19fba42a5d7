"""M128-M133: the whole request of each profile against a file that people can read.

The system prompt is there as lines, and tools as their names. `GONG_WRITE_GOLDEN=1` writes the
files anew.
"""

import json
import os
from pathlib import Path

import pytest

from gong.agent.front_end import ModelFactory
from gong.agent.request import prepare_request
from gong.config import Settings
from gong.context.instructions import InstructionFile, Instructions
from gong.context.system import GitRepository, Surroundings
from gong.llm.client import Client
from gong.llm.model_names import ModelNames
from gong.tools.builtin import build_registry

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai/gpt-5",
    "gemini": "google/gemini-2.5-pro",
    "default": "deepseek/deepseek-v4-pro",
}
WHERE = Surroundings(
    "/work",
    "linux",
    "Linux 6",
    "2026-11-22",
    GitRepository("main", "0123456789abcdef", True, 1, 2, ("0123456 Add a file",)),
)


def to_readable(value, key=""):
    """Return a body with texts of many lines as lists, and tools as names."""
    if key in {"tools", "functionDeclarations"}:
        tools = value[0].get("functionDeclarations", value)
        return [tool.get("function", tool)["name"] for tool in tools]
    if isinstance(value, dict):
        return {name: to_readable(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [to_readable(one) for one in value]
    return value.split("\n") if isinstance(value, str) and "\n" in value else value


@pytest.mark.parametrize("profile", MODELS)
def test_the_body_of_a_request(profile):
    settings = Settings(effort="medium")
    names = ModelNames.from_settings(settings)
    environ = {"HOME": "/nobody"}
    files = (InstructionFile("/work/AGENTS.md", "AGENTS.md", "Use tabs.\n"),)
    read = dict.fromkeys(MODELS, Instructions(files))
    client = Client.from_env(environ, presets=names.presets)
    models = ModelFactory(names, client, WHERE, environ, settings, _instructions=read)
    model = models.describe(MODELS[profile])
    tools = model.equip(build_registry(), settings.tuning).specs()
    bodies = [
        client.body(
            model.name,
            prepare_request(model, tools, (), (), session="a" * 32, load=bytes).request,
        )
        for _ in range(2)
    ]
    assert bodies[0] == bodies[1]
    text = json.dumps(to_readable(json.loads(bodies[0])), indent=2, ensure_ascii=False) + "\n"
    file = GOLDEN / f"{profile}.json"
    if os.environ.get("GONG_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
