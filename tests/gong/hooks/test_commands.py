"""Command hooks as real commands: what they read, what their answers do, and how they fail."""

import json
import shlex
import time
from pathlib import Path

import pytest

from gong import trust
from gong.agent import events
from gong.agent.compaction import CompactionRequest
from gong.hooks.claude import EVENTS, build_tool_input, list_tool_names, read_tool_input
from gong.hooks.matching import HookCondition, HookMatcher
from tape.model.entries import Approval, Context, ToolStart, join_texts
from tests.gong.agent.conftest import call, seen, types
from tests.gong.hooks.conftest import of, result_texts

ECHO = {"tool_calls": [call("bash", command="echo out")]}
DONE = {"text": "done"}


def answering(value, code=0, log="log.jsonl"):
    """Return a command that keeps its input in a file and answers a value."""
    text = value if isinstance(value, str) else json.dumps(value)
    keep = f"cat >> {log}; echo >> {log}; "
    return f"{keep}printf %s {shlex.quote(text)}{' >&2' if code else ''}; exit {code}"


def claude_file(event, command, matcher="", **more):
    """Return settings in Claude's shape with one hook."""
    one = {"type": "command", "command": command, **more}
    return {"hooks": {event: [{"matcher": matcher, "hooks": [one]}]}}


async def run_with(stage, event, command, *answers, matcher="", prompt="go", **more):
    """Run one prompt with one trusted project hook; return session, events and its inputs."""
    stage.write(".claude/settings.json", claude_file(event, command, matcher, **more))
    stage.trust()
    session, happened = await stage.run([], *answers, prompt=prompt)
    return session, happened, read_log(stage)


def read_log(stage, name="log.jsonl"):
    file = stage.folder / name
    lines = file.read_text().split("\n") if file.exists() else []
    return [json.loads(line) for line in lines if line]


def is_ended(pid):
    """Return whether a process is gone, or killed and not collected yet."""
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().split()[2] == "Z"


async def test_a_hook_before_a_call_reads_what_claude_code_would_tell_it(stage):
    """M174, C26: the fields of PreToolUse."""
    session, happened, (given,) = await run_with(
        stage, "PreToolUse", answering(""), ECHO, DONE, matcher="Bash"
    )
    tape = session.recorder.tape.id
    assert given == {
        "session_id": tape,
        "transcript_path": given["transcript_path"],
        "cwd": str(stage.folder),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo out"},
        "tool_use_id": of(events.ToolExecutionStart, happened)[0].call_id,
    }
    assert read_log(stage, given["transcript_path"])[0]["type"] == "start"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("no", 2),
        ("{broken", 2),
        ({"decision": "block", "reason": "no"}, 0),
        ({"decision": "deny", "reason": "no"}, 0),
        (
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "no",
                }
            },
            0,
        ),
        ({"continue": False, "stopReason": "no"}, 0),
    ],
)
async def test_a_call_is_blocked_in_every_way(stage, answer, code):
    """C26, lessons 19: exit code 2 with standard error, and each form of JSON."""
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer, code), ECHO, DONE)
    reason = "{broken" if answer == "{broken" else "no"
    assert result_texts(happened) == [f"Blocked by a hook: {reason}"]


@pytest.mark.parametrize("answer", ["", "just text", {}, {"decision": "approve"}, {"odd": 1}])
async def test_any_other_answer_lets_the_call_run(stage, answer):
    """M170."""
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    assert not of(events.HookError, happened)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("echo bad >&2; exit 1", "exit code 1: bad"),
        ("exit 3", "exit code 3"),
        ("printf '{broken'", "its output is not a JSON object: JSON is malformed"),
        ("kill -9 $$", "exit code 137"),
        ("echo '{\"hookSpecificOutput\": 3}'", "hookSpecificOutput is not an object"),
    ],
)
async def test_a_failure_is_reported_and_does_not_block(stage, command, error):
    """C26: other exit codes warn; M173."""
    _, happened, _ = await run_with(stage, "PreToolUse", command, ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    (told,) = of(events.HookError, happened)
    assert told.error.startswith(error)
    assert of(events.RunEnd, happened)[0].stop_reason == "stop"


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "perhaps"},
        {"decision": "block!"},
        {"hookSpecificOutput": {"permissionDecision": "Deny"}},
        '{"permissionDecision": "deny",,}',
    ],
)
async def test_a_decision_that_cannot_be_read_asks(stage, answer):
    """Nobody is there to answer, so the call is denied, though the mode allows all."""
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    assert "out\n" not in result_texts(happened)
    (told,) = of(events.HookError, happened)
    assert told.error.startswith(("unknown decision", "its output"))


async def test_new_arguments_at_the_top_are_remarked_on(stage):
    """They count, and the hook's author learns where they belong."""
    answer = {"updatedInput": {"command": "echo changed"}}
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    assert result_texts(happened) == ["changed\n"]
    told = " ".join(one.message for one in of(events.Warn, happened))
    assert "updatedInput belongs in hookSpecificOutput" in told


async def test_a_failure_blocks_where_the_hook_says_so(stage):
    """`onFailure = "block"`: what guards something must not fail open."""
    _, happened, _ = await run_with(stage, "PreToolUse", "exit 1", ECHO, DONE, onFailure="block")
    assert result_texts(happened) == [
        "Blocked by a hook: the hook PreToolUse exit 1 failed: exit code 1"
    ]


async def test_a_hook_that_hangs_is_ended_with_its_children(stage):
    """M173: its limit is in seconds."""
    command = "sleep 60 & echo $! > child; sleep 60"
    begun = time.monotonic()
    _, happened, _ = await run_with(stage, "PreToolUse", command, ECHO, DONE, timeout=0.5)
    assert time.monotonic() - begun < 30
    assert of(events.HookError, happened)[0].error == "no answer in 0.5 s"
    child = int((stage.folder / "child").read_text())
    assert is_ended(child)


async def test_a_child_in_the_background_does_not_hold_up_the_run(stage):
    """Lessons 2: the end of the command is the end of the hook."""
    begun = time.monotonic()
    await run_with(stage, "PreToolUse", "sleep 20 & exit 0", ECHO, DONE)
    assert time.monotonic() - begun < 15


async def test_arguments_are_changed_and_the_tape_says_what_ran(stage):
    """PreToolUse updatedInput: other fields of the call are replaced as a whole."""
    answer = {"hookSpecificOutput": {"updatedInput": {"command": "echo changed"}}}
    session, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    assert result_texts(happened) == ["changed\n"]
    (start,) = [e.data for e in session.recorder.path if isinstance(e.data, ToolStart)]
    assert json.loads(bytes(start.args)) == {"command": "echo changed"}


async def test_arguments_that_the_tool_does_not_take_are_an_error(stage):
    answer = {"hookSpecificOutput": {"updatedInput": {"cmd": "x"}}}
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    assert "Invalid arguments" in of(events.HookError, happened)[0].error


async def test_fields_of_files_have_claudes_names_and_gongs(stage):
    """A hook written for Claude Code finds file_path, and changes it."""
    stage.write("a.txt", "A\n")
    stage.write("b.txt", "B\n")
    answer = {"hookSpecificOutput": {"updatedInput": {"file_path": f"{stage.folder}/b.txt"}}}
    read = {"tool_calls": [call("read", path="a.txt")]}
    _, happened, (given,) = await run_with(
        stage, "PreToolUse", answering(answer), read, DONE, matcher="Read"
    )
    assert given["tool_input"] == {"path": "a.txt", "file_path": f"{stage.folder}/a.txt"}
    assert result_texts(happened) == ["B\n"]


async def test_text_for_the_model_comes_after_the_results(stage):
    """additionalContext becomes a context entry of origin hook, never between call and result."""
    answer = {"hookSpecificOutput": {"additionalContext": "remember this"}}
    two = {"tool_calls": [call("bash", command="echo 1"), call("bash", command="echo 2")]}
    session, _, _ = await run_with(stage, "PreToolUse", answering(answer), two, DONE)
    assert types(session)[-9:] == [
        *("approval", "tool.start", "tool.result") * 2,
        *("context", "context", "assistant"),
    ]
    entry = session.recorder.path[-2].data
    assert (entry.origin, join_texts(entry.content)) == ("hook", "remember this")


async def test_a_result_is_passed_to_the_hook_and_replaced(stage):
    """PostToolUse: tool_response, and updatedToolOutput."""
    answer = {"hookSpecificOutput": {"updatedToolOutput": "other"}}
    _, happened, (given,) = await run_with(stage, "PostToolUse", answering(answer), ECHO, DONE)
    assert result_texts(happened) == ["other"]
    response = given["tool_response"]
    assert (response["stdout"], response["exit_code"], given["tool_name"]) == ("out\n", 0, "Bash")


@pytest.mark.parametrize(
    "answer", [({"decision": "block", "reason": "lint it"}, 0), ("lint it", 2)]
)
async def test_after_a_call_a_block_is_a_remark_for_the_model(stage, answer):
    """PostToolUse: the call has run, so its result stays."""
    session, happened, _ = await run_with(stage, "PostToolUse", answering(*answer), ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    (context,) = [e.data for e in session.recorder.path if e.type == "context"]
    assert join_texts(context.content) == "lint it"


async def test_a_failed_call_has_an_event_of_its_own(stage):
    """PostToolUseFailure, and not PostToolUse."""
    fails = {"tool_calls": [call("bash", command="echo bad; exit 3")]}
    _, _, (given,) = await run_with(stage, "PostToolUseFailure", answering(""), fails, DONE)
    assert "bad" in given["error"]
    await run_with(stage, "PostToolUse", answering("", log="other"), fails, DONE)
    assert read_log(stage, "other") == []


async def test_the_first_prompt_reaches_hooks_after_the_start_with_the_id_of_the_session(stage):
    """SessionStart, then UserPromptSubmit: both with id and transcript, as in Claude Code."""
    keep = {"type": "command", "command": answering("")}
    both = {name: [{"hooks": [keep]}] for name in ("UserPromptSubmit", "SessionStart")}
    stage.write(".claude/settings.json", {"hooks": both})
    stage.trust()
    session, happened = await stage.run([], DONE)
    tape = session.recorder.tape.id
    assert [(one["hook_event_name"], one["session_id"]) for one in read_log(stage)] == [
        ("SessionStart", tape),
        ("UserPromptSubmit", tape),
    ]
    assert len({one["transcript_path"] for one in read_log(stage)}) == 1
    assert happened[0].kind == "session_start"


async def test_context_of_the_start_outlives_a_first_prompt_that_is_blocked(stage):
    """SessionStart and UserPromptSubmit: the next prompt brings it."""
    block = 'grep -q secret && exit 2; printf ""'
    hooks = {
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo be kind"}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": block}]}],
    }
    stage.write(".claude/settings.json", {"hooks": hooks})
    stage.trust()
    session, _ = await stage.run([], DONE, prompt="my secret")
    await seen(session, "hello")
    (context,) = [e.data for e in session.recorder.path if e.type == "context"]
    assert join_texts(context.content) == "be kind"


async def test_a_prompt_is_blocked_and_is_not_recorded(stage):
    """UserPromptSubmit: the reason is for the user."""
    session, happened, (given,) = await run_with(
        stage, "UserPromptSubmit", answering("no secrets", 2), prompt="my key"
    )
    assert (given["prompt"], types(session)) == ("my key", ["start"])
    assert "key" not in session.recorder.tape.folder.name
    _, failure, end = happened
    assert failure.message == "the prompt was blocked by a hook: no secrets"
    assert end.stop_reason == "stop"


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
@pytest.mark.parametrize(
    "answer", ["be kind", {"hookSpecificOutput": {"additionalContext": "be kind"}}]
)
async def test_context_is_added_to_the_prompt(stage, event, answer):
    """UserPromptSubmit and SessionStart: plain text is context as well."""
    session, _, (given,) = await run_with(stage, event, answering(answer), DONE)
    assert types(session)[1:] == ["user", "context", "assistant"]
    assert join_texts(session.recorder.path[2].data.content) == "be kind"
    assert given.get("source", "startup") == "startup"


async def test_a_session_starts_once_and_is_resumed_once(stage):
    """SessionStart: a matcher is compared with the source."""
    command = answering("", log="resumed")
    stage.write(".claude/settings.json", claude_file("SessionStart", command, "resume"))
    stage.trust()
    session, _ = await stage.run([], DONE, DONE)
    await seen(session, "again")
    assert read_log(stage, "resumed") == []
    await session.close()
    again = await stage.hooked([], DONE, recorder=stage.reopened())
    await seen(again, "more")
    assert [one["source"] for one in read_log(stage, "resumed")] == ["resume"]


async def test_a_project_is_prepared_before_its_first_session(stage):
    """Setup: once for a folder, before SessionStart; its text is context."""
    answer = {"hookSpecificOutput": {"additionalContext": "installed"}}
    session, _, log = await run_with(stage, "Setup", answering(answer), DONE, DONE)
    assert [(one["hook_event_name"], one["trigger"]) for one in log] == [("Setup", "init")]
    assert types(session)[1:] == ["user", "context", "assistant"]
    await seen(session, "again")
    await session.close()
    another = await stage.hooked([], DONE)
    await seen(another, "more")
    assert len(read_log(stage)) == 1


async def test_the_end_of_a_session_reaches_hooks(stage):
    """SessionEnd."""
    session, _, log = await run_with(stage, "SessionEnd", answering(""), DONE)
    assert log == []
    await session.close()
    (given,) = read_log(stage)
    assert given["reason"] == "other"


async def test_a_hook_at_the_end_has_more_work(stage):
    """Stop: the reason goes to the model, and the hook is told that it did so already."""
    answer = 'test -e done && exit 0; touch done; echo "run the tests" >&2; exit 2'
    command = f"cat >> log.jsonl; echo >> log.jsonl; {answer}"
    session, _, log = await run_with(stage, "Stop", command, {"text": "one"}, {"text": "two"})
    assert [(one["stop_hook_active"], one["last_assistant_message"]) for one in log] == [
        (False, "one"),
        (True, "two"),
    ]
    assert types(session)[1:] == ["user", "assistant", "context", "assistant"]


async def test_a_hook_ends_the_run(stage):
    """continue false with a stopReason, after a call."""
    answer = {"continue": False, "stopReason": "enough", "systemMessage": "see the log"}
    session, happened, _ = await run_with(stage, "PostToolUse", answering(answer), ECHO, DONE)
    assert [one.message for one in of(events.Warn, happened)] == [
        "see the log",
        "a hook ended the run: enough",
    ]
    assert types(session)[-1] == "tool.result"


async def test_a_compaction_is_cancelled_by_a_hook_or_reported_to_it(stage):
    """PreCompact and PostCompact, with their trigger."""
    hooks = {
        "PreCompact": [{"matcher": "manual", "hooks": [{"command": answering("not now", 2)}]}],
        "PostCompact": [{"hooks": [{"command": answering("", log="after")}]}],
    }
    stage.write(".gong/hooks.json", hooks)
    stage.trust()
    session, _ = await stage.run([], {"text": "word " * 2000}, DONE, DONE)
    with pytest.raises(Exception, match="a hook cancelled the compaction: not now"):
        [one async for one in session.compact(CompactionRequest("user", "the tests"))]
    (given,) = read_log(stage)
    assert (given["trigger"], given["custom_instructions"]) == ("manual", "the tests")
    await seen(session, "two")
    [one async for one in session.compact(CompactionRequest("model", ""))]
    (after,) = read_log(stage, "after")
    assert after["trigger"] == "auto"
    assert after["compact_summary"]


async def test_a_project_hook_runs_only_when_it_is_trusted(stage):
    """M174: untrusted, the run continues without it and says so; changed, it is new again."""
    stage.write(".gong/hooks.json", claude_file("PreToolUse", answering("no", 2)))
    _, happened = await stage.run([], ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    (warning,) = stage.warnings
    assert warning.startswith("not trusted, so without effect: .gong/hooks.json (gong trust")
    stage.trust()
    _, happened = await stage.run([], ECHO, DONE)
    assert result_texts(happened) == ["Blocked by a hook: no"]
    stage.write(".gong/hooks.json", claude_file("PreToolUse", "touch owned; exit 2"))
    _, happened = await stage.run([], ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    assert not (stage.folder / "owned").exists()
    project = trust.read_project(str(stage.folder), stage.environ)
    trust.revoke_trust(project, stage.environ)


async def test_hooks_come_from_all_places_in_order(stage):
    """Settings, hooks.json beside them, Claude's; first the user's own, then the project's."""

    def note(name):
        return {"event": "PreToolUse", "command": f"echo {name} >> order"}

    config = stage.home / ".config/gong"
    config.mkdir(parents=True)
    (config / "hooks.json").write_text(json.dumps({"hooks": [note("user-json")]}))
    (stage.home / ".claude").mkdir()
    shared = claude_file("PreToolUse", "echo user-claude >> order")
    (stage.home / ".claude/settings.json").write_text(json.dumps({"model": "x", **shared}))
    stage.write(
        ".gong/config.toml",
        '[[hooks]]\nevent = "before_tool_call"\ncommand = "echo project-toml >> order"\n',
    )
    stage.write(".gong/hooks.json", {"PreToolUse": [note("project-json")]})
    stage.write(".claude/settings.local.json", claude_file("PreToolUse", "echo local >> order"))
    stage.trust()
    await stage.run([], ECHO, DONE, hooks=(note("user-toml"),))
    assert (stage.folder / "order").read_text().split() == [
        *("user-toml", "user-json", "user-claude"),
        *("project-toml", "project-json", "local"),
    ]
    assert stage.warnings == []


async def test_what_is_wrong_in_a_file_is_a_warning_with_a_suggestion(stage):
    """Unknown events and fields, other types: named with their file; the rest works."""
    stage.write(
        ".gong/hooks.json",
        {
            "PreToolUze": [{"hooks": [{"command": "true"}]}],
            "PreToolUse": [
                {"hooks": [{"command": "exit 0", "timout": 3}, {"type": "http", "url": "x"}]},
                {"matcher": "(", "hooks": [{"command": "true"}]},
                {"hooks": [{"type": "command"}]},
            ],
        },
    )
    stage.write(".claude/settings.json", '{"hooks": ')
    stage.trust()
    await stage.run([], DONE)
    file = f"{stage.folder}/.gong/hooks.json"
    assert stage.warnings == [
        f"{file}: unknown hook event PreToolUze: did you mean PreToolUse?",
        f"{file}: unknown field timout of a hook: did you mean timeout?",
        f"{file}: unknown field url of a hook",
        f"{file}: hooks of type 'http' are not run: only type command is",
        (
            f"{file}: matcher '(' is not a regular expression: missing ), unterminated subpattern "
            "at position 0"
        ),
        f"{file}: a hook for PreToolUse has no command",
        f"{stage.folder}/.claude/settings.json: it is not JSON: Input data was truncated",
    ]


async def test_the_variables_of_a_hook(stage):
    """CLAUDE_PROJECT_DIR and GONG_PROJECT_DIR; a project's hook sees no keys."""
    stage.environ["OPENAI_API_KEY"] = "secret"
    command = "env > seen"
    await run_with(stage, "PreToolUse", command, ECHO, DONE)
    lines = (stage.folder / "seen").read_text().split("\n")
    assert f"CLAUDE_PROJECT_DIR={stage.folder}" in lines
    assert f"GONG_PROJECT_DIR={stage.folder}" in lines
    assert not [line for line in lines if line.startswith("OPENAI_API_KEY")]


async def test_a_program_with_arguments_needs_no_shell(stage):
    """`args`: each is one word, whatever is in it; the project's folder is filled in."""
    args = ["-c", "printf '%s|' \"$@\" > seen", "sh", "a b", "$HOME;", "${CLAUDE_PROJECT_DIR}/x"]
    await run_with(stage, "PreToolUse", "sh", ECHO, DONE, args=args)
    assert (stage.folder / "seen").read_text() == f"a b|$HOME;|{stage.folder}/x|"


async def test_once_and_in_the_background(stage):
    """`once` runs the first time only; nobody waits for `async`."""
    two = {"tool_calls": [call("bash", command="echo 1"), call("bash", command="echo 2")]}
    await run_with(stage, "PreToolUse", "echo x >> once", two, DONE, once=True)
    assert (stage.folder / "once").read_text() == "x\n"
    begun = time.monotonic()
    _, happened, _ = await run_with(
        stage, "PreToolUse", "sleep 9; exit 2", two, DONE, **{"async": True}
    )
    assert result_texts(happened) == ["1\n", "2\n"]
    assert time.monotonic() - begun < 9


@pytest.mark.parametrize(
    ("matcher", "tool", "found"),
    [
        ("", "bash", ""),
        ("*", "read", ""),
        ("Bash", "bash", "Bash"),
        ("bash", "bash", "bash"),
        ("Bash", "shell", "Bash"),
        ("Edit|Write", "write", "Write"),
        ("Edit,Write", "write_file", "Write"),
        ("MultiEdit", "edit", "MultiEdit"),
        ("Write", "apply_patch", "Write"),
        ("Bash", "read", None),
        ("Ba", "bash", None),
        ("Ba.*", "bash", "Bash"),
        ("^Notebook.*", "edit", None),
        ("mcp__.*", "mcp__db__query", "mcp__db__query"),
        ("mcp__db__query", "mcp__db__query", "mcp__db__query"),
    ],
)
def test_a_matcher_means_tools_by_both_names(matcher, tool, found):
    assert HookMatcher(matcher).find_match(list_tool_names(tool)) == found


@pytest.mark.parametrize(
    ("condition", "tool", "args", "met"),
    [
        ("Bash", "bash", {"command": "ls"}, True),
        ("Bash(git *)", "bash", {"command": "git push"}, True),
        ("Bash(git *)", "bash", {"command": "cd x && FOO=1 git push"}, True),
        ("Bash(git *)", "bash", {"command": "echo git push"}, False),
        ("Bash(git *)", "bash", {"command": "echo $(git push)"}, True),
        ("Bash(npm run test:*)", "bash", {"command": "npm run test -- -x"}, True),
        ("Bash(npm run test:*)", "bash", {"command": "npm run tests"}, False),
        ("Bash(rm *)", "bash", {"command": "if ("}, True),
        ("Edit(src/**)", "edit", {"path": "src/a/b.py"}, True),
        ("Edit(src/**)", "edit", {"path": "/w/src/b.py"}, True),
        ("Edit(src/**)", "edit", {"path": "tests/b.py"}, False),
        ("Edit(*.py)", "edit_file", {"file_path": "x/b.py"}, True),
        ("Read(.env)", "read", {"path": "sub/.env"}, True),
        ("WebFetch(domain:example.org)", "web_fetch", {"url": "https://a.example.org/x"}, True),
        ("WebFetch(domain:example.org)", "web_fetch", {"url": "https://badexample.org"}, False),
        ("Read", "bash", {"command": "ls"}, False),
    ],
)
def test_a_condition_is_a_rule_about_the_call(condition, tool, args, met):
    assert HookCondition(condition).is_met(tool, args, "/w") is met


@pytest.mark.parametrize("updated", [{"path": "b"}, {"file_path": "/w/b"}])
def test_a_changed_path_is_understood_in_both_names(updated):
    args = {"path": "a", "content": "x"}
    sent = build_tool_input("write", args, "/w")
    meant = read_tool_input("write", args, sent, {**sent, **updated})
    assert meant["path"] == next(iter(updated.values()))


def test_an_answer_with_everything_as_sent_changes_nothing():
    args = {"path": "a", "oldText": "1", "newText": "2"}
    sent = build_tool_input("edit", args, "/w")
    assert sent["old_string"] == "1"
    assert read_tool_input("edit", args, sent, sent) == args


def test_all_events_of_the_dialect_are_known():
    """M174: nine names, and PostToolUseFailure, PermissionRequest, SubagentStart, PostCompact."""
    wanted = (
        "PreToolUse PostToolUse Stop SubagentStop SessionStart SessionEnd UserPromptSubmit"
        " PreCompact Notification PostToolUseFailure PermissionRequest SubagentStart PostCompact"
        " Setup"
    )
    assert set(wanted.split()) <= set(EVENTS)


@pytest.mark.parametrize(
    ("answer", "remarks"),
    [
        (
            {"permissionDecision": "deny", "permissionDecisionReason": "no"},
            [
                "permissionDecision belongs in hookSpecificOutput, not at the top",
                "permissionDecisionReason belongs in hookSpecificOutput, not at the top",
            ],
        ),
        (
            {"hookSpecificOutput": {"decision": "block", "reason": "no"}},
            [
                "reason belongs at the top, not in hookSpecificOutput",
                "decision belongs at the top, not in hookSpecificOutput",
            ],
        ),
        (
            {"decision": "approve", "permissionDecision": "deny", "reason": "no"},
            ["permissionDecision belongs in hookSpecificOutput, not at the top"],
        ),
    ],
)
async def test_a_refusal_on_the_wrong_level_counts_and_is_reported(stage, answer, remarks):
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    assert result_texts(happened) == ["Blocked by a hook: no"]
    said = [event.message for event in of(events.Warn, happened)]
    assert [one.partition(": ")[2] for one in said[: len(remarks)]] == remarks
    assert all(one.startswith("hook PreToolUse ") for one in said)
    assert said[-1].endswith(" blocked bash: no")


@pytest.mark.parametrize(
    "answer",
    [{"permissionDecision": "allow"}, {"hookSpecificOutput": {"decision": "approve"}}],
)
async def test_an_allow_on_the_wrong_level_counts_nothing(stage, answer):
    session, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    (said,) = [event.message for event in of(events.Warn, happened)]
    assert "belongs" in said
    assert result_texts(happened) == ["out\n"]
    assert not [
        one.data
        for one in session.recorder.path
        if isinstance(one.data, Approval) and one.data.by == "hook"
    ]


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        (
            {"permission_decision": "deny"},
            "permission_decision says nothing: the field is permissionDecision",
        ),
        (
            {"hookspecificoutput": {"permissionDecision": "deny"}},
            "hookspecificoutput says nothing: the field is hookSpecificOutput",
        ),
    ],
)
async def test_an_answer_that_decides_nothing_by_its_spelling_is_reported(stage, answer, remark):
    _, happened, _ = await run_with(stage, "PreToolUse", answering(answer), ECHO, DONE)
    said = [event.message.partition(": ")[2] for event in of(events.Warn, happened)]
    assert remark in said


async def test_continue_in_words_is_reported(stage):
    hook = answering({"continue": "false"})
    _, happened, _ = await run_with(stage, "PreToolUse", hook, ECHO, DONE)
    (failed,) = of(events.HookError, happened)
    assert failed.error == "continue is not true or false"


async def test_a_script_that_is_not_there_is_named(stage):
    _, happened, _ = await run_with(stage, "PreToolUse", "python3 nosuch.py", ECHO, DONE)
    said = [event.message for event in of(events.Warn, happened)]
    assert said[-1].startswith("hook PreToolUse python3 nosuch.py blocked bash: ")
    assert "can't open file" in said[-1]


async def test_a_script_that_is_not_there_is_named_after_a_call_too(stage):
    _, happened, _ = await run_with(stage, "PostToolUse", "python3 nosuch.py", ECHO, DONE)
    (said,) = [event.message for event in of(events.Warn, happened)]
    assert said.startswith("hook PostToolUse python3 nosuch.py: ")
    assert "can't open file" in said


async def test_a_hook_that_fails_in_the_background_is_reported(stage):
    stage.write(".gong/hooks.json", claude_file("PreToolUse", "exit 3", **{"async": True}))
    stage.trust()
    session = await stage.hooked([], ECHO, DONE)
    reported = []
    session.subscribe(reported.append)
    await seen(session, "go")
    await session.close()
    (failed,) = of(events.HookError, reported)
    assert (failed.hook, failed.error) == ("PreToolUse exit 3", "exit code 3")


@pytest.mark.parametrize(
    "output",
    [
        'Loading profile\n{"decision": "block", "reason": "no"}',
        'ready {"decision":"block"}',
        '\ufeff{"decision": "block"}',
        '"decision": "block"}',
        '[{"decision": "block"}]',
        "Answer: {'decision' : 'block'}",
    ],
)
async def test_an_answer_behind_other_text_is_reported(stage, output):
    """C26: only an output that begins with { is an answer, and one that is lost is said."""
    _, happened, _ = await run_with(stage, "PreToolUse", answering(output), ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    (told,) = of(events.HookError, happened)
    assert told.hook.startswith("PreToolUse cat")
    assert told.error == ("its output has decision but does not begin with {, so it is no answer")


async def test_an_answer_behind_other_text_blocks_where_failures_do(stage):
    output = answering('loading\n{"decision": "approve"}')
    _, happened, _ = await run_with(stage, "PreToolUse", output, ECHO, DONE, onFailure="block")
    (text,) = result_texts(happened)
    assert text.startswith("Blocked by a hook: the hook PreToolUse cat")
    assert "does not begin with {" in text


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
async def test_an_answer_behind_other_text_is_context_and_reported(stage, event):
    text = 'loading\n{"hookSpecificOutput": {"additionalContext": "be brief"}}'
    session, happened, _ = await run_with(stage, event, answering(text), DONE)
    said = [one.message for one in of(events.Warn, happened)]
    assert [one.partition(": ")[2] for one in said] == [
        "its output has hookSpecificOutput but does not begin with {"
    ]
    assert said[0].startswith(f"hook {event} cat")
    contexts = [one.data for one in session.recorder.path if isinstance(one.data, Context)]
    assert [join_texts(one.content) for one in contexts] == [text]


async def test_plain_text_of_a_hook_is_no_answer_and_no_failure(stage):
    text = "formatted {3 files}: the decision: none, continue: yes"
    _, happened, _ = await run_with(stage, "PostToolUse", answering(text), ECHO, DONE)
    assert not of(events.HookError, happened)
    assert not of(events.Warn, happened)
