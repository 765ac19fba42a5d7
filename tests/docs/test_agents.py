"""The pages name every agent whose sessions are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tape.formats.sessions.registry import SESSION_FORMATS

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS = {"atif", "simple", "otlp"}


@pytest.mark.parametrize("tool", sorted(SESSION_FORMATS.keys() - DOCUMENTS))
def test_the_contents_and_the_page_name_every_agent(tool):
    title = SESSION_FORMATS[tool].title
    contents = next(
        line for line in (DOCS / "README.md").read_text("utf-8").split("\n") if "import.md" in line
    )
    assert title in contents
    assert f"| {title} |" in (DOCS / "import.md").read_text("utf-8")
