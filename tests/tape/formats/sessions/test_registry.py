"""The rows of other agents: what they name is there, and all that is derived from them."""

from __future__ import annotations

import pytest

from tape.formats.sessions.loading import load_reader, load_writer
from tape.formats.sessions.registry import SESSION_FORMATS
from tape.ids import compute_tape_id
from tape.places.reference import parse_reference

HOME = "/home/me"


@pytest.mark.parametrize("tool", SESSION_FORMATS)
def test_a_row_names_a_reader(tool):
    reader = load_reader(tool)
    assert callable(reader.read_session)
    assert not reader.is_session_line({})


@pytest.mark.parametrize("tool", [tool for tool, row in SESSION_FORMATS.items() if row.writer])
def test_a_row_names_a_writer(tool):
    writer = load_writer(tool)
    assert callable(writer.write_session)
    assert hasattr(writer, "build_file_name") is SESSION_FORMATS[tool].writer.is_installed


@pytest.mark.parametrize("tool", SESSION_FORMATS)
def test_an_agent_is_the_prefix_of_references(tool):
    assert parse_reference(f"{tool}:a-1:main").tape == compute_tape_id(tool, "a-1")


@pytest.mark.parametrize(
    ("tool", "variables", "folder"),
    [
        ("claude", {}, "/home/me/.claude"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/c"}, "/c"),
        ("claude", {"CLAUDE_CONFIG_DIR": ""}, "/home/me/.claude"),
        ("amp", {"XDG_DATA_HOME": "/data"}, "/data/amp"),
        ("goose", {"XDG_DATA_HOME": "/data"}, "/data/goose"),
        ("goose", {"XDG_DATA_HOME": "/data", "GOOSE_PATH_ROOT": "/g"}, "/g/data"),
        ("qwen", {"QWEN_HOME": "/q"}, "/q"),
        ("qwen", {"QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "/run"}, "/run"),
        ("aider", {}, None),
    ],
)
def test_a_folder_is_the_first_whose_variable_is_set(tool, variables, folder):
    assert SESSION_FORMATS[tool].find_folder(variables, HOME) == folder
