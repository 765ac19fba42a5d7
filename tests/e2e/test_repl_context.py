"""The window in the terminal: compaction, undo and handoff as a person types and sees them."""

import os
import re
import signal

import pytest

from tests.e2e.terminal import CTRL_C, ESC, Terminal
from tests.e2e.test_context import sent, talk

SUMMARY = "## Goal\nthe sand is counted\n## Next Steps\n- count on"
SLOW = {"text": SUMMARY, "delay_ms": 60_000}
WORDS = "grain of sand " * 200
STATUS = """\
[models."scripted/script.json"]
context_window = 16000
price = {input = 3.0, output = 15.0}
"""


@pytest.fixture
def chat(place):
    """Open `gong chat` in a terminal, with the answers of a scripted model or the offline one."""
    open_terminals = []

    def chat(*answers, flags=("-c",), columns=80):
        if answers:
            place.script(*answers, name="work/script.json")
        model = "scripted/script.json" if answers else "offline/rules"
        terminal = Terminal(
            [str(place.bin / "gong"), "chat", *flags, "-m", model],
            cwd=place.folder,
            env=place.env,
            columns=columns,
        )
        open_terminals.append(terminal)
        terminal.wait_for("ready")
        return terminal

    yield chat
    for terminal in open_terminals:
        terminal.__exit__()


def left(terminal):
    """Leave and demand that it was clean."""
    terminal.say("/quit")
    assert terminal.wait_for_end() == 0
    return terminal.text()


def wait_for_share(terminal, least, most, spent):
    """Return once the status line shows a percentage of the window between these, and the money."""

    def is_between():
        found = re.search(rf" (\d+) % · \{spent} ", terminal.rows()[-1])
        return found is not None and least <= int(found[1]) <= most

    terminal.wait_until(is_between, f"{least} to {most} %")


def test_words_typed_during_a_compaction_are_the_next_prompt(place, chat):
    """They wait where they are seen; a second compaction is refused; undo goes back."""
    talk(place, 2)
    before = sent(place, "-m", "offline/rules")
    now = chat({"text": SUMMARY, "delay_ms": 1000}, {"text": "after"})
    now.say("/compact the sand")
    now.wait_for("working 0 s · summarising", on_screen=True)
    now.say("meanwhile 日本語")
    now.wait_for("next prompt: meanwhile 日本語", on_screen=True)
    now.say("/compact")
    now.wait_for("/compact has to wait for the compaction: stop it with Esc first")
    now.wait_for("reverts this\n\n> meanwhile 日本語\n\nafter\n")
    now.wait_for("main · ready", on_screen=True)
    now.say("/compact --undo")
    now.wait_for("2 messages were added since this compaction: /compact --undo --leave drops them")
    now.say("/compact --undo --leave")
    now.wait_for("Compaction undone: ")
    left(now)
    assert sent(place, "-m", "offline/rules") == before


def test_a_compaction_that_is_stopped_leaves_the_branch_as_it_was(place, chat):
    talk(place, 1)
    before = sent(place, "-m", "offline/rules")
    now = chat(SLOW, SLOW, SLOW)
    for command, key in (("/compact", ESC), ("/handoff", CTRL_C)):
        now.say(command)
        now.wait_for("summarising", on_screen=True)
        now.type(key)
        now.wait_for(f"> {command}\nstopped\n")
        now.wait_until_gone("working")
    assert "How to continue" not in now.text()
    now.say("/compact")
    now.wait_for("summarising", on_screen=True)
    now.say("these words")
    now.wait_for("next prompt: these words", on_screen=True)
    assert "\nnot sent: these words\n" in left(now)
    assert sent(place, "-m", "offline/rules") == before
    place.run("tape", "verify")


def test_a_kill_inside_a_compaction_loses_nothing(place, chat):
    talk(place, 1)
    now = chat(SLOW)
    now.say("/compact")
    now.wait_for("summarising", on_screen=True)
    os.kill(now.child.pid, signal.SIGKILL)
    now.child.wait()
    place.run("tape", "verify")
    again = chat()
    again.say("which port is staging on?")
    again.wait_for("8143")


def test_every_command_of_the_window_in_forty_columns(place, chat):
    """M168 M183: what uses the window, what it cost, and the page of a handoff."""
    now = chat(flags=(), columns=40)
    now.say("remember that 港は8143番です")
    now.wait_for("Noted: 港は8143番です")
    now.say("run seq 300")
    now.wait_for("the last: 300")
    now.wait_for("main · ready", on_screen=True)
    now.say("/context")
    now.wait_for("system prompt")
    now.wait_for("remember that 港は8143番です")
    now.say("/cost")
    now.wait_for("Estimated Cost: $0.00")
    now.say("/compact 港の番号")
    now.wait_for("Compacted ")
    now.wait_until(lambda: "reverts this" in now.text().replace("\n", ""), "how to undo it")
    now.say("/compact --undo")
    now.wait_for("Compaction undone: ")
    now.say("/handoff offline/rules")
    now.wait_for("Handoff: compacted ")
    now.wait_for("## How to continue")
    now.wait_for("offline/rules · main · ready", on_screen=True)
    left(now)


def test_a_window_that_fills_up_in_a_run_is_one_line_and_what_was_typed_is_answered(place, chat):
    """How full it is and what was spent stand in the status line."""
    (place.home / ".config" / "gong").mkdir(parents=True)
    (place.home / ".config" / "gong" / "config.toml").write_text(STATUS)
    wait = {
        "command": "until test -e go; do sleep 0.05; done; yes sand sand sand sand | head -n 1500"
    }
    now = chat(
        {"text": WORDS, "usage": {"input": 3_000, "output": 1_000}},
        {
            "tool_calls": [{"name": "bash", "args": wait}],
            "usage": {"input": 6_000, "output": 400},
        },
        {"text": SUMMARY, "delay_ms": 1000, "usage": {"input": 7_000, "output": 100}},
        {"text": "end one", "delay_ms": 500, "usage": {"input": 1_550, "output": 50}},
        {"text": "end two", "usage": {"input": 1_550, "output": 50}},
        flags=(),
    )
    now.say("begin")
    now.wait_for("scripted/script.json · 25 % · $0.024 · main · ready", on_screen=True)
    now.say("go on")
    now.wait_for("40 % · $0.048 · main · ", on_screen=True)
    now.wait_for("· bash", on_screen=True)
    now.say("before it")
    now.wait_for("queue 1", on_screen=True)
    (place.folder / "go").touch()
    now.wait_for("summarising", on_screen=True)
    wait_for_share(now, 75, 150, "$0.048")
    now.say("during it")
    now.wait_for("steering: during it", on_screen=True)
    wait_for_share(now, 1, 30, "$0.070")
    now.wait_for("end two")
    now.wait_for("10 % · $0.081 · main · ready", on_screen=True)
    shown = now.text()
    order = ["\n> before it\n", "Compacted ", "\nend one", "\n> during it\n", "\nend two"]
    places = [shown.index(part) for part in order]
    assert places == sorted(places)
    assert shown.count("Compacted ") == 1


def test_what_a_compaction_would_do_is_shown_and_not_done(place, chat):
    """17: /compact --show names what would be replaced and kept, and sends nothing."""
    talk(place, 3)
    before = sent(place, "-m", "offline/rules")
    now = chat()
    now.say("/compact --show")
    now.wait_for("replaced by a summary: ")
    now.wait_for("tokens now, ")
    assert "kept: " in now.text()
    left(now)
    assert sent(place, "-m", "offline/rules") == before
