"""The JSON beside the shipped tables says what the tables say."""

from __future__ import annotations

import shutil
import tomllib

import pytest

from gong.llm import models
from tests.docs.parsed_tables import NAMES, parse_tables


@pytest.mark.parametrize("name", NAMES)
def test_the_json_is_that_of_the_table(name):
    """Else run `make docs`."""
    assert (models.DATA / f"{name}.json").read_bytes() == parse_tables(name)
    assert models.load_tables(name) == tomllib.loads(
        (models.DATA / f"{name}.toml").read_text("utf-8")
    )


@pytest.mark.parametrize("spoilt", [None, b"", b"{", b'{"source":1}'])
def test_an_edited_table_counts_at_once(tmp_path, spoilt):
    data = shutil.copytree(models.DATA, tmp_path / "data")
    with (data / "presets.toml").open("a") as file:
        file.write('\n[here]\napi = "openai-chat"\n')
    if spoilt is not None:
        (data / "presets.json").write_bytes(spoilt)
    assert models.load_tables("presets", data)["here"] == {"api": "openai-chat"}
