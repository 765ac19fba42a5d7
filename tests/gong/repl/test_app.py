"""The conversation as its keys and its screen: real sessions, a pipe for a keyboard."""

import asyncio
import os
import signal
import threading
import time
from contextlib import asynccontextmanager

import pyte
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from gong.agent.events import RunEnd
from gong.agent.recorder import Recorder
from gong.repl.conversation.app import ConversationEnd, run_conversation
from gong.repl.conversation.first_prompt import TypedAhead
from tape.model.entries import Approval, Context, User
from tape.store.store import Beginning
from tests.screen import Screen

ENTER, ALT_ENTER, ESC, CTRL_C, CTRL_D, CTRL_J = "\r", "\x1b\r", "\x1b", "\x03", "\x04", "\n"
SHIFT_TAB = "\x1b[Z"
PATIENCE_SECONDS = 120


class Window:
    """What prompt-toolkit writes to, as a screen."""

    encoding = "utf-8"

    def __init__(self, size, answer):
        self.size = size
        self._screen = Screen(size.columns, size.rows, answer)
        self._stream = pyte.Stream(self._screen)
        self.raw = ""
        self.frames = []

    def write(self, data):
        self.raw += data
        self._stream.feed(data)

    def flush(self):
        self.frames.append(self.rows())

    def isatty(self):
        return True

    def fileno(self):
        return 1

    def rows(self):
        return self._screen.read_rows()

    def text(self):
        return self._screen.read_text()


class Talk:
    """A conversation that is going on."""

    def __init__(self, window, keyboard, task, host):
        self.window, self.task, self.host = window, task, host
        self._keyboard = keyboard

    def type(self, keys):
        self._keyboard.send_text(keys)

    async def until(self, condition, wanted):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if self.task.done():
                self.task.result()
            assert time.monotonic() < deadline, f"no {wanted} in:\n{self.window.text()}"
            await asyncio.sleep(0.02)

    async def sees(self, text):
        await self.until(lambda: text in self.window.text(), repr(text))

    async def status(self, text):
        await self.until(lambda: text in self.window.rows()[-1], f"{text!r} at the bottom")

    async def leave(self):
        self.type(CTRL_D)
        return (await asyncio.wait_for(self.task, PATIENCE_SECONDS)).exit_code


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def talk(clock):
    """Open a conversation with a host; it is left at the end if it was not before."""

    @asynccontextmanager
    async def talk(host, columns=80, rows=24, typed=None):
        with create_pipe_input() as keyboard:
            window = Window(Size(rows, columns), keyboard.send_text)
            output = Vt100_Output(window, lambda: window.size)
            with create_app_session(keyboard, output):
                task = asyncio.create_task(run_conversation(host, typed, clock=clock))
            going_on = Talk(window, keyboard, task, host)
            try:
                yield going_on
                if not task.done():
                    assert await going_on.leave() == 0
            finally:
                task.cancel()
                await asyncio.wait({task})

    return talk


def words(host, kind):
    return [
        "".join(b.text for b in e.data.content)
        for e in host.session.recorder.path
        if isinstance(e.data, kind)
    ]


async def test_a_conversation_from_greeting_to_goodbye(host, talk, folder):
    (folder / "a.txt").write_text("alpha\n")
    here = await host()
    async with talk(here) as now:
        await now.status("offline/rules · new session · ready")
        now.type("read a.txt\r")
        await now.sees("it begins: alpha")
        await now.status("offline/rules · main · ready")
        assert await now.leave() == 0
    tape = here.session.recorder.tape
    shown = now.window.text().rstrip().replace(" · /help", "/help").replace("\n", "")
    assert shown.removeprefix("gong · offline/rules").removeprefix(" · ") == (
        f"{folder}/help"
        "> read a.txt"
        "● read a.txt"
        "a.txt has 1 line; it begins: alpha"
        f"session {tape.id[:8]}:main · continue with: gong chat -c"
    )


async def test_the_goodbye_of_a_second_terminal_says_how_to_join_its_branch(host, talk, store):
    first = await host()
    async with talk(first) as now:
        now.type("think\r")
        await now.sees("I thought.")
        await now.status("ready")
    tape = first.session.recorder.tape
    second = await host(recorder=Recorder.open(store.open(tape.id)))  # main is held by the first
    async with talk(second) as now:
        now.type("think\r")
        await now.sees("I thought.")
        await now.status("ready")
        assert await now.leave() == 0
    where = f"{tape.id[:8]}:main.2"
    shown = now.window.text().replace("\n", "")
    assert f"continue with: gong chat --session {where}" in shown
    assert f"bring it into main with: tape merge {where}" in shown


async def test_leaving_without_a_word_says_nothing(host, talk, store):
    async with talk(await host()) as now:
        await now.status("ready")
        assert await now.leave() == 0
    assert "continue with" not in now.window.text()
    assert store.folders() == []


async def test_going_on_says_where(host, talk, store):
    first = await host()
    async with talk(first) as now:
        now.type("think\r")
        await now.sees("I thought.")
        await now.status("ready")
    tape = first.session.recorder.tape
    await first.close()
    second = await host(recorder=Recorder.open(store.open(tape.id)))
    entries = second.session.recorder.path[-1].n + 1
    async with talk(second) as now:
        await now.sees(f"continuing {tape.id[:8]}:main, {entries} entries")
        await now.status("offline/rules · main · ready")


async def test_shift_tab_chooses_the_next_permission_mode_m175(host, talk):
    """M175: the status line shows it, with the effort; bypass only where it began in it."""
    first = await host()
    async with talk(first) as now:
        await now.status("bypass · offline/rules · new session")
        for mode in ("default", "accept_edits", "plan", "bypass", "default"):
            now.type(SHIFT_TAB)
            await now.status(f"{mode} · offline/rules · new session")
        now.type("/mode plan\r")
        await now.sees("permission mode: plan, from the next call on")
        now.type("/effort high\r")
        await now.status("plan · offline/rules:high · new session")
        now.type("/mode no\r")
        await now.sees("unknown permission mode 'no'")
        now.type("think\r")
        await now.sees("I thought.")
    assert "mode" in [entry.type for entry in first.session.recorder.path]


async def test_ctrl_c_stops_the_run_and_keeps_the_draft(host, talk, clock):
    """M200: Ctrl+C once cancels."""
    async with talk(await host()) as now:
        now.type("run sleep 30\r")
        await now.status("working 0 s · bash")
        clock.now += 65
        await now.status("working 1 min 5 s · bash")
        now.type("half a thou" + CTRL_C)
        await now.sees("stopped")
        await now.status("main · Ctrl+C again quits")
        assert "Command aborted" in now.window.text()
        assert "> half a thou" in now.window.rows()
        clock.now += 3
        await now.status("offline/rules · main · ready")
        now.type("ght" + ENTER)
        await now.sees("> half a thought\n")
        await now.sees("- read FILE")


async def test_esc_stops_the_run(host, talk):
    async with talk(await host()) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        now.type(ESC)
        await now.sees("stopped")
        await now.status("ready")


async def test_a_second_ctrl_c_within_two_seconds_leaves(host, talk, clock):
    """M200: Ctrl+C twice exits."""
    async with talk(await host()) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        now.type(CTRL_C)
        clock.now += 1.9
        now.type(CTRL_C)
        assert await asyncio.wait_for(now.task, PATIENCE_SECONDS) == ConversationEnd()
    assert "stopped" in now.window.text()
    assert "continue with" in now.window.text()


async def test_ctrl_c_empties_the_line_and_two_seconds_later_does_so_again(host, talk, clock):
    async with talk(await host()) as now:
        for draft in ("first", "second"):
            now.type(draft)
            await now.until(lambda d=draft: f"> {d}" in now.window.rows(), draft)
            now.type(CTRL_C)
            await now.until(lambda: ">" in now.window.rows(), "an empty prompt")
            clock.now += 2
        assert not now.task.done()


async def test_any_other_key_takes_the_second_ctrl_c_its_meaning(host, talk):
    async with talk(await host()) as now:
        for key in ("x", "\x1b[D"):
            now.type(CTRL_C)
            await now.status("Ctrl+C again quits")
            now.type(key)
            await now.status("new session · ready")
        now.type(CTRL_C)
        await now.status("Ctrl+C again quits")
        assert not now.task.done()


async def test_a_stop_before_the_run_starts_stops_it(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("run sleep 30\r" + CTRL_C)
        await now.sees("stopped")
        await now.status("main ·")
        assert await now.leave() == 0
    assert words(here, User) == ["run sleep 30"]


async def test_leaving_before_the_run_starts_stops_it(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("run sleep 900\r" + CTRL_C + CTRL_C)
        assert await asyncio.wait_for(now.task, PATIENCE_SECONDS) == ConversationEnd()
    assert words(here, User) == ["run sleep 900"]


async def test_enter_while_the_agent_works_steers_it(host, talk, folder):
    here = await host()
    async with talk(here) as now:
        now.type("run while ! test -e go; do sleep 0.05; done\r")
        await now.status("· bash")
        now.type("think about tea\r")
        await now.sees("steering: think about tea")
        await now.status("queue 1")
        (folder / "go").touch()
        await now.sees("\n> think about tea\n")
        await now.sees("I thought about tea")
        await now.status("main · ready")
        assert "steering:" not in now.window.text()
    assert words(here, Context) == ["think about tea"]


@pytest.mark.parametrize("send", [ENTER, ALT_ENTER])
async def test_words_entered_while_a_run_is_being_stopped_are_the_next_prompt(host, talk, send):
    here = await host()
    async with talk(here) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        now.type(CTRL_C + "think about tea" + send)
        await now.sees("stopped\n\n> think about tea\n")
        await now.sees("I thought about tea")
    assert words(here, User) == ["run sleep 30", "think about tea"]


async def test_words_entered_just_as_a_run_ends_are_answered(host, talk):
    here = await host()
    async with talk(here) as now:

        def enter(event):
            if isinstance(event, RunEnd):
                now.type("think about tea\r")
                leave()

        leave = here.session.subscribe(enter)
        now.type("think\r")
        await now.sees("I thought about tea")
        await now.status("main · ready")
    assert words(here, User) == ["think", "think about tea"]
    assert here.session.list_queued() == ()


async def test_what_is_held_is_dropped_when_the_person_leaves(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        now.type(CTRL_C + "think\r" + CTRL_C + CTRL_C)
        assert await asyncio.wait_for(now.task, PATIENCE_SECONDS) == ConversationEnd()
    assert words(here, User) == ["run sleep 30"]
    assert "\nnot sent: think\n" in now.window.text()


async def test_alt_enter_while_the_agent_works_waits_for_the_end(host, talk, script, folder):
    wait = {"name": "bash", "args": {"command": "while ! test -e go; do sleep 0.05; done"}}
    here = await host(
        script({"tool_calls": [wait]}, {"text": "first done"}, {"text": "second done"})
    )
    async with talk(here) as now:
        now.type("begin\r")
        await now.status("· bash")
        now.type("and then this" + ALT_ENTER)
        await now.sees("follow-up: and then this")
        (folder / "go").touch()
        await now.sees("second done")
        text = now.window.text()
        order = [text.index(part) for part in ("first done", "\n> and then this", "second done")]
        assert order == sorted(order)


@pytest.mark.parametrize("stop", [ESC, CTRL_C])
async def test_a_stop_returns_what_waits_to_the_prompt(host, talk, stop):
    """In the order in which it was entered, before what is being typed; nothing is sent."""
    here = await host()
    async with talk(here) as now:
        now.type("run sleep 900\r")
        await now.status("· bash")
        now.type("first" + ALT_ENTER)
        await now.sees("follow-up: first")
        now.type("second\r")
        await now.sees("steering: second")
        now.type("third" + stop)
        await now.sees("stopped")
        await now.sees("> first\n  second\n  third\n")
        assert here.session.list_queued() == ()
        now.type(ENTER)
        await now.status("ready")
    assert words(here, User) == ["run sleep 900", "first\nsecond\nthird"]


async def test_what_waits_after_a_failed_run_is_sent_before_the_next_prompt(host, talk, script):
    failing = {"error": {"class": "InvalidRequest", "message": "no"}, "delay_ms": 300}
    here = await host(script(failing, {"text": "better"}))
    async with talk(here) as now:
        now.type("begin\r")
        await now.status("working")
        now.type("and then this" + ALT_ENTER)
        await now.sees("follow-up: and then this")
        await now.status("ready")
        now.type("and that\r")
        await now.sees("better")
        assert "follow-up:" not in now.window.text()
    assert words(here, User) == ["begin", "and then this\nand that"]


async def test_alt_enter_with_nothing_going_on_just_sends(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("think" + ALT_ENTER)
        await now.sees("I thought.")
        await now.status("ready")
    assert words(here, User) == ["think"]


async def test_ctrl_j_makes_a_prompt_of_several_lines(host, talk, clock):
    here = await host()
    async with talk(here) as now:
        now.type("think")
        await now.sees("> think")
        clock.now += 0.1
        now.type(CTRL_J + "think about tea" + ENTER)
        await now.sees("> think\n  think about tea")
        await now.sees("I thought about tea")
        await now.status("ready")
    assert words(here, User) == ["think\nthink about tea"]


@pytest.mark.parametrize("key", [CTRL_J, "\\" + ENTER], ids=["ctrl-j", "backslash"])
async def test_a_new_line_may_be_typed_as_fast_as_a_program_does(host, talk, key):
    here = await host()
    async with talk(here) as now:
        now.type(f"think{key}{key}think about tea" + ENTER)
        await now.sees("I thought about tea")
        await now.status("ready")
    assert words(here, User) == ["think\n\nthink about tea"]


async def test_a_backslash_within_a_line_is_one(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("think about a\\b" + ENTER)
        await now.sees("I thought about a\\b")
        await now.status("ready")
    assert words(here, User) == ["think about a\\b"]


async def test_an_empty_line_is_nothing(host, talk):
    here = await host()
    async with talk(here) as now:
        await now.status("ready")
        now.type("  \r\r/help\r")
        await now.sees("also while the agent works")
    assert here.session.recorder is None


async def test_an_unknown_command_never_reaches_the_model(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("/hlep\r")
        await now.sees("unknown command /hlep: did you mean /help?")
    assert here.session.recorder is None


async def test_fork_is_refused_while_the_agent_works(host, talk):
    async with talk(await host()) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        now.type("/fork\r")
        await now.sees("/fork has to wait for the agent")
        now.type(ESC)
        await now.status("main · ready")
        now.type("/fork other\r")
        await now.sees("Switched to new branch other")
        await now.status("offline/rules · other · ready")


async def test_quit_leaves_while_the_agent_works(host, talk):
    async with talk(await host()) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        now.type("/quit\r")
        assert await asyncio.wait_for(now.task, PATIENCE_SECONDS) == ConversationEnd()


async def test_questions_of_the_model_are_answered_by_letters_alone(host, talk, script, clock):
    """M194: each option has one; of several answers it chooses one, or leaves it out again."""
    store = {"question": "Which store?", "options": [{"label": "SQLite"}, {"label": "Postgres"}]}
    parts = {"question": "Which parts?", "options": [{"label": "docs"}, {"label": "tests"}]}
    questions = [store, {**parts, "multi_select": True}]
    asked = {"tool_calls": [{"name": "ask_user", "args": {"questions": questions}}]}
    here = await host(script(asked, {"text": "done"}))
    here.session.ask_person()
    async with talk(here, columns=100) as now:
        now.type("begin\r")
        await now.sees("2  Postgres (b)")
        clock.now += 1
        now.type("b")
        await now.sees("2  ☐ tests (b)")
        clock.now += 1
        now.type("aba\r")
        await now.sees("Which store? → Postgres")
        await now.sees("Which parts? → tests")
        await now.sees("\ndone\n")


@pytest.mark.parametrize(
    ("early", "left"),
    [("1", ""), ("4e", ""), ("q", "q"), ("hello", "hello")],
    ids=["the key itself", "other keys", "another letter", "words"],
)
async def test_keys_pressed_before_a_question_takes_them_do_not_stop_its_answer(
    host, talk, script, clock, folder, early, left
):
    """They are no answer; the question takes numbers afterwards, and words stay in the prompt."""
    asked = {"tool_calls": [{"name": "bash", "args": {"command": "touch made"}}]}
    here = await host(script(asked, {"text": "done"}))
    here.session.use_permission("default")
    here.session.ask_person()
    async with talk(here, columns=100) as now:
        now.type("begin\r")
        await now.sees("? $ touch made")
        now.type(early)
        await now.sees(f"\n> {early}")
        assert not (folder / "made").exists()
        clock.now += 1
        now.type("1")
        await now.sees("● $ touch made · allowed once")
        await now.sees("\ndone\n")
        await now.status("ready")
        await now.until(
            lambda: (
                [row for row in now.window.rows() if row.startswith(">")][-1:]
                == [f"> {left}".rstrip()]
            ),
            "the words",
        )
        now.type("\x15")
    assert (folder / "made").exists()


async def test_a_digit_in_words_that_are_typed_on_is_no_answer(host, talk, script, clock, folder):
    asked = {"tool_calls": [{"name": "bash", "args": {"command": "touch made"}}]}
    here = await host(script(asked, {"text": "done"}))
    here.session.use_permission("default")
    here.session.ask_person()
    async with talk(here, columns=100) as now:
        now.type("begin\r")
        await now.sees("? $ touch made")
        now.type("retry")
        await now.sees("\n> retry")
        clock.now += 1
        now.type(" 3 times")
        await now.sees("\n> retry 3 times")
        await now.status("empty the prompt, then answer")
        now.type("1\x15")
        await now.status("waits for your answer")
        assert not (folder / "made").exists()
        now.type("4\r")
        await now.sees("● $ touch made · refused")
        await now.sees("\ndone\n")


async def test_an_unexpected_error_is_a_line(host, talk):
    def fail():
        raise ValueError("of other code")

    async with talk(await host()) as now:
        await now.status("ready")
        asyncio.get_running_loop().call_soon(fail)
        await now.sees("internal error, the session continues: ValueError: of other code")
        now.type("think\r")
        await now.sees("I thought.")
        await now.status("ready")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            [{"text": "half of", "stop_reason": "length"}],
            "the answer was cut at the limit of its length (max_output_tokens)",
        ),
        ([{"text": ""}] * 2, "the answer is empty"),
        ([{"text": " \n"}] * 2, "the answer is empty"),
        ([{"thinking": "hm"}] * 2, "the answer has no text: the model only thought"),
    ],
)
async def test_an_answer_that_is_cut_or_has_no_text_says_so(host, talk, script, answers, said):
    """M237: cut by length, empty, or without text."""
    async with talk(await host(script(*answers, {"text": "whole"}))) as now:
        now.type("begin\r")
        await now.sees(f"\n{said}\n")
        await now.status("ready")
        now.type("again\r")
        await now.sees("\nwhole\n")
        await now.status("ready")
        assert now.window.text().count(said) == len(answers)


async def test_each_round_says_that_the_model_thinks_and_which(host, talk, script):
    """M199, M225: "thinking" and the number of the model call in every round; then neither."""
    wait = {"tool_calls": [{"name": "ls", "args": {}}], "delay_ms": 700}
    async with talk(await host(script(wait, wait, {"text": "done", "delay_ms": 700}))) as now:
        now.type("begin\r")
        await now.status(" · thinking")
        await now.status(" · thinking · round 2")
        await now.status(" · thinking · round 3")
        await now.status("main · ready")
        assert " · round" not in now.window.rows()[-1]


async def test_the_end_of_the_input_leaves(host, talk):
    async with talk(await host()) as now:
        await now.status("ready")
        now._keyboard.close()
        assert await asyncio.wait_for(now.task, PATIENCE_SECONDS) == ConversationEnd()


async def test_a_failed_answer_is_one_line_and_the_prompt_stays(host, talk, script):
    model = script({"error": {"class": "ContentFiltered", "message": "refused"}}, {"text": "well"})
    async with talk(await host(model)) as now:
        now.type("begin\r")
        await now.sees("\nrefused\n")
        await now.status("ready")
        now.type("again\r")
        await now.sees("\nwell\n")


async def test_an_error_of_the_store_is_one_line_and_the_prompt_stays(host, talk, store):
    store.tapes.parent.mkdir(exist_ok=True)
    store.tapes.write_text("no folder")
    async with talk(await host(), columns=240) as now:
        now.type("think\r")
        await now.sees("cannot be written: Not a directory")
        await now.status("ready")
        now.type("/help\r")
        await now.sees("show this list")


async def test_a_long_line_is_seen_growing_before_it_ends(host, talk, script):
    model = script({"text": "word " * 40 + "end", "chunk": 5, "chunk_delay_ms": 10})
    async with talk(await host(model), columns=40, rows=12) as now:
        now.type("begin\r")
        await now.status("answering")
        await now.until(lambda: any(r.startswith("word word") for r in now.window.rows()), "words")
        await now.sees("end")
        await now.status("ready")
        assert now.window.text().count("word") == 40


async def test_many_lines_are_printed_once_each_and_in_order(host, talk, script):
    model = script({"text": "\n".join(f"line {number}." for number in range(600))})
    async with talk(await host(model)) as now:
        now.type("begin\r")
        await now.sees("line 599.")
        await now.status("ready")
    lines = [row for row in now.window.text().split("\n") if row.startswith("line ")]
    assert lines == [f"line {number}." for number in range(600)]


async def test_no_frame_shows_a_line_twice(host, talk, script):
    lines = [f"line {number}" for number in range(8)]
    model = script({"text": "\n".join(lines), "chunk": 3, "chunk_delay_ms": 5})
    async with talk(await host(model), rows=60) as now:
        now.type("begin\r")
        await now.sees("line 7")
        await now.status("ready")
    for frame in now.window.frames:
        shown = [row for row in frame if row.startswith("line ")]
        assert shown == lines[: len(shown)]


async def test_escape_sequences_in_an_answer_stay_text(host, talk, script):
    async with talk(await host(script({"text": "a\x1b]0;owned\x07b\x1b[2Jc"}))) as now:
        now.type("begin\r")
        await now.sees("a␛]0;owned␇b␛[2Jc")
    assert "\x1b]0;owned" not in now.window.raw


async def test_a_request_to_end_stops_the_run_and_leaves(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("run sleep 30\r")
        await now.status("· bash")
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(now.task, PATIENCE_SECONDS) == ConversationEnd(130)
    assert "stopped" in now.window.text()


def decisions(here):
    found = (e.data for e in here.session.recorder.path if isinstance(e.data, Approval))
    return [(one.decision, one.by, one.reason, one.rule) for one in found]


_UP, _DOWN, _RIGHT, _LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
_RULE = "Bash(touch:*)"


@pytest.mark.parametrize(
    ("keys", "decided"),
    [
        ("\r", ("allow", "user", None, None)),
        ("y", ("allow", "user", None, None)),
        ("1", ("allow", "user", None, None)),
        (f"{_DOWN}{_DOWN}\r", ("allow", "user", None, _RULE)),
        ("2", ("allow", "user", None, _RULE)),
        ("3", ("allow", "user", None, _RULE)),
        (f"{_DOWN}{_DOWN}{_DOWN}{_RIGHT}\r", ("allow", "user", None, _RULE)),
        ("5", ("allow", "user", None, _RULE)),
        (f"{_UP}\r", ("deny", "user", None, None)),
        ("n", ("deny", "user", None, None)),
        (ESC, ("deny", "user", None, None)),
        ("4\r", ("deny", "user", None, None)),
        ("4keep it\r", ("deny", "user", "keep it", None)),
        (f"{_UP}keep it\r", ("deny", "user", "keep it", None)),
        (f"4{_DOWN}1", ("allow", "user", None, None)),
        (f"e{ESC}", None),
        (f"{_RIGHT}\r{ESC}", None),
    ],
)
async def test_each_answer_has_arrows_a_number_and_some_a_letter(
    host, talk, script, clock, folder, keys, decided
):
    """M177 M178: a list with a cursor; the question is gone afterwards, its record stays."""
    asked = {"tool_calls": [{"name": "bash", "args": {"command": "touch made"}}]}
    here = await host(script(asked, {"text": "done"}))
    here.session.use_permission("default")
    here.session.ask_person()
    async with talk(here, columns=100) as now:
        now.type("begin\r")
        await now.sees("▶ 1  yes, once (y)")
        clock.now += 1
        await now.status("waits for your answer")
        now.type(keys)
        if decided is None:
            await now.status("waits for your answer")
            now.type("n")
            decided = ("deny", "user", None, None)
        await now.sees("\ndone\n")
        await now.status("ready")
        rows = "\n".join(now.window.rows())
        assert rows.count("touch made") == 1
        assert "yes, once" not in rows
    assert decisions(here) == [decided]
    assert (folder / "made").exists() is (decided[0] == "allow")


async def test_a_failed_call_that_is_made_again_is_one_row_that_changes(host, talk, script, clock):
    """M208: the row says when, how often and how to stop it; nothing of it stays."""
    busy = {"error": {"class": "ServerError", "message": "overloaded", "retry_after": 0.6}}
    here = await host(script(busy, busy, {"text": "here I am"}))
    here.session.ask_person()
    async with talk(here) as now:
        now.type("begin\r")
        await now.sees("retrying in 1 s · 1 of 10 · Esc stops · overloaded")
        await now.sees("2 of 10")
        await now.sees("here I am")
        await now.status("ready")
        assert "overloaded" not in now.window.text()


@pytest.mark.parametrize("stopped", [False, True])
async def test_retry_asks_again_without_another_prompt(host, talk, script, stopped):
    failing = {"error": {"class": "InvalidRequest", "message": "no such thing"}}
    if stopped:
        failing = {"text": "late", "delay_ms": 900_000}
    here = await host(script(failing, {"text": "here I am"}))
    async with talk(here) as now:
        now.type("begin\r")
        if stopped:
            await now.status("working")
            now.type(ESC)
            await now.sees("stopped")
        await now.status("ready")
        now.type("/retry\r")
        await now.sees("here I am")
        await now.status("ready")
        now.type("/retry\r")
        await now.sees("the last answer is complete: there is nothing to retry")
    assert words(here, User) == ["begin"]


async def test_a_list_that_a_slash_command_prints_fits_the_terminal(host, talk, monkeypatch):
    """Words of replies are not broken either."""
    here = await host()
    here.library.store.create(
        Beginning("/somewhere/far/away", "gong/1", "A long title " * 9)
    ).close()
    monkeypatch.setenv("COLUMNS", "44")
    async with talk(here, columns=44) as now:
        now.type("/sessions\r")
        await now.sees("A long title")
        assert max(map(len, now.window.text().split("\n"))) <= 44
        assert "…" in now.window.text()
        now.type("/help\r")
        await now.sees("/resume [REF]       continue another\n                    session; without")


async def test_the_cost_is_that_of_the_whole_session(host, talk, script):
    """M183: the sum of /cost, also of what an earlier program and an earlier branch spent."""
    usage = {"input": 2_500, "output": 500}
    model = script(*[{"text": "yes", "usage": usage}] * 3)
    prices = {model: {"price": {"input": 2.0, "output": 15.0}, "context_window": 90_000}}
    here = await host(model, models=prices)
    async with talk(here) as now:
        now.type("one\r")
        await now.status("$0.013")
        await now.status("ready")
    tape = here.session.recorder.tape
    await here.close()
    here = await host(model, Recorder.open(here.library.store.open(tape.id), None), models=prices)
    async with talk(here) as now:
        await now.status("$0.013")
        now.type("/fork other\r")
        await now.status("other · ready")
        now.type("two\r")
        await now.status("$0.025")
        now.type("/cost\r")
        await now.sees("Estimated Cost: $0.025")
    await here.close()
    here = await host(model, Recorder.open(here.library.store.open(tape.id), "main"), models=prices)
    async with talk(here) as now:
        await now.status("$0.025 · main · ready")


async def test_the_menu_opens_for_arguments_and_enter_takes_its_first_row(host, talk):
    """UX: it stays open after a deletion; what is typed stays until a row is taken."""
    here = await host()
    async with talk(here) as now:
        now.type("/mo")
        await now.sees("▶ /mode [NAME]")
        now.type("\t")
        await now.sees("\n> /mode\n  default       Ask before anything is changed or run\n")
        now.type("pq")
        await now.until(lambda: "plan" not in now.window.text(), "empty menu")
        now.type("\x7f")
        await now.sees("\n> /mode p\n▶ plan          Only read, and propose a plan\n")
        now.type(ENTER)
        await now.sees("\n> /mode plan\n")
        await now.status("plan · ")


async def test_the_menu_opens_for_what_was_typed_while_another_was_looked_up(
    host, talk, monkeypatch
):
    here = await host()
    began, may_end = threading.Event(), threading.Event()

    def list_slowly(_):
        began.set()
        assert may_end.wait(PATIENCE_SECONDS)
        return ()

    monkeypatch.setattr(type(here.models.names.catalogue), "list_models", list_slowly)
    async with talk(here) as now:
        await now.status("ready")
        now.type("/model ")
        await now.until(began.is_set, "lookup")
        now.type(CTRL_C)
        await now.until(lambda: "/model" not in now.window.text(), "empty prompt")
        now.type("/effort h")
        await now.sees("> /effort h")
        may_end.set()
        await now.sees("xhigh")
        now.type(CTRL_C)


async def test_the_menu_marks_other_rows_and_leaves_what_is_typed_alone(host, talk):
    here = await host()
    async with talk(here) as now:
        now.type("/effort h")
        await now.sees("\n> /effort h\n▶ high   think hard\n  xhigh  think as hard as")
        now.type("\x1b[B")
        await now.sees("\n> /effort h\n  high   think hard\n▶ xhigh  think as hard as")
        now.type("\x1b[B")
        await now.sees("▶ high   think hard\n  xhigh  think as hard as")
        now.type(ESC)
        await now.until(lambda: "xhigh" not in now.window.text(), "closed menu")
        now.type(CTRL_C)


async def test_what_is_typed_in_full_is_sent_as_it_is(host, talk):
    """Enter puts in no longer name that has it, and none for a new name."""
    here = await host()
    async with talk(here) as now:
        now.type("/mode")
        await now.sees("/mode [NAME]")
        now.type(ENTER)
        await now.sees("\n> /mode\n")
        await now.sees("bypass")
        now.type("think\r")
        await now.status("main · ready")
        now.type("/fork ma")
        await now.sees("> /fork ma")
        now.type(ENTER)
        await now.status("ma · ready")


async def test_names_of_models_are_whole_in_a_narrow_menu(host, talk):
    """What is left of one that is longer than the row is its end, which tells it from others."""
    here = await host()
    async with talk(here, columns=44) as now:
        now.type("/model sonnet-4-5")
        await now.sees("▶ anthropic/claude-sonnet-4-5\n    no key · 200k · $3 / $15\n")
        now.type(CTRL_C)


async def test_models_are_listed_with_window_and_price_those_with_a_key_first(host, talk):
    here = await host()
    async with talk(here, columns=100) as now:
        now.type("/model sonnet-4-5")
        await now.sees("▶ anthropic/claude-sonnet-4-5  no key · 200k · $3 / $15")
        now.type(CTRL_C)


async def test_undoing_a_compaction_does_not_undo_a_merge(host, talk):
    here = await host()
    async with talk(here, columns=100) as now:
        for line in ("think about tea", "/fork side", "think about sand"):
            now.type(f"{line}\r")
            await now.status("ready")
            await now.until(lambda: here.session.state == "idle", "an idle session")
        await now.sees("I thought about sand")
        here.session.recorder.tape.switch("main")
    main = await host(
        recorder=Recorder.open(here.library.store.open(here.session.recorder.tape.id), "main")
    )
    async with talk(main, columns=100) as now:
        now.type("/merge side\r")
        await now.sees("side is merged; /merge --undo undoes it")
        now.type("/compact --undo\r")
        await now.sees("the newest summary is of a merge: /merge --undo undoes it")
        now.type("/merge --undo\r")
        await now.sees("Merge undone")


async def test_what_is_typed_before_a_list_opens_is_searched_for_there(host, talk):
    """Of `gong chat -r`: nothing of it goes to a model; Esc leaves an empty prompt."""
    here = await host()
    typed = TypedAhead(["/resume", "quick", "brown"], "fox")
    async with talk(here, typed=typed) as now:
        await now.sees("resume: quick brown fox")
        now.type(ESC)
        await now.status("ready")
        assert "> quick" not in now.window.text()
    assert here.session.recorder is None


async def test_what_is_typed_before_another_session_opens_is_its_draft(host, talk):
    here = await host()
    async with talk(here, typed=TypedAhead(["/new", "think of tea"], "and sand")) as now:
        await asyncio.wait({now.task})
        assert now.task.result().opens.draft == "think of tea\nand sand"
    assert here.session.recorder is None
