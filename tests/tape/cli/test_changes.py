"""Calls are shown once, with their results; commands as commands, changes of files as diffs."""

from __future__ import annotations

import pytest

from tape.cli.log import DIFF_LINES
from tape.index.library import open_store
from tape.model.entries import ChangedFile
from tape.store.store import Beginning
from tests.tape.changing import Session
from tests.tape.cli.conftest import line, words

PATCH = "*** Begin Patch\n*** Update File: b.py\n@@\n-old\n+new\n*** End Patch"


@pytest.fixture
def work(tape):
    """A session whose calls changed files: the tape's id, and the entries of the results."""
    store = open_store(tape.store).store
    found = {}
    with (
        store.create(Beginning(str(tape.work), "test/1", "First", "First")) as made,
        made.writer() as writer,
    ):
        run = Session(made, writer)
        change = run.change
        old, new = b"one\ntwo\nthree\n", b"one\n2\nthree\n"
        found["edit"] = run.run(
            "edit",
            {"path": "a.py", "old_text": "two", "new_text": "2"},
            change("a.py", old, new),
            text="Successfully replaced text in a.py.",
            said="I change it.",
        )
        found["bash"] = run.run(
            "bash",
            {"command": "black a.py &&\nrm b.py", "timeout": 9},
            change("a.py", new, b"one\n", modes=("100644", "100755")),
            change("c.py", b"x\n", b"x\n", source="b.py"),
            change("pic.png", b"\0", b"\0\1"),
            ChangedFile("big.bin", "modified", why="9000000 bytes are too large"),
            text="reformatted",
        )
        found["failed"] = run.run(
            "write", {"path": "d.py", "content": "no\n"}, text="denied", is_error=True
        )
        found["patch"] = run.run("apply_patch", {"input": PATCH}, text="M b.py")
        found["long"] = run.run(
            "write",
            {"path": "l.txt", "content": "x\n" * 500},
            change("l.txt", None, b"x\n" * 500),
        )
        found["id"] = made.id
    return found


EDIT = """\
── tool.result · edit · {}
→ edit a.py
Successfully replaced text in a.py.
diff --git a/a.py b/a.py
index 4cb29ea..f04eb26 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""
BASH = """\
$ black a.py &&
> rm b.py
(timeout: 9)
reformatted
diff --git a/a.py b/a.py
old mode 100644
new mode 100755
index f04eb26..5626abf
--- a/a.py
+++ b/a.py
@@ -1,3 +1 @@
 one
-2
-three
diff --git a/b.py b/c.py
rename from b.py
rename to c.py
diff --git a/pic.png b/pic.png
index f76dd23..bdc955b 100644
Binary files a/pic.png and b/pic.png differ
M big.bin
(no diff: 9000000 bytes are too large)
"""


def without_time(text):
    return "\n".join(
        line.rpartition(" · ")[0] + " · {}" if line.startswith("──") else line
        for line in text.split("\n")
    )


def test_cat_shows_each_call_once_with_what_it_changed(tape, work):
    shown = without_time(tape("cat", work["id"]).text)
    assert "── assistant · {}\nI change it.\n\n" + EDIT in shown
    assert "── tool.result · bash · {}\n" + BASH in shown
    assert "→ write d.py\n+no\ndenied\n" in shown  # nothing was recorded: the call says it
    assert "→ apply_patch\n" + PATCH + "\nM b.py\n" in shown
    assert shown.count("+x\n") == 500
    assert shown.count("pic.png and") == 1
    assert '"path"' not in shown


def test_show_gives_a_result_with_its_call_and_its_changes(tape, work):
    shown = tape("show", f"{work['id']}@{work['bash']}").text
    assert shown.split("\n", 1)[1] == "".join(f"  {line}\n" for line in BASH.split("\n")[:-1])
    call = tape("show", f"{work['id']}@{work['edit']}~2").text
    assert call.endswith("  I change it.\n  → edit a.py\n  -two\n  +2\n")


def test_log_shows_diffs_only_when_asked_and_cuts_long_ones(tape, work):
    plain = tape("log", work["id"]).text
    assert "  M a.py\n  R b.py → c.py\n  M pic.png\n  M big.bin\n" in plain
    assert "@@" not in plain.replace("  @@\n  -old", "")
    shown = tape("log", "-p", work["id"]).text
    body = "".join(f"  {line}\n" for line in BASH.split("\n")[3:-1])
    assert body in shown
    assert "  $ black a.py &&\n  > rm b.py\n  (timeout: 9)\n\n" in shown
    assert shown.count("+x\n") == DIFF_LINES - 6
    assert f"  … {500 + 6 - DIFF_LINES} more lines of this diff\n" in shown
    assert shown.count("-two") == shown.count("+no") == 1


def test_markdown_has_blocks_of_commands_and_diffs(tape, work):
    for page in (
        tape("cat", "--md", work["id"]).text,
        tape("export", "--to", "md", work["id"]).text,
    ):
        assert "```console\n$ black a.py &&\n> rm b.py\n(timeout: 9)\n```\n\n" in page
        assert "```diff\ndiff --git a/a.py b/a.py\nold mode 100644\n" in page
        assert "Binary files a/pic.png and b/pic.png differ\nM big.bin\n" in page
        assert '"path"' not in page
    assert "<details><summary>✓ $ black a.py &amp;&amp; &gt; rm b.py (timeout: 9)</summary>" in page
    assert "<details><summary>✗ → write d.py</summary>" in page


def test_secrets_in_changed_files_are_masked_in_a_page(tape):
    key = b"ghp_" + b"a1B2" * 9
    store = open_store(tape.store).store
    with store.create(Beginning(str(tape.work), "test/1")) as made, made.writer() as writer:
        run = Session(made, writer)
        run.run("bash", {"command": "make"}, run.change("a", b"x\n", b"x\nkey = %b\n" % key))
        identity = made.id
    page = tape("export", "--to", "md", identity)
    assert key not in page.out
    assert "\n x\n+key = [redacted:github]\n" in page.text
    assert page.err.startswith("tape: 1 secret masked in ")
    assert key in tape("export", "--to", "md", "--no-redact", identity).out


def test_colours_are_for_terminals(tape, work):
    plain = tape("cat", work["id"]).text
    assert "\x1b" not in plain
    tape.env["CLICOLOR_FORCE"] = "1"
    for command in (["cat"], ["log", "-p"], ["show"]):
        coloured = tape(*command, f"{work['id']}@{work['bash']}").text
        assert "\x1b[31m-2\x1b[0m" in coloured
        assert "\x1b[36m@@ -1,3 +1 @@\x1b[0m" in coloured
        assert "\x1b[1m$ black a.py &&\x1b[0m" in coloured
    tape.env["NO_COLOR"] = "1"
    assert tape("cat", work["id"]).text == plain


def test_a_call_without_a_result_is_shown_where_the_next_turn_begins(tape):
    identity = tape("new").text.strip()
    call = {"type": "tool_call", "id": "c_1", "name": "bash", "args": {"command": "sleep 9"}}
    tape("append", identity, stdin=line("assistant", content=[call]))
    assert tape("cat", identity).text.endswith("\n\n$ sleep 9\n\n")
    tape("append", identity, stdin=line("user", content=words("stopped?")))
    assert tape("cat", identity).text.count("$ sleep 9\n\n── user") == 1
    assert tape("cat", "--md", identity).text.count("```console\n$ sleep 9\n```\n\n## user") == 1


def test_missing_bytes_are_reported(tape, work):
    for blob in tape.folder(work["id"]).glob("blobs/*/*"):
        blob.unlink()
    shown = tape("show", f"{work['id']}@{work['edit']}").text
    assert "  M a.py\n  (blob " in shown
