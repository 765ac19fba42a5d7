import os
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.measured import MEASURED

GONG = Path(sys.executable).parent / "gong"


def environment(home):
    """Return variables for a home of nobody's, whose keys no keyring gets to see."""
    return {
        "HOME": str(home),
        **MEASURED,
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }


@pytest.fixture
def home(tmp_path):
    """A throw-away home with a config folder."""
    (tmp_path / ".config/gong").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def env(home):
    return environment(home)


@pytest.fixture
def gong(home):
    """Run the command in a home of its own, demand its exit code, and return the finished run."""

    def run(*argv, stdin="", code=0, cwd=home, **env):
        done = warm.run_text([GONG, *argv], cwd=cwd, env={**environment(home), **env}, stdin=stdin)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    return run
