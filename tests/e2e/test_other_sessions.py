"""`gong chat`: to another session, another branch, an earlier prompt, without leaving."""

import json

import pytest

from tests.e2e.terminal import CTRL_C, DOWN, ENTER, ESC, Terminal


@pytest.fixture
def chat(open_chat):
    return open_chat


def ask(now, prompt, answer):
    """Wait for an answer that the prompt itself does not show, and for the end of the run."""
    assert answer not in prompt
    now.say(prompt)
    now.wait_for(answer)
    now.wait_for(" · ready", on_screen=True)


def test_a_new_session_and_back_by_the_words_of_the_first(place, chat):
    """M198: sessions are switched."""
    now = chat()
    ask(now, "run echo zebra", "printed: zebra")
    now.say("/new")
    now.wait_for("back with: /resume ")
    now.wait_for("new session · ready", on_screen=True)
    ask(now, "run echo otter", "printed: otter")
    now.say("/resume")
    now.wait_for("1/2", on_screen=True)
    now.type("zeb")
    now.wait_for("1/1", on_screen=True)
    now.type(ENTER)
    now.wait_for("continuing ")
    ask(now, "run echo again", "printed: again")
    tapes = place.json("tape", "ls", "--json")
    assert [(one["title"], one["branches"]) for one in tapes] == [
        ("run echo zebra", 1),
        ("run echo otter", 1),
    ]


def test_an_earlier_prompt_of_the_tree_is_a_new_branch_with_its_text(place, chat):
    """M204: fork anywhere."""
    now = chat()
    ask(now, "run echo one", "printed: one")
    ask(now, "run echo two", "printed: two")
    now.say("/tree")
    now.wait_for("[main", on_screen=True)
    now.type(DOWN)
    now.wait_for("2/3", on_screen=True)
    now.type(ENTER)
    now.wait_for("no summary", on_screen=True)
    now.wait_for("1/3", on_screen=True)
    now.type(ENTER)
    now.wait_for("continuing ")
    now.wait_for("> run echo two", on_screen=True)
    now.type(" again" + ENTER)
    now.wait_for("printed: two again")
    now.wait_for(" · ready", on_screen=True)
    branches = place.json("tape", "branches", "--json")
    (other,) = {one["branch"] for one in branches} - {"main"}
    now.say("/switch main")
    now.wait_for("no summary", on_screen=True)
    now.type(ENTER)
    now.wait_for("main · ready", on_screen=True)
    now.say("/branches")
    now.wait_for("* main  run echo two")
    now.wait_for(f"  {other}  run echo two again")


@pytest.mark.slow
def test_a_list_is_left_and_the_draft_of_a_missing_session_is_kept(chat):
    now = chat()
    ask(now, "run echo one", "printed: one")
    now.say("/resume")
    now.wait_for(" · Esc", on_screen=True)
    now.type("nothing has these words")
    now.wait_for("nothing found", on_screen=True)
    now.type(ESC)
    now.wait_for("main · ready", on_screen=True)
    now.say("/resume 0123456789")
    now.wait_for("0123456789")
    ask(now, "run echo still", "printed: still")


def test_a_session_is_found_among_many_in_a_narrow_window(place, chat):
    for number in range(12):
        place.run("gong", "chat", "-m", "offline/rules", "-p", f"think about subject{number}")
    now = chat(columns=40)
    now.say("/resume")
    now.wait_for("1/12", on_screen=True)
    now.type("subject7")
    now.wait_for("1/1", on_screen=True)
    assert any("think about subject7" in row for row in now.rows())


def test_a_continued_session_shows_its_last_turns_and_what_changed_since(place, chat):
    now = chat()
    ask(now, "run echo one", "printed: one")
    ask(now, "run echo two > b.txt", "printed nothing")
    ask(now, "run echo three", "printed: three")
    now.say("/quit")
    assert now.wait_for_end() == 0
    (place.folder / "b.txt").write_text("by hand\n")
    again = chat("-c", "--history", "2")
    again.wait_for("changed since: b.txt")
    shown = again.text()
    assert "printed: one" not in shown
    assert (
        "> run echo two > b.txt\n\n● $ echo two > b.txt\n\n"
        "echo two > b.txt printed nothing.\n\n> run echo three\n\n● $ echo three\n  three\n"
    ) in shown


def test_an_interrupted_turn_says_so(place, chat):
    now = chat()
    now.say("run sleep 600")
    now.wait_for("· bash", on_screen=True)
    now.child.kill(9)
    now.child.wait()
    again = chat("-c")
    again.wait_for("interrupted: 1 call without a result")


def test_resume_asks_which_session(place, chat):
    place.run("gong", "chat", "-m", "offline/rules", "-p", "think about tea")
    now = chat("--resume", ready="1/1")
    now.type(ENTER)
    now.wait_for("continuing ")
    now.wait_for("> think about tea")
    refused = place.run("gong", "chat", "--resume", "-p", "x", code=2)
    assert "needs a terminal" in refused.stderr


def test_talk_and_files_go_back_and_forward_again(place, chat):
    """§9 row 1: three choices, shown as a diff first, undoable, nothing by hand is lost."""
    now = chat()
    ask(now, "run echo one > b.txt", "printed nothing")
    ask(now, "run echo two >> b.txt; echo made > c.txt", "c.txt printed nothing")
    (place.folder / "c.txt").write_text("by hand\n")
    now.type(ESC + ESC)
    now.wait_for("1/2", on_screen=True)
    now.type(ENTER)
    now.wait_for("go back:", on_screen=True)
    now.wait_for("▶ 1  talk and files", on_screen=True)
    shown = now.text()
    assert "1 prompt leaves the branch:" in shown
    assert "  M  b.txt\n" in shown
    assert "conflict" in shown
    assert "\n-two\n" in shown
    now.type("9")  # no answer
    now.type("1")
    now.wait_for("Rewound: 1 prompt, 1 file restored, 1 kept as they are; /redo reverses it")
    now.wait_for("> run echo two >> b.txt; echo made > c.txt", on_screen=True)
    assert (place.folder / "b.txt").read_text() == "one\n"
    assert (place.folder / "c.txt").read_text() == "by hand\n"
    now.type(CTRL_C)
    now.say("/redo")
    now.wait_for("Redone: 1 prompt, 1 file restored")
    assert (place.folder / "b.txt").read_text() == "one\ntwo\n"
    now.say("/undo 2 talk")
    now.wait_for("Undone: 2 prompts, 0 files restored; /redo reverses it")
    assert (place.folder / "b.txt").read_text() == "one\ntwo\n"
    now.type(CTRL_C)
    now.say("/undo x")
    now.wait_for("/undo takes a number of prompts")


def test_commands_of_the_command_line_are_commands_of_the_conversation(place, chat):
    now = chat()
    now.say("/diff")
    now.wait_for("the session is empty: type a prompt first")
    ask(now, "run echo one > b.txt", "printed nothing")
    for command, said in (
        ("/diff", "+one"),
        ("/status", "branch  main"),
        ("/sessions", "run echo one"),
        ("/version", "SQLite "),
        ("/doctor", "terminal"),
        ("/permissions", "mode"),
        ("/compare", "/compare needs REF"),
        ("/export -o talk.md", "talk.md"),
        ("/export html", "written to session.html; what looks like a secret is masked"),
        ("/share page.html", "written to page.html"),
        ("/share page.html", "page.html already exists"),
        ("/logout", "/logout needs PROVIDER"),
        ("/name the first file", "title: the first file"),
        ("/label here", "label here is at "),
        ("/memory", "none; /init writes AGENTS.md"),
        ("/init", "wrote "),
        ("/debug", "profile "),
        ("/add-dir /nowhere", "/nowhere is not a folder"),
    ):
        now.say(command)
        now.wait_for(said)
    file = place.folder / "talk.md"
    now.wait_until(lambda: file.exists() and "echo one" in file.read_text(), "the exported talk")
    now.say("/reload")
    now.wait_for("instructions: AGENTS.md")
    assert place.json("tape", "ls", "--json")[0]["title"] == "the first file"


def test_packages_of_the_project_are_not_taken_for_our_programs(place, chat):
    """A project can be named so: that of gong itself is."""
    for name in ("gong", "tape"):
        package = place.folder / name
        package.mkdir()
        for file in ("__init__.py", "__main__.py"):
            (package / file).write_text("open('taken', 'w').close()\n")
    now = chat()
    ask(now, "run echo one > b.txt", "printed nothing")
    for command, answer in (("/status", "branch  main"), ("/doctor", "terminal")):
        now.say(command)
        now.wait_for(answer)
    assert not (place.folder / "taken").exists()


def test_a_branch_is_merged_from_the_conversation(place, chat):
    now = chat()
    ask(now, "run echo one", "printed: one")
    now.say("/fork other")
    now.wait_for("Switched to new branch other")
    ask(now, "run echo two", "printed: two")
    now.say("/switch main --no-summary")
    now.wait_for("main · ready", on_screen=True)
    now.say("/merge other")
    now.wait_for("other is merged")
    place.run("tape", "verify")


def read_told(place, branch):
    """Return what the anchors of a branch tell of branches that were left for it."""
    log = place.json("tape", "log", f":{branch}", "--type", "anchor", "--json")
    return [(one["data"]["other"]["branch"], one["data"]["summary"]["done"]) for one in log]


def test_a_summary_of_the_branch_that_is_left_is_offered(place, chat):
    """M219: none, one by the model, one in own words; it is an entry of the branch entered."""
    now = chat()
    ask(now, "run echo one", "printed: one")
    now.say("/fork other")
    now.wait_for("Switched to new branch other")
    ask(now, "remember that the port is 99", "Noted: the port is 99")
    now.say("/switch main")
    now.wait_for("a summary in your own words", on_screen=True)
    now.type(ESC)
    now.wait_for("other · ready", on_screen=True)
    now.say("/switch main")
    now.wait_for("1/3", on_screen=True)
    now.type("the port was found")
    now.wait_for("in your words: the port was found", on_screen=True)
    now.type(ENTER)
    now.wait_for("this branch has a summary of other")
    now.wait_for("main · ready", on_screen=True)
    assert read_told(place, "main") == [
        ("other", ["on branch other, which was left: the port was found"])
    ]
    now.say("/switch other")  # main has said nothing that it lacks: nothing is asked
    now.wait_for("other · ready", on_screen=True)
    ask(now, "run echo two", "printed: two")
    now.say("/tree main")
    now.wait_for("1/3", on_screen=True)
    now.type(DOWN + ENTER)
    now.wait_for("main · ready", on_screen=True)
    now.wait_until(lambda: len(read_told(place, "main")) == 2, "a second summary")
    (_, done), _ = sorted(read_told(place, "main"), key=lambda one: -len(one[1]))
    assert done[0] == "on branch other, which was left: the port was found"
    assert "echo two" in done[1]
    now.say("/context")
    now.wait_for("summary")
    place.run("tape", "verify")


def test_own_words_of_a_summary_can_be_typed_into_the_prompt(place, chat):
    now = chat()
    ask(now, "run echo one", "printed: one")
    ask(now, "run echo two", "printed: two")
    now.say("/tree")
    now.wait_for("1/3", on_screen=True)
    now.type(DOWN)
    now.wait_for("2/3", on_screen=True)
    now.type(ENTER)
    now.wait_for("1/3", on_screen=True)
    now.type(DOWN + DOWN + ENTER)
    now.wait_for("--summary", on_screen=True)
    now.type("two was loud" + ENTER)
    now.wait_for("this branch has a summary of main")
    now.wait_for("> run echo two", on_screen=True)
    branches = place.json("tape", "branches", "--json")
    (other,) = {one["branch"] for one in branches} - {"main"}
    assert read_told(place, other) == [("main", ["on branch main, which was left: two was loud"])]


def test_a_session_that_cannot_be_opened_leads_back(place, chat):
    """What breaks between the choice and the opening costs neither the session nor the words."""
    place.run("gong", "chat", "-m", "offline/rules", "-p", "think about tea")
    (other,) = place.tapes()
    now = chat()
    ask(now, "run echo one", "printed: one")
    for file in other.glob("phases/*/entries.jsonl"):
        file.write_bytes(b"{\n" + file.read_bytes())
    now.say(f"/resume {other.name[-8:]}")
    now.wait_for("damaged")
    now.wait_for(" · ready", on_screen=True)
    ask(now, "run echo two", "printed: two")


def test_the_tree_opens_at_the_end_of_the_current_branch(place, chat):
    """Also where another branch is newer, or ends at the same entry."""
    now = chat()
    ask(now, "run echo one", "printed: one")
    place.run("tape", "fork", "--name", "twin")
    place.run("tape", "fork", "--name", "newer")
    hi = {"type": "user", "data": {"content": [{"type": "text", "text": "hi"}]}}
    place.run("tape", "append", ":newer", stdin=json.dumps(hi))
    now.say("/tree")
    now.wait_until(lambda: any(row.startswith("▶ ") for row in now.rows()), "a marked row")
    (marked,) = [row for row in now.rows() if row.startswith("▶ ")]
    assert "[main ←, twin] (end)" in marked
    assert "[newer] " in now.rows()[now.rows().index(marked) - 1]


def test_labels_are_in_the_tree(chat):
    """17: an entry with a label is a row of its own, and Enter goes there."""
    now = chat()
    ask(now, "run echo one", "printed: one")
    now.say("/label first")
    now.wait_for("label first is at ")
    ask(now, "run echo two", "printed: two")
    now.say("/label second")
    now.wait_for("label second is at ")
    now.say("/tree")
    now.wait_for("(second) (end)", on_screen=True)
    now.wait_for("(first) assistant", on_screen=True)
    now.type("first")
    now.wait_for("1/1", on_screen=True)


def test_a_label_is_set_and_removed_in_the_tree(place, chat):
    now = chat()
    ask(now, "run echo one", "printed: one")
    ask(now, "run echo two", "printed: two")
    for said, there in (("is at", 1), ("is removed from", 0)):
        now.say("/tree")
        now.wait_for("Ctrl+L labels", on_screen=True)
        now.type("echo one")
        now.wait_for("1/1", on_screen=True)
        now.type("\x0c")
        now.wait_for("--label", on_screen=True)
        now.type("begin" + ENTER)
        now.wait_for(f"label begin {said} ")
        assert len(place.json("tape", "label", "--json")) == there


def read_status(terminal):
    """Return the last row of the screen, and the colours in it."""
    cells = terminal.screen.buffer[terminal.screen.lines - 1].values()
    return terminal.rows()[-1], {cell.fg for cell in cells if cell.data.strip()}


def test_the_status_line_begins_again_in_another_session(place):
    """M198, M199, M225: red after an error; a switch of sessions resets it, and its todos."""
    todo = {"todos": [{"content": "one thing", "status": "pending"}]}
    model = place.script(
        {"tool_calls": [{"name": "todo", "args": todo}]},
        {"error": {"class": "ContentFiltered", "message": "refused"}},
    )
    command = [str(place.bin / "gong"), "chat", "-m", model]
    with Terminal(command, cwd=place.folder, env=place.env, columns=100) as now:
        now.wait_for("ready")
        now.wait_for_keys()
        _, plain = read_status(now)
        now.say("begin")
        now.wait_for("refused")
        now.wait_for("main · ready", on_screen=True)
        now.wait_for("one thing", on_screen=True)
        now.wait_until(lambda: read_status(now)[1] != plain, "another colour")
        now.say("/new")
        now.wait_until(lambda: "new session · ready" in read_status(now)[0], "the new session")
        now.wait_until(lambda: read_status(now)[1] == plain, "the plain colour")
        assert not [row for row in now.rows()[-4:] if "one thing" in row]


def test_the_commands_and_flags_of_the_terminal_are_there(place):
    """M200: slash commands, flags, commands of the program, and what `version` prints."""
    flags = place.run("gong", "chat", "--help").stdout
    for flag in ("-m,", "-v,", "-t,", "--permission", "--session", "--compact", "--review"):
        assert f" {flag}" in flags, flag
    commands = place.run("gong", "--help").stdout
    for name in ("auth", "work", "config", "version", "workflow"):
        assert f"\n  {name} " in commands, name
    command = [str(place.bin / "gong"), "chat", "-m", "offline/rules"]
    with Terminal(command, cwd=place.folder, env=place.env, rows=90) as now:
        now.wait_for("ready")
        now.wait_for_keys()
        now.say("/help")
        # Its end is shown first, above the prompt, and then the whole list.
        for name in ("compact", "cost", "model", "review"):
            now.wait_for(f"\n/{name} ")
        now.wait_for("/keys lists the keys")
        now.say("/commit")
        now.wait_for("main · ready", on_screen=True)
        assert "unknown command /commit" not in now.text()
