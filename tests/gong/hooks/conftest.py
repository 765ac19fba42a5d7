"""Sessions with hooks, on a real tape, answered by a script."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from gong import trust
from gong.agent import events
from gong.assembly.opening import open_session
from gong.config import Settings
from tests.gong.agent.conftest import Stage, seen


class HookStage(Stage):
    """A stage whose sessions have hooks: Python ones of the host, and those of files."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path)
        self.warnings = []
        self.home = tmp_path / "home"
        self.home.mkdir()
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    async def hooked(self, hooks, /, *answers, recorder=None, **settings):
        """Return a session that plays answers, with these Python hooks."""
        script = self.folder.parent / f"script{len(self.hosts)}.json"
        script.write_text(json.dumps(answers))
        settings = Settings(model=f"scripted/{script}", **settings)
        front = self.front_end(settings, self.environ)
        front = replace(front, hooks=tuple(hooks), warn=self.warnings.append)
        host = await open_session(front, recorder)
        self.hosts.append(host)
        return host.session

    async def run(self, hooks, /, *answers, prompt="go", **settings):
        """Return session and events of one run."""
        session = await self.hooked(hooks, *answers, **settings)
        return session, await seen(session, prompt)

    def write(self, path, content):
        """Write a file of the project: a text, or a value as JSON."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def trust(self):
        """Trust what the project brings now."""
        project = trust.read_project(str(self.folder), self.environ)
        trust.trust_project(project, self.environ)


@pytest.fixture
async def stage(tmp_path):
    stage = HookStage(tmp_path)
    yield stage
    for host in stage.hosts:
        await host.close()


def of(kind, happened):
    """Return the events of a class."""
    return [event for event in happened if isinstance(event, kind)]


def result_texts(happened):
    """Return what the model read as results, by the events."""
    return [
        "".join(block.text for block in e.content) for e in of(events.ToolExecutionEnd, happened)
    ]
