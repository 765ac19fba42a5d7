import pytest

from tests.gong.logins.authority import serve_authority


@pytest.fixture
def authority():
    with serve_authority() as authority:
        yield authority


@pytest.fixture(autouse=True)
def _nobodys_keyring(monkeypatch):
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
