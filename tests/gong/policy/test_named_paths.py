"""Whatever spelling a tool takes for a file that is there, that file is judged."""

from __future__ import annotations

import unicodedata

import pytest

from gong.env.local import LocalEnvironment
from gong.policy.files.named_paths import list_meant_paths
from gong.policy.permissions import PermissionPolicy
from gong.tools.paths import locate_new_path, locate_path

HOME = "/home/ada"
ODD = {
    "a b": "a\u00a0b",
    "it\u2019s": "it's",
    "caf\u00e9": unicodedata.normalize("NFD", "caf\u00e9"),
    unicodedata.normalize("NFD", "n\u00e9"): "n\u00e9",
    "at\u202fPM": "at PM",
    "d\u2009e": "d e",
}
"""A name on the disk, and how a model may write it."""


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    for name in ODD:
        (work / name).symlink_to("/etc/fstab")
    return work


@pytest.mark.parametrize("name", ODD)
async def test_the_file_that_a_tool_would_open_is_judged(folder, name):
    written = ODD[name]
    opened = await locate_path(LocalEnvironment(str(folder), {"HOME": HOME}), written)
    assert opened == f"{folder}/{name}"
    assert opened in list_meant_paths(written, str(folder), HOME)
    policy = PermissionPolicy(str(folder), HOME)
    for path in (written, f"@{written}", f"./{written}"):
        ruling = policy.judge("read", {"path": path})
        assert (ruling.decision, ruling.offered) == ("ask", ("Read(/etc/fstab)",))
        assert policy.judge("edit", {"path": path}).decision == "deny"  # of the system


async def test_a_new_file_is_judged_where_it_would_be_written(folder):
    odd = folder / "x\u00a0y"
    odd.symlink_to("/etc")
    env = LocalEnvironment(str(folder), {"HOME": HOME})
    for written in ("x\u00a0y/new\u00a0file", "@x\u00a0y/a", "new\u00a0file", "~/a"):
        meant = list_meant_paths(written, str(folder), HOME)
        assert await locate_new_path(env, written) in meant or written[:1] == "~"
    policy = PermissionPolicy(str(folder), HOME)
    assert policy.judge("write", {"path": "x\u00a0y/new\u00a0file"}).decision == "deny"
    assert policy.judge("write", {"path": "new file"}).offered == (f"Edit({folder}/new file)",)
    assert list_meant_paths("~/a", str(folder), HOME) == [f"{HOME}/a"]
