"""A repository with one commit, and `gong review` in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import warm


class ReviewPlace:
    def __init__(self, root):
        self.root, self.repo = root, root / "repo"
        self.repo.mkdir()
        (root / "home").mkdir()
        self.env = {
            "PATH": os.defpath,
            "HOME": str(root / "home"),
            "LC_ALL": "C.UTF-8",
        }
        self.python = []
        self.git("init", "-q", "-b", "main", ".")
        self.commit({"a.txt": "x\n"})

    def leave_extras(self):
        """Run gong with a Python that has no program of the extra `review` beside it."""
        (self.root / "bare").mkdir()
        (self.root / "bare/python").symlink_to(sys.executable)
        self.env["PYTHONPATH"] = os.pathsep.join(one for one in sys.path if one)
        self.python = [self.root / "bare/python", "-m", "gong"]

    def git(self, *words):
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@b", *words]
        done = subprocess.run(command, cwd=self.repo, env=self.env, capture_output=True, check=True)
        return done.stdout.decode()

    def write(self, files):
        for name, text in files.items():
            file = self.repo / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def commit(self, files):
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "-qm", "next")

    def run(self, *words, code=0, stdin=""):
        command = [*(self.python or [warm.find_commands() / "gong"]), "review", *words]
        done = subprocess.run(
            command,
            cwd=self.repo,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stderr if code == 2 else done.stdout

    def find(self, *words, code=0, stdin=""):
        return json.loads(self.run("--json", "--no-model", *words, code=code, stdin=stdin))[
            "findings"
        ]

    def configure(self, text):
        file = self.root / "home/.config/gong/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def place(tmp_path):
    return ReviewPlace(tmp_path)
