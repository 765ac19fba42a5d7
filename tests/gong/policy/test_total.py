"""The classifier answers everything: whatever the text, it raises nothing and takes its time."""

from __future__ import annotations

import shlex
import sys
import threading
import time

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from gong.policy.commands.finding import CommandFinding, DangerLevel
from gong.policy.commands.tables import load_tables
from gong.policy.danger import classify_command

CWD, HOME = "/home/ada/project", "/home/ada"
BOUND = 60
"""Seconds of processor time for one command: hundreds of times what any of them takes."""


def judged(command: str) -> CommandFinding:
    begun = time.thread_time()
    found = classify_command(command, CWD, HOME)
    assert time.thread_time() - begun < BOUND
    assert found.level in DangerLevel
    assert bool(found.reason) is (found.level > DangerLevel.SAFE)
    return found


def _programs() -> list[str]:
    """Return every name the tables know, wildcards taken literally once and away once."""
    words, rows = load_tables().words, load_tables()
    names = {
        *(name for one in rows.rules for name in one.commands),
        *(part for name in (*rows.readers, *rows.wrappers) for part in name.split()),
        *(*words.shells, *words.interpreters, *words.downloaders, *words.decoders),
        *(*words.senders, *words.tellers, *words.containers, *words.databases, *words.removers),
        *(*words.writers, *words.copiers, *words.fetchers, *words.read, *words.look),
        *(*words.speak, *words.interactive, *words.version, ".", "source", "alias", "read"),
        *("set", "unset", "export", "declare", "mapfile", "getopts", "sed", "awk", "tar", "xargs"),
    }
    return sorted(names | {one.replace("*", "") for one in names if one != "*"})


def _arguments() -> list[str]:
    """Return options, operands and words of every row, and some that stand for anything."""
    rows = load_tables()
    found = {
        *(word for one in rows.rules for row in one.words for word in row.split("|")),
        *(each for one in rows.rules for each in (*one.options, *one.operands, *one.unless)),
        *(each for one in rows.readers.values() for each in (*one.never, *one.needs, *one.valued)),
        *(each for one in rows.readers.values() for each in (*(one.options or ()), *one.operands)),
        *(each for one in rows.wrappers.values() for each in (*one.valued, *one.after, one.option)),
        *(*rows.words.narrowing, *rows.words.version_options, *rows.places.tops),
        *(*rows.places.secrets, *rows.places.sensitive, *rows.places.home, *rows.places.keys),
    }
    odd = ["", "-", "--", "+", ";", "{}", "=", "a=", "-o", "-O", "-S", "--file=", "of=", "if=", "@"]
    odd += ["~", "~nobody", "*", "[", "[!", "{a,b}", "{", "}", "{1..9}", "\0", "\udc80", "é", "\n"]
    odd += ["$x", "$(ls)", "`", "'", '"', "${x:-", "$((", "<(", "\\", "..", "/", "C:\\", "x" * 5000]
    return sorted(found | set(odd))


PROGRAM, ARGUMENT = st.sampled_from(_programs()), st.sampled_from(_arguments())
ARGV = st.builds(
    lambda name, rest: [name, *rest], PROGRAM, st.lists(ARGUMENT | PROGRAM, max_size=5)
)


@pytest.mark.slow
@seed(97)
@settings(max_examples=300, deadline=None)
@given(st.lists(ARGV, min_size=1, max_size=3), st.sampled_from([" ", " | ", " && ", "; ", "\n"]))
def test_any_words_of_its_own_tables_are_judged(commands, joint):
    for quoted in (shlex.join, " ".join):
        judged(joint.join(map(quoted, commands)))


@pytest.mark.slow
@seed(98)
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*"{}()[]<>|&;$`'\"\\*?~#=!,./:-+@%^\n\t a0", "${", "$(", "<<E"])),
    st.integers(1, 300),
)
def test_any_marks_however_often_are_judged(marks, times):
    judged("".join(marks) * times)


def test_every_program_alone_is_judged():
    for name in _programs():
        judged(name)
        judged(f"which {name} && {name}")
        judged(f"bash -c {shlex.quote(name)} x")


LONG = 1_000_000


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("echo '" + "x" * LONG + "'", DangerLevel.SAFE),
        ("cat > a <<'E'\n" + "a line\n" * (LONG // 7) + "E", DangerLevel.ASK),
        ("echo " + "\\" * 200_000, DangerLevel.SAFE),
        ("rm -rf " + "*" * LONG + "x", DangerLevel.ASK),
        ("rm -rf " + "[" * 10_000, DangerLevel.ASK),
        ("cat ." + "*a" * 10_000, DangerLevel.ASK),
        ("psql -c '" + "select a " * 50_000 + "'", DangerLevel.ASK),
        ("x=aa; " + "x=$x$x; " * 60 + "cat $x", DangerLevel.ASK),
        ("x=aa; " + "x+=$x; " * 40 + "cat $x", DangerLevel.ASK),
    ],
)
def test_a_long_command_is_judged_by_what_it_says(text, level):
    assert judged(text).level is level


@pytest.mark.parametrize(
    "text",
    [
        "true; " * 50_000 + "rm -rf /",
        "true && " * 50_000 + "rm -rf /",
        "a | " * 50_000 + "rm -rf /",
        "ls " + "a " * 100_000 + "; rm -rf /",
        "for x in " + "a " * 100_000 + "; do ls; done; rm -rf /",
        "(" + "".join(f"a{i};" for i in range(2000)) + "rm -rf /",
        "sudo " * 50_000 + "rm -rf /",
    ],
)
def test_what_is_too_long_to_be_looked_at_is_refused(text):
    """Nobody may hide a command behind so many others that the judge gives up."""
    assert judged(text) == judged(text)
    assert judged(text).reason == "holds more commands than can be looked at"
    assert judged(text).level is DangerLevel.DANGEROUS


@pytest.mark.parametrize(
    "text",
    [
        "cat $(" * 2000 + "rm -rf /" + ")" * 2000,
        "(" * 2000 + "rm -rf /" + ")" * 2000,
        "true && " * 1500 + "rm -rf /",
        "true || " * 1500 + "rm -rf /",
        "cat | " * 1500 + "rm -rf /",
        "eval " * 40 + "rm -rf /",
        "sudo " * 40 + "rm -rf /",
        "for d in " + " ".join(f"a{i}" for i in range(300)) + " /; do rm -rf $d; done",
        "rm -rf {" + "a," * 1000 + "/}",
    ],
)
def test_danger_is_found_at_any_depth(text):
    assert judged(text).level is DangerLevel.DANGEROUS


def test_a_caller_deep_in_its_own_calls_gets_an_answer():
    """Where Python has next to no stack left, the judgement is not safe, or the same as ever."""
    found = []

    def sink(levels: int) -> None:
        if levels:
            sink(levels - 1)
        else:
            try:
                found.append(classify_command("ls && cat a | grep b", CWD, HOME).level)
            except RecursionError:
                found.append(DangerLevel.DANGEROUS)  # the border that asks refuses it

    thread = threading.Thread(target=sink, args=(sys.getrecursionlimit() - 60,))
    thread.start()
    thread.join()
    assert found[0] in {DangerLevel.SAFE, DangerLevel.ASK, DangerLevel.DANGEROUS}
