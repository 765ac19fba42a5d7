from contextlib import aclosing

import pytest

from gong.repl.commands.command import CommandReply, format_model_name
from gong.repl.commands.table import COMMANDS, answer_command, is_command
from gong.tools.background import BackgroundCommand
from tape.model.entries import Mode, ToolResult
from tests.gong.checkpoints.test_place_folder import open_far


@pytest.fixture
async def here(host):
    """A host whose session has answered once."""
    made = await host()
    await said(made, "think")
    return made


async def said(host, prompt):
    async with aclosing(host.session.submit(prompt)) as stream:
        return [event async for event in stream]


@pytest.mark.parametrize("text", ["/", "/help", "/nonsense", "/fork a b", "/model  x ", "/a\nb"])
def test_a_word_behind_a_slash_is_a_command(text):
    assert is_command(text)


@pytest.mark.parametrize("text", ["", "help", " /help", "/etc/hosts is what?", "//", "1 / 2"])
def test_anything_else_is_for_the_model(text):
    assert not is_command(text)


async def test_help_lists_every_command(here):
    text = answer_command("/help", here, busy=True).text
    rows, _, rest = text.partition("\n* also while the agent works\n\n")
    names = [row.split()[0].removeprefix("/") for row in rows.splitlines()]
    assert names == sorted(COMMANDS)
    assert "/model [NAME]     * show or switch the model; NAME is provider/model\n" in rows
    assert "/fork [NAME]        switch to a new branch that starts here\n" in rows
    assert rest == "/keys lists the keys"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("/hlep", "did you mean /help?"),
        ("/modell x", "did you mean /model?"),
        ("/zzzz", "/help lists all commands"),
        ("/", "/help lists all commands"),
    ],
)
async def test_an_unknown_command_names_the_nearest_one(here, text, hint):
    name = text.split(maxsplit=1)[0]
    assert answer_command(text, here, busy=False) == CommandReply(
        f"unknown command {name}: {hint} (start with a space to send it to the model)",
        failed=True,
    )


async def test_fork_continues_in_a_new_branch(here):
    assert answer_command("/fork other", here, busy=False) == CommandReply(
        "Switched to new branch other; main is unchanged"
    )
    assert here.session.recorder.branch == "other"
    await said(here, "think again")
    branches = here.session.recorder.tape.refs().branches
    assert set(branches) == {"main", "other"}


async def test_fork_without_a_name_names_the_branch_itself(here):
    reply = answer_command("/fork", here, busy=False)
    assert not reply.failed
    assert here.session.recorder.branch != "main"
    assert here.session.recorder.branch in reply.text


async def test_a_name_that_cannot_be_is_one_line(here):
    reply = answer_command("/fork ../../x", here, busy=False)
    assert reply.failed
    assert "../../x" in reply.text
    assert "\n" not in reply.text
    assert here.session.recorder.branch == "main"


async def test_there_is_nothing_to_fork_before_the_first_word(host):
    assert answer_command("/fork", await host(), busy=False) == CommandReply(
        "the session is empty: there is nothing to fork", failed=True
    )


async def test_fork_waits_for_the_agent(here):
    assert answer_command("/fork", here, busy=True) == CommandReply(
        "/fork has to wait for the agent: stop it with Esc first", failed=True
    )


async def test_model_shows_who_answers_and_takes_another(here, script):
    name = script({"text": "hello"})
    assert answer_command("/model", here, busy=False) == CommandReply(
        "current model: offline/rules; switch with /model NAME"
    )
    assert answer_command(f"/model {name}", here, busy=True) == CommandReply(
        f"current model: {name}, from the next prompt on"
    )
    assert format_model_name(here) == name


async def test_an_unknown_model_changes_nothing(here):
    reply = answer_command("/model nobody/knows", here, busy=False)
    assert reply.failed
    assert "nobody/knows" in reply.text
    assert reply.text.endswith("; set one with /model")
    assert format_model_name(here) == "offline/rules"


async def test_a_model_without_a_key_says_what_to_type_here(here):
    reply = answer_command("/model anthropic/x", here, busy=False)
    assert reply.failed
    assert reply.text.endswith(", or use /model offline/rules")


async def test_what_is_busy_is_named(here):
    assert answer_command("/undo", here, busy=True, who="the compaction") == CommandReply(
        "/undo has to wait for the compaction: stop it with Esc first", failed=True
    )


@pytest.mark.parametrize("count", ["0", "x", "9" * 5000])
async def test_what_is_no_number_of_prompts_undoes_nothing(here, count):
    reply = answer_command(f"/undo {count}", here, busy=False)
    assert reply == CommandReply("/undo takes a number of prompts: /undo 2", failed=True)


async def test_quit_leaves(here):
    assert answer_command("/quit", here, busy=True) == CommandReply(leaves=True)
    assert answer_command("/quit now", here, busy=True) == CommandReply(
        "/quit takes no argument", failed=True
    )


def test_what_moves_the_branch_waits_for_the_agent():
    waiting = [name for name, command in COMMANDS.items() if not command.busy]
    assert set(waiting) == {
        *("compact", "handoff", "fork", "new", "clear", "resume", "switch", "tree"),
        *("undo", "redo", "rewind", "merge", "reload", "retry", "login", "env"),
    }


async def test_effort_is_shown_and_set(here):
    """M017: from the next call on; /thinking is the same."""
    assert answer_command("/effort", here, busy=True).text == (
        "effort: none (not set here); set with /effort LEVEL"
    )
    set_high = answer_command("/effort high", here, busy=True).text
    assert set_high == "effort: high, from the next call on"
    assert here.session.setup.config.effort == "high"
    assert answer_command("/thinking", here, busy=False).text.startswith("effort: high;")
    wrong = answer_command("/thinking hihg", here, busy=True)
    assert wrong.failed
    assert "none, low, medium, high, xhigh" in wrong.text


async def test_todo_and_plan_m194(here):
    """M194: what the agent plans to do, and plan mode by hand."""
    assert answer_command("/todo", here, busy=True).text == "there is nothing on the todo list"
    said = [answer_command(f"/plan {one}", here, busy=True).text for one in ("", "on", "")]
    assert said == [
        "plan mode is off; start it with /plan on",
        "plan mode is on: nothing is changed until you approve a plan",
        "plan mode is on; /plan off ends it",
    ]
    assert here.session.setup.policy.mode == "plan"
    said = [answer_command(f"/plan {one}", here, busy=True).text for one in ("off", "off")]
    assert said == ["the permission mode is bypass now", "plan mode is off"]
    assert answer_command("/plan maybe", here, busy=True).failed


async def test_tasks_lists_what_runs_in_the_background(here):
    assert answer_command("/tasks", here, busy=True).text == "nothing runs in the background"
    background = here.session.run_state.background
    background._commands["bg_1"] = BackgroundCommand("bg_1", "sleep 900")
    assert answer_command("/tasks", here, busy=True).text == "bg_1  sleep 900"
    background._commands.clear()


async def test_tools_are_switched_while_talking(here):
    """M218: presets can be switched while talking; the tape shows what is offered from there on."""
    session = here.session
    before = session.setup.tools.active
    reply = answer_command("/tools readonly", here, busy=True)
    assert reply == CommandReply("tools: read, grep, find, ls, from the next call on")
    assert [one.name for one in session.setup.tools.specs()] == ["read", "grep", "find", "ls"]
    modes = [one.data.tools for one in session.recorder.path if isinstance(one.data, Mode)]
    assert modes == [("read", "grep", "find", "ls")]
    await said(here, "run echo hi")
    assert not any(isinstance(one.data, ToolResult) for one in session.recorder.path)
    assert answer_command("/tools read, bash", here, busy=False).text.startswith(
        "tools: read, bash"
    )
    assert answer_command("/tools default", here, busy=False).failed is False
    assert session.setup.tools.active == before
    assert answer_command("/tools nosuch", here, busy=False).failed
    assert session.setup.tools.active == before
    listed = answer_command("/tools", here, busy=False).text
    assert [row.split()[0] for row in listed.splitlines()[:-1]] == list(before)


async def test_tools_of_the_next_model_follow_its_family_after_a_preset(here):
    session = here.session
    session.use_tools(["readonly"])
    session.use_tools(["default"])
    assert session.setup.tools.profile == "default"


@pytest.mark.parametrize("line", ["/init", "/review", "/workflow add a test", "/workflow run 1"])
async def test_what_works_on_this_machine_is_refused_in_another_place(here, tmp_path, line):
    async with open_far(tmp_path) as env:
        here.session.use_environment(env)
        name = line.partition(" ")[0]
        reply = answer_command(line, here, busy=False)
    assert reply == CommandReply(
        f"{name} works on the folder of this machine, and this session is in ssh://far:{tmp_path}:"
        " `/env local` comes back",
        failed=True,
    )
