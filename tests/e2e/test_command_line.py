"""What the words after `gong` mean: a command, a slip of one, or a prompt."""

from __future__ import annotations

import pytest

from tests.e2e.terminal import Terminal

HI = {"text": "Good day."}


@pytest.mark.parametrize(
    "words",
    [
        ("what is this",),
        ("what", "is", "this"),
        ("chat", "what", "is", "this"),
        ("chat", "-p", "what is this"),
        ("-p", "what is this"),
        ("-p", "what", "is", "this"),
        ("what", "is", "this", "-p"),
        ("--", "what", "is", "this"),
    ],
    ids=" ".join,
)
def test_words_are_answered_where_there_is_no_terminal(place, words):
    at = words.index("--") if "--" in words else len(words)
    argv = [*words[:at], "-m", place.script(HI), *words[at:]]
    assert place.run("gong", *argv).stdout == "Good day.\n"
    assert place.json("tape", "show", "--json")["title"] == "what is this"


def test_words_and_standard_input_are_one_prompt(place):
    place.run("gong", "explain", "this", "-m", place.script(HI), stdin="a change\n")
    told = place.json("gong", "context", "--json", "-m", "anthropic/claude-sonnet-4-5")
    assert "explain this\\n\\na change" in str(told["request"]["messages"]).replace("\n", "\\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("chta", "chat"),
        ("chta fix it", "chat"),
        ("permisions check bash", "permissions"),
        ("modles", "models"),
        ("tools", "tool"),
        ("ls", "tape ls"),
    ],
)
def test_a_slip_of_a_command_is_named_and_nothing_is_asked(place, words, meant):
    done = place.run("gong", *words.split(), code=2, GONG_MODEL=place.script(HI))
    assert f"no command is called {words.split()[0]}: did you mean gong {meant}?" in done.stderr
    assert "As a prompt: gong chat " in done.stderr
    assert place.tapes() == []


@pytest.mark.parametrize(("words", "command"), [("help", ""), ("help cost", "cost")])
def test_help_is_a_command_before_the_name_of_one(place, words, command):
    told = place.run("gong", *words.split(), GONG_MODEL=place.script(HI)).stdout
    assert told == place.run("gong", *command.split(), "--help").stdout
    assert place.tapes() == []


@pytest.mark.parametrize(
    "words",
    [
        "what does chat do",
        "help me",
        "help cost less",
        "show me",
        "take a look",
        "hello",
        "word count of README",
    ],
)
def test_a_sentence_is_no_slip(place, words):
    assert place.run("gong", *words.split(), GONG_MODEL=place.script(HI)).stdout == "Good day.\n"


@pytest.mark.parametrize("first", [(), ("chat",)], ids=["gong", "gong chat"])
def test_in_a_terminal_the_words_are_the_first_message(place, first):
    command = [str(place.bin / "gong"), *first, "-m", place.script(HI, {"text": "Bye."})]
    with Terminal([*command, "greet", "me"], cwd=place.folder, env=place.env) as now:
        now.wait_for("> greet me")
        now.wait_for("Good day.")
        now.wait_for("ready", on_screen=True)
        now.say("once more")
        now.wait_for("Bye.")
        now.wait_for("ready", on_screen=True)
        now.say("/quit")
        assert now.wait_for_end() == 0


def test_with_p_a_terminal_gets_one_answer(place):
    command = [str(place.bin / "gong"), "greet", "me", "-p", "-m", place.script(HI)]
    with Terminal(command, cwd=place.folder, env=place.env) as now:
        assert now.wait_for_end() == 0
        assert "Good day." in now.text()
        assert "> greet" not in now.text()


def test_no_session_leaves_nothing(place, tmp_path):
    (tmp_path / "temp").mkdir()
    env = {"TMPDIR": str(tmp_path / "temp"), "GONG_MODEL": place.script(HI)}
    assert place.run("gong", "hello", "--no-session", **env).stdout == "Good day.\n"
    assert place.tapes() == []
    assert [*(tmp_path / "temp").glob("gong-*")] == []
    assert "cannot be combined" in place.run("gong", "-c", "--no-session", "x", code=2).stderr


def test_the_limit_of_rounds_stops_a_print_run_and_asks_in_a_terminal(place):
    """The second answer of the model needs a round more than is allowed."""
    looking = {"tool_calls": [{"name": "ls", "args": {}}]}
    command = ["gong", "look", "-m", place.script(looking, looking, HI), "--max-rounds", "1"]
    stopped = place.run(*command, code=8).stderr
    assert stopped.startswith("gong: stopped at the limit of 1 round of tool calls for one prompt")
    command = [str(place.bin / "gong"), *command[1:]]
    with Terminal(command, cwd=place.folder, env=place.env) as now:
        for _ in range(2):
            now.wait_for(
                "The limit of 1 round of tool calls for one prompt is reached.", on_screen=True
            )
            now.say("1")
            now.wait_until_gone("Continue?")
        now.wait_for("ready")
        now.say("/quit")
        assert now.wait_for_end() == 0


def test_a_session_that_is_not_kept_offers_no_continuation(place):
    """With --no-session, at the end of a conversation and of a run that was stopped."""
    looking = {"tool_calls": [{"name": "ls", "args": {}}]}
    model = place.script(looking, HI)
    limited = ("gong", "look", "-m", model, "--max-turns", "1")
    assert "continues (gong chat -c)" in place.run(*limited, code=8).stderr
    stopped = place.run(*limited, "--no-session", code=8).stderr
    assert stopped == "gong: stopped at the limit of 1 model call\n"
    for argv, is_kept in (([], True), (["--no-session"], False)):
        command = [str(place.bin / "gong"), "look", "-m", model, "--max-turns", "1", *argv]
        with Terminal(command, cwd=place.folder, env=place.env) as now:
            now.wait_for("stopped at the limit of 1 model call")
            now.wait_for("ready")
            now.say("/quit")
            assert now.wait_for_end() == 0
            assert ("gong chat -c" in now.text()) == is_kept
