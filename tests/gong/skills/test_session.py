"""Skills in a session: typed as /name or loaded by the model, under the permission rules."""

from __future__ import annotations

import json

import pytest

from gong import trust
from gong.agent import events
from gong.agent.compaction import CompactionRequest
from gong.config import PermissionSettings, SkillSettings
from gong.errors import ConfigurationError
from tape.model.entries import Context, ToolResult, User, join_texts
from tests.gong.agent.conftest import call, seen, types

DONE = {"text": "done"}
DEFAULT = {"permissions": PermissionSettings()}


def put(stage, name, front="", body="Do it.", place=".claude/skills"):
    """Write a skill of the project and trust it."""
    file = stage.folder / place / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: Does {name}\n{front}\n---\n{body}\n")
    environ = {"HOME": str(stage.folder.parent)}
    trust.trust_project(trust.read_project(str(stage.folder), environ), environ)
    return file


def of(session, kind):
    return [one.data for one in session.recorder.path if isinstance(one.data, kind)]


def texts(session, kind):
    return [join_texts(one.content) for one in of(session, kind)]


def warnings(happened):
    return [one.message for one in happened if isinstance(one, events.Warn)]


async def test_a_prompt_names_a_skill(stage):
    """M181: /commit -m "…"; the prompt stays as it was typed, the text follows it."""
    file = put(stage, "ship", body="Ship $1 to $2.")
    session = await stage.session(DONE)
    await seen(session, "/ship it 'the moon'")
    assert types(session) == ["start", "user", "context", "assistant"]
    assert texts(session, User) == ["/ship it 'the moon'"]
    (context,) = of(session, Context)
    assert (context.role, context.origin) == ("user", "system")
    assert join_texts(context.content) == (
        f'<skill name="ship" path="{file}">\n'
        f"Base directory of this skill: {file.parent}\n\nShip it to the moon.\n</skill>"
    )


async def test_what_names_no_skill_is_a_prompt(stage):
    put(stage, "ship")
    session = await stage.session(DONE, DONE, DONE)
    for prompt in ("/etc/hosts is a file", " /ship", "/shipping"):
        await seen(session, prompt)
    assert texts(session, User) == ["/etc/hosts is a file", " /ship", "/shipping"]
    assert of(session, Context) == []


async def test_a_skill_that_may_not_be_used_is_an_error_and_nothing_is_recorded(stage):
    put(stage, "hidden", "user-invocable: no")
    put(stage, "needs", "arguments: [{name: what, required: true}]")
    session = await stage.session(DONE)
    with pytest.raises(ConfigurationError, match="used by the model only"):
        await seen(session, "/hidden")
    with pytest.raises(ConfigurationError, match="/needs needs what"):
        await seen(session, "/needs")
    put(stage, "needs", "description: other")
    trust.revoke_trust(
        trust.read_project(str(stage.folder), env := {"HOME": str(stage.folder.parent)}), env
    )
    session = await stage.session(DONE)
    with pytest.raises(ConfigurationError, match="gong trust"):
        await seen(session, "/needs x")
    assert session.recorder is None


async def test_the_model_sees_names_and_loads_the_text_with_the_tool(stage):
    """M181: descriptions in the prompt; Skill tool; the text only when it is used."""
    put(stage, "ship", body="SECRET TEXT $ARGUMENTS")
    put(stage, "mine", "disable-model-invocation: true")
    use = {"tool_calls": [call("Skill", skill="ship", args="now")]}
    wrong = {"tool_calls": [call("Skill", skill="shop"), call("Skill", skill="mine")]}
    session = await stage.session(use, wrong, DONE, **DEFAULT)
    await seen(session, "go")
    system = session.build_run_context().prepare_next_call().request.system
    assert "- ship: Does ship" in system
    assert "mine" not in system
    assert "SECRET" not in system
    loaded, unknown, refused = of(session, ToolResult)
    assert "SECRET TEXT now" in join_texts(loaded.content)
    assert (loaded.is_error, json.loads(bytes(loaded.details))["name"]) == (False, "ship")
    assert unknown.is_error
    assert "did you mean ship?" in join_texts(unknown.content)
    assert "by the user only" in join_texts(refused.content)


async def test_a_session_without_skills_of_its_own_has_no_word_of_them(stage):
    """The request stays as it was; /commit works, and so does a call of the tool by its name."""
    use = {"tool_calls": [call("Skill", skill="tape-recall", args="why?")]}
    session = await stage.session(use, DONE)
    await seen(session, "go")
    request = session.build_run_context().prepare_next_call().request
    assert "Skill" not in [tool.name for tool in request.tools]
    assert "tape-recall" not in request.system
    (loaded,) = of(session, ToolResult)
    assert "The question: why?" in join_texts(loaded.content)
    other = await stage.session(DONE, skills=SkillSettings(shipped=False))
    await seen(other, "/commit")
    assert of(other, Context) == []


async def test_commands_in_a_text_are_decided_by_the_same_policy(stage):
    put(stage, "state", body="A !`echo one` B !`touch made` C\n```!\necho two\n```\nD")
    session = await stage.session(DONE, **DEFAULT)
    happened = await seen(session, "/state")
    (text,) = texts(session, Context)
    assert "A one B [not run: `touch made`: " in text
    assert "C\ntwo\nD" in text
    assert not (stage.folder / "made").exists()
    assert warnings(happened) == ["skill state: refused touch made"]


async def test_a_rule_that_refuses_is_stronger_than_the_skill(stage):
    put(stage, "state", "allowed-tools: Bash(touch:*) Bash(echo:*)", "!`touch made` !`echo x`")
    rules = PermissionSettings(deny=("Bash(touch:*)",))
    session = await stage.session(DONE, permissions=rules)
    await seen(session, "/state")
    (text,) = texts(session, Context)
    assert "the rule Bash(touch:*) denies" in text or "Bash(touch:*)" in text
    assert text.endswith("x\n</skill>")
    assert not (stage.folder / "made").exists()


async def test_tools_are_granted_for_the_run_only(stage):
    """M181 with Claude's allowed-tools: a grant for that run."""
    put(stage, "make", "allowed-tools: Bash(touch:*)", "!`touch first`")
    touch = {"tool_calls": [call("bash", command="touch second")]}
    session = await stage.session(touch, DONE, touch, DONE, **DEFAULT)
    await seen(session, "/make")
    await seen(session, "again")
    assert [one.is_error for one in of(session, ToolResult)] == [False, True]
    assert (stage.folder / "first").exists()
    assert (stage.folder / "second").exists()
    assert session.setup.policy.run_rules.allow == ()


async def test_tools_are_taken_away_for_the_run_only(stage):
    put(stage, "look", "disallowed-tools: Bash")
    run = {"tool_calls": [call("bash", command="echo x")]}
    session = await stage.session(run, DONE, run, DONE, **DEFAULT)
    await seen(session, "/look")
    await seen(session, "again")
    assert [one.is_error for one in of(session, ToolResult)] == [True, False]


async def test_a_skill_may_be_refused_by_a_rule(stage):
    put(stage, "ship")
    use = {"tool_calls": [call("Skill", skill="ship")]}
    session = await stage.session(use, DONE, permissions=PermissionSettings(deny=("Skill(ship)",)))
    await seen(session, "go")
    (result,) = of(session, ToolResult)
    assert "Skill(ship)" in join_texts(result.content)
    asks = PermissionSettings(ask=("Skill(sh:*)",))
    session = await stage.session(use, DONE, permissions=asks)
    await seen(session, "go")
    assert of(session, ToolResult)[0].is_error


async def test_files_in_a_text_follow_it(stage):
    (stage.folder / "plan.md").write_text("THE PLAN\n")
    (stage.folder.parent / "outside.md").write_text("OUTSIDE\n")
    beside = stage.folder / ".claude/skills/plan/references/a.md"
    beside.parent.mkdir(parents=True)
    beside.write_text("BESIDE\n")
    put(stage, "plan", body="Read @plan.md, @references/a.md, @../outside.md and @nobody.")
    session = await stage.session(
        DONE, permissions=PermissionSettings(deny=(f"Read({stage.folder.parent}/outside.md)",))
    )
    await seen(session, "/plan")
    (text,) = texts(session, Context)
    assert '<file path="plan.md">\nTHE PLAN\n</file>' in text
    assert '<file path="references/a.md">\nBESIDE\n</file>' in text
    assert "OUTSIDE" not in text
    assert "and @nobody." in text


async def test_arguments_run_nothing_and_name_no_files(stage):
    """Only the text of the skill itself is looked at."""
    (stage.folder / "plan.md").write_text("THE PLAN\n")
    put(stage, "say", body="You said $ARGUMENTS and !`echo '!`echo x`'`")
    session = await stage.session(DONE)
    await seen(session, "/say !`touch made` @plan.md")
    (text,) = texts(session, Context)
    assert "You said !`touch made` @plan.md and" in text
    assert "THE PLAN" not in text
    assert not (stage.folder / "made").exists()


async def test_a_failed_command_says_so_and_names_are_filled_in(stage):
    file = put(
        stage, "state", body="!`echo $1; exit 3` in ${CLAUDE_SKILL_DIR} ${CLAUDE_PROJECT_DIR}"
    )
    session = await stage.session(DONE)
    await seen(session, "/state out")
    (text,) = texts(session, Context)
    assert "out\n[`echo out; exit 3` ended with exit code 3]" in text
    assert f"in {file.parent} {stage.folder}" in text


async def test_a_summary_keeps_what_was_loaded(stage):
    """M181, M225: a compaction, and a session that is continued, keep the skill."""
    put(stage, "ship", body="KEEP THIS")
    long = {"text": "word " * 4000}
    session = await stage.session({"text": "ok"}, long, long, long)
    await seen(session, "/ship")
    for prompt in ("more", "and more", "and on"):
        await seen(session, prompt)
    async for _ in session.compact(CompactionRequest("user", hard=True)):
        pass
    for _ in range(2):
        sent = session.build_run_context().prepare_next_call().request.messages
        told = [join_texts(one.content) for one in sent]
        assert ["KEEP THIS" in one for one in told if one.startswith("<skill name=")] == [True]
        await session.close()
        session = (await stage.host(long, recorder=stage.reopened())).session


async def test_a_session_that_begins_with_a_skill_keeps_its_model(stage):
    """M225: a session can be started for a skill and keeps skill and model."""
    other = stage.folder.parent / "other.json"
    other.write_text(json.dumps([{"text": "from the other"}] * 3))
    put(stage, "ship", f"model: scripted/{other}\neffort: high")
    session = await stage.session(DONE, DONE)
    await seen(session, "/ship")
    assert session.setup.model.name == f"scripted/{other}"
    await seen(session, "go on")
    assert session.setup.config.effort == "high"
    later = await stage.session(DONE, DONE, DONE)
    mine = later.setup.model.name
    await seen(later, "first")
    await seen(later, "/ship")
    assert later.setup.model.name == mine
    assert later.setup.config.effort is None


async def test_an_unknown_model_of_a_skill_is_reported_and_the_other_continues(stage):
    put(stage, "ship", "model: no-such-model")
    session = await stage.session(DONE)
    happened = await seen(session, "/ship")
    assert any("names another model" in one for one in warnings(happened))
    assert types(session)[-1] == "assistant"


async def test_a_skill_with_paths_is_offered_where_such_files_are(stage):
    put(stage, "python", 'paths: "src/**/*.py, setup.cfg"')
    put(stage, "rust", "paths: ['*.rs']")
    (stage.folder / "src/a").mkdir(parents=True)
    (stage.folder / "src/a/b.py").write_text("")
    session = await stage.session(DONE)
    await seen(session, "/rust")
    assert len(of(session, Context)) == 1
    system = session.build_run_context().prepare_next_call().request.system
    assert "- python: " in system
    assert "- rust" not in system
