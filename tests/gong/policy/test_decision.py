"""A policy that is asked: what it decides stands, and what fails in it refuses the call."""

from __future__ import annotations

import pytest

from gong.policy.decision import Verdict, allow_all, decide_call
from tape.model.entries import Approval
from tests.gong.policy.test_floor import prepared


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words for it")


async def refuse(_):
    return Verdict(allowed=False, text="not today")


async def refuse_in_silence(_):
    return Verdict(allowed=False)


async def answer_nothing(_):
    return None


async def test_the_decision_of_a_policy_is_final():
    call = prepared("bash", command="ls")
    assert await decide_call(allow_all, call) == Verdict(allowed=True)
    approval = Approval("c1", "deny", "policy", reason="not today")
    assert await decide_call(refuse, call) == Verdict(False, "not today", approval)


async def test_a_refusal_without_words_says_that_it_is_one():
    verdict = await decide_call(refuse_in_silence, prepared("bash", command="ls"))
    text = "This call was refused; no reason was given."
    assert verdict == Verdict(False, text, Approval("c1", "deny", "policy"))


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ValueError("zip() argument\n2 is longer"), "ValueError: zip() argument 2 is longer"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (KeyError("name"), "KeyError: 'name'"),
        (TimeoutError(), "TimeoutError"),
    ],
)
async def test_a_policy_that_raises_refuses_the_call_and_says_why(error, failure):
    async def broken(_):
        raise error

    verdict = await decide_call(broken, prepared("bash", command="ls"))
    text = f"Not run: the policy that decides about calls failed: {failure}"
    approval = Approval("c1", "deny", "failure", reason=failure)
    assert verdict._replace(trace="") == Verdict(False, text, approval)
    assert verdict.trace.startswith("Traceback (most recent call last):\n")
    assert ", in broken\n" in verdict.trace


async def test_an_error_that_cannot_be_printed_and_an_answer_that_is_none_refuse_too():
    async def broken(_):
        raise Unprintable

    call = prepared("bash", command="ls")
    assert not (await decide_call(broken, call)).allowed
    verdict = await decide_call(answer_nothing, call)
    assert not verdict.allowed
    assert verdict.approval.reason == "TypeError: a policy answers a Verdict, not NoneType"
