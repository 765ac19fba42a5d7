"""`tape export` and `tape import`: pipes, files, what they say and how they end."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess

import pytest

from tests.tape.cli.conftest import TYPES, Command, line, words
from tests.tape.moving import history, names

KEY = "ghp_" + "a1" * 18


@pytest.fixture
def there(tmp_path, tape):
    """The command with another store, in the same folder."""
    home = tmp_path / "other"
    home.mkdir()
    return Command(home, tape.work)


def test_a_tape_goes_through_a_pipe_and_back(tape, talk, there):
    file = tape.real("export", talk[:8])
    assert file.err == ""
    done = there.real("import", "-", "--json", stdin=file.out)
    assert done.json == {
        "id": talk,
        "path": str(there.folder(talk)),
        "added": len(TYPES),
        "entries": len(TYPES),
        "lost": 0,
        "moves": 0,
        "kept_ends": [],
    }
    assert history(there.folder(talk)) == history(tape.folder(talk))
    assert there("export", talk).out == file.out
    assert there("verify", talk).code == 0
    for verb in ("cat", "log", "context"):
        assert there(verb, talk).out == tape(verb, talk).out
    assert [row["id"] for row in there("ls", "--all", "--json").json] == [talk]
    again = there("import", "-", stdin=file.out)
    assert again.text == f"{talk[:8]} is already in the store: nothing added\n"


def test_a_file_is_there_whole_and_for_its_owner_only(tape, talk, tmp_path):
    target = tmp_path / "out" / "session.jsonl"
    target.parent.mkdir()
    target.write_text("old")
    assert tape("export", talk, "-o", target, "--force").out == b""
    assert target.read_bytes() == tape("export", talk).out
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert names(target.parent) == ["session.jsonl"]
    said = tape.refused("export", talk, "-o", tmp_path / "no" / "where", code=1)
    assert said.endswith(f"cannot be written: there is no folder {tmp_path / 'no'}")


def test_a_failed_export_leaves_the_file_that_was_there(tape, talk, tmp_path):
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    data = file.read_bytes()
    file.write_bytes(data.replace(b"I look.", b"I lo0k."))
    (tmp_path / "old.jsonl").write_text("old")
    said = tape.refused("export", talk, "-o", tmp_path / "old.jsonl", "--force", code=4)
    assert "its data does not match its hash; `tape fsck` explains it" in said
    assert (tmp_path / "old.jsonl").read_text() == "old"
    assert [name for name in names(tmp_path) if name.startswith(".")] == []


def test_a_branch_or_an_entry_is_exported_with_its_path(tape, talk, there):
    tape("fork", f"{talk}~3", "--name", "side")
    for ref, count in ((f"{talk}:side", 3), (f"{talk}~1", 5), (f"{talk}:main", 6)):
        done = there("import", "-", "--json", stdin=tape("export", ref).out).json
        assert done["entries"] == count
        lines = there("log", talk, "--json").json
        assert len(lines) == count
        shutil.rmtree(there.folder(talk))


def test_secrets_are_masked_unless_the_copy_is_to_be_exact(tape, talk, there):
    tape("append", talk, stdin=line("user", content=words(f"with {KEY}")))
    masked = tape("export", talk)
    assert KEY.encode() not in masked.out
    done = there("import", "-", "--json", stdin=masked.out).json
    assert masked.err == (
        "tape: 1 secret masked in 1 entry; --no-redact makes an exact copy; this copy is tape "
        f"{done['id'][:8]}\n"
    )
    assert "with [redacted:github]" in there("cat", done["id"]).text
    exact = tape("export", talk, "--no-redact")
    assert exact.err == ""
    assert KEY.encode() in exact.out
    page = tape("export", talk, "--to", "md")
    assert "with [redacted:github]" in page.text
    assert page.err == "tape: 1 secret masked in 1 entry; --no-redact makes an exact copy\n"


def test_a_page_is_for_reading(tape, talk, tmp_path):
    tape("export", talk, "--to", "md", "-o", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text("utf-8")
    assert page.startswith(f"# First\n\n- Tape `{talk}`, branch `main`, entry `")
    assert "- Models: `offline/rules`\n- Cost: $0.25\n" in page
    assert "<details><summary>✓ → read a.py</summary>" in page
    assert "x = 1␛[31m" in page


def test_what_append_takes_can_be_imported(there, tmp_path):
    (tmp_path / "notes.jsonl").write_bytes(line("note", text="hi") + line("note", text="ho"))
    done = there("import", tmp_path / "notes.jsonl").text
    identity = done.split()[0]
    assert done == f"{identity} now has 3 entries; continue with `tape append {identity}`\n"
    start = there("log", identity, "--json").json[0]
    assert start["data"]["cwd"] == str(there.work)
    assert there("import", tmp_path / "notes.jsonl").text.endswith("nothing added\n")


def test_a_log_can_be_imported_and_lost_blobs_are_reported(tape, talk, there):
    tape("append", talk, stdin=line("user", content=words("x" * 70_000)))
    done = there("import", "-", stdin=tape("log", talk, "--json").out)
    assert done.err == "tape: 1 blob that its entries name is not in the file\n"
    assert there("verify", talk, code=4).text.count("missing") == 1


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"", 2, "nothing to import: the file is empty"),
        (
            b"x\n",
            2,
            "this cannot be imported: give a file of `tape export`, the lines of `tape log",
        ),
        (
            b'{"export":1,',
            4,
            "line 1: the file was truncated, get a complete copy; nothing was imported",
        ),
        (b'{"type":"start","data":{}}\n', 2, "line 1: entries of type 'start' are written by the"),
    ],
)
def test_an_invalid_file_is_reported_in_a_line(there, data, code, said):
    assert there.refused("import", "-", stdin=data, code=code).startswith(said)
    assert there("ls", "--all", "--json").json == []


def test_a_missing_file_and_a_terminal_are_reported(there):
    assert there.refused("import", "none.jsonl", code=3) == "no file 'none.jsonl'"


ASKS = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ARRAY = [{"role": "user", "content": "Read a."}, {"role": "assistant", "tool_calls": [ASKS]}]


def test_an_array_of_messages_comes_in_broken_and_leaves_whole(tape, tmp_path):
    """M153: what a provider refused can be sent again, and what was mended is told."""
    body = {"model": "gpt", "messages": [{"role": "system", "content": "Hm."}, *ARRAY]}
    done = tape("import", "--from", "openai-chat", "-", "--json", stdin=json.dumps(body).encode())
    made = done.json
    assert made["path"] == str(tape.folder(made["id"]))
    assert (made["entries"], made["unsent"], done.err) == (5, 0, "")
    sent = tape("export", made["id"], "--to", "openai-chat")
    assert sent.err == "tape: repaired: 1 call had no result; `tape context` says more\n"
    result = sent.json[-1]
    assert (result["role"], result["tool_call_id"]) == ("tool", "call_1")
    assert sent.json[1:-1] == ARRAY
    assert f": {result['content']}" in tape("context", made["id"]).text
    target = tmp_path / "request.json"
    tape("export", made["id"], "--to", "openai-chat", "--request", "-o", target)
    assert json.loads(target.read_bytes()) == {"model": "gpt", "messages": sent.json}
    other = tape("export", made["id"], "--to", "gemini")
    assert "the system prompt is not part of the array: --request writes both" in other.err
    again = tape("import", "--from", "gemini", "-", "--json", stdin=other.out).json
    assert tape("export", again["id"], "--to", "gemini").json == other.json


def test_an_invalid_message_is_reported(tape):
    strange = json.dumps([*ARRAY, {"role": "stranger"}]).encode()
    done = tape("import", "--from", "openai-chat", "-", stdin=strange)
    assert (
        done.err
        == "tape: 1 part of it is not a message of openai-chat: kept on the tape, never sent\n"
    )


def test_what_is_no_array_is_refused_in_one_line(tape):
    for text in (b"", b"{", b"3", b'{"type":"user","data":{}}', b"\xff\n\n"):
        said = tape.refused("import", "--from", "anthropic", "-", stdin=text, code=2)
        assert said.endswith("nothing was imported")
    assert tape("ls", "--all", "--json").json == []
    assert "--request goes with --to" in tape.refused("export", "--request", code=2)


def test_what_is_no_file_is_written_to_and_never_replaced(tape, talk, tmp_path):
    """A pipe here; as root, /dev/null itself was replaced by the file beside it."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for file in (pipe, link):
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            assert tape("export", talk, "-o", file).out == b""
            assert reader.stdout.read() == tape("export", talk).out
    assert names(tmp_path) == ["home", "link", "pipe", "work"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()


def test_force_writes_the_file_a_link_names(tape, talk, tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to("there")
    tape.refused("export", talk, "-o", tmp_path / "link", code=1)
    tape("export", talk, "-o", tmp_path / "link", "--force")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == tape("export", talk).out
