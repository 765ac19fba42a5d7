"""`gong review` on repositories with planted faults (M185, M186)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.review.diff import ReviewedFile, parse_patch
from gong.review.findings import ReviewFinding, ReviewScope, build_sarif, merge_findings
from gong.review.passes import find_faults
from gong.review.review import choose_findings
from tape.files.git_patch import PatchSide, build_patch
from tests.wires import openai_chat as chat_wire
from tests.wires.server import Reply, WireServer, chunks, json_reply

KEY = "ghp_" + "a1B2" * 9
PYTHON = """import os, pickle, subprocess, yaml

def find(db, name):
    return db.execute(f"SELECT * FROM users WHERE name = '{name}'")

def remove(path):
    os.system("rm -r " + path)

def run(words):
    subprocess.run(f"ls {words}", shell=True)

def load(data):
    return pickle.loads(data), yaml.load(data), eval(data)

def count(path):
    text = open(path).read()

def keep(x, seen=[]):
    try:
        seen.append(x)
    except Exception:
        pass

TOKEN = "KEY"
""".replace("KEY", KEY)
SCRIPT = """const cp = require("child_process");
db.query(`SELECT * FROM users WHERE id = ${id}`);
cp.exec("ls " + folder);
element.innerHTML = comment.text;
eval(code);
"""
GO = """package main

func find(name string) {
\tdb.Query("SELECT * FROM users WHERE name = '" + name + "'")
\texec.Command("sh", "-c", "ls " + name)
\tfile, err := os.Open(name)
\tuse(file, err)
}

var c = tls.Config{InsecureSkipVerify: true}
"""
PLANTED = {
    "app.py": {
        (4, "sql-injection"), (7, "command-injection"), (10, "command-injection"),
        (13, "unsafe-call"), (16, "unclosed-resource"), (18, "mutable-default"),
        (21, "swallowed-error"), (24, "secret"),
    },
    "web/app.ts": {
        (2, "sql-injection"), (3, "command-injection"), (4, "xss"), (5, "unsafe-call"),
    },
    "main.go": {
        (4, "sql-injection"), (5, "command-injection"), (6, "unclosed-resource"),
        (10, "unsafe-call"),
    },
}  # fmt: skip
CLEAN = {
    "app.py": """import subprocess, yaml

def find(db, name):
    return db.execute("SELECT * FROM users WHERE name = ?", (name,))

def run(words):
    subprocess.run(["ls", *words], check=True)
    subprocess.run("ls | wc -l", shell=True)

def load(path):
    with open(path) as file:
        return yaml.safe_load(file)

def keep(path):
    return open(path)

def say(name):
    return "select a name: " + name
""",
    "web/app.ts": """// eval(code) is never used; db.query(`SELECT ${x}`) neither
db.query("SELECT * FROM users WHERE id = ?", [id]);
element.textContent = comment.text;
element.innerHTML = "";
const found = pattern.exec("a" + b);
/* element.innerHTML = comment.text; */
""",
    "main.go": """package main

func find(name string) error {
\tdb.Query("SELECT * FROM users WHERE name = ?", name)
\tfile, err := os.Open(name)
\tif err != nil {
\t\treturn err
\t}
\tdefer file.Close()
\treturn nil
}
""",
    "run.sh": 'eval_all() { echo "$1"; }\ncurl -o x.sh https://localhost/x.sh # then | sh\n',
}


def places(found):
    grouped = {}
    for one in found:
        grouped.setdefault(one["file"], set()).add((one["lines"][0], one["category"]))
    return grouped


def own(found):
    """Leave out what analysers say in their own words."""
    return [one for one in found if not one["category"].startswith(("ruff-", "bandit-", "eslint-"))]


def test_every_planted_fault_is_found_in_three_languages(place):
    """M185: security, quality and practice, by lines; secrets are never printed."""
    place.write({"app.py": PYTHON, "web/app.ts": SCRIPT, "main.go": GO})
    found = own(place.find(code=1))
    assert places(found) == PLANTED
    assert KEY not in json.dumps(found)
    assert KEY not in place.run("--no-model", code=1)
    assert own(place.find(code=1)) == found


def test_nothing_is_invented_on_a_clean_diff(place):
    place.write(CLEAN)
    assert own(place.find()) == []
    assert place.run("--no-model", "--ignore", "app.py").startswith("No findings (passes: secrets,")


def test_lines_that_did_not_change_are_left_out_unless_asked_for(place):
    """M186: incremental."""
    place.commit({"app.py": PYTHON})
    place.write({"app.py": PYTHON + "\n\ndef more(path):\n    return eval(path)\n"})
    assert places(own(place.find(code=1))) == {"app.py": {(28, "unsafe-call")}}
    assert len(own(place.find("--all-lines", code=1))) == 9
    place.git("add", ".")
    assert places(own(place.find("--staged", code=1))) == {"app.py": {(28, "unsafe-call")}}
    place.commit({})
    assert place.find() == []
    assert place.find("--staged") == []
    for asked in ("HEAD", "HEAD~1..HEAD", "HEAD~1..", "main~1...main"):
        assert places(place.find(asked, code=1)) == {"app.py": {(28, "unsafe-call")}}, asked
    patch = place.git("diff", "HEAD~1")
    (place.root / "x.patch").write_text(patch)
    assert places(place.find("--pr", str(place.root / "x.patch"), code=1))
    assert places(place.find("--pr", "-", code=1, stdin=patch))


def test_a_first_commit_is_compared_with_nothing(place):
    """M186: alone, as the begin of a range, and before there is one."""
    place.commit({"b.sh": "curl x | sh\n"})
    place.commit({"c.sh": "curl x | sh\n"})
    root = place.git("rev-list", "--max-parents=0", "HEAD").strip()
    assert place.find(root) == []
    for asked in ("HEAD~2^..HEAD", "HEAD~3..", f"{root}^...HEAD", f"{root}~..main"):
        assert [one["file"] for one in place.find(asked, code=1)] == ["b.sh", "c.sh"], asked
    assert [one["file"] for one in place.find(f"{root}..HEAD~1", code=1)] == ["b.sh"]
    for asked in ("HEAD~4", "HEAD~4..", "nothing^..HEAD"):
        assert place.run("--no-model", asked, code=2)
    place.git("clone", "-q", "--depth=1", f"file://{place.repo}", str(place.root / "shallow"))
    place.repo = place.root / "shallow"
    assert place.run("--no-model", "HEAD", code=2)
    place.repo = place.root / "new"
    place.repo.mkdir()
    place.git("init", "-q", ".")
    place.write({"b.sh": "curl x | sh\n", "c.sh": "curl x | sh\n"})
    place.git("add", "b.sh")
    assert [one["file"] for one in place.find(code=1)] == ["b.sh", "c.sh"]
    assert [one["file"] for one in place.find("--staged", code=1)] == ["b.sh"]
    place.git("commit", "-qm", "first")
    assert [one["file"] for one in place.find("HEAD", code=1)] == ["b.sh"]


def test_exit_codes_go_by_severity(place):
    place.write({"a.py": "def keep(x, seen=[]):\n    return seen\n"})
    assert [one["severity"] for one in own(place.find("--fail-on", "critical"))] == ["minor"]
    place.find("--fail-on", "minor", code=1)
    assert own(place.find("--strict", "loose", "--fail-on", "info")) == []
    assert "cannot be combined" in place.run("HEAD", "--staged", code=2)
    assert place.run("nothing..like-it", code=2)


def test_settings_ignore_files_and_add_rules(place):
    """M186: ignore patterns, custom rules, strictness."""
    place.configure(
        '[review]\nignore = ["vendor", "*.min.js"]\nstrictness = "strict"\n'
        '[[review.rules]]\nid = "no-print"\npattern = "\\\\bprint\\\\("\n'
        'text = "use the log"\nseverity = "major"\nfiles = ["src/*.py"]\n'
    )
    place.write({"vendor/x/a.py": PYTHON, "x.min.js": SCRIPT, "src/a.py": "print(1)\n", "b.py": "print(1)\n"})  # fmt: skip  # noqa: E501
    (found,) = own(place.find(code=1)) or [
        one for one in place.find(code=1) if one["source"] == "config.toml"
    ]
    assert (found["file"], found["category"], found["text"]) == (
        *("src/a.py", "no-print", "use the log"),
    )
    place.configure('[[review.rules]]\nid = "bad"\npattern = "("\n')
    assert "rule bad" in place.run("--no-model", code=2)


def test_sarif_and_github_annotations(place):
    place.write({"a b,c.py": "eval(input())\n"})
    log = json.loads(place.run("--no-model", "--output-format", "sarif", code=1))
    (result,) = (one for one in log["runs"][0]["results"] if one["ruleId"] == "unsafe-call")
    place_of = result["locations"][0]["physicalLocation"]
    assert place_of["artifactLocation"]["uri"] == "a%20b%2Cc.py"
    assert place_of["region"] == {"startLine": 1, "endLine": 1}
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert rules[result["ruleIndex"]]["id"] == "unsafe-call"
    said = place.run("--no-model", "--output-format", "github", code=1)
    assert "::error file=a b%2Cc.py,line=1,endLine=1,title=unsafe-call::Use of" in said


SCHEMA = os.environ.get("SARIF_SCHEMA", "")


@pytest.mark.skipif(not SCHEMA, reason="SARIF_SCHEMA names no file: the one that OASIS publishes")
def test_sarif_is_valid_by_its_published_schema(place):
    """A log with findings of several files, ranges and sources, and one without any."""
    schema = json.loads(Path(SCHEMA).read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    place.write({"app.py": PYTHON, "web/app.ts": SCRIPT, "main.go": GO, "a b,ü.py": "eval(x())\n"})
    for words in ((), ("--ignore", "*")):
        code = 1 if not words else 0
        log = json.loads(place.run("--no-model", "--output-format", "sarif", *words, code=code))
        assert [*validator.iter_errors(log)] == []
        assert bool(log["runs"][0]["results"]) == (not words)


def test_names_of_files_can_be_anything(place):
    names = ['qu"ote.py', "tab\there.py", "umläut.py", "-dash.py", "new\nline.py"]
    place.write(dict.fromkeys(names, "eval(input())\n"))
    found = own(place.find(code=1))
    assert {one["file"] for one in found} == {*names}
    place.git("add", ".")
    assert {one["file"] for one in own(place.find("--staged", code=1))} == {*names}


REPORTED = {
    "file": "a.py", "lines": [1, 1], "severity": "major", "category": "wrong", "text": "it is",
}  # fmt: skip


def test_a_model_is_asked_stage_by_stage_and_not_again(place):
    """M185: three stages; nothing about unchanged lines; asked again when malformed."""
    elsewhere = {**REPORTED, "lines": [50, 51], "text": "not there"}
    answer = json.dumps({"findings": [REPORTED, elsewhere]})
    (place.root / "model.json").write_text(json.dumps([{"text": "hm"}, {"text": answer}]))
    place.write({"a.py": "x = 1\n"})
    model = f"scripted/{place.root}/model.json"
    (found,) = json.loads(place.run("--json", "-m", model, code=1))["findings"]
    assert (found["text"], found["source"]) == ("it is", model)
    (place.root / "model.json").write_text("[]")  # nobody is asked again
    again = json.loads(place.run("--json", "-m", model, code=1))["findings"]
    assert again == [found]
    place.write({"a.py": "x = 2\n"})
    place.run("--json", "-m", model, code=10)  # it was asked, and had no answer


def script(place, *answers):
    (place.root / "model.json").write_text(json.dumps(answers))
    return f"scripted/{place.root}/model.json"


def say(*findings):
    return {"text": json.dumps({"findings": findings})}


HOSTED = "openai-chat/gpt-6.1-sol"


async def ask_host(place, *answers, words=("--json",)):
    """Let a host give these answers in order while `gong review` fails in a part."""
    replies = [
        json_reply(400, {"error": {"message": "not today"}})
        if answer is None
        else Reply(
            chunks(chat_wire.chunk({"content": answer["text"]}), chat_wire.chunk(finish="stop"))
        )
        for answer in answers
    ]
    async with WireServer(*replies) as server:
        place.env.update(OPENAI_CHAT_BASE_URL=server.url, OPENAI_API_KEY="sk-not-a-key")
        said = await asyncio.to_thread(place.run, *words, "-m", HOSTED, code=10)
        assert len(server.requests) == len(answers)
    return said


async def test_an_object_before_the_findings_is_not_the_answer(place):
    """A stage whose answer has the list somewhere is not asked again."""
    place.write({"a.py": "x = 1\n"})
    spoken = {"text": f'An empty {{}} is no fault, {{"a": 1}} neither.\n{say(REPORTED)["text"]}'}
    told = json.loads(await ask_host(place, spoken, say(), None))
    assert [one["text"] for one in told["findings"]] == ["it is"]
    assert told["stages"] == ["security", "quality"]


def test_many_findings_of_one_kind_are_merged_by_their_lines():
    """Generated code has thousands; two analysers in one statement are one fault."""
    ours = [ReviewFinding("a.py", (at, at + 1), "major", "bandit-B101", "x", None, "bandit")
            for at in range(1, 60_000, 3)]  # fmt: skip
    theirs = [ReviewFinding("a.py", (at + 1, at + 1), "minor", "ruff-S101", "x", None, "ruff")
              for at in range(1, 60_000, 3)]  # fmt: skip
    after = ReviewFinding("a.py", (60_010, 60_010), "minor", "ruff-S101", "x", None, "ruff")
    begun = time.process_time()
    assert merge_findings([*theirs, after, *ours]) == [*ours, after]
    assert time.process_time() - begun < 20  # each with each takes more than half an hour


@pytest.mark.parametrize("answer", ["{}", '{"result": []}', '{"findings": null}'])
async def test_an_answer_without_findings_is_a_stage_that_failed(place, answer):
    """M185: an object without the list says nothing of what was looked at; it is asked again."""
    place.write({"a.py": "x = 1\n"})
    odd = {"text": answer}
    told = json.loads(await ask_host(place, odd, odd, odd, say(), say(REPORTED)))
    assert [one["text"] for one in told["findings"]] == ["it is"]
    assert told["stages"] == ["quality", "practice"]
    (failed,) = told["failed"]
    assert failed["part"] == "security"
    assert failed["error"].startswith("its answer cannot be read: ")
    assert "findings" in failed["error"] or "got `null`" in failed["error"]


async def test_a_stage_that_fails_costs_only_itself(place):
    """M185: what the others found is printed, the stage is named, the exit code is its own."""
    place.write({"a.sh": "curl x | sh\n"})
    other = {**REPORTED, "file": "a.sh", "category": "name", "text": "practice says"}
    unread = {"text": "hm"}
    told = json.loads(await ask_host(place, unread, unread, None, say(other)))
    assert {one["text"] for one in told["findings"]} >= {"practice says"}
    assert ("a.sh", "unsafe-call") in {(one["file"], one["category"]) for one in told["findings"]}
    assert (told["model"], told["stages"]) == (HOSTED, ["practice"])
    security, quality = told["failed"]
    assert (security["part"], quality["part"]) == ("security", "quality")
    assert "cannot be read" in security["error"]
    assert "not today" in quality["error"]

    said = await ask_host(place, None, say(), words=())  # practice is known by now
    assert "practice says" in said
    assert ": quality, practice; " in said.splitlines()[-1]
    assert said.splitlines()[-1].endswith("; failed: security)")
    sarif = await ask_host(place, None, words=("--output-format", "sarif"))
    assert json.loads(sarif)["runs"][0]["invocations"][0]["executionSuccessful"] is False
    github = await ask_host(place, None, words=("--output-format", "github"))
    assert "::error title=gong review::security failed" in github


def test_a_model_that_cannot_start_costs_no_finding(place):
    place.write({"a.sh": "curl x | sh\n"})
    for name in ("nobody/nothing", "anthropic/claude-sonnet-4-5"):
        told = json.loads(place.run("--json", "-m", name, code=10))
        assert [one["category"] for one in told["findings"]] == ["unsafe-call"]
        assert told["failed"], name


async def test_findings_that_can_be_read_are_kept_beside_others(place):
    place.write({"a.py": "x = 1\n"})
    odd = {**REPORTED, "severity": "terrible"}
    second = {**REPORTED, "category": "second"}
    answers = (say(REPORTED, odd), say(second, odd), say(), say())
    told = json.loads(await ask_host(place, *answers))
    assert {one["category"] for one in told["findings"]} == {"wrong", "second"}
    assert told["stages"] == ["quality", "practice"]
    assert "1 of its 2 findings cannot be read" in told["failed"][0]["error"]


def test_the_configured_model_is_asked_and_the_reviewers_are_named(place):
    """M185: the model of config.toml or GONG_MODEL; without one only the fixed checks."""
    place.write({"a.go": "package main\n"})
    last = place.run().splitlines()[-1]
    assert last.startswith("No findings (passes: secrets, Go; ")
    assert "no model: only fixed checks ran" in last
    model = script(place, say(), say(), say())
    for set_model in (
        lambda: place.configure(f'model = "{model}"\n'),
        lambda: place.env.update(GONG_MODEL=model),
    ):
        set_model()
        assert f"model {model}: security, quality, practice" in place.run()
        told = json.loads(place.run("--json"))
        assert (told["files"], told["passes"]) == (1, ["secrets", "Go"])
        assert (told["model"], told["failed"]) == (model, [])
        assert told["stages"] == ["security", "quality", "practice"]
        place.configure("")
    assert "only fixed checks ran" in place.run("--no-model")
    place.commit({})
    assert place.run() == "No findings (no new lines)\n"


def test_fix_lets_an_agent_edit_under_the_permissions(place):
    place.write({"a.py": "eval(input())\n"})
    reads = {"tool_calls": [{"name": "read", "args": {"path": "a.py"}}]}
    calls = [{"name": "write", "args": {"path": "a.py", "content": "print(input())\n"}}]
    (place.root / "fix.json").write_text(
        json.dumps([reads, {"tool_calls": calls}, {"text": "fixed"}])
    )
    model = f"scripted/{place.root}/fix.json"
    place.run("--no-model", "--fix", "-m", model, code=1)
    assert (place.repo / "a.py").read_text() == "eval(input())\n"  # nobody could agree
    place.configure('[permissions]\nmode = "accept_edits"\n')
    place.run("--no-model", "--fix", "-m", model, code=1)
    assert (place.repo / "a.py").read_text() == "print(input())\n"
    assert own(place.find()) == []


LINES = st.lists(st.sampled_from(["a", "", "+ b", "- c", "@@ -1 +1 @@", "+++ b/x", "eval(x)"]))


@given(before=LINES, after=LINES)
def test_the_new_lines_of_a_patch_are_those_of_the_file(before, after):
    sides = [
        PatchSide("f.py", "".join(f"{line}\n" for line in one).encode()) for one in (before, after)
    ]
    patch = b"".join(build_patch(*sides)).decode()
    for path, added in parse_patch(patch):
        assert path == "f.py"
        assert all(after[number - 1] == text for number, text in added.items())


@given(lines=LINES, changed=st.sets(st.integers(1, 8)))
def test_no_finding_is_about_a_line_that_did_not_change(lines, changed):
    changed = frozenset(one for one in changed if one <= len(lines))
    file = ReviewedFile("f.py", tuple(lines), changed)
    found = choose_findings(find_faults(file), [file])
    assert all(file.has_change(*one.lines) for one in found)
    assert found == merge_findings([*found, *found])


@pytest.mark.parametrize("lines", [(0, 1), (3, 2), (9, 9)])
def test_lines_that_cannot_be_are_left_out(lines):
    file = ReviewedFile("f.py", ("a", "b"), frozenset({1, 2}))
    assert choose_findings([ReviewFinding("f.py", lines, "major", "x", "y")], [file]) == []
    assert choose_findings([ReviewFinding("g.py", (1, 1), "major", "x", "y")], [file]) == []
    assert build_sarif([], "1", ReviewScope(0))["runs"][0]["results"] == []


def test_a_session_reviews_what_changed_and_tells_the_agent_once(place):
    """M186: --review, --review-every, --review-strict."""
    content = {"path": "a.py", "content": "eval(input())\n"}
    answers = [
        {"tool_calls": [{"name": "write", "args": content}]},
        {"text": "written"},
        {"text": "it is meant so"},
    ]
    (place.root / "chat.json").write_text(json.dumps(answers))

    def chat(*words):
        command = [sys.executable, "-m", "gong", "chat", "-p", "go", "--yolo", "-m",
                   f"scripted/{place.root}/chat.json", *words]  # fmt: skip
        done = subprocess.run(
            command, cwd=place.repo, env=place.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "it is meant so" not in chat()
    (place.repo / "a.py").unlink()
    assert "it is meant so" in chat("--review")
    (place.repo / "a.py").unlink()
    assert "it is meant so" not in chat("--review-every", "2")
    (place.repo / "a.py").unlink()
    place.configure("[review]\nevery = 1\n")
    assert "it is meant so" in chat("--review-strict", "loose")
    log = [sys.executable, "-m", "tape", "log", "--type", "context", "--json"]
    done = subprocess.run(log, cwd=place.repo, env=place.env, capture_output=True, check=True)
    assert done.stdout.decode().count("unsafe-call") == 1
