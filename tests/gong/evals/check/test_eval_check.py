"""`gong eval check` as people run it: files, folders, tapes; what cannot be read is said."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from tests.gong.evals.check.samples import FINE, WRITERS, Call, write_atif, write_claude
from tests.tape.formats.sessions.lines import ClaudeFile

if TYPE_CHECKING:
    from tests.gong.evals.conftest import EvalPlace

NAMES = {"claude": "c.jsonl", "codex": "rollout-1.jsonl", "gemini": "g.json", "atif": "a.json"}


def test_files_of_four_agents_are_checked_by_one_command(place: EvalPlace) -> None:
    for tool, write in WRITERS.items():
        (place.folder / NAMES[tool]).write_bytes(write(FINE))
    done = place.run("gong", "eval", "check", *NAMES.values())
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        f"{name} ({tool})" for tool, name in NAMES.items()
    ]
    assert done.stdout.count(": fine; ") == 4
    (place.folder / "a.json").write_bytes(write_atif((Call("edit", "a.py", "x"), *FINE)))
    shown = place.run("gong", "eval", "check", "a.json", code=1).stdout.splitlines()
    assert shown == [
        "a.json (atif): 1 finding; 9 entries, 8 calls, 8 turns",
        "ENTRY  TOOL                FINDING           DETAIL",
        "#2     str_replace_editor  edit-before-read  /src/app/a.py",
    ]


def test_findings_are_json_and_limits_are_kept(place: EvalPlace) -> None:
    (place.folder / "a.json").write_bytes(write_atif((Call("write", "/tmp/x", "x"), *FINE)))
    words = ("gong", "eval", "check", "a.json", "--json")
    document = place.json(*words, "--max-cost", 0.05, "--max-turns", 3, code=1)
    assert document["unreadable"] == []
    (checked,) = document["checked"]
    kinds = [finding["kind"] for finding in checked["findings"]]
    assert kinds == ["outside-root", "over-turns", "over-cost"]
    assert (checked["turns"], checked["cost"]) == (8, 0.08)
    assert place.json(*words, "--root", "/tmp", "--root", "/src")["checked"][0]["findings"] == []
    place.run(*words[:-1], "--max-turns", 0, code=2)
    place.run("gong", "eval", "check", code=2)


def test_what_cannot_be_read_is_one_line_and_the_rest_is_checked(place: EvalPlace) -> None:
    (place.folder / "fine.jsonl").write_bytes(write_claude(FINE))
    (place.folder / "noise.jsonl").write_bytes(bytes(range(256)) * 9)
    (place.folder / "old.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd no such thing")
    (place.folder / "other.json").write_text('{"a": 1}')
    (place.folder / "empty").mkdir()
    os.mkfifo(place.folder / "pipe.jsonl")
    names = ("noise.jsonl", "old.jsonl.zst", "other.json", "empty", "pipe.jsonl", "none", "a:b:c")
    done = place.run("gong", "eval", "check", *names, "fine.jsonl", code=1)
    assert done.stdout.startswith("fine.jsonl (claude): fine; ")
    lines = done.stderr.splitlines()
    assert [line.split(" cannot be checked: ")[0] for line in lines] == [
        f"gong: {name}" for name in names
    ]
    document = place.json("gong", "eval", "check", "none", "fine.jsonl", "--json", code=1)
    assert document["unreadable"] == [
        {"trajectory": "none", "why": "there is no such file, and no such tape"}
    ]
    assert len(document["checked"]) == 1


def test_a_tape_is_checked_by_its_ref_and_so_is_what_is_exported_from_it(place: EvalPlace) -> None:
    (place.folder / "known.py").write_text("x = 1\n")
    edit = {"path": "known.py", "edits": [{"oldText": "x = 1", "newText": "x = 2"}]}
    calls = (
        {"name": "read", "args": {"path": "known.py"}},
        {"name": "edit", "args": edit},
        {"name": "bash", "args": {"command": "echo y > ../out.txt"}},
    )
    model = place.script(*({"tool_calls": [call]} for call in calls), {"text": "done"})
    place.run("gong", "-p", "go", "-m", model, "--yolo")
    tape = json.loads(place.run("gong", "tape", "ls", "--json").stdout)[0]["id"]
    found = place.json("gong", "eval", "check", tape, "--json", code=1)["checked"][0]
    assert (found["tool"], found["calls"], found["turns"]) == ("tape", 3, 4)
    outside = str(place.folder.parent / "out.txt")
    assert [(one["kind"], one["detail"]) for one in found["findings"]] == [
        ("outside-root", outside)
    ]
    for form, name in (("atif", "t.json"), ("claude", "t.jsonl"), ("codex", "r.jsonl")):
        exported = place.run("gong", "tape", "export", tape, "--to", form).stdout
        (place.folder / name).write_text(exported)
        again = place.json("gong", "eval", "check", name, "--json", code=1)["checked"][0]
        assert [(one["kind"], one["detail"]) for one in again["findings"]] == [
            ("outside-root", outside)
        ]


def test_sub_agents_in_the_same_file_are_checked_for_themselves(place: EvalPlace) -> None:
    file = ClaudeFile(cwd="/src/app")
    file.say("u0", None, "Mend it")
    edit = {"file_path": "/src/app/a.py", "old_string": "x", "new_string": "y"}
    use = {"type": "tool_use", "id": "t1", "name": "Edit", "input": edit}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    side = {"isSidechain": True, "agentId": "abc"}
    file.say("s0", None, "Do a part", **side)
    file.answer("s1", "s0", use, message="m1", **side)
    file.add("user", "s2", "s1", message={"role": "user", "content": [result]}, **side)
    (place.folder / "c.jsonl").write_bytes(file.data)
    (found,) = place.json("gong", "eval", "check", "c.jsonl", "--json", code=1)["checked"]
    (finding,) = found["findings"]
    assert (finding["kind"], finding["entry"]) == ("edit-before-read", "abc/s1")
