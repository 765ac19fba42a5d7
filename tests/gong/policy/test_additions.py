"""A rule that was offered grants what it shows: no added variable, option or redirection."""

from __future__ import annotations

import pytest

from gong.config import PermissionSettings
from gong.policy.permissions import build_policy
from tests.gong.policy.granted_additions import ADDITIONS, COMMANDS, OWN


@pytest.fixture
def judge(tmp_path):
    (tmp_path / "work").mkdir()

    def judge_one(command, allow=()):
        environ = {"HOME": str(tmp_path)}
        policy = build_policy(PermissionSettings(allow=tuple(allow)), f"{tmp_path}/work", environ)
        return policy.judge("bash", {"command": command})

    return judge_one


@pytest.mark.parametrize("command", COMMANDS.strip().split("\n"))
def test_what_is_added_is_asked_about(judge, command):
    """M176: what a rule that was offered does not cover."""
    offered = judge(command).offered
    assert judge(command, offered).decision == "allow" or not offered
    own = (f"{{}} {one}" for one in OWN.get(command, ()))
    added = [one.format(command) for one in (*ADDITIONS.strip().split("\n"), *own)]
    assert [one for one in added if judge(one, offered).decision == "allow"] == []


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("pytest", ["pytest -x -q --tb=short tests -k 'a and b'", "CI=1 pytest", "pytest -vv"]),
        ("npm test", ["npm test -- --watch", "npm test --silent", "NODE_ENV=test npm test"]),
        ("cargo test", ["cargo test --release --all", "cargo test name -- --nocapture"]),
        ("make test", ["make test -j4", "make test -k -s"]),
        ("python script.py", ["python script.py --fast -c 3", "python script.py < data.txt"]),
        ("go test ./...", ["go test ./pkg -run X -v -count=1"]),
    ],
)
def test_what_does_not_change_what_runs_is_covered(judge, command, more):
    offered = judge(command).offered
    assert [one for one in more if judge(one, offered).decision != "allow"] == []


DATA = """psql -d x <<'E'
select 1;
E"""


def test_a_rule_covers_data_but_not_code_that_is_fed_in(judge):
    """A script that is named reads data; psql and a bare python run what they are fed."""
    assert judge("python script.py < data.txt", ["Bash(python script.py:*)"]).decision == "allow"
    assert judge("python script.py <<< data", ["Bash(python script.py:*)"]).decision == "allow"
    assert judge("node app.js < data", ["Bash(node app.js:*)"]).decision == "allow"
    assert judge("python -m tool < data", ["Bash(python -m tool:*)"]).decision == "allow"
    for command, rule in [
        (DATA, "Bash(psql:*)"),
        ("python < code.py", "Bash(python:*)"),
        ("python - < code.py", "Bash(python:*)"),
        ("node /dev/stdin < code.js", "Bash(node:*)"),
        ("bash run.sh < answers", "Bash(bash run.sh:*)"),
    ]:
        ruling = judge(command, [rule])
        assert ruling.decision == "ask"
        assert "what it is fed is code, which no rule about its words covers" in ruling.why


@pytest.mark.parametrize(
    "command",
    [
        "TS=$(date +%s) && echo $TS",
        "FILES=$(git ls-files)",
        "FOO=bar; echo $FOO",
        "n=$(wc -l < a.txt); echo $n",
        "date -Iseconds",
        "date -d yesterday",
        "while read -r line; do echo $line; done < a.txt",
        "TS=$(date) && printf '%s\\n' \"$TS\" $TS",
        'printf "%s %s" "$(date)" -v',
    ],
)
def test_variables_of_the_shell_alone_do_not_ask(judge, command):
    assert judge(command).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "PATH=.:$PATH; ls",
        "http_proxy=evil; curl localhost",
        "npm_config_x=1; ls",
        "LD_PRELOAD=./x; ls",
        "HOME=/; ls",
        "export FOO=bar",
        "declare -x FOO",
        "read PATH < a",
        'TS=$(date); printf "$TS" x',
        "printf -v PATH %s x; ls",
        "FOO=$(./x)",
        "FOO=bar ls",
    ],
)
def test_variables_that_programs_obey_do(judge, command):
    assert judge(command).decision == "ask"
