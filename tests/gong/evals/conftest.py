"""A home for `gong eval`, with the commands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import Place

if TYPE_CHECKING:
    from pathlib import Path


class EvalPlace(Place):
    """A home whose folder has a folder of tasks."""

    @property
    def tasks(self) -> Path:
        """The folder of the tasks."""
        return self.folder / "tasks"

    def results(self, *argv: object, code: int = 0) -> dict[str, dict]:
        """Return the results of a run of the tasks, by task and number."""
        document = self.json("gong", "eval", "tasks", *argv, "--json", code=code)
        return {f"{each['task']} #{each['number']}": each for each in document["results"]}

    def bash(self, command: str, name: str = "script.json") -> str:
        """Return the name of a model that runs one command and is done."""
        call = {"name": "bash", "args": {"command": command}}
        return self.script({"tool_calls": [call]}, {"text": "done"}, name=name)


@pytest.fixture
def place(tmp_path: Path) -> EvalPlace:
    return EvalPlace(tmp_path / "home")
