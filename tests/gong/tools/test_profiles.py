"""M128-M131: what each family is offered, and how a registry gets it."""

from dataclasses import replace

import msgspec
import pytest

from gong.tool_settings import ToolSettings
from gong.tools.builtin import SESSION_TOOLS, build_registry
from gong.tools.profiles import PROFILES, apply_profile
from gong.tools.tool import PreparedCall
from tape.model.entries import ToolCall

NAMES = {
    "default": "read write edit bash grep find ls",
    "anthropic": "read_file write_file edit_file shell grep glob Task TaskOutput",
    "openai": (
        "read_file apply_patch write_file shell grep glob spawn_agent send_input wait close_agent"
    ),
    "gemini": (
        "read_file read_many_files write_file edit_file shell grep glob list_dir Task TaskOutput"
    ),
}


def fields(registry, name):
    spec = next(one for one in registry.specs() if one.name == name)
    return set(msgspec.json.decode(spec.parameters)["properties"])


@pytest.mark.parametrize("profile", NAMES)
def test_the_tools_of_a_profile(profile):
    """M128 M129 M130 M131"""
    tools = apply_profile(build_registry(), profile)
    assert " ".join(tools.active) == NAMES[profile]
    assert PROFILES[profile].supports_parallel_tool_calls
    if profile == "anthropic":
        assert "apply_patch" not in tools.active


PARAMETERS = {
    "read": "path offset limit",
    "write": "path content",
    "edit": "path oldText newText",
    "bash": "command timeout run_in_background",
    "grep": "pattern path glob ignoreCase literal context limit",
    "find": "pattern path limit",
    "ls": "path limit",
}
FAMILY_PARAMETERS = {
    "read_file": "file_path offset limit",
    "read_many_files": "paths",
    "write_file": "file_path content",
    "edit_file": "file_path old_string new_string replace_all",
    "apply_patch": "input patch",
    "shell": "command timeout_ms description run_in_background",
    "grep": "pattern path glob_filter case_insensitive max_results output_mode",
    "glob": "pattern path",
    "list_dir": "path depth",
    "spawn_agent": "task agent_type working_dir model max_turns",
    "send_input": "agent_id message",
    "wait": "agent_id timeout_ms",
    "close_agent": "agent_id",
    "Task": "prompt description subagent_type model run_in_background allowed_tools",
    "TaskOutput": "task_id block timeout",
}


@pytest.mark.parametrize("profile", PROFILES)
def test_tools_have_the_parameters_that_their_family_knows(profile):
    """M132 C36: the words are our own, names and parameters are theirs."""
    registry = apply_profile(build_registry(), profile)
    known = PARAMETERS if profile == "default" else FAMILY_PARAMETERS
    for name in registry.active:
        assert fields(registry, name) == set(known[name].split()), name


@pytest.mark.parametrize(("profile", "ms"), [("anthropic", 120_000), ("openai", 10_000)])
def test_a_command_has_the_time_of_its_profile(profile, ms):
    """C1 M129 M130"""
    shell = apply_profile(build_registry(), profile).get("shell")
    assert f"{ms} if absent" in shell.description
    tuned = apply_profile(build_registry(), profile, ToolSettings(default_timeout_ms=7))
    assert "7 if absent" in tuned.get("shell").description


def test_one_name_is_the_tool_that_the_family_knows():
    """M130: grep with three output modes."""
    assert "output_mode" in fields(apply_profile(build_registry(), "anthropic"), "grep")
    assert "ignoreCase" in fields(build_registry(), "grep")
    back = apply_profile(apply_profile(build_registry(), "anthropic"), "default")
    assert fields(back, "grep") == fields(build_registry(), "grep")


def test_the_first_registry_stays_as_it_is():
    first = build_registry()
    before = first.specs()
    apply_profile(first, "openai").register(replace(first.get("read"), name="extra"))
    assert first.specs() == before
    assert first.get("extra") is None


def test_other_active_tools_stay_active():
    tools = build_registry()
    tools.activate(SESSION_TOOLS)
    assert apply_profile(tools, "openai").active[-len(SESSION_TOOLS) :] == SESSION_TOOLS


def test_tools_of_a_host_stay_with_every_profile():
    """M047"""
    tools = build_registry()
    own = replace(tools.get("read"), name="grep", description="Mine.")
    tools.register(own)
    tools.register(replace(own, name="deploy"))
    tools.activate(["deploy"])
    changed = apply_profile(apply_profile(tools, "gemini"), "anthropic")
    assert changed.get("grep") is own
    assert changed.active == (*PROFILES["anthropic"].tools, "Task", "TaskOutput", "deploy")


def test_chosen_tools_stay_with_every_profile():
    tools = build_registry()
    tools.set_active(["read", "grep"])
    assert apply_profile(tools, "openai") is tools


def test_a_tool_that_is_gone_stays_gone():
    tools = build_registry()
    tools.unregister("shell")
    assert "shell" not in apply_profile(tools, "openai").active


@pytest.mark.parametrize(
    ("profile", "called", "runs"),
    [
        ("anthropic", "read", True),
        ("anthropic", "apply_patch", False),
        ("default", "read_file", True),
        ("openai", "compact", False),
    ],
)
def test_a_tool_of_another_profile_runs_when_it_is_called(profile, called, runs):
    """C10: history of another model has its names."""
    tools = apply_profile(build_registry(), profile)
    args = {"path": "a", "file_path": "a", "input": "x"}
    found = tools.prepare(ToolCall("c1", called, msgspec.Raw(msgspec.json.encode(args))))
    assert isinstance(found, PreparedCall) is runs
    tools.set_active(("grep",))  # who chooses tools gets no other
    assert not isinstance(tools.prepare(ToolCall("c1", "read", msgspec.Raw(b"{}"))), PreparedCall)
