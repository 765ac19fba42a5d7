"""`tape replay`: a session again, and the proof that it still says the same."""

from __future__ import annotations

import signal
import termios
import time

import pytest

from tape.cli.playback import KeyAction, Pace, build_scenes, play_scenes
from tape.history.entry_lines import DecodedLine
from tests.e2e.terminal import Terminal
from tests.tape import making
from tests.tape.cli.conftest import BIN, line, words


def test_a_pipe_gets_the_text_without_waiting(tape, talk):
    shown = tape("replay", talk).text
    assert shown == tape("cat", talk).text


def test_long_results_are_cut(tape):
    identity = tape("new").text.strip()
    long = "\n".join(map(str, range(99)))
    tape("append", identity, stdin=line("tool.result", call_id="c", name="ls", content=words(long)))
    assert tape("replay", identity).text.endswith("\n11\n… 87 more lines\n\n")


def test_json_says_when_each_entry_begins(tape, talk):
    found = tape("replay", talk, "--json", "--max-pause", "0").json
    assert [one["entry"]["type"] for one in found] == [
        *("start", "user", "assistant", "tool.result", "assistant")
    ]
    gap = found[2]["at"] - found[1]["at"]
    assert gap == pytest.approx(len("Read a.py") / 40, abs=0.002)
    fast = tape("replay", talk, "--json", "--max-pause", "0", "--speed", "2").json
    assert fast[-1]["at"] == pytest.approx(found[-1]["at"] / 2, abs=0.002)


class TestPlaying:
    def steps(self, tmp_path, seconds=3600):
        now = [making.DAY]
        store = making.store_in(tmp_path / "s", lambda: now[0])
        with store.create(making.beginning()) as made, made.writer() as writer:
            first = writer.append(making.say("abc"))
            now[0] += seconds * 1_000_000
            second = writer.append(making.answer(text="one two 三四"))
        return [DecodedLine(b"", first), DecodedLine(b"", second)]

    def test_pauses_are_the_sessions_own_up_to_a_limit(self, tmp_path):
        for seconds, pause in ((3600, 2), (1, 1)):
            path = self.steps(tmp_path / str(seconds), seconds)
            one, two = build_scenes(path, Pace(1, 2))
            assert [one.beats[0].wait, two.beats[0].wait] == [0, pytest.approx(pause, abs=1e-3)]
        assert two.step is path[1]
        assert [beat.text for beat in one.beats[1:5]] == ["a", "b", "c", "\n"]
        assert [beat.text for beat in two.beats[1:]] == [
            *("one", " two", " 三", "四", "\n", "\n"),
        ]

    def shown(self, tmp_path, *acts):
        """Play with keys pressed at the given waits; return what appeared and what was waited."""
        left, text, waited = dict(acts), [], []

        def wait(seconds):
            waited.append(seconds)
            return left.get(len(waited))

        play_scenes(build_scenes(self.steps(tmp_path), Pace(1, 2)), wait, text.append)
        return "".join(text), waited

    def test_everything_appears_in_its_time(self, tmp_path):
        text, waited = self.shown(tmp_path)
        assert text.startswith("── user · ")
        assert "\nabc\n\n── assistant · " in text
        assert waited.count(2) == 1

    def test_next_shows_the_rest_of_an_entry_immediately(self, tmp_path):
        text, waited = self.shown(tmp_path, (2, KeyAction.NEXT))
        assert text == self.shown(tmp_path / "again")[0]
        assert waited[2:6] == [0, 0, 0, 0]
        assert 2 in waited

    def test_a_pause_lasts_until_a_key(self, tmp_path):
        text, waited = self.shown(tmp_path, (2, KeyAction.PAUSE), (5, KeyAction.PAUSE))
        assert waited[2:5] == [float("inf")] * 3
        assert text == self.shown(tmp_path / "again")[0]

    @pytest.mark.parametrize(
        "acts", [[(3, KeyAction.QUIT)], [(2, KeyAction.PAUSE), (3, KeyAction.QUIT)]]
    )
    def test_quitting_shows_no_more(self, tmp_path, acts):
        text, waited = self.shown(tmp_path, *acts)
        assert "assistant" not in text
        assert len(waited) == 3


class TestOnATerminal:
    def begin(self, tape, talk, *options):
        env = {**tape.env, "LC_ALL": "C.UTF-8"}
        return Terminal([str(BIN), "replay", talk, *options], cwd=tape.work, env=env)

    def echoes(self, terminal):
        return bool(termios.tcgetattr(terminal.child.child_fd)[3] & termios.ECHO)

    def test_it_plays_to_the_end_and_gives_the_terminal_back(self, tape, talk):
        with self.begin(tape, talk, "--speed", "50") as terminal:
            assert "It sets x." in terminal.wait_for("It sets x.")
            assert terminal.wait_for_end() == 0

    def seen_after(self, terminal, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            terminal._read()
        return terminal.text()

    def test_keys_pause_and_quit(self, tape, talk):
        with self.begin(tape, talk, "--speed", "0.1", "--max-pause", "0") as terminal:
            terminal.wait_for("q quit")
            terminal.wait_for_keys()
            assert not self.echoes(terminal)
            terminal.type(" ")
            paused = self.seen_after(terminal, 0.5)
            assert self.seen_after(terminal, 1) == paused  # four letters would have come
            terminal.type("\x1b[C")
            terminal.wait_for("Read a.py")
            terminal.type("q")
            assert terminal.wait_for_end() == 0
            assert "It sets x." not in terminal.text()
            assert self.echoes(terminal)

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_a_signal_leaves_the_terminal_as_it_was(self, tape, talk, number, code):
        with self.begin(tape, talk, "--speed", "0.01") as terminal:
            terminal.wait_for_keys()
            terminal.child.kill(number)
            assert terminal.wait_for_end() == code
            assert self.echoes(terminal)


class TestChecking:
    def test_a_whole_tape_folds_to_the_same(self, tape, talk):
        found = tape("replay", talk, "--check", "--json").json
        assert list(found) == [
            *("tape", "branch", "head", "entries", "anchors", "kept", "repairs", "unanswered"),
            *("messages", "differences"),
        ]
        assert (found["entries"], found["messages"], found["differences"]) == (6, 4, [])
        assert tape("replay", talk, "--check").text.endswith(
            "6 entries, 0 anchors (0 kept ranges), 0 repairs, 4 messages: "
            "replayed, no differences\n"
        )

    def test_a_difference_is_named_with_its_entry_and_ends_with_4(self, tape, talk):
        (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
        entry = tape("log", talk, "--json").json[1]["id"]
        file.write_bytes(file.read_bytes().replace(b"Read a.py", b"Read b.py"))
        ran = tape("replay", talk, "--check", code=4)
        assert ran.text.startswith(f"difference: {entry[:12]}: its data does not match its hash\n")
        assert ran.text.endswith("1 difference, see above\n")
        assert tape("replay", talk, "--check", "--json", code=4).json["differences"] == [
            {"entry": entry, "what": "its data does not match its hash"}
        ]


@pytest.mark.parametrize(
    "arguments",
    [("--speed", "0"), ("--speed", "x"), ("--max-pause", "-1"), ("--check", "a b:c:d")],
)
def test_misuse_is_one_line(tape, talk, arguments):
    assert tape.refused("replay", *arguments, code=2)
