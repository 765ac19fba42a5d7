"""The example for inspect_ai, run by inspect itself, offline: its bridge plays the model.

TAPE_INSPECT is a Python that has inspect_ai, anthropic and bpe-openai, whose ranks tiktoken reads;
`.ci/run` installs one.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import BIN
from tests.sources import ROOT

if TYPE_CHECKING:
    from tests.gong.evals.conftest import EvalPlace

INSPECT = os.environ.get("TAPE_INSPECT", "")
RUN = """
import gzip, hashlib, json, os, sys
from pathlib import Path
from unittest import mock

import bpe_openai
import tiktoken_ext.openai_public as encodings

folder = Path(sys.argv[1])
named = []
with mock.patch.object(encodings, "load_tiktoken_bpe", lambda url, **_: named.append(url) or {}):
    encodings.o200k_base()
(ranks,) = Path(bpe_openai.__file__).parent.glob("data/o200k_base.tiktoken.gz")
(folder / "ranks").mkdir()
name = hashlib.sha1(named[0].encode()).hexdigest()
(folder / "ranks" / name).write_bytes(gzip.decompress(ranks.read_bytes()))
os.environ["TIKTOKEN_CACHE_DIR"] = str(folder / "ranks")

from inspect_ai import eval
from inspect_ai.model import ModelOutput, get_model

call = ModelOutput.for_tool_call("mockllm/model", "bash", {"command": sys.argv[2]})
answer = ModelOutput.from_content("mockllm/model", "done")
model = get_model("mockllm/model", custom_outputs=[call, answer])
logs = str(folder / "logs")
(log,) = eval("hello.py", model=model, task_args={"where": "local"}, log_dir=logs, display="none")
metrics = [metric for score in log.results.scores for metric in score.metrics.values()]
scores = {metric.name: metric.value for metric in metrics}
events = [event.event for event in log.samples[0].events]
print(json.dumps({"status": log.status, "scores": scores, "calls": events.count("model")}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not INSPECT, reason="needs TAPE_INSPECT")
@pytest.mark.parametrize(("word", "accuracy"), [("hello", 1.0), ("bye", 0.0)])
def test_inspect_measures_gong_through_its_bridge(
    place: EvalPlace, word: str, accuracy: float
) -> None:
    done = subprocess.run(
        [INSPECT, "-c", RUN, str(place.folder), f"echo {word} > hello.txt"],
        env={**place.env, "PATH": f"{BIN}{os.pathsep}{place.env['PATH']}"},
        cwd=ROOT / "examples/inspect_ai",
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    document = json.loads(done.stdout.splitlines()[-1])
    assert document == {"status": "success", "scores": {"accuracy": accuracy}, "calls": 2}
    (tape,) = place.tapes()
    checked = place.json("gong", "eval", "check", tape.name.rpartition("-")[2], "--json")
    assert checked["checked"][0]["turns"] == 2
