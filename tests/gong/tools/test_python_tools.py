"""Tools of other packages, named by `python_tools`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from gong.errors import ConfigurationError
from gong.tools.python_tools import load_python_tools

MODULE = """
from msgspec import Struct
from gong.tools.tool import AgentTool, ToolOutcome
from tape.model.entries import Text

class Where(Struct):
    city: str

async def run_weather(arguments, context):
    return ToolOutcome((Text(f"rain in {arguments.city}"),))

weather = AgentTool("weather", "Tells the weather.", Where, run_weather)

def build():
    return [weather]

wrong = ["weather"]
nothing = 3
"""


@pytest.fixture
def package(tmp_path):
    """A package with an entry point, in a folder of its own."""
    (tmp_path / "my_tools.py").write_text(MODULE)
    facts = tmp_path / "my_tools-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: my-tools\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[gong.tools]\nteam = my_tools:build\n")
    return tmp_path


@pytest.mark.parametrize("name", ["my_tools:weather", "my_tools:build", "team"])
def test_a_named_tool_is_offered_and_runs(package, name):
    home = package / "home"
    (home / ".config/gong").mkdir(parents=True)
    (home / ".config/gong/config.toml").write_text(f'python_tools = ["{name}"]\n')
    calls = [{"name": "weather", "args": {"city": "Bergen"}}]
    (package / "script.json").write_text(json.dumps([{"tool_calls": calls}, {"text": "done"}]))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gong", "chat", "-p", "go", "--yolo", "-v"),
            *("-m", f"scripted/{package}/script.json", "--output-format", "stream-json"),
        ],
        cwd=home,
        env={"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rain in Bergen" in done.stdout
    alone = subprocess.run(
        [sys.executable, "-m", "gong", "tool", "weather", '{"city": "Bergen"}'],
        cwd=home,
        env={"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rain in Bergen" in alone.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_tools:gone", "AttributeError"),
        ("no_such_module", "ModuleNotFoundError"),
        ("my_tools:wrong", "'weather' is no AgentTool"),
        ("my_tools:nothing", "is no AgentTool"),
    ],
)
def test_what_is_no_tool_is_an_error_that_names_it(package, monkeypatch, name, said):
    monkeypatch.syspath_prepend(package)
    with pytest.raises(ConfigurationError, match="python_tools: ") as caught:
        load_python_tools([name])
    assert said in str(caught.value)
