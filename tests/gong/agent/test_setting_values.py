"""Every setting checks its value where it is set: its type, its range, and the caps of C1."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from gong.agent.session_config import SessionConfig
from gong.config import Settings, load_settings, parse_settings
from gong.errors import ConfigurationError
from tests.gong.agent.conftest import seen

FILE = Path("config.toml")
WRONG = ["words", -1, math.nan, math.inf, 10**40, 0.5, True, None, [], b"x", {"a": -1}]
ALLOWED = {
    "max_turns": (0, 10**40),
    "max_tool_rounds_per_input": (0, 10**40),
    "max_cost": (0, 0.5),
    "max_seconds": (0, 0.5),
    "max_output_tokens": (0, 10**40),
    "effort": (None, "high"),
    "default_command_timeout_ms": (None, 1, 600_000),
    "max_command_timeout_ms": (1, 600_000),
    "tool_output_limits": ({}, {"read": 1}),
    "tool_line_limits": ({}, {"read": 1}),
    "read_before_write": (True, False),
    "max_subagent_depth": (0, 10**40),
    "max_subagent_turns": (0, 10**40),
    "max_subagents": (1, 10**40),
    "enable_loop_detection": (True, False),
    "loop_detection_window": (0, 10**40),
}
TOO_MUCH = {
    "default_command_timeout_ms": (0, 600_001),
    "max_command_timeout_ms": (0, 600_001),
    "max_subagents": (0,),
    "tool_output_limits": ({"read": 0}, {"read": "1"}, {5: 1}),
    "tool_line_limits": ({"read": 0}, {"read": "1"}, {5: 1}),
    "effort": ("", "hihg"),
}


def test_the_table_has_every_limit_of_a_session():
    assert [one.name for one in fields(SessionConfig)] == [*ALLOWED]


@pytest.mark.parametrize("name", ALLOWED)
async def test_a_limit_of_a_session_takes_its_values_only(stage, name):
    """What is refused names the limit and its value, and nothing has changed."""
    session = await stage.session({"text": "done"})
    for value in ALLOWED[name]:
        session.configure(**{name: value})
        assert getattr(session.setup.config, name) == value
    before = session.setup
    for value in (*WRONG, *TOO_MUCH.get(name, ())):
        if any(value is one or (value == one and value is not True) for one in ALLOWED[name]):
            continue
        with pytest.raises(ConfigurationError) as caught:
            session.configure(**{name: value})
        assert str(caught.value).startswith(f"{name} is {value!r}: "), value
    assert session.setup is before
    assert [one.kind for one in await seen(session, "go")][-1] == "agent_end"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_turn", "did you mean max_turns or"),
        ("loop_detection", "did you mean loop_detection_window or enable_loop_detection?"),
        ("nosuch", "use max_turns, max_tool_rounds_per_input, "),
        ("", "use max_turns, "),
    ],
)
async def test_a_limit_that_is_unknown_is_named_with_those_near_it(stage, name, hint):
    session = await stage.session()
    before = session.setup
    with pytest.raises(ConfigurationError) as caught:
        session.configure(**{"max_seconds": 5, name: 1})
    assert str(caught.value).startswith(f"unknown setting {name}: {hint}")
    assert session.setup is before


def list_leaves(kind=Settings, place=()):
    """Yield each setting that is no table: its keys, and its type."""
    for one in msgspec.structs.fields(kind):
        if isinstance(one.type, type) and issubclass(one.type, msgspec.Struct):
            yield from list_leaves(one.type, (*place, one.encode_name))
        else:
            yield (*place, one.encode_name), one.type


NUMBERS = ("-1", "nan", "inf", "1e300")


@pytest.mark.parametrize("place", [keys for keys, _ in list_leaves()], ids=".".join)
@pytest.mark.parametrize("value", [*NUMBERS, "{ a = { b = -1 } }", "[[[]]]", "1979-05-27"])
def test_no_setting_of_a_file_takes_a_senseless_value(place, value):
    """The error names file, line and key."""
    if place in {("providers",), ("models",), ("web", "search", "body")}:  # tables of their own
        return
    text = f"{'.'.join(place)} = {value}\n"
    with pytest.raises(ConfigurationError) as caught:
        parse_settings(FILE, text.encode())
    assert str(caught.value).startswith("config.toml:1: ")
    assert place[0] in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "default_command_timeout_ms = 600001",
        "max_command_timeout_ms = 0",
        "compaction.high_water = 1.01",
        "compaction.limit = 0",
        "context_window = 0",
        "max_subagents = 0",
        "max_image_size = 0",
        "tools = []",
        "truncation.max_lines = 0",
        'effort = "hihg"',
    ],
)
def test_a_setting_of_a_file_keeps_to_its_range(line):
    with pytest.raises(ConfigurationError, match=r"^config.toml:1: "):
        parse_settings(FILE, line.encode())


@pytest.mark.parametrize(
    ("flag", "value"), [("max_cost", math.nan), ("max_seconds", math.inf), ("max_turns", -1)]
)
def test_a_flag_keeps_to_the_range_of_its_setting(tmp_path, flag, value):
    with pytest.raises(ConfigurationError, match=f"^{flag} is {value}: expected"):
        load_settings({"HOME": str(tmp_path)}, {flag: value})


def test_a_flag_may_ask_for_no_tool(tmp_path):
    """--no-tools; in a file an empty list is a slip."""
    assert load_settings({"HOME": str(tmp_path)}, {"tools": ()}).tools == ()


CALLS = {
    "use_model": [5, None, "", b"x", "no-such-model"],
    "use_effort": [5, "", "hihg", True],
    "use_tools": ["read", [], [5], 5, None, ["nothing"]],
    "use_policy": [None, 5],
    "use_permission": [None, 5, "", "nothing"],
    "require_object": [5, [], {}, {"type": "string"}],
    "ask_person": [-1, math.nan, math.inf, "5", True],
}


@pytest.mark.parametrize("method", CALLS)
async def test_a_method_of_a_session_refuses_what_it_cannot_use(stage, method):
    session = await stage.session({"text": "done"})
    for value in CALLS[method]:
        with pytest.raises(ConfigurationError):
            getattr(session, method)(value)
    assert [one.kind for one in await seen(session, "go")][-1] == "agent_end"
