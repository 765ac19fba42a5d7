"""The benchmarks run: what they measure is judged by people, not here.

Only groups that are quick: the others take a minute, and run with BENCH=1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RUN = Path(__file__).parent.parent / "bench" / "run.py"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "results.json"
    groups = "" if os.environ.get("BENCH") else "verify,fork,group,entry,barrier"
    command = [sys.executable, str(RUN), "--quick", "--only", groups]
    command += ["--out", str(out), "--dir", str(out.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(out.read_bytes())["rows"]


def test_every_row_has_a_figure(done):
    _, rows = done
    assert all(row["figure"] > 0 for row in rows)


def test_the_table_shows_every_row_and_missed_targets_first(done):
    shown, rows = done
    lines = shown.split("\n")[1 : len(rows) + 1]
    assert {row["measured"] for row in rows} == {line.split("  ")[0] for line in lines}
    missed = [line.endswith("MISSED") for line in lines]
    assert missed == sorted(missed, reverse=True)
