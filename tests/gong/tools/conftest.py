import json
import os
import tempfile
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong.env.local import LocalEnvironment
from gong.tools.builtin import build_registry
from gong.tools.tool import PreparedCall, ToolContext
from tape.model.entries import ToolCall


@pytest.fixture
def folder(tmp_path):
    """The working directory, beside other folders a test may make in `tmp_path`."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
async def env(folder, tmp_path):
    environ = {**os.environ, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    environment = LocalEnvironment(str(folder), environ)
    yield environment
    await environment.cleanup()


@pytest.fixture
def heard():
    """What tools said while they ran."""
    return []


def encode_arguments(arguments):
    """Return arguments as a model writes them."""
    return Raw(json.dumps(arguments).encode())


def caller(registry, env, heard, storage=None):
    """Return what runs a call all the way through a registry, arguments as a model writes."""

    async def use(name, **arguments):
        call = ToolCall(id="c1", name=name, args=encode_arguments(arguments))
        prepared = registry.prepare(call)
        if not isinstance(prepared, PreparedCall):
            return prepared
        result = await registry.run(prepared, ToolContext(env, "c1", heard.append, storage))
        # That nothing was cut is said of most results, and asserted in test_registry.py.
        return result if result.truncated else replace(result, truncated=None)

    return use


@pytest.fixture
def use(env, heard):
    """Run a call of a tool that every session begins with."""
    return caller(build_registry(), env, heard)


@pytest.fixture
def use_face(env, heard):
    """Run a call of any tool, those of model families too."""
    registry = build_registry()
    registry.set_active(registry.names)
    return caller(registry, env, heard)


@pytest.fixture
def anyone():
    """A folder open to all, seen without root's right to open everything."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        if root:
            os.seteuid(65534)
        yield Path(name)
        if root:
            os.seteuid(0)
