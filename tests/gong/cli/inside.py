"""`gong` run in this process, with streams, environment and folder of its own."""

from __future__ import annotations

import os
import sys
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from gong.cli.run import run_command_line
from tests.gong.cli.conftest import environment


class Ran(NamedTuple):
    """What a command said."""

    stdout: str
    stderr: str


def inside(home):
    """Return what runs a command in a home of nobody's and demands its exit code."""

    def gong(*argv, code=0, stdin=b"", **more):
        unset = dict.fromkeys(("TAPE_HOME", "GONG_CONFIG_DIR", "XDG_CONFIG_HOME", "GONG_MODEL"))
        env = {**unset, **environment(home), **more}
        with (
            CliRunner().isolation(stdin, env) as (out, err, _),
            Path(os.devnull).open() as nothing,
            chdir(home),
        ):
            if not stdin:
                sys.stdin = nothing
            done = ended([str(word) for word in argv])
            ran = Ran(out.getvalue().decode(), err.getvalue().decode())
        assert done == code, (done, ran)
        assert "Traceback" not in ran.stderr
        return ran

    return gong


def ended(words):
    """Run a command and return its exit code, however it ends."""
    try:
        return run_command_line(words)
    except SystemExit as end:
        return end.code
