import pytest

from tests.tape import making


@pytest.fixture
def store(tmp_path):
    return making.store_in(tmp_path / "store")


@pytest.fixture
def tape(store):
    with store.create(making.beginning("a session")) as tape:
        yield tape


@pytest.fixture
def folder(store, tape):
    return making.folder_of(store, tape)
