"""A damaged session: its page has what can be read of it, or says that nothing can."""

from __future__ import annotations

import pytest

from tests.tape.serve import sample_store
from tests.tape.serve.conftest import serving


@pytest.fixture
def damaged(tmp_path):
    return sample_store.damage(tmp_path / ".tape")


def test_what_can_be_read_of_a_damaged_session_is_shown(tmp_path, damaged):
    with serving(tmp_path) as server:
        page = server.get(f"/session/{damaged}")
    assert "Parts of this session are damaged and left out" in page
    assert "before the damage" in page
    assert "after the damage" in page
    assert "ithin the damage" not in page


def test_a_session_without_its_journal_is_an_error(tmp_path, damaged):
    with serving(tmp_path) as server:
        server.get("/")
        next((tmp_path / ".tape" / "tapes").rglob("refs.jsonl")).unlink()
        answer = server.ask(f"/session/{damaged}")
    assert answer.status == 500
    assert "This cannot be read." in answer.text
    assert str(tmp_path) not in answer.text
