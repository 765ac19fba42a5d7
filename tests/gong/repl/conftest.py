import json
import os

import pytest

from gong.agent.front_end import FrontEnd
from gong.assembly.opening import open_session
from gong.config import PermissionSettings, Settings
from tape.index.library import Library
from tape.store.store import Store


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "tapes")


@pytest.fixture
def script(tmp_path):
    """Write answers to a file and return the name of the model that plays them."""

    def script(*answers):
        file = tmp_path / "script.json"
        file.write_text(json.dumps(answers))
        return f"scripted/{file}"

    return script


@pytest.fixture
async def host(folder, store, tmp_path):
    """Return a real host in `folder`, with the model that is named."""
    hosts = []

    async def make(model="offline/rules", recorder=None, **more):
        permissions = PermissionSettings(mode="bypass")
        settings = Settings(model=model, permissions=permissions, **more)
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        front = FrontEnd(Library(store, None), settings, environ, str(folder), "gong/test")
        made = await open_session(front, recorder)
        hosts.append(made)
        return made

    yield make
    for made in hosts:
        await made.close()
