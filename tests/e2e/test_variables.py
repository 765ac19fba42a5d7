"""What commands, hooks and MCP servers of a session inherit of the environment, and can read."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.gong.env.test_variables import PLAIN, PLAIN_VALUES, SECRET, SECRET_VALUES

CANARY = "canary" + "-4711"
LISTED = "OURAPP_TOKEN"
SECRETS = {**dict.fromkeys(SECRET.split(), CANARY), **SECRET_VALUES, LISTED: CANARY}
del SECRETS["GIT_CONFIG_VALUE_0"]  # each command gets one of ours
USED = {
    "PATH",
    "HOME",
    "EDITOR",
    "PAGER",
    "GIT_EDITOR",
    "TERM",
    "LC_ALL",
    "PYTHONPATH",
    "XDG_CONFIG_HOME",
    "OLDPWD",
}
"""What has to be true for the run itself, or is set for every command."""


def read_names(file):
    """Return the names of variables in what `env -0` wrote."""
    return {entry.partition("=")[0] for entry in file.read_text().split("\0")}


def test_one_rule_for_commands_hooks_and_servers(place):
    """M124: with env_vars as the only exception, and nothing of what is no secret missing."""
    plain = {**dict.fromkeys(PLAIN.split(), "x"), **PLAIN_VALUES}
    plain = {name: value for name, value in plain.items() if name not in {*USED, *SECRETS}}
    settings = place.home / ".config/gong"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(
        'env_vars = ["OURAPP_*"]\n[[hooks]]\nevent = "PreToolUse"\ncommand = "env -0 > hook"\n'
    )
    server = {"command": "sh", "args": ["-c", "env -0 > server"], "env": {"OWN_TOKEN": "x"}}
    (settings / "mcp.json").write_text(json.dumps({"mcpServers": {"one": server}}))
    model = place.script(
        {"tool_calls": [{"name": "bash", "args": {"command": "env -0 > command"}}]},
        {"text": "done"},
    )
    place.run("gong", "chat", "-p", "hi", "-m", model, **{**plain, **SECRETS})
    got = {one: read_names(place.folder / one) for one in ("command", "hook", "server")}
    assert [names & SECRETS.keys() for names in got.values()] == [{LISTED}] * 3
    assert [plain.keys() - names for names in got.values()] == [set()] * 3
    assert "OWN_TOKEN" in got["server"]


_WITHOUT_RIGHTS = """
import ctypes, os, sys
for right in range(64):  # several let root read each process
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
_READ_PARENTS = """
pid=$$
while [ "$pid" -gt 1 ]; do
  name=$(cat /proc/$pid/comm)
  tr '\\0' '\\n' < /proc/$pid/environ
  pid=$(awk '/^PPid/ { print $2 }' /proc/$pid/status)
  echo "=$pid"
done > seen 2> failed
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows an environment as a file")
@pytest.mark.parametrize("has_rights", [True, False])
def test_a_command_reads_no_secret_of_the_processes_above_it(place, has_rights):
    """Root reads no secret of gong's environment, everybody else nothing of it."""
    (place.folder / "read.sh").write_text(_READ_PARENTS)
    model = place.script(
        {"tool_calls": [{"name": "bash", "args": {"command": "sh ./read.sh"}}]},
        {"text": "done"},
    )
    words = [sys.executable, "-m", "gong", "chat", "-p", "hi", "-m", model]
    if not has_rights:
        words = [sys.executable, "-c", _WITHOUT_RIGHTS, *words]
    env = {**place.env, "X_API_KEY": CANARY, LISTED: CANARY}
    with subprocess.Popen(words, cwd=place.folder, env=env) as gong:
        assert gong.wait() == 0
    seen = (place.folder / "seen").read_text().split("\n")
    assert f"={gong.pid}" in seen
    assert not [line for line in seen if CANARY in line]
    refused = f"/proc/{gong.pid}/environ" in (place.folder / "failed").read_text()
    assert refused is not (has_rights and os.getuid() == 0)
