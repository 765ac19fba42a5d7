"""Two machines and their remote."""

import os
import subprocess

import pytest

from tests.tape import making
from tests.tape.remote.machines import CountedRemote, Machine
from tests.tape.remote.servers import (
    KEYS,
    make_bucket,
    serving_localbucket,
    serving_ministack,
    serving_postgres,
)


@pytest.fixture
def remote(tmp_path):
    (tmp_path / "remote").mkdir()
    return CountedRemote(tmp_path / "remote")


@pytest.fixture
def two(tmp_path, remote):
    one, two = Machine(tmp_path / "one", remote), Machine(tmp_path / "two", remote)
    with one.store.create(making.beginning("a session")) as tape:
        making.write(tape, "one", "two")
    return one, two


@pytest.fixture(scope="session")
def ministack(tmp_path_factory):
    with serving_ministack(tmp_path_factory.mktemp("ministack")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def localbucket(tmp_path_factory):
    with serving_localbucket(tmp_path_factory.mktemp("localbucket")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def postgres():
    with serving_postgres() as port:
        yield port


@pytest.fixture
def address(request, tmp_path, monkeypatch):
    """The address of an empty remote, on the engine that a test names as its parameter."""
    match request.param:
        case "folder":
            (tmp_path / "remote").mkdir()
            return (tmp_path / "remote").as_uri()
        case "s3":
            pytest.importorskip("obstore", reason="the extra `s3` is not installed")
            for name, value in KEYS.items():
                monkeypatch.setenv(name, value)
            endpoint = request.getfixturevalue("ministack")
            make_bucket(endpoint, "tapes")
            place = os.urandom(4).hex()
            return f"s3://tapes/{place}?endpoint={endpoint}&region=us-east-1"
        case "postgresql":
            pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
            port = request.getfixturevalue("postgres")
            return f"postgresql://tape@127.0.0.1:{port}/postgres?team={os.urandom(4).hex()}"
        case "git":
            subprocess.run(["git", "init", "-q", "--bare", tmp_path / "tapes.git"], check=True)
            return f"git+{(tmp_path / 'tapes.git').as_uri()}"
