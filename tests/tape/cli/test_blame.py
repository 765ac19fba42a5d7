"""`tape blame`: lines, ranges, JSON, and what it refuses."""

from __future__ import annotations

import pytest

from tests.tape.cli.conftest import line, words


def call(number: int, name: str, **args) -> bytes:
    block = {"type": "tool_call", "id": f"c_{number}", "name": name, "args": args}
    return line("assistant", content=[block], provider="offline", model="rules") + line(
        "tool.result", call_id=f"c_{number}", name=name, content=words("ok")
    )


@pytest.fixture
def file(tape):
    """A file of five lines: two of a write, one of an edit, two of nobody."""
    path = tape.work / "a.py"
    path.write_text("import os\nprint('hello')\n\tx = 1\n\x1b[31m\nlast\n")
    return path


@pytest.fixture
def identity(tape, file):
    made = tape("new").text.strip()
    said = line("user", content=words("Write a.py\nplease"))
    said += call(1, "write", path="a.py", content="import os\nprint('hi')\n\tx = 1\n")
    said += line("user", content=words("Say hello")) + call(
        2, "Edit", file_path=str(file), old_string="hi", new_string="hello"
    )
    tape("append", made, stdin=said)
    return made


def test_each_line_says_entry_tape_time_and_number(tape, identity):
    ran = tape("blame", "a.py")
    found = tape("log", identity, "--type", "assistant", "--json").json
    results = tape("log", identity, "--type", "tool.result", "--json").json
    wrote, edited = (entry["id"] for entry in found)
    then = [f"{entry['time'][:10]} {entry['time'][11:16]}" for entry in results]
    nobody = f"--------{' ' * 26}"
    assert ran.text.split("\n") == [
        f"^{wrote[:7]} {identity[:8]} {then[0]} 1) import os",
        f"{edited[:8]} {identity[:8]} {then[1]} 2) print('hello')",
        f"^{wrote[:7]} {identity[:8]} {then[0]} 3) \tx = 1",
        f"{nobody} 4) ␛[31m",
        f"{nobody} 5) last",
        "",
    ]
    assert ran.err == (
        "tape: 2 lines of 5 are not explained by any tape: changed outside, or there before\n"
    )


def test_prompts_and_ranges_are_shown_when_asked_for(tape, identity):
    assert "Say hello" in tape("blame", "a.py", "--prompt").text.split("\n")[1]
    heading, *ranges = tape("blame", "a.py", "--ranges").text.split("\n")
    assert heading.split() == ["LINES", "ENTRY", "TAPE", "TIME", "OP", "MODEL", "PROMPT"]
    assert [one.split()[0] for one in ranges[:-1]] == ["1", "2", "3", "4-5"]
    assert ranges[1].endswith("edit   offline/rules  Say hello")
    assert ranges[3].split() == ["4-5", "--------"]


def test_json_lists_ranges_with_nulls_for_lines_of_no_session(tape, identity):
    found = tape("blame", "a.py", "--json").json
    assert [(one["first"], one["last"]) for one in found] == [(1, 1), (2, 2), (3, 3), (4, 5)]
    assert list(found[0]) == [
        *("first", "last", "tape", "branch", "entry", "time", "model", "prompt"),
        *("op", "certain", "why"),
    ]
    assert found[0]["prompt"] == "Write a.py"
    assert (found[0]["certain"], found[1]["certain"]) == (False, True)
    assert found[1] == {
        **found[1],
        "tape": identity,
        "branch": "main",
        "model": "offline/rules",
        "op": "edit",
        "why": None,
    }
    assert set(list(found[3].values())[2:]) == {None}


@pytest.mark.parametrize(
    ("part", "numbers"),
    [
        ("2,3", [2, 3]),
        ("2,+2", [2, 3]),
        ("4,", [4, 5]),
        (",2", [1, 2]),
        ("5", [5]),
        ("4,99", [4, 5]),
    ],
)
def test_a_part_of_the_file(tape, identity, part, numbers):
    found = tape("blame", "a.py", "-L", part, "--json").json
    assert [at for one in found for at in range(one["first"], one["last"] + 1)] == numbers
    shown = tape("blame", "a.py", "-L", part).text.count("\n")
    assert shown == len(numbers)


@pytest.mark.parametrize("part", ["6", "3,2", "x", "0,2", "2,+0", "-1"])
def test_a_part_that_is_none_is_refused(tape, identity, part):
    assert "-L" in tape.refused("blame", "a.py", "-L", part, code=2)


def test_what_cannot_be_blamed_says_which(tape, identity):
    (tape.work / "b.py").write_text("x\n")
    (tape.work / "c.bin").write_bytes(b"\0")
    assert "the file does not exist" in tape.refused("blame", "gone.py", code=3)
    assert "no tape" in tape.refused("blame", "b.py", code=3)
    assert "binary" in tape.refused("blame", "c.bin", code=2)
    assert "folder" in tape.refused("blame", ".", code=2)


def test_an_empty_file_has_no_lines(tape, identity, file):
    file.write_text("")
    assert tape("blame", "a.py").out == b""
    assert tape("blame", "a.py", "--json").json == []


def test_it_is_the_same_from_another_folder_and_without_an_index(tape, identity, file, tmp_path):
    found = tape("blame", "a.py", "--json").json
    for damaged in tape.store.glob("index.db*"):
        damaged.unlink()
    tape.work = tmp_path
    assert tape("blame", str(file), "--json").json == found
    assert tape("blame", "work/../work/a.py", "--json").json == found
