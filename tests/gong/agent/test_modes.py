"""The permission mode of a session: changed, on the tape, told, and there again later."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gong.agent.compaction import CompactionRequest
from gong.agent.recorder import find_newest_anchor
from gong.assembly.opening import open_session
from gong.config import PermissionSettings, Settings
from gong.policy.modes import PermissionMode
from tape.model.entries import Approval, Mode
from tests.gong.agent.conftest import call, seen, types

DEFAULT = PermissionSettings()
DONE = {"text": "done"}


def modes(session):
    """Return the modes on the path."""
    return [one.data.permission for one in session.recorder.path if isinstance(one.data, Mode)]


async def continued(stage, *answers, mode="default", named=False):
    """Return the session of the newest tape as `gong chat -c` opens it, and its warnings."""
    await stage.hosts[-1].close()
    script = stage.folder.parent / "again.json"
    script.write_text(json.dumps(answers))
    settings = Settings(model=f"scripted/{script}", permissions=PermissionSettings(mode=mode))
    warnings = []
    front = stage.front_end(settings, {"HOME": str(stage.folder.parent), "PATH": "/usr/bin:/bin"})
    front = replace(front, names_mode=named, warn=warnings.append)
    host = await open_session(front, stage.reopened())
    stage.hosts.append(host)
    return host.session, warnings


async def test_a_change_is_an_entry_before_the_next_call_and_an_event_m175(stage):
    """M175: it holds from the next call on; the tape and the front ends know when."""
    touch = [{"tool_calls": [call("bash", command=f"touch {name}")]} for name in ("one", "two")]
    session = await stage.session(*touch, DONE, permissions=DEFAULT)
    told = []

    def change(event):
        if event.kind == "tool_end" and not told:
            session.use_permission("accept-edits")
        if event.kind == "mode_select":
            told.append((event.previous, event.mode))

    session.subscribe(change)
    await seen(session, "go")
    assert told == [("default", "accept_edits")]
    decided = [one.data for one in session.recorder.path if isinstance(one.data, Mode | Approval)]
    assert [getattr(one, "permission", None) or one.decision for one in decided] == [
        *("deny", "accept_edits", "allow")
    ]
    assert decided[1].tools == session.setup.tools.active
    assert types(session).index("mode") < len(types(session)) - 1


async def test_a_mode_that_somebody_else_changed_counts_at_the_next_prompt(stage):
    """M236: the mode is read from the session at every message, whoever changed it."""
    touch = [{"tool_calls": [call("bash", command=f"touch {name}")]} for name in ("one", "two")]
    session = await stage.session(touch[0], DONE, touch[1], DONE, permissions=DEFAULT)
    await seen(session, "first")
    assert not (stage.folder / "one").exists()
    policy = session.setup.policy
    policy.mode = PermissionMode.ACCEPT_EDITS  # not by the session: its policy is shared
    await seen(session, "second")
    assert (stage.folder / "two").exists()
    assert (session.permission, modes(session)) == ("accept_edits", ["accept_edits"])
    session.use_permission("plan")
    assert session.permission == "plan"


async def test_a_change_before_the_first_prompt_is_recorded_with_it(stage):
    session = await stage.session(DONE, DONE, permissions=DEFAULT)
    session.use_permission("plan")
    session.use_permission("accept_edits")
    await seen(session, "go")
    await seen(session, "on")
    assert modes(session) == ["accept_edits"]
    assert types(session)[-4:] == ["user", "assistant", "user", "assistant"]
    assert types(session)[:3] == ["start", "mode", "user"]


async def test_a_session_without_a_change_has_no_mode_entry(stage):
    session = await stage.session(DONE, permissions=PermissionSettings(mode="accept_edits"))
    await seen(session, "go")
    assert modes(session) == []


@pytest.mark.parametrize("mode", ["accept_edits", "plan", "locked"])
async def test_a_continued_session_has_its_mode_again(stage, mode):
    """The flag wins over the entry, the entry over the settings."""
    session = await stage.session(DONE, permissions=DEFAULT)
    await seen(session, "go")
    session.use_permission(mode)
    session, warnings = await continued(stage, DONE)
    assert (session.permission, warnings) == (mode, [])
    await seen(session, "on")
    assert modes(session) == [mode]
    session, _ = await continued(stage, DONE, mode="default", named=True)
    assert session.permission == "default"
    await seen(session, "on")
    assert modes(session) == [mode, "default"]


@pytest.mark.parametrize("mode", ["bypass", "dont_ask"])
async def test_modes_that_run_commands_unasked_are_never_restored(stage, mode):
    session = await stage.session(DONE, permissions=DEFAULT)
    await seen(session, "go")
    session.use_permission(mode)
    session, warnings = await continued(stage, DONE, mode="accept_edits")
    assert session.permission == "accept_edits"
    assert warnings == [
        (
            f"the session was left in permission mode {mode}, which is never restored: "
            f"it is accept_edits now; --permission {mode} changes that"
        )
    ]
    await seen(session, "on")
    assert modes(session) == [mode, "accept_edits"]


async def test_a_mode_survives_a_compaction_in_the_state_of_its_anchor(stage):
    long = {"text": "x" * 9000}
    session = await stage.session(long, long, {"text": "a summary"}, permissions=DEFAULT)
    session.use_permission("accept_edits")
    await seen(session, "go")
    await seen(session, "on")
    async for _ in session.compact(CompactionRequest("user", "")):
        pass
    anchor = find_newest_anchor(session.recorder.path)
    assert anchor is not None
    assert anchor.state.mode == "accept_edits"
    session, _ = await continued(stage)
    assert session.permission == "accept_edits"
