import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.gong.cli.conftest import GONG, environment


@pytest.fixture
def tool(gong):
    """Run one tool and return what it printed."""

    def tool(name, code=0, **arguments):
        done = gong("tool", name, json.dumps(arguments), code=code)
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1
        return json.loads(done.stdout)

    return tool


def test_a_result_is_one_json_document(tool, home):
    """M052 M053: two channels."""
    (home / "a.txt").write_text("one\n")
    assert tool("read", path="a.txt")["content"] == "one\n"
    done = tool("edit", path="a.txt", oldText="one", newText="two")
    assert list(done) == ["content", "details", "is_error"]
    assert (done["content"], done["is_error"]) == ("Successfully replaced text in a.txt.", False)
    assert done["details"]["old_text"] == "one"
    assert (home / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        ("read", {"path": "none"}, 1, "ENOENT"),
        ("raed", {}, 3, "Unknown tool: raed: did you mean read? "),
        ("read", {"path": 42}, 2, "Invalid arguments for tool: read: "),
        ("bash", {"command": "exit 9"}, 1, "Command exited with code 9"),
        (
            "bash",
            {"command": "rm -rf /"},
            7,
            "Error: dangerous command blocked. Its damage may be irreversible.",
        ),
        ("bash", {"command": "git push --force"}, 7, "Error: dangerous command blocked."),
        ("write", {"path": "../x", "content": ""}, 7, "Path leaves the working directory: ../x"),
        ("apply_patch", {"input": ""}, 1, "Invalid patch"),
    ],
)
def test_every_failure_is_a_result_with_its_exit_code(tool, home, name, arguments, code, said):
    """M049 M097"""
    done = tool(name, code=code, **arguments)
    assert (done["is_error"], said in done["content"]) == (True, True)
    assert not (home.parent / "x").exists()


def test_no_arguments_are_none(gong, home):
    (home / "a").touch()
    assert "a" in json.loads(gong("tool", "ls").stdout)["content"].split("\n")


def test_arguments_come_from_standard_input(gong, home):
    gong("tool", "write", "-", stdin='{"path": "a", "content": "x"}')
    assert (home / "a").read_text() == "x"
    torn = gong("tool", "write", "-", stdin='{"path": ', code=2)
    assert "Invalid arguments for tool: write" in torn.stdout


def test_every_tool_is_listed_and_may_be_used(gong):
    """M047: those of other profiles, too."""
    listed = gong("tool", "list").stdout
    assert re.search(r"^read +Read a text file", listed, re.MULTILINE)
    specs = json.loads(gong("tool", "list", "--json").stdout)
    names = [spec["name"] for spec in specs]
    assert {"read", "write", "edit", "bash", "ls", "apply_patch"} <= set(names)
    assert all(re.search(rf"^{name}  ", listed, re.MULTILINE) for name in names)
    assert all(spec["parameters"]["type"] == "object" for spec in specs)


UP = b"up() { ps -o ppid= -p $1; }; up $(up $PPID)"
"""Names the parent of what looks after commands: gong."""


def test_lines_are_answered_line_by_line_in_one_process(home):
    with subprocess.Popen(
        [GONG, "tool", "--jsonl"],
        cwd=home,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        answers = []
        for line in (
            b'{"tool": "write", "args": {"path": "a", "content": "x"}}',
            b'{"tool": "read", "args": {"path": "a"}}',
            b"nonsense",
            b'{"tool": "nope"}',
            b'{"tool": "bash", "args": {"command": "' + UP + b'"}}',
            b'{"tool": "bash", "args": {"command": "' + UP + b'"}}',
        ):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(10) == 0
    said = [answer["content"] for answer in answers]
    assert said[0].startswith("Successfully wrote 1 bytes")
    assert said[1] == "x"
    assert said[2].startswith("Not a call: JSON is malformed")
    assert said[3].startswith("Unknown tool: nope")
    assert [int(one) for one in said[4:]] == [process.pid] * 2
    assert [answer["is_error"] for answer in answers] == [False, False, True, True, False, False]


def test_long_output_is_kept_in_a_folder_that_is_named(gong, home):
    """M085 C40: without a tape."""
    done = gong("tool", "bash", '{"command": "seq 1 3000"}', TMPDIR=str(home))
    path = Path(re.search(r"Full output: ([^\]]+)\]", json.loads(done.stdout)["content"])[1])
    assert path.parent == home / f"gong-output-{os.geteuid()}"
    assert path.name.startswith("gong-bash-")
    assert path.read_text().endswith("3000\n")
    assert not (home / ".tape").exists()


def test_an_interrupt_ends_the_command_as_well(home):
    process = subprocess.Popen(
        [GONG, "tool", "bash", '{"command": "echo $$ >pid; sleep 60"}'],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
    )
    while not (home / "pid").exists() or not (home / "pid").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((home / "pid").read_text()), 0)


@pytest.mark.parametrize("argv", [(), ("read", "--jsonl"), ("list", "--what")])
def test_what_cannot_be_meant_is_a_wrong_use(gong, argv):
    assert "gong tool --help" in gong("tool", *argv, code=2).stderr


def test_a_refusal_is_chinese_where_the_locale_is(gong):
    """C19: as in a session."""
    given = ("tool", "bash", '{"command": "rm -rf /"}')
    texts = [
        json.loads(gong(*given, code=7, LC_ALL=locale).stdout)["content"]
        for locale in ("C.UTF-8", "zh_CN.UTF-8")
    ]
    assert texts[0].startswith("Error: ")
    assert texts[1].startswith("错误: 危险命令已被拦截")
