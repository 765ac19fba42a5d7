from __future__ import annotations

import msgspec

from gong.policy.danger import DangerPolicy
from gong.policy.decision import Verdict, allow_all
from gong.tools.builtin import build_registry
from gong.tools.tool import PreparedCall
from tape.model.entries import ToolCall


def prepared(name: str, **arguments) -> PreparedCall:
    call = ToolCall("c1", name, msgspec.Raw(msgspec.json.encode(arguments)))
    found = build_registry().prepare(call)
    assert isinstance(found, PreparedCall)
    return found


async def refuse_all(prepared: PreparedCall) -> Verdict:
    return Verdict(allowed=False, text="asked above")


async def test_a_dangerous_command_is_refused_before_anyone_is_asked_m097():
    """M097: the gate stands below rules, modes and answers; not even allowing all opens it."""
    floor = DangerPolicy(allow_all, "/home/ada/project", "/home/ada")
    verdict = await floor(prepared("bash", command="rm -rf /"))
    assert not verdict.allowed
    assert "dangerous command blocked" in verdict.text


async def test_every_other_call_is_left_to_the_rules_above():
    floor = DangerPolicy(refuse_all, "/home/ada/project", "/home/ada")
    for call in (prepared("bash", command="ls"), prepared("read", path="rm -rf /")):
        assert await floor(call) == Verdict(allowed=False, text="asked above")
