from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_file())
SAYS = {
    "ask.py": r"\[ls .*\]\nThis folder holds 1 entry: notes\.txt\.\n",
    "delegate.py": (
        r"api holds 1 entry: api\.py\.\nweb holds 1 entry: web\.py\.\n"
        r"web\.py is changed: “NAME” is now “TITLE”\. · True\nNAME = 'api'\nTITLE = 'web'\n"
    ),
    "follow_live.py": r"1: one\n2: two\n3: three\n4: bye\n",
    "fork_and_compare.py": (
        r"main: A name for a cat\? / Mio\. / Another\? / Luna\.\n"
        r"serious: A name for a cat\? / Mio\. / A serious one\? / Professor Whiskers\.\n"
    ),
    "record_from_a_shell.sh": r"([0-9a-f]{40}\n){2}(.*\n){3}",
    "record_your_agent.py": r"recorded [0-9a-f]{8}: try  tape --store .* cat [0-9a-f]{8}\n",
    "report_with_sql.py": (
        r"\nSessions by folder\ncwd \| .*\n/.*/work \| 1 \| 8 \| .*\n"
        r"\nTokens and cost by day and model\nday \| .*\n.* \| offline/rules \| 2 \| \d+ \| 0\.0\n"
        r"\nTools, those that fail most first\ntool \| .*\nwrite \| 1 \| 0 \| \d+\n"
        r"\nFiles changed most\npath \| .*\n/.*/work/plan\.md \| 1 \| 1\n"
    ),
    "rpc_client.py": r"\n\[ls .*\]\nThis folder holds 1 entry: notes\.txt\.\n",
    "search_all_tapes.py": (
        r"([0-9a-f]{8}@[0-9a-f]{8}  .*  user: write plan\.md with hello\n"
        r"|[0-9a-f]{8}@[0-9a-f]{8}  .*\n    asked: write plan\.md with hello\n){4}4 found\n"
    ),
}
ARGUMENTS = {"ask.py": ["list ."], "rpc_client.py": ["list ."], "search_all_tapes.py": ["plan.md"]}
LONG = {"rpc_client.py": 101}
"""Examples that are a whole client, and their most lines."""
READERS = {"report_with_sql.py", "search_all_tapes.py"}
"""Examples that want a session to be there."""


def test_every_example_is_known_here():
    assert set(EXAMPLES) == set(SAYS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_says_what_it_should(name, tmp_path):
    """M221: parallel exploration and a scoped change among them."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("a note\n")
    if name in READERS:
        said_by("ask.py", work, ["write plan.md with hello"])
    said = said_by(name, work, ARGUMENTS.get(name, []))
    assert re.fullmatch(SAYS[name], said), said


def said_by(name, work, args):
    run = "sh" if name.endswith(".sh") else sys.executable
    done = subprocess.run(
        [run, str(ROOT / "examples" / name), str(work.parent / "tapes"), *args],
        cwd=work,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(work.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name):
    assert len((ROOT / "examples" / name).read_text().split("\n")) <= LONG.get(name, 41)
