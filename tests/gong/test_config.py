import pytest

from gong.config import load_settings
from gong.errors import ConfigurationError


@pytest.fixture
def write(tmp_path):
    def make(text):
        (tmp_path / "config.toml").write_text(text)
        return {"GONG_CONFIG_DIR": str(tmp_path)}

    return make


def test_tables_of_providers_models_and_aliases_are_settings(write):
    """M201"""
    settings = load_settings(
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
        ("[aliases]\na = 5\n", "config.toml:2: .*aliases"),
    ],
)
def test_a_wrong_table_fails_here_with_file_and_key(write, text, words):
    with pytest.raises(ConfigurationError, match=words):
        load_settings(write(text), {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('# mine\n\nmodle = "x"\n', ":3: unknown setting modle: did you mean model?"),
        ("zzzz = 1\n", ":1: unknown setting zzzz"),
        (
            "[compaction]\nkeep = 1\nresrve = 5\n",
            ":3: unknown setting compaction.resrve: did you mean reserve?",
        ),
        ("compaction.kep = 4\n", ":1: unknown setting compaction.kep: did you mean keep?"),
        (
            "[truncation.tools.bash]\nmaxlines = 3\n",
            ":2: unknown setting truncation.tools.bash.maxlines: did you mean max_lines?",
        ),
        ('max_turns = "a"\n', ":1: Expected `int`, got `str` for max_turns"),
        (
            'model = "x"\n[compaction]\nreserve = "x"\n',
            ":3: Expected `int`, got `str` for compaction.reserve",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_line_and_the_nearest_key(write, tmp_path, text, said):
    with pytest.raises(ConfigurationError) as told:
        load_settings(write(text), {})
    assert str(told.value) == f"{tmp_path}/config.toml{said}"
