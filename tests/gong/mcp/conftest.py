"""A session whose user has the sample server."""

from __future__ import annotations

import json

import pytest

from gong.agent.front_end import FrontEnd
from tape.index.library import Library
from tests import warm
from tests.gong.agent.conftest import Stage

SAMPLE = {"command": str(warm.find_commands() / "sample_server"), "env": warm.LOCALE}


class ServerStage(Stage):
    """A stage with servers of the user's own."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path)
        self.file = tmp_path / ".config/gong/mcp.json"
        self.warnings = []
        self.use(sample=SAMPLE)

    def use(self, **servers):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"mcpServers": servers}))

    def front_end(self, settings, environ):
        library = Library(self.store, None)
        return FrontEnd(
            library, settings, environ, str(self.folder), "gong/1", warn=self.warnings.append
        )


@pytest.fixture
async def stage(tmp_path):
    stage = ServerStage(tmp_path)
    yield stage
    for host in stage.hosts:
        await host.close()
