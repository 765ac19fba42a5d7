"""Two machines and their remote."""

import pytest

from tests.tape import making
from tests.tape.remote.machines import CountedRemote, Machine


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
