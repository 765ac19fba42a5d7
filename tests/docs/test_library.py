"""The Python on docs/library.md runs: its blocks in order, in one process, in an empty folder."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import blocks

PAGE = Path(__file__).parent.parent.parent / "docs" / "library.md"


def test_the_blocks_of_the_library_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = [block for block in blocks(PAGE.read_text("utf-8")) if block.info == "python"]
    for block in shown:
        text = "\n" * (block.line - 1) + "\n".join(block.text)  # so that errors name its lines
        exec(compile(text, str(PAGE), "exec"), names)
    assert len(shown) >= 6
    assert "Why does the login fail?" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "tapes"]
