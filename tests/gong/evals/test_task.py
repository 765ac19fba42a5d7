"""Tasks of Harbor's format: what is read from their folders, and what is wrong with some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gong.errors import ConfigurationError
from gong.evals.task import find_tasks, hash_task, read_task
from tests.gong.evals.making import TASK_TOML, make_task

if TYPE_CHECKING:
    from pathlib import Path


def test_a_task_is_read_with_its_limits(tmp_path: Path) -> None:
    task = read_task(make_task(tmp_path / "hello"))
    assert task.fault == ""
    assert task.name == "hello"
    assert task.instruction == "Write hello into hello.txt.\n"
    assert (task.agent_seconds, task.verifier_seconds) == (60, 20)
    assert (task.description, task.difficulty) == ("Say hello", "easy")
    assert task.wants_network


FAULTS = {
    "no task.toml": ({"toml": None}, "there is no task.toml"),
    "no TOML": ({"toml": "[task"}, "task.toml is no TOML: "),
    "a text for a time": (
        {"toml": '[agent]\ntimeout_sec = "x"'},
        "task.toml: Expected `float | null`",
    ),
    "a time that is nan": ({"toml": "[agent]\ntimeout_sec = nan"}, "task.toml: "),
    "a time that is endless": ({"toml": "[verifier]\ntimeout_sec = inf"}, "task.toml: "),
    "a time before now": ({"toml": "[verifier]\ntimeout_sec = -1"}, "task.toml: "),
    "no instruction": ({"instruction": None}, "there is no instruction.md"),
    "an empty instruction": ({"instruction": " \n"}, "instruction.md is empty"),
    "no tests": ({"test": None}, "there is no tests/test.sh, so nothing judges a try"),
    "several steps": ({"toml": "[[steps]]\nname = 'a'"}, "a task of several steps runs in Harbor"),
    "another system": ({"toml": "[environment]\nos = 'windows'"}, "it is for windows"),
    "a folder above": ({"toml": "[environment]\nworkdir = '/a/../..'"}, "task.toml: workdir "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_task_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    parts, fault = FAULTS[name]
    task = read_task(make_task(tmp_path / "t", **parts))
    assert task.fault.startswith(fault)
    assert "\n" not in task.fault


def test_an_instruction_that_is_a_pipe_or_no_text_is_a_fault(tmp_path: Path) -> None:
    pipe = make_task(tmp_path / "pipe", instruction=None)
    os.mkfifo(pipe / "instruction.md")
    assert read_task(pipe).fault == "instruction.md is no file"
    odd = make_task(tmp_path / "odd")
    (odd / "instruction.md").write_bytes(b"\xff\xfe")
    assert read_task(odd).fault == "instruction.md is no text in UTF-8"
    (odd / "instruction.md").write_bytes(b"x" * (2 << 20))
    assert read_task(odd).fault == "instruction.md is larger than 1 MB"


def test_tasks_are_found_by_folder_file_and_list(tmp_path: Path) -> None:
    one, two = make_task(tmp_path / "tasks/one"), make_task(tmp_path / "tasks/two")
    (tmp_path / "tasks/README.md").write_text("no task")
    names = tmp_path / "names.txt"
    names.write_text("# mine\ntasks/two\n\n")

    def find(*places: Path) -> list[str]:
        return [task.name for task in find_tasks(places)]

    assert find(tmp_path / "tasks") == ["one", "two"]
    assert find(one / "task.toml") == ["one"]
    assert find(names) == ["two"]
    assert find(two, tmp_path / "tasks") == ["one", "two"]
    for place in (tmp_path / "none", tmp_path, tmp_path / "tasks/README.md"):
        with pytest.raises(ConfigurationError):
            find(place)


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    make_task(tmp_path / "a/same")
    make_task(tmp_path / "b/same")
    with pytest.raises(ConfigurationError, match="two tasks are called same"):
        find_tasks([tmp_path / "a", tmp_path / "b"])


def test_a_digest_changes_with_any_file_of_a_task(tmp_path: Path) -> None:
    folder = make_task(tmp_path / "t")
    before = hash_task(read_task(folder))
    assert hash_task(read_task(folder)) == before
    (folder / "tests/test.sh").write_text("echo 1\n")
    changed = hash_task(read_task(folder))
    assert changed != before
    (folder / "task.toml").write_text(TASK_TOML + "\n")
    assert hash_task(read_task(folder)) != changed
