import pytest

from gong.config import load
from gong.errors import ConfigurationError


@pytest.fixture
def write(tmp_path):
    def make(text):
        (tmp_path / "config.toml").write_text(text)
        return {"GONG_CONFIG_DIR": str(tmp_path)}

    return make


def test_tables_of_providers_models_and_aliases_are_settings(write):
    settings = load(
        write(
            '[aliases]\nx = "groq/y"\n[providers.groq]\nbase_url = "http://h"\n'
            '[models."groq/y"]\nmax_output = 5\n'
        ),
        {},
    )
    assert settings.aliases == {"x": "groq/y"}
    assert settings.providers == {"groq": {"base_url": "http://h"}}
    assert settings.models == {"groq/y": {"max_output": 5}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[providers.own]\n", r"config.toml: providers.own: .*api"),
        ('[models."a/b"]\nprice = 5\n', r"config.toml: models.'a/b': .*price"),
        ("[models.a]\n", r"config.toml: models.'a': .*provider/model"),
        ("[aliases]\na = 5\n", "config.toml: .*aliases"),
    ],
)
def test_a_wrong_table_fails_here_with_file_and_key(write, text, words):
    with pytest.raises(ConfigurationError, match=words):
        load(write(text), {})
