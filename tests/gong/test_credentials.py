import stat
import sys

import pytest

from gong.credentials import Credential, Credentials, ProviderKey
from gong.errors import ConfigurationError

NOW = "2026-11-22T01:00:00.000000Z"


@pytest.fixture(autouse=True)
def _nobodys_keyring(monkeypatch):
    """Keep the keys of whoever runs this out of it."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


@pytest.fixture
def kept(tmp_path):
    return Credentials(
        tmp_path / "config", {"OPENAI_API_KEY": " ", "GROQ_API_KEY": "gsk_env_0123456"}
    )


def test_a_key_is_kept_in_a_file_only_its_owner_can_read(kept):
    """M184: credentials.json 0600; save, get, list, delete."""
    assert kept.save("openai", "sk-openai-123456", NOW) == str(kept.file)
    kept.save("xai", "xai-123456789", NOW)
    assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600
    assert [file.name for file in kept.file.parent.iterdir()] == ["credentials.json"]
    assert kept.find("openai", ["OPENAI_API_KEY"]) == ProviderKey(
        "sk-openai-123456", "credentials.json"
    )
    assert kept.list_saved() == ("openai", "xai")
    assert kept.remove("openai")
    assert not kept.remove("openai")
    assert kept.find("openai", ["OPENAI_API_KEY"]) is None
    assert kept.key("xai", []) == "xai-123456789"


def test_the_environment_goes_first_and_an_empty_variable_is_none(kept):
    """M184: env overrides."""
    kept.save("groq", "gsk_kept_0123456", NOW)
    assert kept.find("groq", ["X", "GROQ_API_KEY"]) == ProviderKey(
        "gsk_env_0123456", "GROQ_API_KEY"
    )
    assert kept.find("groq", ["OPENAI_API_KEY"]) == ProviderKey(
        "gsk_kept_0123456", "credentials.json"
    )
    assert kept.has_key("groq", [])
    assert not kept.has_key("openai", ["OPENAI_API_KEY"])


def test_a_wider_file_is_replaced_by_a_narrow_one(kept):
    kept.file.parent.mkdir()
    kept.file.write_text("[]")
    kept.file.chmod(0o644)
    kept.save("a", "k", NOW)
    assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ['[{"provider": "a", "api_key": 5', '{"secret-key": 1}', '[{"api_key": "secret-key"}]']
)
def test_a_damaged_file_is_named_and_not_shown(kept, text):
    """M184: never in errors."""
    kept.file.parent.mkdir()
    kept.file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"credentials\.json is damaged") as caught:
        kept.find("a", [])
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_no_repr_shows_a_key():
    """M184."""
    assert "secret" not in repr(Credential("a", api_key="secret"))
    assert "secret" not in repr(ProviderKey("secret", "X"))


@pytest.mark.parametrize(
    ("value", "shown"), [("sk-ant-abcdef1234", "…1234"), ("short-key", "…"), ("x", "…")]
)
def test_four_characters_are_shown_of_a_long_key_and_none_of_a_short_one(value, shown):
    """M184."""
    assert ProviderKey(value, "X").ending == shown


RING = """
class Ring:
    priority = 5

_kept = {}

def get_keyring():
    return Ring()

def set_password(service, name, key):
    _kept[service, name] = key

def get_password(service, name):
    return _kept.get((service, name))

def delete_password(service, name):
    del _kept[service, name]

class errors:
    class KeyringError(Exception):
        pass
"""


@pytest.fixture
def _ring(tmp_path, monkeypatch):
    """Put a package named keyring in front, as small as the part of it that is used."""
    real = sys.modules.pop("keyring", None)
    (tmp_path / "keyring.py").write_text(RING)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("keyring", None)
    if real is not None:
        sys.modules["keyring"] = real


@pytest.mark.usefixtures("_ring")
def test_where_there_is_a_keyring_the_file_holds_no_key(kept):
    """M184: the system's keyring goes before the file."""
    assert kept.save("openai", "sk-in-the-ring-1234", NOW) == "keyring"
    assert "ring-1234" not in kept.file.read_text()
    assert kept.find("openai", []) == ProviderKey("sk-in-the-ring-1234", "keyring")
    assert kept.has_key("openai", [])
    assert kept.remove("openai")
    assert kept.find("openai", []) is None
