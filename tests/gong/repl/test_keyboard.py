"""Sequences of keys as terminals send them, with and without the kitty keyboard protocol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.keys import Keys

from gong.repl.typing.keyboard import SHIFT_ENTER, KeyParser, read_kitty_key


def parse(*texts):
    keys = []
    parser = KeyParser(lambda press: keys.append(press.key))
    for text in texts:
        parser.feed(text)
    parser.flush()
    return keys


@pytest.mark.parametrize(
    ("sequence", "keys"),
    [
        ("\x1b[13;2u", [SHIFT_ENTER]),
        ("\x1b[27;2;13~", [SHIFT_ENTER]),
        ("\x1b[13u", [Keys.ControlM]),
        ("\x1b[57414u", [Keys.ControlM]),
        ("\x1b[13;3u", [Keys.Escape, Keys.ControlM]),
        ("\x1b[27u", [Keys.Escape]),
        ("\x1b[9;2u", [Keys.BackTab]),
        ("\x1b[127;5u", [Keys.ControlH]),
        ("\x1b[99;5u", [Keys.ControlC]),
        ("\x1b[99;133u", [Keys.ControlC]),
        ("\x1b[1089;5u", [Keys.ControlC]),
        ("\x1b[32;5u", [Keys.ControlAt]),
        ("\x1b[97;3u", [Keys.Escape, "a"]),
        ("\x1b[97;4u", [Keys.Escape, "A"]),
        ("\x1b[246;3u", [Keys.Escape, "ö"]),
        ("\x1b[99;9u", [Keys.Ignore]),
        ("\x1b[57438u", [Keys.Ignore]),
        ("\x1b[57400u", ["1"]),
        ("\x1b[57419u", [Keys.Up]),
        ("\x1b[1;129A", [Keys.Up]),
        ("\x1b[1;133A", [Keys.ControlUp]),
        ("\x1b[3;129~", [Keys.Delete]),
        ("\x1b[A", [Keys.Up]),
        ("\x1b[1;3A", [Keys.Escape, Keys.Up]),
        ("\r", [Keys.ControlM]),
        ("\n", [Keys.ControlJ]),
        ("\x1b[?2026;2$y", [Keys.Ignore]),
        ("\x1b[?1u", [Keys.Ignore]),
    ],
)
def test_a_sequence_is_its_key_however_it_arrives(sequence, keys):
    assert parse(sequence) == keys
    assert parse(*sequence) == keys
    assert parse("x", f"{sequence}y") == ["x", *keys, "y"]


@given(st.integers(0, 1 << 21), st.integers(0, 1 << 9))
def test_every_key_of_the_protocol_is_taken_as_a_whole(code, held):
    keys = parse(f"\x1b[{code};{held}u", "x")
    assert keys[-1] == "x"
    assert keys[:-1] in ([read_kitty_key(f"\x1b[{code};{held}u")], keys[-3:-1])


@given(st.text(st.sampled_from("\x1b[]?;0123456789uA~$yOab"), max_size=12))
def test_what_is_no_key_of_the_protocol_is_read_as_ever(text):
    ours, theirs = parse(text), []
    parser = Vt100Parser(lambda press: theirs.append(press.key))
    parser.feed(text)
    parser.flush()
    if not any(mark in text for mark in "u~A"):
        assert ours == theirs
