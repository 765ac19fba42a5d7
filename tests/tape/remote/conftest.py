"""Two machines and their remote."""

import pytest

from tests.tape import making
from tests.tape.remote.machines import CountedRemote, Machine
from tests.tape.remote.servers import serving_localbucket, serving_ministack, serving_postgres


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
