from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import pytest

from tests.tape import reader

OFFLINE = "gong: no model is configured, so offline/rules is used"


def call(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


def entries(place, *ref):
    return place.json("tape", "log", *ref, "--json")


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


def test_a_prompt_is_answered_offline_with_two_tool_calls_on_a_tape_anyone_can_check(place):
    (place.folder / "README.md").write_text("one\ntwo\n")
    prompt = "read README.md then run wc -l README.md"
    done = place.run("gong", "chat", "-p", prompt, "--output-format", "json")
    assert done.stderr.startswith(OFFLINE)
    assert done.stderr.count("\n") == 1
    document = json.loads(done.stdout)
    assert list(document) == [
        *("session", "branch", "result", "stop_reason", "usage", "cost", "turns"),
        *("tool_calls", "is_error", "error"),
    ]
    assert [(one["name"], one["is_error"]) for one in document["tool_calls"]] == [
        ("read", False),
        ("bash", False),
    ]
    assert (document["turns"], document["stop_reason"], document["error"]) == (3, "stop", None)
    assert "2 README.md" in document["result"]
    assert [entry["type"] for entry in entries(place)] == [
        *("start", "user", "assistant", "approval", "tool.start", "tool.result"),
        *("assistant", "approval", "tool.start", "tool.result", "assistant"),
    ]
    (folder,) = place.tapes()
    assert reader.faults(folder) == []
    assert document["session"] == json.loads((folder / "tape.json").read_text())["id"]


def test_text_is_the_answer_and_nothing_else_on_standard_output(place):
    """M197 J9-1.1"""
    model = place.script({"text": "forty-two"})
    done = place.run("gong", "chat", "-p", "what is it?", "-m", model)
    assert (done.stdout, done.stderr) == ("forty-two\n", "")


def test_a_stream_is_one_object_a_line_from_init_to_result(place):
    """M022: the end of the session is the last event, before the result."""
    model = place.script(call("ls", path="."), {"text": "empty"})
    done = place.run("gong", "chat", "-p", "look", "-m", model, "--output-format", "stream-json")
    lines = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("init", "result")
    assert kinds[1:5] == ["session_start", "user_input", "agent_start", "turn_start"]
    assert {"message_start", "message_update", "message_end"} <= set(kinds)
    assert {"tool_execution_start", "tool_execution_end", "turn_end", "agent_end"} <= set(kinds)
    assert [place for place, kind in enumerate(kinds) if kind == "session_end"] == [len(kinds) - 2]
    assert set(lines[0]) >= {"session", "model", "tools", "mode"}
    assert lines[-1]["result"] == "empty"
    assert lines[-1]["session"] == lines[0]["session"]


@pytest.mark.parametrize(
    ("answers", "prompt", "code"),
    [((), "hi", 1), (({"text": ""}, {"text": ""}), "hi", 9)],
    ids=["no answer", "empty answer"],
)
def test_a_stream_of_a_failed_run_ends_with_the_end_of_the_session(place, answers, prompt, code):
    """M022: whatever the run ended with."""
    model = place.script(*answers)
    flags = ("-m", model, "--output-format", "stream-json")
    done = place.run("gong", "chat", "-p", prompt, *flags, code=code)
    kinds = [json.loads(line)["type"] for line in done.stdout.split("\n")[:-1]]
    assert kinds[-3:] == ["agent_end", "session_end", "result"]


def test_standard_input_joins_the_prompt(place):
    model = place.script({"text": "ok"})
    place.run("gong", "chat", "-p", "review this", "-m", model, stdin="+ a line\n")
    assert entries(place)[1]["data"]["content"][0]["text"] == "review this\n\n+ a line"


def test_files_that_a_prompt_names_are_given_to_the_model(place):
    """As in the terminal; what standard input names is text of others."""
    (place.folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (place.folder / "b.bin").write_bytes(b"\0\0")
    model = place.script({"text": "read"}, {"text": "again"})
    words = "what is in @notes.txt:2 and @nobody, @b.bin?"
    done = place.run("gong", "-m", model, "-p", words, stdin="and @notes.txt")
    assert done.stdout == "read\n"
    assert "gong: @b.bin is not attached: it is not text" in done.stderr
    assert "attached notes.txt" not in done.stderr
    _, prompt, document, _ = (entry["data"] for entry in entries(place))
    assert '<file path=\\"notes.txt\\" lines=\\"2-2\\" of=\\"3\\">' in json.dumps(document)
    assert prompt["content"][0]["text"] == f"{words}\n\nand @notes.txt"
    done = place.run("gong", "-m", model, "-c", "-v", "-p", "now @notes.txt")
    assert "attached notes.txt: 3 lines" in done.stderr


def test_names_that_are_too_long_for_a_file_are_words(place):
    model = place.script({"text": "fine"})
    (place.home / "mine.txt").write_text("of mine\n")
    done = place.run("gong", "-m", model, "-v", "-p", f"see @{'a' * 300} @~nobody/x @~/mine.txt")
    assert done.stdout == "fine\n"
    assert "attached ~/mine.txt: 1 lines" in done.stderr


def test_files_that_a_rule_denies_to_read_are_not_given_to_the_model(place):
    """Nor through a link; standard error names the rule."""
    (place.folder / ".env").write_text("KEY=hidden-in-here\n")
    (place.folder / "link.txt").symlink_to(".env")
    model = place.script({"text": "no"})
    options = ("-m", model, "--deny", "Read(.env)")
    done = place.run("gong", *options, "-p", "what is in @.env, @./x/../.env and @link.txt?")
    for name in (".env", "link.txt"):
        line = f"gong: @{name} is not attached: the rule Read(.env) denies to read it"
        assert line in done.stderr
    assert "hidden-in-here" not in json.dumps(entries(place))


def test_without_a_terminal_standard_input_is_the_prompt(place):
    model = place.script({"text": "ok"})
    place.run("gong", "chat", "-m", model, stdin="hello\n")
    assert entries(place)[1]["data"]["content"][0]["text"] == "hello"


def test_a_closed_standard_input_is_an_empty_one(place):
    model = place.script({"text": "ok"})
    script = f"exec gong chat -p hello -m {model} <&-"
    done = subprocess.run(
        ["sh", "-c", script], cwd=place.folder, env=place.env, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ok\n", b"")


def test_c_continues_the_newest_tape_of_this_folder(place):
    model = place.script({"text": "one"})
    first = place.json("gong", "chat", "-p", "a", "-m", model, "--output-format", "json")
    second = place.json("gong", "chat", "-c", "-p", "b", "-m", model, "--output-format", "json")
    assert second["session"] == first["session"]
    assert [e["type"] for e in entries(place)] == [
        *("start", "user", "assistant", "user", "assistant")
    ]


def test_c_continues_a_session_of_another_checkout_and_names_its_folder(place, tmp_path):
    """The new folder is on the tape from the next entry on."""

    def check_out(name, url):
        folder = tmp_path / name
        subprocess.run(["git", "init", "-q", folder], check=True)
        subprocess.run(["git", "-C", folder, "remote", "add", "origin", url], check=True)
        return folder

    model = place.script({"text": "one"})
    began = check_out("one", "git@example.org:team/app.git")
    words = ("-p", "a", "-m", model, "--output-format", "json")
    first = json.loads(place.run("gong", "chat", *words, cwd=began).stdout)
    other = check_out("two", "https://example.org/team/app")
    ran = place.run("gong", "chat", "-c", *words, cwd=other)
    session = first["session"]
    assert json.loads(ran.stdout)["session"] == session
    assert f"this session worked in {began}; it continues in {other}" in ran.stderr
    (meta,) = [e["data"] for e in entries(place, session) if e["type"] == "meta"]
    assert (meta["cwd"], meta["repository"]) == (str(other), "example.org/team/app")


def test_a_fork_shares_the_past_and_sees_its_own_side_only(place):
    model = place.script({"text": "one"})
    for prompt in ("first", "second"):
        go_on = ["-c"] if place.tapes() else []
        place.run("gong", "chat", *go_on, "-p", prompt, "-m", model)
    (folder,) = place.tapes()
    before = reader.files(folder)
    place.run("gong", "chat", "--fork", "~2", "-p", "other", "-m", model)
    place.run("gong", "chat", "--session", f"{folder.name}:main", "-p", "third", "-m", model)

    def said(ref):
        return [e["data"]["content"][0]["text"] for e in entries(place, ref) if e["type"] == "user"]

    assert said(f"{folder.name}:fork-1") == ["first", "other"]
    assert said(f"{folder.name}:main") == ["first", "second", "third"]
    after = reader.files(folder)
    assert all(after[name].startswith(data) for name, data in before.items())
    assert reader.faults(folder) == []


def test_killed_during_a_tool_the_call_gets_one_result_that_says_what_is_known(place):
    mark = place.folder / "begun"
    model = place.script(call("bash", command=f"echo $$ > {mark}; exec sleep 300"))
    process = place.start("gong", "chat", "-p", "go", "-m", model)
    wait_for(lambda: mark.exists() and mark.read_text().strip())
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert "good" in place.run("tape", "verify").stdout
    model = place.script({"text": "I see."}, name="after.json")
    place.run("gong", "chat", "-c", "-p", "what happened?", "-m", model)
    found = [entry for entry in entries(place) if entry["type"] == "repair"]
    assert len(found) == 1
    (injected,) = found[0]["data"]["injected"]
    assert "outcome is unknown" in injected["text"]
    tools = [
        one for one in place.json("tape", "context", "--json")["messages"] if one["role"] == "tool"
    ]
    assert len(tools) == 1
    assert reader.faults(place.tapes()[0]) == []


def test_two_chats_on_one_tape_each_get_a_branch_and_lose_nothing(place):
    mark, go = place.folder / "begun", place.folder / "go"
    model = place.script({"text": "hi"})
    place.run("gong", "chat", "-p", "begin", "-m", model)
    waiting = f"touch {mark}; while [ ! -e {go} ]; do sleep 0.05; done"
    slow = place.script(call("bash", command=waiting), {"text": "one"}, name="slow.json")
    process = place.start("gong", "chat", "-c", "-p", "slowly", "-m", slow)
    wait_for(mark.exists)
    done = place.run("gong", "chat", "-c", "-p", "meanwhile", "-m", model)
    assert "continues on its own branch, main.2" in done.stderr
    go.touch()
    assert process.wait(30) == 0
    process.communicate()
    said = {
        branch: [
            e["data"]["content"][0]["text"]
            for e in entries(place, f":{branch}")
            if e["type"] == "user"
        ]
        for branch in ("main", "main.2")
    }
    assert said == {"main": ["begin", "slowly"], "main.2": ["begin", "slowly", "meanwhile"]}
    assert reader.faults(place.tapes()[0]) == []


def test_an_interrupt_stops_the_tool_and_ends_with_130(place):
    mark = place.folder / "begun"
    model = place.script(call("bash", command=f"touch {mark}; sleep 300"))
    process = place.start("gong", "chat", "-p", "go", "-m", model, "--output-format", "json")
    wait_for(mark.exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    document = json.loads(out)
    assert (document["stop_reason"], document["is_error"]) == ("aborted", True)
    assert entries(place)[-1]["type"] == "error"


def test_the_limit_of_turns_ends_with_8(place):
    model = place.script(*[call("ls", path=".")] * 3)
    argv = ("gong", "chat", "-p", "go", "-m", model, "--max-turns", "2", "--output-format", "json")
    document = place.json(*argv, code=8)
    assert (document["turns"], document["is_error"]) == (2, True)
    assert document["error"]["class"] == "LimitReached"
    assert "2 model calls" in document["error"]["message"]


@pytest.mark.parametrize(
    ("argv", "code", "kind"),
    [
        (("-m", "nobody/nothing"), 2, "UnknownModel"),
        (("-m", "openai/gpt-4o"), 6, "AuthenticationError"),
        (("--session", "0badbad0"), 3, "NotFound"),
        (("-c",), 3, "NotFound"),
        (("-c", "--fork", "x"), 2, "UsageError"),
    ],
)
@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_run_that_never_began_prints_its_document_too(place, argv, code, kind, output):
    """Issue 35: `--output-format json` always prints its document."""
    done = place.run("gong", "-p", "go", *argv, "--output-format", output, code=code)
    document = json.loads(done.stdout.splitlines()[-1])
    assert (document["is_error"], document["error"]["class"]) == (True, kind)
    assert document["error"]["message"]
    assert document.get("type") == ("result" if output == "stream-json" else None)
    assert done.stderr


def test_denied_calls_are_named_with_what_would_allow_them(place):
    """Issue 35: on standard error, and in the document; also where other calls were allowed."""
    (place.folder / "a.txt").write_text("one\n")
    calls = (
        call("read", path="a.txt"),
        call("bash", command="touch ran"),
        call("edit", path="a.txt", oldText="one", newText="two"),
        call("bash", command="rm -rf ~"),
    )
    argv = ("gong", "-p", "go", "-m", place.script(*calls, {"text": "no"}))
    argv += ("--permission", "default", "--output-format", "json")
    done = place.run(*argv)
    lines = [line for line in done.stderr.splitlines() if "not allowed: " in line]
    assert [line.split(" (")[0] for line in lines] == [
        "gong: not allowed: $ touch ran",
        "gong: not allowed: edit a.txt",
        "gong: not allowed: $ rm -rf ~",
    ]
    assert lines[0].endswith("; --allow 'Bash(touch:*)' allows it")
    assert "--allow" not in lines[2]
    document = json.loads(done.stdout)
    assert [one["rules"] for one in document["denied"]] == [
        ["Bash(touch:*)"],
        [f"Edit({place.folder}/a.txt)"],
        [],
    ]
    assert document["is_error"] is False


NOTHING, THOUGHT = {"text": ""}, {"thinking": "hm"}
SHORT = {
    "cut": (
        [{"text": "half of", "stop_reason": "length"}],
        ("half of", "the answer was cut at the limit of its length (max_output_tokens)"),
    ),
    "empty twice": ([NOTHING, NOTHING], ("", "the answer is empty")),
    "thought twice": ([THOUGHT, THOUGHT], ("", "the answer has no text: the model only thought")),
    "calls announced": (
        [{"text": "I look.", "stop_reason": "tool_calls"}],
        ("I look.", "the answer ended with tool calls, and has none"),
    ),
    "calls announced without a word": (
        [{"text": "", "stop_reason": "tool_calls"}, {"thinking": "a", "stop_reason": "tool_calls"}],
        ("", "the answer ended with tool calls, and has none"),
    ),
    "stopped by a filter": (
        [{"text": "I will", "stop_reason": "content_filter"}],
        ("I will", "the answer ended early: content_filter"),
    ),
}


@pytest.mark.parametrize("case", SHORT)
def test_an_answer_that_is_not_whole_ends_with_9_and_says_why(place, case):
    """M237"""
    answers, (result, why) = SHORT[case]
    argv = ("gong", "chat", "-p", "go", "-m", place.script(*answers))
    document = place.json(*argv, "--output-format", "json", code=9)
    assert (document["result"], document["is_error"], document["turns"]) == (result, True, 1)
    assert document["error"] == {"class": "AnswerIncomplete", "message": why}
    assert len([one for one in entries(place) if one["type"] == "assistant"]) == len(answers)
    done = place.run(*argv, code=9)
    assert done.stdout == (f"{result}\n" if result else "")
    assert done.stderr.splitlines()[-1] == f"gong: {why}"


@pytest.mark.parametrize("first", [NOTHING, THOUGHT, {"text": "", "stop_reason": "tool_calls"}])
def test_an_answer_without_words_is_asked_for_once_more(place, first):
    model = place.script(first, {"text": "forty-two"})
    done = place.run("gong", "chat", "-p", "go", "-m", model)
    assert done.stdout == "forty-two\n"
    assert "scripted sent an answer without words · try 2" in done.stderr


def test_a_call_that_was_cut_is_not_run_and_the_model_learns_why(place):
    cut = {"tool_calls": [{"name": "write", "args_text": '{"path": "a.txt", "conte'}]}
    model = place.script({**cut, "stop_reason": "length"}, {"text": "in parts, then"})
    place.run("gong", "chat", "-p", "go", "-m", model)
    (result,) = (one for one in entries(place) if one["type"] == "tool.result")
    said = result["data"]["content"][0]["text"]
    assert said.startswith("The answer was cut at the limit of its length, so this call may be")
    assert "Invalid arguments for tool: write" in said
    assert not (place.folder / "a.txt").exists()


def test_no_tools_means_none_are_offered(place):
    model = place.script(call("ls", path="."), {"text": "ok"})
    argv = ("gong", "chat", "-p", "go", "-m", model, "--tools", "none", "--output-format", "json")
    assert place.json(*argv)["tool_calls"][0]["is_error"] is True


BAD = {
    "an empty prompt": (["-p", ""], 2, "the prompt is empty"),
    "a blank prompt": (["-p", " \n "], 2, "the prompt is empty"),
    "an unknown provider": (["-p", "x", "-m", "nobody/m"], 2, "nobody"),
    "an unknown offline model": (["-p", "x", "-m", "offline/magic"], 2, "offline/magic"),
    "no provider in the model": (["-p", "x", "-m", "nonsense"], 2, "nonsense"),
    "a script that is not there": (["-p", "x", "-m", "scripted/no.json"], 2, "no.json"),
    "no key": (["-p", "x", "-m", "anthropic/claude-sonnet-5-5"], 6, "ANTHROPIC_API_KEY"),
    "an unknown tool": (["-p", "x", "--tools", "fly"], 2, "fly"),
    "an unknown tape": (["-p", "x", "--session", "deadbeef"], 3, "deadbeef"),
    "a REF that is none": (["-p", "x", "--session", "a@b@c"], 2, "a@b@c"),
    "nothing to continue": (["-p", "x", "-c"], 3, "no session in this folder"),
    "a fork of nothing": (["-p", "x", "--fork", "~1"], 3, ""),
    "two ways to go on": (["-p", "x", "-c", "--session", "abcd"], 2, "cannot be combined"),
    "a limit of no turns": (["-p", "x", "--max-turns", "0"], 2, "max-turns"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line_its_exit_code_and_leaves_nothing(place, case):
    argv, code, words = BAD[case]
    done = place.run("gong", "chat", *argv, code=code)
    assert done.stdout == ""
    assert words in done.stderr
    assert not place.tapes()


def test_a_script_that_ends_too_early_is_an_error_that_keeps_its_results(place):
    model = place.script(call("ls", path="."))
    done = place.run("gong", "chat", "-p", "go", "-m", model, code=1)
    assert "has 1 answer and was asked for one more" in done.stderr
    assert entries(place)[-1]["type"] == "error"


def test_an_unwritable_store_is_one_line(place):
    (place.home / "file").write_text("not a folder")
    done = place.run("gong", "chat", "-p", "x", TAPE_HOME=str(place.home / "file"), code=1)
    assert done.stderr.count("\n") <= 2
    assert "cannot be written" in done.stderr


def test_a_folder_that_vanished_is_one_line(place):
    gone = place.home / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec gong chat -p x </dev/null"
    done = subprocess.run(["sh", "-c", script], env=place.env, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"this folder no longer exists" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_session_whose_folder_has_a_nul_in_it_is_continued(place):
    """Of another program; no folder is called so."""
    (identity,) = place.run("tape", "new").stdout.split()
    line = json.dumps({"type": "meta", "data": {"cwd": "/src/a\0b"}})
    place.run("tape", "append", identity, stdin=f"{line}\n")
    done = place.run(
        "gong", "chat", "--session", identity, "-p", "go", "-m", place.script({"text": "on"})
    )
    assert done.stdout == "on\n"
    assert "this session worked in /src/a␀b; it continues in" in done.stderr


def test_a_damaged_and_a_newer_tape_are_refused_untouched(place):
    model = place.script({"text": "one"})
    place.run("gong", "chat", "-p", "a", "-m", model)
    (folder,) = place.tapes()
    info = folder / "tape.json"
    whole = info.read_bytes()
    info.write_bytes(whole.replace(b'"format":1', b'"format":2'))
    before = reader.files(folder)
    done = place.run("gong", "chat", "--session", folder.name, "-p", "b", "-m", model, code=1)
    assert "update" in done.stderr
    assert reader.files(folder) == before
    info.write_bytes(whole[:20])
    before = reader.files(folder)
    place.run("gong", "chat", "--session", folder.name, "-p", "b", "-m", model, code=4)
    assert reader.files(folder) == before


def test_a_wrong_setting_names_its_key_and_file(place):
    config = place.home / ".config" / "gong" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("modle = 'x'\n")
    done = place.run("gong", "chat", "-p", "x", code=2)
    assert "config.toml" in done.stderr
    assert "modle" in done.stderr


def test_gong_alone_with_options_means_chat(place):
    model = place.script({"text": "hi"})
    assert place.run("gong", "-p", "x", "-m", model).stdout == "hi\n"


def test_the_stores_own_command_line_is_there_under_gong(place):
    assert place.run("gong", "tape", "ls", "--json").stdout == "[]\n"
    assert place.run("gong", "tape", "show", "deadbeef", code=3).stdout == ""


def test_a_dangerous_command_never_reaches_the_shell(place):
    """M097: it would be harmless here, where there is no repository."""
    model = place.script(
        call("bash", command="touch ran; git push --force origin main"), {"text": "ok"}
    )
    ran = place.json("gong", "chat", "-p", "push", "-m", model, "--output-format", "json")
    assert [done["is_error"] for done in ran["tool_calls"]] == [True]
    assert not (place.folder / "ran").exists()
    (result,) = [entry["data"] for entry in entries(place) if entry["type"] == "tool.result"]
    assert result["content"][0]["text"].startswith("Error: dangerous command blocked.")


@pytest.mark.parametrize("program", ["true", "head -1"])
def test_a_reader_that_leaves_stops_the_run_and_the_prompt_is_recorded(place, program):
    command = "gong chat -m offline/rules -p 'run sleep 30' --output-format stream-json"
    done = subprocess.run(
        ["bash", "-c", f"{command} | {program} > /dev/null; exit ${{PIPESTATUS[0]}}"],
        cwd=place.folder, env=place.env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    told = place.run("tape", "log", "--oneline").stdout
    assert "run sleep 30" in told
    assert "Aborted" in told


@pytest.mark.parametrize("tools", ["", ",,", " , "])
def test_tools_that_name_none_are_a_usage_error(place, tools):
    done = place.run("gong", "chat", "-p", "hi", "--tools", tools, code=2)
    assert "names no tool" in done.stderr


def test_the_timeout_of_commands_is_set_by_a_flag_c1(place):
    """C1: a command that never ends cannot hang -p; more than 600 seconds are refused."""
    model = place.script(call("bash", command="tail -f /dev/null"), {"text": "done"})
    place.run("gong", "-p", "go", "-m", model, "--command-timeout", "0.3")
    (result,) = (one["data"] for one in entries(place) if one["type"] == "tool.result")
    assert "Command timed out after 0.3 seconds" in result["content"][0]["text"]
    done = place.run("gong", "-p", "go", "--command-timeout", "601", code=2)
    assert "601.0 is not in the range 0<x<=600.0" in done.stderr


def test_v_says_how_a_provider_is_reached_and_how_each_call_went(place):
    """M223: a diagnosis of a provider, and nothing of the key but its end."""
    key = "sk-secret-0123456789"
    address = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": key}
    done = place.run("gong", "-v", "-p", "x", "-m", "haiku", code=75, **address)
    first, *others = done.stderr.splitlines()
    assert first.startswith(
        "gong: anthropic/claude-haiku-5-5: anthropic-messages at http://127.0.0.1:9, "
        "key …6789 from ANTHROPIC_API_KEY, window 1,000,000 tokens"
    )
    assert re.fullmatch(r"gong: call 1: NetworkError after \d+\.\d s; another .*", others[-2])
    assert "cannot reach http://127.0.0.1:9" in others[-1]
    assert key not in done.stderr
    model = place.script({"text": "ok"})
    told = place.run("gong", "-v", "-p", "x", "-m", model).stderr.splitlines()
    assert re.fullmatch(r"gong: call 1: stop after \d+\.\d s, \d+ tokens in, 1 out", told[-1])


@pytest.mark.parametrize("prompt", ["/nosuch", "/cost", "/nosuch with words"])
def test_an_unknown_command_is_not_sent_to_the_model(place, prompt):
    """Exit 2, and no session; a path, and a line that begins with a space, are words."""
    done = place.run("gong", "-p", prompt, "-m", "offline/rules", code=2)
    assert f"{prompt.split()[0]} is no skill" in done.stderr
    assert place.tapes() == []
    for words in ("/etc/hosts is what?", f" {prompt}"):
        place.run("gong", "-p", words, "-m", "offline/rules")
    assert len(place.tapes()) == 2
