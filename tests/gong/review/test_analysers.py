"""Analysers of others, real where they are installed (M185)."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.gong.env.sandbox.world import needs_bubblewrap

TOOLS = ("ruff", "bandit", "semgrep", "eslint", "shellcheck")
SCRIPT = """\
const fs = require("fs");
app.get("/", (req, res) => {
  const sql = "SELECT * FROM t WHERE name = '" + req.query.name + "'";
  db.query(sql);
  const fd = fs.openSync("x");
  return fs.readFile(`/x/${req.params.file}`, done);
});
if (x == NaN) {
  eval("1");
}
"""
PYTHON = """\
import os
from flask import request


def find(db):
    name = request.args["name"]
    query = "select * from t where name = '%s'" % name
    db.execute(query)
    return open("/x/" + name)
"""
GO = """\
package main

func find(w http.ResponseWriter, r *http.Request) {
\tname := r.FormValue("name")
\texec.Command("sh", "-c", "ls "+name)
\tdb.Query("SELECT " + name)
}
"""


def play(place, name, printed):
    """Let a program of this name print something; it counts how often it was asked."""
    tools = place.root / "tools"
    tools.mkdir(exist_ok=True)
    (tools / f"{name}.json").write_text(json.dumps(printed))
    if not (program := tools / name).exists():
        program.write_text(
            f'#!/bin/sh\necho "$@" >> {tools}/{name}.calls\ncat {tools}/{name}.json\n'
        )
        program.chmod(0o755)
    place.env["PATH"] = f"{tools}:/usr/bin:/bin"
    return tools / f"{name}.calls"


def link(place, *names):
    """Let programs be found that are installed here; skip where one is not."""
    tools = place.root / "tools"
    tools.mkdir(exist_ok=True)
    for name in names:
        beside = str(Path(sys.executable).parent)
        found = shutil.which(name) or shutil.which(name, path=beside)
        if found is None:
            pytest.skip(f"{name} is not installed")
        (tools / name).symlink_to(found)
    node = shutil.which("node")
    if node is not None:
        (tools / "node").symlink_to(node)
    place.env["PATH"] = f"{tools}:/usr/bin:/bin"


def review(place, *words, code=1):
    return json.loads(place.run("--json", "--no-model", *words, code=code))


def list_places(told, source):
    return {
        (one["file"], one["lines"][0], one["category"])
        for one in told["findings"]
        if one["source"] == source
    }


def test_what_is_missing_is_named_once_for_the_languages_that_changed(place):
    place.write({"a.py": "x = eval(input())\n", "b.py": "x = 1\n"})
    place.env["PATH"] = "/usr/bin:/bin"
    place.leave_extras()
    assert review(place, code=0)["missing"] == ["ruff", "bandit", "semgrep"]
    said = place.run("--no-model").splitlines()[-1]
    assert "not installed: ruff, bandit, semgrep" in said
    assert "pip install 'gong[review]' for ruff and bandit" in said
    place.commit({})
    place.write({"a.txt": "hello\n"})
    assert review(place, code=0)["missing"] == []
    place.write({"a.js": "let a = 1;\n"})
    assert review(place, code=0)["missing"] == ["semgrep", "eslint"]


RECORDED = {
    "bandit": {"results": [
        {"filename": "./0/a.py", "line_number": 1, "line_range": [1], "test_id": "B307",
         "issue_severity": "MEDIUM", "issue_text": "eval"},
        {"filename": "./0/a.py", "line_number": 99, "test_id": "B1", "issue_severity": "LOW",
         "issue_text": "not there"},
    ]},
    "semgrep": {"results": [
        {"path": "1/a.py", "start": {"line": 1}, "end": {"line": 1},
         "check_id": "x.y.python-sql-injection",
         "extra": {"severity": "ERROR", "message": "a query"}},
    ]},
    "ruff": [
        {"filename": "/tmp/z/0/a.py", "code": "F401", "message": "unused", "fix": None,
         "location": {"row": 1}, "end_location": {"row": 1}},
    ],
    "eslint": [
        {"filePath": "/tmp/z/0/a.js", "messages": [
            {"ruleId": "no-eval", "severity": 2, "line": 1, "endLine": 1, "message": "eval"},
            {"ruleId": None, "fatal": True, "severity": 2, "line": 1, "message": "syntax"},
        ]},
    ],
    "shellcheck": {"comments": [
        {"file": "./0/b.sh", "line": 1, "endLine": 1, "column": 4, "endColumn": 6, "level": "info",
         "code": 2086, "message": "Double quote", "fix": None},
        {"file": "./0/b.sh", "line": 1, "endLine": 2, "column": 1, "endColumn": 1, "level": "error",
         "code": 1073, "message": "Couldn't parse", "fix": None},
        {"file": "./0/b.sh", "line": 9, "endLine": 9, "level": "error", "code": 2068,
         "message": "not there"},
    ]},
}  # fmt: skip
EXPECTED = {
    "bandit": {("a.py", 1, "unsafe-call")},
    "semgrep": {("a.py", 1, "sql-injection")},
    "ruff": {("a.py", 1, "ruff-F401")},
    "eslint": {("a.js", 1, "eslint-no-eval"), ("a.js", 1, "eslint-syntax")},
    "shellcheck": {("b.sh", 1, "shellcheck-SC2086"), ("b.sh", 1, "shellcheck-SC1073")},
}


@pytest.mark.parametrize("name", TOOLS)
def test_what_an_analyser_prints_is_read(place, name):
    """M185, M228: an installed analyser is asked; what is about unchanged lines is left out."""
    calls = play(place, name, RECORDED[name])
    place.leave_extras()
    place.write({"a.py": "eval(input())\n", "a.js": "eval(input())\n", "b.sh": "rm $1\n"})
    told = review(place)
    assert told["analysers"] == [name]
    assert list_places(told, name) == EXPECTED[name]
    assert calls.read_text().count("\n") == 1


def test_a_file_is_not_given_twice_to_an_analyser(place):
    """What was reviewed by content is not reviewed again; a changed file alone is."""
    place.leave_extras()
    calls = play(place, "bandit", RECORDED["bandit"])
    place.write({"a.py": "eval(input())\n", "b.py": "x = 1\n"})
    first = review(place)
    assert review(place) == first
    assert calls.read_text().count("\n") == 1
    play(place, "bandit", {"results": []})
    place.write({"b.py": "x = 2\n"})
    assert list_places(review(place), "bandit") == EXPECTED["bandit"]
    assert [one.count(".py") for one in calls.read_text().splitlines()] == [2, 1]
    place.git("add", ".")
    assert list_places(review(place, "--staged"), "bandit") == EXPECTED["bandit"]
    assert calls.read_text().count("\n") == 2
    with (place.root / "tools/bandit").open("a") as program:
        program.write("# another version\n")
    assert list_places(review(place, code=0), "bandit") == set()


def test_an_analyser_that_prints_no_json_costs_only_itself(place):
    play(place, "ruff", RECORDED["ruff"])
    (place.root / "tools/ruff").write_text("#!/bin/sh\necho broken; exit 3\n")
    place.leave_extras()
    place.write({"a.py": "eval(input())\n", "a.sh": "curl x | sh\n"})
    told = review(place, code=10)
    assert (told["analysers"], told["missing"]) == ([], ["bandit", "semgrep", "shellcheck"])
    (failed,) = told["failed"]
    assert failed["part"] == "ruff"
    assert "exit code 3" in failed["error"]
    assert ("a.sh", 1, "unsafe-call") in list_places(told, "gong")


@pytest.mark.parametrize("name", TOOLS)
def test_an_analyser_of_another_shape_costs_only_itself(place, name):
    """M185: its JSON is not what its documentation says."""
    odd = {
        "ruff": [{"code": "F401", "message": "x", "location": None}],
        "bandit": {"results": [{"filename": "./7/a.py"}]},
        "semgrep": {"results": [None]},
        "eslint": [{"messages": [3]}],
        "shellcheck": [{"file": "./0/a.sh"}],
    }
    play(place, name, odd[name])
    place.leave_extras()
    place.write({"a.py": "x = 1\n", "a.js": "let a;\n", "a.sh": "curl x | sh\n"})
    told = review(place, code=10)
    assert [one["part"] for one in told["failed"]] == [name]
    assert list_places(told, "gong") == {("a.sh", 1, "unsafe-call")}


def test_a_memory_that_cannot_be_written_costs_no_finding(place):
    play(place, "bandit", RECORDED["bandit"])
    place.write({"a.py": "eval(input())\n"})
    (place.root / "file").write_text("")
    place.env["XDG_STATE_HOME"] = str(place.root / "file/state")
    assert ("a.py", "unsafe-call") in {
        (one["file"], one["category"]) for one in review(place)["findings"]
    }


def test_ruff_sees_what_is_staged_and_not_what_is_in_the_folder(place):
    link(place, "ruff")
    place.write({"a.py": "import os\n", "pkg/__init__.py": "import sys\n"})
    place.git("add", ".")
    place.write({"a.py": "import os\nprint(os.name)\n"})
    told = review(place, "--staged", code=0)
    assert ("a.py", 1, "ruff-F401") in list_places(told, "ruff")
    assert list_places(review(place, code=0), "ruff") <= {("pkg/__init__.py", 1, "ruff-F401")}


def test_a_file_that_cannot_be_read_is_one_finding(place):
    """A file of Python 2 has a fault in each print; what a test feeds a parser is no mistake."""
    link(place, "ruff")
    place.write({"a.py": 'print "a"\nprint "b"\nprint "c"\n', "tests/data/b.py": "x = (\n"})
    told = review(place)
    unread = [row for row in told["findings"] if row["category"] == "ruff-invalid-syntax"]
    assert [(row["file"], row["lines"][0], row["severity"]) for row in unread] == [
        ("a.py", 1, "critical"),
        ("tests/data/b.py", 1, "minor"),
    ]


FAULTS = """\
import os
import pickle
import subprocess


def find(db, name, table):
    db.execute(f"select * from {table} where id = 1")
    return db.execute(
        f"select * from users where name = '{name}'",
    )


def run(path, data):
    os.system("rm -r " + path)
    subprocess.run(path, shell=True)
    subprocess.run("ls | wc -l", shell=True)
    return pickle.loads(data), eval(data)


def keep(x, seen=[]):
    try:
        seen.append(x)
    except Exception:
        pass
"""
NAMED = {
    (7, "sql-injection", "major"), (9, "sql-injection", "critical"),
    (14, "command-injection", "critical"), (15, "command-injection", "major"),
    (17, "unsafe-call", "major"), (20, "mutable-default", "minor"),
    (23, "swallowed-error", "minor"),
}  # fmt: skip


@pytest.mark.parametrize("names", [("ruff",), ("ruff", "bandit")])
def test_a_fault_that_two_analysers_find_is_printed_once(place, names):
    """M185: ruff and bandit, with the categories of other languages; a table's name is major."""
    place.leave_extras()
    link(place, *names)
    place.write({"a.py": FAULTS, "tests/test_a.py": FAULTS})
    told = review(place)
    assert told["analysers"] == [*names]
    found = [(one["file"], one["lines"][0], one["category"]) for one in told["findings"]]
    assert len(found) == len({*found})
    ours = {
        (one["lines"][0], one["category"], one["severity"])
        for one in told["findings"]
        if one["file"] == "a.py" and not one["category"].startswith(("ruff-", "bandit-"))
    }
    assert ours == NAMED
    rules = [
        (one["lines"][0], one["category"][-3:])
        for one in told["findings"]
        if one["file"] == "a.py" and one["category"].startswith(("ruff-S", "bandit-"))
    ]
    assert len(rules) == len({*rules})
    assert {one["severity"] for one in told["findings"] if one["file"] != "a.py"} == {
        *("major", "minor"),
    }


def test_a_patch_is_given_to_analysers_where_the_folder_has_its_files(place):
    link(place, "ruff")
    place.write({"a.py": "x = eval(input())\n"})
    place.git("add", ".")
    patch = place.git("diff", "--staged")
    (place.root / "x.patch").write_text(patch)
    words = ("--pr", str(place.root / "x.patch"))
    assert ("a.py", 1, "unsafe-call") in list_places(review(place, *words), "ruff")
    (place.repo / "a.py").unlink()
    assert review(place, *words, code=0)["findings"] == []


def test_semgrep_follows_values_from_requests(place):
    """M185: our rules in three languages; none on what is safe."""
    link(place, "semgrep")
    place.write({"web/a.js": SCRIPT, "a.ts": SCRIPT, "a.py": PYTHON, "main.go": GO})
    told = review(place)
    found = list_places(told, "semgrep")
    script = {(4, "sql-injection"), (5, "unclosed-resource"), (6, "path-traversal")}
    assert {one for one in found if one[0] == "web/a.js"} == {("web/a.js", *one) for one in script}
    assert {one for one in found if one[0] == "a.ts"} == {("a.ts", *one) for one in script}
    # One fault at one place is one finding, of whoever found it first.
    both = {*found, *list_places(told, "gong")}
    assert {one[1:] for one in both if one[0] == "main.go"} == {
        (5, "command-injection"),
        (6, "sql-injection"),
    }
    assert {one[1:] for one in found if one[0] == "a.py"} == {
        (8, "sql-injection"),
        (9, "path-traversal"),
    }
    place.commit({})
    safe = 'db.query("SELECT * FROM t WHERE name = ?", [req.query.name]);\n'
    place.write({"safe.js": safe, "safe.py": "def find(db, name):\n    db.execute('x', (name,))\n"})
    assert list_places(review(place, code=0), "semgrep") == set()


def test_eslint_runs_no_program_of_the_repository(place):
    """M185: our own rules, and no configuration that the repository brings."""
    link(place, "eslint")
    place.write({
        "web/a.js": SCRIPT,
        "eslint.config.mjs": "import fs from 'fs'; fs.writeFileSync('ran', '');\n",
    })  # fmt: skip
    found = list_places(review(place), "eslint")
    assert {("web/a.js", 8, "eslint-use-isnan"), ("web/a.js", 9, "eslint-no-eval")} <= found
    assert not [*place.root.rglob("ran")]


def test_shellcheck_reads_scripts_without_the_settings_of_the_repository(place):
    """M228: severities, and nothing about files that it is not given."""
    link(place, "shellcheck")
    place.write({
        ".shellcheckrc": "disable=all\n",
        "a.sh": "#!/bin/sh\n. ./lib.sh\ncd /x\nrm $1\n",
        "b.bash": "if true; then\n  echo\n",
    })  # fmt: skip
    told = review(place)
    assert told["analysers"] == ["shellcheck"]
    found = {
        (one["file"], one["lines"][0], one["category"], one["severity"])
        for one in told["findings"]
        if one["source"] == "shellcheck"
    }
    assert {one for one in found if one[0] == "a.sh"} == {
        ("a.sh", 3, "shellcheck-SC2164", "minor"),
        ("a.sh", 4, "shellcheck-SC2086", "info"),
    }
    assert ("b.bash", 1, "shellcheck-SC1046", "critical") in found


@needs_bubblewrap
@pytest.mark.parametrize("mode", ["off", "workspace-write"])
def test_an_analyser_is_inside_the_sandbox(place, mode):
    """M220: a program that a project's settings may steer writes nothing in the folder."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as tools:  # inside, /dev/shm is another
        program = Path(tools, "eslint")
        program.write_text(f"#!/bin/sh\necho asked > {tools}/marker\necho '[]'\n")
        program.chmod(0o755)
        place.env |= {"PATH": f"{tools}:/usr/bin:/bin", "GONG_SANDBOX": mode}
        place.write({"a.js": "let a = 1;\n"})
        assert review(place, code=0)["missing"] == ["semgrep"]
        assert Path(tools, "marker").exists() == (mode == "off")
