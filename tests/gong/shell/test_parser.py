"""The view of a command line: what of it runs, and in which words."""

from __future__ import annotations

import pytest

from gong.shell.expansion import ShellState, expand_words
from gong.shell.parser import parse_command_line


def shown(text: str) -> list[str]:
    """Return the words of every simple command, with blanks between."""
    return [
        " ".join("".join(piece.text for piece in word) for word in command.words)
        for command in parse_command_line(text).commands
        if command.words
    ]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a b; c && d || e & f", ["a b", "c", "d", "e", "f"]),
        ("a | b |& c", ["a", "b", "c"]),
        ("(a; (b)); { c; }", ["a", "b", "c"]),
        ("a $(b `c`) <(d) >(e)", ["b `c`", "c", "d", "e", "a $(b `c`) <(d) >(e)"]),
        ('a "x $(b) y"', ["b", "a x $(b) y"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("for x in $(a); do b; done", ["a", "b"]),
        ("for ((i=$(a);;)); do b; done", ["a", "b"]),
        ("case $(a) in $(b)) c;; *) d;; esac", ["a", "b", "c", "d"]),
        ("f() { a; }; function g { b; }", ["a", "b"]),
        ("x=$(a) y=1 b; z=(1 $(c))", ["a", "b", "c"]),
        ("a <<E\n$(b)\nE\nc", ["b", "a", "c"]),
        ("a <<E | b\nx\nE", ["a", "b"]),
        ("a <<< $(b) > $(c)", ["b", "c", "a"]),
        ("[[ -f $(a) ]] && ! b", ["a", "b"]),
        ("a # b\nc", ["a", "c"]),
        ("r\\\nm 'a b' \"c\"'d'e f\\ g $'\\x41\\102'", ["rm a b cde f g AB"]),
    ],
)
def test_every_simple_command_is_in_view(text, commands):
    view = parse_command_line(text)
    assert sorted(shown(text)) == sorted(commands)
    assert view.whole or "((" in text  # arithmetic of names may run what they hold


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a 'b c' d\\ e \"f\"", ["a", "b c", "d e", "f"]),
        ("a $x b$x", ["a", "1", "2", "b1", "2"]),
        ('a "$x"', ["a", "1 2"]),
        ("a ~ ~/b '~' ~root", ["a", "/h", "/h/b", "~", "/root"]),
        ("a b{c,d}e {f,g}{h,i}", ["a", "bce", "bde", "fh", "fi", "gh", "gi"]),
        ("a '{b,c}' \\{d,e}", ["a", "{b,c}", "{d,e}"]),
        ("a$IFS-b${IFS}c", ["a", "-b", "c"]),
        ("$x", ["1", "2"]),
        ("a $unknown 'b'", ["a", "", "b"]),
        ("a ''", ["a", ""]),
    ],
)
def test_words_become_the_arguments_a_program_would_get(text, arguments):
    (command,) = parse_command_line(text).commands
    state = ShellState("/h", ("/w",), {"x": ("1 2",)})
    (reading,) = expand_words(command.words, state)
    assert [one.text for one in reading] == arguments
    assert all(one.known for one in reading) is ("unknown" not in text)


@pytest.mark.parametrize(
    "text", ["*\U0001d659+\u0290{\U000c5944", "<<\U000f0000", "a \u4e2d$x\u6587"]
)
def test_characters_beyond_ascii_are_kept_and_harm_nothing(text):
    shown(text)
    assert shown("échø 中$x文 'ß'") == ["échø 中x文 ß"]


def test_a_name_with_several_values_gives_a_reading_for_each():
    (command,) = parse_command_line("a $x $y").commands
    state = ShellState("/h", ("/w",), {"x": ("1", "2"), "y": ("3",)})
    found = [[one.text for one in reading] for reading in expand_words(command.words, state)]
    assert found == [["a", "1", "3"], ["a", "2", "3"]]


def test_a_stage_of_a_pipeline_knows_what_feeds_it():
    *_, last = parse_command_line("a | { b; c; } | d").commands
    assert [one.source for one in last.feeders] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text", ["if", "a (", '"', "a \\", "$((x))", "${!x}", "a\0b", "a\u202eb", "'a'\\ b"]
)
def test_parts_out_of_view_are_named(text):
    assert not parse_command_line(text).whole


@pytest.mark.parametrize("text", [":(){ :|:& };:", "f() { f & f; }; f", "function g { g | g; }; g"])
def test_a_function_that_starts_itself_is_found(text):
    assert len(parse_command_line(text).bombs) == 1


@pytest.mark.parametrize("text", ["f() { g | g; }; f", "f() { f; }", "a() { b & }"])
def test_another_function_is_not_taken_for_one(text):
    assert parse_command_line(text).bombs == ()
