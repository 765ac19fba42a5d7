"""Modules under the names that docs/library.md once gave them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from tape.renamed import RENAMED


@pytest.fixture
def forget(monkeypatch):
    for old in RENAMED:
        monkeypatch.delitem(sys.modules, old, raising=False)


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_is_the_module_of_the_new_one_and_warns(old, new):
    module = import_module(new)
    spec = module.__spec__
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}") as caught:
        assert import_module(old) is module
    assert module.__spec__ is spec
    assert len(caught) == 1


def test_the_warning_names_the_line_that_imports(tmp_path):
    (tmp_path / "mine.py").write_text("import json\n\nfrom tape.follow import follow\n")
    command = [sys.executable, "-W", "always", "mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "mine.py:3: DeprecationWarning: tape.follow is now tape.history.follow" in done.stderr


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"tape\.shed"):
        import_module("tape.shed")
