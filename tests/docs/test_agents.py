"""The pages name every agent whose sessions are imported, as its row has it."""

from __future__ import annotations

import pytest

from tape.formats.sessions.registry import SESSION_FORMATS
from tests.docs.agents import pages


def test_the_lists_of_agents_are_up_to_date():
    for page, text in pages().items():
        assert page.read_text("utf-8") == text, f"`make docs` writes {page.name} anew"


@pytest.mark.parametrize("tool", SESSION_FORMATS)
def test_the_contents_and_the_page_name_every_agent(tool):
    contents, page = (text for _, text in sorted(pages().items()))
    assert SESSION_FORMATS[tool].title in contents
    assert f"| {SESSION_FORMATS[tool].title} | `{tool}` |" in page
