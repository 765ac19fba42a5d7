"""`gong` run in this process, with streams, environment and folder of its own."""

from __future__ import annotations

from contextlib import chdir
from typing import NamedTuple

from click.testing import CliRunner

from gong.cli.run import run
from tests.gong.cli.conftest import environment


class Ran(NamedTuple):
    """What a command said."""

    stdout: str
    stderr: str


def inside(home):
    """Return what runs a command in a home of nobody's and demands its exit code."""

    def gong(*argv, code=0):
        unset = dict.fromkeys(("TAPE_HOME", "GONG_CONFIG_DIR", "XDG_CONFIG_HOME", "GONG_MODEL"))
        env = {**unset, **environment(home)}
        with CliRunner().isolation(b"", env) as (out, err, _), chdir(home):
            done = run([str(word) for word in argv])
            ran = Ran(out.getvalue().decode(), err.getvalue().decode())
        assert done == code, (done, ran)
        assert "Traceback" not in ran.stderr
        return ran

    return gong
