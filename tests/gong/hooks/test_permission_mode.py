"""A command hook reads the permission mode of the session, under Claude's name for it."""

from __future__ import annotations

import pytest

from gong.hooks.claude import build_input
from gong.hooks.hook import HookCall, HookSession
from gong.policy.approval import find_mode


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("default", "default"),
        ("plan", "plan"),
        ("accept_edits", "acceptEdits"),
        ("dont_ask", "bypassPermissions"),
        ("bypass", "bypassPermissions"),
        ("locked", "dontAsk"),
    ],
)
def test_a_mode_has_the_name_that_does_the_same_in_claude_code(mode, name):
    call = HookCall("session_end", {"reason": "other"}, HookSession("/work", permission_mode=mode))
    assert build_input("SessionEnd", call)["permission_mode"] == name


def test_a_policy_without_modes_counts_as_default():
    assert find_mode(object()) == "default"
