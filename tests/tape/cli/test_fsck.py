"""`tape fsck`: what it says, when it asks, and how it ends."""

from __future__ import annotations

import pexpect
import pytest

from tests.tape.cli.conftest import BIN, TALK

PHASE = "phases/0001-main-start/entries.jsonl"


@pytest.fixture
def torn(tape, talk):
    """A conversation whose last line is incomplete; the bytes of it that are whole."""
    path = tape.folder(talk) / PHASE
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id":"')
    return whole


def test_a_tape_that_holds(tape, talk):
    assert tape("fsck", talk).text == f"{talk[:8]}: all good\n"
    assert tape("fsck", talk, "--repair").text == f"{talk[:8]}: all good\n"
    assert tape("fsck", talk, "--json").json == {
        "tape": talk,
        "findings": [],
        "actions": [],
        "done": [],
        "left": None,
    }


def test_damage_is_explained_and_ends_with_4(tape, talk):
    path = tape.folder(talk) / PHASE
    path.write_bytes(path.read_bytes().replace(b"I look", b"I took"))
    first, second, _ = path.read_bytes().split(b"\n", 2)
    tape("fork", talk, "--new")
    child = next(row["id"] for row in tape("ls", "--json").json if row["id"] != talk)
    assert tape("fsck", talk, code=4).text == (
        f"damage: {PHASE}:3 (byte {len(first) + len(second) + 2}): "
        "its data does not match its hash\n"
        "  what: The bytes of this line changed after it was written.\n"
        "  lost: This entry cannot be trusted. All other lines are intact, "
        "including those after it.\n"
        f"  on it: branch main, tape {child[:8]}\n"
        "  to do: it is not changed; restore the file from a copy, or continue from before it: "
        f"`tape fork {talk[:8]}@{second[7:19].decode()} --switch`\n"
        "\n"
        f"{talk[:8]}: 1 fault\n"
    )
    assert tape("fsck", talk, "--repair", "--yes", code=4).text.endswith("1 fault\n")


def test_the_fork_it_names_can_continue(tape, talk):
    path = tape.folder(talk) / PHASE
    path.write_bytes(path.read_bytes().replace(b"I look", b"I took"))
    todo = tape("fsck", talk, "--json", code=4).json["findings"][0]["means"]["todo"]
    _, *command = todo.partition("`")[2].partition("`")[0].split()
    tape(*command)
    tape("append", talk, stdin=TALK)
    assert len(tape("log", talk, "--json").json) == 8


def test_without_a_terminal_it_only_shows(tape, talk, torn):
    ran = tape("fsck", talk, "--repair", code=4)
    assert ran.text.endswith(
        f"{talk[:8]}: 1 fault\n"
        "repair will:\n"
        f"  move the last 7 bytes of {PHASE} to quarantine/0001-main-start.{len(torn)}, "
        "and record this in a repair entry\n"
    )
    assert f"`tape fsck {talk[:8]} --repair` will:" in tape("fsck", talk, code=4).text
    assert (tape.folder(talk) / PHASE).read_bytes() == torn + b'{"id":"'


def test_with_yes_it_mends_and_says_how_to_take_it_back(tape, talk, torn):
    ran = tape("fsck", talk, "--repair", "--yes")
    assert ran.text.endswith(
        f"  undo: truncate -s {len(torn)} {PHASE} && "
        f"cat quarantine/0001-main-start.{len(torn)} >> {PHASE}\n"
        f"{talk[:8]}: all good now\n"
    )
    assert tape("verify", talk).text.endswith("all good\n")


def test_json_says_what_was_done(tape, talk, torn):
    shown = tape("fsck", talk, "--repair", "--json", code=4).json
    assert (len(shown["actions"]), shown["done"], shown["left"]) == (1, [], None)
    ran = tape("fsck", talk, "--repair", "--yes", "--json").json
    assert [step["did"] for step in ran["done"]] == shown["actions"]
    assert ran["left"] == []
    (one,) = ran["findings"]
    assert (one["finding"]["level"], one["means"]["tapes"]) == ("torn", [])


@pytest.mark.parametrize(("answer", "code"), [("n", 4), ("y", 0)])
def test_in_a_terminal_it_asks(tape, talk, torn, answer, code):
    env = {**tape.env, "TERM": "xterm"}
    child = pexpect.spawn(str(BIN), ["fsck", talk, "--repair"], cwd=str(tape.work), env=env)
    child.expect_exact("Do this? [y/N]: ")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == code
    whole = (tape.folder(talk) / PHASE).read_bytes() == torn + b'{"id":"'
    assert whole == (answer == "n")


@pytest.mark.parametrize("data", [b"", b"{", b"null", b'{"format":1}', b"\xff"])
def test_a_tape_json_that_cannot_be_read_is_written_again(tape, talk, data):
    path = tape.folder(talk) / "tape.json"
    whole = path.read_bytes()
    path.write_bytes(data)
    said = tape("fsck", talk[:8], code=4).text
    assert said.startswith("damage: tape.json: cannot be read: ")
    assert tape("fsck", talk[:8], "--repair", code=4)
    assert path.read_bytes() == data
    ran = tape("fsck", talk[:8], "--repair", "--yes")
    assert ran.text.endswith(f"{talk[:8]}: all good now\n")
    assert path.read_bytes() == whole
    assert tape("verify", talk).text.endswith("all good\n")


def test_a_tape_with_no_start_entry_either_says_so(tape, talk):
    (tape.folder(talk) / "tape.json").write_bytes(b"")
    (tape.folder(talk) / PHASE).write_bytes(b"")
    assert "its id is unknown" in tape.refused("fsck", talk, code=4)


def test_a_branch_that_is_being_written_is_busy(tape, talk):
    path = tape.folder(talk) / "refs.jsonl"
    with tape.open("append", f"{talk}:main") as process:
        process.stdin.write(TALK.split(b"\n")[0] + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        path.write_bytes(path.read_bytes().replace(b'"why":"start"', b'"why":"stare"'))
        ran = tape("fsck", talk, "--repair", "--yes", code=5)
        assert "main is being written" in ran.err
        process.kill()
    assert tape("fsck", talk, "--repair", "--yes").text.endswith("all good now\n")


def test_a_later_format_is_not_called_damaged(tape, talk):
    path = tape.folder(talk) / "tape.json"
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":7'))
    assert "format 7" in tape.refused("fsck", talk, "--repair", "--yes", code=1)
