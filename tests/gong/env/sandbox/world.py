"""A home, a project and something outside of both, for programs that try to leave a sandbox."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NOBODY = 65534
needs_bubblewrap = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bwrap") is None, reason="bubblewrap is not installed"
)
RUNNER = Path(__file__).with_name("run_inside.py")
GIT = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
}


@dataclass
class World:
    """Folders of one user; `user` is None for the one that runs the tests."""

    base: Path
    user: int | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def project(self) -> Path:
        return self.home / "work/project"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def rights(self):
        ids = {} if self.user is None else {"user": self.user, "group": self.user}
        return {**ids, **({"extra_groups": []} if ids else {})}

    @property
    def python(self):
        """A Python that the user may run: nobody may not run one in a home."""
        return sys.executable if self.user is None else "/usr/bin/python3"

    def fill(self):
        """Make the files; the project is a repository with a submodule."""
        for folder in (self.home / ".ssh", self.home / "bin", self.outside, self.project):
            folder.mkdir(parents=True)
        texts = {
            ".ssh/id_fake": "FAKE-KEY",
            ".bashrc": "plain",
            ".gitconfig": "",
            ".config/gong/config.toml": "",
            ".config/gong/credentials.json": "FAKE-CREDENTIAL",
            ".config/gong/skills/a/run.sh": "echo skill",
            ".tape/tapes/a": "FAKE-TAPE",
            "work/project/.gong/config.toml": "",
            "work/project/.mcp.json": "{}",
            "work/project/Makefile": "all:\n",
            "work/project/conf/git.inc": "",
        }
        for name, text in texts.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        (self.outside / "file").write_text("plain")
        if self.user is not None:
            self.base.chmod(0o755)
            for path in (self.base, *self.base.rglob("*")):
                os.lchown(path, self.user, self.user)
        self.run_outside(
            f"git init -q {self.outside}/other && cd {self.outside}/other && echo 1 > a"
            " && git add a && git commit -qm one"
        )
        self.run_outside(
            "git init -q -b main . && git config include.path ../conf/git.inc"
            f" && git submodule --quiet add {self.outside}/other sub && git add Makefile conf"
            " && git commit -qm first && mkdir -p .git/hooks"
        )
        return self

    def run_outside(self, command: str) -> str:
        environ = {**os.environ, **GIT, "HOME": str(self.home)}
        done = subprocess.run(
            ("bash", "-c", command),
            cwd=self.project,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            **self.rights,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_inside(self, commands, **task):
        """Return how the commands ended inside a sandbox of the project."""
        task = {
            "folder": str(self.project),
            "home": str(self.home),
            "commands": [*commands],
            "variables": {**GIT, **self.variables},
            **task,
        }
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        done = subprocess.run(
            (self.python, str(RUNNER)),
            env={**os.environ, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"},
            input=json.dumps(task),
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            **self.rights,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextmanager
def make_world(user=None, folder="/dev/shm"):
    """Hold a world in a folder that its user may enter."""
    base = Path(tempfile.mkdtemp(prefix="gong-world-", dir=folder))
    try:
        yield World(base, user).fill()
    finally:
        shutil.rmtree(base)


def list_users():
    """Return who can try: the user of the tests, and nobody where that is root."""
    has_python = sys.version_info[:2] == (3, 11) and Path("/usr/bin/python3.11").exists()
    return [None, NOBODY] if os.geteuid() == 0 and has_python else [None]
