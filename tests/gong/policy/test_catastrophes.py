"""What cannot be undone is refused in every mode, however it is written."""

from __future__ import annotations

import pytest

from gong.config import PermissionSettings
from gong.policy.permissions import build_policy
from tests.gong.policy.catastrophes import ASKED, REFUSED, RUN


@pytest.fixture(scope="module")
def judge():
    def judge_one(command, mode="default"):
        settings = PermissionSettings(mode=mode)
        policy = build_policy(settings, "/home/ada/work", {"HOME": "/home/ada"})
        return policy.judge("bash", {"command": command})

    return judge_one


@pytest.mark.parametrize("command", REFUSED.strip().split("\n"))
@pytest.mark.parametrize("mode", ["default", "accept_edits", "dont_ask", "bypass"])
def test_a_catastrophe_is_refused(judge, command, mode):
    """M097 C17: the floor, in every mode."""
    ruling = judge(command, mode)
    assert (ruling.decision, ruling.by) == ("deny", "danger")


@pytest.mark.parametrize("command", ASKED.strip().split("\n"))
def test_what_is_close_to_one_asks(judge, command):
    assert judge(command).decision == "ask"


@pytest.mark.parametrize("command", RUN.strip().split("\n"))
def test_what_only_reads_runs(judge, command):
    assert judge(command).decision == "allow"
