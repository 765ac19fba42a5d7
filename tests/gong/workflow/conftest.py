"""A repository, scripted roles, and `gong workflow` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import warm


class WorkflowPlace:
    """A home with a store, a repository with one commit, and a script for each role."""

    def __init__(self, root):
        self.root, self.repo, self.home = root, root / "repo", root / "home"
        self.repo.mkdir()
        self.home.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        self.git("init", "-q", "-b", "main", ".")
        (self.repo / "a.txt").write_text("x\n")
        self.git("add", ".")
        self.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "one")
        self.play("executor", bash("echo made > made-$(basename $PWD).txt"), "made")
        self.play("reviewer", {"verdict": "pass", "findings": [], "summary": "fine"})
        self.play("fixer", bash("echo fixed >> fixed-$(basename $PWD).txt"), "fixed")
        self.play("evaluator", {"score": 90, "report": "good"})

    def play(self, role, *answers):
        """Let a role answer so, from the first answer on for each agent."""
        made = []
        for one in answers:
            if isinstance(one, dict) and not one.keys() & {"tool_calls", "text", "error"}:
                one = json.dumps(one)  # noqa: PLW2901
            made.append({"text": one} if isinstance(one, str) else one)
        (self.root / f"{role}.json").write_text(json.dumps(made))

    def git(self, *words):
        done = subprocess.run(
            ["git", *words], cwd=self.repo, env=self.env, capture_output=True, check=True
        )
        return done.stdout.decode()

    def write_plan(self, *tasks, **more):
        """Write a plan; a task is its id, or (id, dependency…), or a dict."""
        listed = []
        for one in tasks:
            if isinstance(one, dict):
                listed.append(one)
                continue
            name, *waits = (one,) if isinstance(one, str) else one
            listed.append({"id": name, "title": f"make {name}", "dependencies": waits})
        file = self.root / "plan.json"
        file.write_text(json.dumps({"requirement": "make files", "tasks": listed, **more}))
        return str(file)

    def build_command(self, *words):
        return [sys.executable, "-m", "gong", "workflow", *words]

    def list_models(self):
        roles = ("executor", "reviewer", "fixer", "evaluator", "manager")
        there = (one for one in roles if (self.root / f"{one}.json").exists())
        return [f"--{one}-model=scripted/{self.root}/{one}.json" for one in there]

    def run(self, *words, code=0):
        """Run a command, and return what it prints."""
        command = [warm.BIN / "gong", "workflow", *words]
        done = warm.run_text(command, cwd=self.repo, env=self.env)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout if code in {0, 1, 8} else done.stderr

    def start(self, plan, *words, code=0):
        return self.run("--plan", plan, "--yolo", *self.list_models(), *words, code=code)

    def json(self, *words, code=0):
        return json.loads(self.run(*words, "--json", code=code))

    def show(self):
        """Return how the newest workflow stands, and its tasks by id."""
        newest = self.json("list")[0]["id"]
        shown = self.json("show", newest)
        return shown, {one["id"]: one for one in shown["tasks"]}

    def read_log(self, ref, *words):
        """Return entries of a branch, oldest first."""
        command = [warm.BIN / "tape", "log", ref, "--json", *words]
        done = warm.run(command, cwd=self.repo, env=self.env)
        assert done.returncode == 0, done
        return sorted(json.loads(done.stdout), key=lambda one: one["n"])

    def read_events(self, ref):
        log = self.read_log(ref, "--type", "custom")
        return [one["data"]["data"] for one in log if one["data"]["kind"] == "gong.workflow"]

    def verify(self):
        done = warm.run([warm.BIN / "tape", "verify"], cwd=self.repo, env=self.env)
        assert done.returncode == 0, done


def bash(command):
    """Return an answer that runs a command."""
    return {"tool_calls": [{"name": "bash", "args": {"command": command}}]}


@pytest.fixture
def place(tmp_path):
    return WorkflowPlace(tmp_path)
