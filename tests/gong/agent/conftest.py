"""A session on a real tape in a temporary folder, answered by a script."""

from __future__ import annotations

import json
import os
from contextlib import aclosing

import pytest

from gong.agent.front_end import FrontEnd
from gong.agent.queues import DELIVERED, QUEUED, WITHDRAWN
from gong.agent.recorder import Recorder
from gong.assembly.opening import open_session
from gong.config import PermissionSettings, Settings
from tape.index.library import Library
from tape.store.store import Store


class Stage:
    """A folder, a store, and hosts that play scripts there."""

    def __init__(self, tmp_path):
        self.folder = tmp_path / "work"
        self.folder.mkdir()
        self.store = Store(tmp_path / "store")
        self.hosts = []
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    async def host(self, *answers, recorder=None, **settings):
        script = self.folder.parent / f"script{len(self.hosts)}.json"
        script.write_text(json.dumps(answers))
        allowed = {"permissions": PermissionSettings(mode="bypass"), **settings}
        settings = Settings(model=f"scripted/{script}", **allowed)
        host = await open_session(self.front_end(settings, self.environ), recorder)
        self.hosts.append(host)
        return host

    def front_end(self, settings, environ):
        return FrontEnd(Library(self.store, None), settings, environ, str(self.folder), "test/1")

    async def session(self, *answers, **settings):
        return (await self.host(*answers, **settings)).session

    def reopened(self, branch=None):
        (name,) = self.store.folders()
        return Recorder.open(self.store.open_folder(name), branch)


@pytest.fixture
async def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    for host in stage.hosts:
        await host.close()


async def seen(session, prompt):
    """Return the events of one run."""
    async with aclosing(session.submit(prompt)) as stream:
        return [event async for event in stream]


def types(session):
    """Return the entry types on the session's path, without the marks of the queues."""
    marks = {QUEUED, DELIVERED, WITHDRAWN}
    return [
        entry.type
        for entry in session.recorder.path
        if entry.type != "custom" or entry.data.kind not in marks
    ]


def call(name, **args):
    return {"name": name, "args": args}
